#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Random operations, failures and foreign hands; after each the ledger, the disk and the node must agree.
# SOAK_OPERATIONS (10000) of them from SOAK_SEED (1).
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use JSON::XS;
use Test::More;
use Time::HiRes qw(time);

use Node;

use constant { SECONDS => 5, SHOWN => 15, NODE_MEMORY => 32 * 2**30 };

node('../long/machine');

my $OPERATIONS = $ENV{SOAK_OPERATIONS} || 10_000;
my $SEED       = $ENV{SOAK_SEED}       || 1;
my @NAMES      = map { "guest$_" } 1 .. 10;
my %PFS        = ('0000:11:00.0' => 2, '0000:81:00.0' => 2, '0000:82:00.0' => 4);
my @GPUS       = qw(0000:13:00.0 0000:84:00.0);
my %PATH       = ('0000:13:00.0' => '10/0000:10:05.0', '0000:84:00.0' => '80/0000:80:07.0', '0000:11:00.0' => '10/0000:10:01.0',
        '0000:81:00.0' => '80/0000:80:01.0', '0000:82:00.0' => '80/0000:80:03.0');

srand $SEED;
my $bus = Bus->new->listen;
my (%foreign, %unplugged, @done, %count, %violations, $now);

sub one { return $_[int rand @_] }

sub did { push @done, "$now: $_[0]"; shift @done if @done > SHOWN; return }

# ---- what must be true

sub ledger_is_sound {
        my ($of) = @_;
        my %device = map { $_->{address} => $_ } @{ $of->{devices} };
        my (%holder, %group, %cpu, %memory, @wrong);
        for my $a (@{ $of->{allocations} }) {
                for my $address (map { $_->{address} } @{ $a->{devices} }) {
                        push @wrong, "$address is in $holder{$address} and $a->{name}" if $holder{$address};
                        $holder{$address} = $a->{name};
                        my $group = $device{$address} ? $device{$address}{iommu_group} : undef;
                        next if !defined $group;
                        push @wrong, "group $group is in $group{$group} and $a->{name}" if ($group{$group} // $a->{name}) ne $a->{name};
                        $group{$group} = $a->{name};
                }
                for my $cpu (map { $_->{cpu} } @{ $a->{pins} }) {
                        push @wrong, "CPU $cpu is pinned by $cpu{$cpu} and $a->{name}" if $cpu{$cpu};
                        $cpu{$cpu} = $a->{name};
                }
                $memory{$_} += $a->{memory}{$_} for keys %{ $a->{memory} };
        }
        push @wrong, map { "node $_ has $memory{$_} bytes promised" } grep { $memory{$_} > NODE_MEMORY } keys %memory;
        return @wrong;
}

# On disk an allocation that is ready and has a reason is what the bus calls failed.
sub standing {
        my ($a) = @_;
        my $state = $a->{state} eq 'ready' && defined $a->{reason} ? 'failed' : $a->{state};
        return join ' ', @$a{qw(name generation)}, $state, sort map { $_->{address} } @{ $a->{devices} };
}

sub directory { my ($name) = @_; return map { s{.*/}{}r } glob "$ENV{STATE_DIRECTORY}/$name/{,.}*[a-z]" }

sub disk_agrees {
        my ($of) = @_;
        my @files = grep { /\.json$/ } directory('allocations');
        my $disk  = join "\n", sort map { standing(JSON::XS->new->decode(slurp("$ENV{STATE_DIRECTORY}/allocations/$_"))) } @files;
        my $bus   = join "\n", sort map { standing($_) } @{ $of->{allocations} };
        my @wrong = $disk eq $bus ? () : "the disk has\n$disk\nand the bus\n$bus";
        my $kept  = join ' ', sort map { s/\.json$//r } grep { /\.json$/ } directory('quarantine');
        my $told  = join ' ', sort map { $_->{address} } @{ $of->{quarantine} };
        push @wrong, "the disk has '$kept' in quarantine, the bus '$told'" if $kept ne $told;
        return @wrong;
}

# What another hand changed is what that made of it.
sub node_agrees {
        my ($of) = @_;
        my %device      = map { $_->{address} => $_ } @{ $of->{devices} };
        my %quarantined = map { $_->{address} => 1 } @{ $of->{quarantine} };
        my (%held, @wrong);
        for my $a (@{ $of->{allocations} }) {
                $held{ $_->{address} } = 1 for @{ $a->{devices} };
                push @wrong, "$a->{name} is $a->{state} though no job is at work" if $a->{state} !~ /^(?:ready|failed)$/;
                push @wrong, "$a->{name} has failed without a reason" if $a->{state} eq 'failed' && !$a->{reason};
                next if $a->{state} ne 'ready' || $a->{reason};
                for my $d (grep { !$foreign{ $_->{address} } } @{ $a->{devices} }) {
                        my $driver = driver_of($d->{address});
                        push @wrong, "$d->{address} of $a->{name}, which is ready, is on $driver" if $driver ne 'vfio-pci';
                        push @wrong, attributes_differ($a, $d);
                }
        }
        for my $address (keys %device) {
                my $driver = driver_of($address);
                push @wrong, "$address is on $driver, the daemon says " . ($device{$address}{driver} // 'none')
                        if -e "$ENV{NODE_ROOT}/sys/bus/pci/devices/$address" && $driver ne ($device{$address}{driver} // 'none');
                push @wrong, "$address is on vfio-pci, and nobody's" if $driver eq 'vfio-pci' && !$held{$address} && !$quarantined{$address} && !$foreign{$address};
        }
        return @wrong;
}

sub attributes_differ {
        my ($a, $d) = @_;
        my $wanted = $d->{attributes}{mac} // return;
        my $pf     = "$ENV{NODE_ROOT}/sys/bus/pci/devices/$d->{physical_function}";
        my ($vf)   = map { m{virtfn(\d+)$} } grep { readlink =~ m{/\Q$d->{address}\E$} } glob "$pf/virtfn*";
        return "$d->{address} of $a->{name} is no VF of $d->{physical_function}" if !defined $vf;
        my $mac = slurp("$pf/vf-netlink/$vf/mac") =~ s/\n//r;
        return $mac eq $wanted ? () : "$d->{address} of $a->{name} has MAC $mac, not $wanted";
}

sub children { return grep { length } split ' ', -r "/proc/$_[0]/task/$_[0]/children" ? slurp("/proc/$_[0]/task/$_[0]/children") : '' }

sub wrong {
        my $of = describe($bus);
        my @wrong = (ledger_is_sound($of), disk_agrees($of), node_agrees($of));
        push @wrong, "read-only: $of->{read_only}" if $of->{read_only};
        push @wrong, 'it has a child though no job is at work' if children(pid());
        return @wrong;
}

# ---- operations

sub allocations { return @{ $bus->call('ListAllocations')->{body}[0] } }

# Ends that are in order: of a job, or a refusal. The last: an allocation that goes with a device which is unplugged.
sub ended {
        my ($what, $result) = @_;
        $result //= 'nothing';
        did("$what: $result");
        $count{ $result =~ s/.*\.//r }++;
        return if $result =~ /^(?:done|failed|org\.passthroughd1\.Error\.\w+)$/ && $result !~ /InvalidRequest/;
        $violations{"'$what' ends as $result"} //= join "\n", @done;
        return;
}

sub random_request {
        my @pairs;
        for my $pool (qw(gpu ethernet infiniband ofed)) {
                my $n = rand() < 0.6 ? 0 : 1 + int rand($pool eq 'gpu' ? 1 : 2);
                push @pairs, $pool => $n if $n;
        }
        push @pairs, cpus => 1 + int rand 3, memory => (1 + int rand 12) * 2**30 if @pairs == 0 || rand() < 0.6;
        my %pools = @pairs;
        my @attributes = $pools{ethernet} && rand() < 0.5 ? ['ethernet0', one('vlan=' . (1 + int rand 4000), 'trust=on', 'mac=02:00:00:00:00:0' . int rand 9)] : ();
        push @attributes, ['infiniband0', 'link=' . one('up', 'auto')] if $pools{infiniband} && rand() < 0.2;
        return (@pairs, @attributes ? ('vf-attributes' => \@attributes) : ());
}

sub words { return join ' ', map { ref ? map { "$_->[0]:$_->[1]" } @$_ : $_ } @_ }

sub op_allocate {
        my ($name, @request) = (one(@NAMES), random_request());
        return ended("allocate $name " . words(@request), (allocate($bus, $name, @request))[0]);
}

sub op_release {
        my ($name) = map { $_->[0] } one(allocations()) // return op_allocate();
        return ended("release $name", (release($bus, $name))[0]);
}

sub op_stale {
        my ($name, undef, $generation) = @{ one(allocations()) // return };
        my $before = snapshot(times => 1);
        fault('reset');
        my $error = $bus->call('Release', 'st', $name, $generation - 1)->{error} // 'nothing';
        ended("release $name, stale", $error);
        $violations{"a stale release of $name is answered by $error"} //= join "\n", @done if $error !~ /\.(?:Stale|WrongState)$/;
        $violations{"a stale release of $name changed something"} //= join "\n", @done if writes() || !eq_hash(snapshot(times => 1), $before);
        return;
}

sub op_restart { my ($signal) = @_; did("restart by SIG$signal"); restart($signal); $bus->forget_signals(); return }

sub op_unplug {
        my $address = one(grep { !$unplugged{$_} } sort keys %PATH) // return;
        did("unplug $address");
        fault("remove sys/devices/pci0000:$PATH{$address}/$address");
        $unplugged{$address} = 1;
        return noticed();
}

# The next operation waits until the daemon has created the VFs of new PFs, so that no later one is blamed for that.
sub op_replug {
        return if !%unplugged;
        my @pfs = grep { $PFS{$_} } sort keys %unplugged;
        did('plug in ' . join ' ', sort keys %unplugged);
        fault('write sys/bus/pci/rescan 1');
        %unplugged = ();
        noticed();
        $violations{"a PF of @pfs that was plugged in has no VFs"} //= join "\n", @done
                if !wait_until(sub { !grep { vfs($_) != $PFS{$_} } @pfs }, SECONDS);
        return;
}

# Events tell of it, or a rescan.
sub noticed { $bus->call('Rescan') if rand() < 0.5 || $ENV{NODE_EVENTS} ne 'yes'; return }

sub random_fault {
        my $n = 1 + int rand 20;
        return one("fail $n " . one(qw(EIO ENODEV ENOMEM EBUSY)), "fail-after $n EIO", "silent $n", "kill $n " . one('before', 'after'));
}

sub op_fault {
        my $fault = random_fault();
        did($fault);
        fault('reset', $fault);
        rand() < 0.5 ? op_allocate() : op_release();
        fault('reset');
        return;
}

# The daemon is killed while a write waits, if the operation comes that far.
sub op_kill_in_job {
        my ($n, $kind) = (1 + int rand 15, one('hang', 'unkillable'));
        my ($name, undef, $generation) = @{ one(allocations()) // [] };
        my ($signature, $entries) = request(random_request());
        my @call = defined $name && rand() < 0.5 ? ('Release', 'st', $name, $generation) : ('Allocate', "s$signature", one(@NAMES), $entries);
        fault('reset', "$kind $n");
        $bus->forget_signals();
        my $reply = $bus->call(@call);
        wait_until(sub { (grep { /PENDING/ } write_log()) || !$bus->ping() || grep { $_->{member} eq 'JobRemoved' } @{ $bus->{signals} } }) if !$reply->{error};
        did("$call[0] $call[2], killed at $kind $n: " . ($reply->{error} // 'begun'));
        daemon('stop', 'KILL');
        fault('release');
        wait_until(sub { !grep { /PENDING/ } write_log() });
        fault('reset');
        daemon('start') == 0 or die 'the daemon does not start';
        $bus->forget_signals();
        return;
}

sub vfs { my ($pf) = @_; return map { readlink =~ s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/virtfn*" }

sub all_devices { return grep { -e "$ENV{NODE_ROOT}/sys/bus/pci/devices/$_" } @GPUS, map { vfs($_) } sort keys %PFS }

sub op_foreign {
        my $address = one(all_devices()) // return;
        my $device  = "sys/bus/pci/devices/$address";
        my $kind    = one(qw(unbind bind override numvfs));
        if ($kind eq 'numvfs') {
                my ($pf, $n) = (one(sort keys %PFS), int rand 5);
                return if $unplugged{$pf};
                did("another hand writes $n to sriov_numvfs of $pf");
                fault("write sys/bus/pci/devices/$pf/sriov_numvfs 0");
                delete $foreign{$_} for vfs($pf);
                fault("write sys/bus/pci/devices/$pf/sriov_numvfs $n") if $n;
                $foreign{$_} = 1 for vfs($pf);
                return noticed();
        }
        did("another hand: $kind $address");
        $foreign{$address} = 1;
        fault("write $device/driver/unbind $address") if $kind eq 'unbind' && driver_of($address) ne 'none';
        other_hand_binds($address, one('vfio-pci', 'pci-stub', '')) if $kind eq 'bind';
        fault("write $device/driver_override " . one('pci-stub', 'vfio-pci', '\\n')) if $kind eq 'override';
        return noticed();
}

# Somebody repairs what another hand did, where nobody has it.
sub op_home {
        my $of    = describe($bus);
        my %taken = map { $_->{address} => 1 } @{ $of->{quarantine} }, map { @{ $_->{devices} } } @{ $of->{allocations} };
        for my $address (grep { !$taken{$_} } sort keys %foreign) {
                did("$address goes home");
                delete $foreign{$address};
                my $device = "sys/bus/pci/devices/$address";
                next if !-e "$ENV{NODE_ROOT}/$device";
                if (grep { $_ eq $address } @GPUS) { other_hand_binds($address, '') }
                else { fault("write $device/driver/unbind $address") if driver_of($address) ne 'none' }
                fault("write $device/driver_override \\n");
        }
        return noticed();
}

sub op_clear {
        my $entry = one(@{ describe($bus)->{quarantine} }) // return;
        my $reply = $bus->call('ClearQuarantine', 's', $entry->{address});
        return ended("clear $entry->{address}", $reply->{error} // $bus->result($reply->{body}[0]));
}

sub op_set_vfs {
        my $pf    = one(sort keys %PFS);
        my $n     = rand() < 0.6 ? $PFS{$pf} : int rand 5;
        my @were  = vfs($pf);
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, $n);
        my $result = $reply->{error} // $bus->result($reply->{body}[0]);
        ended("set-vfs $pf $n", $result);
        delete @foreign{@were} if $result eq 'done' && @were != $n; # they are new ones
        return;
}

my @OPERATIONS = (
        [30, \&op_allocate], [24, \&op_release], [4, \&op_stale], [10, \&op_fault], [6, \&op_unplug], [8, \&op_replug], [10, \&op_foreign],
        [8, \&op_home], [8, \&op_clear], [5, \&op_set_vfs], [1, sub { $bus->call('Rescan'); did('rescan') }],
);
my @ENDS = ([3, \&op_kill_in_job], [1, sub { op_restart('KILL') }], [1, sub { op_restart('TERM') }]);

sub operate {
        my (@of) = @_;
        my $sum = 0;
        $sum += $_->[0] for @of;
        my $at = rand $sum;
        for (@of) { return $_->[1]->() if ($at -= $_->[0]) < 0 }
        return;
}

# ---- run. A daemon's memory is that of its own life: the second half is one life.

# Pages that a child has too, for as long as it is there, are its own all the same.
sub own_memory { return (slurp('/proc/' . pid() . '/smaps_rollup') =~ /^Anonymous:\s*(\d+)/m)[0] }

# Without the text of a long reply, which the daemon may keep until it makes the next one.
sub descriptors { return scalar grep { (readlink // '') !~ /passthroughd-reply/ } glob '/proc/' . pid() . '/fd/*' }

my (%memory, %fds, $life);
my $began = time;
for (1 .. $OPERATIONS) {
        $now = $_;
        operate(@OPERATIONS, $now <= $OPERATIONS / 2 ? @ENDS : ());
        my @wrong;
        wait_until(sub { @wrong = wrong(); return !@wrong }, SECONDS);
        $violations{$_} //= join "\n", @done for @wrong;
        if (%violations) {
                diag("$_\n  after\n$violations{$_}\n") for sort keys %violations;
                last;
        }
        note(sprintf '%d operations, %.0f s', $now, time - $began) if $now % 500 == 0;
        $life //= pid() if $now > $OPERATIONS / 2;
        ($memory{begin}, $fds{begin}) = (own_memory(), descriptors()) if $now == int $OPERATIONS * 0.6;
}
is(scalar keys %violations, 0, "seed $SEED: $now operations, nothing was out of order") or diag("SOAK_SEED=$SEED, at operation $now of $OPERATIONS");
diag(sprintf '%d operations in %.0f s: %s', $now, time - $began, join ', ', map { "$count{$_} $_" } sort { $count{$b} <=> $count{$a} } keys %count);
if (!%violations) {
        is(pid(), $life, 'the daemon of the second half lives');
        ($memory{end}, $fds{end}) = (own_memory(), descriptors());
        cmp_ok($memory{end}, '<=', $memory{begin} * 1.2, "its memory is flat, $memory{begin} and $memory{end} KiB");
        ok(wait_until(sub { descriptors() == $fds{begin} }), "it has $fds{begin} descriptors as before") or diag(descriptors());
        is_deeply([children(pid())], [], 'and no child');
}
release_all($bus);
done_testing();
