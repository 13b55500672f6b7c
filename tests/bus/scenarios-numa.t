#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids: guests that fill NUMA nodes beside a device. Nova's host: two nodes of four CPUs to pin.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my ($gpu, $port) = qw(0000:82:00.0 0000:02:00.1);
my $host = "[Daemon]\nHousekeepingCpus=0-3,8-11\n";
my $gpus = "[Pool gpu]\nMatch=address=$gpu\n";
my @vm   = (cpus => 4, memory => 2**30);
my $bus  = Bus->new->listen;

# The GPU is on node 0 here, and so is the port above it.
my $above = 'sys/devices/pci0000:80/0000:80:02.0';
fault("set $above/numa_node 0", "set $above/$gpu/numa_node 0");

sub nodes { my ($name) = @_; return (allocation($bus, $name) // {})->{numa_nodes} }

sub pool { my ($name) = @_; my ($pool) = grep { $_->{name} eq $name } @{ describe($bus)->{pools} }; return { %$pool{qw(total available)} } }

# Asks for what cannot be had; nothing changes.
sub refused {
        my ($what, $sentence, @request) = @_;
        my ($tree, $state) = (tree(), snapshot(times => 1));
        fault('reset');
        my ($error, $message) = allocate($bus, 'refused', @request);
        is($error, 'org.passthroughd1.Error.Insufficient', "$what: it is refused");
        like($message // '', $sentence, "$what: with a sentence");
        nothing_written("$what: without a write");
        same_tree($tree, "$what: the tree is as before");
        same_state($state, "$what: and the ledger", times => 1);
        return;
}

# ---- A14, A15: two guests without a device, the one away from it leaves, one with the device comes

for my $case (['A14', 'legacy', 0], ['A14', 'required', 0], ['A15', 'preferred', 1]) {
        my ($id, $policy, $possible) = @$case;
        my $what = "$id: $policy";
        configure("$host$gpus");
        $bus->forget_signals();
        my $before = tree();
        is(device($bus, $gpu)->{numa_node}, 0, "$what: the device is on node 0");
        is(allocate($bus, 'vm1', @vm), 'done', "$what: a guest without a device");
        is_deeply(nodes('vm1'), [1], "$what: keeps away from the node with the device");
        is(allocate($bus, 'vm2', @vm), 'done', "$what: another one");
        is_deeply(nodes('vm2'), [0], "$what: has to be there");
        is(release($bus, 'vm1'), 'done', "$what: the first one leaves");
        is_deeply(pool('gpu'), { total => 1, available => 1 }, "$what: the device is free");
        my @request = (gpu => 1, @vm, numa => $policy);
        if ($possible) {
                is(allocate($bus, 'vm3', @request), 'done', "$what: it is given across nodes");
                is_deeply(nodes('vm3'), [1], "$what: to a guest on node 1");
                is_deeply([map { $_->{address} } @{ allocation($bus, 'vm3')->{devices} }], [$gpu], "$what: the device of node 0");
                is_deeply(pool('gpu'), { total => 1, available => 0 }, "$what: none is free");
        } else {
                refused($what, qr/^\S.*node 0.*\.$/, @request);
                is_deeply(pool('gpu'), { total => 1, available => 1 }, "$what: it stays free");
        }
        release_all($bus);
        same_tree($before, "$what: the tree is that of the start");
}

# ---- A16: a device of the other colour beside free CPUs is no substitute

fault("set $above/numa_node 1", "set $above/$gpu/numa_node 1");
my $red   = "[Pool red]\nMatch=address=$gpu\n";
my $green = "[Pool green]\nMatch=address=$port\n";
configure("$host$red");
$bus->forget_signals();
is(allocate($bus, 'full', @vm), 'done', 'A16: a guest without a device');
is_deeply(nodes('full'), [0], 'A16: fills node 0');
configure("$host$red$green");
$bus->forget_signals();
is_deeply([map { device($bus, $_)->{numa_node} } $port, $gpu], [0, 1], 'A16: green is on node 0, red on node 1');
refused('A16', qr/^\S.*node 0.*\.$/, green => 1, @vm, numa => 'required');
is_deeply(pool($_), { total => 1, available => 1 }, "A16: $_ stays free") for qw(green red);
is(allocate($bus, 'red', red => 1, @vm, numa => 'required'), 'done', 'A16: which red could have been');
release_all($bus);

# ---- F6: less memory than one page for each guest cell

my $pages = 'hugepages/hugepages-2048kB';
fault(map { my $n = $_; map { "set sys/devices/system/node/node$n/$pages/$_ 64" } qw(nr_hugepages free_hugepages) } 0, 1);
configure($host);
$bus->forget_signals();
my %two = (cpus => 4, cells => 2, 'page-size' => 2 * 2**20);
ok(plan_ok($bus, %two, memory => 4 * 2**20), 'F6: two cells of one page each are possible');
my ($tree, $state) = (tree(), snapshot(times => 1));
fault('reset');
my ($signature, $entries) = request(%two, memory => 2 * 2**20);
my $facts = ['invalid-request', '2 MiB', 2];
is_error($bus->call('Plan',     $signature,    $entries),         'InvalidRequest', $facts, 'F6: 2 MiB for two of them is no plan');
is_error($bus->call('Allocate', "s$signature", 'small', $entries), 'InvalidRequest', $facts, 'F6: nor an allocation');
nothing_written('F6: nothing is written');
same_tree($tree, 'F6: the tree is as before');
same_state($state, 'F6: and the ledger', times => 1);

done_testing();
