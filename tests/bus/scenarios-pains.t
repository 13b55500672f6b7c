#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids: devices that are held, writes that hang, releases that come late, devices that do not come back well.
# A4 is in scenarios-critical.t, A7 in scenarios-sriov.t, A14 in purity.t.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Node;

node('../long/machine', configure => 1);

use constant PINGS => 50;

my ($gpu, $pf) = qw(0000:13:00.0 0000:82:00.0);
my $machine = slurp("$FindBin::Bin/../long/machine.conf");

# There is a systemd, for what cleans.
my $units = "$ENV{NODE_TMP}/units";
mkdir $units or die "$units: $!";
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $units or die "fake-systemd: $!" }
END { my $status = $?; if ($systemd) { kill 'TERM', $systemd; waitpid $systemd, 0 } $? = $status }
ok(wait_until(sub { Bus->new->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', 'org.freedesktop.systemd1')->{body}[0] }), 'there is a systemd');

my $bus = Bus->new->listen;

sub start_with { my ($text) = @_; configure($text); $bus->forget_signals(); fault('reset'); return }

sub path { my ($address, $name) = @_; return "sys/bus/pci/devices/$address/$name" }

sub addresses { my ($name) = @_; return map { $_->{address} } @{ allocation($bus, $name)->{devices} } }

# The middle one of the times that the daemon takes to answer.
sub latency {
        my @times = sort { $a <=> $b } map { my $began = time; $bus->ping()->{error} ? 1 : time - $began } 1 .. PINGS;
        return $times[@times / 2];
}

# ---- A5: a process in another mount namespace has a GPU open

start_with("$machine\n[Exclude]\nMatch=address=0000:84:00.0\n");
my $before = tree();
my $state  = snapshot();
my $id     = '0123456789abcdef' x 4;
fault('set proc/driver/nvidia/gpus/0000:13:00.0/information Device Minor: \\t 0', 'set proc/813/comm python3', 'link proc/813/ns/mnt mnt:[4026532999]',
        "set proc/813/cgroup 0::/system.slice/docker-$id.scope", 'link proc/813/fd/7 /dev/nvidia0');
ok(!$bus->call('Rescan')->{error}, 'A5: a container has the GPU open');
fault('reset');
my ($error, $sentence);
ok(wait_until(sub { my $began = time; ($error, $sentence) = allocate($bus, 'guest', gpu => 1); return time - $began < 1 }), 'A5: the answer comes within a second where the machine is not busy');
like($error, qr/\.Unavailable$/, 'A5: it is refused');
like($sentence, names($gpu, 813, 'python3', '0123456789ab'), 'A5: with process, command and container');
nothing_written('A5: nothing is written');
same_state($state, 'A5: nothing is promised');
ok(wait_until(sub { latency() < 0.1 }), 'A5: the daemon answers');
fault('remove proc/813', 'remove proc/driver');
is(allocate($bus, 'guest', gpu => 1), 'done', 'A5: the container ends, and the same call succeeds');
is(release($bus, 'guest'), 'done', 'A5: released');
same_tree($before, 'A5: to the tree of the start');

# ---- A6: the kernel does not come back from an unbind, and from a change of the number of VFs

start_with("[Daemon]\nJobTimeoutSec=4\n$machine");
my ($signature, $entries) = request(gpu => 1);
my %hanging = (
        'unbind' => [$gpu, 3, 'Allocate', "s$signature", 'guest', $entries],
        'numvfs' => [$pf, 1, 'SetVirtualFunctions', 'su', $pf, 2],
);
for my $what (sort keys %hanging) {
        my ($device, $n, @call) = @{ $hanging{$what} };
        my $tree = tree();
        fault('reset', "unkillable $n");
        my $reply = $bus->call(@call);
        ok(wait_until(sub { grep { /^$n .*PENDING/ } write_log() }), "A6: $what: the write hangs") or diag($reply->{body}[0]);
        cmp_ok(latency(), '<', 1, "A6: $what: the daemon answers meanwhile");
        is($bus->result($reply->{body}[-1]), 'timeout', "A6: $what: at the deadline the job ends");
        is(device($bus, $device)->{state}, 'stuck', "A6: $what: $device is stuck");
        like(device($bus, $device)->{reason}, names($device), "A6: $what: and it is said in what");
        ok(wait_until(sub { latency() < 0.1 }), "A6: $what: the daemon answers");
        is(allocate($bus, 'other', ethernet => 1), 'done', "A6: $what: another device works");
        is(release($bus, 'other'), 'done', "A6: $what: and back");
        fault('release');
        ok(wait_until(sub { device($bus, $device)->{state} ne 'stuck' }), "A6: $what: when the write comes back it is not stuck");
        if ($what eq 'unbind') {
                is(release($bus, 'guest'), 'done', "A6: $what: and can be released");
                same_tree($tree, "A6: $what: the tree is that of the start");
        } else {
                ok(wait_until(sub { my $job = $bus->call('SetVirtualFunctions', 'su', $pf, 4); !$job->{error} && $bus->result($job->{body}[0]) eq 'done' }), "A6: $what: and can be changed");
        }
}

# ---- A8: a release that comes late

start_with($machine);
my @vlan = (ethernet => 2, 'vf-attributes' => [['ethernet0', 'vlan=100'], ['ethernet1', 'vlan=101']]);
is(allocate($bus, 'L1', ethernet => 2), 'done', 'A8: L1 is granted');
my $l1 = Node::generation($bus, 'L1');
is(release($bus, 'L1'), 'done', 'A8: and released');
is(allocate($bus, 'L2', @vlan), 'done', 'A8: L2 has the same VFs');
for my $next ('L2', 'L1') {
        my ($tree, $all) = (tree(), snapshot(times => 1));
        fault('reset');
        my $reply = $bus->call('Release', 'st', 'L1', $l1);
        my $what  = "A8: the old owner releases L1 once more, and $next has them";
        $next eq 'L1' ? is_error($reply, 'Stale', ['stale-generation', 'L1'], $what) : is_deeply($reply->{body}, ['/'], $what);
        nothing_written('A8: nothing is written');
        same_tree($tree, 'A8: its VFs are as it wants them');
        same_state($all, 'A8: and so is the ledger', times => 1);
        is(release($bus, $next), 'done', "A8: $next is released");
        is(allocate($bus, 'L1', @vlan), 'done', 'A8: another L1 has the same VFs') if $next eq 'L2';
}

# ---- A12: a guest leaves a device that is wedged

start_with($machine =~ s/(\[Pool gpu\]\n)/$1CleanerCommand=\/usr\/bin\/env\n/r);
$before = tree();
my $alive  = slurp("$ENV{NODE_ROOT}/" . path($gpu, 'config'));
sub config { my ($bytes) = @_; return 'write ' . path($gpu, 'config') . ' ' . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes }
my %wedged = (
        'the reset fails'             => ['0',    sub { "fail reset\@$gpu EIO" },            qr/\breset\b/],
        'its config space reads ones' => ['0',    sub { config("\xff" x length $alive) }, qr/\bconfig space\b/],
        'the cleaner fails'           => ['1',    sub { 'reset' },                            qr/\bclean\b/],
        'the cleaner hangs'           => ['hang', sub { 'reset' },                            qr/\bclean\b/],
);
start_with("[Daemon]\nJobTimeoutSec=8\n" . slurp("$ENV{NODE_TMP}/passthroughd.conf"));
for my $what (sort keys %wedged) {
        my ($cleaner, $fault, $evidence) = @{ $wedged{$what} };
        spew("$units/log",           '');
        spew("$units/command.state", "0\n");
        is(allocate($bus, 'guest', gpu => 1, @vlan), 'done', "A12: $what: a GPU and VFs");
        my ($device) = grep { !device($bus, $_)->{physical_function} } addresses('guest');
        is($device, $gpu, "A12: $what: this GPU");
        $bus->forget_signals();
        spew("$units/command.state", "$cleaner\n");
        fault('reset', $fault->());
        my $reply   = $bus->call('Release', 'st', 'guest', Node::generation($bus, 'guest'));
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' });
        is($signals[-1]{body}[2], 'done', "A12: $what: released");
        ok((grep { ($_->{body}[1]{State} // '') eq 'quarantined' } grep { $_->{member} eq 'PropertiesChanged' } @signals), "A12: $what: a signal tells of the quarantine");
        is(device($bus, $gpu)->{state}, 'quarantined', "A12: $what: it is not in the pool");
        like(device($bus, $gpu)->{reason}, $evidence, "A12: $what: with the evidence");
        is(slurp("$units/log"), '', "A12: $what: what was not reset is not cleaned") if $what !~ /cleaner/;
        restart();
        $bus->forget_signals();
        is(device($bus, $gpu)->{state}, 'quarantined', "A12: $what: nor after a restart");
        fault('reset', config($alive));
        ok(clear_quarantine($bus), "A12: $what: an admin has looked");
        same_tree($before, "A12: $what: VFs and all are as at the start");
}
spew("$units/log",           '');
spew("$units/command.state", "0\n");
is(allocate($bus, 'guest', gpu => 1), 'done', 'A12: the cleaner succeeds: a GPU');
is(release($bus, 'guest'), 'done', 'A12: the cleaner succeeds: released');
is(slurp("$units/log"), "run /usr/bin/env $gpu\n", 'A12: the cleaner succeeds: it was asked');
is(device($bus, $gpu)->{state}, 'available', 'A12: the cleaner succeeds: and the GPU is in the pool');
same_tree($before, 'A12: the tree is that of the start');

done_testing();
