#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon follows the node as udev tells of it: without a rescan, each change once, and a storm of events as one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Node;

node('paper-testbed', configure => 1);
plan skip_all => 'the kernel has no network namespace for the events of a node' if $ENV{NODE_EVENTS} ne 'yes';

my ($gpu, $nic, $pf, $slot) = qw(0000:82:00.0 0000:83:00.0 0000:02:00.1 0000:80:02.0);
my @vfs      = map { "$nic" =~ s/0$/$_/r } 1 .. 4;
my $gpu_path = "sys/devices/pci0000:80/$slot/$gpu";
my $pf_path  = "sys/devices/pci0000:00/0000:00:01.0/$pf";
my $bus      = Bus->new->listen;
my $ear      = Bus->new->listen;

my $pools = <<'END';
[Daemon]
AfterRelease=restore
[Pool gpu]
Match=vendor=10de class=0302
[Pool ib-vf]
Match=vendor=15b3 type=vf pf=0000:83:00.0
[Pool eth-vf]
Match=id=8086:1520
END

sub set_debug {
        my ($level) = @_;
        my $reply = $bus->ask(Bus::NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                'org.freedesktop.LogControl1', 'LogLevel', ['s', $level]);
        return !$reply->{error};
}

sub start_with {
        my ($conf) = @_;
        configure($conf);
        set_debug('debug') or die 'no debug level';
        $bus->forget_signals();
        return;
}

sub address_of_path { return $_[0] =~ s{.*/}{}r =~ s/_([0-9a-f]{2})/chr hex $1/ger }

# A signal about devices in a few words; undef for another.
sub words {
        my ($signal) = @_;
        my ($member, $path, @body) = ($signal->{member}, $signal->{path}, @{ $signal->{body} });
        return "$member $body[0]" if $member =~ /^Device/;
        return "$member " . address_of_path($body[0]) if $member =~ /^Interfaces/ && $body[0] =~ m{/device/};
        return if $member ne 'PropertiesChanged' || $body[0] !~ /\.Device$/;
        return join ' ', address_of_path($path), map { "$_=$body[1]{$_}" } sort keys %{ $body[1] };
}

# Until all events that were sent are looked at. The first look may be at some of them only, the one after it is at all.
sub settled {
        for (1 .. 2) {
                my $offset = log_since();
                fault('event change 0000:00:00.0');
                wait_until(sub { log_since($offset) =~ /^(?:Events of|Uevents were lost)/m }) or return 0;
        }
        return !$bus->ping()->{error};
}

# What the bus is told of devices because of what the function does, when all is quiet again.
sub told {
        my ($function) = @_;
        settled() or return 'never quiet';
        $ear->forget_signals();
        $function->();
        settled() or return 'never quiet';
        $ear->ping();
        return grep { defined } map { words($_) } splice @{ $ear->{signals} };
}

sub rescan_kernel { fault('write sys/bus/pci/rescan 1'); return }

start_with($pools);
my $before = tree();

# ---- another hand binds and unbinds

is_deeply([told(sub { fault("write $gpu_path/driver/unbind $gpu") })], ["$gpu Driver="], 'a driver is unbound: one signal, one property');
is_deeply([told(sub { fault("write sys/bus/pci/drivers/nvidia/bind $gpu") })], ["$gpu Driver=nvidia"], 'and bound');
is($bus->properties("/org/passthroughd1/device/_30000_3a82_3a00_2e0", 'org.passthroughd1.Device')->{Driver}, 'nvidia', 'as the property says');
is_deeply([told(sub { fault("event change $gpu") })], [], 'an event without a change: no signal');
is_deeply([told(sub { $bus->call('Rescan') })], [], 'a rescan without a change: no signal');
is_deeply([told(sub { $bus->call('Reload') })], [], 'a reload without a change: no signal');

is_deeply([told(sub { fault('event bind 0000:ff:00.0') })], [], 'an event of a device that is not there: no signal');

# ---- devices come and go

is_deeply([told(sub { fault("remove $gpu_path") })], ["InterfacesRemoved $gpu", "DeviceRemoved $gpu"], 'a device is removed');
is_error($bus->call('Explain', 's', $gpu), 'NoSuchDevice', ['no-such-device', $gpu], 'it is not there');
is_deeply([told(\&rescan_kernel)], ["InterfacesAdded $gpu", "DeviceAdded $gpu"], 'it comes back');
is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, 'it is on offer');
is_deeply([told(sub { fault("remove $gpu_path", 'write sys/bus/pci/rescan 1') })], [], 'out and in at once, and the same: no signal');

my $offset = log_since();
my @signals = told(sub { fault("write $pf_path/sriov_numvfs 3") });
my @new     = map { /^DeviceAdded (.*)/ ? $1 : () } @signals;
is(scalar(@new), 3, 'another hand creates three VFs');
is_deeply({ map { $_ => 1 } values %{ devices_state($bus, 'eth-vf') } }, { available => 1 }, 'they are on offer');
is(scalar @{ device($bus, $pf)->{virtual_functions} }, 3, 'the PF has three');
unlike(log_since($offset), qr/^Reading the whole node/m, 'for that the node is not read again');
@signals = told(sub { fault("write $pf_path/sriov_numvfs 0") });
is_deeply([sort grep { /^DeviceRemoved/ } @signals], [map { "DeviceRemoved $_" } sort @new], 'they are removed');
is(scalar @{ device($bus, $pf)->{virtual_functions} }, 0, 'the PF has none');
same_tree($before, 'the tree is that of the start');

# ---- own jobs

@signals = told(sub { is(allocate($bus, 'guest', gpu => 1), 'done', 'an allocation') });
is_deeply(\@signals, ["$gpu Allocation=guest Reason=$gpu is held by 'guest'. Remedy=Release that allocation first. State=allocated", "$gpu Driver=vfio-pci"], 'tells what it did, once');
@signals = told(sub { is(release($bus, 'guest'), 'done', 'its release') });
is_deeply(\@signals, ["$gpu Allocation= Driver=nvidia Reason= Remedy= State=available"], 'too');
same_tree($before, 'the tree is that of the start');

# A VF concerns its PF.
@signals = told(sub { is(allocate($bus, 'guest', 'ib-vf' => 1), 'done', 'an allocation of a VF') });
is(scalar(grep { /^$vfs[0] Allocation=guest .*State=allocated/ } @signals), 1, 'the VF is told');
is(scalar(grep { /^\Q$nic\E / } @signals), 0, 'its PF, which is refused for having VFs, says the same as before');
is(release($bus, 'guest'), 'done', 'its release');

# ---- events come in while a job is at work

fault('reset', 'unkillable 2');
my ($signature, $entries) = request(gpu => 1);
my $job = $bus->call('Allocate', "s$signature", 'guest', $entries)->{body}[1];
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a write of a job hangs');
fault("event change $gpu");
ok(settled(), 'an event of its device is left for later');
ok(!$bus->ping()->{error}, 'the daemon answers');
$offset = log_since();
fault('events off', 'release');
is($bus->result($job), 'done', 'the job ends, of which no event tells');
ok(wait_until(sub { log_since($offset) =~ /^Events of [1-9]\d* devices: scanning 0, refreshing [1-9]/m }), 'then it is looked at');
fault('events on');
is(release($bus, 'guest'), 'done', 'its release');
fault('reset');
same_tree($before, 'the tree is that of the start');

# ---- an allocated device vanishes and returns

is(allocate($bus, 'guest', gpu => 1), 'done', 'vanished: a GPU is allocated');
my $ready = tree();
$offset = log_since();
@signals = told(sub { fault("remove $gpu_path") });
is_deeply(\@signals, ["InterfacesRemoved $gpu", "DeviceRemoved $gpu"], 'vanished: it vanishes');
my ($gone) = grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} };
is($gone->{state}, 'missing', 'vanished: it is missing');
is(allocation_state($bus, 'guest'), 'failed', 'vanished: the allocation is kept');
like(allocation($bus, 'guest')->{reason}, names($gpu), 'vanished: and says so');
history_shows($gpu, sub { grep { $_ eq 'missing' } @_ }, 'vanished: and the history');
like(log_since($offset), names($gpu, 'guest'), 'vanished: as the journal does');
is_deeply([told(sub { $bus->call('Rescan') })], [], 'vanished: a rescan tells nothing more');
rescan_kernel();
ok(wait_until(sub { tree() eq $ready }), 'vanished: it returns and is bound again');
ok(wait_until(sub { !defined allocation($bus, 'guest')->{reason} && allocation_state($bus, 'guest') eq 'ready' }), 'vanished: the allocation is in order');
is(device($bus, $gpu)->{state}, 'allocated', 'vanished: it is allocated');
is(device($bus, $gpu)->{driver}, 'vfio-pci', 'vanished: on vfio-pci');
fault("remove $gpu_path");
ok(settled(), 'vanished: it vanishes once more');
is(release($bus, 'guest'), 'done', 'vanished: and is released');
ok(!(grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} }), 'vanished: then it is gone');
rescan_kernel();
ok(wait_until(sub { (device($bus, $gpu)->{state} // '') eq 'available' }), 'vanished: and on offer when it is back');
same_tree($before, 'vanished: the tree is that of the start');

# Somebody else unbinds it: told, not fought.
is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU is allocated');
fault('reset');
@signals = told(sub { fault("write $gpu_path/driver/unbind $gpu") });
is_deeply(\@signals, ["$gpu Driver= Reason=$gpu is held by 'guest', but was unbound from vfio-pci outside the daemon; it has no driver. Remedy=Find out what unbound the device. A restart of the daemon binds it again; a release does not change its driver. State=contested"], 'somebody unbinds it: that is told');
nothing_written('and left so');
fault("write sys/bus/pci/drivers/vfio-pci/bind $gpu");
is(release($bus, 'guest'), 'done', 'its release');
same_tree($before, 'the tree is that of the start');

is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU is allocated');
fault("remove $gpu_path");
ok(settled(), 'it vanishes');
rescan_kernel();
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' && !defined allocation($bus, 'guest')->{reason} && device($bus, $gpu)->{driver} eq 'vfio-pci' }), 'and returns');
is(release($bus, 'guest'), 'done', 'its release');
same_tree($before, 'the tree is that of the start');

# Another card comes in its place.
my @card = map { my $id = $_; sub {
        fault('events off', "remove $gpu_path", 'write sys/bus/pci/rescan 1', "set $gpu_path/device $id", 'events on', "event remove $gpu", "event add $gpu");
        return;
} } qw(0x102d 0x1028);
is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU is allocated');
fault('reset');
@signals = told($card[0]);
is_deeply([map { (split)[0] } @signals[0 .. 3]], [qw(InterfacesRemoved DeviceRemoved InterfacesAdded DeviceAdded)], 'another card in its place is another object');
is(allocation_state($bus, 'guest'), 'failed', 'the allocation is failed');
like(allocation($bus, 'guest')->{reason}, names($gpu), 'for that reason');
history_shows($gpu, sub { grep { $_ eq 'hardware-changed' } @_ }, 'which the history has too');
nothing_written('and nothing is written to the stranger');
is(release($bus, 'guest'), 'done', 'its release');
$card[1]->();
other_hand_binds($gpu, '');
ok(settled(), 'the first card is back');
is(device($bus, $gpu)->{state}, 'available', 'and on offer');
same_tree($before, 'the tree is that of the start');

# ---- many events

settled();
$offset = log_since();
my $began = time;
fault(map { "event change $gpu" } 1 .. 600);
my $lasted = time - $began;
ok(settled(), 'six hundred events');
cmp_ok(scalar(() = log_since($offset) =~ /^Events of/mg), '<=', 3 + $lasted / 0.4, 'are looked at a few times');
unlike(log_since($offset), qr/^Reading the whole node/m, 'and the node is not read again');

# The daemon is stopped meanwhile, so that it finds all events at once, however long it takes to send them.
$offset = log_since();
kill 'STOP', pid();
fault(map { sprintf 'event change 0000:%02x:00.0', $_ } 0 .. 255);
fault(map { sprintf 'event change 0001:%02x:00.0', $_ } 0 .. 255);
kill 'CONT', pid();
ok(settled(), 'events of 512 devices');
ok(wait_until(sub { log_since($offset) =~ /^Reading the whole node/m }), 'are more than are kept: the whole node is read');
cmp_ok(scalar(() = log_since($offset) =~ /^Reading the whole node/mg), '<=', 3, 'a few times');

$offset = log_since();
ok(wait_until(sub { fault("event change $gpu"); log_since($offset) =~ /^Events of/m }), 'events that never pause are looked at all the same');

# ---- a lost event

settled();
$bus->forget_signals();
fault('events off', "write $gpu_path/driver/unbind $gpu", 'events on');
ok(settled(), 'an event is lost');
is(device($bus, $gpu)->{driver}, 'nvidia', 'which nobody can know');
$offset = log_since();
kill 'STOP', pid();
fault('flood 60000');
kill 'CONT', pid();
ok($bus->signals_until(sub { my $words = words($_) // ''; $words eq "$gpu Driver=" }), 'until too many came: the change is seen');
like(log_since($offset), qr/^Uevents were lost or do not suffice, scanning the whole node/m, 'by reading the whole node');
fault("write sys/bus/pci/drivers/nvidia/bind $gpu");
ok(wait_until(sub { (device($bus, $gpu)->{driver} // '') eq 'nvidia' }), 'and events are heard after that');

# ---- quiet

my $timers = sub {
        my $pid = pid();
        return join '', map { (slurp_existing($_) // '') =~ /^(it_value: .*)/m } glob "/proc/$pid/fdinfo/*";
};
ok(wait_until(sub { $timers->() =~ /^(?:it_value: \(0, 0\))*$/ }), 'no timer runs when there is nothing to do');

# ---- what is plugged in gets what start would have given it

my $bind_pools = $pools =~ s/(class=0302\n)/$1Bind=start\n/r;
start_with($bind_pools);
is(driver_of($gpu), 'vfio-pci', 'Bind=start: the GPU is bound');
my $bound = tree();
fault("remove $gpu_path");
ok(settled(), 'it is unplugged');
rescan_kernel();
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' }), 'and bound when it is plugged in again');
ok(wait_until(sub { (device($bus, $gpu)->{state} // '') eq 'available' && device($bus, $gpu)->{driver} eq 'vfio-pci' }), 'and on offer');
same_tree($bound, 'the tree is that of the start');
fault("remove $gpu_path", 'write sys/bus/pci/rescan 1');
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' }), 'also when that is too quick to be seen');
ok(wait_until(sub { (device($bus, $gpu)->{driver} // '') eq 'vfio-pci' }), 'and so it is shown');
settled();
fault('reset', "write $gpu_path/driver/unbind $gpu", "write $gpu_path/driver_override \\n", "write sys/bus/pci/drivers/nvidia/bind $gpu");
ok(wait_until(sub { device($bus, $gpu)->{driver} eq 'nvidia' }), 'Bind=start: somebody else binds it');
settled();
fault("remove $pf_path", 'write sys/bus/pci/rescan 1');
ok(settled(), 'and another device comes');
nothing_written('which is not fought');
other_hand_binds($gpu, '');
same_tree($before, 'the tree is that of the start');

start_with($pools . "VirtualFunctions=2\n[Exclude]\nMatch=address=0000:02:00.0\n");
my %made = %{ devices_state($bus, 'eth-vf') };
is(scalar(keys %made), 2, 'VirtualFunctions=: VFs are made at start');
my ($count) = scalar keys %made;
fault("remove $pf_path");
ok(settled(), 'a PF is unplugged');
rescan_kernel();
ok(wait_until(sub { keys %{ devices_state($bus, 'eth-vf') } == $count }), 'they are made when it is plugged in again');

settled();
fault("write $pf_path/driver/unbind $pf");
ok(wait_until(sub { !%{ devices_state($bus, 'eth-vf') } }), 'they go with the driver of their PF');
fault("write sys/bus/pci/drivers/igb/bind $pf");
ok(wait_until(sub { keys %{ devices_state($bus, 'eth-vf') } == $count }), 'and are made when it has one again');

# ---- events during start

daemon('stop');
spew("$ENV{NODE_TMP}/passthroughd.conf", $bind_pools);
fault('reset', 'unkillable 1');
my $child = fork // die "fork: $!";
if (!$child) { exec "$ENV{NODE_TMP}/start-daemon" or die $! }
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a job hangs at start');
fault("write sys/devices/pci0000:00/0000:00:1f.0/driver/unbind 0000:00:1f.0");
fault('release');
waitpid $child, 0;
is($?, 0, 'the daemon comes up');
ok(wait_until(sub { !defined device($bus, '0000:00:1f.0')->{driver} }), 'and sees what another hand did meanwhile');
ok(!$bus->ping()->{error}, 'it answers');

done_testing();
