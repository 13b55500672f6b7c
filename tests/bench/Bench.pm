# SPDX-License-Identifier: GPL-2.0-or-later
# What the benchmarks share: a bus and daemons on recorded machines, medians, and the table.
package Bench;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(sleep time);

our @EXPORT = qw(
        $quick $program $source $disk $memory
        rounds median percentile lines tool client directory machine spew start_bus start_daemon stop_daemon time_command private_memory switches
        ratio absolute finish
);

use constant DEADLINE => 60;

our $quick   = $ENV{BENCH_QUICK} ? 1 : 0;
our $source  = abs_path(dirname(__FILE__) . '/../..');
our $program = abs_path($ENV{BUILD} // "$source/build");

# State directories are on a disk, as they are in earnest; recorded machines in memory, so that no disk is measured with them.
our ($disk, $memory);
if (!$^C) { # nothing is left behind by a mere check of the syntax
        $disk = tempdir('bench.XXXXXX', TMPDIR => 1);
        chmod 0711, $disk;
        $memory = -w '/dev/shm' ? tempdir('bench.XXXXXX', DIR => '/dev/shm') : $disk;
}

my $owner = $$;
my (@processes, @pipes, @rows, $missed);

sub rounds { my ($n) = @_; return $quick ? 1 : $n }

sub percentile {
        my ($percent, @values) = @_;
        my @sorted = sort { $a <=> $b } @values or die "no figures\n";
        return $sorted[int($#sorted * $percent / 100 + 0.5)];
}

sub median { return percentile(50, @_) }

# What a command prints, by lines.
sub lines {
        my (@command) = @_;
        open my $out, '-|', @command or die "$command[0]: $!\n";
        chomp(my @lines = <$out>);
        close $out or die "'@command' failed\n";
        return @lines;
}

sub tool { my ($name, @arguments) = @_; return lines("$program/tests/bench/$name", @arguments) }

# The benchmark client on a bus: microseconds, or pairs of them.
sub client {
        my ($bus, @arguments) = @_;
        local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = $bus;
        return map { / / ? [split / /] : $_ } tool('client', @arguments);
}

sub directory {
        my ($path) = @_;
        -d $path or mkdir $path or die "$path: $!\n";
        return $path;
}

# The files of a machine of so many functions, which are only read: the tests of one run share them.
sub machine {
        my ($n) = @_;
        my $all = $ENV{SHARED_MACHINES} // $memory;
        open my $lock, '>', "$all/$n.lock" or die "$all/$n.lock: $!\n";
        flock $lock, LOCK_EX or die "$all/$n.lock: $!\n";
        return "$all/$n" if -d "$all/$n";
        lines("$source/tests/nodes/generate", '--dir', $n, directory("$all/$n.new"));
        rename "$all/$n.new", "$all/$n" or die "$all/$n: $!\n";
        return "$all/$n";
}

sub spew {
        my ($path, @text) = @_;
        open my $file, '>', $path or die "$path: $!\n";
        print {$file} @text;
        close $file or die "$path: $!\n";
        return $path;
}

my $buses = 0;

# A bus where everybody may do everything: its address.
sub start_bus {
        my $path = "$disk/bus" . ++$buses;
        spew("$path.conf", <<"END");
<busconfig>
  <listen>unix:path=$path</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true"/>
    <allow receive_type="method_call"/>
    <allow receive_type="signal"/>
    <allow receive_requested_reply="true"/>
  </policy>
</busconfig>
END
        my $pid = open my $out, '-|', 'sh', '-c', 'exec dbus-daemon --config-file="$0.conf" --nofork --nopidfile --print-address 2>>"$0.log"', $path
                or die "dbus-daemon: $!\n";
        push @processes, $pid;
        push @pipes, $out;
        defined(my $address = <$out>) or die "the bus does not start\n";
        return "unix:path=$path";
}

# The letter by which the kernel names the state of a process, T for one that is stopped; 'gone' if there is none.
sub process_state {
        my ($pid) = @_;
        open my $file, '<', "/proc/$pid/stat" or return 'gone';
        return (<$file> // '') =~ /.*\) (\w) /s ? $1 : 'gone';
}

# A daemon on the machine in a directory: its process id, and the seconds from fork to ready.
sub start_daemon {
        my ($bus, $root, $config, $state, @under) = @_;
        my $address = "$disk/notify";
        unlink $address;
        my $notify = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $address) or die "notify socket: $!\n";
        my $start  = time;
        my $pid    = fork // die "fork: $!\n";
        if (!$pid) {
                @ENV{qw(DBUS_SYSTEM_BUS_ADDRESS STATE_DIRECTORY NOTIFY_SOCKET)} = ($bus, $state, $address);
                open STDERR, '>', "$disk/daemon.log" or POSIX::_exit(127);
                exec @under, "$program/passthroughd", "--sysroot=$root", "--config=$config" or POSIX::_exit(127);
        }
        push @processes, $pid;
        my $bits = '';
        vec($bits, fileno $notify, 1) = 1;
        while ((my $left = $start + DEADLINE - time) > 0) {
                next if select(my $ready = $bits, undef, undef, $left < 1 ? $left : 1) <= 0 && waitpid($pid, POSIX::WNOHANG()) == 0;
                $notify->blocking(0);
                defined $notify->recv(my $message, 4096) or last;
                return ($pid, time - $start) if $message =~ /^READY=1$/m;
        }
        die "the daemon is not ready:\n", do { local (@ARGV, $/) = "$disk/daemon.log"; <> };
}

sub stop_daemon {
        my ($pid) = @_;
        kill 'TERM', $pid;
        waitpid $pid, 0;
        @processes = grep { $_ != $pid } @processes;
        return;
}

# Seconds from fork to end; what it prints is dropped.
sub time_command {
        my (@command) = @_;
        my $start = time;
        my $pid = fork // die "fork: $!\n";
        if (!$pid) {
                open STDOUT, '>', '/dev/null' or POSIX::_exit(127);
                exec @command or POSIX::_exit(127);
        }
        waitpid $pid, 0;
        my $taken = time - $start;
        die "'@command' failed\n" if $?;
        return $taken;
}

# Bytes that only this process has.
sub private_memory {
        my ($pid) = @_;
        open my $file, '<', "/proc/$pid/smaps_rollup" or die "/proc/$pid/smaps_rollup: $!\n";
        my $kib = 0;
        while (my $line = <$file>) { $kib += $1 if $line =~ /^Private_\w+: +(\d+) kB/ }
        return $kib * 1024;
}

# How often the threads of a process were switched to or from until now.
sub switches {
        my ($pid) = @_;
        my $n = 0;
        for my $status (glob "/proc/$pid/task/*/status") {
                open my $file, '<', $status or next;
                while (my $line = <$file>) { $n += $1 if $line =~ /^(?:non)?voluntary_ctxt_switches:\s+(\d+)/ }
        }
        return $n;
}

# ---- the table

sub row {
        my ($what, $ours, $other, $ratio, $limit, $ok) = @_;
        my $verdict = $quick || $limit eq '' ? '' : $ok ? 'ok' : 'MISS';
        push @rows, [$what, $ours, $other, $ratio, $quick ? '' : $limit, $verdict];
        $missed = 1 if $verdict eq 'MISS';
        return;
}

sub duration {
        my ($seconds) = @_;
        return $seconds < 0.001 ? sprintf '%.0f us', $seconds * 1e6 : sprintf $seconds < 0.1 ? '%.2f ms' : '%.0f ms', $seconds * 1e3;
}

# Seconds of ours and of what they are compared with, measured in turns: the median of the ratios of neighbours, which a
# machine that is busy now and then changes less than the times themselves. Without a limit it is for information.
sub ratio {
        my ($what, $ours, $peer, $others, $limit) = @_;
        my $ratio = median(map { $ours->[$_] / $others->[$_] } 0 .. $#{$ours});
        row($what, duration(median(@$ours)), "$peer " . duration(median(@$others)), sprintf('%.2f', $ratio), defined $limit ? sprintf('%.3g x', $limit) : '',
                defined $limit && $ratio <= $limit);
        return;
}

# One figure and its limit; format: duration, or what sprintf takes. note: what else is worth knowing.
sub absolute {
        my ($what, $value, $format, $limit, $note) = @_;
        my $text = sub { $format eq 'duration' ? duration($_[0]) : sprintf $format, $_[0] };
        row($what, $text->($value), $note // '', '', defined $limit ? $text->($limit) : '', defined $limit && $value <= $limit);
        return;
}

# Prints the table; false when something was missed.
sub finish {
        my @all = (['what', 'ours', 'floor or peer', 'ratio', 'limit', ''], @rows);
        my @width = (0) x 6;
        for my $row (@all) {
                for (0 .. 5) { $width[$_] = length $row->[$_] if length $row->[$_] > $width[$_] }
        }
        for my $row (@all) {
                my $line = sprintf "%-$width[0]s  %$width[1]s  %-$width[2]s  %$width[3]s  %$width[4]s  %s", @$row;
                print $line =~ s/ +$//r, "\n";
        }
        return !$missed;
}

END {
        if ($$ == $owner) {
                my $status = $?;
                kill 'KILL', @processes if @processes;
                system 'rm', '-rf', $disk, $memory; # remove_tree() takes ten times as long for a machine of thousands of functions
                $? = $status;
        }
}

$SIG{$_} = sub { exit 1 } for qw(INT TERM HUP);

1;
