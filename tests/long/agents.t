#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Many agents on one Placement: the requests and the seconds of their first reports, of one change of each node, and of comparisons without a
# change, for 1 to AGENTS (64) agents that all begin at the same moment; and when they try again while Placement is down. All agents report the
# same simulated node, each by another name.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use IO::Select;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(time);

use Node;
use Placement;

placement_needed();
node('hgx-h100', configure => 1);

my $most = $ENV{AGENTS} // 64;
my ($gpu, $class) = qw(0000:13:00.0 CUSTOM_PCI_10DE_2330);
my ($path) = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{^(?:\.\./)+}{sys/}r;
my $head   = substr slurp("$ENV{NODE_ROOT}/$path/config"), 0, 256;
configure("[Pool gpu]\nMatch=vendor=10de class=0302\nBind=start\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=4\n");
my $bus = Bus->new->listen;
my @pids;
END { kill 'KILL', @pids if @pids }

# ---- Agents, each with a log of its own

sub log_of { my ($host) = @_; return "$ENV{NODE_TMP}/$host.log" }

sub start_agents {
        my (@hosts) = @_;
        for my $host (@hosts) {
                spew("$ENV{NODE_TMP}/$host.conf", "[Placement]\nUrl=@{[URL]}\nToken=admin\nHost=$host\n");
                my $pid = fork // die "fork: $!";
                if (!$pid) {
                        @pids = ();
                        open STDERR, '>>', log_of($host) or die $!;
                        exec "$ENV{BUILD}/passthrough-placement", "--config=$ENV{NODE_TMP}/$host.conf", '--debug' or die $!;
                }
                push @pids, $pid;
        }
        return;
}

sub stop_agents {
        kill 'TERM', @pids;
        waitpid $_, 0 for splice @pids;
        return;
}

# The requests of an agent that were answered, and those that were refused for a conflict.
sub count {
        my ($pattern, @hosts) = @_;
        my $n = 0;
        $n += () = (slurp_existing(log_of($_)) // '') =~ /$pattern/mg for @hosts;
        return $n;
}
sub requests  { return count(qr{^\w+ \S+: \d+$}m, @_) }
sub conflicts { return count(qr{^\w+ \S+: 409$}m, @_) }

# Does something that makes each agent compare; waits until each has done so: seconds, requests and conflicts.
sub measure {
        my ($hosts, $is_done, $do) = @_;
        my ($requests, $conflicts, $start) = (requests(@$hosts), conflicts(@$hosts), time);
        my %left = map { $_ => 1 } @$hosts;
        $do->();
        ok(wait_until(sub { delete $left{$_} for grep { $is_done->($_) } sort keys %left; return !%left }, 300), 'each agent is done') or diag(join ' ', sort keys %left);
        return { seconds => time - $start, requests => requests(@$hosts) - $requests, conflicts => conflicts(@$hosts) - $conflicts };
}

sub report {
        my ($what, $n, $m) = @_;
        diag(sprintf '%-32s %3d agents: %6.1f requests an agent, %7.2f s, %6.1f ms a request, %d conflicts', $what, $n, $m->{requests} / $n, $m->{seconds},
                1000 * $m->{seconds} / $m->{requests}, $m->{conflicts});
        return;
}

# The GPU answers no more, or again.
sub break_gpu {
        my ($bytes) = @_;
        fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes);
        ctl('rescan');
        return;
}

sub changes { my ($host) = @_; return count(qr{^Placement: \d+ changes? of}m, $host) }

placement_start();
my (%first, %change);
for my $n (grep { $_ <= $most } 1, 4, 16, 64) {
        my @hosts = map { "n$n-$_" } 1 .. $n;
        $first{$n} = measure(\@hosts, sub { changes($_[0]) >= 1 }, sub { start_agents(@hosts) });
        report('first report', $n, $first{$n});
        $change{$n} = measure(\@hosts, sub { changes($_[0]) >= 2 }, sub { break_gpu("\xff" x 256) });
        report('one change', $n, $change{$n});
        is((placement_provider("$hosts[-1]_$gpu"))->{resources}{$class}[1], 1, 'the GPU is out of service in Placement');
        break_gpu($head);
        wait_until(sub { !grep { changes($_) < 3 } @hosts }, 300);
        # The last request of a comparison is about the claims of the last provider with an inventory.
        my %before  = map { $_ => count(qr{/allocations: 200$}m, $_) } @hosts;
        my $reading = grep { /^\Q$hosts[0]\E_(?:NUMA|0000)/ } keys %{ placement_tree_of($hosts[0]) };
        report('full comparison without a change', $n, measure(\@hosts, sub { count(qr{/allocations: 200$}m, $_[0]) - $before{ $_[0] } >= $reading }, sub { kill 'HUP', @pids }));
        stop_agents() if $n != $most;
        is_deeply($first{$n}{conflicts} + $change{$n}{conflicts}, 0, 'agents of different nodes have no conflicts');
}

# The names of the providers of a host.
sub placement_tree_of {
        my ($host) = @_;
        my (undef, $list) = placement('GET', '/resource_providers');
        return { map { $_->{name} => 1 } grep { $_->{name} =~ /^\Q$host\E(?:_|$)/ } @{ $list->{resource_providers} } };
}

for my $n (grep { $_ > 1 } keys %first) {
        cmp_ok($first{$n}{requests},  '<=', $n * $first{1}{requests},       "the first report of $n agents takes no more requests an agent");
        cmp_ok($change{$n}{requests}, '<=', $n * $change{1}{requests} + $n, "nor does a change");
        cmp_ok($first{$n}{seconds} / $first{$n}{requests}, '<=', 4 * $first{1}{seconds} / $first{1}{requests}, 'requests of many agents are not much slower');
}

# ---- Placement is down: the agents try again at different times

my $n = @pids;
placement_stop();
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 8778, Listen => 256, ReuseAddr => 1) or die "listen: $!";
break_gpu("\xff" x 256);

# Refuses each request; the times of so many.
sub refuse {
        my ($count) = @_;
        my @times;
        my $select = IO::Select->new($server);
        while (@times < $count && $select->can_read(120)) {
                my $connection = $server->accept or next;
                push @times, time;
                while (defined(my $line = <$connection>)) { last if $line =~ /^\r?\n/ }
                print {$connection} "HTTP/1.0 503 X\r\nContent-Length: 0\r\n\r\n";
                close $connection;
        }
        return @times;
}

# The agents in the busiest second.
sub busiest {
        my (@times) = @_;
        my $most = 0;
        for my $from (@times) { my $n = grep { $_ >= $from && $_ < $from + 1 } @times; $most = $n if $n > $most }
        return $most;
}

my @tries = map { [refuse($n)] } 1 .. 4;
for my $i (0 .. $#tries) {
        my @times = @{ $tries[$i] };
        diag(sprintf 'Placement is down, try %d: %d agents in %.2f s, %d of them in the busiest second', $i + 1, scalar @times, $times[-1] - $times[0], busiest(@times));
}
cmp_ok(busiest(@{ $tries[3] }), '<=', $n / 2, 'after three failures the tries are spread') if $n >= 16;
close $server;
placement_start();
ok(wait_until(sub { !grep { changes($_) < 4 } map { "n$n-$_" } 1 .. $n }, 300), 'all agents catch up');
stop_agents();

done_testing();
