#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A real Slurm hands out the devices of a node: the plugin allocates for each job before it starts, and releases after it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Slurm;

need_slurm();
node('paper-testbed', root => 1);

my $bus   = Bus->new->listen;
my $files = "$ENV{NODE_TMP}/slurm-files";
my @user  = ('--uid=nobody', '--gid=' . getgrgid((getpwnam 'nobody')[3]));
start_slurm('GresTypes=vmgpu,vmib-vf', {
        name   => 'n1',
        line   => 'Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=40000 Gres=vmgpu:k20m:1,vmib-vf:4',
        gres   => "Name=vmgpu Type=k20m Count=1 Flags=CountOnly\nNodeName=n1 Name=vmib-vf Count=4 Flags=CountOnly\n",
        plugin => ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$files"],
});
my $before = tree_without_identities();

# Numbers of Slurm, "0-1,8", one after the other.
sub numbers { my ($list) = @_; return map { my ($first, $last) = split /-/; $first .. $last // $first } split /,/, $list }

# Runs until it is canceled, and shows its environment in a file of its number.
my $script = "$ENV{NODE_TMP}/job";
spew($script, "#!/bin/sh\ncd $ENV{NODE_TMP}/out && env >\$SLURM_JOB_ID.new && mv \$SLURM_JOB_ID.new \$SLURM_JOB_ID.\$SLURM_RESTART_COUNT && exec sleep 600\n");
mkdir "$ENV{NODE_TMP}/out"       or die $!;
chmod 0777, "$ENV{NODE_TMP}/out" or die $!;
my @job = (@user, qw(-n1 -c4 --mem=1000 -o /dev/null -D /));

# The environment of a job once it runs, for the time that it was restarted.
sub environment {
        my ($id, $restart) = @_;
        my $file = "$ENV{NODE_TMP}/out/$id." . ($restart // '');
        ok(wait_until(sub { -e $file }), "job $id runs") or diag(explain(job($id)), slurm_logs());
        return { (slurp_existing($file) // '') =~ /^(\w+)=(.*)$/mg };
}
sub is_gone {
        my ($id) = @_;
        ok(wait_until(sub { allocation_state($bus, "slurm-$id") eq 'gone' && !node_state('n1')->{CPUAlloc} }), "job $id leaves nothing") or diag(explain(job($id)), slurm_logs());
        is_deeply([glob "$files/*"], [], "job $id leaves no files");
        return;
}

# ---- one job

my $id  = submit(@job, '--passthrough=gpu=1,ib-vf=1', '--gres=vmgpu:1,vmib-vf:1', $script);
my $env = environment($id);
my $got = allocation($bus, "slurm-$id");
my %at  = map { $_->{slot} => $_->{address} } @{ $got->{devices} };
is($got->{state}, 'ready', 'its allocation is ready');
is($got->{owner}, scalar getpwnam 'nobody', 'and belongs to its user');
is_deeply([sort keys %at], [qw(gpu0 ib-vf0)], 'with the devices');
is_deeply([numbers($got->{cpus})], [numbers(job($id)->{CPU_IDs})], 'its CPUs are those of the job');
is_deeply([map { $_->{cpu} } @{ $got->{pins} }], [numbers(job($id)->{CPU_IDs})], 'each of which has a vCPU');
my $memory = 0;
$memory += $_ for values %{ $got->{memory} };
is($memory, 1000 * 2**20, 'its memory is that of the job');
is($env->{PASSTHROUGH_ALLOCATION}, "slurm-$id", 'the job is told its allocation');
is($env->{PASSTHROUGH_DEVICES}, "gpu0=$at{gpu0},ib-vf0=$at{'ib-vf0'}", 'and its devices');
my @stat = stat $env->{PASSTHROUGH_DOCUMENT};
is_deeply([$stat[2] & 07777, $stat[4]], [0600, scalar getpwnam 'nobody'], 'the document is for its user alone');
is(slurp($env->{PASSTHROUGH_DOCUMENT}), (ctl('xml', "slurm-$id"))[1], 'it is that of the allocation');
slurm('scancel', $id);
is_gone($id);
same_tree($before, 'the node is as before', tree_without_identities());
is(node_state('n1')->{State}, 'IDLE', 'the node is idle');

done_testing();
