#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# NUMA nodes without CPUs or without memory: devices on them belong to the nearest node with CPUs in plans, documents, pools and refusals; their
# memory is given only to a request that names it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Encode qw(decode);
use JSON::XS;
use Test::More;

use Document;
use Node;

node('gb200');

my $bus   = Bus->new->listen;
my @gpus  = map { "$_:06:00.0" } qw(0008 0009 0018 0019); # two of node 0, two of node 1
my %guest = (cpus => 8, memory => 2**33);
my $nodes = "$ENV{BUILD}/nodes";

sub recorded {
        my ($node, $verb, @arguments) = @_;
        my ($status, $out, $err) = ctl($verb, '--node', "$nodes/$node.tree", '--config', "$FindBin::Bin/../nodes/$node.conf", @arguments);
        return $out . $err;
}

# Without its lines.
sub flat { my (@arguments) = @_; return recorded(@arguments) =~ s/\s+/ /gr }

sub planned_on { my ($node, @arguments) = @_; return JSON::XS->new->decode(recorded($node, 'plan', '--json', @arguments)) }

# What the guest gets: nodes of its CPUs, and devices.
sub what { my ($plan) = @_; return join ' ', "@{ $plan->{numa_nodes} }:", map { $_->{address} } @{ $plan->{devices} } }

# ---- four GPUs on nodes without CPUs and memory

is(what(ctl_json('plan', 'gpu=1', '--cpus', 8, '--memory', '8G', '--numa', 'required')), "0: $gpus[0]", 'a GPU of node 2 is near node 0');
is(what(ctl_json('plan', 'gpu=2', '--cpus', 8, '--memory', '8G', '--numa', 'single')), "0: @gpus[0, 1]", 'so are both of one CPU');
is(what(ctl_json('plan', 'gpu=4', '--cpus', 8, '--memory', '8G', '--numa', 'required')), "0 1: @gpus", 'all four, on two nodes');
is(what(ctl_json('plan', 'gpu=1', "--at", "gpu=$gpus[3]", '--cpus', 8, '--memory', '8G', '--numa', 'socket')), "1: $gpus[3]", 'by socket');
is(what(ctl_json('plan', 'gpu=2', 'nic=2', '--numa', 'single')), ": @gpus[0, 1] 0000:01:00.0 0002:01:00.0", 'devices alone');
like((ctl('plan', 'gpu=1', '--cpus', 8, '--memory', '8G'))[1], names('Nodes:', 'gpu0', 'node 2', 'node 0'), 'the plan says so');
like((ctl('show', $gpus[2]))[1], names('NUMA node:', '18', 'node 1'), 'and the device');
is(device($bus, $gpus[2])->{numa_node}, 18, 'the node of the device is its own');
is(device($bus, $gpus[2])->{cpu_node},  1,  'beside the one with CPUs');

my $reply = $bus->call('Plan', request(gpu => 3, %guest, cells => 1, numa => 'required'));
is_error($reply, 'Insufficient', ['numa', "$gpus[0] is on node 2", 'node 0 has 68'], 'three GPUs on one node');
is_error($bus->call('Plan', request(gpu => 1, %guest, 'host-nodes' => [2])), 'Insufficient', ['numa', 'NUMA node 2 has no CPUs'], 'a node without CPUs by name');

is_deeply([map { [$_->{id}, $_->{total}] } map { @{ $_->{numa_nodes} } } grep { $_->{name} eq 'gpu' } @{ describe($bus)->{pools} }], [[0, 2], [1, 2]], 'pools count them at the node with CPUs');
my @rows = grep { /^ +\d+ +\d+ / } split /\n/, (ctl('pools'))[1];
is(scalar(@rows), 2, 'pools: no line for nodes that have nothing');

is(allocate($bus, 'vm', gpu => 1, %guest, numa => 'required'), 'done', 'an allocation');
my $xml = document('vm', 'a GPU of a node without CPUs');
my ($expander) = $xml =~ m{(<controller [^>]*model="pcie-expander-bus".*?</controller>)}s;
like($expander // '', qr{<node>0</node>}, 'the document has it near its cell');
like((ctl('xml', 'vm', '--nccl'))[1], qr{<cpu numaid="0".*?class="0x030200".*?</cpu>}s, 'the NCCL file too');

my ($signature, $entries) = request(gpu => 1, numa => 'required');
$reply = $bus->call('Attach', "st$signature", 'vm', allocation($bus, 'vm')->{generation}, $entries);
is($reply->{error} ? "@{ $reply->{body} }" : $bus->result($reply->{body}[0]), 'done', 'attach another');
is_deeply([sort map { $_->{address} } @{ allocation($bus, 'vm')->{devices} }], [@gpus[0, 1]], 'it is the one that is near');
($signature, $entries) = request(gpu => 1, numa => 'required');
is_error($bus->call('Attach', "st$signature", 'vm', allocation($bus, 'vm')->{generation}, $entries), 'Insufficient', ['numa', "$gpus[2] is on node 18"], 'a third one is not near');
is(release($bus, 'vm'), 'done', 'released');

$ENV{COLUMNS} = 80;
my @lines = split /\n/, decode('UTF-8', (ctl('topology'))[1]);
cmp_ok(scalar(@lines), '<', 70, 'topology of 34 nodes is short');
is_deeply([grep { length > 80 } @lines], [], 'and no line is wide');
ok((grep { /^NUMA nodes 3-9,11-17,19-25,27-33:/ } @lines), 'nodes with nothing have one line') or diag(join "\n", @lines);
ok((grep { /^  guests .* node 1\.$/ } @lines), 'a node without CPUs names the nearest');
ok((grep { /^  distance  40 to node 1, 80 to nodes 2-17, 120 to nodes 18-33$/ } @lines), 'distances together');

# ---- a GPU whose memory the host has online

like(flat('gh200', qw(plan gpu=1 --cpus 8 --memory 8G)), names('0009:01:00.0', '97280 MiB', 'NUMA node 1'), 'Grace-Hopper: the memory is named before the unbind');
like(recorded('gh200', qw(plan --cpus 8 --memory 8G --memory-from 1)), names('NUMA node 1', '0009:01:00.0'), 'its memory is no memory for guests');
like(flat('gh200', 'topology'), names('NUMA node 1', 'node 0', 'GPU 0009:01:00.0'), 'topology says whose it is');

# ---- CXL memory

is_deeply([map { [@$_{qw(node memory_node)}] } @{ planned_on('turin-cxl', qw(gpu=2 --cpus 8 --memory 8G))->{cells} }], [[0, 0], [1, 1]], 'CXL memory is not given by itself');
my $plan = planned_on('turin-cxl', qw(gpu=2 --cpus 8 --memory 8G --memory-from 2-3));
is_deeply([map { [@$_{qw(node memory_node)}] } @{ $plan->{cells} }], [[0, 2], [1, 3]], 'a request may name it, and each cell gets the nearest');
is_deeply($plan->{memory}, { 2 => 2**32, 3 => 2**32 }, 'the memory is of these nodes');
$plan = planned_on('turin-cxl', qw(gpu=2 --cpus 8 --memory 8G --memory-from 3));
is_deeply($plan->{memory}, { 3 => 2**33 }, 'one node for both cells');
$xml = recorded('turin-cxl', qw(xml vm gpu=2 --cpus 8 --memory 8G --memory-from 3));
is_deeply([$xml =~ /<memnode cellid="(\d)" mode="strict" nodeset="(\d)"/g], [0, 3, 1, 3], 'the document has the cells of that node');
like($xml, qr{<memory mode="strict" nodeset="3"/>}, 'and the guest');
unlike(recorded('turin-cxl', qw(xml vm gpu=2 --cpus 8 --memory 8G)), qr/nodeset="[^"]*[23]/, 'else never');
for ([qw(--memory 200G --memory-from 3)], [qw(--memory 2T)]) {
        like(flat('turin-cxl', qw(plan --cpus 8), @$_), $_->[2] ? names('node 3', '127 GiB', 'NUMA nodes 3') : names('node 0', 'node 1', 'NUMA nodes 2-3', 'memory-from'), "refused: @$_");
}
like(recorded('turin-cxl', qw(plan gpu=1 --memory-from 2)), names('vCPUs'), 'memory without a guest');
like(recorded('turin-cxl', qw(plan --cpus 2 --memory 1G --memory-from 5)), names('NUMA node 5'), 'a node that is not there');
like(recorded('turin-cxl', qw(plan --cpus 2 --memory 1G --memory-from two)), names("'two'"), 'no set');
like(flat('turin-cxl', 'topology'), names('NUMA node 2', '--memory-from 2'), 'topology says that it is not given by itself');
my $check = flat('turin-cxl', 'check');
like($check, names('ok memory NUMA node 2', '384 GiB', '--memory-from'), 'check too');
like($check, names('warning numa 0000:60:05.0', 'node 9'), 'a node that the machine does not list');
is(planned_on('turin-cxl', qw(fpga=1 --cpus 2 --memory 1G))->{devices}[0]{numa_node}, undef, 'it is unknown');
like(recorded('turin-cxl', qw(plan fpga=1 --cpus 2 --memory 1G --numa required)), names('0000:60:05.0', 'unknown'), 'which the policy required refuses');

# ---- kinds of devices

my %explained = map { $_ => flat('turin-cxl', 'explain', $_) } qw(0000:41:00.0 0000:60:01.0 0000:60:02.0 0000:60:03.0 0000:60:04.0);
like($explained{'0000:41:00.0'}, names('0000:41:00.0 <- mem0 <- region0 <- System RAM'), 'a CXL device whose memory is online is in use');
like($explained{"0000:60:0$_.0"}, names('available', "'dsa'"), "a DMA engine, 0000:60:0$_.0") for 1, 3;
like($explained{"0000:60:0$_.0"}, names('not available', 'platform'), "no device for guests, 0000:60:0$_.0") for 2, 4;
my $suggestion = recorded('turin-cxl', 'suggest');
unlike($suggestion, qr/GPU: Xilinx|Pool gpu-xilinx/i, 'an FPGA is no GPU');
unlike($suggestion, qr/0000:60:0[1-4]/, 'no engine is suggested');

done_testing();
