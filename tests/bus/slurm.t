#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A real Slurm hands out the devices of a node: the plugin allocates for each job before it starts, and releases after it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;
use Slurm;

need_slurm();
node_with_guests('paper-testbed', root => 1);

my $bus   = Bus->new->listen;
my $files = "$ENV{NODE_TMP}/slurm-files";
# Not nobody, whom Slurm 26.05 refuses.
my @user  = ('--uid=daemon', '--gid=' . getgrgid((getpwnam 'daemon')[3]));
start_slurm('GresTypes=vmgpu,vmib-vf', {
        name   => 'n1',
        line   => 'Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=40000 Gres=vmgpu:k20m:1,vmib-vf:4',
        gres   => "Name=vmgpu Type=k20m Count=1 Flags=CountOnly\nNodeName=n1 Name=vmib-vf Count=4 Flags=CountOnly\n",
        plugin => ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$files", 'wait=10'],
});
my $before = tree_without_identities();

# Numbers of Slurm, "0-1,8", one after the other.
sub numbers { my ($list) = @_; return map { my ($first, $last) = split /-/; $first .. $last // $first } split /,/, $list }

# Runs until it is canceled, and shows its environment in a file of its number.
my $script = "$ENV{NODE_TMP}/job";
spew($script, "#!/bin/sh\ncd $ENV{NODE_TMP}/out && env >\$SLURM_JOB_ID.new && mv \$SLURM_JOB_ID.new \$SLURM_JOB_ID && exec sleep 600\n");
mkdir "$ENV{NODE_TMP}/out"       or die $!;
chmod 0777, "$ENV{NODE_TMP}/out" or die $!;
my @job = (@user, qw(-c4 --mem=1000 -o /dev/null -D /));

# The environment of a job once it runs with its allocation: one that was refused may have begun to run.
sub environment {
        my ($id) = @_;
        my $file = "$ENV{NODE_TMP}/out/$id";
        ok(wait_until(sub { (slurp_existing($file) // '') =~ /^PASSTHROUGH_ALLOCATION=/m }), "job $id runs") or diag(explain(job($id)), slurm_logs());
        return { (slurp_existing($file) // '') =~ /^(\w+)=(.*)$/mg };
}

sub is_gone {
        my ($id) = @_;
        ok(wait_until(sub { allocation_state($bus, "slurm-$id") eq 'gone' && node_state('n1')->{State} !~ /ALLOCATED|MIXED|COMPLETING/ }), "job $id leaves nothing") or diag(explain(job($id)), slurm_logs());
        ok(wait_until(sub { my @left = glob "$files/*"; return !@left }), "job $id leaves no files") or diag(glob "$files/*");
        return;
}

# The node completes a job for a moment after its epilog.
sub is_idle {
        my ($what) = @_;
        return ok(wait_until(sub { node_state('n1')->{State} eq 'IDLE' }), $what) || diag(node_state('n1')->{State}, slurm_logs());
}

# ---- one job

my $id  = submit(@job, '--passthrough=gpu=1,ib-vf=1', '--gres=vmgpu:1,vmib-vf:1', $script);
my $env = environment($id);
my $got = allocation($bus, "slurm-$id");
my %at  = map { $_->{slot} => $_->{address} } @{ $got->{devices} };
is($got->{state}, 'ready', 'its allocation is ready');
is($got->{owner}, scalar getpwnam 'daemon', 'and belongs to its user');
is_deeply([sort keys %at], [qw(gpu0 ib-vf0)], 'with the devices');
is_deeply([numbers($got->{cpus})], [numbers(job($id)->{CPU_IDs})], 'its CPUs are those of the job');
is_deeply([map { $_->{cpu} } @{ $got->{pins} }], [numbers(job($id)->{CPU_IDs})], 'each of which has a vCPU');
my $memory = 0;
$memory += $_ for values %{ $got->{memory} };
is($memory, 1000 * 2**20, 'its memory is that of the job');
is($env->{PASSTHROUGH_ALLOCATION}, "slurm-$id", 'the job is told its allocation');
is($env->{PASSTHROUGH_DEVICES}, "gpu0=$at{gpu0},ib-vf0=$at{'ib-vf0'}", 'and its devices');
my @stat = stat $env->{PASSTHROUGH_DOCUMENT};
is_deeply([$stat[2] & 07777, $stat[4]], [0600, scalar getpwnam 'daemon'], 'the document is for its user alone');
is(slurp($env->{PASSTHROUGH_DOCUMENT}), (ctl('xml', "slurm-$id"))[1], 'it is that of the allocation');
slurm('scancel', $id);
is_gone($id);
same_tree($before, 'the node is as before', tree_without_identities());
is_idle('the node is idle');

my ($status, $text) = slurm(qw(srun -c4 --mem=1000 --passthrough=gpu=1 --gres=vmgpu:1 env));
is($status, 0, 'srun') or diag($text);
like($text, qr/^PASSTHROUGH_DEVICES=gpu0=0000:82:00\.0$/m, 'tells its command the devices');
like($text, qr/^PASSTHROUGH_ALLOCATION=(?!slurm-$id$)slurm-\d+$/m, 'of another allocation');
is_gone($id + 1);
($status, $text) = slurm(qw(salloc -c4 --mem=1000 --passthrough=gpu=1 --gres=vmgpu:1 srun env));
is($status, 0, 'salloc') or diag($text);
like($text, qr/^PASSTHROUGH_DEVICES=gpu0=0000:82:00\.0$/m, 'so does a step of salloc');
is_gone($id + 2);

# ---- not enough

sub is_refused {
        my ($id, $fact) = @_;
        ok(wait_until(sub { my $job = job($id); $job->{JobState} eq 'PENDING' && $job->{Restarts} }), "job $id is queued again") or diag(explain(job($id)), slurm_logs());
        like(slurm('scontrol', 'show', 'job', $id), names($fact), "job $id is told why");
        return;
}

is(allocate($bus, 'other', gpu => 1), 'done', 'another guest has the GPU');
$id = submit(@job, '--passthrough=gpu=1', '--gres=vmgpu:1', $script);
is_refused($id, 'other');
is_idle('the node stays up');
is(release($bus, 'other'), 'done', 'the GPU is free');
$env = environment($id);
is($env->{PASSTHROUGH_ALLOCATION}, "slurm-$id", 'the job gets it');
slurm('scancel', $id);
is_gone($id);

is(allocate($bus, 'other', gpu => 1), 'done', 'another guest has the GPU');
kill 'STOP', pid();
$id = submit(@job, '--passthrough=gpu=1', '--gres=vmgpu:1', $script);
ok(wait_until(sub { job($id)->{JobState} =~ /RUNNING|CONFIGURING/ }), 'a prolog runs');
slurm('scancel', $id);
kill 'CONT', pid();
ok(wait_until(sub { job($id)->{JobState} eq 'CANCELLED' }), 'a job that is canceled meanwhile ends') or diag(explain(job($id)), slurm_logs());
is(job($id)->{Restarts}, 0, 'and is not queued again');
is(release($bus, 'other'), 'done', 'the GPU is free');

# ---- what can never be

isnt((slurm('sbatch', '--passthrough=gpu=x', '--wrap=true'))[0], 0, 'sbatch refuses what is no request');
for ([['--passthrough=gpu=1'], 'vmgpu'], [['--passthrough=gpu=1,ib-vf=2', '--gres=vmgpu:1,vmib-vf:1'], 'vmib-vf'], [['--passthrough=disk=1'], 'vmdisk']) {
        my ($options, $fact) = @$_;
        $id = submit(@job, @$options, $script);
        is_refused($id, $fact);
        is(job($id)->{Priority}, 0, 'and held');
        slurm('scancel', $id);
}
($status, $text) = slurm(qw(srun -c1 --mem=100 --passthrough=gpu=1 true));
isnt($status, 0, 'srun fails');
like($text, names('vmgpu'), 'and says why');
is_idle('the node stays up');

# ---- broken hardware

fault('reset', 'fail 1 EIO');
$id = submit(@job, '--passthrough=gpu=1', '--gres=vmgpu:1', $script);
is_refused($id, '0000:82:00.0');
fault('reset');
like(node_state('n1')->{State}, qr/DRAIN/, 'the node drains');
like((slurm(qw(sinfo --noheader --format=%E)))[1], names('0000:82:00.0'), 'and says why');
is(allocation_state($bus, "slurm-$id"), 'gone', 'nothing is allocated');
slurm('scancel', $id);
slurm(qw(scontrol update NodeName=n1 State=RESUME));

is(daemon('stop'), 0, 'the daemon stops');
$id = submit(@job, '--passthrough=gpu=1', '--gres=vmgpu:1', $script);
is_refused($id, 'passthroughd');
like(node_state('n1')->{State}, qr/DRAIN/, 'the node drains when the daemon stays away');
slurm('scancel', $id);
is(daemon('start'), 0, 'the daemon starts');
slurm(qw(scontrol update NodeName=n1 State=RESUME));

# ---- the daemon or slurmd is killed

my $path = 'sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0';
my @gpu = ('--passthrough=gpu=1', '--gres=vmgpu:1');

fault('hang ' . (writes() + 1));
$id = submit(@job, @gpu, $script);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a write before the job hangs');
is(daemon('stop', 'KILL'), 0, 'the daemon is killed');
fault('release', 'reset');
is(daemon('start'), 0, 'the daemon starts');
is(environment($id)->{PASSTHROUGH_ALLOCATION}, "slurm-$id", 'the job has its allocation');
is(allocation_state($bus, "slurm-$id"), 'ready', 'which is ready');

is(daemon('stop', 'KILL'), 0, 'the daemon is killed while the job runs');
slurm('scancel', $id);
ok(wait_until(sub { job($id)->{JobState} =~ /^C/ }), 'the job is canceled');
is(daemon('start'), 0, 'the daemon starts');
is_gone($id);

$id = submit(@job, @gpu, $script);
environment($id);
kill_program('slurmd-n1', 'KILL');
slurm('scancel', $id);
start_program('slurmd-n1');
is_gone($id);

fault('hang ' . (writes() + 1));
$id = submit(@job, @gpu, $script);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a write before the job hangs');
kill_program('slurmd-n1', 'KILL');
start_program('slurmd-n1');
fault('release', 'reset');
ok(wait_until(sub { allocation_state($bus, "slurm-$id") eq 'ready' }), 'its allocation becomes ready');
slurm('scancel', $id);
is_gone($id);

# ---- gres.conf

# What slurmd makes of a gres.conf for this node.
sub read_gres_conf {
        my ($text) = @_;
        my $dir = "$ENV{NODE_TMP}/gres-conf";
        mkdir $dir;
        spew("$dir/slurm.conf", slurp("$ENV{NODE_TMP}/slurm/n1.conf"));
        spew("$dir/gres.conf",  $text);
        return slurm('slurmd', '-G', '-f', "$dir/slurm.conf", '-N', 'n1');
}

my ($lines) = (ctl('gres'))[1] =~ /^((?:Name=.*\n)+)/m;
($status, $text) = read_gres_conf($lines);
is($status, 0, 'slurmd reads the gres.conf that passthroughctl prints') or diag($text);
like($text, names($_), "with $_") for 'vmgpu', 'k20m', 'vmib-vf';
isnt((read_gres_conf("$lines$lines"))[0], 0, 'slurmd ends when the lines of two nodes are in one file');
is((read_gres_conf(join '', map { "NodeName=$_ $lines" =~ s/\n(?=.)/\nNodeName=$_ /r } 'n1', 'n2'))[0], 0, 'NodeName= tells them apart') or diag($text);

# ---- the service

sub gres { return join ',', sort split /,/, node_state('n1')->{Gres} }
sub gres_becomes { my ($gres, $name) = @_; return ok(wait_until(sub { gres() eq $gres }), $name) || diag(gres(), slurm_logs()) }

my $all = gres();
is(ctl_json('gres')->{gres}, $all, 'passthroughctl prints the Gres= of the node');
start_program('agent-n1');
fault("remove $path");
is($bus->call('Rescan')->{error}, undef, 'the GPU is removed');
gres_becomes('vmib-vf:4', 'Slurm has no GPU');
fault('write sys/bus/pci/rescan 1');
is($bus->call('Rescan')->{error}, undef, 'the GPU is back');
gres_becomes($all, 'Slurm has all again');

$id = submit(@job, @gpu, $script);
environment($id);
fault("remove $path");
is($bus->call('Rescan')->{error}, undef, 'the GPU is removed while a job runs');
ok(wait_until(sub { job($id)->{JobState} eq 'FAILED' }), 'the job fails') or diag(explain(job($id)), slurm_logs());
like(slurm('scontrol', 'show', 'job', $id), names('0000:82:00.0'), 'and is told why');
is_gone($id);
like(node_state('n1')->{State}, qr/^IDLE$/, 'the node stays up');
fault('write sys/bus/pci/rescan 1');
is($bus->call('Rescan')->{error}, undef, 'the GPU is back');
gres_becomes($all, 'Slurm has all again');

$id = submit(@job, @gpu, $script);
environment($id);
is(ctl_json('gres')->{resources}[0]{healthy}, 1, 'the device of a job is healthy');
is(gres(), $all, 'and counted');
slurm('scancel', $id);
is_gone($id);

slurm(qw(scontrol update NodeName=n1), 'Gres=vmgpu:k20m:0,vmib-vf:0');
kill_program('agent-n1', 'KILL');
is(allocate($bus, "slurm-$id", gpu => 1, tag => 'Slurm job'), 'done', 'the epilog of a job did not run');
is(allocate($bus, 'slurm-' . ($id + 1), 'ib-vf' => 1), 'done', 'an allocation with the name of a job is somebody else\'s');
spew("$files/slurm-$id.$_", '') for qw(env xml);
start_program('agent-n1');
is_gone($id);
gres_becomes($all, 'after a restart of the service Slurm has all');
is(allocation_state($bus, 'slurm-' . ($id + 1)), 'ready', 'and the allocation of somebody else stays');
my $other = submit(@job, @gpu, $script);
is($other, $id + 1, 'a job of the same name');
is_refused($other, "slurm-$other");
is_idle('the node stays up');
slurm('scancel', $other);
ok(wait_until(sub { job($other)->{JobState} eq 'CANCELLED' }), 'the job is canceled');
is(allocation_state($bus, "slurm-$other"), 'ready', 'the allocation of somebody else stays after it');
is(release($bus, "slurm-$other"), 'done', 'and is released by hand');

# ---- a guest outlives its job

$id = submit(@job, @gpu, $script);
environment($id);
libvirt_reports($bus, running_domain("slurm-$id", UUID, '0000:82:00.0'));
is(allocation_state($bus, "slurm-$id"), 'in-use', 'a guest of the job runs');
kill_program('agent-n1', 'KILL');
slurm('scontrol', 'requeue', $id);
ok(wait_until(sub { my $job = job($id); $job->{JobState} eq 'PENDING' && $job->{Restarts} > 1 }), 'a job that starts again is queued once more') or diag(explain(job($id)), slurm_logs());
slurm('scancel', $id);
is_idle('the job ends, and the node is idle');
is(allocation_state($bus, "slurm-$id"), 'in-use', 'the guest keeps its devices');
start_program('agent-n1');
gres_becomes('vmib-vf:4', 'which Slurm does not give to other jobs');
is(node_state('n1')->{State}, 'IDLE', 'the node stays up');
libvirt_reports($bus);
is_gone($id);
gres_becomes($all, 'after the guest they are given to jobs');

# ---- others can write in the directory

chmod 0777, $files;
$id = submit(@job, @gpu, $script);
is_refused($id, $files);
like(node_state('n1')->{State}, qr/DRAIN/, 'the node drains');
is_deeply([glob "$files/*"], [], 'nothing is written there');
slurm('scancel', $id);
ok(wait_until(sub { allocation_state($bus, "slurm-$id") eq 'gone' }), 'nothing is allocated');
chmod 0755, $files;
slurm(qw(scontrol update NodeName=n1 State=RESUME));

same_tree($before, 'the node is as before', tree_without_identities());

done_testing();
