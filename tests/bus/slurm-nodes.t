#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two nodes of a real Slurm: job arrays, memory by the CPU, and jobs of two nodes of which one cannot prepare its devices, or is lost.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Slurm;

need_slurm();
node('hgx-h100', root => 1);

my %second = second_node('hgx-h100');
my ($n1, $n2) = my @nodes = ({ name => 'n1', env => {} }, { name => 'n2', env => \%second });

# Calls the function with the environment of the node's daemon.
sub on_node {
        my ($node, $function) = @_;
        local %ENV = (%ENV, %{ $node->{env} });
        return $function->();
}

for my $node (@nodes) {
        on_node($node, sub {
                $node->{bus}    = Bus->new->listen;
                $node->{before} = tree_without_identities();
                $node->{line}   = 'Sockets=2 CoresPerSocket=56 ThreadsPerCore=2 RealMemory=1000000 CpuSpecList=0,1,112,113 Gres=vmgpu:h100:8';
                $node->{gres}   = 'Name=vmgpu Type=h100 Count=8 Flags=CountOnly';
                $node->{plugin} = ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$ENV{NODE_TMP}/slurm-files", 'wait=10'];
                $node->{files}  = "$ENV{NODE_TMP}/slurm-files";
        });
}
start_slurm('GresTypes=vmgpu', @nodes);

# Runs until it is canceled, and shows its environment in a file of its number.
my $out    = "$ENV{NODE_TMP}/out";
my $script = "$ENV{NODE_TMP}/job";
mkdir $out or die $!;
spew($script, "#!/bin/sh\ncd $out && env >\$SLURM_JOB_ID.new && mv \$SLURM_JOB_ID.new \$SLURM_JOB_ID && exec sleep 600\n");
my @job = (qw(-o /dev/null -D /));

sub state_on { my ($node, $id) = @_; return allocation_state($node->{bus}, "slurm-$id") }
sub running { my @ids = sort { $a <=> $b } map { m{/(\d+)$} } glob "$out/*"; return @ids }

sub is_true {
        my ($fact, $name) = @_;
        return ok(wait_until($fact), $name) || diag((slurm('scontrol', 'show', 'job'))[1], slurm_logs());
}

sub runs { my ($id) = @_; return is_true(sub { -e "$out/$id" }, "job $id runs") }

sub all_is_gone {
        is_true(sub { !grep { @{ describe($_->{bus})->{allocations} } || glob "$_->{files}/*" } @nodes }, 'nothing is left');
        is_true(sub { !grep { node_state($_->{name})->{CPUAlloc} } @nodes }, 'nor in Slurm');
        unlink glob "$out/*";
        return;
}

sub is_up {
        for my $node (@_) {
                is_true(sub { node_state($node->{name})->{State} eq 'IDLE' }, "$node->{name} stays up");
        }
        return;
}

# ---- arrays

my $array = submit(@job, qw(--array=0-2 -c4 --mem=1000 --passthrough=gpu=5 --gres=vmgpu:5), $script);
is_true(sub { running() == 2 }, 'two jobs of an array run');
my @running = running();
for my $id (@running) {
        like(slurp("$out/$id"), names("PASSTHROUGH_ALLOCATION=slurm-$id"), "job $id has an allocation of its own");
        is(scalar(grep { state_on($_, $id) eq 'ready' } @nodes), 1, 'on one node');
}
# scancel knows the jobs of an array by their places in it only.
slurm('scancel', "${array}_" . job($running[0])->{ArrayTaskId});
is_true(sub { running() == 3 }, 'when one is canceled, the third runs');
my ($third) = grep { my $id = $_; !grep { $_ == $id } @running } running();
is(scalar(grep { state_on($_, $third) eq 'ready' } @nodes), 1, 'with its allocation');
is(scalar(grep { state_on($_, $running[1]) eq 'ready' } @nodes), 1, 'the second keeps its own');
slurm('scancel', $array);
all_is_gone();
is_up(@nodes);

is(allocate($_->{bus}, 'other', gpu => 8), 'done', 'another guest has all GPUs') for @nodes;
for my $options ([], ['--no-requeue']) {
        $array = submit(@job, @$options, qw(--array=0-1 -c4 --mem=1000 --passthrough=gpu=1 --gres=vmgpu:1), $script);
        my $want = @$options ? sub { $_[0]->{JobState} eq 'CANCELLED' } : sub { $_[0]->{JobState} eq 'PENDING' && $_[0]->{Restarts} };
        for my $id ("${array}_0", "${array}_1") {
                is_true(sub { $want->(job($id)) }, "job $id is " . (@$options ? 'canceled' : 'queued again'));
        }
        slurm('scancel', $array);
}
is(release($_->{bus}, 'other'), 'done', 'the GPUs are free') for @nodes;
# The script of a refused job may start before slurmctld ends it.
is_deeply([grep { slurp("$out/$_") =~ /^PASSTHROUGH_ALLOCATION=/m } running()], [], 'none of them had devices');
all_is_gone();
is_up(@nodes);

# ---- memory

# What Slurm counts for the job on its node, whole cores and all.
sub memory_of {
        my ($id) = @_;
        my $got = 0;
        $got += $_ for values %{ allocation($n1->{bus}, "slurm-$id")->{memory} };
        return $got / 2**20;
}
for my $cpus (4, 3) {
        my $id = submit(@job, qw(-w n1), "-c$cpus", qw(--mem-per-cpu=300 --passthrough=gpu=1 --gres=vmgpu:1), $script);
        runs($id);
        is(memory_of($id), 4 * 300, "--mem-per-cpu counts the CPUs of $cpus in whole cores");
        is(job($id)->{Mem}, memory_of($id), 'as Slurm does');
        slurm('scancel', $id);
        all_is_gone();
}

my $whole = submit(@job, qw(-w n1 --exclusive --mem=0 --passthrough=gpu=1 --gres=vmgpu:1), $script);
is_true(sub { state_on($n1, $whole) eq 'ready' || job($whole)->{Restarts} }, 'a job of a whole node is prepared');
is(eval { memory_of($whole) }, 1000000, 'and has the memory of the node') or diag((slurm('scontrol', 'show', 'job'))[1]);
slurm('scancel', $whole);
all_is_gone();

# ---- one of two nodes

my @two = (@job, qw(-N2 -c4 --mem=1000 --passthrough=gpu=1 --gres=vmgpu:1));

# The script may start before the other node is ready.
sub runs_on_both {
        my ($id) = @_;
        runs($id);
        is_true(sub { state_on($_, $id) eq 'ready' }, "$_->{name} has an allocation") for @nodes;
        return;
}

my $id = submit(@two, $script);
runs_on_both($id);
slurm('scancel', $id);
all_is_gone();

is(allocate($n2->{bus}, 'other', gpu => 8), 'done', 'another guest has the GPUs of one node');
$id = submit(@two, $script);
is_true(sub { my $job = job($id); $job->{JobState} eq 'PENDING' && $job->{Restarts} }, 'a job of both is queued again');
is_true(sub { state_on($n1, $id) eq 'gone' }, 'the other node has its devices back');
is_up(@nodes);
is(release($n2->{bus}, 'other'), 'done', 'the GPUs are free');
runs_on_both($id);
slurm('scancel', $id);
all_is_gone();

on_node($n2, sub { fault('reset', 'fail 1 EIO') });
$id = submit(@two, $script);
is_true(sub { my $job = job($id); $job->{JobState} eq 'PENDING' && $job->{Restarts} }, 'hardware of one node fails: the job is queued again');
on_node($n2, sub { fault('reset') });
like(node_state('n2')->{State}, qr/DRAIN/, 'that node drains');
is_true(sub { state_on($n1, $id) eq 'gone' }, 'the other node has its devices back');
is_up($n1);
slurm('scancel', $id);
all_is_gone();
on_node($n2, sub { clear_quarantine($n2->{bus}) });
slurm(qw(scontrol update NodeName=n2 State=RESUME));
is_up($n2);

$id = submit(@two, '--no-requeue', $script);
runs_on_both($id);
kill_program('slurmd-n2', 'KILL');
slurm(qw(scontrol update NodeName=n2 State=DOWN Reason=lost));
is_true(sub { job($id)->{JobState} eq 'NODE_FAIL' }, 'one node is lost: the job ends');
is_true(sub { state_on($n1, $id) eq 'gone' }, 'the other node has its devices back');
is(state_on($n2, $id), 'ready', 'the lost node keeps its allocation, whose guest may still run');
start_program('slurmd-n2');
start_program('agent-n2');
slurm(qw(scontrol update NodeName=n2 State=RESUME));
all_is_gone();
is_up(@nodes);

for my $node (@nodes) {
        on_node($node, sub { same_tree($node->{before}, "$node->{name}: every device is where it was", tree_without_identities()) });
}

done_testing();
