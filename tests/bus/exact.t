#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A caller that has chosen devices, NUMA nodes and CPUs gets these, or a refusal that names the one that cannot be had.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100');

my $bus = Bus->new->listen;

# Addresses of the free devices of a pool on a NUMA node.
sub free_of { my ($pool, $node) = @_; return map { $_->{address} } grep { ($_->{pool} // '') eq $pool && $_->{state} eq 'available' && $_->{numa_node} == $node } @{ describe($bus)->{devices} } }
my @gpus = (free_of('gpu', 0), free_of('gpu', 1));
my @vfs  = (free_of('rdma', 0), free_of('rdma', 1));
is(@gpus, 8, 'eight GPUs') or BAIL_OUT('another node');

# The plan of a request: addresses by pool, and host nodes; or the refusal.
sub planned {
        my (@pairs) = @_;
        my $reply = $bus->call('Plan', request(@pairs));
        return $reply if $reply->{error};
        my $plan = JSON::XS->new->decode($reply->{body}[0]);
        my %found;
        push @{ $found{ $_->{pool} } }, $_->{address} for grep { $_->{slot} } @{ $plan->{devices} };
        return { %found, nodes => $plan->{numa_nodes}, cpus => $plan->{cpus} };
}

sub refused { my ($name, $error, $facts, @pairs) = @_; return is_error(planned(@pairs), $error, $facts, $name) }

# ---- what is named is taken

is_deeply(planned(gpu => 2, at => [['gpu', $gpus[2]], ['gpu', $gpus[7]]], numa => 'preferred')->{gpu}, [sort @gpus[2, 7]], 'two GPUs of two nodes');
my $some = planned(gpu => 2, rdma => 2, at => [['gpu', $gpus[6]], ['rdma', $vfs[-1]]]);
ok((grep { $_ eq $gpus[6] } @{ $some->{gpu} }) && (grep { $_ eq $vfs[-1] } @{ $some->{rdma} }), 'one of two of each pool');
is(@{ $some->{gpu} } + @{ $some->{rdma} }, 4, '... the others are chosen');
my %guest = (cpus => 4, memory => 2**30);
is_deeply(planned(%guest, 'host-nodes' => [1])->{nodes}, [1], 'the second node');
is_deeply(planned(%guest, gpu => 1, 'host-nodes' => [1, 0])->{nodes}, [0, 1], 'both nodes');
is(planned(%guest, 'cpus-from' => '8-9,120-121')->{cpus}, '8-9,120-121', 'exactly these CPUs');
is(planned(cpus => 2, memory => 2**30, 'cpus-from' => '20-25,132-137')->{cpus}, '20,132', 'two of these CPUs');

# ---- what cannot be had is named

refused('no such device', 'NoSuchDevice', ['no-such-device', '0000:ff:1f.7'], gpu => 1, at => [['gpu', '0000:ff:1f.7']]);
refused('a device of another pool', 'Unavailable', ['not-in-pool', $vfs[0]], gpu => 1, at => [['gpu', $vfs[0]]]);
refused('a pool that is not wanted', 'InvalidRequest', ['invalid-request', $vfs[0]], gpu => 1, at => [['rdma', $vfs[0]]]);
refused('more than are wanted', 'InvalidRequest', ['invalid-request', 2, 1], gpu => 1, at => [['gpu', $gpus[0]], ['gpu', $gpus[1]]]);
refused('the same twice', 'InvalidRequest', ['invalid-request', $gpus[0]], gpu => 2, at => [['gpu', $gpus[0]], ['gpu', $gpus[0]]]);
refused('no such node', 'Insufficient', ['numa', 7], %guest, 'host-nodes' => [7]);
refused('the same node twice', 'InvalidRequest', ['invalid-request', 1], %guest, 'host-nodes' => [1, 1]);
refused('a device that is not on the node', 'Insufficient', ['numa', $gpus[7]], %guest, gpu => 1, numa => 'required', at => [['gpu', $gpus[7]]], 'host-nodes' => [0]);
refused('a CPU that does not exist', 'Insufficient', ['insufficient-cpus', 4000], %guest, 'cpus-from' => '8-9,4000');
refused('a housekeeping CPU', 'Insufficient', ['insufficient-cpus', 0], %guest, 'cpus-from' => '0,8,112,120');
refused('half a core', 'Insufficient', ['insufficient-cpus', 120], %guest, 'cpus-from' => '8,9,121');
refused('too few CPUs', 'Insufficient', ['insufficient-cpus', 4], %guest, 'cpus-from' => '8,120');
refused('no set of CPUs', 'InvalidRequest', ['invalid-request', 'eight'], %guest, 'cpus-from' => 'eight');
refused('CPUs without CPUs', 'InvalidRequest', ['invalid-request'], gpu => 1, 'cpus-from' => '8,120');

# ---- allocations

is(allocate($bus, 'first', gpu => 1, %guest, at => [['gpu', $gpus[5]]], 'cpus-from' => '60-61,172-173'), 'done', 'an allocation of a GPU and CPUs');
is_deeply([map { $_->{address} } @{ allocation($bus, 'first')->{devices} }], [$gpus[5]], '... it has that GPU');
is(allocation($bus, 'first')->{cpus}, '60-61,172-173', '... and these CPUs');
refused('a GPU that is allocated', 'Unavailable', ['allocated', $gpus[5], 'first'], gpu => 1, at => [['gpu', $gpus[5]]]);
refused('a CPU that is allocated', 'Insufficient', ['insufficient-cpus', 60], %guest, 'cpus-from' => '60-61,172-173');
my $repeated = JSON::XS->new->decode($bus->call('Plan', request(gpu => 1, at => [['gpu', $gpus[4]]], repeat => 1))->{body}[0]);
is(scalar @{ $repeated->{fits} // [] }, 1, 'a named device fits once');

# ---- the command line

is((ctl('allocate', 'second', 'gpu=1', 'rdma=1', '--at', "gpu=$gpus[1]", '--at', "rdma=$vfs[0]", '--host-nodes', '0', '--cpus-from', '8-9,120-121', '--cpus', 4, '--memory', '1G'))[0], 0, 'passthroughctl allocate');
is_deeply([sort map { $_->{address} } @{ allocation($bus, 'second')->{devices} }], [sort $gpus[1], $vfs[0]], '... takes the devices');
is(allocation($bus, 'second')->{cpus}, '8-9,120-121', '... and the CPUs');
is((ctl('plan', 'gpu=1', @$_))[0], 2, "passthroughctl plan @$_") for ['--at', 'gpu'], ['--at', '=0000:01:00.0'], ['--host-nodes', 'x'], ['--host-nodes', ''];
is((ctl('plan', 'gpu=1', '--at', "gpu=$gpus[1]"))[0], 1, 'a plan with a device that is allocated');

done_testing();
