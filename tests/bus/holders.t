#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What somebody uses is not unbound: whoever it is is named, nothing is written, and when it has ended the device can be had.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my ($gpu, $spare, $pf, $disk, $nic) = qw(0000:13:00.0 0000:23:00.0 0000:14:00.0 0000:15:00.0 0000:51:00.1);
my %path = map { $_ => readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_") =~ s{^(?:\.\./)+}{sys/}r } $gpu, $spare, $pf, $disk, $nic;

sub pools {
        my (@more) = @_;
        my %address = (gpu => $gpu, spare => $spare, pf => $pf, disk => $disk, nic => $nic);
        return join "\n", (map { ("[Pool $_]", "Match=address=$address{$_}", $_ eq 'gpu' ? @more : ()) } sort keys %address), '';
}

configure(pools());
my $bus   = Bus->new->listen;
my $state = snapshot();

# A process that has files open, in a control group.
sub process {
        my ($pid, $comm, $cgroup, @nodes) = @_;
        fault("set proc/$pid/comm $comm", $cgroup ? "set proc/$pid/cgroup $cgroup" : (), map { "link proc/$pid/fd/" . (3 + $_) . " $nodes[$_]" } 0 .. $#nodes);
        return;
}

sub refused {
        my ($what, $pool, $sentence) = @_;
        my $tree = tree();
        fault('reset');
        my ($error, $message) = allocate($bus, 'late', $pool => 1);
        like($error, qr/\.Error\.Unavailable$/, "$what: it is refused");
        is($message, $sentence, "$what: with what stands in the way");
        nothing_written("$what: nothing is written");
        same_tree($tree, "$what: the tree is as before");
        same_state($state, "$what: nothing is promised");
        ok(plan_ok($bus, $pool => 1), "$what: a plan does not ask") if $error ne 'done';
        release_all($bus) if $error eq 'done';
        return;
}

sub can_be_had {
        my ($what, $pool) = @_;
        my $tree = tree();
        is((allocate($bus, 'late', $pool => 1))[0], 'done', "$what: it can be had");
        is((release($bus, 'late'))[0], 'done', "$what: and is released");
        same_tree($tree, "$what: to the tree as before");
        same_state($state, "$what: and the ledger");
        return;
}

# ---- GPUs

my %minor = ($gpu => 3, $spare => 5);
sub information { my ($address) = @_; return "proc/driver/nvidia/gpus/$address/information" }

# The children of the daemon that ask the driver.
sub asking { return daemon_children('passthroughd-nv') }

sub rescanned {
        my ($what) = @_;
        ok(!$bus->call('Rescan')->{error}, "$what: a rescan");
        ok(wait_until(sub { !daemon_children() }), "$what: the driver has answered");
        return;
}

fault(map { "set proc/driver/nvidia/gpus/$_/information Model: \\t\\t NVIDIA H100\\nDevice Minor: \\t $minor{$_}" } sort keys %minor);
process(812, 'nvidia-persiste', '0::/system.slice/nvidia-persistenced.service', '/dev/nvidiactl', '/dev/nvidia3');
rescanned('numbers');
refused('a daemon of the driver', 'gpu',
        "$gpu is in use by process 812 (nvidia-persiste, nvidia-persistenced.service). Stop the service first: systemctl stop nvidia-persistenced.service.");
can_be_had('the GPU that it has not', 'spare');
my ($status, undef, $err) = ctl('allocate', 'late', 'gpu=1');
isnt($status, 0, 'passthroughctl: fails');
like($err, names($gpu, 812, 'nvidia-persiste', 'nvidia-persistenced.service'), 'passthroughctl: says by whom');

my $id = '0123456789abcdef' x 4;
process(813, 'python3', "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-$id.scope", '/dev/nvidia3 (deleted)');
fault('remove proc/812');
refused('a container', 'gpu', "$gpu is in use by process 813 (python3, kubernetes container 0123456789ab). Stop the container first.");
process(90000, 'Xorg', '', '/dev/nvidia3');
refused('two of them', 'gpu', "$gpu is in use by process 813 (python3, kubernetes container 0123456789ab) and 1 more. Stop the container first.");
fault('remove proc/813', 'remove proc/90000');
can_be_had('a GPU that was let go', 'gpu');

# Memory of the GPU that the host has online.
my ($memory, $asked) = ("proc/driver/nvidia/gpus/$gpu/numa_status", 'sys/devices/system/node/node5/meminfo');
fault("set $memory Node:      5\\nStatus:    offline\\n", "set $asked Node 5 MemTotal:       0 kB");
rescanned('the node of the memory');
can_be_had('a GPU whose memory is offline', 'gpu');
rescanned('the node of the memory again, after the GPU was with its driver anew');
fault("set $asked Node 5 MemTotal:       1048576 kB");
my ($error, $message) = allocate($bus, 'late', gpu => 1);
like($error, qr/\.Error\.Insufficient$/, 'a GPU whose memory is online: refused');
like($message, names($gpu, 5), '... with the node');
ok(!plan_ok($bus, gpu => 1), '... by a plan too');
is(device($bus, $gpu)->{state}, 'host', '... the host has it');
for my $verb (qw(explain show)) {
        like((ctl($verb, $gpu))[1], $_, "... $verb tells it, and what to do") for names(5), names('nvidia-persistenced');
}
like((ctl('check'))[1], names($gpu), '... and a check');
fault("set $asked Node 5 MemTotal:       0 kB");
can_be_had('a GPU whose memory was taken offline', 'gpu');
fault("remove $memory", 'remove sys/devices/system/node/node5');
rescanned('a GPU without such memory');

process(813, 'python3', '', '/dev/nvidia5');
rescanned('another number');
can_be_had('a GPU whose number is another one', 'gpu');
fault('remove ' . information($gpu));
rescanned('a number that nobody tells');
refused('a number that nobody tells', 'gpu', "$gpu is in use by process 813 (python3). End the process first.");
fault('remove proc/813', 'set ' . information($gpu) . " Device Minor: \\t $minor{$gpu}");
rescanned('a number that is told again');

fault("set $path{$gpu}/drm/card4/dev 226:4");
process(813, 'Xorg', '', '/dev/dri/card4');
refused('a display server', 'gpu', "$gpu is in use by process 813 (Xorg). End the process first.");
fault('remove proc/813');
can_be_had('a GPU whose display server ended', 'gpu');

# ---- a driver that never answers

my $warning = names($gpu, 'driver', 'ignoring');
spew("$ENV{NODE_TMP}/passthroughd.conf", "[Daemon]\nJobTimeoutSec=10\n" . pools());
fault('remove ' . information($gpu), 'fifo ' . information($gpu));
my $before = log_since();
restart();
$bus = Bus->new->listen;
like(log_since($before), $warning, 'hangs: the start does not wait for ever');
process(813, 'python3', '', '/dev/nvidia5');
ok(!$bus->call('Rescan')->{error}, 'hangs: a rescan');
ok(wait_until(sub { asking() == 1 }), 'hangs: one process asks');
ok(!$bus->ping()->{error}, 'hangs: the daemon answers');
ok(!$bus->call('Rescan')->{error}, 'hangs: another rescan');
is(scalar asking(), 1, 'hangs: no second one');
is((allocate($bus, 'late', gpu => 1))[1], "$gpu is in use by process 813 (python3). End the process first.", 'hangs: whoever has any GPU open counts');
is((allocate($bus, 'late', pf => 1))[0], 'done', 'hangs: what is no GPU can be had');
is((release($bus, 'late'))[0], 'done', 'hangs: and released');
fault('remove proc/813');
is((allocate($bus, 'late', gpu => 1))[0], 'done', 'hangs: when nobody has one the GPU can be had');
is((release($bus, 'late'))[0], 'done', 'hangs: and released');
fault('remove ' . information($gpu), 'set ' . information($gpu) . " Device Minor: \\t $minor{$gpu}");
ok(wait_until(sub { !asking() }), 'hangs: it is given up');
rescanned('answers again');
process(813, 'python3', '', '/dev/nvidia5');
can_be_had('a GPU whose driver answers again', 'gpu');
fault('remove proc/813');
configure(pools());
$bus   = Bus->new->listen;
$state = snapshot();

# ---- RDMA, disks

fault("set $path{$pf}/infiniband_verbs/uverbs0/dev 231:192");
process(814, 'ib_write_bw', '', '/dev/infiniband/uverbs0');
refused('RDMA', 'pf', "$pf is in use by process 814 (ib_write_bw). End the process first.");
fault('remove proc/814');
can_be_had('an adapter that was let go', 'pf');

process(815, 'fio', '', '/dev/nvme2n1');
refused('a disk', 'disk', "$disk is in use by process 815 (fio). End the process first.");
fault('remove proc/815', "link $path{$disk}/nvme/nvme2/nvme2n1/holders/dm-7 ../../dm-7");
refused('a disk below device mapper', 'disk', "$disk is in use by the host: volume dm-7 is stacked on its disk nvme2n1. Deactivate the volume first.");
fault("remove $path{$disk}/nvme/nvme2/nvme2n1/holders");
can_be_had('a disk that was let go', 'disk');

# A kernel user that leaves no link at the disk: all places give the reason, and it ends with the use.
my ($number) = slurp("$ENV{NODE_ROOT}/$path{$disk}/nvme/nvme2/nvme2n1/dev") =~ /(\S+)/;
for (['an NVMe target', 'set sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/device_path /dev/nvme2n1', 'sys/kernel/config/nvmet'],
        ['a LIO target', 'set sys/kernel/config/target/core/iblock_0/x/udev_path /dev/nvme2n1', 'sys/kernel/config/target'],
        ['a heartbeat of OCFS2', 'set sys/kernel/config/cluster/c/heartbeat/77D95EF51C0149D2823674FCC162CF8B/dev nvme2n1', 'sys/kernel/config/cluster'],
        ['a USB gadget', 'set sys/kernel/config/usb_gadget/g/functions/mass_storage.0/lun.0/file /dev/nvme2n1', 'sys/kernel/config/usb_gadget'],
        ['a ZFS pool', "set run/udev/data/b$number E:ID_FS_LABEL=tank\\nE:ID_FS_TYPE=zfs_member", "run/udev/data/b$number"])
{
        my ($what, $use, $ended) = @$_;
        fault('set proc/spl/kstat/zfs/tank/state ONLINE', $use);
        my ($error, $message) = allocate($bus, 'late', disk => 1);
        like($error, qr/\.Error\.Insufficient$/, "$what: refused");
        like($message, qr/\Q$disk\E <- nvme2n1 <- /, "$what: with the way to it");
        ok(!plan_ok($bus, disk => 1), "$what: a plan refuses it too");
        for my $verb (['explain', $disk], ['show', $disk]) {
                like((ctl(@$verb))[1], qr/\Q$disk\E <-\s+nvme2n1 <-/, "$what: $verb->[0] tells it");
        }
        is(device($bus, $disk)->{state}, 'host', "$what: the host has it");
        fault("remove $ended");
        can_be_had($what, 'disk');
}
fault('remove proc/spl');

# ---- interfaces

fault("set $path{$nic}/net/eth1/flags 0x1003");
refused('an interface that is up', 'nic', "$nic is in use by the host: its interface eth1 is up. Take the interface down first: ip link set eth1 down.");
fault("set $path{$nic}/net/eth1/flags 0x1002", "link $path{$nic}/net/eth1/master ../../../../../virtual/net/bond0");
refused('an interface of a bond', 'nic', "$nic is in use by the host: its interface eth1 is a port of bond0. Detach the interface first: ip link set eth1 nomaster.");
fault("remove $path{$nic}/net/eth1/master");
can_be_had('an interface that is down', 'nic');

# ---- on the way back, and after a boot

is((allocate($bus, 'late', gpu => 1))[0], 'done', 'a GPU is allocated');
other_hand_binds($gpu, 'nvidia');
process(812, 'nvidia-persiste', '0::/system.slice/nvidia-persistenced.service', '/dev/nvidia3');
fault('reset');
is((release($bus, 'late'))[0], 'done', 'one that is with the host again, and used there, is released');
is(driver_of($gpu), 'nvidia', 'and stays there');
fault('remove proc/812');

is((allocate($bus, 'late', gpu => 1))[0], 'done', 'a GPU is allocated');
is(daemon('stop'), 0, 'the daemon stops');
other_hand_binds($gpu, '');
process(812, 'nvidia-persiste', '0::/system.slice/nvidia-persistenced.service', '/dev/nvidia3');
start_again($bus, 'after a boot');
is(allocation_state($bus, 'late'), 'failed', 'after a boot: what is used is not bound again');
like(allocation($bus, 'late')->{reason}, names($gpu, 'process 812', '(nvidia-persiste, nvidia-persistenced.service)'), 'after a boot: and it says by whom');
nothing_written('after a boot: nothing is written');
is((release($bus, 'late'))[0], 'done', 'after a boot: it is released');
fault('remove proc/812');
same_state($state, 'after a boot: the ledger is as before');

# ---- what another program has taken from a ready allocation

is((allocate($bus, 'late', gpu => 1))[0], 'done', 'taken: a GPU is allocated');
other_hand_binds($gpu, 'nvidia');
process(813, 'python3', '', '/dev/nvidia3');
ok(wait_until(sub { device($bus, $gpu)->{state} eq 'contested' }), 'taken: another program binds it to its driver, and it is contested');
fault('reset');
restart();
is(device($bus, $gpu)->{state}, 'contested', 'taken: the next daemon says the same');
is(allocation_state($bus, 'late'), 'failed', 'taken: the allocation cannot be used');
like(allocation($bus, 'late')->{reason}, names($gpu, 813, 'python3'), 'taken: because of the program');
nothing_written('taken: it is left alone');
fault('remove proc/813');
restart();
ok(wait_until(sub { allocation_state($bus, 'late') eq 'ready' }), 'taken: when the program has ended, the next start binds it again');
is(device($bus, $gpu)->{state}, 'allocated', 'taken: and it is as before');
is((release($bus, 'late'))[0], 'done', 'taken: it is released');

# ---- Bind=start

process(812, 'nvidia-persiste', '0::/system.slice/nvidia-persistenced.service', '/dev/nvidia3');
spew("$ENV{NODE_TMP}/passthroughd.conf", pools('Bind=start'));
is(daemon('stop'), 0, 'Bind=start: the daemon stops');
my $offset = log_since();
start_again($bus, 'Bind=start');
is(driver_of($gpu), 'nvidia', 'Bind=start: what is used stays with its driver');
nothing_written('Bind=start: nothing is written');
like(log_since($offset),
        names($gpu, 812, 'nvidia-persiste', 'nvidia-persistenced.service'),
        'Bind=start: the journal says why');
fault('remove proc/812');
restart();
is(driver_of($gpu), 'vfio-pci', 'Bind=start: when it has ended the next start binds it');

# ---- where there is another one, that is taken

configure("[Pool both]\nMatch=address=$gpu\nMatch=address=$spare\n");
process(812, 'qemu-system-x86', '', '/dev/vfio/' . device($bus, $gpu)->{iommu_group});
is((allocate($bus, 'late', both => 1))[0], 'done', 'two GPUs, one of them in use: the other one is given out');
is(allocation($bus, 'late')->{devices}[0]{address}, $spare, 'the one that nobody uses');
is((release($bus, 'late'))[0], 'done', 'it is released');
like((allocate($bus, 'late', both => 2))[1], names($gpu, 812), 'both are not to be had, and it says who is in the way');
is_deeply(devices_state($bus, 'both'), { $gpu => 'available', $spare => 'available' }, 'nothing is kept from others');
fault('remove proc/812');
is((allocate($bus, 'late', both => 2))[0], 'done', 'when it has ended both are');
is((release($bus, 'late'))[0], 'done', 'and released');

done_testing();
