#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Of eight GPUs and eight VFs one GPU hangs in its reset, one is off the bus, and a process opens one while they are unbound. Each costs itself:
# the next guest has the other five, and all VFs, without a reboot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd qw(abs_path);
use Test::More;
use Time::HiRes 'time';

use Node;

use constant { LIMIT => 4, RESET_LIMIT => 12, DELAY_MSEC => 50 };

node('hgx-h100', configure => 1);
configure("[Daemon]\nJobTimeoutSec=" . LIMIT . "\n" . slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/^\[Daemon\]\n//r);

my $bus  = Bus->new->listen;
my @gpus = map { $_->{address} } grep { ($_->{pool} // '') eq 'gpu' } @{ describe($bus)->{devices} };
my ($hangs, $dead, $opened) = @gpus[1, 4, 6];
my @five = @gpus[0, 2, 3, 5, 7];
is(scalar @gpus, 8, 'eight GPUs');
fault(map { "set proc/driver/nvidia/gpus/$gpus[$_]/information Device Minor: \\t $_" } 0 .. $#gpus);
minors_are_known();
my ($path) = map { s{^\Q$ENV{NODE_ROOT}\E/}{}r } abs_path("$ENV{NODE_ROOT}/sys/bus/pci/devices/$dead");
my $alive = substr slurp("$ENV{NODE_ROOT}/$path/config"), 0, 64;
my $before = tree();
my $state  = snapshot();

sub minors_are_known {
        ok(!$bus->call('Rescan')->{error}, 'a rescan');
        return ok(nodes_are_known($bus, @five, $opened), 'the minors of the GPUs are known');
}

sub unbinds_of_opened { return scalar grep { m{/nvidia/unbind \Q$opened\E } } write_log() }

sub states { my (@of) = @_; return [map { device($bus, $_)->{state} } @of] }

# ---- how long one healthy device takes

fault('reset', 'delay-all ' . DELAY_MSEC);
is(allocate($bus, 'guest', gpu => 1), 'done', 'one GPU: allocated');
my $start = time;
is(release($bus, 'guest'), 'done', 'one GPU: released');
my $alone = time - $start;

# ---- the release

is(allocate($bus, 'guest', gpu => 8, rdma => 8), 'done', 'all are allocated');
my @vfs = map { $_->{address} } grep { $_->{slot} =~ /^rdma/ } @{ allocation($bus, 'guest')->{devices} };
fault("unkillable reset\@$hangs", "write $path/config " . "\xff" x 64);
$start = time;
is(release($bus, 'guest'), 'done', 'the release ends well');
my $taken = time - $start;
cmp_ok($taken, '<', 4 * $alone + RESET_LIMIT + 5, 'in the time of a healthy device and the limit of the reset') or diag("$taken s, one device $alone s");
is_deeply(states(@five, $opened, @vfs), [('available') x 14], 'six GPUs and the VFs can be had');
is(device($bus, $hangs)->{state}, 'stuck', 'the one whose reset hangs is stuck');
like(device($bus, $hangs)->{reason}, names($hangs), '... with a reason');
is(device($bus, $dead)->{state}, 'quarantined', 'the one that is off the bus is in quarantine');
like(device($bus, $dead)->{reason}, names($dead), '... with a reason');
is_deeply([grep { m{/\Q$dead\E/reset } } write_log()], [], '... and was not reset');
is_deeply([sort map { $_->{address} } @{ describe($bus)->{quarantine} }], [sort $hangs, $dead], 'both are on record');

# ---- the next guest

minors_are_known();

my $log = log_since();
my $unbinds = unbinds_of_opened();
fault("delay driver_override\@$opened 1500");
my ($signature, $entries) = request(gpu => 6, rdma => 8);
my $reply = $bus->call('Allocate', "s$signature", 'next', $entries);
is($reply->{error}, undef, 'six GPUs and eight VFs are promised');
ok(wait_until(sub { grep { m{/\Q$opened\E/driver_override .*PENDING} } write_log() }), 'one is not unbound yet');
fault('set proc/900/comm nvidia-smi', 'set proc/900/cgroup 0::/user.slice/user-1000.slice', 'link proc/900/fd/3 /dev/nvidia6');
is($bus->result($reply->{body}[1]), 'failed', 'a process opens it: the job fails');
like(log_since($log), names($opened, 900, 'nvidia-smi'), '... and names the process');
is(unbinds_of_opened(), $unbinds, '... and the GPU was not unbound');
is_deeply([map { driver_of($_) } @five, $opened], [('nvidia') x 6], 'all are with their driver');
minors_are_known();
is(allocate($bus, 'next', gpu => 5, rdma => 8), 'done', 'the next guest has five, and the VFs');
is_deeply([sort map { $_->{address} } grep { $_->{slot} =~ /^gpu/ } @{ allocation($bus, 'next')->{devices} }], [sort @five], '... the healthy ones');
is(driver_of($opened), 'nvidia', 'the one that a process has open is with its driver');
is(release($bus, 'next'), 'done', 'the next guest ends');

# ---- the broken ones

fault('remove proc/900', 'release', 'reset', "write $path/config " . join("", map { sprintf "\\x%02x", ord } split //, $alive));
ok(wait_until(sub { device($bus, $hangs)->{state} eq 'quarantined' }), 'the reset comes back: in quarantine');
clear_quarantine($bus);
same_tree($before, 'the tree is that of the start');
same_state($state, 'and the ledger');

done_testing();
