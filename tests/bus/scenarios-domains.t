#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids: whole slots and single functions, and one address in two PCI domains. The host bridges are below firmware objects.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('domains');

my ($gpu, $audio, $twin, $nic) = qw(0000:81:00.0 0000:81:00.1 1234:81:00.1 1234:82:00.0);
my @vm     = (cpus => 2, memory => 2**30);
my $bus    = Bus->new->listen;
my $before = tree();

# Role and address in the guest, by address on the host.
sub devices { my ($name) = @_; return { map { $_->{address} => "$_->{role} $_->{guest_address}" } @{ allocation($bus, $name)->{devices} } } }

# Of each hostdev: address on the host, bus and function in the guest, multifunction.
sub hostdevs {
        my ($xml) = @_;
        my @found;
        for my $text ($xml =~ m{<hostdev .*?</hostdev>}gs) {
                my ($source) = $text =~ m{<source>(.*?)</source>}s;
                my ($guest)  = $text =~ m{</source>.*?(<address [^>]*>)}s;
                my $host = sprintf '%04x:%02x:%02x.%x', map { hex } $source =~ /domain="(\w+)" bus="(\w+)" slot="(\w+)" function="(\w+)"/;
                push @found, join ' ', $host, $guest =~ /bus="0x(\w+)"/, $guest =~ /function="0x(\w)"/, $guest =~ /multifunction="(\w+)"/;
        }
        return \@found;
}

# ---- B13: all functions of a slot

is(allocate($bus, 'slot', gaming => 1, @vm), 'done', 'B13: a GPU whose slot has two functions');
is_deeply(devices('slot'), { $gpu => 'assigned 0000:02:00.0', $audio => 'companion 0000:02:00.1' }, 'B13: brings both, in one slot of the guest');
is_deeply(hostdevs(document('slot', 'B13')), ["$gpu 02 0 on", "$audio 02 1"], 'B13: as a multifunction device');
is(device($bus, $twin)->{state}, 'available', 'B13: the same slot and function of another domain is another device');

# ---- B13: function 1 alone

is(allocate($bus, 'function', gpu => 1, @vm), 'done', 'B13: a GPU that is function 1, alone in its slot');
is_deeply(devices('function'), { $twin => 'assigned 0000:02:00.0' }, 'B13: is function 0 in the guest');
is_deeply(hostdevs(document('function', 'B13')), ["$twin 02 0"], 'B13: and no multifunction device');
is_deeply([map { driver_of($_) } $gpu, $audio, $twin, $nic], [('vfio-pci') x 3, 'mlx5_core'], 'B13: each has what it was given');
is(release($bus, 'slot'), 'done', 'B13: the first one is released');
is_deeply([map { driver_of($_) } $gpu, $audio, $twin], ['nvidia', 'snd_hda_intel', 'vfio-pci'], 'B13: and nothing of the other domain');
is(release($bus, 'function'), 'done', 'B13: then the second one');
same_tree($before, 'B13: the tree is that of the start');

# ---- what is one host bridge when all are below one object

my $topology = ctl_json('topology');
my %root = map { $_->{address} => $_->{root} } @{ $topology->{devices} };
is($root{$_}, 'LNXSYSTM:00/LNXSYBUS:00/pci0000:80', "$_ is below the first host bridge")  for $gpu, $audio;
is($root{$_}, 'LNXSYSTM:00/LNXSYBUS:00/pci1234:80', "$_ is below the second host bridge") for $twin, $nic;
my @members = @{ $topology->{matrix}{devices} };
my %distance;
for my $i (0 .. $#members) { $distance{"$members[$i] $members[$_]"} = $topology->{matrix}{distances}[$i][$_] for 0 .. $#members }
is($distance{"$twin $nic"}, 'PHB',  'GPU and NIC of one host bridge');
is($distance{"$gpu $nic"},  'NODE', 'and of two');
ok(plan_ok($bus, gpu => 1, nic => 1, proximity => 'root-complex'), 'the planner takes the first for one root complex');
ok(!plan_ok($bus, gaming => 1, nic => 1, proximity => 'root-complex'), 'and not the second');

done_testing();
