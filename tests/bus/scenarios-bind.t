#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids: devices to the VFIO driver and back, what is counted meanwhile, and what is written.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('hgx-h100', configure => 1);

my @gpus = qw(0000:13:00.0 0000:23:00.0 0000:33:00.0);
my $bus  = Bus->new->listen;

sub start_with { my ($text) = @_; configure($text); $bus->forget_signals(); return }

sub pool { my ($name, @gpus) = @_; return join "\n", "[Pool $name]", (map { "Match=address=$_" } @gpus), '' }

sub available { my ($name) = @_; my ($pool) = grep { $_->{name} eq $name } @{ describe($bus)->{pools} }; return $pool->{available} }

# Of allocations by their states, and of devices that are on the VFIO driver.
sub counts {
        my %n = (ready => 0, 'in-use' => 0, bound => scalar grep { driver_of($_) eq 'vfio-pci' } @gpus);
        $n{ $_->{state} }++ for @{ describe($bus)->{allocations} };
        return \%n;
}

# What was written to files of drivers and the bus: the last two parts of the path, and the value.
sub bindings { return map { m{([^/ ]+/[^/ ]+) (\S*) -> OK$} ? "$1 $2" : $_ } grep { !m{driver_override|/reset } } write_log() }

sub vfio_nodes { return [sort map { s{.*/}{}r } grep { !m{/(?:vfio|devices)$} } glob "$ENV{NODE_ROOT}/dev/vfio/*"] }

start_with(pool('gpu', @gpus));
my $before = tree();
my $group  = 'sys/devices/' . device($bus, $gpus[0])->{path} . '/iommu_group';

# ---- D1: three devices, one after the other

is_deeply(counts(), { ready => 0, 'in-use' => 0, bound => 0 }, 'D1: at the start none is on the VFIO driver');
for my $n (1 .. 3) {
        is(allocate($bus, "vm$n", gpu => 1), 'done', "D1: device $n is taken");
        my ($address) = map { $_->{address} } @{ allocation($bus, "vm$n")->{devices} };
        is(driver_of($address), 'vfio-pci', "D1: $address is on vfio-pci");
        is_deeply(counts(), { ready => $n, 'in-use' => 0, bound => $n }, "D1: deviation: inactive are the ready allocations, $n; none is in use");
        is(available('gpu'), 3 - $n, 'D1: as many less are available');
}
is(release($bus, "vm$_"), 'done', "D1: device $_ comes back") for 1 .. 3;
is_deeply(counts(), { ready => 0, 'in-use' => 0, bound => 0 }, 'D1: none is left there');
same_tree($before, 'D1: the tree is that of the start');

# ---- D5: round trips of what is bound for the guest (managed), of what stays bound (unmanaged), and of both together

my %ways = (
        managed   => pool('one', @gpus[0, 1]) . pool('two', $gpus[2]),
        unmanaged => pool('one', @gpus[0, 1]) . "Bind=start\n" . pool('two', $gpus[2]) . "Bind=start\n",
        mixed     => pool('one', @gpus[0, 1]) . pool('two', $gpus[2]) . "Bind=start\n",
);
my %at_start = (managed => 0, unmanaged => 3, mixed => 1);
for my $way (sort keys %ways) {
        for my $after (qw(restore keep)) {
                my $what = "D5: $way, AfterRelease=$after";
                start_with("[Daemon]\nAfterRelease=$after\n$ways{$way}");
                my ($start, $counts) = (tree(), counts());
                is_deeply($counts, { ready => 0, 'in-use' => 0, bound => $at_start{$way} }, "$what: at the start");
                for my $trip (1 .. 2) {
                        is(allocate($bus, 'vm', one => 2, two => 1), 'done', "$what: trip $trip, there");
                        is_deeply(counts(), { ready => 1, 'in-use' => 0, bound => 3 }, "$what: trip $trip, all are on vfio-pci");
                        is(release($bus, 'vm'), 'done', "$what: trip $trip, and back");
                        my $expected = $after eq 'keep' ? { %$counts, bound => 3 } : $counts;
                        is_deeply(counts(), $expected, "$what: trip $trip, the counts are " . ($after eq 'keep' ? 'of devices that stay bound' : 'those of the start'));
                        is(available('one') + available('two'), 3, "$what: trip $trip, all are on offer");
                }
                same_tree($start, "$what: the tree is that of the start") if $after eq 'restore';
                daemon('stop');
                other_hand_binds($_, '') for grep { driver_of($_) eq 'vfio-pci' } @gpus;
                fault("write sys/bus/pci/devices/$_/driver_override \\n") for @gpus;
                same_tree($before, "$what: and the host has all back");
        }
}

# ---- D7: what is written for a device to return to its driver

start_with(pool('gpu', $gpus[0]));
is(allocate($bus, 'vm', gpu => 1), 'done', 'D7: a device is on vfio-pci');
fault('reset');
is(release($bus, 'vm'), 'done', 'D7: it is released');
is_deeply([bindings()], ["vfio-pci/unbind $gpus[0]", "pci/drivers_probe $gpus[0]"], 'D7: its address goes to unbind of vfio-pci, then to drivers_probe')
        or diag(join "\n", write_log());
is(driver_of($gpus[0]), 'nvidia', 'D7: it is on its driver');
is(allocate($bus, 'vm', gpu => 1), 'done', 'D7: once more');
other_hand_binds($gpus[0], '');
fault('reset');
is(release($bus, 'vm'), 'done', 'D7: somebody gave it back already, and it is released');
nothing_written('D7: without a write');
same_tree($before, 'D7: the tree is that of the start');

# ---- B11: a device for one use

is(allocate($bus, 'vm', gpu => 1), 'done', 'B11: a device is allocated');
is(release($bus, 'vm'), 'done', 'B11: and released');
is(device($bus, $gpus[0])->{state}, 'available', 'B11: deviation: it is on offer at once, no device is for one use');
is(allocate($bus, 'vm', gpu => 1), 'done', 'B11: deviation: so that it can be allocated again');
release_all($bus);

# ---- F8: who binds, the daemon or libvirt

for my $bind (qw(allocate start)) {
        start_with(pool('gpu', $gpus[0]) . "Bind=$bind\n");
        is(allocate($bus, 'vm', gpu => 1, cpus => 2, memory => 2**30), 'done', "F8: Bind=$bind: a device is allocated");
        my $xml = document('vm', "F8: Bind=$bind");
        is_deeply([$xml =~ /<hostdev [^>]*managed="(\w+)"/g], ['no'], "F8: deviation: Bind=$bind: managed is always no, the daemon binds");
        release_all($bus);
}
daemon('stop');
other_hand_binds($gpus[0], '');
fault("write sys/bus/pci/devices/$gpus[0]/driver_override \\n");
same_tree($before, 'F8: the tree is that of the start');

# ---- D8: no IOMMU group, or a directory where the link should be

my ($number) = readlink("$ENV{NODE_ROOT}/$group") =~ m{/(\d+)$};
my %broken = ('no iommu_group' => sub { }, 'a directory for one' => sub { fault("set $group/type junk") });
for my $what (sort keys %broken) {
        daemon('stop');
        fault("remove $group");
        $broken{$what}->();
        start_with(pool('gpu', $gpus[0]));
        my $start = tree();
        fault('reset');
        is(device($bus, $gpus[0])->{iommu_group}, undef, "D8: $what: the device has no group");
        my ($error, $sentence) = allocate($bus, 'vm', gpu => 1);
        is($error, 'org.passthroughd1.Error.Insufficient', "D8: $what: it cannot be had");
        like($sentence // '', names($gpus[0]), "D8: $what: for that reason");
        nothing_written("D8: $what: nothing is written");
        is_deeply(vfio_nodes(), [], "D8: $what: there is no node in /dev/vfio");
        same_tree($start, "D8: $what: nothing changes");
        fault("link $group /sys/kernel/iommu_groups/$number");
}
start_with(pool('gpu', $gpus[0]));
is(allocate($bus, 'vm', gpu => 1), 'done', 'D8: with the link it can');
is_deeply(vfio_nodes(), [$number], 'D8: and there is the node of its group');
is(release($bus, 'vm'), 'done', 'D8: it is released');
same_tree($before, 'D8: the tree is that of the start');

done_testing();
