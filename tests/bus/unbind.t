#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The users of a device of the host are looked for directly before its unbind, and NVIDIA's unbind lock is taken where the driver has one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my @gpus  = map { "0000:$_:00.0" } qw(13 23 33 43 93 a3 b3 c3);
my $third = $gpus[2];
# In the order of the list: all are unbound before one is bound.
configure("[Daemon]\nParallelDevices=1\n[Pool gpu]\nMatch=vendor=10de class=0302\n");
my $bus = Bus->new->listen;

fault(map { "set proc/driver/nvidia/gpus/$gpus[$_]/information Device Minor: \\t $_" } 0 .. $#gpus);
ok(!$bus->call('Rescan')->{error}, 'a rescan');

# The daemon reads the minor of a GPU after the driver was bound. Until then each process that has an NVIDIA device counts as a user of the GPU.
sub minors_known {
        my ($what) = @_;
        my %known = map { +"nvidia$_" => 1 } 0 .. $#gpus;
        return ok(wait_until(sub { 8 == grep { $known{$_} } map { @{ $_->{kernel_names} } } @{ describe($bus)->{devices} } }), "$what: the minors of all GPUs are known");
}
minors_known('a rescan');
my ($state, $tree) = (snapshot(), tree());

sub lock_path { my ($gpu) = @_; return "proc/driver/nvidia/gpus/$gpu/unbindLock" }

sub lock_of { my ($gpu) = @_; return slurp("$ENV{NODE_ROOT}/" . lock_path($gpu)) }

# The numbers of the writes to files of that name.
sub writes_to {
        my ($name) = @_;
        return map { /^(\d+) \S+\/\Q$name\E / ? $1 : () } write_log();
}

# Allocates all GPUs, has a process open the third one while write $n waits, and returns the result of the job.
sub allocate_opened {
        my ($n, $what, @change) = @_;
        fault('reset', "unkillable $n");
        my ($signature, $entries) = request(gpu => 8);
        my $reply = $bus->call('Allocate', "s$signature", 'all', $entries);
        is($reply->{error}, undef, "$what: the job begins");
        ok(wait_until(sub { grep { /^$n .*PENDING/ } write_log() }), "$what: a write waits");
        fault(@change, 'release');
        return $bus->result($reply->{body}[1]);
}

sub all_back {
        my ($what) = @_;
        is(join(' ', map { driver_of($_) } @gpus), join(' ', ('nvidia') x 8), "$what: all GPUs are with their driver");
        same_state($state, "$what: nothing is promised");
        ok(nodes_are_known($bus, @gpus), "$what: all nodes are known");
        return;
}

my @opens = ('set proc/900/comm nvidia-smi', 'set proc/900/cgroup 0::/system.slice/node-exporter.service', 'link proc/900/fd/3 /dev/nvidia2');
my $in_use = "$third is in use by process 900 (nvidia-smi, node-exporter.service). Stop the service first: systemctl stop node-exporter.service.";

# ---- a search

fault('reset');
is((allocate($bus, 'all', gpu => 8))[0], 'done', 'no user: all GPUs are had');
my @unbinds = writes_to('unbind');
is(scalar @unbinds, 8, '... by eight unbinds');
is((release($bus, 'all'))[0], 'done', '... and released');
same_tree($tree, '... to the tree as before');

minors_known('a user comes');
my $log = log_since();
is(allocate_opened($unbinds[1], 'a user comes', @opens), 'failed', 'a user comes before the third unbind: failed');
ok(!(grep { /\/unbind \Q$third\E / } write_log()), '... before that unbind');
is(scalar(grep { m{/nvidia/unbind }x } write_log()), 2, '... after two');
like(log_since($log), qr/\Q$in_use\E/, '... with who uses it');
all_back('a user comes');
fault('remove proc/900');
same_tree($tree, '... and the tree is as before');

# A process that opens another GPU of the job is found by its own check, and one of a GPU that is unbound has it no more.
minors_known('a user of the last');
is(allocate_opened($unbinds[1], 'a user of the last', @opens[0, 1], 'link proc/900/fd/3 /dev/nvidia7'), 'failed', 'a user of the last GPU: failed');
is(scalar(grep { m{/unbind \Q0000:} } write_log()), 7, '... after seven unbinds');
all_back('a user of the last');
fault('remove proc/900');

# ---- the lock

fault(map { 'set ' . lock_path($_) . ' 0' } @gpus);
$tree = tree();
fault('reset');
is((allocate($bus, 'all', gpu => 8))[0], 'done', 'with locks: all GPUs are had');
my @locks = writes_to('unbindLock');
@unbinds = writes_to('unbind');
is(scalar @locks, 8, '... with eight locks');
is(scalar(grep { $unbinds[$_] == $locks[$_] + 1 } 0 .. 7), 8, '... each directly before its unbind');
is((release($bus, 'all'))[0], 'done', '... and released');
same_tree($tree, '... to the tree as before, without a lock');

minors_known('with locks, a user comes');
$log = log_since();
is(allocate_opened($unbinds[1], 'with locks, a user comes', @opens), 'failed', 'with locks, a user comes: failed');
is(scalar(grep { m{/nvidia/unbind } } write_log()), 2, '... after two unbinds');
like(log_since($log), qr/\Q$in_use\E/, '... with who uses it');
all_back('with locks, a user comes');
fault('remove proc/900');
same_tree($tree, '... and no GPU is locked');

# The lock is refused, and no process is found.
$log = log_since();
fault('reset', "replace $locks[2] 0");
is((allocate($bus, 'all', gpu => 8))[0], 'failed', 'a lock is refused: failed');
like(log_since($log), names($third, 'unbind', 'lock'), '... with the reason');
all_back('a lock is refused');
same_tree($tree, '... and no GPU is locked');

# The unbind fails after the lock was taken.
fault('reset', "fail $unbinds[2] EIO");
is((allocate($bus, 'all', gpu => 8))[0], 'failed', 'an unbind fails: failed');
is(lock_of($third), "0\n", '... and its lock is given back');
all_back('an unbind fails');
same_tree($tree, '... and no GPU is locked');

# The child of the job dies between the lock and the unbind.
fault('reset', "kill $unbinds[2] before");
is((allocate($bus, 'all', gpu => 8))[0], 'failed', 'the job dies with a lock: failed');
is(lock_of($third), "1\n", '... and the lock is held');
is((release($bus, 'all'))[0], 'done', '... a release');
all_back('the job dies with a lock');
same_tree($tree, '... and no GPU is locked');

# Where another program holds it, it serves as well.
fault('reset', 'set ' . lock_path($third) . ' 1');
is((allocate($bus, 'all', gpu => 8))[0], 'done', 'a lock is held already: all GPUs are had');
is((release($bus, 'all'))[0], 'done', '... and released');
same_tree($tree, '... to the tree as before');

# ---- reference counts of the driver's modules

# Nobody answers who has files open, and nobody has to be asked: one reference is that of another module.
fault((map { 'remove ' . lock_path($_) } @gpus), 'set sys/module/nvidia/refcnt 1', 'set sys/module/nvidia/holders/nvidia_fs x');
$tree = tree();
kill 'STOP', -holders_pid() or die "kill: $!";
is((allocate($bus, 'all', gpu => 8))[0], 'done', 'no reference to the modules: all GPUs are had without a search');
kill 'CONT', -holders_pid() or die "kill: $!";
is((release($bus, 'all'))[0], 'done', '... and released');
same_tree($tree, '... to the tree as before');
minors_known('a reference more');
fault('set sys/module/nvidia/refcnt 2', @opens);
is((allocate($bus, 'all', gpu => 8))[1], $in_use, 'a reference more: a process is searched for');
fault('remove proc/900');
is((allocate($bus, 'all', gpu => 8))[0], 'done', 'it is that of a process without these GPUs: all GPUs are had');
is((release($bus, 'all'))[0], 'done', '... and released');

# ---- the way back: a guest that opens a device meanwhile keeps it

sub guest_opens {
        my ($gpu) = @_;
        my $group = device($bus, $gpu)->{iommu_group};
        return ('set ' . ((readlink "$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{^(\.\./)+}{sys/}r) . '/enable 1', 'set proc/901/comm qemu-system-x86', "link proc/901/fd/9 /dev/vfio/$group");
}

my @asked = ('Release', 'st', 'two');
for my $write ('reset', 'driver_override') {
        my $what = "opened before the " . ($write eq 'reset' ? 'reset' : 'unbind');
        is((allocate($bus, 'two', gpu => 2))[0], 'done', "$what: two GPUs");
        my $victim = $gpus[1];
        fault('reset', $write eq 'reset' ? "unkillable reset\@$gpus[0]" : "unkillable driver_override\@$victim");
        my $reply = $bus->call(@asked, Node::generation($bus, 'two'));
        ok(wait_until(sub { grep { /PENDING/ } write_log() }), "$what: the release is at work");
        fault(guest_opens($victim), 'release');
        is($bus->result($reply->{body}[0]), 'failed', "$what: the release fails");
        is(allocation_state($bus, 'two'), 'ready', "$what: the allocation is ready, as before");
        ok(!(grep { $write eq 'reset' ? m{\Q$victim\E/reset } : m{/unbind \Q$victim\E } } write_log()), "$what: no such write");
        is(driver_of($_), 'vfio-pci', "$what: $_ is where it was") for @gpus[0, 1];
        fault('remove proc/901');
        is((release($bus, 'two'))[0], 'done', "$what: the guest has ended: released, though the device is enabled still");
}

# A device of the same release is in quarantine by then: no guest may start with the allocation.
fault('reset');
is((allocate($bus, 'two', gpu => 3))[0], 'done', 'quarantine and a guest: three GPUs');
fault('reset', "fail reset\@$gpus[0] EIO", "unkillable reset\@$gpus[1]");
my $asked = $bus->call(@asked, Node::generation($bus, 'two'));
ok(wait_until(sub { grep { /PENDING/ } write_log() }), '... one reset has failed, one is at work');
fault(guest_opens($gpus[2]), 'release');
is($bus->result($asked->{body}[0]), 'failed', '... a guest opens the third: the release fails');
is(allocation_state($bus, 'two'), 'failed', '... and the allocation is no longer ready');
fault('remove proc/901');
is((release($bus, 'two'))[0], 'done', '... the guest has ended: released');
is(clear_quarantine($bus), 1, '... and the first GPU was in quarantine');

# ---- at the start of the daemon

# Devices of the pool are bound before the daemon is ready. A process opens one between the check of its job and its unbind.
fault('reset');
daemon('stop');
spew("$ENV{NODE_TMP}/passthroughd.conf", "[Daemon]\nParallelDevices=1\n[Pool gpu]\nMatch=vendor=10de class=0302\nBind=start\n");
fault("unkillable driver_override\@$third");
$log = log_since();
my $start = fork // die "fork: $!";
if (!$start) { exec "$ENV{NODE_TMP}/start-daemon" or die "start-daemon: $!" }
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'at the start: a GPU is not unbound yet');
fault(@opens, 'release');
waitpid $start, 0;
is($?, 0, '... the daemon starts');
is(driver_of($third), 'nvidia', '... and leaves the GPU, which a process has opened');
ok(!(grep { /\/unbind \Q$third\E / } write_log()), '... and never unbound it');
like(log_since($log), names($third, 900, 'nvidia-smi'), '... and says so');

done_testing();
