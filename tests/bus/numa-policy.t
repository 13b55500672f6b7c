#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Nova's table of NUMA affinity policies: CPUs of node 1 only, one device, whose node is unknown, the other one or the same one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

configure("[Daemon]\nHousekeepingCpus=0-7\n[Pool gpu]\nMatch=vendor=10de class=0302\n");

# The port above too: a device that does not know takes its word.
my $port  = 'sys/devices/pci0000:80/0000:80:02.0';
my $bus   = Bus->new->listen;
my @table = (
        ['A1', 'preferred', -1, 1], ['A2', 'preferred', 0, 1], ['A3', 'preferred', 1, 1],
        ['A4', 'legacy',    -1, 1], ['A5', 'legacy',    0, 0], ['A6', 'legacy',    1, 1],
        ['-',  'single',    -1, 0], ['-',  'single',    0, 0], ['-',  'single',    1, 1],
        ['A7', 'required',  -1, 0], ['A8', 'required',  0, 0], ['A9', 'required',  1, 1],
);

for my $row (@table) {
        my ($id, $policy, $numa_node, $possible) = @$row;
        my $what = "$id: $policy, device on node $numa_node";
        fault("set $port/numa_node $numa_node", "set $port/0000:82:00.0/numa_node $numa_node");
        ok(!$bus->call('Rescan')->{error}, "$what: rescan");
        is(device($bus, '0000:82:00.0')->{numa_node}, $numa_node < 0 ? undef : $numa_node, "$what: is what the daemon sees");
        my @request = (gpu => 1, cpus => 4, memory => 2**30, numa => $policy);
        my ($tree, $state) = (tree(), snapshot());
        fault('reset');
        my ($result, $sentence) = allocate($bus, 'guest', @request);
        if ($possible) {
                is($result, 'done', "$what: is possible") or diag($sentence);
                my ($allocation) = @{ describe($bus)->{allocations} };
                is_deeply($allocation->{numa_nodes}, [1], "$what: with CPUs of node 1");
                is(release($bus, 'guest'), 'done', "$what: it is released");
        } else {
                is($result, 'org.passthroughd1.Error.Insufficient', "$what: is refused");
                like($sentence // '', qr/^\S.*\.$/, "$what: with a sentence");
                nothing_written("$what: without a write");
        }
        same_tree($tree, "$what: the tree is as before");
        same_state($state, "$what: the ledger too") or release_all($bus);
}

# A machine with one node, whose firmware names no node for its devices.
my $small = slurp("$ENV{BUILD}/nodes/paper-testbed.tree") =~ s/numa_node=[01]$/numa_node=-1/gmr =~ s{^.*/system/node/node1/.*\n}{}gmr =~ s{(/node0/cpulist=)0-7}{${1}0-15}r
        =~ s/distance=10 21/distance=10/r =~ s{(/system/node/[a-z_]+)=0-1}{$1=0}gr;
spew("$ENV{NODE_TMP}/small.tree", $small);
my @small = ('--node', "$ENV{NODE_TMP}/small.tree", '--config', "$ENV{NODE_TMP}/passthroughd.conf");
for my $policy (qw(single required)) {
        my ($status, $out, $err) = ctl('plan', 'gpu=1', qw(--cpus 4 --memory 1G --numa), $policy, @small);
        is($status, 0, "$policy: the only node has every device") or diag($err);
}
my ($status, $out, $err) = ctl('xml', 'guest', 'gpu=1', qw(--cpus 4 --memory 1G --nccl), @small);
like($out, qr/<pci busid="[0-9a-f:.]+" class="0x03/, 'so its place in the guest is known, and NCCL is told of it') or diag($err);

done_testing();
