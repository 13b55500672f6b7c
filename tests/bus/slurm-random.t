#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two nodes, jobs of random size on one or both, and kills of jobs, slurmd and daemons at random: in the end nothing is left, and no node drains.
# SLURM_JOBS= is their number, SLURM_SEED= what they are drawn by.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Slurm;

need_slurm();
node('hgx-h100', root => 1);

my $count = $ENV{SLURM_JOBS} // 20;
my $seed  = $ENV{SLURM_SEED} // int rand 2**31;
srand $seed;
note("SLURM_JOBS=$count SLURM_SEED=$seed");

# The second node has a daemon of its own. Its jobs are of this network, in which Slurm is.
my %second = second_node('hgx-h100');
my @nodes  = ({ name => 'n1', env => {} }, { name => 'n2', env => \%second });

# Calls the function for each node, with the environment of its daemon.
sub on_nodes {
        my ($function) = @_;
        return map { my $node = $_; local %ENV = (%ENV, %{ $node->{env} }); $function->($node) } @nodes;
}

on_nodes(sub {
        my ($node) = @_;
        $node->{bus}    = Bus->new->listen;
        $node->{before} = tree_without_identities();
        $node->{line}   = 'Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory=1000000 CpuSpecList=0,1,112,113 Gres=vmgpu:h100:8,vmrdma:128';
        $node->{gres}   = "Name=vmgpu Type=h100 Count=8 Flags=CountOnly\nNodeName=$node->{name} Name=vmrdma Count=128 Flags=CountOnly\n";
        $node->{plugin} = ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$ENV{NODE_TMP}/slurm-files"];
});
start_slurm('GresTypes=vmgpu,vmrdma', @nodes);
start_program("agent-$_->{name}") for @nodes;

sub pick { my (@list) = @_; return $list[rand @list] }

my (%jobs, %killed);

sub kill_something {
        my $node = pick(@nodes);
        my $what = pick(qw(job slurmd daemon));
        $killed{$what}++;
        if ($what eq 'job') {
                slurm('scancel', pick(keys %jobs)) if %jobs;
        } elsif ($what eq 'slurmd') {
                kill_program("slurmd-$node->{name}", 'KILL');
                start_program("slurmd-$node->{name}");
        } else {
                local %ENV = (%ENV, %{ $node->{env} });
                is(daemon('restart', 'KILL'), 0, "the daemon of $node->{name} is killed and starts");
        }
        return;
}

for (1 .. $count) {
        my ($gpus, $vfs, $cores) = (1 + int rand 4, int rand 3, 1 + int rand 8);
        my $request = "gpu=$gpus" . ($vfs ? ",rdma=$vfs"   : '');
        my $gres    = "vmgpu:$gpus" . ($vfs ? ",vmrdma:$vfs" : '');
        $jobs{ submit("--passthrough=$request", "--gres=$gres", '-N' . pick(1, 1, 1, 2), '-c' . 2 * $cores, '--mem=' . 1000 * $cores, qw(-o /dev/null -D / --wrap), 'sleep ' . rand 2) } = 1;
        select undef, undef, undef, rand 0.5;
        kill_something() if rand() < 0.4;
}
diag('killed: ', join ', ', map { "$killed{$_} $_" } sort keys %killed);

# slurmctld takes a job that was killed with its slurmd for a running one, until slurmd starts again. It does where nothing changes.
sub queue { return (slurm('squeue', '--noheader', '--format=%i %t'))[1] }
my $end = time + 600;
while ((my $before = queue()) ne '' && time < $end) {
        next if wait_until(sub { queue() ne $before }, 15);
        for my $name (map { "slurmd-$_->{name}" } @nodes) {
                kill_program($name, 'KILL');
                start_program($name);
        }
}
is(queue(), '', 'all jobs end') or diag((slurm('squeue'))[1], slurm_logs());
on_nodes(sub {
        my ($node) = @_;
        my ($name, $bus) = @$node{qw(name bus)};
        $bus = Bus->new->listen;
        ok(wait_until(sub { !@{ describe($bus)->{allocations} } }), "$name: no allocation is left") or diag(explain(describe($bus)->{allocations}));
        is_deeply(describe($bus)->{quarantine}, [], "$name: no device is in quarantine");
        ok(wait_until(sub { node_state($name)->{State} eq 'IDLE' }), "$name: is idle") or diag(node_state($name)->{State}, slurm('sinfo', '-R'), slurm_logs());
        is_deeply([glob "$ENV{NODE_TMP}/slurm-files/*"], [], "$name: no files are left");
        same_tree($node->{before}, "$name: every device is where it was", tree_without_identities());
});

done_testing();
