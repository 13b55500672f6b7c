#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What an administrator of Slurm may meet: Slurm does not count memory, the state of slurmctld is lost, the directory of the files is open to
# others, the daemon hangs or goes away, and a guest that outlives its job.
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
my $log   = "$ENV{NODE_TMP}/slurm/agent-n1.log";
my @gpu   = ('--passthrough=gpu=1', '--gres=vmgpu:1');
start_slurm("GresTypes=vmgpu,vmib-vf\nSelectTypeParameters=CR_Core", {
        name   => 'n1',
        line   => 'Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=40000 Gres=vmgpu:k20m:1,vmib-vf:4',
        gres   => "Name=vmgpu Type=k20m Count=1 Flags=CountOnly\nNodeName=n1 Name=vmib-vf Count=4 Flags=CountOnly\n",
        plugin => ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$files", 'wait=5'],
});

sub is_idle { my ($what) = @_; return ok(wait_until(sub { node_state('n1')->{State} eq 'IDLE' }), $what) || diag(node_state('n1')->{State}, slurm_logs()) }
sub is_gone { my ($id)   = @_; return ok(wait_until(sub { allocation_state($bus, "slurm-$id") eq 'gone' }), "job $id leaves nothing") }

# ---- devices without CPUs and memory

my ($status, $text) = slurm(qw(srun -c4), @gpu, 'env');
is($status, 0, 'Slurm does not count memory: the job runs') or diag($text);
like($text, names('PASSTHROUGH_DEVICES=gpu0=0000:82:00.0'), 'and has its devices');
unlike($text, qr/^PASSTHROUGH_DOCUMENT=/m, 'but no document');
is_idle('the node stays up');

# ---- a job of the same number

my $id = submit('--hold', '-o', '/dev/null', '-D', '/', '-c4', @gpu, '--wrap', 'sleep 600');
is(allocate($bus, "slurm-$id", 'ib-vf' => 1, tag => 'Slurm job', token => "$id.0"), 'done', 'an allocation is left from a job of the same number');
slurm('scontrol', 'release', $id);
ok(wait_until(sub { my $got = describe($bus)->{allocations}[0]; $got && $got->{state} eq 'ready' && $got->{devices}[0]{pool} eq 'gpu' }), 'the job gets what it asked for')
        or diag(explain(describe($bus)->{allocations}), slurm_logs());
ok(wait_until(sub { glob "$files/slurm-$id.env" }), 'and runs');

# ---- a guest outlives its job

libvirt_reports($bus, running_domain("slurm-$id", UUID, '0000:82:00.0'));
slurm('scancel', $id);
is_idle('its guest still runs, and the node stays up');
start_program('agent-n1');
my $told = names("slurm-$id");
sub told { return scalar(() = (slurp_existing($log) // '') =~ /$told/g) }
ok(wait_until(\&told), 'the service tells of the guest');
my $gres = 'vmib-vf:4';
ok(wait_until(sub { node_state('n1')->{Gres} eq $gres }), 'and Slurm does not count its GPU');
for (1, 2) {
        slurm(qw(scontrol update NodeName=n1), 'Gres=vmgpu:k20m:1,vmib-vf:2');
        is(allocate($bus, "other$_", 'ib-vf' => 1), 'done', 'the node changes');
        ok(wait_until(sub { node_state('n1')->{Gres} eq $gres }), 'the service compares again') or diag(node_state('n1')->{Gres}, $gres);
}
is(told(), 1, 'it tells of the guest once') or diag(slurp($log));
libvirt_reports($bus);
is_gone($id);
is(release($bus, "other$_"), 'done', 'the VF is free') for 1, 2;
ok(wait_until(sub { node_state('n1')->{Gres} eq 'vmgpu:k20m:1,vmib-vf:4' }), 'and Slurm counts all again') or diag(node_state('n1')->{Gres});
kill_program('agent-n1', 'KILL');

# ---- others can write in the directory

chmod 0777, $files;
is((slurm(qw(srun -c1 echo hello)))[1], "hello\n", 'a job without devices runs');
chmod 0755, $files;
is_idle('the node stays up');

# ---- the daemon hangs

kill 'STOP', pid();
my $begin = time;
$id = submit('-o', '/dev/null', '-D', '/', '-c4', @gpu, '--wrap', 'sleep 600');
ok(wait_until(sub { job($id)->{Restarts} }), 'the job is queued again') or diag(explain(job($id)), slurm_logs());
cmp_ok(time - $begin, '<', 80, 'after the time that the plugin has to wait');
kill 'CONT', pid();
slurm('scancel', $id);
is_gone($id);

# ---- the daemon goes away during a job, and the plugin does not wait

slurm(qw(scontrol update NodeName=n1 State=RESUME));
my $plugstack = "$ENV{NODE_TMP}/slurm/n1.plugstack";
spew($plugstack, slurp($plugstack) =~ s/wait=5/wait=0/r);
fault('hang ' . (writes() + 1));
$id = submit('-o', '/dev/null', '-D', '/', '-c4', @gpu, '--wrap', 'sleep 600');
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a write before the job hangs');
is(daemon('stop', 'KILL'), 0, 'the daemon is killed');
ok(wait_until(sub { node_state('n1')->{State} =~ /DRAIN/ }), 'the node drains') or diag(slurm_logs());
like((slurm(qw(sinfo --noheader --format=%500E)))[1], names('passthroughd went away'), 'and says why');
slurm('scancel', $id);
fault('release', 'reset');
is(daemon('start'), 0, 'the daemon starts');

is((slurm("$ENV{BUILD}/passthroughd-slurm", 'n1'))[0], 1, 'the service has no operands');

done_testing();
