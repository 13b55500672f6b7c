#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The number of VFs of a PF is changed where nobody uses those that are there, and only there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('hgx-h100', configure => 1);

my ($pf, $other, $gpu) = qw(0000:14:00.0 0000:24:00.0 0000:13:00.0);
my $pools = "[Pool vf]\nMatch=type=vf pf=$pf\nMatch=type=vf pf=$other\nVirtualFunctions=4\n[Pool gpu]\nMatch=vendor=10de class=0302\n";
my $bus   = Bus->new->listen;

sub path { my ($address, $name) = @_; return "sys/bus/pci/devices/$address/$name" }

sub vfs { my ($address) = @_; my @vfs = map { (readlink // '') =~ m{([^/]+)$} } glob "$ENV{NODE_ROOT}/" . path($address, 'virtfn*'); return @vfs }

sub begin { my ($address, $count) = @_; return $bus->call('SetVirtualFunctions', 'su', $address, $count) }

# The result of the job and its message; or the error.
sub set_vfs {
        my ($address, $count) = @_;
        my $reply = begin($address, $count);
        return ($reply->{error}, $reply->{body}[0]) if $reply->{error};
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' && $_->{body}[1] eq $reply->{body}[0] });
        my ($message) = map { $_->{body}[1]{Message} } grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[1]{Message} } reverse @signals;
        return ($signals[-1]{body}[2], $message);
}

sub start_with { my ($text) = @_; configure($text); $bus->forget_signals(); fault('reset'); return }

# Four new VFs on each PF, as from start.
sub renew { set_vfs($_->[0], $_->[1]) for map { [$_, 0], [$_, 4] } $pf, $other; fault('reset'); return }

# But for who the VFs are.
sub written { return map { m{/([^/ ]+ \S+) -> OK$} ? $1 : $_ } grep { !m{/vf-netlink/} } write_log() }

# ---- from one number to another, and to none

start_with($pools);
my $four = tree();
is(scalar vfs($pf), 4, 'four VFs from start');
my $offset = log_since();
my ($status, $out, $err) = ctl('sriov', $pf, 8);
is($status, 0, 'sriov: four become eight') or diag($err);
my $notes      = join '', map { "[@{[$_ + 2]}/15] note what VF $_ of $pf has\n" } 0 .. 3;
my $identities = join '', map { "[@{[$_ + 8]}/15] give VF $_ of $pf\n" } 0 .. 7;
is($out =~ s/ link=auto node-guid=02\S+ port-guid=02\S+$//mgr =~ s/^\[ +/[/mgr,
        "[1/15] set driver autoprobe of VFs of $pf to 0\n${notes}[6/15] remove the 4 VFs of $pf\n[7/15] create 8 VFs on $pf\n${identities}$pf has 8 VFs.\n", 'sriov: step by step');
is_deeply([written()], ['sriov_numvfs 0', 'sriov_numvfs 8'], 'through none, and nothing else is written');
like(log_since($offset), names($pf, 4, 8), 'the log says so');
is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pf), vfs($other) }, 'all eight are on offer');
is(device($bus, $pf)->{state}, 'host', 'and nobody is blamed for it');
{
        $bus->forget_signals();
        my $job     = begin($pf, 4)->{body}[0];
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' && $_->{body}[1] eq $job });
        is($signals[-1]{body}[2], 'done', 'and back');
        my ($new) = grep { $signals[$_]{member} eq 'JobNew' } 0 .. $#signals;
        my %state = map { $_->{path} => $_->{body}[1]{State} }
                grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[0] eq 'org.passthroughd1.Device' && $_->{body}[1]{State} } @signals[0 .. $new];
        is(scalar(grep { $_ ne 'available' } values %state), 8, 'signals say before the job begins that the eight VFs are not available');
}
same_tree($four, 'the tree is as before');
fault('reset');
$offset = log_since();
is((set_vfs($pf, 0))[0], 'done', 'E6: none: of a PF that the daemon made VFs on');
is_deeply([written()], ['sriov_numvfs 0'], 'E6: 0 is written');
like(log_since($offset), names($pf), 'E6: the log says so');
is((set_vfs($pf, 0))[0], 'done', 'none where there is none');
is((set_vfs($gpu, 0))[0], 'done', 'E7: none where there can be none is a success');
is_deeply([written()], ['sriov_numvfs 0'], 'E7: nothing more is written');
is_error(begin('0000:fe:00.0', 2), 'NoSuchDevice', ['no-such-device'], 'E7: a number for a device that is not there is an error');
is((set_vfs($pf, 4))[0], 'done', 'four again');
same_tree($four, 'the tree is as before');

# ---- what nobody uses may be on a VFIO driver

start_with($pools =~ s/VirtualFunctions=4/VirtualFunctions=4\nBind=start/r);
is_deeply([map { driver_of($_) } vfs($pf)], [('vfio-pci') x 4], 'bound: all are on vfio-pci');
my $bound = tree();
is((set_vfs($pf, 2))[0], 'done', 'bound: two of these');
ok(wait_until(sub { 2 == grep { driver_of($_) eq 'vfio-pci' } vfs($pf) }), 'bound: they are bound as the pool wants it');
ok(wait_until(sub { (set_vfs($pf, 4))[0] eq 'done' }), 'bound: four again, when the last of them is bound');
ok(wait_until(sub { 4 == grep { driver_of($_) eq 'vfio-pci' } vfs($pf) }), 'bound: bound too');
ok(wait_until(sub { tree() eq $bound }), 'bound: the tree is as before') or same_tree($bound, 'bound: what differs');

# ---- each write of it that fails

start_with($pools);
renew();
same_tree($four, 'failures: four VFs as at first');

# One VF on vfio-pci, one reserved for it.
sub mix {
        renew();
        my @vfs = vfs($pf);
        other_hand_binds($vfs[1], 'vfio-pci');
        fault('write ' . path($vfs[2], 'driver_override') . ' vfio-pci', 'reset');
        return !$bus->call('Rescan')->{error};
}

ok(mix(), 'failures: one VF is on vfio-pci, one is reserved for it');
my $mixed = tree();
is((set_vfs($pf, 8))[0], 'done', 'failures: first without one');
my @all = written();
is(scalar @all, 4, 'failures: four writes') or diag(join "\n", @all);
mix();
same_tree($mixed, 'failures: and the same again');
for my $kind ('fail', 'fail-after', 'silent') {
        for my $n (1 .. @all) {
                my $what = "failures, $kind $n ($all[$n - 1])";
                fault('reset', $kind eq 'silent' ? "silent $n" : "$kind $n EIO");
                my ($result, $message) = set_vfs($pf, 8);
                is($result, 'failed', "$what: the job fails");
                like($message // '', qr/^\S.*\.$/, "$what: with a sentence");
                ok(wait_until(sub { tree() eq $mixed }), "$what: the tree is as before") or same_tree($mixed, "$what: what differs") or mix();
                is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pf), vfs($other) }, "$what: and so is what is on offer");
        }
}

# ---- what the kernel says, with cause and remedy

my %sentences = (
        ENOENT => names('mlx4_core', 'num_vfs'),
        ENOMEM => names('pci=realloc'),
        ENOSPC => names('MSI-X'),
        ERANGE => names('NUM_OF_VFS'),
        EBUSY  => names($pf),
        EIO    => names($pf),
);
renew();
for my $errno (sort keys %sentences) {
        for my $from (4, 0) {
                my $n = $from ? 2 : 1;
                set_vfs($pf, $from);
                my $before = tree();
                fault('reset', "fail $n $errno");
                my ($result, $message) = set_vfs($pf, 8);
                is($result, 'failed', "$errno, $from to 8: the job fails");
                like($message // '', $sentences{$errno}, "$errno, $from to 8: with cause and remedy");
                same_tree($before, "$errno, $from to 8: the tree is as before");
                like((ctl('sriov', $pf))[1], qr/^\Q$pf\E has $from of 16 VFs\.$/m, "$errno, $from to 8: and told so");
        }
}
fault('reset', 'fail 2 ENOMEM', 'fail 3 ENOMEM');
set_vfs($pf, 4);
fault('reset', 'fail 2 ENOMEM', 'fail 3 ENOMEM');
my ($result, $message) = set_vfs($pf, 8);
is($result, 'failed', 'not undone: the job fails');
like($message // '', names('pci=realloc', $pf), 'not undone: and says that the old ones did not come back');
is(scalar vfs($pf), 0, 'not undone: there are none');
is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($other) }, 'not undone: and none is on offer');
is((set_vfs($pf, 4))[0], 'done', 'not undone: but the next one is done');
fault('reset', 'replace 2 3');
($result, $message) = set_vfs($pf, 8);
is($result, 'failed', 'short: fewer than wanted is a failure');
like($message // '', $sentences{EIO}, 'short: that is told');
same_tree($four, 'short: the old ones are back');

# ---- whose VFs are in use keeps them

sub refused {
        my ($what, $verdict, $sentence, $device) = @_;
        my $before = tree();
        for my $count (0, 2, 8) {
                fault('reset');
                is_error(begin($pf, $count), 'Unavailable', [$verdict, $sentence], "$what: $count VFs are refused");
                nothing_written("$what: nothing is written");
        }
        same_tree($before, "$what: nothing changed");
        ($status, $out, $err) = ctl('sriov', $pf, 2);
        is($status, 1, "$what: passthroughctl fails");
        like($err, $sentence, "$what: with the same sentence");
        is(ctl_json('sriov', $pf, 2)->{device}, $device // (vfs($pf))[0], "$what: and names the device for programs");
        return;
}

sub allowed {
        my ($what) = @_;
        is((set_vfs($pf, 8))[0], 'done', "$what: afterwards it is done");
        is((set_vfs($pf, 4))[0], 'done', "$what: and back");
        same_tree($four, "$what: the tree is as before");
        return;
}

my $vf = (vfs($pf))[0];
is(allocate($bus, 'guest', vf => 1), 'done', 'E10: a VF is given out');
is((map { $_->{address} } @{ allocation($bus, 'guest')->{devices} })[0], $vf, 'E10: the first one');
like((ctl('sriov', $pf))[1], qr/^\Q$vf\E +vf +allocated +vfio-pci +guest$/m, 'E10: which is shown');
refused('E10: allocated', 'allocated', names($vf, $pf, 'guest'));
is((set_vfs($pf, 4))[0], 'done', 'E10: the number that there is stays fine');
is((set_vfs($other, 2))[0], 'done', 'E10: another PF is free to change');
is((set_vfs($other, 4))[0], 'done', 'E10: and back');
libvirt_reports($bus, running_domain('md-worker', UUID, $vf));
refused('E10: a guest owns it', 'allocated', names($vf, $pf, 'guest', 'md-worker'));
libvirt_reports($bus);
is(release($bus, 'guest'), 'done', 'E10: it ends, and the VF is given back');
allowed('E10');

# The daemon is not told of these two.
fault('events off');
other_hand_binds($vf, 'mlx5_core');
is(driver_of($vf), 'mlx5_core', 'host: somebody gives a VF to the host');
refused('host', 'busy', names($vf, $pf, 'mlx5_core'));
fault('write ' . path($vf, 'driver/unbind') . " $vf");
allowed('host');
other_hand_binds($vf, 'vfio-pci');
my ($group) = readlink("$ENV{NODE_ROOT}/" . path($vf, 'iommu_group')) =~ m{(\d+)$};
fault("link proc/4711/fd/12 /dev/vfio/$group", 'set proc/4711/comm qemu-kvm');
refused('held', 'busy', names($vf, $pf, 4711, 'qemu-kvm'));
fault('remove proc/4711');
fault(map { 'set ' . path($vf, "vfio-dev/vfio9$_/dev") . ' 511:9' } 0 .. 8);
refused('untold', 'busy', names($pf), $pf);
fault(map { 'remove ' . path($vf, "vfio-dev/vfio9$_") } 0 .. 8);
is((set_vfs($pf, 8))[0], 'done', 'held: afterwards it is done');
is((set_vfs($pf, 4))[0], 'done', 'held: and back');
same_tree($four, 'held: the tree is as before');

# Somebody else is quicker than the events that tell of it.
fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'write ' . path($pf, 'sriov_numvfs') . ' 3');
is((set_vfs($pf, 4))[0], 'done', 'unseen: another number is found when it matters');
is(scalar vfs($pf), 4, 'unseen: and made what is wanted');
fault('events on');
ok(!$bus->call('Rescan')->{error}, 'a rescan');
same_tree($four, 'unseen: the tree is as before');

# One that is promised but gone is promised all the same.
is(allocate($bus, 'guest', vf => 1), 'done', 'missing: a VF is given out');
fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'write ' . path($pf, 'sriov_numvfs') . ' 2', "write " . path($pf, 'sriov_numvfs') . ' 0');
ok(!$bus->call('Rescan')->{error}, 'missing: all VFs go away');
is((set_vfs($pf, 4))[0], 'done', 'missing: they may be made again, for there are none to be lost');
ok(wait_until(sub { driver_of($vf) eq 'vfio-pci' && allocation_state($bus, 'guest') eq 'ready' }), 'missing: it is prepared again');
is(release($bus, 'guest'), 'done', 'missing: it is released');
ok(wait_until(sub { tree() eq $four }), 'missing: the tree is as before') or same_tree($four, 'missing: what differs');

# ---- a write that never returns

start_with("[Daemon]\nJobTimeoutSec=4\n$pools");
for my $n (1, 2) {
        my $what = $n == 1 ? 'hanging removal' : 'hanging creation';
        fault('reset', "unkillable $n");
        my $reply = begin($pf, 8);
        ok(wait_until(sub { grep { /^$n .*PENDING/ } write_log() }), "$what: the kernel does not come back") or diag($reply->{body}[0]);
        is(allocate($bus, 'meanwhile', gpu => 1), 'done', "$what: another device is allocated");
        is($bus->result($reply->{body}[0]), 'timeout', "$what: the job ends as timeout");
        my $device = device($bus, $pf);
        is($device->{state}, 'stuck', "$what: the PF is stuck");
        like($device->{reason} // '', names($pf, qr/\b[48] VFs\b/, 'hot-plug'), "$what: it is said what else waits");
        is(release($bus, 'meanwhile'), 'done', "$what: the other device is given back");
        is_error(begin($other, 2), 'Unavailable', ['stuck', $other], "$what: another PF would only wait with it");
        is(allocate($bus, 'meanwhile', vf => 4), 'done', "$what: its VFs can be had");
        is_deeply([map { device($bus, $_->{address})->{physical_function} } @{ allocation($bus, 'meanwhile')->{devices} }], [($other) x 4], "$what: but none of the one that is stuck");
        is(release($bus, 'meanwhile'), 'done', "$what: and given back");
        ok(!$bus->ping()->{error}, "$what: the daemon answers");
        fault('release');
        ok(wait_until(sub { device($bus, $pf)->{state} ne 'stuck' }), "$what: when it comes back the PF is not stuck");
        ok(wait_until(sub { (set_vfs($pf, 4))[0] eq 'done' }), "$what: and can be changed");
        ok(wait_until(sub { tree() eq $four }), "$what: the tree is as before") or same_tree($four, "$what: what differs");
}

# ---- somebody else changes it

start_with($pools);
SKIP: {
        skip 'the kernel has no network namespace for the events of a node', 13 if $ENV{NODE_EVENTS} ne 'yes';
        $offset = log_since();
        fault('reset', 'write ' . path($pf, 'sriov_numvfs') . ' 0', 'write ' . path($pf, 'sriov_numvfs') . ' 2');
        ok($bus->signals_until(sub { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'contested' }), 'contested: that is signalled');
        my $device = device($bus, $pf);
        is($device->{state},  'contested',                                                     'contested: the PF is');
        like($device->{reason}, names(qr/from 4 to 2/), 'contested: and says why');
        like($device->{remedy}, names('passthroughctl sriov PF NUMBER'), 'contested: and what to do');
        like(log_since($offset), names($pf, 4, 2), 'contested: the log too');
        like((ctl('sriov', $pf))[1], names($pf, 2, 16), 'contested: and passthroughctl');
        is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pf), vfs($other) }, 'contested: what there is can be had');
        is(allocate($bus, 'guest', vf => 6), 'done', 'contested: all of it');
        is(release($bus, 'guest'), 'done', 'contested: and given back');
        is(scalar vfs($pf), 2, 'contested: it is not fought');
        is((set_vfs($pf, 4))[0], 'done', 'contested: changed back');
        is(device($bus, $pf)->{state}, 'host', 'contested: not any more');
        same_tree($four, 'contested: the tree is as before');
}

# ---- VFs that are somebody else's

start_with($pools =~ s/VirtualFunctions=4/VirtualFunctions=external/r);
nothing_written('external: nothing is written at start');
is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pf), vfs($other) }, 'external: VFs that are there are on offer');
for my $count (0, 2, 4) {
        is_error(begin($pf, $count), 'Unavailable', ['excluded', 'VirtualFunctions=external', qr{passthroughd\.conf:4\b}, $pf], "external: $count VFs are refused");
}
nothing_written('E6: nothing is written where somebody else makes them');
is(allocate($bus, 'guest', vf => 1), 'done', 'external: one is allocated');
is(release($bus, 'guest'), 'done', 'external: and released');
same_tree($four, 'external: the tree is as before');
fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'write ' . path($pf, 'sriov_numvfs') . ' 2');
ok(!$bus->call('Rescan')->{error}, 'external: they change it');
is(device($bus, $pf)->{state}, 'host', 'external: as they may');
is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pf), vfs($other) }, 'external: and what there is now is on offer');
fault("write $_") for map { path($_, 'sriov_numvfs') . ' 0' } $pf, $other;
restart();
is(scalar vfs($pf), 0, 'external: the next start makes none');
like((allocate($bus, 'guest', vf => 1))[1], names(qr/\bVFs\b/), 'external: and whoever wants one is told');

# ---- D11: a PF whose VFs the host uses

start_with("[Pool pf]\nMatch=address=$pf\n");
fault('write ' . path($pf, 'sriov_drivers_autoprobe') . ' 1', 'write ' . path($pf, 'sriov_numvfs') . ' 2', 'reset');
ok(!$bus->call('Rescan')->{error}, 'D11: somebody makes VFs');
is_deeply([map { driver_of($_) } vfs($pf)], [('mlx5_core') x 2], 'D11: and the host takes them');
is((allocate($bus, 'guest', pf => 1))[0], 'org.passthroughd1.Error.Insufficient', 'D11: the PF cannot be had');
like(device($bus, $pf)->{reason}, names(2), 'D11: and it says why');
nothing_written('D11: nothing is written');
fault('write ' . path($pf, 'sriov_numvfs') . ' 0');

# ---- passthroughctl sriov

start_with($pools);
is((ctl('sriov', '0000:fe:00.0'))[0], 1, 'sriov: fails for what is not there');
is(ctl_json('sriov', (vfs($pf))[0])->{error}, 'org.passthroughd1.Error.NotSupported', 'sriov: fails for a VF');
is((ctl('sriov', 'eth0'))[0], 2, 'sriov: an interface is no PF');
is((ctl('sriov', $pf, $_))[0], 2, "sriov PF $_: makes no sense") for 'many', -1, 65_536, '4x', '';
is((ctl('sriov', '--no-wait'))[0], 2, 'sriov: nor in a list');
is((ctl('sriov', $pf, '--no-wait'))[0], 2, 'sriov: there is nothing to wait for in a look');
is((ctl('sriov', $pf =~ s/^0000://r))[1], (ctl('sriov', $pf))[1], 'sriov: a short address');
is_deeply(ctl_json('sriov', $pf)->{virtual_functions}, [vfs($pf)], 'sriov --json: the PF');
is_deeply([@{ ctl_json('sriov', $pf, 6) }{qw(name result)}], [$pf, 'done'], 'sriov --json: the result');
is_deeply(ctl_json('sriov', $pf, 17)->{verdict}, 'not-supported', 'sriov --json: a refusal');
fault('reset', 'fail 2 ENOSPC');
($status, $out, $err) = ctl('sriov', $pf, 4);
is($status, 1, 'sriov: a failure');
like($err, qr/no MSI-X vectors/, 'sriov: is told');
($status, $out) = ctl('sriov', $pf, 4, '--no-wait');
is_deeply([$status, $out], [0, "$pf will have 4 VFs.\n"], 'sriov --no-wait');
ok(wait_until(sub { vfs($pf) == 4 }), 'sriov --no-wait: it has');

done_testing();
