#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What each operation tells, and keeps: signals, journal entries and state files, in the order in which the daemon sends and writes them, as
# tests/golden/signals has them. Recorder.pm says how to read those. One daemon has all operations one after the other, but for those that end it.
#
# These have names or words in place of values, because they differ from run to run: UUIDs, MAC addresses and GUIDs that are made up, generations,
# the numbers of jobs, times, the epoch, and the directory of the test. These are left out: replies to calls that only ask, and the locks of jobs.
# The devices of a job are prepared one after the other (ParallelDevices=1), since otherwise the order of its steps is not determined. Events of
# the kernel are off where the operation is not about them: when they are read depends on how long a job takes. Capacity and the epoch are told
# at the end of a turn of the daemon's loop; a job is a process of its own, so which of its steps are told before that is not determined, and the
# text has the last values only. Of an intermediate value (a pool while a job fails) see "job-killed", where the test waits in between.
# UPDATE_GOLDEN=1 writes the texts anew.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Errno qw(EIO);
use Test::More;

use Crash qw(preload_dying);
use Guests;
use Hypervisor;
use Node;
use Recorder;

node_with_guests('../long/machine', configure => 1);
plan skip_all => 'the node cannot send events' if $ENV{NODE_EVENTS} ne 'yes';

my ($gpu, $pf, $ofed) = qw(0000:13:00.0 0000:11:00.0 0000:82:00.0);
my $path = "sys/devices/pci0000:10/0000:10:05.0/$gpu";
my %pool = (
        gpu        => "Match=vendor=10de class=0302\n",
        ethernet   => "Match=type=vf pf=$pf\nVirtualFunctions=2\nVfAttributes=vlan=7\n",
        ofed       => "Match=type=vf pf=$ofed\nVirtualFunctions=2\n",
        infiniband => "Match=type=vf pf=0000:81:00.0\nVirtualFunctions=2\n",
);

# The configuration, with more keys of the daemon or other pools.
sub conf {
        my ($keys, @pools) = @_;
        return "[Daemon]\nAfterRelease=restore\nParallelDevices=1\nSparePorts=1\nSharedMemoryGroup=root\n$keys" . join('', map { "[Pool $_]\n$pool{$_}" } @pools ? @pools : qw(gpu ethernet ofed))
                . "[Service remote-gpu]\nKind=rcuda\nEndpoint=gpu1.example.org:8308 slots=3\n";
}

sub config_file { my ($text) = @_; return spew("$ENV{NODE_TMP}/passthroughd.conf", $text) }

# A tmpfs of this machine's kernel, for regions of shared memory.
my $shm = "$ENV{NODE_ROOT}/dev/shm";
fault('set dev/shm/.nodesim x', 'events off');
system('mount', '-t', 'tmpfs', '-o', 'size=64m', 'shm', $shm) == 0 or plan skip_all => 'a tmpfs cannot be mounted on the simulated node';
END { local $?; system("umount $shm 2>/dev/null") if $shm }

hypervisor("$ENV{BUILD}/domain");
my $bus = Bus->new;
record_from($bus);
preload_dying();

# libvirt has no domain when the daemon starts. Later it reports these, without its features: as long as the daemon has read those and not yet the
# domains, it goes by those that it knew.
sub has_read { my ($number) = @_; return wait_until(sub { (slurp_existing("$ENV{BUILD}/sent") // '') =~ / $number$/ && libvirt_process() }) || die 'libvirt does not report' }
sub begin_start { my $number = write_guests(); daemon('start'); return has_read($number) }
sub begin_restart { my ($text) = @_; config_file($text); daemon('stop'); return begin_start() }

sub reports {
        my (@records) = @_;
        my $number = write_raw(join '', map { "$_\n" } 'list', @records, 'complete');
        kill 'HUP', libvirt_process();
        return has_read($number);
}

sub guest_record {
        my ($name) = @_;
        my %places = domain_places();
        return running_domain($name, allocation($bus, $name)->{id}, map { "$_ $places{$_}{text}" } sort keys %places);
}

sub guest_starts {
        my ($name) = @_;
        my $xml = (ctl('xml', $name))[1];
        hypervisor("$ENV{BUILD}/domain", live => $xml, config => $xml);
        return reports(guest_record($name));
}

# ---- what the test does; the words are in the golden files

sub words { my (@values) = @_; return join ' ', map { ref ? words(@$_) : $_ } @values }

sub allocates { my ($name, @pairs) = @_; my ($s, $e) = request(@pairs); return act("Allocate $name " . words(@pairs), sub { ask('Allocate', "s$s", $name, $e) }) }
sub begin_on_guest { my ($method, $name, $signature, @values) = @_; return ask($method, "st$signature", $name, Node::generation($bus, $name), @values) }
sub on { my ($method, $name) = @_; return act("$method $name", sub { begin_on_guest($method, $name, '') }) }
sub releases { my ($name) = @_; return on('Release', $name) }
sub attaches { my ($name, @pairs) = @_; return act("Attach $name " . words(@pairs), sub { begin_on_guest('Attach', $name, request(@pairs)) }) }
sub detaches { my ($name, $slot) = @_; return act("Detach $name $slot", sub { begin_on_guest('Detach', $name, 's', $slot) }) }
sub calls { my ($method, $signature, @values) = @_; return act(words($method, @values), sub { ask($method, $signature // '', @values) }) }
sub node_does { my ($what, @commands) = @_; return act($what, sub { fault(@commands) }) }
sub starts { my ($what) = @_; return act($what // 'the daemon starts', \&begin_start) }
sub stops { my ($signal) = @_; return act("the daemon is sent SIG$signal", sub { daemon('stop', $signal) }) }

# A call, up to write N, which waits.
sub up_to_write {
        my ($n, $what, $function) = @_;
        return act_until("$what; write $n does not come back", sub { fault('reset', "unkillable $n"); $function->() }, sub { wait_until(sub { grep { /^$n .*PENDING/ } write_log() }) });
}

sub killed_in_write {
        my ($n, $what, $function) = @_;
        up_to_write($n, $what, $function);
        act('the daemon is killed, and the write comes back', sub { daemon('stop', 'KILL'); fault('release', 'reset'); wait_until(sub { !grep { /PENDING/ } write_log() }) });
        return starts();
}

# ---- the start

operation('start', sub {
        act('the daemon starts on an empty node', sub { begin_restart(conf('', qw(gpu ethernet))) });
        act('with a pool more', sub { begin_restart(conf('')) });
        act('and once more', sub { begin_restart(conf('')) });
});

# ---- allocate, release

my @vm = (gpu => 1, ethernet => 1, cpus => 2, memory => 2**30);
operation('allocate', sub { allocates('vm', @vm, token => 'one', tag => 'for you') });
operation('allocate-again', sub { allocates('vm', @vm, token => 'one', tag => 'for you') });
operation('release', sub {
        releases('vm');
        calls('Release', 'st', 'vm', 1);
});
operation('refused', sub {
        allocates('vm', gpu => 3);
        calls('Plan', request(gpu => 3));
        calls('Release', 'st', 'other', 1);
        calls('SetVirtualFunctions', 'su', $gpu, 4);
});
operation('remote-gpu', sub {
        allocates('vm', cpus => 1, memory => 2**27, 'remote-gpu' => 2);
        releases('vm');
});
operation('shared-memory', sub {
        my @member = (cpus => 1, memory => 2**27, 'shared-memory' => [['mpi', 2**22, 0]]);
        allocates('one', @member);
        allocates('two', @member);
        releases($_) for qw(one two);
});

# ---- attach, detach, guests

operation('attach', sub {
        allocates('vm', gpu => 1, cpus => 2, memory => 2**30);
        attaches('vm', ethernet => 1);
        detaches('vm', 'ethernet0');
});
operation('guest', sub {
        act('the guest starts', sub { guest_starts('vm') });
        attaches('vm', ethernet => 1);
        act('libvirt reports the guest with it', sub { reports(guest_record('vm')) });
        releases('vm');
        detaches('vm', 'ethernet0');
        act('libvirt reports the guest without it', sub { reports(guest_record('vm')) });
        act('the guest ends', sub { reports() });
        releases('vm');
});
operation('release-with-domain', sub {
        allocates('vm', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1);
        act('the guest starts', sub { guest_starts('vm') });
        act('the guest ends', sub { reports() });
});
operation('foreign-guest', sub {
        act("a guest of somebody else runs with $gpu", sub { reports(running_domain('theirs', '11111111-2222-3333-4444-555555555555', $gpu)) });
        act('the guest ends', sub { reports() });
});

# ---- leases

my @lease = (gpu => 1, cpus => 2, memory => 2**30, hold => 3600);
operation('lease', sub {
        allocates('vm', @lease);
        act('Renew vm 7200', sub { begin_on_guest('Renew', 'vm', 'u', 7200) });
        on('Prepare', 'vm');
        on('Prepare', 'vm');
        releases('vm');
});
operation('lease-released', sub {
        allocates('vm', @lease);
        releases('vm');
});
operation('lease-expired', sub {
        my ($signature, $entries) = request(gpu => 1, cpus => 2, memory => 2**30, hold => 1);
        act_until('Allocate vm for a second', sub { ask('Allocate', "s$signature", 'vm', $entries) }, sub { until_told(qr/AllocationRemoved/) && comes_to_rest() });
});

# ---- a device that does not come back clean

operation('quarantine', sub {
        allocates('vm', gpu => 1);
        fault('reset', "fail reset\@$gpu EIO");
        releases('vm');
        fault('reset', "fail unbind\@$gpu EIO");
        calls('ClearQuarantine', 's', $gpu);
        fault('reset');
        calls('ClearQuarantine', 's', $gpu);
        calls('ClearQuarantine', 's', $gpu);
});
operation('health', sub {
        my $config = slurp("$ENV{NODE_ROOT}/$path/config");
        my $write = sub { my ($bytes) = @_; fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes); ask('Rescan') };
        act("another hand binds $gpu to vfio-pci, Rescan", sub { other_hand_binds($gpu, 'vfio-pci'); ask('Rescan') });
        act("$gpu is dead, Rescan", sub { $write->("\xff" x 256) });
        act("$gpu is alive, Rescan", sub { $write->(substr $config, 0, 256) });
        act('another hand binds it to its driver, Rescan', sub { other_hand_binds($gpu, ''); ask('Rescan') });
});

# ---- VFs

operation('sriov', sub {
        calls('SetVirtualFunctions', 'su', $ofed, 4);
        calls('SetVirtualFunctions', 'su', $ofed, 4);
        calls('SetVirtualFunctions', 'su', $ofed, 0);
        calls('SetVirtualFunctions', 'su', $ofed, 2);
        allocates('vm', ofed => 1);
        calls('SetVirtualFunctions', 'su', $ofed, 4);
        releases('vm');
});
operation('sriov-fails', sub {
        fault('reset', "fail sriov_numvfs\@$ofed EIO");
        calls('SetVirtualFunctions', 'su', $ofed, 4);
        fault('reset');
        calls('SetVirtualFunctions', 'su', $ofed, 2);
});
operation('sriov-contested', sub {
        act('another hand removes the VFs, Rescan', sub { fault("write sys/bus/pci/devices/$ofed/sriov_numvfs 0"); ask('Rescan') });
        calls('SetVirtualFunctions', 'su', $ofed, 2);
});

# ---- reload, rescan

operation('reload', sub {
        calls('Reload');
        my $change = sub { my ($what, $text) = @_; act("$what, Reload", sub { config_file($text); ask('Reload') }) };
        $change->('a pool more',           conf('', qw(gpu ethernet ofed infiniband)));
        $change->('a pool less',           conf('', qw(ethernet ofed infiniband)));
        $change->('a line that is wrong',  conf("Nonsense=1\n"));
        $change->('one that is refused',   conf('') . "[Pool twice]\nMatch=address=$pf\n");
        act('as at first, SIGHUP', sub { config_file(conf('')); kill 'HUP', pid() });
        calls('SetVirtualFunctions', 'su', '0000:81:00.0', 0);
});
operation('rescan', sub {
        calls('Rescan');
        act("$gpu has another link, Rescan", sub { fault("set $path/current_link_width 4", "set $path/current_link_speed 2.5 GT/s PCIe"); ask('Rescan') });
        act("another hand binds $gpu to vfio-pci, Rescan", sub { other_hand_binds($gpu, 'vfio-pci'); ask('Rescan') });
        act('and back, Rescan', sub { other_hand_binds($gpu, ''); ask('Rescan') });
});
operation('contested', sub {
        allocates('vm', gpu => 1);
        act("another hand binds $gpu to its driver, Rescan", sub { other_hand_binds($gpu, ''); ask('Rescan') });
        act('and back, Rescan', sub { other_hand_binds($gpu, 'vfio-pci'); ask('Rescan') });
        releases('vm');
});
operation('promise', sub {
        allocates('vm', cpus => 2, memory => 2**30, gpu => 1);
        act('CPU 1 goes offline, Rescan', sub { fault('set sys/devices/system/cpu/online 0,2-15'); ask('Rescan') });
        act('CPU 1 comes back, Rescan', sub { fault('set sys/devices/system/cpu/online 0-15'); ask('Rescan') });
        releases('vm');
});

# ---- hot-plug, with events

fault('events on');
operation('hotplug', sub {
        node_does("$gpu is removed", "remove $path");
        node_does('and plugged in', 'write sys/bus/pci/rescan 1');
        act("another hand binds $gpu to vfio-pci", sub { other_hand_binds($gpu, 'vfio-pci') });
        act('and back', sub { other_hand_binds($gpu, '') });
});
operation('hotplug-allocated', sub {
        allocates('vm', gpu => 1, ethernet => 1);
        node_does("$gpu is removed", "remove $path");
        node_does('and plugged in', 'write sys/bus/pci/rescan 1');
});
my @swap = ('events off', "remove $path", 'write sys/bus/pci/rescan 1');
operation('hotplug-swapped', sub {
        node_does("another card is at $gpu", @swap, "set $path/device 0x1234", 'events on', "event remove $gpu", "event add $gpu");
        on('Accept', 'vm');
        releases('vm');
        node_does('the first card is back', @swap, "set $path/device 0x2230", 'events on', "event remove $gpu", "event add $gpu");
        act('another hand binds it to its driver', sub { other_hand_binds($gpu, '') });
});
operation('cpus', sub {
        allocates('vm', cpus => 2, memory => 2**30);
        node_does('CPU 1 goes offline', 'set sys/devices/system/cpu/online 0,2-15', 'event offline cpu/cpu1');
        node_does('CPU 1 comes back', 'set sys/devices/system/cpu/online 0-15', 'event online cpu/cpu1');
        releases('vm');
});
fault('events off');

# ---- jobs that fail

operation('job-fails', sub {
        fault('reset', "fail drivers_probe\@$gpu ENODEV");
        allocates('vm', gpu => 1);
        fault('reset', "fail drivers_probe\@$gpu ENODEV", "fail 7 EIO");
        allocates('vm', gpu => 1);
        fault('reset');
        releases('vm');
});
operation('release-fails', sub {
        allocates('vm', gpu => 1);
        fault('reset', "fail unbind\@$gpu EIO");
        releases('vm');
        fault('reset');
        releases('vm');
});
operation('attach-fails', sub {
        allocates('vm', gpu => 1);
        fault('reset', "fail 2 EIO");
        attaches('vm', ethernet => 1);
        fault('reset');
        releases('vm');
});
operation('job-killed', sub {
        my ($signature, $entries) = request(gpu => 1);
        up_to_write(3, 'Allocate vm gpu 1', sub { ask('Allocate', "s$signature", 'vm', $entries) });
        act_until('the process of the job is killed', sub { kill 'KILL', daemon_children('passthroughd-jo') }, sub { until_told(qr/JobRemoved/) && comes_to_rest(1) });
        node_does('the write comes back', 'release', 'reset');
        releases('vm');
});
operation('ledger-fails', sub {
        my $fail = sub { my ($n, $ever) = @_; spew("$ENV{NODE_TMP}/fail-at", sprintf '%08d %d%s', $n, EIO, $ever // '') };
        act('Allocate vm gpu 1, without a disk', sub { $fail->(1, ' ever'); my ($s, $e) = request(gpu => 1); ask('Allocate', "s$s", 'vm', $e); unlink "$ENV{NODE_TMP}/fail-at" });
        allocates('vm', gpu => 1);
        act('Release vm, without a disk', sub { $fail->(1, ' ever'); begin_on_guest('Release', 'vm', ''); unlink "$ENV{NODE_TMP}/fail-at" });
        releases('vm');
});

# ---- a write that hangs

operation('hang', sub {
        act('the daemon starts, with four seconds for each step', sub { begin_restart(conf("JobTimeoutSec=4\n")) });
        my ($signature, $entries) = request(gpu => 1);
        up_to_write(2, 'Allocate vm gpu 1', sub { ask('Allocate', "s$signature", 'vm', $entries) });
        act_until('four seconds later', sub { }, sub { until_told(qr/JobRemoved/) && comes_to_rest(1) });
        act_until('Release vm', sub { begin_on_guest('Release', 'vm', '') }, sub { comes_to_rest(1) });
        node_does('the write comes back', 'release', 'reset');
        releases('vm');
        act('the daemon starts, as before', sub { begin_restart(conf('')) });
});

# ---- the end of the daemon, and the start after it

operation('crash', sub {
        my ($signature, $entries) = request(@vm);
        killed_in_write(4, 'Allocate vm ' . words(@vm), sub { ask('Allocate', "s$signature", 'vm', $entries) });
        killed_in_write(4, 'Release vm', sub { begin_on_guest('Release', 'vm', '') });
});
operation('crash-in-sriov', sub {
        killed_in_write(1, "SetVirtualFunctions $ofed 4", sub { ask('SetVirtualFunctions', 'su', $ofed, 4) });
        calls('SetVirtualFunctions', 'su', $ofed, 2);
});
operation('shutdown', sub {
        allocates('vm', @vm);
        allocates('lease', gpu => 1, hold => 3600);
        stops('TERM');
        starts();
        stops('KILL');
        fault("remove $path");
        starts("$gpu is gone, and the daemon starts");
        stops('TERM');
        fault('write sys/bus/pci/rescan 1');
        starts("$gpu is back, and the daemon starts");
        releases('lease');
});
operation('shutdown-in-job', sub {
        act_until('Release vm; write 3 hangs', sub { fault('reset', 'hang 3'); begin_on_guest('Release', 'vm', '') }, sub { wait_until(sub { grep { /^3 .*PENDING/ } write_log() }) });
        act('SIGTERM, and the write comes back', sub { kill 'TERM', pid(); until_told(qr/Stopping/); fault('release', 'reset'); daemon('stop', 0) });
        starts();
});

is_deeply([left_over()], [], 'each golden file is of an operation');
done_testing();
