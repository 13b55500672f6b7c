#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# One IOMMU group, one allocation, at every moment: after a start on other firmware, and when a device is plugged in.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('paper-testbed');

my $bus = Bus->new->listen;
my $gpu = '0000:82:00.0';
my $nic = '0000:02:00.0'; # on a host driver, in no pool

sub path { my ($address) = @_; return readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address") =~ s{^(?:[.]{2}/)*}{sys/}r }

sub move_to_group { my ($address, $group) = @_; return 'link ' . path($address) . "/iommu_group /sys/kernel/iommu_groups/$group" }

# What promise is broken, of the state, the reason and the document of each.
sub broken {
        my ($what, $words, @names) = @_;
        for my $name (@names) {
                is(allocation_state($bus, $name), 'failed', "$what: the state of '$name'");
                like(allocation($bus, $name)->{reason}, $words, "$what: its reason");
                is_error($bus->call('GetDomainXML', 'sa{sv}', $name, []), 'Unavailable', ['group-not-viable', $words], "$what: its document");
        }
        return;
}

sub kept {
        my ($what, @names) = @_;
        for my $name (@names) {
                is(allocation_state($bus, $name), 'ready', "$what: '$name' is ready");
                is(allocation($bus, $name)->{reason}, undef, "$what: without a reason");
                is($bus->call('GetDomainXML', 'sa{sv}', $name, [])->{error}, undef, "$what: with a document");
        }
        return;
}


# ---- two owners, one VF each, and a start that finds both VFs in one group

for my $name (qw(one two)) {
        is(allocate($bus, $name, 'ib-vf' => 1, cpus => 1, memory => 2**30), 'done', "merged: '$name' has a VF");
}
my %device = map { $_ => allocation($bus, $_)->{devices}[0]{address} } qw(one two);
my %group  = map { $_ => device($bus, $device{$_})->{iommu_group} } qw(one two);
my ($merge, $split) = map { move_to_group($device{two}, $group{$_}) } qw(one two);
daemon('stop');
# As a boot does: no device is on the VFIO driver.
fault(map({ 'write ' . path($_) . "/driver/unbind $_" } sort values %device), $merge);
my $merged = tree();
fault('reset');
restart();
$bus = Bus->new->listen;
nothing_written('merged: no device is bound');
same_tree($merged, 'merged: nothing is touched');
broken('merged', qr/group $group{one}\b/, qw(one two));
is(device($bus, $device{$_})->{state}, 'contested', "merged: the device of '$_' is contested") for qw(one two);
history_shows($device{$_}, sub { 1 == grep { $_ eq 'promise-broken' } @_ }, "merged: the history of the device of '$_' has it once") for qw(one two);
is($bus->call('Explain', 's', $device{one})->{error}, undef, 'merged: explain');
my ($member) = grep { $_->{address} eq $device{two} } @{ JSON::XS->new->decode($bus->call('Explain', 's', $device{one})->{body}[0])->{group} };
is($member->{role}, 'blocks the group', 'merged: it says who blocks');
restart();
$bus = Bus->new->listen;
broken('merged, again', qr/group $group{one}\b/, qw(one two));
history_shows($device{one}, sub { 1 == grep { $_ eq 'promise-broken' } @_ }, 'merged, again: told once');

# One of them leaves: the group is the other's, whose VF is bound now.
is(release($bus, 'two'), 'done', 'merged: one is released');
ok(wait_until(sub { allocation_state($bus, 'one') eq 'ready' }), 'merged: the other is resumed without a restart');
kept('merged, one released', 'one');
is(driver_of($device{one}), 'vfio-pci', 'merged, one released: its VF is bound');
is((allocate($bus, 'two', 'ib-vf' => 4))[0], 'org.passthroughd1.Error.Insufficient', 'merged, one released: its group is not given away');
is(release($bus, 'one'), 'done', 'merged: the other is released');
daemon('stop');
fault($split);
restart();
$bus = Bus->new->listen;

# ---- a start finds one group, and a rescan finds two again

for my $name (qw(one two)) {
        is(allocate($bus, $name, 'ib-vf' => 1, cpus => 1, memory => 2**30), 'done', "whole again: '$name' has a VF");
}
daemon('stop');
fault(map({ 'write ' . path($_) . "/driver/unbind $_" } sort values %device), $merge);
restart();
$bus = Bus->new->listen;
broken('whole again, before', qr/group $group{one}\b/, qw(one two));
fault($split);
ok(!$bus->call('Rescan')->{error}, 'whole again: a rescan finds two groups');
for my $name (qw(one two)) {
        ok(wait_until(sub { allocation_state($bus, $name) eq 'ready' }), "whole again: '$name' is resumed");
        is(driver_of($device{$name}), 'vfio-pci', "whole again: the VF of '$name' is bound");
}
kept('whole again', qw(one two));

# Another program that unbinds the VF later is reported, not reverted.
fault('write ' . path($device{one}) . "/driver/unbind $device{one}");
ok(!$bus->call('Rescan')->{error}, 'unbound later: a rescan');
is(device($bus, $device{one})->{state}, 'contested', 'unbound later: the VF is contested');
is(driver_of($device{one}), 'none', 'unbound later: the VF stays unbound');
is(release($bus, $_), 'done', "whole again: '$_' is released") for qw(one two);

# ---- firmware changed twice

for my $name (qw(one two)) {
        is(allocate($bus, $name, 'ib-vf' => 1, cpus => 1, memory => 2**30), 'done', "split again: '$name' has a VF");
}
$bus->forget_signals();
fault($merge);
ok(!$bus->call('Rescan')->{error}, 'split again: a rescan finds one group');
broken('split again', qr/group $group{one}\b/, qw(one two));
is(scalar(grep { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'failed' } @{ $bus->{signals} }), 2, 'split again: a signal for each');
fault($split);
ok(!$bus->call('Rescan')->{error}, 'split again: another rescan finds two');
kept('split again', qw(one two));
history_shows($device{$_}, sub { 1 == grep { $_ eq 'promise-kept' } @_ }, "split again: the history of the device of '$_' says so") for qw(one two);
is(release($bus, $_), 'done', "split again: '$_' is released") for qw(one two);

# ---- a device on a host driver is plugged into the group of an allocation

SKIP: {
        skip 'the kernel has no network namespace for the events of a node', 8 if $ENV{NODE_EVENTS} ne 'yes';
        is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'intruder: a GPU is allocated');
        my ($group, $own) = map { device($bus, $_)->{iommu_group} } $gpu, $nic;
        my $driver = driver_of($nic);
        isnt($driver, 'none', 'intruder: a NIC is on a host driver');
        within_a_second($bus, 'intruder', sub { fault('events off', move_to_group($nic, $group), 'events on', "event remove $nic", "event add $nic") },
                sub { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'failed' });
        broken('intruder', qr/\Q$nic\E.*$driver/, 'guest');
        is(driver_of($nic), $driver, 'intruder: the NIC is left alone');
        is((allocate($bus, 'other', gpu => 1))[0], 'org.passthroughd1.Error.Insufficient', 'intruder: nothing of the group is given away');
        other_hand_binds($nic, 'none');
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'intruder: kept again when its driver is unbound');
        kept('intruder', 'guest');
        is(release($bus, 'guest'), 'done', 'intruder: released');
}

# ---- a guest that runs keeps its document

for my $name (qw(one two)) {
        is(allocate($bus, $name, 'ib-vf' => 1, cpus => 1, memory => 2**30), 'done', "running: '$name' has a VF");
}
libvirt_reports($bus, running_domain('g', UUID, $device{one}));
fault($merge);
ok(!$bus->call('Rescan')->{error}, 'running: a rescan finds one group');
is(allocation_state($bus, 'one'), 'in-use', 'running: the guest runs on');
like(allocation($bus, 'one')->{reason}, qr/group/, 'running: with a reason');
is($bus->call('GetDomainXML', 'sa{sv}', 'one', [])->{error}, undef, 'running: its document is printed');
broken('running', qr/group/, 'two');

done_testing();
