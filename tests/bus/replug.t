#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices of allocations that come and go, while a guest runs, a job is at work, or nothing may be written.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my $path = "sys/devices/pci0000:80/0000:80:02.0/$gpu";
my $bus  = Bus->new->listen;

sub rescanned { return !$bus->call('Rescan')->{error} }

# Only the daemon itself counts: a process that was just forked, and is not the daemon yet, blocks all signals for a moment.
sub blocks_sighup {
        return if !-s $ENV{DAEMON_PID};
        return if (readlink('/proc/' . pid() . '/exe') // '') !~ m{/passthroughd$};
        return slurp('/proc/' . pid() . '/status') =~ /^SigBlk:.*[13579bdf]$/m;
}

sub begin {
        my ($method, $what, @call) = @_;
        my $reply = $bus->call($method, @call);
        is($reply->{error}, undef, "$what: the job begins") or diag($reply->{body}[0]);
        ok(wait_until(sub { grep { /PENDING/ } write_log() }), "$what: and a write waits");
        return $reply->{body}[1] // $reply->{body}[0];
}

my $before = tree();

# ---- a guest runs on the one, and the other is plugged in again

is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1), 'done', 'a guest: a GPU and a VF');
my $group = device($bus, $vf)->{iommu_group};
fault("link proc/4242/fd/7 /dev/vfio/$group", 'set proc/4242/comm qemu-system-x86', "remove $path");
ok(rescanned(), 'a guest: the GPU goes');
like(allocation($bus, 'guest')->{reason}, names($gpu), 'a guest: that is said');
fault('write sys/bus/pci/rescan 1');
ok(rescanned(), 'a guest: and comes back');
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' }), 'a guest: it is bound again, whoever holds the VF');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'a guest: and the allocation ready');
fault('remove proc/4242');
is(release($bus, 'guest'), 'done', 'a guest: its release');

# ---- without events: removed and back before anybody looked

is(allocate($bus, 'guest', gpu => 1), 'done', 'unseen: a GPU is allocated');
fault('events off', "remove $path", 'write sys/bus/pci/rescan 1', 'events on');
is(driver_of($gpu), 'nvidia', 'unseen: it is plugged in again');
ok(rescanned(), 'unseen: a rescan');
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' && allocation_state($bus, 'guest') eq 'ready' }), 'unseen: sees that and prepares it');
is(release($bus, 'guest'), 'done', 'unseen: its release');
same_tree($before, 'unseen: the tree is that of the start');

# ---- gone after its own steps, while others are prepared

my ($signature, $entries) = request(gpu => 1, 'ib-vf' => 1);
my ($n_writes) = do {
        fault('reset');
        is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1), 'done', 'prepare: how many writes there are');
        my $n = writes();
        is(release($bus, 'guest'), 'done', 'prepare: back');
        $n;
};
for my $n (1 .. $n_writes) {
        my $what = "prepare, write $n";
        fault('reset', "unkillable $n");
        my $offset = log_since();
        my $job = begin('Allocate', $what, "s$signature", 'guest', $entries);
        fault("remove $path", 'release');
        is($bus->result($job), 'failed', "$what: the GPU goes, and that is no success");
        like(log_since($offset), names('prepare guest'), "$what: the journal says why");
        release($bus, 'guest') if @{ $bus->call('ListAllocations')->{body}[0] };
        fault('write sys/bus/pci/rescan 1');
        ok(rescanned(), "$what: it comes back");
        same_tree($before, "$what: the tree is that of the start");
}
fault('reset', "unkillable $n_writes");
my $pid = fork // die "fork: $!";
exec 'sh', '-c', "passthroughctl allocate guest gpu=1 ib-vf=1 >$ENV{NODE_TMP}/out 2>&1" if !$pid;
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'passthroughctl: its last write waits');
fault("remove $path", 'release');
waitpid $pid, 0;
is($? >> 8, 1, 'passthroughctl: exit status 1 when a device is gone in the end');
release($bus, 'guest') if @{ $bus->call('ListAllocations')->{body}[0] };
fault('reset', 'write sys/bus/pci/rescan 1');
ok(rescanned(), 'passthroughctl: it comes back');

# ---- gone while it is released: the others go back all the same

for my $n (1 .. 3) {
        my $what = "release, write $n";
        is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1), 'done', "$what: a GPU and a VF");
        fault('reset', "unkillable $n");
        my $job = begin('Release', $what, 'st', 'guest', allocation($bus, 'guest')->{generation});
        my $offset = log_since();
        fault("remove $path", 'release');
        is($bus->result($job), 'done', "$what: the GPU goes, the release goes on") or diag(log_since($offset), map { "$_\n" } write_log());
        is_deeply($bus->call('ListAllocations')->{body}[0], [], "$what: nothing stays allocated");
        fault('reset', 'write sys/bus/pci/rescan 1');
        ok(rescanned(), "$what: it comes back");
        same_tree($before, "$what: the tree is that of the start");
}

# The kernel removes the attributes first.
is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1), 'done', 'attributes first: a GPU and a VF');
fault('reset', "unkillable reset\@$gpu");
my $job = begin('Release', 'attributes first', 'st', 'guest', allocation($bus, 'guest')->{generation});
fault("remove $path/driver_override", 'release');
select undef, undef, undef, 0.1; # without it the GPU could be gone before the job looks, and the test would show nothing
fault("remove $path");
is($bus->result($job), 'done', 'attributes first: the GPU goes, the release goes on');
fault('reset', 'write sys/bus/pci/rescan 1', "set $path/driver_override (null)");
ok(rescanned(), 'attributes first: it comes back');
same_tree($before, 'attributes first: the tree is that of the start');

# ---- a ledger that must not be written

is(allocate($bus, 'guest', gpu => 1), 'done', 'read-only: a GPU is allocated');
daemon('stop');
spew("$ENV{STATE_DIRECTORY}/allocations/newer.json", '{"version": 99}');
restart();
ok(describe($bus)->{read_only}, 'read-only: the ledger is');
my @file = stat ledger_file('guest');
fault("remove $path");
ok(rescanned(), 'read-only: the GPU goes');
like(allocation($bus, 'guest')->{reason}, names($gpu), 'read-only: that is said');
is((stat ledger_file('guest'))[1], $file[1], 'read-only: and not written');
unlink "$ENV{STATE_DIRECTORY}/allocations/newer.json" or die $!;
restart();
is(release($bus, 'guest'), 'done', 'read-only: released when it is not any more');
fault('write sys/bus/pci/rescan 1');
ok(rescanned(), 'read-only: it comes back');
same_tree($before, 'read-only: the tree is that of the start');

# ---- asked to read its configuration again before it is up

for my $round (1 .. 3) {
        daemon('stop');
        my $starter = fork // die "fork: $!";
        if (!$starter) {
                daemon('start');
                exit 0;
        }
        ok(wait_until(\&blocks_sighup), "SIGHUP $round: the process is there");
        kill 'HUP', pid();
        waitpid $starter, 0;
        ok(!$bus->ping()->{error}, "SIGHUP $round: it came up all the same");
}

done_testing();
