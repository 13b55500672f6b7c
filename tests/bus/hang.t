#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A write that does not come back costs its device, never the daemon.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $pools = <<'END';
[Pool gpu]
Match=vendor=10de class=0302
[Pool ib-vf]
Match=vendor=15b3 type=vf
END
configure($pools);

my $gpu    = '0000:82:00.0';
my $vf     = '0000:83:00.1';
my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();

# Asks for the GPU and waits until the simulator has write N; returns the job.
sub begin {
        my ($n, $what) = @_;
        my ($signature, $entries) = request(gpu => 1);
        my $reply = $bus->call('Allocate', "s$signature", 'hanging', $entries);
        is($reply->{error}, undef, "$what: the reservation succeeds") or diag($reply->{body}[0]);
        ok(wait_until(sub { grep { /^$n .*PENDING/ } write_log() }), "$what: write $n hangs") or diag(join "\n", write_log());
        return $reply->{body}[1];
}

# What must go on while write N hangs.
sub daemon_is_well {
        my ($n, $what) = @_;
        ok(!$bus->ping()->{error}, "$what: the daemon answers");
        is(scalar @{ $bus->call('ListDevices')->{body}[0] }, scalar @{ describe($bus)->{devices} }, "$what: and lists");
        ok(plan_ok($bus, 'ib-vf' => 4), "$what: and plans");
        is(allocate($bus, 'other', 'ib-vf' => 1), 'done', "$what: and prepares other devices");
        is(release($bus, 'other'), 'done', "$what: and takes them back");
        is(scalar(grep { /^$n .*PENDING/ } write_log()), 1, "$what: without waiting for the one that hangs") or diag(join "\n", write_log());
        return;
}

sub state_of {
        my ($name) = @_;
        my ($found) = grep { $_->[0] eq $name } @{ $bus->call('ListAllocations')->{body}[0] };
        return $found ? $found->[1] : 'gone';
}

# ---- a write that takes its time

fault('reset', 'hang 2');
my $job = begin(2, 'a slow write');
daemon_is_well(2, 'a slow write');
like($bus->ask('org.passthroughd1', $job, 'org.freedesktop.DBus.Introspectable', 'Introspect')->{body}[0], qr/"StepsTotal"/, 'a slow write: the job is an object');
fault('release');
is($bus->result($job), 'done', 'a slow write: the job ends well');
is(release($bus, 'hanging'), 'done', 'a slow write: the allocation is released');
same_tree($before, 'a slow write: the tree is that of the start');

# ---- writes that end with a signal: allocate

configure("[Daemon]\nJobTimeoutSec=4\n$pools");
$bus->forget_signals();
for my $n (1 .. 3) {
        my $what = "allocate, write $n hangs";
        fault('reset', "hang $n");
        my $job = begin($n, $what);
        is($bus->result($job), 'timeout', "$what: the job ends as timeout");
        is(state_of('hanging'), 'failed', "$what: the allocation has failed");
        like(describe($bus)->{allocations}[0]{reason} // '', names($gpu), "$what: and says why");
        is(device($bus, $gpu)->{allocation}, 'hanging', "$what: and keeps its device");
        ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), "$what: which is not stuck once the process is gone");
        is((release($bus, 'hanging'))[0], 'done', "$what: the allocation can be released");
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
}

# ---- writes that do not even end with one

for my $n (2, 3) {
        my $what = "allocate, write $n hangs in the kernel";
        fault('reset', "unkillable $n");
        my $job = begin($n, $what);
        is($bus->result($job), 'timeout', "$what: the job ends as timeout");
        unlike($bus->ask('org.passthroughd1', $job, 'org.freedesktop.DBus.Introspectable', 'Introspect')->{body}[0], qr/"StepsTotal"/, "$what: and is none any more");
        is(state_of('hanging'), 'failed', "$what: the allocation has failed");
        my $device = device($bus, $gpu);
        is($device->{state}, 'stuck', "$what: the device is stuck");
        like($device->{reason} // '', names($gpu), "$what: with a sentence");
        daemon_is_well($n, $what);
        my ($error, $sentence) = release($bus, 'hanging');
        is($error, 'org.passthroughd1.Error.Unavailable', "$what: the allocation cannot be released now");
        like($sentence // '', names($gpu), "$what: and the refusal says why");
        ok(!plan_ok($bus, gpu => 1), "$what: nobody else gets the device");
        my $refused = $bus->call('Plan', request(gpu => 1));
        like($refused->{body}[0], names('gpu', 0, 1), "$what: they are told");

        fault('release');
        ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), "$what: when it comes back the device is not stuck");
        is(device($bus, $gpu)->{state}, 'allocated', "$what: but still allocated");
        is((release($bus, 'hanging'))[0], 'done', "$what: the allocation can be released");
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
}

# ---- release

# A reset that hangs condemns its device, and the release goes on; any other write that hangs is left to the next release.
is(allocate($bus, 'hanging', gpu => 1), 'done', 'there is an allocation');
for my $kind ('hang', 'unkillable') {
        for my $file ('reset', 'unbind') {
                my $what = "release, $file: $kind";
                is(allocate($bus, 'hanging', gpu => 1), 'done', "$what: there is an allocation") if state_of('hanging') eq 'gone';
                fault('reset', "$kind $file\@$gpu");
                my $reply = $bus->call('Release', 'st', 'hanging', Node::generation($bus, 'hanging'));
                is($bus->result($reply->{body}[0] // 'none'), $file eq 'reset' ? 'done' : 'timeout', "$what: the result of the job");
                is(state_of('hanging'), $file eq 'reset' ? 'gone' : 'failed', "$what: the allocation");
                like(device($bus, $gpu)->{reason} // '', names($gpu), "$what: the reason names the device");
                is(device($bus, $gpu)->{state}, 'stuck', "$what: the device is stuck") if $kind eq 'unkillable';
                fault('release', 'reset');
                ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), "$what: the device is not stuck when it came back");
                if ($file eq 'reset') {
                        is(device($bus, $gpu)->{state}, 'quarantined', "$what: the device is in quarantine");
                        clear_quarantine($bus);
                } else {
                        is((release($bus, 'hanging'))[0], 'done', "$what: the allocation can be released again");
                }
                same_tree($before, "$what: the tree is that of the start");
                same_state($state, "$what: the ledger too") or release_all($bus);
        }
}

# ---- the others of an allocation do not wait for the one that hangs

# Writes the driver of each device: the override of each, the unbind of the GPU, what the VFs get, and then the binds.
sub drivers_told { my (@devices) = @_; return { map { $_ => device($bus, $_)->{driver} // 'none' } @devices } }
sub drivers_real { my (@devices) = @_; return { map { $_ => driver_of($_) } @devices } }

fault('reset');
is(allocate($bus, 'hanging', gpu => 1, 'ib-vf' => 3), 'done', 'others: there is an allocation');
my @devices = map { $_->{address} } @{ allocation($bus, 'hanging')->{devices} };
my @log = write_log();
is(release($bus, 'hanging'), 'done', 'others: released');
for my $at (grep { $log[$_] =~ m{/(?:unbind|drivers_probe) } } 0 .. $#log) {
        my ($path, $device) = (split / /, $log[$at])[1, 2];
        my ($file) = $path =~ m{([^/]+)$};
        my @others = grep { $_ ne $device } @devices;
        my $what   = "others, $path of $device hangs";
        fault('reset', "unkillable $file\@$device");
        is(allocate($bus, 'hanging', gpu => 1, 'ib-vf' => 3), 'timeout', "$what: the job ends as timeout");
        is(device($bus, $device)->{state}, 'stuck', "$what: the device is stuck");
        is_deeply(drivers_told(@others), drivers_real(@others), "$what: the drivers of the others are told as they are");
        is(device($bus, $_)->{state}, 'allocated', "$what: $_ is not stuck") for @others;
        is(release($bus, 'hanging'), 'done', "$what: the others are released");
        is(device($bus, $_)->{state}, 'available', "$what: $_ can be had") for @others;
        is(device($bus, $device)->{state}, 'stuck', "$what: the device is stuck as before");
        ok(!plan_ok($bus, gpu => 1, 'ib-vf' => 4), "$what: nobody gets it");
        fault('release');
        ok(wait_until(sub { device($bus, $device)->{state} eq 'quarantined' }), "$what: then it is in quarantine");
        clear_quarantine($bus);
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
}

# The last bind, of a VF, fails, and then the first write of the undo hangs: that unbinds the GPU.
configure("[Daemon]\nJobTimeoutSec=4\nParallelDevices=1\n$pools");
$bus->forget_signals();
fault('reset');
is(allocate($bus, 'hanging', gpu => 1, 'ib-vf' => 1), 'done', 'undo: there is an allocation');
my $last = write_log();
my ($failed) = map { $_->{address} } grep { $_->{slot} eq 'ib-vf0' } @{ allocation($bus, 'hanging')->{devices} };
is(release($bus, 'hanging'), 'done', 'undo: released');
fault('reset', "fail $last EIO", 'unkillable ' . ($last + 1));
is(allocate($bus, 'hanging', gpu => 1, 'ib-vf' => 1), 'timeout', 'undo: the job ends as timeout');
is(device($bus, $gpu)->{state}, 'stuck', 'undo: the device that hangs is stuck') or diag(join "\n", write_log());
is(device($bus, $failed)->{state}, 'allocated', 'undo: not the one that failed');
is(release($bus, 'hanging'), 'done', 'undo: the allocation is released');
is(device($bus, $failed)->{state}, 'available', 'undo: the VF can be had');
fault('release');
ok(wait_until(sub { device($bus, $gpu)->{state} eq 'quarantined' }), 'undo: the GPU is in quarantine');
clear_quarantine($bus);
same_tree($before, 'undo: the tree is that of the start');
same_state($state, 'undo: the ledger too') or release_all($bus);

# ---- the daemon goes away while the kernel has its child

fault('reset', 'unkillable 2');
$job = begin(2, 'restart');
is($bus->result($job), 'timeout', 'restart: the job ends as timeout');
is(daemon('restart'), 0, 'restart: the daemon ends and starts although a child cannot be killed');
is(state_of('hanging'), 'failed', 'restart: the allocation is failed as before');
fault('release');
ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), 'restart: the device is stuck until it comes back');
ok(wait_until(sub { !grep { /PENDING/ } write_log() }), 'restart: the write comes to its end');
$bus->forget_signals();
is((release($bus, 'hanging'))[0], 'done', 'restart: and the allocation can be released');
same_tree($before, 'restart: the tree is that of the start');

done_testing();
