#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The steps of different devices run side by side, those of each device in their order. A device that fails or hangs costs itself.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX ();
use Test::More;

use Node;

node('hgx-h100', configure => 1);

my $pools = <<'END';
[Pool gpu]
Match=vendor=10de class=0302
END
configure($pools);

my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();
my @gpus   = map { $_->{address} } grep { ($_->{pool} // '') eq 'gpu' } @{ describe($bus)->{devices} };
is(scalar @gpus, 8, 'the node has eight GPUs');

# What was written for the device, without the number: by the directory of the file, or by what was written.
sub writes_of {
        my ($device) = @_;
        return map { s/^\d+ //r } grep { /\Q$device\E/ } write_log();
}

sub home {
        my ($what) = @_;
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
        return;
}

# ---- side by side

# All eight are in the same write at one time, and nothing of it takes effect before.
sub side_by_side {
        my ($file, $operation, @call) = @_;
        fault('reset', map { "unkillable $file\@$_" } @gpus);
        my $reply = $bus->call(@call);
        is($reply->{error}, undef, "$operation: begins");
        ok(wait_until(sub { 8 == grep { m{/$file .*PENDING} } write_log() }), "$operation: eight writes to '$file' at a time") or diag(join "\n", write_log());
        fault('release');
        return is($bus->result($reply->{body}[-1]), 'done', "$operation: done");
}

fault('reset');
is(allocate($bus, 'guest', gpu => 1), 'done', 'one GPU');
is(release($bus, 'guest'), 'done', '... released');
my $alone = join "\n", writes_of($gpus[0]);
my ($signature, $entries) = request(gpu => 8);
side_by_side('unbind', 'allocate', 'Allocate', "s$signature", 'guest', $entries);
is(release($bus, 'guest'), 'done', '... released');
fault('reset');
is(allocate($bus, 'guest', gpu => 8), 'done', 'eight GPUs');
is(release($bus, 'guest'), 'done', '... released');
my %order = map { $_ => [writes_of($_)] } @gpus;
is(allocate($bus, 'guest', gpu => 8), 'done', 'eight GPUs');
side_by_side('reset', 'release', 'Release', 'st', 'guest', Node::generation($bus, 'guest'));
home('eight GPUs');
for my $gpu (@gpus) {
        my $text = join "\n", @{ $order{$gpu} };
        $text =~ s{\S*/devices/\S*\Q$gpu\E/}{DEVICE/}g;
        $text =~ s/\Q$gpu\E/DEVICE/g;
        (my $expected = $alone) =~ s{\S*/devices/\S*\Q$gpus[0]\E/}{DEVICE/}g;
        $expected =~ s/\Q$gpus[0]\E/DEVICE/g;
        is($text, $expected, "$gpu: its writes are in the order of a GPU alone");
}

configure("[Daemon]\nJobTimeoutSec=6\nParallelDevices=1\n$pools");
$bus->forget_signals();
fault('reset');
is(allocate($bus, 'guest', gpu => 8), 'done', 'one at a time: allocated');
my @paths = map { (split / /)[1] } write_log();
is_deeply([map { m{([^/]+)$} } @paths], [sort { order_of($a) <=> order_of($b) } map { m{([^/]+)$} } @paths], 'one at a time: all are unbound before one is bound') or diag("@paths");
is(release($bus, 'guest'), 'done', 'one at a time: released');
home('one at a time');
configure("[Daemon]\nJobTimeoutSec=6\n$pools");
$bus->forget_signals();

# The place of a kind of file in the list of steps.
sub order_of {
        my ($file) = @_;
        my %order = (d3cold_allowed => 0, control => 0, driver_override => 1, unbind => 2, drivers_probe => 3);
        return $order{$file} // 4;
}

# ---- a write that fails

for my $file ('driver_override', 'unbind', 'drivers_probe') {
        my $what = "$file of the fourth fails";
        fault('reset', "fail $file\@$gpus[3] EIO");
        my ($result) = allocate($bus, 'guest', gpu => 8);
        is($result, 'failed', "$what: the job fails");
        is_deeply([map { driver_of($_) } @gpus], [('nvidia') x 8], "$what: every GPU is with its driver");
        home($what);
}

# ---- a write that hangs

for my $kind ('hang', 'unkillable') {
        my $what = "the bind of the fourth: $kind";
        fault('reset', "$kind drivers_probe\@$gpus[3]");
        is(allocate($bus, 'guest', gpu => 8), 'timeout', "$what: the job is given up");
        is(device($bus, $gpus[3])->{state}, 'stuck', "$what: the GPU is stuck") if $kind eq 'unkillable';
        is_deeply([map { driver_of($gpus[$_]) } 0 .. 2, 4 .. 7], [('nvidia') x 7], "$what: the others are with their driver");
        is(release($bus, 'guest'), 'done', "$what: the allocation is released");
        is(allocate($bus, 'next', gpu => 7), 'done', "$what: the next guest has seven") if $kind eq 'unkillable';
        is(release($bus, 'next'), 'done', "$what: and returns them") if $kind eq 'unkillable';
        fault('release', 'reset');
        if ($kind eq 'unkillable') {
                ok(wait_until(sub { device($bus, $gpus[3])->{state} eq 'quarantined' }), "$what: the GPU is in quarantine");
                clear_quarantine($bus);
        }
        ok(wait_until(sub { !grep { /PENDING/ } write_log() }), "$what: nothing waits");
        home($what);
}

for my $kind ('hang', 'unkillable') {
        my $what = "the reset of the fourth: $kind";
        fault('reset');
        is(allocate($bus, 'guest', gpu => 8), 'done', "$what: allocated");
        fault('reset', "$kind reset\@$gpus[3]");
        is(release($bus, 'guest'), 'done', "$what: the others are released");
        my $device = device($bus, $gpus[3]);
        is($device->{state}, $kind eq 'hang' ? 'quarantined' : 'stuck', "$what: the GPU is kept") or diag($device->{reason});
        like($device->{reason}, names($gpus[3]), "$what: with a reason");
        is_deeply([map { device($bus, $gpus[$_])->{state} } 0 .. 2, 4 .. 7], [('available') x 7], "$what: the others can be had");
        is(allocate($bus, 'next', gpu => 7), 'done', "$what: the next guest has seven");
        is(release($bus, 'next'), 'done', "$what: and returns them");
        ok(!plan_ok($bus, gpu => 8), "$what: nobody gets eight");
        fault('release', 'reset');
        ok(wait_until(sub { device($bus, $gpus[3])->{state} eq 'quarantined' }), "$what: the GPU is in quarantine");
        clear_quarantine($bus);
        home($what);
}

# ---- a daemon that ends while a process hangs

fault('reset', "unkillable drivers_probe\@$gpus[3]");
is(allocate($bus, 'guest', gpu => 8), 'timeout', 'restart: the job is given up');
is(daemon('restart'), 0, 'restart: the daemon starts again');
$bus->forget_signals();
is(device($bus, $gpus[3])->{state}, 'stuck', 'restart: the GPU is stuck');
is_deeply([map { device($bus, $gpus[$_])->{state} } 0 .. 2, 4 .. 7], [('allocated') x 7], 'restart: the others are not');
is(release($bus, 'guest'), 'done', 'restart: the allocation is released');
is(allocate($bus, 'next', gpu => 7), 'done', 'restart: the next guest has seven');
is(release($bus, 'next'), 'done', 'restart: and returns them');
fault('release', 'reset');
ok(wait_until(sub { device($bus, $gpus[3])->{state} eq 'quarantined' }), 'restart: the GPU is in quarantine once the kernel returns');
clear_quarantine($bus);
home('restart');

# ---- the daemon is killed while a process hangs and the job still runs

sub killed_beside_hang {
        my ($what, $write, @call) = @_;
        fault('reset', map { "unkillable $write\@$gpus[$_]" } 3, 5);
        is($bus->call(@call)->{error}, undef, "$what: begins");
        ok(wait_until(sub { my @log = write_log(); 6 == grep({ m{/$write .*OK} } @log) && 2 == grep { /PENDING/ } @log }), "$what: six have written, two hang") or diag(join "\n", write_log());
        restart('KILL');
        $bus = Bus->new->listen;
        is_deeply([map { device($bus, $gpus[$_])->{state} } 3, 5], [('stuck') x 2], "$what: the two are stuck");
        is_deeply([map { device($bus, $gpus[$_])->{state} } 0 .. 2, 4, 6, 7], [('allocated') x 6], "$what: the others are not");
        like(allocation($bus, 'guest')->{reason}, names($gpus[3]), "$what: the allocation waits, and says for what");
        is(release($bus, 'guest'), 'done', "$what: its owner releases it");
        is(allocate($bus, 'next', gpu => 6), 'done', "$what: the next guest has six");
        is(release($bus, 'next'), 'done', "$what: and returns them");
        fault('release', 'reset');
        ok(wait_until(sub { 2 == grep { device($bus, $gpus[$_])->{state} eq 'quarantined' } 3, 5 }), "$what: the two are in quarantine once the kernel returns");
        clear_quarantine($bus);
        home($what);
        return;
}

killed_beside_hang('killed in allocate', 'drivers_probe', 'Allocate', "s$signature", 'guest', $entries);
is(allocate($bus, 'guest', gpu => 8), 'done', 'allocated');
killed_beside_hang('killed in release', 'reset', 'Release', 'st', 'guest', Node::generation($bus, 'guest'));

# ---- one of several devices to attach hangs

is(allocate($bus, 'guest', gpu => 1), 'done', 'attach: a guest has one');
for my $restarted (0, 1) {
        my $what = $restarted ? 'attach, and a restart' : 'attach';
        my ($types, $values) = request(gpu => 7);
        fault('reset', "unkillable drivers_probe\@$gpus[3]");
        is($bus->result($bus->call('Attach', "st$types", 'guest', Node::generation($bus, 'guest'), $values)->{body}[0]), 'timeout', "$what: the job is given up");
        if ($restarted) {
                restart();
                $bus = Bus->new->listen;
        }
        my ($slot) = map { $_->{slot} } grep { $_->{address} ne $gpus[0] } @{ allocation($bus, 'guest')->{devices} };
        my @detach = ('Detach', 'sts', 'guest', Node::generation($bus, 'guest'), $slot);
        if ($restarted) {
                is_error($bus->call(@detach), 'Unavailable', ['stuck'], "$what: the guest may have the GPU, for all that is known");
                fault('release', 'reset');
                ok(wait_until(sub { device($bus, $gpus[3])->{state} ne 'stuck' }), "$what: the kernel returns");
                ok(wait_until(sub { 1 == @{ allocation($bus, 'guest')->{devices} } }), "$what: the seven are detached");
                next;
        }
        my $reply = $bus->call(@detach);
        is($reply->{error}, undef, "$what: a detach begins") or diag($reply->{body}[0]);
        is($bus->result($reply->{body}[0]), 'done', "$what: the others are detached");
        is(scalar @{ allocation($bus, 'guest')->{devices} }, 1, "$what: the guest has its own GPU");
        is(allocate($bus, 'next', gpu => 6), 'done', "$what: the next guest has six");
        is(release($bus, 'next'), 'done', "$what: and returns them");
        is(device($bus, $gpus[3])->{state}, 'stuck', "$what: the GPU is stuck");
        fault('release', 'reset');
        ok(wait_until(sub { device($bus, $gpus[3])->{state} eq 'quarantined' }), "$what: then it is in quarantine");
        clear_quarantine($bus);
}
is(release($bus, 'guest'), 'done', 'attach: the guest returns its own');
home('attach');

# ---- the child of the job is killed alone, while the kernel has one of its processes

fault('reset', "unkillable unbind\@$gpus[3]");
my $asked = $bus->call('Allocate', "s$signature", 'guest', $entries);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a dead child: a write hangs');
kill 'KILL', daemon_children('passthroughd-jo');
is($bus->result($asked->{body}[1]), 'failed', 'a dead child: the job fails');
is(device($bus, $gpus[3])->{state}, 'stuck', 'a dead child: the GPU is stuck');
ok(!grep({ device($bus, $gpus[$_])->{state} eq 'stuck' } 0 .. 2, 4 .. 7), 'a dead child: the others are not');
ok(!plan_ok($bus, gpu => 8), 'a dead child: nobody gets it');
fault('release', 'reset');
ok(wait_until(sub { device($bus, $gpus[3])->{state} ne 'stuck' }), 'a dead child: until the kernel returns');
is(release($bus, 'guest'), 'done', 'a dead child: the allocation is released');
clear_quarantine($bus);
home('a dead child');

# ---- at start, a PF hangs before it makes its VFs

my @pfs = map { m{([^/]+)/sriov_numvfs$} } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/*/sriov_numvfs";
daemon('stop');
fault('reset', "unkillable sriov_drivers_autoprobe\@$pfs[0]");
spew("$ENV{NODE_TMP}/passthroughd.conf", <<'END');
[Pool gpu]
Match=vendor=10de class=0302
Bind=start

[Pool rdma]
Match=vendor=15b3 type=vf id=15b3:101e
VirtualFunctions=2
Bind=start
END
my $starter = fork // die "fork: $!\n";
POSIX::_exit(daemon('start')) if !$starter;
ok(wait_until(sub { grep { /sriov_drivers_autoprobe .*PENDING/ } write_log() }), 'the start: a PF hangs');

sub bound_vfs {
        my ($pf) = @_;
        return grep { driver_of(readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/virtfn$_") =~ s{.*/}{}r) eq 'vfio-pci' } 0 .. slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/sriov_numvfs") - 1;
}
ok(wait_until(sub { !grep { bound_vfs($_) != 2 } @pfs[1 .. $#pfs] }), '... the VFs of the others are bound');
ok(wait_until(sub { !grep { driver_of($_) ne 'vfio-pci' } @gpus }), '... and the GPUs');
ok(scalar(grep { /sriov_drivers_autoprobe .*PENDING/ } write_log()), '... while it hangs');
fault('release');
waitpid $starter, 0;
is($?, 0, 'the start: the daemon is ready');
is(bound_vfs($pfs[0]), 2, '... with the VFs of all PFs');

done_testing();
