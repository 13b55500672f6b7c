#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# GPUs that are lost, by their config space, their errors, NVIDIA's driver or Fabric Manager, are off offer with their partitions, and a
# partition that Fabric Manager forgot is activated again or reported. Everything else goes on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use POSIX ();
use Test::More;

use Guests;
use Node;

node_with_guests('hgx-h100', configure => 1);
my $conf   = slurp("$FindBin::Bin/../nodes/hgx-h100-fabric.conf") =~ s/\[Pool rdma\].*//sr;
my %module = $conf =~ /^Module=(\S+)=(\d+)$/mg;
my %gpu    = reverse %module;
my $dir    = $ENV{NVFM_DIR};
my $bus;
mkdir $dir or die "$dir: $!";
$conf =~ s/\[Fabric\]\n/[Fabric]\nManager=\/run\/nvidia-fabricmanager.sock\n/;

# The double's file of that name has these lines.
sub library { my ($file, @lines) = @_; spew("$dir/$file", join '', map { "$_\n" } @lines); return }

sub state_of { my ($module) = @_; return device($bus, $gpu{$module})->{state} }

sub becomes {
        my ($module, $state, $name) = @_;
        return ok(wait_until(sub { state_of($module) eq $state }), $name) || diag(state_of($module), ': ', device($bus, $gpu{$module})->{reason} // '');
}

# The partition of a plan for so many GPUs.
sub planned { my ($n) = @_; return ctl_json('plan', "gpu=$n")->{partition} // 'none' }

# Asks anew: Fabric Manager at a reload, all GPUs at a rescan.
sub ask { my ($verb) = @_; return is((ctl($verb))[0], 0, $verb) }

# Module 1 is lost: so are the partitions 0, 1, 3 and 7, and no other. $again makes it well.
sub partitions_follow {
        my ($what, $again) = @_;
        becomes(1, 'unhealthy', "$what: the GPU is unhealthy");
        is(device($bus, $gpu{1})->{verdict}, 'unhealthy', "$what: the verdict");
        like((ctl('explain', $gpu{1}))[1], names($gpu{1}, 'unhealthy'), "$what: explain says so");
        is_deeply([grep { $_ != 1 && state_of($_) ne 'available' } 1 .. 8], [], "$what: the others are available");
        is_error($bus->call('Plan', request(gpu => 8)), 'Insufficient', ['insufficient-devices', $gpu{1}], "$what: the partition of eight is off offer");
        is(planned(4), 2, "$what: four GPUs");
        is(ctl_json('plan', 'gpu=4', '--repeat')->{count}, 1, "$what: one partition of four is left");
        is(ctl_json('plan', 'gpu=2', '--repeat')->{count}, 3, "$what: three of two");
        is_error($bus->call('Plan', request(gpu => 4, at => [['gpu', $gpu{2}]])), 'Insufficient', ['insufficient-devices', 'Partition 1', $gpu{1}], "$what: its four are refused");
        is(allocate($bus, 'other', gpu => 4), 'done', "$what: the other four can be allocated");
        is(release($bus, 'other'), 'done', "$what: ... and released");
        $again->();
        becomes(1, 'available', "$what: it is well again");
        is(planned(8), 0, "$what: ... with its partitions");
        return;
}

# ---- GPUs on the VFIO driver: config space, AER

library('machine', 'hgx-h100');
my $path   = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu{1}") =~ s{^(?:\.\./)+}{sys/}r;
my $config = substr slurp("$ENV{NODE_ROOT}/$path/config"), 0, 256;

sub set_config { my ($bytes) = @_; fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes); return ask('rescan') }

sub errors { my ($n) = @_; return fault("set $path/aer_dev_fatal Undefined 0\\nDLP $n\\nTOTAL_ERR_FATAL $n") }

errors(2);
configure($conf =~ s/^Fabric=yes\n/Fabric=yes\nBind=start\n/mr);
$bus = Bus->new->listen;
is(driver_of($gpu{1}), 'vfio-pci', 'the GPUs are on the VFIO driver');
set_config("\xff" x 256);
partitions_follow('all ones', sub { set_config($config) });
errors(5);
if ($ENV{NODE_EVENTS} eq 'yes') { fault("event change $gpu{1}") }
else                            { ask('rescan') }
partitions_follow('AER', sub { ask('rescan') });

# A guest keeps what it has.
is(allocate($bus, 'vm', gpu => 4, at => [['gpu', $gpu{1}]]), 'done', 'a partition is allocated');
set_config("\xff" x 256);
becomes(1, 'unhealthy', 'allocated: the GPU is unhealthy');
is(allocation_state($bus, 'vm'), 'ready', 'allocated: the allocation stays');
is(planned(4), 2, 'allocated: others are planned');
set_config($config);
becomes(1, 'allocated', 'allocated: it is well again');
is(release($bus, 'vm'), 'done', 'allocated: it is released');

# ---- GPUs whose NVLinks failed

my $upper = uc $gpu{1};
library('failed', "0000$upper", '00000000:FE:00.0');
ask('reload');
partitions_follow('NVLinks failed', sub { library('failed'); ask('reload') });
library('failed', "0000$upper");
ask('reload');
becomes(1, 'unhealthy', 'NVLinks failed: again');
library('fail', 'fmGetNvlinkFailedDevices -3');
ask('reload');
becomes(1, 'available', 'NVLinks failed: a manager that does not report them');
unlink "$dir/fail", "$dir/failed";

# ---- a manager that restarted without resiliency

sub active { return (slurp_existing("$dir/active") // '') =~ s/\s+$//r }

sub forgets {
        my ($what) = @_;
        library('active');
        return ask('reload');
}

# The manager was asked for its partitions, and then for failed GPUs.
sub asked { return (slurp_existing("$dir/log") // '') =~ /^fmGetSupportedFabricPartitions\n(?:.*\n)*fmGetNvlinkFailedDevices$/m }

sub ask_quietly { return ctl('reload') }

sub questions { return scalar grep { / \Q$ENV{HOLDERS_SOCKET}\E$/ } split /\n/, slurp('/proc/net/unix') }

sub ledger_state { my ($name) = @_; return JSON::XS->new->decode(slurp(ledger_file($name)))->{state} }

sub promise {
        my ($what, $event) = @_;
        return history_shows($gpu{5}, sub { (grep { /^promise-/ } @_)[-1] eq $event }, "$what: $event in the history");
}

is(allocate($bus, 'vm', gpu => 2), 'done', 'two GPUs');
is(active(), '5', 'their partition is active');
my $generation = allocation($bus, 'vm')->{generation};
forgets('idle');
ok(wait_until(sub { active() eq '5' }), 'no guest runs: the partition is activated again');
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'ready' && !defined allocation($bus, 'vm')->{reason} }), '... and the allocation is ready');
is(allocation($bus, 'vm')->{generation}, $generation, '... and the same');

libvirt_reports($bus, running_domain('vm', UUID, @gpu{5, 7}));
is(allocation_state($bus, 'vm'), 'in-use', 'a guest runs');
forgets('in use');
ok(wait_until(sub { defined allocation($bus, 'vm')->{reason} }), 'a guest runs: there is a reason');
like(allocation($bus, 'vm')->{reason}, names('vm', 5), '... that names the partition');
is(allocation_state($bus, 'vm'), 'in-use', '... and the guest goes on');
like((ctl('show', 'vm'))[1], names('NVLink partition 5'), '... and show says so');
promise('in use', 'promise-broken');
ask('reload');
is(active(), '', 'a guest runs: nothing is activated');
is(planned(4), 1, '... and others are planned');
libvirt_reports($bus);
ask('reload');
ok(wait_until(sub { active() eq '5' }), 'the guest has ended: the partition is activated again');
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'ready' && !defined allocation($bus, 'vm')->{reason} }), '... and the allocation is ready');

my $node = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu{5}/iommu_group") =~ s{.*/}{/dev/vfio/}r;
fault('set proc/4242/comm qemu', "link proc/4242/fd/9 $node");
forgets('open');
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'failed' }), 'a process has a GPU open: the allocation is failed');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'vm', []), 'Unavailable', ['contested', 5], '... and has no document');
is(active(), '', '... and nothing is activated');
fault('remove proc/4242');
ask('reload');
ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), 'it has closed it: the partition is activated');

# The manager is away again when it is to activate: the allocation stays ready, and the next report has it tried again.
my %away = (-5 => 'does not answer in time', -6 => 'has another version', -8 => 'is not ready', -9 => 'does not run');
for my $result (sort { $b <=> $a } keys %away) {
        my $what = "the manager $away{$result}";
        $bus->forget_signals();
        library('fail', "fmActivateFabricPartition $result");
        forgets($what);
        ok(wait_until(sub { grep { $_ eq 'JobRemoved' } $bus->signal_names() }), "$what: the activation ends");
        ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') && ledger_state('vm') eq 'ready' }), '... and the allocation stays ready without its partition');
        unlink "$dir/fail";
        ask('reload');
        ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... a later report has it activated');
}
library('fail', 'fmActivateFabricPartition -10');
forgets('broken');
ok(wait_until(sub { ledger_state('vm') eq 'failed' }), 'NVLinks that do not work: the allocation is failed');
unlink "$dir/fail";
is(release($bus, 'vm'), 'done', '... and released');
is(allocate($bus, 'vm', gpu => 2), 'done', 'two GPUs again');

# An allocation is prepared again for another reason while a guest that libvirt does not know has a GPU of it.
fault('set proc/4242/comm qemu', "link proc/4242/fd/9 $node");
library('active');
fault("write sys/bus/pci/devices/$gpu{7}/driver/unbind $gpu{7}");
restart();
$bus = Bus->new->listen;
is(driver_of($gpu{7}), 'vfio-pci', 'a guest has a GPU: the other GPU is bound again');
is(active(), '', '... and the partition is left alone');
ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') }), '... which is the reason');
is(active(), '', '... still');
fault('remove proc/4242');
ask('reload');
ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... and the guest has ended: it is activated');

# After a boot Fabric Manager starts later than the daemon: the GPUs are prepared, and the partition follows.
for my $result (sort { $b <=> $a } keys %away) {
        my $what = "after a boot the manager $away{$result}";
        is(daemon('stop'), 0, "$what: the daemon stops");
        library('active');
        library('fail', "fmActivateFabricPartition $result");
        other_hand_binds($gpu{$_}, 'nvidia') for 5, 7;
        start_again($bus, $what);
        ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') && ledger_state('vm') eq 'ready' }), "$what: the allocation stays ready without its partition");
        is_deeply([map { driver_of($gpu{$_}) } 5, 7], [('vfio-pci') x 2], '... and its GPUs are prepared');
        is(active(), '', '... and the partition is not active');
        unlink "$dir/fail";
        ask('reload');
        ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... a later report has it activated');
}

# A manager that hangs after a boot, for longer than a job may take.
my $pools = $conf;
for my $timeout (4, 60) {
        my $what = "after a boot the manager hangs, JobTimeoutSec=$timeout";
        is(daemon('stop'), 0, "$what: the daemon stops");
        spew("$ENV{NODE_TMP}/passthroughd.conf", "[Daemon]\nJobTimeoutSec=$timeout\n$pools");
        library('active');
        library('hang', 'fmConnect');
        other_hand_binds($gpu{$_}, 'nvidia') for 5, 7;
        start_again($bus, $what);
        ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') && ledger_state('vm') eq 'ready' }), "$what: the allocation stays ready without its partition");
        is_deeply([map { driver_of($gpu{$_}) } 5, 7], [('vfio-pci') x 2], '... and its GPUs are prepared');
        is(device($bus, $gpu{5})->{state}, 'allocated', '... and not stuck');
        unlink "$dir/hang";
        ok(wait_until(sub { ask_quietly(); active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... and later it is activated');
}

# Nothing tells who uses the GPUs: the partition is not activated, and the allocation says so. The job asks, and not the event loop.
my $searcher = holders_pid();
is(release($bus, 'vm'), 'done', 'released');
library('hang', 'fmConnect');
library('log');
my ($signature, $entries) = request(gpu => 2, at => [['gpu', $gpu{5}]]);
is($bus->call('Allocate', "s$signature", 'vm', $entries)->{error}, undef, 'an allocation');
ok(wait_until(sub { driver_of($gpu{7}) eq 'vfio-pci' && slurp("$dir/log") =~ /fmConnect/ }), '... is prepared but for its partition');
is(daemon('stop', 'KILL'), 0, '... when the daemon is killed');
library('dead');
unlink "$dir/hang";
kill 'STOP', -$searcher or die "kill: $!";
my $quiet   = questions();
my $starter = fork // die "fork: $!";
if (!$starter) { POSIX::_exit(daemon('start')) }
ok(wait_until(sub { questions() > $quiet && -e $ENV{DAEMON_PID} }), '... and the next one asks who uses the GPUs');
is(scalar(() = daemon_children('passthroughd-jo')), 1, '... by the job');
waitpid $starter, 0;
is($?, 0, '... and the daemon starts');
$bus->forget_signals();
ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') && ledger_state('vm') eq 'ready' }), '... and without an answer the partition counts as lost');
kill 'CONT', -$searcher or die "kill: $!";
unlink "$dir/dead";
ok(wait_until(sub { ask_quietly(); active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... and with an answer it is activated');

# Of one allocation it is unknown who uses its GPUs: the others are activated.
is(allocate($bus, 'other', gpu => 2, at => [['gpu', $gpu{6}]]), 'done', 'two allocations');
is(active(), '5 6', '... have their partitions');
my @entries = map { "sys/bus/pci/devices/$gpu{6}/vfio-dev/vfio-$_" } 1 .. 9;
sub too_many { return fault(map { "set $_/dev 1:1" } @entries) }
sub few      { return fault(map { "remove $_" } @entries) }
too_many();
forgets('one is unknown');
ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), 'one is unknown: the other is activated');
ok(wait_until(sub { (allocation($bus, 'other')->{reason} // '') =~ names('partition 6') }), '... and the one has a reason');
is(active(), '5', '... and is not activated');
few();
ask('reload');
ok(wait_until(sub { active() eq '5 6' && allocation_state($bus, 'other') eq 'ready' }), '... until it is known');

# A manager that has restarted is told what is active, and not what is known as lost: that is activated anew.
sub told { return (slurp_existing("$dir/log") // '') =~ /^(fmSetActivated\w+ \d+)$/m ? $1 : 'nothing' }

too_many();
library('active', 5);
ask('reload');
ok(wait_until(sub { (allocation($bus, 'other')->{reason} // '') =~ names('partition 6') }), 'one of two partitions is lost');
library($_) for qw(active restarted log);
ask('reload');
ok(wait_until(sub { !-e "$dir/restarted" }), 'the manager restarts, and is told');
is(told() . ' ' . active(), 'fmSetActivatedFabricPartitions 1 5', '... of the other');
is(allocation($bus, 'vm')->{reason}, undef, '... which has no reason');
few();
ask('reload');
ok(wait_until(sub { active() eq '5 6' && allocation_state($bus, 'other') eq 'ready' }), '... and the one is activated later');
is(release($bus, 'other'), 'done', '... and released');

# A manager that reports, and fails to activate: it is tried again, ever later, and the reason is told once.
sub tries { return scalar(() = (slurp_existing("$dir/log") // '') =~ /^fmActivate/mg) }

my $offset = log_since();
library('fail', 'fmActivateFabricPartition -8');
library('active');
library('log');
ask('reload');
ok(wait_until(sub { tries() == 1 && (allocation($bus, 'vm')->{reason} // '') =~ names('partition 5') }), 'the activation fails');
my $reason = allocation($bus, 'vm')->{reason};
ok(wait_until(sub { tries() == 3 }), '... and is tried again and again');
my $between = join '', map { /^fmActivate/ ? 'A' : /^fmGetNvlinkFailedDevices$/ ? 's' : () } split /\n/, slurp("$dir/log");
like($between, qr/^s*As+As{2,}A/, '... the second time after the next report, the third time later');
is(allocation($bus, 'vm')->{reason}, $reason, '... and the reason stays');
is(scalar(grep { index($_, $reason) >= 0 } split /\n/, log_since($offset)), 1, '... and is logged once');
unlink "$dir/fail";
ask('reload');
ok(wait_until(sub { active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... and a reload has it tried at once');

# A manager that comes back with other partitions: the next report has them off offer, and an allocation says that it lost its own.
sub refuses { my ($n) = @_; return $bus->call('Plan', request(gpu => $n))->{error} }

library('machine', 'hgx-b200');
ask('reload');
ok(wait_until(sub { refuses(4) }), 'other partitions: the next report has them off offer');
is_error($bus->call('Plan', request(gpu => 4)), 'Insufficient', ['insufficient-devices', 'Partition 1', 'Partition 2'], '... which a refusal says');
ok(wait_until(sub { (allocation($bus, 'vm')->{reason} // '') =~ names('vm', 5) }), '... and the allocation has a reason');
library('machine', 'hgx-h100');
ask('reload');
ok(wait_until(sub { !refuses(4) && allocation_state($bus, 'vm') eq 'ready' }), '... until the manager has them again');

# The search for guests is slow: the daemon goes on. A stopped child keeps the answer of the daemon's services; the daemon kills it after 20 s,
# and then it is asked again.
sub asks { my ($child) = @_; return grep { $_ == $child } daemon_children('passthroughd-fm') }

my $holders = holders_pid();
kill 'STOP', -$holders or die "kill: $!";
library('active');
ok(wait_until(sub {
        my $before = questions();
        ask_quietly();
        wait_until(sub { questions() > $before }, 5) or return 0;
        my ($child) = daemon_children('passthroughd-fm') or return 0;
        kill 'STOP', $child or return 0;
        $bus->ping() for 1 .. 20;
        my $alive = asks($child);
        kill 'CONT', $child;
        return $alive;
}, 120), 'the search hangs: the daemon answers meanwhile');
kill 'CONT', -$holders or die "kill: $!";
ok(wait_until(sub { ask_quietly(); active() eq '5' && allocation_state($bus, 'vm') eq 'ready' }), '... and later the partition is activated');

# The manager is asked about the partition 5 while it is not active, and its answer is late: the function changes something meanwhile. The
# answer also says that GPU 1 failed, which shows when it is read.
sub answers_late {
        my ($what, $prepare, $change) = @_;
        my $child;
        ok(wait_until(sub {
                $prepare->();
                wait_until(sub { state_of(1) eq 'available' && !daemon_children('passthroughd-fm') }) or return 0;
                library('hang',   'fmGetNvlinkFailedDevices');
                library('failed', "0000$upper");
                library($_) for qw(active log);
                ask_quietly();
                ($child) = wait_until(sub { asked() }) ? daemon_children('passthroughd-fm') : ();
                kill 'STOP', $child if $child;
                unlink "$dir/hang", "$dir/failed";
                my $changed = $change->() && active() eq '5';
                $bus->ping();
                $bus->forget_signals();
                kill 'CONT', $child if $child;
                # The daemon kills a child that takes too long.
                return $changed && wait_until(sub { state_of(1) eq 'unhealthy' || !$child || !asks($child) }) && state_of(1) eq 'unhealthy';
        }, 120), "$what: ... and then the answer is read");
        ok(wait_until(sub { ask_quietly(); state_of(1) eq 'available' }), "$what: ... and the next one");
        is_deeply([grep { $_ eq 'JobNew' } $bus->signal_names()], [], "$what: ... and the late answer starts no job");
        return;
}

# Another allocation got the partition.
answers_late('another allocation', sub {
                release($bus, 'next') if allocation_state($bus, 'next') ne 'gone';
                allocate($bus, 'vm', gpu => 2, at => [['gpu', $gpu{5}]]) if allocation_state($bus, 'vm') eq 'gone';
}, sub { return join(' ', release($bus, 'vm'), allocate($bus, 'next', gpu => 2, at => [['gpu', $gpu{5}]])) eq 'done done' });
is(allocation($bus, 'next')->{reason}, undef, '... and gives no reason');

# A job activated it for the same allocation.
if ($ENV{NODE_EVENTS} eq 'yes') {
        my $seventh = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu{7}") =~ s{^(?:\.\./)+}{sys/}r;
        answers_late('the same allocation', sub { ask_quietly(); wait_until(sub { active() eq '5' && allocation_state($bus, 'next') eq 'ready' }); return },
                sub {
                        fault("remove $seventh");
                        wait_until(sub { (state_of(7) // 'missing') eq 'missing' });
                        fault('write sys/bus/pci/rescan 1');
                        return wait_until(sub { driver_of($gpu{7}) eq 'vfio-pci' && active() eq '5' && allocation_state($bus, 'next') eq 'ready' });
                });
        is(allocation($bus, 'next')->{reason}, undef, '... and gives no reason');
}
is(release($bus, 'next'), 'done', 'it is released');

# ---- GPUs on NVIDIA's driver: NVML

configure($conf);
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm'), 'gone', 'nothing is allocated');
other_hand_binds($gpu{$_}, 'nvidia') for 1 .. 8;
ask('rescan');
library('active');
library('modules', map { "0000$gpu{$_} $_" } 1 .. 8);
library('lost', "0000$gpu{1}");
ask('rescan');
partitions_follow('NVML', sub { library('lost'); ask('rescan') });
# A question of that rescan would find the loss before the event is handled, which then asks later.
ok(wait_until(sub { !daemon_children('passthroughd-nv') }), 'NVML: nobody is asking');
library('lost', "0000$gpu{2}");
if ($ENV{NODE_EVENTS} eq 'yes') { fault("event change $gpu{2}") }
else                            { ask('rescan') }
becomes(2, 'unhealthy', 'NVML: after an event');
like(device($bus, $gpu{2})->{reason}, names($gpu{2}, 'NVIDIA'), 'NVML: the reason');
ok(wait_until(sub { !daemon_children('passthroughd-nv') }), 'NVML: nobody is asking');
library('nvml-hangs');
ask('rescan');
ok(wait_until(sub { slurp("$dir/nvml-hangs") && !daemon_children('passthroughd-nv') }), 'NVML: a library that hangs is waited for');
# A late event of a GPU asks once more.
cmp_ok(scalar(() = slurp("$dir/nvml-hangs") =~ /^asked$/mg), '<=', 2, 'NVML: ... and not asked for each of eight GPUs');
is(state_of(2),              'unhealthy', 'NVML: ... and clears no GPU');
# The process that asks has the GPU open, so an allocation right after a release would be refused.
if ($ENV{NODE_EVENTS} eq 'yes') {
        library('nvml-hangs');
        my $named = sub { return scalar @{ (grep { $_->{address} eq $gpu{3} } @{ describe($bus)->{devices} })[0]{kernel_names} } };
        other_hand_binds($gpu{3}, 'vfio-pci');
        ok(wait_until(sub { !$named->() }), 'NVML: a GPU is taken from its driver');
        other_hand_binds($gpu{3}, 'nvidia');
        ok(wait_until($named), 'NVML: ... and given back');
        is(slurp("$dir/nvml-hangs"), '', 'NVML: ... whose module id is known, so the library is not asked');
}
unlink "$dir/nvml-hangs";
other_hand_binds($gpu{2}, 'vfio-pci');
ask('rescan');
becomes(2, 'available', 'NVML: the config space decides on another driver');

# ---- a reload that adds Fabric=yes

library('lost');
my $file = "$ENV{NODE_TMP}/passthroughd.conf";
$conf =~ s/^Module=.*\n//mg;
configure($conf =~ s/^Fabric=yes\n//mr);
$bus = Bus->new->listen;
is(device($bus, $gpu{3})->{module}, undef, 'without Fabric=yes module ids are not asked for');
spew($file, $conf);
ask('reload');
ok(wait_until(sub { (device($bus, $gpu{3})->{module} // 0) == 3 }), 'a reload that adds it asks');

done_testing();
