#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A detach returns what the allocation held for the device: the other devices of its IOMMU group, also when the device is missing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('edge');

my ($gpu, $nic) = qw(0000:02:00.0 0000:0a:00.0); # of one group
my $bus = Bus->new->listen;

sub devices_of { return sort map { "$_->{role} $_->{address}" } @{ allocation($bus, 'vm')->{devices} } }
sub attach {
        my ($signature, $entries) = request(@_);
        return $bus->result($bus->call('Attach', "st$signature", 'vm', allocation($bus, 'vm')->{generation}, $entries)->{body}[0]);
}
sub detach { my ($slot) = @_; return $bus->call('Detach', 'sts', 'vm', allocation($bus, 'vm')->{generation}, $slot) }

my $before = tree_without_identities();
is(allocate($bus, 'vm', gpu => 1, at => [['gpu', '0000:03:00.0']]), 'done', 'an allocation');
my @devices = devices_of();
my $path    = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{^[./]+}{}r;

for my $what ('present', 'missing') {
        is(attach(gpu => 1, at => [['gpu', $gpu]]), 'done', "$what: attach a GPU");
        is(driver_of($nic), 'vfio-pci', "$what: a NIC of its group is held");
        if ($what eq 'missing') {
                fault("remove sys/$path");
                $bus->call('Rescan');
        }
        is($bus->result(detach('gpu1')->{body}[0]), 'done', "$what: detach the GPU");
        is_deeply([devices_of()], \@devices, "$what: nothing else stays with the allocation");
        isnt(driver_of($nic), 'vfio-pci', "$what: the NIC is back");
        is(allocation_state($bus, 'vm'), 'ready', "$what: the allocation is ready");
}
fault('write sys/bus/pci/rescan 1');
$bus->call('Rescan');
is(allocation_state($bus, 'vm'), 'ready', 'and is when the GPU is back');
is(release($bus, 'vm'), 'done', 'a release');
is(tree_without_identities(), $before, 'the node is as before');

is(allocate($bus, 'vm', nic => 1, at => [['nic', $nic]]), 'done', 'a NIC, which holds the GPU');
is_error(detach('nic0'), 'WrongState', ['wrong-state', 'vm'], 'the NIC is the last device');

done_testing();
