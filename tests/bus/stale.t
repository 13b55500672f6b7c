#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What changed after the last scan, by another hand and without a word, is seen before anything is promised or moved.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use Node;

node('hgx-h100', configure => 1);

my ($gpu, $pf, $nic) = qw(0000:13:00.0 0000:14:00.0 0000:51:00.1);

sub config {
        my ($daemon, @pools) = @_;
        return join "\n", '[Daemon]', $daemon, '[Pool gpu]', 'Match=vendor=10de class=0302', @pools, '';
}

my @pools = ('[Pool pf]', "Match=address=$pf", '[Pool nic]', "Match=address=$nic");
configure(config('', @pools));

my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();

sub insufficient {
        my ($what, @pairs) = @_;
        fault('reset');
        my ($error, $sentence) = allocate($bus, 'late', @pairs);
        like($error, qr/\.Error\.(?:Insufficient|Unavailable)$/, "$what: it is refused") and note($sentence);
        nothing_written("$what: nothing is written");
        same_state($state, "$what: and nothing promised");
        release_all($bus) if $error eq 'done';
        return;
}

# Starts a daemon beside or instead of the one there is; its process and the file of its log.
sub spawn {
        my @args = do { local $/ = "\0"; open my $f, '<', "$ENV{NODE_TMP}/daemon.args" or die $!; my @all = <$f>; chomp @all; @all };
        my $log  = "$ENV{NODE_TMP}/second.log";
        my $pid  = fork // die "fork: $!";
        if (!$pid) {
                open STDOUT, '>',  $log      or POSIX::_exit(127);
                open STDERR, '>&', \*STDOUT or POSIX::_exit(127);
                delete $ENV{NOTIFY_SOCKET};
                exec { $args[0] } @args or POSIX::_exit(127);
        }
        return ($pid, $log);
}

# The exit status of a process that must end, for which there may be something to do; undef if it does not.
sub ends {
        my ($pid, $meanwhile) = @_;
        return $? if wait_until(sub { $meanwhile->() if $meanwhile; waitpid($pid, POSIX::WNOHANG()) == $pid });
        kill 'KILL', $pid;
        waitpid $pid, 0;
        return;
}

# ---- the default route moves to a NIC of a pool

ok(plan_ok($bus, nic => 1), 'the second port can be had');
my $route = slurp("$ENV{NODE_ROOT}/proc/net/route");
my $moved = $route =~ s/^eth0/eth1/mgr =~ s/\n\z//r =~ s/\t/\\t/gr =~ s/\n/\\n/gr;
fault("set proc/net/route $moved");
like(slurp("$ENV{NODE_ROOT}/proc/net/route"), qr/^eth1\t00000000\t/m, 'the default route moves there');
insufficient('the default route is there now', nic => 1);
fault('set proc/net/route ' . ($route =~ s/\n\z//r =~ s/\t/\\t/gr =~ s/\n/\\n/gr));
is((allocate($bus, 'late', nic => 1))[0], 'done', 'when it is back the port can be had');
is((release($bus, 'late'))[0], 'done', 'and is released');
same_tree($before, 'to the tree of the start');

# ---- VFs that somebody else made on a PF of a pool

ok(plan_ok($bus, pf => 1), 'the PF can be had');
fault("write sys/bus/pci/devices/$pf/sriov_numvfs 2");
my $vfs = tree();
insufficient('somebody made VFs of the PF', pf => 1);
same_tree($vfs, 'somebody made VFs of the PF: they stay');
fault("write sys/bus/pci/devices/$pf/sriov_numvfs 0");
ok(!$bus->call('Rescan')->{error}, 'the VFs go, and a rescan');
is((allocate($bus, 'late', pf => 1))[0], 'done', 'when they are gone the PF can be had');
is((release($bus, 'late'))[0], 'done', 'and is released');
same_tree($before, 'to the tree of the start');

# ---- CPUs and pages

my @cpus = (cpus => 104, cells => 1, numa => 'required', memory => 2**30);
ok(plan_ok($bus, @cpus), 'many CPUs of one node can be had');
my @online = map { "sys/devices/system/$_" } 'cpu/online', 'node/node0/cpulist', 'node/node1/cpulist';
my %online = map { $_ => slurp("$ENV{NODE_ROOT}/$_") =~ s/\n//r } @online;
is((allocate($bus, 'late', @cpus))[0], 'done', 'and are given');
is((release($bus, 'late'))[0], 'done', 'and given back');
fault("set $online[0] 0-7,16-63,72-119,128-175,184-223", "set $online[1] 0-7,16-55,112-119,128-167", "set $online[2] 56-63,72-111,168-175,184-223");
insufficient('CPUs went offline', @cpus);
is((allocate($bus, 'late', cpus => 16, memory => 2**30))[0], 'done', 'CPUs went offline: others can be had');
my %offline = map { $_ => 1 } 8 .. 15, 64 .. 71, 120 .. 127, 176 .. 183;
is_deeply([grep { $offline{$_} } map { $_->{cpu} } @{ allocation($bus, 'late')->{pins} }], [], 'CPUs went offline: none of those is promised');
is((release($bus, 'late'))[0], 'done', 'CPUs went offline: they are given back');
fault("set $_ $online{$_}") for @online;

my @pages = (memory => 300 * 2**30, 'page-size' => 2**30, cpus => 2, cells => 1, numa => 'required');
my @free  = map { "sys/devices/system/node/node$_/hugepages/hugepages-1048576kB/free_hugepages" } 0, 1;
ok(plan_ok($bus, @pages), '300 pages of one node can be had');
fault("set $_ 200") for @free;
insufficient('somebody took pages', @pages);
fault("set $_ 400") for @free;
is((allocate($bus, 'late', @pages))[0], 'done', 'when they are back they can be had');
is((release($bus, 'late'))[0], 'done', 'and are released');
same_tree($before, 'to the tree of the start');
same_state($state, 'and the ledger');

# ---- a guest by way of iommufd

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'iommufd: a GPU is allocated');
my ($address) = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my ($node) = map { s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/vfio-dev/vfio*";
ok($node, 'iommufd: it has a node');
fault("link proc/4711/fd/12 /dev/vfio/devices/$node", 'set proc/4711/comm qemu-kvm', 'reset');
my ($error, $sentence) = release($bus, 'guest');
like($error, qr/\.Error\.Unavailable$/, 'iommufd: the release is refused');
like($sentence // '', names($address, 4711, 'qemu-kvm'), 'iommufd: with process and command');
nothing_written('iommufd: nothing is written');
is(allocation_state($bus, 'guest'), 'ready', 'iommufd: it is ready as before');
fault('remove proc/4711');
is((release($bus, 'guest'))[0], 'done', 'iommufd: it can be released afterwards');
same_tree($before, 'iommufd: to the tree of the start');

# ---- another VFIO driver after a reload

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'VfioDriver= changes: a GPU is on vfio-pci');
spew("$ENV{NODE_TMP}/passthroughd.conf", config('VfioDriver=pci-stub', @pools));
ok(!$bus->call('Reload')->{error}, 'VfioDriver= changes: by a reload');
is((allocate($bus, 'new', gpu => 1))[0], 'done', 'VfioDriver= changes: a GPU for the new driver');
($address) = map { $_->{address} } @{ allocation($bus, 'new')->{devices} };
is(driver_of($address), 'pci-stub', 'VfioDriver= changes: is bound to it');
fault('reset');
restart();
$bus->forget_signals();
nothing_written('VfioDriver= changes: a start finds both in order');
is((release($bus, $_))[0], 'done', "VfioDriver= changes: '$_' is released") for 'guest', 'new';
same_tree($before, 'VfioDriver= changes: to the tree of the start');
same_state($state, 'VfioDriver= changes: and the ledger');
configure(config('JobTimeoutSec=4', @pools));
$bus->forget_signals();

# ---- a second daemon

my $everything = snapshot(times => 1);
fault('reset');
my ($second, $log) = spawn();
my $status = ends($second);
isnt($status // 0, 0, 'a second daemon ends with a failure');
like(slurp($log), names($ENV{STATE_DIRECTORY}), 'a second daemon: with a sentence');
nothing_written('a second daemon: writes nothing');
same_state($everything, 'a second daemon: nor to the ledger', times => 1);
ok(!$bus->ping()->{error}, 'a second daemon: the first one answers');
same_tree($before, 'a second daemon: the tree is as before');

# ---- SIGTERM while a write does not come back

my ($signature, $entries) = request(gpu => 1);
fault('reset', 'unkillable 2');
ok(!$bus->call('Allocate', "s$signature", 'guest', $entries)->{error}, 'SIGTERM in a job that hangs: it is begun');
ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), 'SIGTERM in a job that hangs: the write hangs');
my $daemon = pid();
kill 'TERM', $daemon;
ok(wait_until(sub { !kill 0, $daemon }), 'SIGTERM in a job that hangs: the daemon ends when the time of the job is up') or kill 'TERM', $daemon;
fault('release');
wait_until(sub { !kill 0, $daemon });
wait_until(sub { !grep { /PENDING/ } write_log() });
fault('reset');
daemon('stop');
is(daemon('start'), 0, 'SIGTERM in a job that hangs: the next daemon starts');
$bus->forget_signals();
isnt(allocation_state($bus, 'guest'), 'gone', 'SIGTERM in a job that hangs: the allocation is there');
is((release($bus, 'guest'))[0], 'done', 'SIGTERM in a job that hangs: it is released');
same_tree($before, 'SIGTERM in a job that hangs: to the tree of the start');

# ---- SIGTERM while VFs are made at start, which would be bound after that

my @vfs = ('[Pool rdma]', 'Match=type=vf id=15b3:101e', 'VirtualFunctions=2', 'Bind=start');
spew("$ENV{NODE_TMP}/passthroughd.conf", config('', 'Bind=start', @vfs));
is(daemon('stop'), 0, 'SIGTERM at start: the daemon stops');
my @pfs = map { m{([^/]+)/sriov_numvfs$} } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/*/sriov_numvfs";
fault('reset', map { "unkillable sriov_drivers_autoprobe\@$_" } @pfs);
($second, $log) = spawn();
ok(wait_until(sub { @pfs == grep { /sriov_\w+ \d+ -> PENDING/ } write_log() }), 'SIGTERM at start: VFs are being made');
kill 'TERM', $second;
ok(wait_until(sub { slurp($log) =~ /^.*\b\d+\b.*\bjobs\b/m }), 'SIGTERM at start: the daemon waits for that');
is(ends($second, sub { fault('release') }), 0, 'SIGTERM at start: the daemon ends in order') or diag(slurp($log));
my @written = write_log();
is((grep { /sriov_numvfs 2 -> OK/ } @written), @pfs, 'SIGTERM at start: the VFs are made');
is_deeply([grep { m{:(?:00\.[1-9]|01\.\d)/driver_override} } @written], [], 'SIGTERM at start: nothing was begun afterwards');
is_deeply([grep { !/ -> OK$/ } @written], [], 'SIGTERM at start: what was begun was finished');
unlike(slurp($log), qr/^Ready/m, 'SIGTERM at start: it never was ready');

# ---- more to take up again than can be at a time

fault('reset');
is(daemon('start'), 0, 'many: the daemon starts');
$bus->forget_signals();
my @gpus = sort keys %{ devices_state($bus, 'gpu') };
is_deeply([map { driver_of($_) } @gpus], [('vfio-pci') x 8], 'many: Bind=start binds all GPUs before the daemon is ready');
my $bound = tree();
my @names = map { "many-$_" } 1 .. 14;
is((allocate($bus, $_, rdma => 1))[0], 'done', "many: $_") for @names;
my $all = tree();
my %vf  = map { my $name = $_; map { $_->{address} => $name } @{ allocation($bus, $name)->{devices} } } @names;
is(daemon('stop', 'KILL'), 0, 'many: the daemon is killed');
for my $name (@names) {
        my $now = $name =~ /[13579]$/ ? 'preparing' : 'releasing';
        spew(ledger_file($name), slurp(ledger_file($name)) =~ s/"ready"/"$now"/r);
}
for my $vf (grep { $vf{$_} =~ /[13579]$/ } sort keys %vf) {
        fault("write sys/bus/pci/drivers/vfio-pci/unbind $vf", "write sys/bus/pci/devices/$vf/driver_override \\n");
}
other_hand_binds($_, '') for @gpus;
fault('reset');
is(daemon('start'), 0, 'many: the next one starts');
my $writes = writes();
my %state  = map { $_->[0] => $_->[1] } @{ $bus->call('ListAllocations')->{body}[0] };
is_deeply(\%state, { map { $_ => 'ready' } grep { /[13579]$/ } @names }, 'many: all are taken up before it is ready');
is_deeply([map { driver_of($_) } @gpus], [('vfio-pci') x 8], 'many: so are the devices that are bound from start');
is(writes(), $writes, 'many: and nothing is written afterwards');
$bus->forget_signals();
is((release($bus, $_))[0], 'done', "many: $_ is released") for sort keys %state;
same_tree($bound, 'many: the tree is as before');

done_testing();
