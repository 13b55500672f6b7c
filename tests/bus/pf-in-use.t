#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFs count as their PF: a PF with VFs is not unbound, reset or counted anew, whoever made them and whoever holds one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('connectx', configure => 1);

my $pf      = '0000:12:00.0';
my $other   = '0000:11:00.0';
my @vfs     = qw(0000:12:10.0 0000:12:10.2);
my $pools   = "[Daemon]\nParallelDevices=1\n[Pool pf]\nMatch=address=$pf\n[Pool other]\nMatch=address=$other\n";
my $counted = names('pf', 2);
my $held    = names($vfs[0], $pf, 4242, 'qemu-system-x86');
my $idle    = names($pf, 2);
my $late    = names($pf);

configure($pools);
my $bus    = Bus->new->listen;
my $before = tree();

sub path { my ($address, $name) = @_; return "sys/bus/pci/devices/$address/$name" }

sub links { return grep { -l "$ENV{NODE_ROOT}/" . path($pf, "virtfn$_") } 0 .. 7 }

# Another hand makes two VFs on the PF, and gives one to a guest.
sub make_vfs { fault('write ' . path($pf, 'sriov_numvfs') . ' 2'); return }

sub hold {
        other_hand_binds($vfs[0], 'vfio-pci');
        my ($group) = readlink("$ENV{NODE_ROOT}/" . path($vfs[0], 'iommu_group')) =~ m{(\d+)$};
        fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
        return;
}

sub let_go { fault('remove proc/4242') if -d "$ENV{NODE_ROOT}/proc/4242"; return }

# All as at the start.
sub gone {
        my ($what) = @_;
        let_go();
        remove_vfs();
        fault('events on');
        ok(!$bus->call('Rescan')->{error}, "$what: a rescan");
        ok(wait_until(sub { tree() eq $before }), "$what: the tree is as before") or same_tree($before, "$what: what differs");
        return;
}

sub remove_vfs {
        other_hand_binds($_, '') for grep { driver_of($_) eq 'vfio-pci' } @vfs;
        fault('write ' . path($pf, 'sriov_numvfs') . ' 0');
        return;
}

# Result and message of a job.
sub outcome {
        my ($job) = @_;
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' && $_->{body}[1] eq $job });
        my ($message) = map { $_->{body}[1]{Message} } grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[1]{Message} } reverse @signals;
        return ($signals[-1]{body}[2], $message);
}

# What no path may do to the PF.
sub untouched {
        my ($what) = @_;
        nothing_written("$what: nothing is written");
        is(() = links(), 2, "$what: the VFs are there");
        return;
}

# ---- allocate

for my $who ('guest', 'host') {
        my $what = "allocate, VFs of the $who";
        fault('events off');
        make_vfs();
        hold() if $who eq 'guest';
        fault('reset');
        my ($error, $message) = allocate($bus, 'late', pf => 1);
        like($error, qr/\.Error\.Insufficient$/, "$what: it is refused");
        like($message, $counted, "$what: with what is in the way");
        untouched($what);
        is(allocation_state($bus, 'late'), 'gone', "$what: nothing is promised");
        gone($what);
}

# ---- allocate: the VFs are made while the job is at work

my ($signature, $entries) = request(pf => 1, other => 1);
fault('events off', 'reset', 'hang 1');
my $reply = $bus->call('Allocate', "s$signature", 'late', $entries);
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'allocate, late: a job waits');
make_vfs();
fault('release');
my ($result, $message) = outcome($reply->{body}[1]);
is($result, 'failed', 'allocate, late: it fails');
like($message, $late, 'allocate, late: and says why');
is(() = links(), 2, 'allocate, late: the VFs are there');
is(driver_of($pf), 'igb', 'allocate, late: the PF has its driver');
gone('allocate, late');

# ---- resume: the PF was given back to the host behind the daemon, which made VFs on it

sub resume_refused {
        my ($what, $sentence, $driver, $offset) = @_;
        untouched($what);
        is(driver_of($pf), $driver, "$what: the PF stays where it is");
        is(allocation_state($bus, 'guest'), 'failed', "$what: the allocation has failed");
        like(allocation($bus, 'guest')->{reason} // '', $sentence, "$what: and says why");
        like(log_since($offset), names('guest', qr/\Q$pf\E|\Q$vfs[0]\E/), "$what: so does the journal");
        history_shows($pf, sub { $_[-1] eq 'failed' }, "$what: and the history");
        return;
}

sub let_released {
        my ($what) = @_;
        is((release($bus, 'guest'))[0], 'done', "$what: it can be released");
        is(() = links(), 2, "$what: which leaves the VFs there");
        gone($what);
        return;
}

for my $case (['restart', 'guest', $held], ['restart', 'host', $idle], ['boot', 'guest', $held]) {
        my ($event, $who, $sentence) = @$case;
        my $what = "resume after a $event, VFs of the $who";
        is(allocate($bus, 'guest', pf => 1), 'done', "$what: the PF is allocated");
        daemon('stop') if $event eq 'boot';
        other_hand_binds($pf, 'igb');
        make_vfs();
        hold() if $who eq 'guest';
        if ($event eq 'restart') {
                ok(wait_until(sub { device($bus, $pf)->{state} eq 'contested' && @{ device($bus, $pf)->{virtual_functions} // [] } == 2 }), "$what: the daemon sees it");
                like((ctl('explain', $pf))[1], qr/\bVFs\b.*\brestart\b/s, "$what: and says that the VFs are in the way");
                daemon('stop');
        }
        my $offset = log_since();
        start_again($bus, $what);
        resume_refused($what, $sentence, 'igb', $offset);
        let_released($what);
}

# ---- hot-plug

my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf") =~ s{^(?:\.\./)+}{sys/}r;
is(allocate($bus, 'guest', pf => 1), 'done', 'hot-plug: the PF is allocated');
# The daemon reads the PF once more after the events of the allocation. A new daemon does not get these events: it reads the PF at the rescan below.
daemon('stop');
start_again($bus, 'hot-plug');
fault('events off', "remove $path", 'write sys/bus/pci/rescan 1');
make_vfs();
hold();
my $offset = log_since();
fault('events on', 'reset');
ok(!$bus->call('Rescan')->{error}, 'hot-plug: it was out and is in again');
ok(wait_until(sub { allocation_state($bus, 'guest') ne 'ready' }), 'hot-plug: that is looked at');
resume_refused('hot-plug', $held, 'igb', $offset);
let_released('hot-plug');

# ---- accept

is(allocate($bus, 'guest', pf => 1), 'done', 'accept: the PF is allocated');
daemon('stop');
other_hand_binds($pf, 'igb');
my $card = slurp("$ENV{NODE_ROOT}/" . path($pf, 'subsystem_device'));
fault('set ' . path($pf, 'subsystem_device') . ' 0xa03d');
start_again($bus, 'accept');
fault('events off');
make_vfs();
hold();
fault('reset');
is_error($bus->call('Accept', 'st', 'guest', allocation($bus, 'guest')->{generation}), 'Unavailable', ['pf-has-vfs', 2], 'accept: another card with VFs is refused');
untouched('accept');
is((release($bus, 'guest'))[0], 'done', 'accept: it can be released');
chomp $card;
fault('set ' . path($pf, 'subsystem_device') . " $card");
gone('accept');

# ---- Bind=start

make_vfs();
hold();
daemon('stop');
spew("$ENV{NODE_TMP}/passthroughd.conf", "[Pool pf]\nMatch=address=$pf\nBind=start\n");
start_again($bus, 'Bind=start');
untouched('Bind=start');
is(driver_of($pf), 'igb', 'Bind=start: the PF stays with its driver');
gone('Bind=start');

# ---- release: VFs of a PF that is on vfio-pci

sub release_refused {
        my ($what, $sentence) = @_;
        fault('reset');
        is_error($bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation}), 'Unavailable', ['busy', $sentence], "$what: it is refused");
        untouched($what);
        is(allocation_state($bus, 'guest'), 'ready', "$what: the allocation is as it was");
        is(driver_of($pf), 'vfio-pci', "$what: so is the PF");
        return;
}

fault('set sys/module/vfio_pci/parameters/enable_sriov Y');
for my $after ('restore', 'keep') {
        configure("[Daemon]\nAfterRelease=$after\n$pools");
        for my $who ('guest', 'host') {
                my $what = "release, AfterRelease=$after, VFs of the $who";
                is(allocate($bus, 'guest', pf => 1), 'done', "$what: the PF is allocated");
                fault('events off');
                make_vfs();
                hold() if $who eq 'guest';
                release_refused($what, $who eq 'guest' ? $held : $idle);
                let_go();
                release_refused("$what, not open", $idle);
                fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'events on');
                is((release($bus, 'guest'))[0], 'done', "$what: without them it is released");
        }
}
configure($pools);
ok(!$bus->call('Rescan')->{error}, 'a rescan');
other_hand_binds($pf, 'igb');

# ---- a release that was cut short

is(allocate($bus, 'guest', pf => 1), 'done', 'cut short: the PF is allocated');
daemon('stop');
spew(ledger_file('guest'), slurp(ledger_file('guest')) =~ s/"ready"/"releasing"/r);
make_vfs();
hold();
$offset = log_since();
start_again($bus, 'cut short');
resume_refused('cut short', $held, 'vfio-pci', $offset);
let_go();
fault('write ' . path($pf, 'sriov_numvfs') . ' 0');
is((release($bus, 'guest'))[0], 'done', 'cut short: without them it is released');

# ---- release: the VFs are made while the job is at work

sub releasing {
        my ($what, @pools) = @_;
        is(allocate($bus, 'guest', map { $_ => 1 } @pools), 'done', "$what: allocated");
        fault('events off', 'reset', 'hang 1');
        my $job = $bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation});
        ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), "$what: a job waits");
        make_vfs();
        fault('release');
        return outcome($job->{body}[0]);
}

($result, $message) = releasing('release, late', 'pf');
is($result, 'failed', 'release, late: it fails');
like($message, $late, 'release, late: and says why');
is(() = links(), 2, 'release, late: the VFs are there');
is(driver_of($pf), 'vfio-pci', 'release, late: the PF stays where it is');
fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'events on');
is((release($bus, 'guest'))[0], 'done', 'release, late: without them it is released');

# ---- quarantine

($result) = releasing('quarantine', 'other', 'pf');
is($result, 'done', 'quarantine: the other device is released');
is_deeply([map { $_->{address} } @{ describe($bus)->{quarantine} }], [$pf], 'quarantine: the PF is in quarantine');
is((grep { m{/\Q$pf\E/reset } } write_log()), 0, 'quarantine: it was not reset');
hold();
fault('reset');
is_error($bus->call('ClearQuarantine', 's', $pf), 'Unavailable', ['busy', $held], 'quarantine: it is not cleared');
untouched('quarantine');
let_go();
fault('write ' . path($pf, 'sriov_numvfs') . ' 0', 'events on');
is(clear_quarantine($bus), 1, 'quarantine: without them it is');
is(driver_of($pf), 'igb', 'quarantine: and back with its driver');

done_testing();
