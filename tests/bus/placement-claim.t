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
Match=vendor=10de class=0302 address=0000:[1-3]*
Scheduler=placement
[Pool theirs]
Match=vendor=10de class=0302 address=0000:[9a-c]*
Scheduler=nova
[Pool plain]
Match=vendor=10de class=0302 address=0000:43:00.0
[Pool rdma]
Match=vendor=15b3 type=vf id=15b3:101e
VirtualFunctions=4
Scheduler=placement
[Service remote-gpu]
Kind=lupine
Endpoint=gpu1.example.org:9999 slots=1
Endpoint=gpu2.example.org:9999 slots=4
END
my $bus = Bus->new->listen;

sub id     { my ($name) = @_; return allocation($bus, $name)->{id} }
sub refusal { my (@request) = @_; return ctl_json("plan", @request)->{verdict} }

is_deeply({ map { $_->{name} => $_->{scheduler} } @{ describe($bus)->{pools} } }, { gpu => 'placement', theirs => 'nova', plain => 'none', rdma => 'placement', 'remote-gpu' => 'none' }, 'the pools and their schedulers');
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

# A further device: the consumer's claim first, then the allocation.
is(ctl_json('attach', 'vm1', 'gpu=1')->{verdict}, 'scheduled', 'no device that Placement gives out is attached by itself');
is_deeply([map { $_->{address} } grep { $_->{pool} eq 'gpu' } @{ allocation($bus, 'vm1')->{devices} }], ['0000:23:00.0'], 'nothing is attached');
my (undef, $now) = placement('GET', "/allocations/$consumer");
$now->{allocations}{ $first->{'n1_0000:33:00.0'}{uuid} } = { resources => { $gpu => 1 } };
is((placement('PUT', "/allocations/$consumer", $now))[0], 204, 'the claim is extended');
is((ctl('attach', 'vm1', 'gpu=1', '--at=gpu=0000:33:00.0'))[0], 0, 'the claimed device is attached');
is_deeply([sort map { $_->{address} } grep { $_->{pool} eq 'gpu' } @{ allocation($bus, 'vm1')->{devices} }], [qw(0000:23:00.0 0000:33:00.0)], 'both are in the allocation');
is((agent('--once'))[0], 0, 'a comparison');
is(used('n1_0000:33:00.0', $gpu), 1, 'it is counted once');
is(placement_claims($vm1->{id}), undef, 'by the claim of the consumer');
is((ctl('attach', 'vm1', 'plain=1'))[0], 0, 'a device of a pool without a scheduler is attached as well');
is((ctl('detach', 'vm1', $_))[0], 0, "$_ is detached") for qw(gpu1 plain0);
delete $now->{allocations}{ $first->{'n1_0000:33:00.0'}{uuid} };
$now->{consumer_generation}++;
is((placement('PUT', "/allocations/$consumer", $now))[0], 204, 'the claim is reduced');
is(allocate($bus, 'vm3', plain => 1), 'done', 'an allocation without a consumer');
is(ctl_json('attach', 'vm3', 'gpu=1', '--at=gpu=0000:33:00.0')->{verdict}, 'scheduled', 'gets no such device');
is_deeply([release($bus, 'vm3')], ['done'], 'it is released');

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

# Two allocations name the consumer of one claim.
my $twice = '22222222-0000-4000-8000-000000000002';
is(claim($twice, 'n1_0000:24:00.0' => { $vf => 1 }), 204, 'a claim of one VF');
($status, $line) = agent("--claim=$twice");
is((ctl('allocate', 'vm4', split ' ', $line))[0], 0, 'an allocation has it');
my ($free) = map { $_->{address} } grep { ($_->{physical_function} // '') eq '0000:24:00.0' && $_->{state} eq 'available' } @{ describe($bus)->{devices} };
is((ctl('allocate', 'vm5', "--consumer=$twice", 'rdma=1', "--at=rdma=$free"))[0], 0, 'another one has another VF');
is((agent('--once'))[0], 0, 'a comparison');
is(used('n1_0000:24:00.0', $vf), 2, 'both VFs are counted');

# Slots: the request has their number, and the daemon chooses the endpoints.
my ($slots, $with_slots) = ('CUSTOM_PASSTHROUGHD_SLOTS_REMOTE_GPU', '22222222-0000-4000-8000-000000000003');
my ($small, $large) = map { "n1_gpu$_.example.org:9999" } 1, 2;
is(claim($with_slots, $large => { $slots => 3 }, 'n1_0000:33:00.0' => { $gpu => 1 }), 204, 'a claim of slots and a GPU');
($status, $line) = agent("--claim=$with_slots");
is((ctl('allocate', 'vm6', split ' ', $line))[0], 0, 'an allocation has it');
my $vm6 = allocation($bus, 'vm6');
is_deeply([map { "$_->{endpoint} $_->{slots}" } @{ $vm6->{services} }], ['gpu2.example.org:9999 3'], 'the slots of the only endpoint with so many');
is((agent('--once'))[0], 0, 'a comparison');
is_deeply([used($small, $slots), used($large, $slots), scalar placement_claims($vm6->{id})], [0, 3, undef], 'Placement counts each slot once');
is((agent("--claim=$with_slots"))[0], 1, 'they are taken now');
my $other = '22222222-0000-4000-8000-000000000004';
is(claim($other, $large => { $slots => 2 }), 409, 'no more slots are claimed than there are');
is(claim($other, $large => { $slots => 1 }), 204, 'one is left');
($status, $line) = agent("--claim=$other");
is($line, "--consumer $other remote-gpu=1\n", 'a claim of a slot alone');
is((ctl('allocate', 'vm7', split ' ', $line))[0], 0, 'an allocation has a slot');
is_deeply([map { $_->{endpoint} } @{ allocation($bus, 'vm7')->{services} }], ['gpu1.example.org:9999'], 'of an endpoint that Placement did not choose');
is((agent('--once'))[0], 0, 'a comparison');
is_deeply([used($small, $slots), used($large, $slots)], [1, 4], 'which is claimed too');
is((placement('DELETE', "/allocations/$other"))[0], 204, 'the claim of the other endpoint is given up');
is_deeply([used($small, $slots), used($large, $slots)], [1, 3], 'then each slot is counted once');

done_testing();
