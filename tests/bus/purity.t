#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario A14: whoever only asks changes nothing, however often.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

# A hundred find each effect that a thousand find: the tree, the ledger and the signals are compared in the end.
use constant TIMES => 100;

node('paper-testbed');

my $bus = Bus->new->listen;
is(allocate($bus, 'guest', 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'there is an allocation');
$bus->forget_signals();

fault('reset');
my $tree  = tree();
my $state = snapshot(times => 1);
my @plan  = request(gpu => 1, 'ib-vf' => 3, cpus => 6, memory => 10 * 2**30, numa => 'required', proximity => 'root-complex');

my %calls = (
        'Plan'                  => ['Plan', @plan],
        'Plan of the impossible' => ['Plan', request(gpu => 1, 'ib-vf' => 4)],
        'Explain'               => ['Explain', 's', '0000:82:00.0'],
        'ListDevices'           => ['ListDevices'],
        'ListAllocations'       => ['ListAllocations'],
        'ListPools'             => ['ListPools'],
        'ListNodes'             => ['ListNodes'],
        'Describe'              => ['Describe'],
        'DescribeTopology'      => ['DescribeTopology'],
        'GetDomainXML'          => ['GetDomainXML', 'sa{sv}', 'guest', []],
        'GetNcclTopology'       => ['GetNcclTopology', 'sa{sv}', 'guest', []],
);

for my $name (sort keys %calls) {
        my $first = $bus->call(@{ $calls{$name} });
        my $same  = 1;
        for (2 .. TIMES) {
                my $reply = $bus->call(@{ $calls{$name} });
                $same = 0 if ($reply->{error} // '') ne ($first->{error} // '') || $name !~ /^List/ && $reply->{body}[0] ne $first->{body}[0];
        }
        ok($same, "A14: $name " . TIMES . ' times gives the same answer each time');
        is($first->{error}, $name eq 'Plan of the impossible' ? 'org.passthroughd1.Error.Insufficient' : undef, 'A14: ... which is the right one');
        nothing_written('A14: ... and writes nothing to the node');
        same_state($state, 'A14: ... nor to the state directory', times => 1);
}

for my $command (['list'], ['list', '--all'], ['show', 'guest'], ['explain', '0000:82:00.0'], ['plan', 'gpu=1'], ['allocations'], ['xml', 'guest'], ['history', '0000:82:00.0']) {
        my ($status, undef, $err) = ctl(@$command);
        is($status, 0, "A14: passthroughctl @$command") or diag($err);
}
nothing_written('A14: passthroughctl writes nothing to the node');
same_state($state, 'A14: nor to the state directory', times => 1);
same_tree($tree, 'the node is as before');
is_deeply([$bus->signal_names()], [], 'and nobody was told of a change');

done_testing();
