#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids, on the node with all the oddities.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('edge');

my $bus    = Bus->new->listen;
my $before = tree();
my $node   = describe($bus);
my %device = map { $_->{address} => $_ } @{ $node->{devices} };

# C12: functions of a 32-bit PCI domain are listed as all others are, and never given to a guest.
my @functions = map { s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/*";
is(scalar(grep { /^10000:/ } @functions), 2, 'C12: the node has functions of a 32-bit PCI domain');
is_deeply([sort { $a cmp $b } keys %device], [sort { $a cmp $b } @functions], 'C12: every function is listed');
is($device{'10000:01:00.0'}{$_->[0]}, $_->[1], "C12: $_->[0] of 10000:01:00.0")
        for [device => '0a54'], [driver => 'nvme'], [iommu_group => 38], [numa_node => 0], [pool => 'disk'], [state => 'host'], [acs => 'clean'];
is(device($bus, '10000:01:00.0')->{verdict}, 'not-supported', 'C12: Explain says that no guest can be given it');
is(device($bus, '10000:00:02.0')->{verdict}, 'bridge', 'C12: a bridge of that domain is a bridge');
ok(!plan_ok($bus, disk => 1), 'C12: no plan has it');

# D10: VFs in the group of their PF are not offered on their own.
for my $vf (map { "0000:01:00.$_" } 2 .. 5) {
        is($device{$vf}{state}, 'host', "D10: $vf is not on offer");
        like($device{$vf}{reason} // '', names(1, qr/0000:01:00\.\d/, 'mlx5_core'), 'D10: and the blocker is named');
}

# E1, E2, E3, E4: attributes that are absent, junk or unreadable cost themselves.
is($device{'0000:05:00.0'}{type}, 'pf', 'E1: sriov_totalvfs makes a PF');
is($device{'0000:06:00.0'}{total_vfs}, 0, 'E1: without it the capacity is 0');
is($device{'0000:13:00.0'}{total_vfs}, 0, 'E1: with junk in it too');
is($device{'0000:05:10.1'}{physical_function}, '0000:05:00.1', 'E2: a physfn link names the parent');
is($device{'0000:06:00.0'}{physical_function}, undef, 'E2: without one it is no VF');
is($device{'0000:13:10.0'}{type}, 'device', 'E2: a physfn that is no link does not make a VF');
is(device($bus, '0000:14:00.0')->{fault}, 'virtfn0 is not a link', 'E3: a virtfn0 that is a file is told of');
is($device{'0000:14:10.2'}{physical_function}, '0000:14:00.0', 'E3: it costs nothing but itself: the next VF is one');
is($device{'0000:14:10.2'}{state}, 'available', 'E3: and on offer');
is_deeply($device{'0000:14:00.0'}{virtual_functions}, ['0000:14:10.2', '0000:14:10.0'], 'E3: the first one is known too, from its own physfn');
is($device{'0000:81:00.0'}{numa_node}, 5, 'E4: numa_node is read');
is($device{'0000:06:00.0'}{numa_node}, undef, 'E4: -1 is unknown');
is($device{'0000:11:00.0'}{numa_node}, undef, 'E4: junk is unknown');
is($device{'0000:12:00.0'}{numa_node}, undef, 'E4: what cannot be read is unknown');

# A device without an IOMMU group, or with a plain directory for one.
is($device{$_}{iommu_group}, undef, "$_ has no group") for '0000:07:00.0', '0000:15:00.0';
is($device{$_}{state}, 'host', "so $_ is not on offer") for '0000:07:00.0', '0000:15:00.0';

# E9: the VFs of a dual-port card are independent, its PFs are not.
is($device{'0000:05:00.0'}{iommu_group}, $device{'0000:05:00.1'}{iommu_group}, 'E9: both PFs are in one group');
is($device{'0000:05:10.7'}{iommu_group}, 25, 'E9: a VF is in one of its own');
is($device{$_}{state}, 'available', "E9: VF $_ is on offer") for map { "0000:05:10.$_" } 1, 3, 5, 7;
is(allocate($bus, "e9-$_", vf => 1), 'done', 'E9: one is given out') for 1, 2;
my %taken = map { $_->{devices}[0]{address} => 1 } @{ describe($bus)->{allocations} };
is(scalar keys %taken, 2, 'E9: and another one to somebody else');
is(release($bus, "e9-$_"), 'done', 'E9: and back') for 1, 2;
same_tree($before, 'E9: the tree is as before');

# The same numbers for the command line.
like((ctl('explain', '0000:07:00.0'))[1], names('0000:07:00.0'), 'passthroughctl explain has the same');

# D9: GPU 81:00.0 and its audio function are one multifunction device in the guest.
is(allocate($bus, 'd9', gpu => 1, cpus => 2, memory => 2**30, numa => 'legacy'), 'done', 'D9: a GPU');
my ($allocation) = @{ describe($bus)->{allocations} };
is(release($bus, 'd9'), 'done', 'D9: and back');

my $multi;
for my $count (1 .. 8) {
        is(allocate($bus, 'd9', gpu => $count, cpus => 2, memory => 2**30, numa => 'preferred'), 'done', "D9: $count GPUs") or last;
        ($allocation) = @{ describe($bus)->{allocations} };
        ($multi) = grep { $_->{role} eq 'companion' } @{ $allocation->{devices} };
        last if $multi;
        is(release($bus, 'd9'), 'done', 'D9: and back');
}
ok($multi, 'D9: one of them has an audio function') and do {
        my ($gpu) = grep { $_->{role} eq 'assigned' && $_->{address} eq $multi->{address} =~ s/\.\d$/.0/r } @{ $allocation->{devices} };
        ok($gpu, 'D9: which is in the same slot');
        is($multi->{guest_address} =~ s/\.\d$//r, $gpu->{guest_address} =~ s/\.\d$//r, 'D9: in the guest too');
        my $xml = document('d9', 'D9');
        like($xml, qr/<address type="pci" [^>]*function="0x0" multifunction="on"\/>/, 'D9: as one multifunction device');
        my @held = grep { $_->{role} eq 'held' } @{ $allocation->{devices} };
        for my $held (@held) {
                my ($bus_number, $slot, $function) = $held->{address} =~ /:(..):(..)\.(.)$/;
                unlike($xml, qr/bus="0x$bus_number" slot="0x$slot" function="0x$function"/, "D9: $held->{address} is held, not handed out");
                is(device($bus, $held->{address})->{driver}, 'vfio-pci', 'D9: on vfio-pci');
        }
};
release_all($bus);
same_tree($before, 'D9: the tree is as before');

done_testing();
