#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A daemon that the administrator has stopped stays stopped: passthroughctl, passthrough-placement, passthroughd-slurm and the plugin of Slurm do not
# have the bus start it, and the agents continue when it runs again.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Placement;
use Slurm;

placement_needed();
need_slurm();
node('paper-testbed', root => 1);

my $bus = Bus->new->listen;
my $gpu = '0000:82:00.0';
my $gres = 'vmgpu:k20m:1,vmib-vf:4';
start_slurm('GresTypes=vmgpu,vmib-vf', {
        name   => 'n1',
        line   => "Sockets=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=40000 Gres=$gres",
        gres   => "Name=vmgpu Type=k20m Count=1 Flags=CountOnly\nNodeName=n1 Name=vmib-vf Count=4 Flags=CountOnly\n",
        plugin => ["bus=$ENV{DBUS_SYSTEM_BUS_ADDRESS}", "root=$ENV{NODE_ROOT}", "directory=$ENV{NODE_TMP}/slurm-files", 'wait=1'],
});
placement_start();
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');

# In place of the daemon the bus starts a program that leaves a mark and fails.
my $mark = "$ENV{NODE_TMP}/started";
mkdir "$ENV{NODE_TMP}/services" or die $!;
spew("$ENV{NODE_TMP}/services/org.passthroughd1.service", "[D-BUS Service]\nName=org.passthroughd1\nExec=/bin/sh -c 'touch $mark; false'\nUser=root\n");
spew("$ENV{NODE_TMP}/bus.conf", slurp("$ENV{NODE_TMP}/bus.conf") =~ s{(?=</busconfig>)}{<servicedir>$ENV{NODE_TMP}/services</servicedir>}r);
is($bus->ask(('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus'), 'ReloadConfig')->{error}, undef, 'the bus can start services');

sub started { return -e $mark && unlink $mark }

# How often a program has said that it waits.
sub waits { my ($log) = @_; return scalar(() = (slurp_existing("$ENV{NODE_TMP}/$log") // '') =~ /Waiting|not run/g) }

sub waits_again {
        my ($log, $before, $what) = @_;
        ok(wait_until(sub { waits($log) > $before }), "$what: it waits") or diag(slurp("$ENV{NODE_TMP}/$log"));
        return ok(!started(), "$what: it starts nothing");
}

is(daemon('stop'), 0, 'the daemon is stopped');
is((ctl('list'))[0], 1, 'a command of the administrator fails');
ok(!started(), 'and starts nothing');
$bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'ListDevices');
ok(wait_until(\&started), 'a call without the flag has the bus start it');

# ---- Placement

is((agent($_))[0], 1, "$_ fails") for qw(--once --dry-run --claim=22222222-0000-4000-8000-000000000001);
ok(!started(), 'a single comparison starts nothing');
my $agent = agent_start();
waits_again('agent.log', 0, 'the agent is started');
is(daemon('start'), 0, 'the daemon is started');
ok(wait_until(sub { placement_provider("n1_$gpu") }), 'the agent reports the node') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
my $before = waits('agent.log');
is(daemon('stop'), 0, 'the daemon is stopped');
waits_again('agent.log', $before, 'the name is lost');
$before = waits('agent.log');
kill 'HUP', $agent;
waits_again('agent.log', $before, 'the agent is told to compare');
is(daemon('start'), 0, 'the daemon is started');
is(allocate($bus, 'vm1', gpu => 1), 'done', 'an allocation');
ok(wait_until(sub { placement_claims(allocation($bus, 'vm1')->{id}) }), 'the agent reports it') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
agent_stop($agent);
is(release($bus, 'vm1'), 'done', 'the allocation is released');

# ---- Slurm

is(daemon('stop'), 0, 'the daemon is stopped');
is((slurm('scontrol', 'update', 'nodename=n1', 'gres=vmgpu:k20m:0,vmib-vf:4'))[0], 0, 'slurmctld has another number of GPUs');
start_program('agent-n1');
waits_again('slurm/agent-n1.log', 0, 'the service is started');
my $id = submit(qw(-c4 --mem=1000 -o /dev/null -D / --passthrough=ib-vf=1 --gres=vmib-vf:1 --wrap=true));
ok(wait_until(sub { node_state('n1')->{State} =~ /DRAIN/ }), 'the prolog of a job waits, then drains the node') or diag(explain(job($id)), slurm_logs());
ok(!started(), 'it starts nothing');
slurm('scancel', $id);
is(daemon('start'), 0, 'the daemon is started');
ok(wait_until(sub { node_state('n1')->{Gres} eq $gres }), 'the service reports its number of GPUs') or diag(node_state('n1')->{Gres}, slurm_logs());
is(daemon('stop'), 0, 'the daemon is stopped');
waits_again('slurm/agent-n1.log', 1, 'the name is lost');

done_testing();
