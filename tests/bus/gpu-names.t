#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The names of GPUs by NVIDIA's driver and of disks: from the daemon, while the driver has the GPU, and from a recording.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;

use constant NVME => '0000:15:00.0';

node('hgx-h100');

my $recording = "$ENV{BUILD}/nodes/hgx-h100.tree";

my @gpus = map { "0000:$_:00.0" } qw(13 23 33 43 93 a3 b3 c3);
my $bus  = Bus->new->listen;

sub names_of {
        my ($document) = @_;
        return { map { $_->{address} => join ' ', @{ $_->{kernel_names} } } @{ $document->{devices} } };
}

ok(wait_until(sub { names_of(describe($bus))->{ $gpus[7] } =~ /^nvidia7/ }), 'the driver has answered');
my $names = names_of(describe($bus));
my $same  = names_of(ctl_json('list', '--all', '--node', $recording));
is_deeply([map { $names->{$_} =~ /^(nvidia\d+)/ } @gpus], [map { "nvidia$_" } 0 .. 7], 'GPUs have the numbers of their nodes');
is($names->{ +NVME }, 'nvme2 nvme2n1', 'an NVMe controller has its namespace');
is_deeply([@{$same}{@gpus, NVME}], [@{$names}{@gpus, NVME}], 'a recording has the same names');

is(allocate($bus, 'vm', gpu => 1), 'done', 'a GPU is allocated');
my ($gpu) = map { $_->{address} } grep { ($_->{allocation} // '') eq 'vm' } @{ describe($bus)->{devices} };
unlike(names_of(describe($bus))->{$gpu}, qr/nvidia/, 'another driver has no such node');
is(release($bus, 'vm'), 'done', 'and released');
ok(wait_until(sub { names_of(describe($bus))->{$gpu} eq $names->{$gpu} }), 'the node is back');
my $recorded = (ctl('snapshot', '--node', $recording))[1];
like($recorded, qr{^proc/driver/nvidia/gpus/\Q$gpus[0]\E/information=Device Minor: \\t 0$}m, 'a recording has the number, and no more');

# A model that pci.ids does not have.
my $newer = "$ENV{NODE_TMP}/newer.tree";
spew($newer, slurp($recording) =~ s/=0x2330$/=0xfffe/mgr);
my %name = map { $_->{address} => $_->{name} } @{ ctl_json('list', '--all', '--node', $newer)->{devices} };
is($name{ $gpus[0] }, 'NVIDIA Corporation 3D controller [10de:fffe]', 'vendor, class and ids take the place of a name');
like((ctl(@$_, '--all', '--node', $newer))[1], qr/\Q$gpus[0]\E .* NVIDIA 3D controller \[10de:fffe\]/, "$_->[0]: the brand is enough")
        for ['list'], ['topology'];

done_testing;
