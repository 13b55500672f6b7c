#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Services that hold devices of the host are stopped while one is taken from it, and started again whatever comes between.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(mkfifo);
use Test::More;

use Node;

# JobTimeoutSec= where something takes too long: what takes as long on a busy machine is a part of a second on a quiet one.
use constant LIMIT => 8;

node('hgx-h100', configure => 1);

my ($gpu, $other) = qw(0000:13:00.0 0000:23:00.0);
my $dir = "$ENV{NODE_TMP}/units";
my ($daemon, $export, $idle) = qw(nvidia-persistenced.service dcgm-exporter.service nvidia-dcgm.service);
my @services = ($export, $idle, $daemon);
my ($bus, $log); # $log: the length of the log at begin()
my @around = ("stop $export", "stop $daemon", "start $daemon", "start $export");

mkdir $dir or die "$dir: $!";
spew("$dir/log", '');
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
END { my $status = $?; if ($systemd) { kill 'TERM', $systemd; waitpid $systemd, 0 } $? = $status }

sub pools {
        my ($names, $daemon_keys) = @_;
        return ($daemon_keys ? "[Daemon]\n$daemon_keys\n" : '') . "[Pool gpu]\nMatch=address=$gpu\nStopServices=$names\n[Pool other]\nMatch=address=$other\n";
}

sub has_systemd { return Bus->new->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', $_[0])->{body}[0] }

# The unit is active and has files open; when it is stopped it has not.
sub holder {
        my ($unit, $pid, @nodes) = @_;
        fault("set proc/$pid/comm holder", "set proc/$pid/cgroup 0::/system.slice/$unit", map { "link proc/$pid/fd/" . (3 + $_) . " $nodes[$_]" } 0 .. $#nodes);
        spew("$dir/$unit.stop", "remove proc/$pid\n");
        return;
}

sub begin {
        my (@units) = @_;
        spew("$dir/log", '');
        unlink glob("$dir/*.hang $dir/*.fail $dir/*.job $dir/*.wait");
        spew("$dir/$_.state", "active\n") for $daemon, $export;
        spew("$dir/$idle.state", "inactive\n");
        holder($daemon, 812, '/dev/nvidia3', '/dev/nvidia5');
        holder($export, 813, '/dev/nvidia3');
        fault('reset');
        # Until the driver has told which node the GPU has, process 950 counts as its user.
        wait_until(sub { grep { $_->{address} eq $gpu && grep { $_ eq 'nvidia3' } @{ $_->{kernel_names} } } @{ describe($bus)->{devices} } }) or die "$gpu: no node";
        $log = log_since();
        return;
}

sub calls { return split /\n/, slurp("$dir/log") }
sub is_up { my ($unit) = @_; return slurp("$dir/$unit.state") eq "active\n" }
sub noted { return slurp_existing("$ENV{STATE_DIRECTORY}/stopped-services") // '' }

my %minor = ($gpu => 3, $other => 5, '0000:33:00.0' => 7);
fault(map { "set proc/driver/nvidia/gpus/$_/information Model: \\t\\t NVIDIA H100\\nDevice Minor: \\t $minor{$_}" } sort keys %minor);
# A process that uses another GPU does not count as a user of these.
fault('set proc/950/comm python3', 'link proc/950/fd/3 /dev/nvidia6');
ok(wait_until(sub { has_systemd('org.freedesktop.systemd1') }), 'there is a systemd');
configure(pools("@services"));
$bus = Bus->new->listen;
my $state  = snapshot();
my $before = tree();

# The job. The test waits for what it does, so it ends here when there is none.
sub reserve_late {
        my ($signature, $entries) = request(gpu => 1);
        my $reply = $bus->call('Allocate', "s$signature", 'late', $entries);
        die "Allocate: $reply->{error}: @{ $reply->{body} }" if $reply->{error};
        return $reply->{body}[1];
}

sub nothing_done {
        my ($what) = @_;
        is(driver_of($gpu), 'nvidia', "$what: the device is where it was");
        same_state($state, "$what: nothing is promised, nothing noted");
        return;
}

# ---- done

begin();
is((allocate($bus, 'late', gpu => 1))[0], 'done', 'what only such services use is to be had');
is_deeply([calls()], \@around, 'those that are active are stopped in order, and started in reverse order');
ok(is_up($daemon) && is_up($export) && !is_up($idle), 'all is up that was');
is(driver_of($gpu), 'vfio-pci', 'the device is bound');
is(noted(), '', 'nothing is noted');
spew("$dir/log", '');
is((release($bus, 'late'))[0], 'done', 'released');
is_deeply([calls()], [], 'a release stops none');
nothing_done('released');

# ---- what systemd is about to start

for my $queued (['inactive', 'start', 1], ['failed', 'start', 1], ['deactivating', 'restart', 1], ['inactive', 'verify-active', 0]) {
        my ($unit_state, $type, $counts) = @$queued;
        begin();
        spew("$dir/$idle.state", "$unit_state\n");
        spew("$dir/$idle.job",   "$type\n");
        is((allocate($bus, 'late', gpu => 1))[0], 'done', "$unit_state, $type: the device is had");
        my @expected = ("stop $export", $counts ? "stop $idle" : (), "stop $daemon", "start $daemon", $counts ? "start $idle" : (), "start $export");
        is_deeply([calls()], \@expected, "$unit_state, $type: " . ($counts ? 'it is stopped and started as one that runs' : 'it is left alone'));
        is(is_up($idle), !!$counts, "$unit_state, $type: it is up if it was to be");
        is((release($bus, 'late'))[0], 'done', "$unit_state, $type: released");
}

# At boot the start may wait for the daemon, which waits for its jobs.
configure(pools("@services", 'JobTimeoutSec=3600'));
$bus = Bus->new->listen;
begin();
spew("$dir/$idle.job",  "start\n");
spew("$dir/$idle.wait", '');
is((allocate($bus, 'late', gpu => 1))[0], 'done', 'the start of a unit waits for others: the job does not');
is(slurp("$dir/$idle.job"), "start\n", '... and the start is queued again');
is(noted(), '', '... so nothing is noted');
is((release($bus, 'late'))[0], 'done', '... released');
unlink glob("$dir/*.job $dir/*.wait");
configure(pools("@services"));
$bus = Bus->new->listen;

# ---- memory of the GPU that the host has online

my $memory = "proc/driver/nvidia/gpus/$gpu/numa_status";
for my $ends (0, 1) {
        begin();
        fault("set $memory Node: 5\\nStatus: online\\n", 'set sys/devices/system/node/node5/meminfo Node 5 MemTotal: 1048576 kB');
        ok(!$bus->call('Rescan')->{error}, 'a rescan');
        ok(wait_until(sub { !daemon_children() }), 'the driver has answered');
        spew("$dir/$daemon.stop", slurp("$dir/$daemon.stop") . "set $memory Node: 5\\nStatus: offline\\n\n") if $ends;
        is((allocate($bus, 'late', gpu => 1))[0] eq 'done', !!$ends, $ends ? 'the end of the services takes the memory offline' : 'memory that stays online');
        like(log_since($log), names($gpu, 5), '... is a reason') if !$ends;
        is((release($bus, 'late'))[0], 'done', '... and it is released') if $ends;
}
fault("remove $memory", 'remove sys/devices/system/node/node5');
ok(!$bus->call('Rescan')->{error}, 'the last rescan');
ok(wait_until(sub { !daemon_children() }), 'the driver has answered');

# ---- a plan

begin();
like((ctl('plan', '--json', 'gpu=1'))[1], names($export, $daemon), 'a plan tells it');
is_deeply([calls()], [], 'and does nothing');

# ---- not theirs

like((allocate($bus, 'late', other => 1))[1], names($other, 812, $daemon), 'another pool does not stop them');
fault("set proc/900/comm python3", "link proc/900/fd/3 /dev/nvidia3");
like((allocate($bus, 'late', gpu => 1))[1], names($gpu, 900), 'who else uses the device is in the way as ever');
is_deeply([calls()], [], 'nothing is stopped for it');
nothing_done('in use');
fault('remove proc/900');

# ---- it fails

begin();
fault('fail 2 EIO');
is((allocate($bus, 'late', gpu => 1))[0], 'failed', 'failed: it cannot be unbound');
is_deeply([calls()], \@around, 'failed: they are started again');
nothing_done('failed');

begin();
spew("$dir/$daemon.stop", '');
my ($signature, $entries) = request(gpu => 1);
my $reply = $bus->call('Allocate', "s$signature", 'late', $entries);
my $job = $reply->{body}[1];
is($bus->result($job), 'failed', 'used after the stop: failed');
is_deeply([calls()], \@around, 'used after the stop: they are started again');
is(writes(), 0, 'used after the stop: nothing is written');
like(log_since($log), names($gpu, 812, $daemon), 'used after the stop: it says by whom');
nothing_done('used after the stop');

begin();
spew("$dir/$daemon.fail", '');
is((allocate($bus, 'late', gpu => 1))[0], 'done', 'does not come up: the device is had all the same');
is_deeply([calls()], \@around, 'does not come up: it was tried, and the other one is started');
like(log_since($log), names($daemon), 'does not come up: the journal says so');
is(noted(), '', 'does not come up: it is not tried for ever');
is((release($bus, 'late'))[0], 'done', 'does not come up: released');

# The job asks for the users again when the services have stopped. The last one stops when the test writes to the FIFO.
begin();
unlink "$dir/$daemon.stop";
mkfifo("$dir/$daemon.stop", 0600) or die "mkfifo: $!";
($signature, $entries) = request(gpu => 1);
$job = reserve_late();
open my $fifo, '>', "$dir/$daemon.stop" or die "$dir/$daemon.stop: $!";
kill 'STOP', -holders_pid() or die "kill: $!";
print $fifo "remove proc/812\n";
close $fifo or die "$dir/$daemon.stop: $!";
is($bus->result($job), 'failed', 'the users are unknown after the stop: failed');
kill 'CONT', -holders_pid() or die "kill: $!";
is_deeply([calls()], \@around, 'the users are unknown: the services are started again');
is(writes(), 0, 'the users are unknown: nothing is written');
like(log_since($log), names($gpu, 'passthroughd-holders'), 'the users are unknown: the log says why');
unlink "$dir/$daemon.stop";
nothing_done('the users are unknown');

# The process of the job waits for passthroughd-root while the last service stops.
begin();
unlink "$dir/$daemon.stop";
mkfifo("$dir/$daemon.stop", 0600) or die "mkfifo: $!";
$job = reserve_late();
open $fifo, '>', "$dir/$daemon.stop" or die "$dir/$daemon.stop: $!";
my ($waiting) = daemon_children('passthroughd-jo');
ok(wait_until(sub { slurp("/proc/$waiting/stat") =~ /\) S / }), 'the process of a job waits for a service');
ok(stopped_and_continued($waiting), '... is stopped, and goes on');
print $fifo "remove proc/812\n";
close $fifo or die "$dir/$daemon.stop: $!";
is($bus->result($job), 'done', '... and gets the answer');
unlink "$dir/$daemon.stop";
is((release($bus, 'late'))[0], 'done', 'released');

# ---- two at once

configure(pools("@services") . "[Pool third]\nMatch=address=0000:33:00.0\nStopServices=$daemon\n");
$bus = Bus->new->listen;
begin();
fault('hang 1');
my @jobs = map { my ($s, $e) = request($_ => 1); $bus->call('Allocate', "s$s", $_, $e)->{body}[1] } qw(gpu third);
ok(wait_until(sub { calls() == 2 }), 'two at once: the first has stopped them');
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'two at once: and is at work');
is(writes(), 1, 'two at once: the other one waits');
fault('release');
is_deeply([map { $bus->result($_) } @jobs], ['done', 'done'], 'two at once: both are done');
is_deeply([calls()], [@around, "stop $daemon", "start $daemon"], 'two at once: one after the other');
is((release($bus, $_))[0], 'done', "two at once: $_ is released") for qw(gpu third);

# ---- it takes too long

configure(pools("@services", 'JobTimeoutSec=' . LIMIT));
$bus = Bus->new->listen;
begin();
spew("$dir/$daemon.hang", '');
is((allocate($bus, 'late', gpu => 1))[0], 'failed', 'does not stop: failed');
is_deeply([calls()], \@around, 'does not stop: both are started');
is(writes(), 0, 'does not stop: nothing is unbound');
like(log_since($log), names($daemon), 'does not stop: it says so');
nothing_done('does not stop');

begin();
fault('unkillable 2');
is((allocate($bus, 'late', gpu => 1))[0], 'timeout', 'timeout: the kernel hangs');
ok(wait_until(sub { noted() eq '' }), 'timeout: they are started again all the same');
is_deeply([calls()], \@around, 'timeout: in order');
fault('release');
ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), 'timeout: the write came back');
release_all($bus);

# ---- a job takes longer than each of its steps may

# The services share half of the limit, and each write has the whole one.
begin();
unlink "$dir/$daemon.stop";
mkfifo("$dir/$daemon.stop", 0600) or die "mkfifo: $!";
fault('delay-all ' . LIMIT * 400);
my $begin = time;
$job = reserve_late();
open $fifo, '>', "$dir/$daemon.stop" or die "$dir/$daemon.stop: $!";
my $promised = $bus->properties($job, 'org.passthroughd1.Job')->{Deadline};
print $fifo "remove proc/812\n";
close $fifo or die "$dir/$daemon.stop: $!";
is($bus->result($job), 'done', 'longer than a step: the job goes on');
cmp_ok(time - $begin, '>', LIMIT, '... beyond the limit of a step');
cmp_ok($promised / 1e6 - $begin, '>', LIMIT * writes(), '... up to the limits of all steps together');
is_deeply([calls()], \@around, '... and starts the services again');
fault('reset');
unlink "$dir/$daemon.stop";
is((release($bus, 'late'))[0], 'done', '... released');

# ---- killed

configure(pools("@services"));
$bus = Bus->new->listen;
begin();
killed_in($bus, 2, 'daemon killed', 'Allocate', "s$signature", 'late', $entries);
ok(wait_until(sub { noted() eq '' }), 'daemon killed: they are started');
is_deeply([calls()], \@around, 'daemon killed: in order');
is(allocation_state($bus, 'late'), 'ready', 'daemon killed: the allocation is taken up');
is((release($bus, 'late'))[0], 'done', 'daemon killed: released');

begin();
fault('hang 2');
$job = reserve_late();
ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), 'child killed: it is at work');
is(noted(), "$export\n$daemon\n", 'child killed: what is stopped is noted');
my ($child) = grep { (slurp_existing("/proc/$_/comm") // '') eq "passthroughd-jo\n" } split ' ', slurp('/proc/' . pid() . '/task/' . pid() . '/children');
ok($child && kill('KILL', $child), 'child killed: it is');
is($bus->result($job), 'failed', 'child killed: failed');
fault('release');
ok(wait_until(sub { noted() eq '' }), 'child killed: they are started');
is_deeply([calls()], \@around, 'child killed: in order');
release_all($bus);

# ---- systemd is away when they are to be started

begin();
fault('hang 2');
$job = reserve_late();
ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), 'away: it is at work');
kill 'TERM', $systemd;
waitpid $systemd, 0;
ok(wait_until(sub { !has_systemd('org.freedesktop.systemd1') }), 'away: systemd is not there');
fault('release');
is($bus->result($job), 'done', 'away: the job is done');
like(log_since($log), names($daemon), 'away: the journal says what is missing');
ok(wait_until(sub { log_since($log) =~ names('start-services') }), 'away: the next attempt fails too');
$systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
ok(wait_until(sub { has_systemd('org.freedesktop.systemd1') }), 'away: it is back');
restart();
$bus = Bus->new->listen;
ok(wait_until(sub { noted() eq '' }), 'away: the next start of the daemon starts them');
is_deeply([calls()], \@around, 'away: in order');
is((release($bus, 'late'))[0], 'done', 'away: released');
same_tree($before, 'all is as before');

done_testing();
