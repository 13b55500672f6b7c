# SPDX-License-Identifier: GPL-2.0-or-later
# Kills the daemon, or its process that writes, at each instant of an operation, and checks the state soon after the next start.
package Crash;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;
use Time::HiRes qw(time);

use Node;

our @EXPORT = qw(chosen tell_outcomes preload_dying memorize allocated begin_call begin_on_guest begin_allocate begin_release interrupted home_again crash_points %START);

use constant { SECONDS => 5, POINTS_MAX => 200 };

# SWEEP_EVERY=1 tries all instants, N every Nth one. The default reaches each kind of instant.
my $EVERY = $ENV{SWEEP_EVERY} || 37;
my ($met, $tried, $missed) = (0, 0, 0);

# Each instant has another order of writes to different devices. SWEEP_SEED is the first seed.
my $seed = $ENV{SWEEP_SEED} || 1;

sub chosen { return $met++ % $EVERY == 0 && ++$tried }

my %seen;  # outcome => number
my %known; # the state at the start of the sweep, and the bus and request of its operations

sub tell_outcomes {
        cmp_ok($missed, '<=', $tried / 5, "few of $tried instants are after the last write of their operation");
        diag("$tried instants were tried, $missed after the last write, seeds from " . ($ENV{SWEEP_SEED} || 1) . ', all converged: ' . join ', ', map { "$seen{$_} $_" } sort keys %seen) if Test::More->builder->is_passing;
        return;
}

# Preloads dying.so into the next daemon, which then dies where die_at() says.
sub preload_dying {
        my $file = "$ENV{NODE_TMP}/daemon.preload";
        return spew($file, slurp($file) =~ s{\n}{:$ENV{BUILD}/tests/dying.so\n}r);
}

# ---- operations on the allocation "guest". Each begin_ function returns a function that waits for the end. With a true argument, after the daemon
# was killed, that function only cleans up.

my $job;

sub begin_call {
        my (@call) = @_;
        my $bus = $known{bus};
        $bus->forget_signals();
        my $reply = $bus->call(@call);
        $job = $reply->{error} ? undef : $reply->{body}[-1];
        return sub {
                my ($killed) = @_;
                return 1 if $killed;
                diag("$reply->{error}: $reply->{body}[0]") if $reply->{error};
                return $bus->result($job // 'none');
        };
}

sub job_is_over { return !$job || $known{bus}->ping()->{error} || grep { $_->{member} eq 'JobRemoved' } @{ $known{bus}{signals} } }

sub begin_allocate {
        my (@further) = @_;
        my ($signature, $entries) = request(@{ $known{request} }, @further);
        return begin_call('Allocate', "s$signature", 'guest', $entries);
}

# Begins a method whose first arguments are name and generation of the allocation.
sub begin_on_guest {
        my ($method, $signature, @values) = @_;
        return begin_call($method, "st$signature", 'guest', Node::generation($known{bus}, 'guest'), @values);
}

sub begin_release { return begin_on_guest('Release', '') }

# Returns whether the daemon is idle: with this order of writes, an operation may have fewer writes than were counted.
sub nothing_is_left {
        my $bus = $known{bus};
        return 0 if !-s "$ENV{NODE_TMP}/daemon.log" || $bus->ping()->{error};
        my $jobs = $bus->ask('org.passthroughd1', '/org/passthroughd1/job', 'org.freedesktop.DBus.Introspectable', 'Introspect')->{body}[0] // '';
        return 0 if $jobs =~ /<node name=/;
        my $guest = allocation($bus, 'guest');
        return !$guest || $guest->{state} =~ /^(?:ready|reserved|failed)$/;
}

# Starts a daemon that may be killed during its start.
sub begin_start {
        my $starter = fork // die "fork: $!";
        return sub { waitpid $starter, 0; return $? >> 8 } if $starter;
        open STDERR, '>>', "$ENV{NODE_TMP}/script.log" or die $!;
        exec "$ENV{NODE_TMP}/start-daemon" or die "start-daemon: $!";
}

sub start_is_over { return -s "$ENV{NODE_TMP}/daemon.log" && !$known{bus}->ping()->{error} }

our %START = (begin => \&begin_start, over => \&start_is_over);

sub allocated {
        is(allocate($known{bus}, 'guest', @{ $known{request} }), 'done', 'there is an allocation') if !allocation($known{bus}, 'guest');
        return;
}

# Kills the daemon at the Nth write of an operation, before the write has an effect.
sub interrupted {
        my ($n, $begin) = @_;
        fault('reset', "hang $n");
        $begin->();
        wait_until(sub { grep { /^$n .*PENDING/ } write_log() }) or fail("write $n waits");
        kill_daemon("at write $n", 'hang');
        return;
}

# ---- the state of the node

# Returns the devices in sysfs, which are all but the slots for mediated devices.
sub functions { my ($bus) = @_; return grep { -e "$ENV{NODE_ROOT}/sys/bus/pci/devices/$_->{address}" } @{ describe($bus)->{devices} } }

# Records the state at the start: only the bystander is allocated. Its VF is not one of $pf; without $pf, no operation creates VFs. Operations
# allocate the guest with @request.
sub memorize {
        my ($bus, $bystander, $pf, @request) = @_;
        %known = (
                bus        => $bus,
                request    => \@request,
                pf         => $pf,
                home       => { map { $_->{address} => $_->{driver} // 'none' } functions($bus) },
                override   => { map { $_->{address} => slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_->{address}/driver_override") } functions($bus) },
                mdevs      => { map { $_ => 1 } mdevs() },
                tree       => tree(),
                state      => snapshot(),
                bystander  => $bystander,
                driver     => driver_of(allocation($bus, $bystander)->{devices}[0]{address}),
                file       => slurp(ledger_file($bystander)),
                driverless => { map { $_->{address} => 1 } grep { !defined $_->{driver} } @{ describe($bus)->{devices} } },
        );
        return;
}

# Compares the recorded attributes of an allocation with the kernel's, if the kernel shows them.
sub attributes_differ {
        my ($allocation, $of) = @_;
        my @differ;
        for my $d (grep { $_->{attributes} } @{ $allocation->{devices} }) {
                my $pf = "$ENV{NODE_ROOT}/sys/bus/pci/devices/$d->{physical_function}";
                my ($vf) = map { m{virtfn(\d+)$} } grep { readlink =~ m{/\Q$d->{address}\E$} } glob "$pf/virtfn*";
                return "$d->{address} is no VF of $d->{physical_function}" if !defined $vf;
                my %file = (mac => ['mac'], node_guid => [qw(node_guid node)], port_guid => [qw(port_guid port)]);
                for my $name (grep { defined $d->{attributes}{$_} } sort keys %file) {
                        my ($path) = grep { -e } map { ("$pf/vf-netlink/$vf/$_", "$pf/sriov/$vf/$_") } @{ $file{$name} };
                        my $has = slurp($path) =~ s/\n//r;
                        push @differ, "$d->{address} has $name $has, $d->{attributes}{$name} is recorded" if $has ne $d->{attributes}{$name};
                }
        }
        return @differ;
}

sub difference {
        my ($before, $now) = @_;
        my %count;
        $count{$_}++ for split /\n/, $now;
        $count{$_}-- for split /\n/, $before;
        return map { ($count{$_} > 0 ? '+' : '-') . " $_" } grep { $count{$_} } sort keys %count;
}

# Replaces the UUIDs of mediated devices, which their allocation chooses, and their groups, which depend on the order of creation.
sub tree_without_uuids {
        my ($tree) = @_;
        return Node::remembered('uuids', $tree, sub { join "\n", sort split /\n/, $tree =~ s{\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{2}}{UUID}gr =~ s{iommu_groups/\d{4,}}{iommu_groups/MEDIATED}gr });
}

# Returns nothing if the tree is one of @trees, else its differences from the first.
sub tree_is_none_of {
        my (@trees) = @_;
        my ($now, @known) = map { tree_without_uuids(tree_without_identities($_)) } tree(), @trees;
        return if grep { $_ eq $now } @known;
        return ('the tree is none of those it may be', difference($known[0], $now));
}

sub bystander_was_touched {
        my ($of) = @_;
        my ($bystander) = grep { $_->{name} eq $known{bystander} } @{ $of->{allocations} };
        return 'the bystander is gone' if !$bystander;
        my @wrong = $bystander->{state} eq 'ready' ? () : "the bystander is $bystander->{state}: $bystander->{reason}";
        push @wrong, "$_ of the bystander is on " . driver_of($_) for grep { driver_of($_) ne $known{driver} } map { $_->{address} } grep { !$_->{vgpu_type} } @{ $bystander->{devices} };
        push @wrong, attributes_differ($bystander);
        push @wrong, 'the ledger file of the bystander changed' if slurp(ledger_file($known{bystander})) ne $known{file};
        return @wrong;
}

sub driverless {
        my ($of) = @_;
        return map { "$_->{address} has no driver" } grep { !defined $_->{driver} && $_->{type} ne 'vf' && !$known{driverless}{ $_->{address} } } @{ $of->{devices} };
}

# Compares the taken slots of remote GPUs with the slots of allocations.
sub slots_are_wrong {
        my ($of) = @_;
        my %has;
        $has{ $_->{endpoint} } += $_->{slots} for map { @{ $_->{services} } } @{ $of->{allocations} };
        return map { "$_->{allocated} slots of $_->{endpoint} are taken, allocations have " . ($has{ $_->{endpoint} } // 0) }
                grep { $_->{allocated} != ($has{ $_->{endpoint} } // 0) || $_->{allocated} > $_->{slots} } map { @{ $_->{endpoints} // [] } } @{ $of->{pools} };
}

# Returns the outcome, and its problems. %may: trees by outcome.
sub look {
        my ($bus, $name, %may) = @_;
        my $of = describe($bus);
        my ($guest) = grep { $_->{name} eq $name } @{ $of->{allocations} };
        my $outcome = $guest ? $guest->{state} : @{ $of->{quarantine} } ? 'quarantined' : 'gone';
        my @wrong;

        push @wrong, "read-only: $of->{read_only}" if $of->{read_only};
        push @wrong, bystander_was_touched($of);
        push @wrong, "$outcome is no outcome" . ($guest && $guest->{reason} ? ": $guest->{reason}" : '') if !$may{$outcome};
        push @wrong, driverless($of) if $outcome ne 'failed';
        push @wrong, tree_is_none_of(@{ $may{$outcome} }) if $may{$outcome} && $outcome ne 'failed';
        push @wrong, attributes_differ($guest) if $outcome eq 'ready';
        push @wrong, map { "$_->{address} is $_->{phase}" } grep { $_->{phase} ne 'settled' } $guest ? @{ $guest->{devices} } : ();
        push @wrong, 'a failed allocation gives no reason' if $outcome eq 'failed' && !$guest->{reason};
        push @wrong, slots_are_wrong($of);
        push @wrong, 'the ledger is not that of the start' if $outcome eq 'gone' && !is_same(snapshot(), $known{state});
        return ($outcome, @wrong);
}

# Compares snapshots without temporary files: a write that a crash interrupted leaves one, and the next write of that name replaces it.
sub is_same {
        my ($a, $b) = map { my $of = $_; +{ map { $_ => $of->{$_} } grep { !m{/[.][^/]+[.]tmp$} } keys %$of } } @_;
        return keys %$a == keys %$b && !grep { !defined $b->{$_} || $a->{$_} ne $b->{$_} } keys %$a;
}

# Checks that the daemon, which was started at $began, reaches a correct state within the deadline. Returns the outcome.
sub in_time {
        my ($bus, $began, $what, $name, %may) = @_;
        my ($outcome, @wrong);
        wait_until(sub { ($outcome, @wrong) = look($bus, $name, %may); return !@wrong }, SECONDS - (time - $began));
        ok(!@wrong, "$what: all is in order within " . SECONDS . " s, $outcome") or diag(map { "$_\n" } @wrong);
        $seen{$outcome}++;
        return $outcome;
}

# Returns to the state at the start, and checks that this is possible.
sub home_again {
        my ($bus, $what, $name, $before) = @_;
        $bus->forget_signals();
        $before->() if $before;
        # A start may continue a change of the allocation.
        wait_until(\&nothing_is_left);
        if (my $guest = allocation($bus, $name)) {
                my ($result, $why) = release($bus, $name);
                is($result, 'done', "$what: it can be released") or diag($why);
        }
        eval { clear_quarantine($bus) };
        is($@, '', "$what: nothing stays in quarantine");
        my @wrong = tree_is_none_of($known{tree});
        ok(!@wrong, "$what: then the tree is that of the start") or diag(map { "$_\n" } @wrong);
        ok(is_same(snapshot(), $known{state}), "$what: and the ledger") or push @wrong, 'the ledger';
        mend($name) if @wrong;
        return;
}

# Restores the state at the start by force after a failure: removes ledger files, and binds devices to their drivers.
sub mend {
        my ($name) = @_;
        daemon('stop', 'KILL');
        unlink ledger_file($name), glob "$ENV{STATE_DIRECTORY}/quarantine/*.json";
        for my $device (keys %{ $known{home} }) {
                my $path = "sys/bus/pci/devices/$device";
                next if driver_of($device) eq $known{home}{$device} && slurp("$ENV{NODE_ROOT}/$path/driver_override") eq $known{override}{$device};
                fault("write $path/driver/unbind $device") if driver_of($device) ne 'none';
                fault("write $path/driver_override \\n");
                fault("write sys/bus/pci/drivers_probe $device") if $known{home}{$device} ne 'none';
        }
        fault("write sys/bus/mdev/devices/$_/remove 1") for grep { !$known{mdevs}{$_} } mdevs();
        fault("write sys/bus/pci/devices/$known{pf}/sriov_numvfs 0") if $known{pf};
        fault('reset');
        daemon('start') == 0 or die 'the daemon does not start';
        return;
}

# ---- the instants

sub pending { return grep { /PENDING/ } write_log() }

# A write that waits for a signal ends without effect when its process dies. Other writes are released after that.
sub kill_daemon {
        my ($what, $kind) = @_;
        daemon('stop', 'KILL') == 0 or fail("$what: the daemon is killed");
        wait_until(sub { !pending() }) if $kind eq 'hang';
        fault('release');
        wait_until(sub { !pending() }) or fail("$what: the write ends");
        return;
}

my %INSTANTS = (
        'the daemon before write' => sub { return in_write('hang', @_) },
        'the daemon after write'  => sub { return in_write('unkillable', @_) },
        'the writer before write' => sub { return at_writer('before', @_) },
        'the writer after write'  => sub { return at_writer('after', @_) },
        'the daemon before call'  => \&at_call,
);

sub in_write {
        my ($kind, $op, $n, $what) = @_;
        fault('reset', "$kind $n", 'jitter ' . $seed++ . ' 10', @{ $op->{faults} // [] });
        my $finish = $op->{begin}->();
        my $quiet  = 0;
        my $waits  = 0;
        wait_until(sub {
                $waits = grep { /^$n .*PENDING/ } write_log();
                $quiet = nothing_is_left() ? $quiet + 1 : 0;
                return $waits || $quiet == 5;
        }) or fail("$what: write $n waits");
        $missed += !$waits;
        kill_daemon($what, $kind);
        $finish->(1);
        return;
}

sub at_writer {
        my ($when, $op, $n, $what) = @_;
        fault('reset', "kill $n $when", @{ $op->{faults} // [] });
        $op->{begin}->()->(0);
        kill_daemon($what, '');
        return;
}

# Makes the daemon die before call N (tests/dying). The file is renamed, so the daemon never sees a part of it.
sub die_at {
        my ($n) = @_;
        my $file = "$ENV{NODE_TMP}/die-at";
        spew("$file.new", sprintf "%08d\n", $n);
        rename "$file.new", $file or die "$file: $!";
        return $file;
}

# Kills the daemon at the Nth call that makes the ledger durable.
sub at_call {
        my ($op, $n, $what) = @_;
        fault('reset', @{ $op->{faults} // [] });
        my $file = die_at($n);
        my $finish = $op->{begin}->();
        my $over = $op->{over} // \&job_is_over;
        wait_until(sub { !-e $file || $over->() }) or fail("$what: the call comes");
        unlink $file;
        kill_daemon($what, '');
        $finish->(1);
        return;
}

# Returns the numbers of writes and of durability calls that an undisturbed operation makes.
sub measure {
        my ($op) = @_;
        $op->{prepare}->();
        fault('reset', @{ $op->{faults} // [] });
        my $file = die_at(POINTS_MAX * 10);
        $op->{begin}->()->(0);
        my $calls = POINTS_MAX * 10 - slurp($file);
        unlink $file;
        return (writes(), $calls);
}

# crash_points(BUS, OPERATION). OPERATION: name, prepare, begin, over (whether the operation has ended; by default, whether its job has), faults,
# home, may, and writer_may (further outcomes after the death of a writer).
sub crash_points {
        my ($bus, $op) = @_;
        my ($writes, $calls) = measure($op);
        fault('reset');
        home_again($bus, "$op->{name}, undisturbed", 'guest', $op->{home});
        cmp_ok($writes, '>', 0, "$op->{name}: $writes writes, $calls calls for the ledger");
        for my $instant (sort keys %INSTANTS) {
                for my $n (1 .. ($instant =~ /call$/ ? $calls : $writes)) {
                        next if !chosen();
                        my $what = "$op->{name}, $instant $n";
                        $op->{prepare}->();
                        $INSTANTS{$instant}->($op, $n, $what);
                        fault('reset');
                        my $began = time;
                        is(daemon('start'), 0, "$what: the daemon starts");
                        in_time($bus, $began, $what, 'guest', %{ $op->{may} }, $instant =~ /writer/ ? %{ $op->{writer_may} // {} } : ());
                        home_again($bus, $what, 'guest', $op->{home});
                }
        }
        return;
}

1;
