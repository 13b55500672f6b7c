# SPDX-License-Identifier: GPL-2.0-or-later
# Functions for tests on a simulated node: the node, its faults, the daemon, passthroughctl, and the files on disk.
package Node;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Find qw(find);
use JSON::XS;
use List::Util qw(min);
use Test::More;
use Time::HiRes qw(clock_gettime sleep time CLOCK_MONOTONIC);

use lib dirname(__FILE__) . '/..';

use Bus;
use Names;

our @EXPORT = qw(
        node configure ctl ctl_json fault tree tree_without_identities writes write_log slurp slurp_existing spew files_below snapshot ledger_file pid holders_pid daemon_children daemon restart log_since wait_until stopped_and_continued
        request describe device nodes_are_known plan_ok devices_state allocate release release_all same_tree same_state is_error nothing_written
        allocation allocation_state device_in within_a_second clear_quarantine driver_of other_hand_binds mdev_parent mdevs start_again killed_in
        history history_shows
        names
);

use constant DEADLINE => 240;

# Text is wrapped at this width. Tests read sentences as one line; a test of the wrapping deletes the variable.
$ENV{COLUMNS} //= 1000;

my $DIR = abs_path(dirname(__FILE__));

# Runs the test again as the command of tests/with-node on tests/nodes/NAME.tree, unless it already runs on a node. With configure => 1 the daemon
# starts without pools, for configure().
sub node {
        my ($name, %options) = @_;
        return if $ENV{NODE_ROOT};
        $ENV{BUILD} //= "$DIR/../../build";
        plan skip_all => 'no /dev/fuse'     if !-w '/dev/fuse';
        plan skip_all => 'needs root'       if $options{root} && $> != 0;
        plan skip_all => "$ENV{BUILD} is not built" if !-x "$ENV{BUILD}/tests/nodesim";
        my @conf = $options{configure} ? ('--conf', '/nonexistent') : ();
        exec "$DIR/../with-node", "$DIR/../nodes/$name.tree", @conf, '--', $^X, $0, @ARGV or die "with-node: $!";
}

sub slurp {
        my ($path) = @_;
        open my $f, '<:raw', $path or die "$path: $!";
        local $/ = undef;
        return <$f> // '';
}

# Returns undef for a missing file. The daemon may remove a file at any time, so do not test for the file first.
sub slurp_existing {
        my ($path) = @_;
        my $text = eval { slurp($path) };
        die $@ if !defined $text && !$!{ENOENT};
        return $text;
}

sub spew {
        my ($path, $text) = @_;
        open my $f, '>:raw', $path or die "$path: $!";
        print $f $text;
        close $f or die "$path: $!";
        return;
}

# Returns the relative paths of the files below a directory, sorted.
sub files_below {
        my ($dir) = @_;
        my @files;
        find({ no_chdir => 1, wanted => sub { push @files, substr $_, length $dir if -f } }, $dir);
        return sort @files;
}

# Runs passthroughctl ARGUMENTS. Returns exit status, stdout, stderr.
sub ctl {
        my (@arguments) = @_;
        my @files = map { "$ENV{NODE_TMP}/ctl.$_" } qw(out err);
        my $pid   = fork // die "fork: $!";
        if (!$pid) {
                open STDIN,  '<', '/dev/null' or die $!;
                open STDOUT, '>', $files[0]   or die $!;
                open STDERR, '>', $files[1]   or die $!;
                exec 'passthroughctl', @arguments or die $!;
        }
        waitpid $pid, 0;
        return ($? & 127 ? "signal " . ($? & 127) : $? >> 8, map { slurp($_) } @files);
}

# Returns the document that passthroughctl ARGUMENTS --json prints.
sub ctl_json {
        my (@arguments) = @_;
        my (undef, $out) = ctl(@arguments, '--json');
        return eval { JSON::XS->new->utf8->decode($out) } // { unreadable => $out };
}

sub fault {
        my (@commands) = @_;
        for my $command (@commands) {
                open my $f, '>', $ENV{NODE_CONTROL} or die "$ENV{NODE_CONTROL}: $!";
                syswrite $f, "$command\n" or die "'$command': $!";
                close $f;
        }
        return;
}

# Removes insignificant parts of the tree: numbers in vfio-dev and the order of pciback's slots, which depend on the order of binds, and attributes
# that a card keeps for missing VFs.
sub sorted_slots { my ($slots) = @_; return join '\n', sort split /\\n/, $slots }

sub tree {
        my $text = slurp("$ENV{NODE_ROOT}/.nodesim/tree");
        return remembered('tree', $text, sub {
                $text =~ s{vfio-dev/vfio\K\d+}{}g;
                $text =~ s{pciback/slots=\K(.*)}{sorted_slots($1)}ge;
                return join "\n", sort grep { !m{/vf-netlink/kept\b} } split /\n/, $text;
        });
}

# Caches the function's results, because tests compare the same few trees again and again.
use constant REMEMBERED => 16;
my %remembered;

sub remembered {
        my ($how, $text, $make) = @_;
        my $known = $remembered{$how} //= {};
        %$known = () if keys %$known >= REMEMBERED && !exists $known->{$text};
        return $known->{$text} //= $make->();
}

# Returns the tree without generated MACs and GUIDs of VFs, which differ between allocations.
sub tree_without_identities {
        my ($tree) = @_;
        $tree //= tree();
        return remembered('identities', $tree, sub { $tree =~ s{/(?:admin_guids|gids|vf-netlink|sriov)/\d+(?:/\w+)?=\S*?\K0?2[0-9a-f:]{14,}$}{MADE-UP}rgm });
}

sub writes    { return int slurp("$ENV{NODE_ROOT}/.nodesim/writes") }
sub write_log { return split /\n/, slurp("$ENV{NODE_ROOT}/.nodesim/log") }

# Returns the files of the state directory by name. With times => 1 also returns modes and times, which show a rewrite with equal contents. Otherwise
# leaves out the last generation and the list of releases, which change with each operation.
sub snapshot {
        my (%options) = @_;
        my %found;
        my @queue = ('.');
        while (defined(my $name = shift @queue)) {
                my $path = "$ENV{STATE_DIRECTORY}/$name";
                my @stat = Time::HiRes::lstat($path) or next;
                my @meta = $options{times} ? (@stat[1, 2, 7], map { sprintf '%.9f', $_ } @stat[9, 10]) : ();
                next if ($name eq './generation' || $name eq './released') && !$options{times};
                if (-d $path) {
                        opendir my $d, $path or $!{ENOENT} ? next : die "$path: $!";
                        push @queue, map { "$name/$_" } grep { !/^\.\.?$/ } readdir $d;
                        $found{$name} = join ' ', 'directory', @meta;
                } else {
                        $found{$name} = join ' ', @meta, slurp_existing($path) // next;
                }
        }
        return \%found;
}

sub ledger_file { my ($name) = @_; return "$ENV{STATE_DIRECTORY}/allocations/$name.json" }

sub pid { return int slurp($ENV{DAEMON_PID}) }

# Returns the process group of passthroughd-holders.
sub holders_pid { return int slurp($ENV{HOLDERS_PID}) }

# Returns the daemon's children of that name, or all but the process that reports libvirt's domains. A new child has the daemon's name at first.
sub daemon_children {
        my ($name) = @_;
        my $parent = pid();
        my $like   = defined $name ? qr/^Name:\s+\Q$name\E\n.*^PPid:\s+$parent\n/ms : qr/^PPid:\s+$parent\n/m;
        my @found  = grep { (eval { slurp("/proc/$_/status") } // '') =~ $like } map { m{^/proc/(\d+)$} } glob '/proc/[0-9]*';
        return grep { (eval { slurp("/proc/$_/cmdline") } // '') !~ m{fake-libvirt|passthroughd-libvirt\0.} } @found;
}

# daemon('stop' or 'start' or 'restart'[, SIGNAL]): returns 0 or the exit status. Signal 0: only waits for the daemon's end.
sub daemon {
        my ($verb, @signal) = @_;
        my $status = system "$ENV{NODE_TMP}/$verb-daemon 2>>$ENV{NODE_TMP}/script.log " . join ' ', @signal;
        return $status >> 8;
}

sub restart { my (@signal) = @_; daemon('restart', @signal) == 0 or die 'the daemon does not start: ' . slurp("$ENV{NODE_TMP}/daemon.log"); return }

# Restarts the daemon with another configuration. The node must be made with configure => 1.
sub configure {
        my ($text) = @_;
        spew("$ENV{NODE_TMP}/passthroughd.conf", $text);
        restart();
        return;
}

# Starts the stopped daemon. Drops the signals of the earlier daemon, whose jobs had the same numbers.
sub start_again {
        my ($bus, $what) = @_;
        fault('reset');
        is(daemon('start'), 0, "$what: the daemon starts");
        $bus->forget_signals();
        return;
}

# Calls a method, and kills the daemon with its children while write N waits. Then the simulator completes that write.
sub killed_in {
        my ($bus, $n, $what, @call) = @_;
        fault('reset', "unkillable $n");
        my $reply = $bus->call(@call);
        is($reply->{error}, undef, "$what: it is begun") or diag($reply->{body}[0]);
        ok(wait_until(sub { grep { /^$n .*PENDING/ } write_log() }), "$what: the write waits");
        is(daemon('stop', 'KILL'), 0, "$what: the daemon is killed");
        fault('release');
        ok(wait_until(sub { !grep { /PENDING/ } write_log() }), "$what: the write ends");
        start_again($bus, $what);
        return;
}

# Returns the daemon's log after the first OFFSET bytes, or without OFFSET the present size of the log.
sub log_since {
        my ($offset) = @_;
        my $log = slurp("$ENV{NODE_TMP}/daemon.log");
        return defined $offset ? substr $log, $offset : length $log;
}

# Waits until the function is true. Returns its value, or false after the deadline. Calls a slow function less often, because it takes CPU time from
# the awaited process.
sub wait_until {
        my ($fact, $seconds) = @_;
        my $start = time;
        my $end   = $start + ($seconds // DEADLINE);
        while (1) {
                my $begin = time;
                my $value = $fact->();
                my $now   = time;
                return $value if $value || $now > $end;
                sleep 0.005 + min(3 * ($now - $begin) + ($now - $start) / 20, 0.05);
        }
}

# Stops the process and continues it, like a freezer. This interrupts calls with a timeout.
sub stopped_and_continued {
        my ($pid) = @_;
        kill 'STOP', $pid;
        my $stopped = wait_until(sub { (slurp_existing("/proc/$pid/stat") // return 1) =~ /.*\) T /s });
        kill 'CONT', $pid;
        return $stopped;
}

# Checks that a matching signal follows a change within a second. If a Ping takes longer on a busy host, allows that time for each of up to HOPS
# processes on the way of the signal.
use constant HOPS => 20;

sub within_a_second {
        my ($bus, $what, $change, $wanted) = @_;
        my ($slowest, $took) = (0, 0);
        $bus->forget_signals();
        $change->();
        my $changed = clock_gettime(CLOCK_MONOTONIC);
        my $found   = wait_until(sub {
                my $begin = clock_gettime(CLOCK_MONOTONIC);
                $bus->ping();
                my $now = clock_gettime(CLOCK_MONOTONIC);
                $slowest = $now - $begin if $now - $begin > $slowest;
                $took    = $now - $changed;
                return scalar grep { $wanted->() } @{ $bus->{signals} };
        });
        ok($found, "$what: a signal");
        return cmp_ok($took, '<', 1 + HOPS * $slowest, "$what: within a second");
}

# request(gpu => 1, cpus => 8, ...): returns the a{sv} of Plan and Allocate.
our %KEYS = (cpus => 'u', memory => 't', 'page-size' => 't', cells => 'u', numa => 's', proximity => 's', topology => 's', 'vf-attributes' => 'a{ss}', 'release-with-domain' => 'b', 'shared-memory' => 'a(stt)', owner => 'u', hold => 'u', tag => 's', token => 's', consumer => 's', at => 'a(ss)', 'host-nodes' => 'au', 'cpus-from' => 's', 'memory-from' => 's', confidential => 's', fabric => 's', force => 'b', repeat => 'b');

sub request {
        my (@pairs) = @_;
        my (@devices, @entries);
        while (my ($key, $value) = splice @pairs, 0, 2) {
                if ($KEYS{$key}) { push @entries, [$key, [$KEYS{$key}, $value]] }
                else             { push @devices, [$key, $value] }
        }
        unshift @entries, ['devices', ['a(su)', \@devices]] if @devices;
        return ('a{sv}', \@entries);
}

sub describe {
        my ($bus) = @_;
        return JSON::XS->new->decode($bus->call('Describe')->{body}[0]);
}

sub device {
        my ($bus, $address) = @_;
        my $reply = $bus->call('Explain', 's', $address);
        return $reply->{error} ? { error => $reply->{error} } : JSON::XS->new->decode($reply->{body}[0]);
}

# Returns the states of a pool's devices by address.
sub devices_state {
        my ($bus, $pool) = @_;
        return { map { $_->[0] => $_->[2] } grep { $_->[1] eq $pool } @{ $bus->call('ListDevices')->{body}[0] } };
}

# Returns the events of a device, the newest last, after the journal has stored all entries.
sub history {
        my ($device, @options) = @_;
        system(qw(journalctl --quiet --sync)) == 0 or die 'the journal does not answer';
        my $events = ctl_json('history', $device, @options);
        die 'no history: ', JSON::XS->new->canonical->encode($events) if ref $events ne 'ARRAY';
        return @$events;
}

# Checks that the function is true for the kinds of a device's events.
sub history_shows {
        my ($device, $fact, $name) = @_;
        SKIP: {
                skip 'no journal for the node here', 1 if $ENV{NODE_JOURNAL} ne 'yes';
                my @events = map { $_->{event} } history($device);
                ok($fact->(@events), $name) or diag("@events");
        }
        return;
}

# Allocates and waits. $bus must listen. Returns the job's result, or the error's name and sentence.
sub allocate {
        my ($bus, $name, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        my $reply = $bus->call('Allocate', "s$signature", $name, $entries);
        return $reply->{error} ? ($reply->{error}, $reply->{body}[0]) : $bus->result($reply->{body}[1]);
}

# Returns the allocation of that name in Describe, or undef.
sub allocation {
        my ($bus, $name) = @_;
        my ($found) = grep { $_->{name} eq $name } @{ describe($bus)->{allocations} };
        return $found;
}

# Returns the device in a slot of an allocation.
sub device_in {
        my ($bus, $name, $slot) = @_;
        my ($found) = grep { ($_->{slot} // '') eq $slot } @{ allocation($bus, $name)->{devices} };
        return $found;
}

sub allocation_state {
        my ($bus, $name) = @_;
        my $reply = $bus->call('ListAllocations');
        return $reply->{error} if $reply->{error};
        my ($found) = grep { $_->[0] eq $name } @{ $reply->{body}[0] };
        return $found ? $found->[1] : 'gone';
}

sub driver_of { my ($address) = @_; return (readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/driver") // 'none') =~ s{.*/}{}r }

# Binds a device as another program would. Driver '' lets the kernel choose one by the IDs, as at boot. Clears the override afterwards.
sub other_hand_binds {
        my ($address, $driver) = @_;
        my $device = "sys/bus/pci/devices/$address";
        fault("write $device/driver/unbind $address") if driver_of($address) ne 'none';
        fault("write $device/driver_override " . ($driver || '\\n'), "write sys/bus/pci/drivers_probe $address");
        fault("write $device/driver_override \\n") if $driver;
        return;
}

# Makes a GPU without VFs the parent of mediated devices, and binds it to the driver. $memory: GB; a type: "ID SIZE NAME".
sub mdev_parent {
        my ($address, $driver, $memory, @types) = @_;
        my $device = "sys/bus/pci/devices/$address";
        fault("set $device/vgpu_types " . join('\\n', @types), "set $device/vgpu_memory $memory", "set $device/vgpu_mdev 1");
        other_hand_binds($address, $driver);
        return;
}

# Returns the UUIDs of all mediated devices.
sub mdevs { return sort map { m{([^/]+)\z} } glob "$ENV{NODE_ROOT}/sys/bus/mdev/devices/*" }

sub generation {
        my ($bus, $name) = @_;
        my ($found) = grep { $_->[0] eq $name } @{ $bus->call('ListAllocations')->{body}[0] };
        return $found ? $found->[2] : 0;
}

sub release {
        my ($bus, $name) = @_;
        my $reply = $bus->call('Release', 'st', $name, generation($bus, $name));
        return ($reply->{error}, $reply->{body}[0]) if $reply->{error};
        return $reply->{body}[0] eq '/' ? 'done' : $bus->result($reply->{body}[0]);
}

# Clears faults and allocations after a failed part of a test, for the next part.
sub release_all {
        my ($bus) = @_;
        fault('release', 'reset');
        for (1 .. 3) {
                my @names = map { $_->[0] } @{ $bus->call('ListAllocations')->{body}[0] } or return;
                release($bus, $_) for @names;
        }
        return;
}

# Waits until the daemon knows the node of each GPU from NVIDIA's driver. Before, an open node of any GPU counts for all.
sub nodes_are_known {
        my ($bus, @gpus) = @_;
        return wait_until(sub {
                my %names = map { $_->{address} => $_->{kernel_names} } @{ describe($bus)->{devices} };
                return !grep { my $gpu = $_; !grep { /^nvidia\d/ } @{ $names{$gpu} } } @gpus;
        });
}

# Returns whether the request is possible now.
sub plan_ok {
        my ($bus, @pairs) = @_;
        return !$bus->call('Plan', request(@pairs))->{error};
}

# Checks that the whole node is unchanged, and shows the differences.
sub same_tree {
        my ($before, $name, $now) = @_;
        $now //= tree();
        return pass($name) if $now eq $before;
        my %count;
        $count{$_}++ for split /\n/, $now;
        $count{$_}-- for split /\n/, $before;
        fail($name);
        diag(map { ($count{$_} > 0 ? '+' : '-') . " $_\n" } grep { $count{$_} } sort keys %count);
        return 0;
}

sub same_state {
        my ($before, $name, %options) = @_;
        return is_deeply(snapshot(%options), $before, $name);
}

# Checks the error's name (org.passthroughd1.Error. may be omitted), the verdict of the refusal, and that its sentence has these words.
sub is_error {
        my ($reply, $error, $facts, $name) = @_;
        my ($verdict, @nouns) = @$facts;
        $error = "org.passthroughd1.Error.$error" if $error !~ /\./;
        return subtest $name => sub {
                is($reply->{error} // 'no error', $error, 'its name');
                like($reply->{body}[0] // '', names(@nouns), 'its sentence');
                return if $error !~ /^org\.passthroughd1/;
                like($reply->{body}[0] // '', qr/^\S.*\.$/s, 'which is one');
                my $refusal = eval { JSON::XS->new->decode($reply->{body}[1]) } // {};
                is($refusal->{verdict}, $verdict, 'the refusal as JSON has its verdict');
                utf8::encode(my $message = $refusal->{message} // 'none');
                is(index($reply->{body}[0] // '', $message), 0, 'and the same sentence');
        };
}

# Clears the quarantine. Returns the number of devices.
sub clear_quarantine {
        my ($bus) = @_;
        my @devices = map { $_->{address} } @{ describe($bus)->{quarantine} };
        for my $device (@devices) {
                my $reply = $bus->call('ClearQuarantine', 's', $device);
                die "$device stays in quarantine: $reply->{error}" if $reply->{error} || $bus->result($reply->{body}[0]) ne 'done';
        }
        return scalar @devices;
}

# Checks that nothing was written since the simulator's last reset.
sub nothing_written {
        my ($name) = @_;
        is(writes(), 0, $name) or diag(join "\n", write_log());
        return;
}

1;
