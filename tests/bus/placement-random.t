#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Random operations on a node and on its Placement: allocations, releases, claims and writes of other programs, removed and broken
# devices, restarts of either side, an agent that is killed. In the end Placement has what the daemon says, no claim of another program was lost,
# and no device is given twice. PLACEMENT_SEED=N repeats a run, PLACEMENT_OPERATIONS=N makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Placement;

placement_needed();
node('hgx-h100', configure => 1);

my $seed       = $ENV{PLACEMENT_SEED}       // int rand 2**31;
my $operations = $ENV{PLACEMENT_OPERATIONS} // 60;
srand $seed;
diag("PLACEMENT_SEED=$seed PLACEMENT_OPERATIONS=$operations");

my ($gpu_class, $vf_class) = qw(CUSTOM_PCI_10DE_2330 CUSTOM_PCI_15B3_101E);
configure("[Daemon]\nAfterRelease=keep\n[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=2\n");
my $bus  = Bus->new->listen;
my @gpus = map { "0000:${_}3:00.0" } 1 .. 4;
my %path = map { $_ => readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_") =~ s{^(?:\.\./)+}{sys/}r } @gpus;
my %head = map { $_ => substr slurp("$ENV{NODE_ROOT}/$path{$_}/config"), 0, 256 } @gpus;
my ($agent, %rivals, %broken, $names);

placement_start();
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');

sub pick { return $_[int rand @_] }

# ---- Operations; each may fail, as it does for a user

sub allocations { return @{ describe($bus)->{allocations} } }

sub op_allocate {
        my %wants = (gpu => 1 + int rand 2, rdma => int rand 3);
        delete $wants{$_} for grep { !$wants{$_} } keys %wants;
        allocate($bus, 'vm' . ++$names, %wants, cpus => 2, memory => (1 + int rand 3) << 30);
        return;
}

sub op_release {
        my $one = pick(allocations()) // return;
        release($bus, $one->{name});
        return;
}

# Another program claims a device. It wins only what Placement has.
sub op_claim {
        my ($name, $provider) = @{ pick_provider() // return };
        my ($class) = grep { /^CUSTOM_PCI/ } keys %{ $provider->{resources} } or return;
        my $id      = sprintf '44444444-0000-4000-8000-%012d', ++$names;
        my ($status) = placement('PUT', "/allocations/$id",
                { allocations => { $provider->{uuid} => { resources => { $class => 1 } } }, project_id => 'p', user_id => 'u', consumer_generation => undef, consumer_type => 'INSTANCE' });
        $rivals{$id} = [$name, $class] if $status == 204;
        return;
}

sub op_unclaim {
        my $id = pick(sort keys %rivals) // return;
        placement('DELETE', "/allocations/$id");
        delete $rivals{$id};
        return;
}

sub pick_provider {
        my $name = pick(sort grep { /^n1_0000/ } map { $_->{name} } @{ (placement('GET', '/resource_providers'))[1]{resource_providers} }) // return;
        my $provider = placement_provider($name);
        return $provider ? [$name, $provider] : undef;
}

# Another program alters what belongs to the agent. A higher total or allocation ratio would make Placement give devices twice.
sub op_write {
        my (undef, $provider) = @{ pick_provider() // return };
        my $what = pick('traits', 'inventories');
        my (undef, $now) = placement('GET', "/resource_providers/$provider->{uuid}/$what");
        if ($what eq 'traits') { $now->{traits} = ['HW_GPU_API_VULKAN'] }
        else                   { $_->{step_size} = 4 for values %{ $now->{inventories} } }
        placement('PUT', "/resource_providers/$provider->{uuid}/$what", $now);
        return;
}

sub op_remove {
        my (undef, $provider) = @{ pick_provider() // return };
        placement('DELETE', "/resource_providers/$provider->{uuid}");
        return;
}

sub op_remove_claim {
        my $one = pick(allocations()) // return;
        placement('DELETE', "/allocations/$one->{id}");
        return;
}

# A GPU answers no more, or again.
sub op_break {
        my $gpu   = pick(@gpus);
        my $bytes = $broken{$gpu} ? $head{$gpu} : "\xff" x 256;
        $broken{$gpu} = !$broken{$gpu};
        fault("write $path{$gpu}/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes);
        ctl('rescan');
        return;
}

sub op_restart_daemon { restart(pick('TERM', 'KILL')); $bus = Bus->new->listen; return }

sub op_restart_placement { placement_stop(); op_allocate() if rand() < .5; placement_start(); return }

sub op_restart_agent { agent_stop($agent, pick('TERM', 'KILL', 'KILL')); $agent = agent_start(); return }

# ---- The run

my %weights = (allocate => 8, release => 6, claim => 4, unclaim => 2, write => 3, remove => 1, remove_claim => 1, break => 2, restart_daemon => 1, restart_placement => 1, restart_agent => 3);
my @deck = map { ($_) x $weights{$_} } sort keys %weights;
$agent = agent_start();
for (1 .. $operations) {
        my $operation = pick(@deck);
        no strict 'refs';
        &{"op_$operation"}();
}
agent_stop($agent);

# ---- What is left

ok(wait_until(sub { (agent('--once'))[0] == 0 }), 'the last comparison');
my $tree = placement_tree();
my %held; # of a provider: class to what the daemon's allocations and other programs have
for my $allocation (allocations()) {
        my $claims = placement_claims($allocation->{id}) // {};
        for my $provider (keys %$claims) { $held{$provider}{$_} += $claims->{$provider}{$_} for keys %{ $claims->{$provider} } }
}
is_deeply({ map { $_ => scalar placement_claims($_) } keys %rivals }, { map { $_ => { $rivals{$_}[0] => { $rivals{$_}[1] => 1 } } } keys %rivals }, 'no claim of another program was lost');
$held{ $_->[0] }{ $_->[1] }++ for values %rivals;
my @given_twice = grep { my $name = $_; grep { ($held{$name}{$_} // 0) > $tree->{$name}{resources}{$_}[0] } keys %{ $tree->{$name}{resources} } } sort keys %$tree;
is_deeply(\@given_twice, [], 'no device is given twice');
my @wrong = grep { my $name = $_; grep { $tree->{$name}{resources}{$_}[2] != ($held{$name}{$_} // 0) } keys %{ $tree->{$name}{resources} } } sort keys %$tree;
is_deeply(\@wrong, [], 'Placement has no claims but these');

placement('DELETE', "/allocations/$_") for keys %rivals;
release_all($bus);
for my $gpu (grep { $broken{$_} } @gpus) { fault("write $path{$gpu}/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $head{$gpu}) }
ctl('rescan');
ok(wait_until(sub { !grep { ($_->{pool} // '') eq 'gpu' && $_->{state} eq 'unhealthy' } @{ describe($bus)->{devices} } }), 'no GPU is unhealthy any more');
is((agent('--once'))[0], 0, 'a comparison after all is released');
is_deeply([agent('--dry-run')], [0, '', ''], 'nothing is left to change');
$tree = placement_tree();
is_deeply([grep { my $p = $tree->{$_}; grep { $p->{resources}{$_}[2] } keys %{ $p->{resources} } } keys %$tree], [], 'everything is free');

done_testing();
