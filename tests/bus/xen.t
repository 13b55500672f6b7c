#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# dom0 of Xen: devices go to pciback and come back, and a device that a guest has is not taken from it on any way.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Sweep;
use Xen;

node('xen');
start_xenstore();

my $PCIBACK = 'sys/bus/pci/drivers/pciback';
my ($gpu, $audio, $pf, $ib) = qw(0000:13:00.0 0000:13:00.1 0000:11:00.0 0000:81:00.0);
my $bus = Bus->new->listen;

sub slots { return join ' ', sort split /\n/, slurp("$ENV{NODE_ROOT}/$PCIBACK/slots") }
sub vfs_of { my ($pool) = @_; return sort keys %{ devices_state($bus, $pool) } }

my @bound = vfs_of('infiniband');
my @vfs   = vfs_of('ethernet');

# ---- what dom0 is

is(device($bus, $gpu)->{iommu_group}, device($bus, $audio)->{iommu_group}, 'functions without ACS share a group');
isnt(device($bus, $gpu)->{iommu_group}, device($bus, '0000:84:00.0')->{iommu_group}, 'devices below other ports do not');
is(scalar(keys %{ { map { device($bus, $_)->{iommu_group} => 1 } @vfs, @bound } }), 4, 'each VF has one of its own');
is(driver_of($_), 'pciback', "bound at start: $_") for @bound;
is(slots(), join(' ', @bound), 'with their slots');
my $start = { tree => tree(), state => snapshot() };
like((ctl('--node', "$ENV{BUILD}/nodes/xen.tree", 'suggest'))[1], qr/^Hypervisor=xen$/m, 'a suggested configuration is one for Xen');

# ---- to pciback and back

fault('reset');
my @request = (gpu => 1, ethernet => 1, infiniband => 1);
is((allocate($bus, 'guest', @request))[0], 'done', 'allocated');
my @devices = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
is(driver_of($_), 'pciback', "on pciback: $_") for @devices;
is_deeply([split ' ', slots()], [sort @bound, grep { my $d = $_; !grep { $_ eq $d } @bound } @devices], 'each has its slot');
my $ready = { tree => tree(), state => snapshot() };
ok(!(grep { /new_id|vfio/ } write_log()), 'nothing goes to VFIO');
fault('reset');
is((release($bus, 'guest'))[0], 'done', 'released');
same_tree($start->{tree}, 'to the tree of the start');
for my $device ($gpu, $audio) {
        my @log = grep { /pciback/ && /\Q$device\E/ && /slot|unbind/ } write_log();
        is_deeply([map { m{(\w+) \Q$device\E -> OK} } @log], [qw(remove_slot unbind)], "the slot goes before the device: $device");
}

# The addresses of Intel VMD have domains of five digits.
fault("write $PCIBACK/new_slot 1$_") for $gpu, $audio;
is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'a longer address with the same end has a slot: allocated');
is_deeply([grep { /^0000/ } split ' ', slots()], [sort @bound, $gpu, $audio], 'a longer address with the same end has a slot: each has its own');
is((release($bus, 'guest'))[0], 'done', 'a longer address with the same end has a slot: released');
is(device($bus, $gpu)->{state}, 'available', 'a longer address with the same end has a slot: not to quarantine');
fault("write $PCIBACK/remove_slot 1$_") for $gpu, $audio;
same_tree($start->{tree}, 'a longer address with the same end has a slot: to the tree of the start');

# The kernel shows one page of slots. A release removes the slot and cannot unbind the device: the slot is added again.
sub slot_comes_back {
        my ($what, @before) = @_;
        fault(map { "write $PCIBACK/new_slot $_" } @before);
        is((allocate($bus, 'guest', gpu => 1))[0], 'done', "$what: allocated");
        fault('reset', 'fail 6 EIO');
        my ($result) = release($bus, 'guest');
        fault('reset');
        fault(map { "write $PCIBACK/remove_slot $_" } @before);
        is(slots(), join(' ', sort @bound, $gpu, $audio), "$what: each device has its slot again");
        my @standing = ($result, allocation($bus, 'guest')->{reason}, map { (driver_of($_), device($bus, $_)->{state}, device($bus, $_)->{reason}) } $gpu, $audio);
        release($bus, 'guest') if allocation($bus, 'guest');
        clear_quarantine($bus);
        same_tree($start->{tree}, "$what: to the tree of the start");
        return \@standing;
}

my @many = map { sprintf '00ff:%02x:%02x.%d', $_ >> 8, $_ >> 3 & 31, $_ & 7 } 1 .. 320;
my $few  = slot_comes_back('few slots');
is_deeply(slot_comes_back('more slots than the kernel shows', @many), $few, 'more slots than the kernel shows: all is as with few') or diag(explain($few));

# ---- with every failure of every write

sweep('guest', qw(gpu=1 ethernet=1 infiniband=1));

# ---- a guest has it

# The call is refused because of the device and its domain, and nothing is written.
sub refused {
        my ($what, $device, $call, @names) = @_;
        my $tree = tree();
        fault('reset');
        my ($error, $message) = $call->();
        like($error, qr/Error\.(?:Busy|Unavailable)$/, "$what: it is refused") or diag($message // '');
        like($message // '', names($device, @names), "$what: because of the device and its guest");
        nothing_written("$what: nothing is written");
        same_tree($tree, "$what: the tree is as before");
        return;
}

sub call { my (@call) = @_; my $reply = $bus->call(@call); return $reply->{error} ? ($reply->{error}, $reply->{body}[0]) : 'done' }

guest_has(5, 'web', $bound[0], $bound[1]);
refused('a new allocation', $bound[0], sub { allocate($bus, 'late', infiniband => 1) }, 'web', 5);
refused('another number of VFs', $bound[0], sub { call('SetVirtualFunctions', 'su', $ib, 0) }, 'web', 5);
guest_had(5);
is((allocate($bus, 'late', infiniband => 1))[0], 'done', 'the guest has ended: allocated');
is((release($bus, 'late'))[0], 'done', 'the guest has ended: released');

sub set_vfs { my ($count) = @_; my $made = $bus->call('SetVirtualFunctions', 'su', $ib, $count); return $made->{error} // $bus->result($made->{body}[0]) }

is(set_vfs(0), 'done', 'the guest has ended: no VFs');
is(slots(),    '',     'their slots went with them');
is(set_vfs(2), 'done', 'two VFs');
ok(wait_until(sub { slots() eq join(' ', @bound) && !grep { $_ ne 'available' } values %{ devices_state($bus, 'infiniband') } }), 'which are bound, as Bind=start says');

is((allocate($bus, 'guest', @request))[0], 'done', 'there is an allocation');
@devices = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my ($vf) = grep { my $d = $_; grep { $_ eq $d } @vfs } @devices;
for my $device (@devices) {
        guest_has(7, 'db', $device);
        refused("release while a guest has $device", $device, sub { release($bus, 'guest') }, 'db', 7);
}
no_guests();
guest_gets(8, 'new', $vf);
refused('release while a guest is created', $vf, sub { release($bus, 'guest') }, 'new', 8);
guest_gets(8, undef, $vf);
guest_has(7, 'db', $vf);
my ($slot) = map { $_->{slot} } grep { $_->{address} eq $vf } @{ allocation($bus, 'guest')->{devices} };
refused('detach', $vf, sub { call('Detach', 'sts', 'guest', Node::generation($bus, 'guest'), $slot) }, 'db', 7);

# Another program has unbound it, which the guest does not notice at once.
my $bound_tree = tree();
fault("write $PCIBACK/unbind $vf");
refused('release of a VF that is unbound', $vf, sub { release($bus, 'guest') }, 'db', 7);
fault("write $PCIBACK/bind $vf");
same_tree($bound_tree, 'it is bound again');

# A start with an allocation that is being released, which a guest has got.
fault('reset', map { "hang $_" } 1 .. 3);
guest_had(7);
my $reply = $bus->call('Release', 'st', 'guest', Node::generation($bus, 'guest'));
is($reply->{error}, undef, 'a release is begun') or diag($reply->{body}[0]);
ok(wait_until(sub { 3 == grep { /PENDING/ } write_log() }), 'the GPU and the VFs wait in their first writes');
is(daemon('stop', 'KILL'), 0, 'the daemon is killed');
fault('release');
ok(wait_until(sub { !grep { /PENDING/ } write_log() }), 'the write ends');
guest_has(7, 'db', $vf);
start_again($bus, 'an interrupted release');
is(driver_of($_), 'pciback', "an interrupted release: it stays where it is: $_") for @devices;
is(allocation_state($bus, 'guest'), 'failed', 'an interrupted release: is not resumed');
like(allocation($bus, 'guest')->{reason}, names($vf, 'db', 7), 'an interrupted release: for the guest');
guest_had(7);
is((release($bus, 'guest'))[0], 'done', 'an interrupted release: released when the guest has ended');
same_tree($start->{tree}, 'an interrupted release: to the tree of the start');

# In quarantine: a guest may have it still.
is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'there is an allocation');
fault('reset', 'fail 1 EIO');
is((release($bus, 'guest'))[0], 'done', 'released to quarantine');
fault('reset');
my ($kept) = map { $_->{address} } @{ describe($bus)->{quarantine} };
is($kept, $gpu, 'the GPU that could not be reset is there');
guest_has(3, 'old', $gpu);
refused('clear quarantine', $gpu, sub { call('ClearQuarantine', 's', $gpu) }, 'old', 3);
guest_had(3);
is(clear_quarantine($bus), 1, 'cleared when the guest has ended');
same_tree($start->{tree}, 'the tree is that of the start');

# ---- a guest gets it after the daemon has asked, before a job changes it

# A check of the health of devices asks too. No event starts one now, and none runs.
sub only_asked_by_calls {
        fault('events off');
        $bus->ping();
        return wait_until(sub { !daemon_children() }) || die 'a probe does not end';
}

# What happens to a release of a GPU when a guest has it from question number N + 1 on.
sub release_with_guest_after {
        my ($n, $result, $driver, $state) = @_;
        my $what = "a guest comes after question $n of a release";
        is((allocate($bus, 'guest', gpu => 1))[0], 'done', "$what: there is an allocation");
        only_asked_by_calls();
        guest_has(9, 'late', $gpu);
        xenstore(late => $n);
        fault('reset');
        my ($is) = release($bus, 'guest');
        like($is, $result, "$what: its result");
        is(driver_of($gpu), $driver, "$what: its driver");
        is(device($bus, $gpu)->{state}, $state, "$what: its state");
        is(scalar(grep { /(?:\Q$gpu\E.reset|(?:unbind|remove_slot) \Q$gpu\E)/ } write_log()), $n < 2 ? 0 : $n < 4 ? 1 : 3, "$what: what was written");
        guest_had(9);
        is((release($bus, 'guest'))[0], 'done', "$what: then it is released") if allocation($bus, 'guest');
        clear_quarantine($bus);
        same_tree($start->{tree}, "$what: the tree is that of the start");
        return;
}

# The call, the reset of the GPU and of its audio function, the unbind of the GPU.
release_with_guest_after(@$_) for [0, qr/Unavailable/, 'pciback', 'allocated'], [1, qr/^done$/, 'pciback', 'quarantined'],
        [2, qr/^failed$/, 'pciback', 'allocated'], [3, qr/^failed$/, 'pciback', 'allocated'], [4, qr/^done$/, 'nvidia', 'available'];

# An undo does not take back what it gave: the audio function cannot be bound, and a guest has the GPU by then.
only_asked_by_calls();
guest_has(9, 'late', $gpu);
xenstore(late => 3); # the call, and the checks before the two unbinds
fault('reset', 'fail 6 EIO');
is((allocate($bus, 'guest', gpu => 1))[0], 'failed', 'undo: a prepare fails');
is(transactions(), 4, 'undo: the question before the undo');
is(driver_of($gpu), 'pciback', 'undo: the GPU stays');
ok(!(grep { /(?:unbind|remove_slot) \Q$gpu\E/ && /pciback/ } write_log()), 'undo: nothing is written');
is(allocation_state($bus, 'guest'), 'failed', 'undo: the allocation keeps it');
guest_had(9);
fault('reset');
is((release($bus, 'guest'))[0], 'done', 'undo: released when the guest has ended');
same_tree($start->{tree}, 'undo: the tree is that of the start');

# xenstore does not answer the call, which goes on with a device of the host. A job asks anew, and waits longer.
guest_has(9, 'other', '0000:ff:00.0');
xenstore(slow => 2);
fault('reset', 'fail 6 EIO');
is((allocate($bus, 'guest', gpu => 1))[0], 'failed', 'a slow xenstore: a prepare fails');
cmp_ok(transactions(), '>=', 2, 'a slow xenstore: the undo asks');
ok(!allocation($bus, 'guest'), 'a slow xenstore: all is undone') or diag(allocation($bus, 'guest')->{reason});
fault('reset');
guest_had(9);
release($bus, 'guest') if allocation($bus, 'guest');
same_tree($start->{tree}, 'a slow xenstore: the tree is that of the start');
fault('events on');

# ---- a device that a guest has is not read

my $path   = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{^(?:\.\./)+}{sys/}r;
my $config = slurp("$ENV{NODE_ROOT}/$path/config");

sub set_config { my ($bytes) = @_; fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes); return }
sub rescan { ctl('rescan'); return wait_until(sub { !daemon_children() }) }

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'health: there is an allocation');
guest_has(2, 'busy', $gpu);
ok(rescan(), 'health: a rescan');
set_config("\xff" x 256);
ok(rescan(), 'health: a rescan while a guest has it');
is(device($bus, $gpu)->{state}, 'allocated', 'health: it is not read');
guest_had(2);
ok(rescan(), 'health: a rescan without a guest');
is(device($bus, $gpu)->{state}, 'unhealthy', 'health: it is read');
set_config(substr $config, 0, 256);
ok(rescan(), 'health: a rescan when it is well');
is((release($bus, 'guest'))[0], 'done', 'health: released');
same_tree($start->{tree}, 'health: the tree is that of the start');

# ---- xenstore does not answer

is((allocate($bus, 'guest', @request))[0], 'done', 'unknown: there is an allocation');
@devices = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
guest_has(6, 'other', '0000:84:00.0');
my %silence = (
        'no xenstore'        => [\&stop_xenstore, \&start_xenstore],
        'a silent xenstore'  => [sub { xenstore(hang => 1) }, sub { xenstore() }],
        'a restless xenstore' => [sub { xenstore(again => 99) }, sub { xenstore() }],
);
for my $why (sort keys %silence) {
        my ($silence, $end) = @{ $silence{$why} };
        $silence->();
        refused("$why: release", $devices[0], sub { release($bus, 'guest') }, 'unknown');
        refused("$why: allocate what is on pciback", (grep { my $d = $_; !grep { $_ eq $d } @devices } @bound)[0], sub { allocate($bus, 'late', infiniband => 1) }, 'unknown');
        is((allocate($bus, 'late', ethernet => 1))[0], 'done', "$why: what a host driver or none has can be allocated");
        $end->();
        ok(wait_until(sub { (release($bus, 'late'))[0] eq 'done' }), "$why: released when it answers");
}
xenstore(again => 2);
is((allocate($bus, 'late', infiniband => 1))[0], 'done', 'xenstore changes while it is read: it is read again');
is((release($bus, 'late'))[0], 'done', 'xenstore changes while it is read: released');
no_guests();
stop_xenstore();
is((release($bus, 'guest'))[0], 'done', 'without xenstore and without a backend of a guest: released');
same_tree($start->{tree}, 'without xenstore: the tree is that of the start');
start_xenstore();

# ---- a boot

is((allocate($bus, 'guest', @request))[0], 'done', 'a boot: there is an allocation');
@devices = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
$ready = tree_without_identities();
is(daemon('stop'), 0, 'a boot: the daemon stops');
for my $device (split ' ', slots()) {
        fault("write $PCIBACK/remove_slot $device");
        other_hand_binds($device, '');
}
fault("write sys/bus/pci/devices/$_/sriov_numvfs 0") for $pf, $ib;
is(slots(), '', 'a boot: pciback has nothing');
start_again($bus, 'a boot');
is(allocation_state($bus, 'guest'), 'ready', 'a boot: the allocation is ready');
is(tree_without_identities(), $ready, 'a boot: the tree is as before');
is((release($bus, 'guest'))[0], 'done', 'a boot: released');

done_testing();
