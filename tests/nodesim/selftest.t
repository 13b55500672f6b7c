#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The simulated kernel must answer as the real one does: every errno here was seen on Linux 6.12, or read in its source.
use strict;
use warnings;

use Errno;
use Fcntl;
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(sleep time);

use constant DEADLINE => 90;

my $build = $ENV{BUILD} // 'build';
my $nodesim = "$build/tests/nodesim";
plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';

my $dir  = tempdir(CLEANUP => 1);
my $root = "$dir/root";
my $sim;

my $TREE = <<'TREE';
# a root port with a GPU, one with an SR-IOV NIC at the end of its bus, one with an mlx4, one PF without %vf
%driver pcieport class=0604
%driver nvidia ids=10de:* class=03
%driver snd_hda_intel class=0403
%driver mlx5_core ids=15b3:101b,15b3:101e sriov
%driver mlx4_core ids=15b3:1003
%driver vfio-pci vfio
%driver pci-stub any
%driver pciback
%vf 0000:02:00.0 device=101e offset=254 stride=1
[sys/devices/pci0000:00/0000:00:0{1-4}.0]
vendor=0x8086
driver_override=(null)
device=0x2030
class=0x060400
iommu_group -> /sys/kernel/iommu_groups/{-1}
driver -> /sys/bus/pci/drivers/pcieport
[sys/devices/pci0000:00/0000:00:01.0/0000:01:00.{0-1}]
vendor=0x10de
driver_override=(null)
device=0x2330
class=0x0302{}0
driver -> /sys/bus/pci/drivers/nvidia
iommu_group -> /sys/kernel/iommu_groups/4
[sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0]
reset_method=flr bus
drm/card0/dev=226:0
[sys/class/drm]
card0 -> /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/card0
[sys/devices/pci0000:00/0000:00:01.0/0000:01:00.1]
class=0x040300
driver -> /sys/bus/pci/drivers/snd_hda_intel
reset:=
[sys/devices/pci0000:00/0000:00:02.0/0000:02:00.0]
vendor=0x15b3
driver_override=(null)
device=0x101b
class=0x020700
subsystem_vendor=0x15b3
subsystem_device=0x0001
numa_node=1
sriov_totalvfs=4
resource=0x0 0x0 0x0
config@0=b3 15 1b 10
config@8=00 00 07 02
config@0x100=0d 00 01 00
driver -> /sys/bus/pci/drivers/mlx5_core
iommu_group -> /sys/kernel/iommu_groups/5
[sys/devices/pci0000:00/0000:00:03.0/0000:04:00.0]
vendor=0x15b3
driver_override=(null)
device=0x1003
class=0x028000
sriov_totalvfs=8
driver -> /sys/bus/pci/drivers/mlx4_core
iommu_group -> /sys/kernel/iommu_groups/6
[sys/devices/pci0000:00/0000:00:04.0/0000:05:00.0]
vendor=0x8086
driver_override=(null)
device=0x10c9
class=0x020000
sriov_totalvfs=2
driver -> /sys/bus/pci/drivers/igb
iommu_group -> /sys/kernel/iommu_groups/7
[sys/devices/system/cpu]
cpu{0-3}/topology/core_cpus_list={},{+4}
online=0-3\n
[sys/devices/system/node/node0]
numa_node!EIO
text=one\ttab
text+=two
hugepages/hugepages-{2048,1048576}kB/nr_hugepages={}
hugepages/hugepages-2048kB/free_hugepages=2048
[proc/7]
fd/3 -> /dev/nvidia0
TREE

my $pci = "$root/sys/bus/pci";
my ($gpu, $audio, $pf, $mlx4, $igb) = qw(0000:01:00.0 0000:01:00.1 0000:02:00.0 0000:04:00.0 0000:05:00.0);

sub spew { my ($path, $text) = @_; open my $f, '>', $path or die "$path: $!"; print $f $text; close $f; return }

sub slurp {
        my ($path) = @_;
        open my $f, '<', $path or return '!' . errno();
        local $/ = undef;
        my $text = <$f> // '';
        return $text;
}

sub errno { for my $name (grep { $!{$_} } keys %!) { return $name } return "errno $!" }

# Writes by one write(2), as the daemon does. Returns OK or the name of the errno.
sub put {
        my ($path, $text) = @_;
        sysopen my $f, $path, O_WRONLY or return 'open ' . errno();
        return defined syswrite($f, $text) ? 'OK' : errno();
}

sub dev     { my ($address, $file) = @_; return "$pci/devices/$address" . (defined $file ? "/$file" : '') }
sub driver  { my ($address) = @_; return (readlink(dev($address, 'driver')) // 'none') =~ s{.*/}{}r }
sub group   { my ($address) = @_; return readlink(dev($address, 'iommu_group')) =~ s{.*/}{}r }
sub control { my ($command) = @_; return put("$root/.nodesim/control", "$command\n") }
sub tree    { return slurp("$root/.nodesim/tree") }

# Writes in a child, which may be killed. Returns its pid.
sub put_later {
        my ($path, $text) = @_;
        my $pid = fork // die;
        return $pid if $pid;
        POSIX::_exit(put($path, $text) eq 'OK' ? 0 : 1);
}

sub wait_writes {
        my ($n) = @_;
        my $end = time + DEADLINE;
        sleep 0.005 while slurp("$root/.nodesim/writes") ne "$n\n" && time < $end;
        return;
}

# Returns the wait status of the child, or undef if it does not end in time.
sub ended {
        my ($pid, $seconds) = @_;
        my $end = time + ($seconds // DEADLINE);
        do {
                return $? if waitpid($pid, WNOHANG) == $pid;
                sleep 0.005;
        } while time < $end;
        return;
}

sub start {
        mkdir $root;
        spew("$dir/node.tree", $TREE);
        $sim = fork // die;
        exec $nodesim, '--foreground', "--log=$dir/log", "$dir/node.tree", $root or die "$nodesim: $!" if !$sim;
        my $end = time + DEADLINE;
        sleep 0.01 while !-e "$root/.nodesim/control" && time < $end;
        return;
}

sub stop {
        kill 'TERM', $sim;
        my $status = ended($sim);
        $sim = undef;
        return $status;
}

END {
        if ($sim) {
                my $status = $?;
                stop();
                system "umount -l $root 2>/dev/null || fusermount3 -uz $root 2>/dev/null"; # only if it crashed
                $? = $status;
        }
}

start();
my $first = tree();

subtest 'the tree as loaded' => sub {
        is(slurp(dev($gpu, 'class')),           "0x030200\n", 'a link in bus/pci/devices leads to the device');
        is(slurp(dev($gpu, 'driver_override')), "(null)\n",   'no override');
        is(slurp("$root/sys/devices/system/cpu/cpu3/topology/core_cpus_list"), "3,7\n",            'braces and sums');
        is(slurp("$root/sys/devices/system/node/node0/text"),                  "one\ttab\ntwo\n",  'escapes and +=');
        is(slurp("$root/sys/devices/system/cpu/online"),                       "0-3\n\n",          'a newline more');
        ok(!defined(slurp_errno("$root/sys/devices/system/node/node0/numa_node")), 'a read error');
        ok($!{EIO}, 'is EIO');
        is(readlink "$root/proc/7/fd/3", '/dev/nvidia0', 'links of proc are absolute');
        is(-s dev($pf, 'config'), 4096, 'extended config space');
        is(-s dev($pf, 'vendor'), 4096, 'size of an attribute');
        is((stat dev($gpu, 'remove'))[2] & 0777, 0220, 'remove is write only');
        is(group($audio), 4, 'group');
        is(slurp("$root/sys/kernel/iommu_groups/4/type"), "DMA\n", 'group type');
        ok(-e "$root/sys/kernel/iommu_groups/4/devices/$gpu", 'group members');
        is(put(dev($gpu, 'vendor'), '1'), 'open EACCES', 'what is read only cannot be opened for writing');
        is(slurp(dev($gpu, 'remove')), '!EACCES', 'what is write only cannot be read');
        is(slurp("$root/.nodesim/writes"), "0\n", 'no writes yet');
};

sub slurp_errno { my ($path) = @_; open my $f, '<', $path or return; sysread($f, my $data, 10) // return; return $data }

# Returns the lines of a tree as in a recording.
sub printed {
        my ($text) = @_;
        spew("$dir/short.tree", $text);
        return join '', grep { !/^sys/ } split /^/, `$build/tests/print-node $dir/short.tree 2>$dir/problem`;
}

subtest 'the shorthand of hand-written trees' => sub {
        is(printed("[/x//a/]\n/b//c=1\n[]\nd=2\n"), "d=2\nx/a/b/c=1\n", 'sections');
        is(printed("a{0-2}={},{+1}\n"), "a0=0,1\na1=1,2\na2=2,3\n", 'a range');
        is(printed("a{08-10}={}\n"), "a08=08\na09=09\na10=10\n", 'a width');
        is(printed("a{0x0f-0x10}={}\n"), "a0f=0f\na10=10\n", 'hex');
        is(printed("[p{1,2}]\nq{3}={1}{2}{}{2+1}\n"), "p1/q3=1334\np2/q3=2334\n", 'braces by their number');
        is(printed("a={}{1}\na{1}={2}{x\n"), "a={}{1}\na1={2}{x\n", 'values without braces in the path, or with others');
        is(printed("{1-2}/config\@0={}0\n"), "1/config\@0x0=10" . ' 00' x 15 . "\n2/config\@0x0=20" . ' 00' x 15 . "\n", 'config space');
        spew("$dir/b.tree", "b=1\n");
        is(printed("[x]\n%include b.tree\nc=1\n"), "b=1\nx/c=1\n", 'a section ends with its file');
        for my $wrong ('a{1=b', 'a{}=b', 'a{x}=b', 'a{1;2}=b', 'a{1,}=b', 'a{2-1}=b', 'a{0-70000}=b', 'a{00000000000000001}=b', '{1}{2}{3}{4}{5}=b',
                '[a', '[', '[a/..]', '%include', '%nonsense x', '%include short.tree') {
                is(printed("$wrong\n"), '', "refused: $wrong");
                like(slurp("$dir/problem"), qr{^\Q$dir\E/[^:]*:\d+: }, 'with the line');
        }
};

subtest 'a dump can be served again' => sub {
        spew("$dir/again.tree", $first);
        mkdir "$dir/again";
        is(system($nodesim, "$dir/again.tree", "$dir/again"), 0, 'served in the background');
        is(slurp("$dir/again/.nodesim/tree"), $first, 'same dump');
        is(system("fusermount3 -u $dir/again 2>/dev/null || umount $dir/again"), 0, 'unmounted');
};

subtest 'override, unbind, probe' => sub {
        is(put(dev($gpu, 'driver_override'), 'vfio-pci'), 'OK', 'set');
        is(slurp(dev($gpu, 'driver_override')), "vfio-pci\n", 'reads back');
        is(driver($gpu), 'nvidia', 'does not unbind');
        is(put("$pci/drivers/nvidia/bind", $gpu), 'ENODEV', 'override keeps other drivers off');
        is(put("$pci/drivers/vfio-pci/bind", $gpu), 'EBUSY', 'bound already');
        is(put("$pci/drivers/vfio-pci/unbind", $gpu), 'ENODEV', 'not bound to that one');
        is(put(dev($gpu, 'driver/unbind'), '01:00.0'), 'ENODEV', 'address without domain');
        ok(-e "$root/sys/class/drm/card0", 'what the driver shows');
        is(put(dev($gpu, 'driver/unbind'), $gpu), 'OK', 'unbind');
        is(driver($gpu), 'none', 'unbound');
        ok(!-e "$root/sys/class/drm/card0" && !-e dev($gpu, 'drm'), 'went with the driver');
        is(put("$pci/drivers_probe", "$gpu\n"), 'OK', 'probe');
        is(driver($gpu), 'vfio-pci', 'on vfio-pci');
        ok(-e dev($gpu, 'vfio-dev/vfio0') && -e "$root/dev/vfio/4" && -e "$pci/drivers/vfio-pci/$gpu", 'as vfio shows');
        is(put("$pci/drivers_probe", '0000:99:00.0'), 'ENODEV', 'unknown device');
        is(put("$pci/drivers_probe", 'rubbish'), 'ENODEV', 'rubbish');
        is(put("$pci/drivers_probe", $gpu), 'OK', 'bound already');
        is(put("$pci/drivers/vfio-pci/bind", 'rubbish'), 'ENODEV', 'rubbish to bind');

        put(dev($audio, 'driver_override'), 'vfio-pci');
        put(dev($audio, 'driver/unbind'), $audio);
        put("$pci/drivers_probe", $audio);
        is(put("$pci/drivers/vfio-pci/unbind", $gpu), 'OK', 'one member leaves');
        ok(-e "$root/dev/vfio/4", 'the group is still with vfio');
        is(put("$pci/drivers/vfio-pci/unbind", $audio), 'OK', 'the last leaves');
        ok(!-e "$root/dev/vfio/4", 'the group is gone');

        is(put(dev($gpu, 'driver_override'), "\n"), 'OK', 'cleared');
        is(put(dev($audio, 'driver_override'), ' '), 'OK', 'any text will do');
        put("$pci/drivers_probe", $audio);
        is(driver($audio), 'none', 'that no driver answers to');
        put(dev($audio, 'driver_override'), "\n");
        put("$pci/drivers_probe", $_) for $gpu, $audio;
        is(driver($gpu) . driver($audio), 'nvidiasnd_hda_intel', 'natural drivers again');
        is(tree(), $first, 'nothing is left behind');
};

subtest 'bridges, resets' => sub {
        my $bridge = '0000:00:01.0';
        put(dev($bridge, 'driver_override'), 'vfio-pci');
        put(dev($bridge, 'driver/unbind'), $bridge);
        is(put("$pci/drivers/vfio-pci/bind", $bridge), 'EINVAL', 'no bridge on vfio-pci');
        is(put("$pci/drivers_probe", $bridge), 'OK', 'nor by a probe, which does not tell');
        is(driver($bridge), 'none', 'unbound');
        put(dev($bridge, 'driver_override'), "\n");
        put("$pci/drivers_probe", $bridge);
        is(put(dev($gpu, 'reset'), '1'), 'OK', 'reset');
        is(put(dev($gpu, 'reset'), '2'), 'EINVAL', 'only 1 resets');
        is(put(dev($audio, 'reset'), '1'), 'ENOTTY', 'no way to reset');
        is(tree(), $first, 'nothing is left behind');
};

subtest 'sriov_numvfs' => sub {
        my $numvfs = dev($pf, 'sriov_numvfs');
        is(put($numvfs, $_), 'EINVAL', "'$_'") for qw(abc -1 70000 1x), "1 2";
        is(put($numvfs, '5'), 'ERANGE', 'more than there are');
        is(put($numvfs, '0'), 'OK', 'as it is');
        is(put(dev($mlx4, 'sriov_numvfs'), '1'), 'ENOENT', 'driver without sriov_configure');
        is(put(dev($pf, 'sriov_drivers_autoprobe'), '0'), 'OK', 'autoprobe off');
        is(put($numvfs, "3\n"), 'OK', 'three');
        is(slurp($numvfs), "3\n", 'reads back');
        is(put($numvfs, '3'), 'OK', 'as it is');
        is(put($numvfs, '2'), 'EBUSY', 'another number');
        my ($vf0, $vf2) = map { readlink(dev($pf, "virtfn$_")) =~ s{.*/}{}r } 0, 2;
        is("$vf0 $vf2", '0000:02:1f.6 0000:03:00.0', 'the third spills to the next bus');
        is(readlink(dev($vf2, 'physfn')), "../$pf", 'physfn');
        is(slurp(dev($vf0, $_->[0])), "$_->[1]\n", $_->[0]) for ['vendor', '0x15b3'], ['device', '0x101e'],
                ['class', '0x020700'], ['subsystem_device', '0x0001'], ['numa_node', '1'], ['reset_method', 'flr'],
                ['driver_override', '(null)'], ['power_state', 'unknown'];
        is(-s dev($vf0, 'config'), 4096, 'config space');
        is(group($vf0), 8, 'lowest free group');
        is(driver($vf0), 'none', 'not probed');
        is(put("$pci/drivers_probe", $vf0), 'OK', 'a probe says OK');
        is(driver($vf0), 'none', 'and does nothing');
        is(put("$pci/drivers/mlx5_core/bind", $vf0), 'ENODEV', 'nor may it be bound');
        put(dev($vf0, 'driver_override'), 'vfio-pci');
        put("$pci/drivers_probe", $vf0);
        is(driver($vf0), 'vfio-pci', 'with an override it may');
        put(dev($pf, 'driver_override'), 'vfio-pci');
        is(put($numvfs, '0'), 'OK', 'none again');
        ok(!-e dev($vf0) && !-e "$root/dev/vfio/8" && !-e "$pci/drivers/vfio-pci/$vf0", 'all gone');
        put(dev($pf, 'driver_override'), "\n");
        put(dev($pf, 'sriov_drivers_autoprobe'), 'Y');
        is(tree(), $first, 'nothing is left behind');

        is(put($numvfs, '1'), 'OK', 'one');
        is(driver($vf0), 'mlx5_core', 'probed');
        is(put(dev($igb, 'sriov_numvfs'), '2'), 'OK', 'a PF without %vf, driver not declared');
        is(driver('0000:05:00.2'), 'igb', 'looks like its PF');
        is(group('0000:05:00.1'), 9, 'next group');
        put($numvfs, '0');
        is(put($numvfs, '1'), 'OK', 'again');
        is(group($vf0), 8, 'numbers are recycled');
        put(dev($pf, 'driver_override'), 'vfio-pci');
        is(put(dev($pf, 'driver/unbind'), $pf), 'OK', 'PF unbound');
        ok(!-e dev($vf0), 'which ends its VFs');
        is(put($numvfs, '1'), 'ENOENT', 'no driver, no VFs');
        put("$pci/drivers_probe", $pf);
        is(driver($pf), 'vfio-pci', 'PF on vfio-pci');
        is(put($numvfs, '1'), 'ENOENT', 'which makes none');
        put(dev($pf, 'driver/unbind'), $pf);
        control("write sys/bus/pci/devices/$pf/driver_override \\n");
        put("$pci/drivers_probe", $pf);
        put($numvfs, '1');
        control("remove sys/bus/pci/devices/$pf/driver");
        put(dev($pf, 'driver_override'), 'vfio-pci');
        is(put("$pci/drivers/vfio-pci/bind", $pf), 'EBUSY', 'no PF with VFs on vfio-pci');
        put(dev($pf, 'driver_override'), "\n");
        control("link sys/bus/pci/devices/$pf/driver /sys/bus/pci/drivers/mlx5_core");
        put($_, '0') for $numvfs, dev($igb, 'sriov_numvfs');
        is(tree(), $first, 'nothing is left behind');
};

subtest 'remove and rescan' => sub {
        put(dev($gpu, 'driver_override'), 'vfio-pci');
        is(put(dev($gpu, 'remove'), '1'), 'OK', 'remove');
        ok(!-e dev($gpu) && !-e "$pci/drivers/nvidia/$gpu", 'gone');
        ok(!-e "$root/sys/kernel/iommu_groups/4/devices/$gpu", 'also from its group');
        is(put("$pci/rescan", 'x'), 'EINVAL', 'rubbish to rescan');
        is(put(dev($audio, 'rescan'), '1'), 'OK', 'rescan beside it');
        is(driver($gpu), 'nvidia', 'back on its natural driver');
        is(tree(), $first, 'override lost, all else the same');

        put(dev($pf, 'sriov_numvfs'), '2');
        is(put(dev('0000:00:02.0', 'remove'), '1'), 'OK', 'remove a whole branch');
        ok(!-e dev($pf) && !-e dev('0000:02:1f.6'), 'gone with its VFs');
        is(control("remove sys/bus/pci/devices/$igb"), 'OK', 'unplugged');
        is(put("$pci/rescan", '1'), 'OK', 'rescan');
        is(tree(), $first, 'all back');
};

# drivers/xen/xen-pciback/pci_stub.c: pcistub_probe(), pcistub_seize() and pcistub_device_id_remove()
subtest 'pciback' => sub {
        my $dir = "$pci/drivers/pciback";
        is(put(dev($gpu, 'driver/unbind'), $gpu), 'OK', 'unbound from its driver');
        is(put("$dir/bind", $gpu), 'ENODEV', 'it takes no device without a slot or an override');
        is(put(dev($gpu, 'driver_override'), 'pciback'), 'OK', 'override');
        is(put("$pci/drivers_probe", $gpu), 'OK', 'probed');
        is(driver($gpu), 'pciback', 'it takes a device by override');
        is(slurp("$dir/slots"), "$gpu\n", 'and makes a slot for it');
        is(put("$dir/unbind", $gpu), 'OK', 'unbind');
        is(slurp("$dir/slots"), "$gpu\n", 'the slot stays');
        is(put(dev($gpu, 'driver_override'), "\n"), 'OK', 'no override');
        is(put("$dir/bind", $gpu), 'OK', 'it takes a device by slot');
        is(slurp("$dir/slots"), "$gpu\n", 'which is in the list once');
        is(put("$dir/remove_slot", 'junk'), 'EINVAL', 'junk');
        is(put("$dir/remove_slot", $gpu), 'OK', 'remove the slot');
        is(slurp("$dir/slots"), '', 'the list is empty');
        is(driver($gpu), 'pciback', 'the device stays bound');
        is(put("$dir/remove_slot", $gpu), 'ENOENT', 'no such slot');
        is(put("$dir/unbind", $gpu), 'OK', 'unbind');
        is(put("$dir/new_slot", 'junk'), 'EINVAL', 'junk');
        is(put("$dir/new_slot", $_), 'OK', "slot $_") for $pf, $gpu;
        is(put("$dir/bind", $gpu), 'OK', 'a new slot is enough');
        is(put("$dir/unbind", $gpu), 'OK', 'unbind');
        is(put("$dir/remove_slot", $_), 'OK', "no slot $_") for $pf, $gpu;
        is(put("$pci/drivers/nvidia/bind", $gpu), 'OK', 'back with its driver');
        is(tree(), $first, 'as before');
};

subtest 'new_id, hugepages' => sub {
        my $pages = "$root/sys/devices/system/node/node0/hugepages/hugepages-2048kB";
        is(put("$pci/drivers/vfio-pci/new_id", 'junk'), 'EINVAL', 'junk');
        is(put("$pci/drivers/vfio-pci/new_id", '10de 9999'), 'OK', 'new id');
        is(put("$pci/drivers/vfio-pci/new_id", '10de 9999'), 'EEXIST', 'known');
        is(put("$pages/nr_hugepages", '2050'), 'OK', 'hugepages');
        is(slurp("$pages/free_hugepages"), "2050\n", 'free ones follow');
        is(put("$pages/nr_hugepages", 'x'), 'EINVAL', 'rubbish');
        is(put("$pages/nr_hugepages", '2048'), 'OK', 'as before');
};

subtest 'faults' => sub {
        my $override = dev($gpu, 'driver_override');
        my $path = 'sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/driver_override';
        is(control('reset'), 'OK', 'reset');
        is(control("fail 2 EIO\nfail-after 3 ENOMEM\nsilent 4\nreplace 5 other"), 'OK', 'several');
        is(put($override, 'a'), 'OK', 'first');
        is(put($override, 'b'), 'EIO', 'fail');
        is(slurp($override), "a\n", 'without effect');
        is(put($override, 'c'), 'ENOMEM', 'fail-after');
        is(slurp($override), "c\n", 'with effect');
        is(put($override, 'd'), 'OK', 'silent');
        is(slurp($override), "c\n", 'without effect');
        is(put($override, 'e'), 'OK', 'replace');
        is(slurp($override), "other\n", 'with another effect');
        is(slurp("$root/.nodesim/writes"), "5\n", 'counted');
        is(slurp("$root/.nodesim/log"), "1 $path a -> OK\n2 $path b -> EIO\n3 $path c -> ENOMEM\n4 $path d -> OK\n"
                . "5 $path e -> OK\n", 'logged');
        is(control($_), 'EINVAL', "'$_'") for 'fail 0 EIO', 'fail 1 EWHAT', 'what', 'kill 1', 'hang';
        is(control('reset'), 'OK', 'reset');
        is(slurp("$root/.nodesim/log"), '', 'log cleared');
        is(put($override, "\n"), 'OK', 'counted anew');
        is(tree(), $first =~ s/^(%driver vfio-pci.*\n)/$1# new_id 10de:9999\n/mr, 'nothing is left behind');
};

subtest 'slow, hung and killed writers' => sub {
        my $override = dev($gpu, 'driver_override');
        control("reset\ndelay 1 1000\nhang 2\nhang 3\nunkillable 4");
        my $before = time;
        my $pid = put_later($override, 'slow');
        wait_writes(1);
        is(slurp($override), "(null)\n", 'delayed, and others go on');
        is(ended($pid), 0, 'ends');
        cmp_ok(time - $before, '>=', 1, 'not earlier');
        is(slurp($override), "slow\n", 'with effect');

        control("reset\ndelay-all 2000");
        $before = time;
        my @pids = map { put_later($override, $_) } 1 .. 4;
        is(ended($_), 0, 'all delayed: each ends') for @pids;
        cmp_ok(time - $before, '>=', 2, '... not earlier');
        cmp_ok(time - $before, '<', 8, '... and side by side');
        is(put($override, "slow\n"), 'OK', '... the next one too');
        cmp_ok(time - $before, '>=', 4, '... is delayed');
        control("reset\nhang 2\nhang 3\nunkillable 4");
        is(put($override, "slow\n"), 'OK', '... until reset');

        $pid = put_later($override, 'hung');
        wait_writes(2);
        is(ended($pid, 0.05), undef, 'hangs');
        like(slurp("$root/.nodesim/log"), qr/^2 .* hung -> PENDING$/m, 'as the log shows');
        kill 'KILL', $pid;
        is(ended($pid), 9, 'can be killed');
        is(slurp($override), "slow\n", 'without effect');
        $pid = put_later($override, 'released');
        wait_writes(3);
        control('release');
        is(ended($pid), 0, 'is released');
        is(slurp($override), "released\n", 'with effect');

        $pid = put_later($override, 'stuck');
        wait_writes(4);
        kill 'KILL', $pid;
        is(ended($pid, 0.1), undef, 'unkillable');
        control('release');
        is(ended($pid), 9, 'dies when released');
        is(slurp($override), "stuck\n", 'with effect');

        control("reset\nhang 1\nkill 4 before\nkill 5 after");
        $pid = put_later("$pci/drivers_probe", $gpu);
        wait_writes(1);
        is(ended(put_later("$pci/drivers_probe", $pf)), 0, 'a hung write leaves others to the same file alone');
        is(ended(put_later($override, 'w')), 0, 'and to other files');
        kill 'KILL', $pid;
        is(ended($pid), 9, 'killed');

        is(ended(put_later($override, 'x')), 9, 'killed before');
        is(slurp($override), "w\n", 'without effect');
        is(ended(put_later($override, 'y')), 9, 'killed after');
        is(slurp($override), "y\n", 'with effect');
        is(control("set sys/bus/pci/devices/$gpu/numa_node 1"), 'OK', 'set');
        is(slurp(dev($gpu, 'numa_node')), "1\n", 'by another hand');
        is(slurp("$root/.nodesim/writes"), "5\n", 'which does not count');
};

subtest 'the end' => sub {
        control("reset\nunkillable 1");
        my $pid = put_later(dev($gpu, 'driver_override'), 'z');
        wait_writes(1);
        is(stop(), 0, 'SIGTERM ends it, a hung writer or not');
        ok(defined ended($pid), 'the writer is let go');
        ok(!-e "$root/sys", 'unmounted');
        like(slurp("$dir/log"), qr/driver_override vfio-pci -> OK/, 'log file');
};

done_testing();
