#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Pools that a scheduler gives out: Scheduler=placement obeys the claim of a consumer and counts it once; Scheduler=nova gives nothing to other
# requests.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Placement;

placement_needed();
node('hgx-h100', configure => 1);

my ($gpu, $vf) = qw(CUSTOM_PCI_10DE_2330 CUSTOM_PCI_15B3_101E);
my $consumer = '22222222-0000-4000-8000-000000000001';
my @gpus     = map { "0000:$_:00.0" } qw(13 23 33);
configure(<<"END");
[Pool gpu]
Match=vendor=10de class=0302 address=0000:[1-4]*
Scheduler=placement
[Pool theirs]
Match=vendor=10de class=0302 address=0000:[9a-c]*
Scheduler=nova
[Pool rdma]
Match=vendor=15b3 type=vf id=15b3:101e
VirtualFunctions=4
Scheduler=placement
END
my $bus = Bus->new->listen;

sub id     { my ($name) = @_; return allocation($bus, $name)->{id} }
sub refusal { my (@request) = @_; return ctl_json("plan", @request)->{verdict} }

is_deeply({ map { $_->{name} => $_->{scheduler} } @{ describe($bus)->{pools} } }, { gpu => 'placement', theirs => 'nova', rdma => 'placement' }, 'the pools and their schedulers');
is(refusal('gpu=1'), 'scheduled', 'no device without a consumer');
is(refusal('gpu=1', "--at=gpu=$gpus[0]"), 'scheduled', 'nor with an address alone');
is(refusal('gpu=1', "--consumer=$consumer"), 'scheduled', 'nor with a consumer alone');
is(refusal('gpu=2', "--at=gpu=$gpus[0]", "--consumer=$consumer"), 'scheduled', 'nor with one of two addresses');
is(refusal('gpu=1', "--at=gpu=$gpus[0]", '--consumer=somebody'), 'invalid-request', 'a consumer is a UUID');
is(refusal('theirs=1', '--at=theirs=0000:93:00.0', "--consumer=$consumer"), 'scheduled', 'a device of Nova is for Nova alone');

agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
placement_start();
is((agent('--once'))[0], 0, 'the first report');
my $first = placement_tree();
is_deeply([sort grep { $first->{$_}{resources}{$gpu} } keys %$first], [map { "n1_0000:${_}3:00.0" } 1 .. 4], 'the agent reports the GPUs, but not those that Nova reports');

sub claim {
        my ($who, %amounts) = @_;
        return (placement('PUT', "/allocations/$who",
                { allocations => { map { $first->{$_}{uuid} => { resources => $amounts{$_} } } keys %amounts }, project_id => 'p', user_id => 'u', consumer_generation => undef, consumer_type => 'INSTANCE' }))[0];
}
sub used { my ($name, $class) = @_; return placement_provider($name)->{resources}{$class}[2] }

is((agent("--claim=$consumer"))[0], 1, 'a consumer without a claim');
is(claim($consumer, 'n1_0000:23:00.0' => { $gpu => 1 }, 'n1_0000:24:00.0' => { $vf => 2 }, n1_NUMA0 => { PCPU => 4, MEMORY_MB => 2048 }), 204, 'a claim');
my ($status, $line) = agent("--claim=$consumer");
is($status, 0, 'the claim as a request');
is((ctl('allocate', 'vm1', split ' ', $line))[0], 0, 'which the daemon obeys');
my $vm1 = allocation($bus, 'vm1');
is_deeply([sort map { $_->{pool} } @{ $vm1->{devices} }], [qw(gpu rdma rdma)], 'the devices of the claim');
is_deeply([map { $_->{address} } grep { $_->{pool} eq 'gpu' } @{ $vm1->{devices} }], ['0000:23:00.0'], 'the GPU of the claim');
is_deeply([sort keys %{ $vm1->{memory} }], [0], 'on the NUMA node of the claim');
is($vm1->{consumer}, $consumer, 'and its consumer');
is((agent('--once'))[0], 0, 'a comparison');
is_deeply([used('n1_0000:23:00.0', $gpu), used('n1_0000:24:00.0', $vf), used('n1_NUMA0', 'PCPU'), used('n1_NUMA0', 'MEMORY_MB')], [1, 2, 4, 2048], 'Placement counts each resource once');
is(placement_claims($vm1->{id}), undef, 'the allocation has no claim of its own');
is((agent("--claim=$consumer"))[0], 1, 'the devices are taken now');

# The consumer gives up its claim before the allocation is released.
placement('DELETE', "/allocations/$consumer");
is((agent('--once'))[0], 0, 'a comparison without the claim');
is(used('n1_0000:23:00.0', $gpu), 1, 'the device is still counted once');
is(claim($consumer, 'n1_0000:23:00.0' => { $gpu => 1 }), 409, 'and nobody else gets it');
is_deeply([release($bus, 'vm1')], ['done'], 'it is released');
is((agent('--once'))[0], 0, 'a comparison');
is(used('n1_0000:23:00.0', $gpu), 0, 'then nothing is left');

# A part of the allocation is beyond the claim.
is(claim($consumer, 'n1_0000:13:00.0' => { $gpu => 1 }), 204, 'a claim of a GPU alone');
($status, $line) = agent("--claim=$consumer");
is((ctl('allocate', 'vm2', (split ' ', $line), '--cpus=4', '--memory=1G', '--host-nodes=0'))[0], 0, 'an allocation with CPUs too');
is((agent('--once'))[0], 0, 'a comparison');
is_deeply(placement_claims(id('vm2')), { n1_NUMA0 => { PCPU => 4, MEMORY_MB => 1024 } }, 'the agent claims the rest');
is(used('n1_0000:13:00.0', $gpu), 1, 'and the GPU is counted once');

done_testing();
