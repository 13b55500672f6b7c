#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A state directory that takes no write: the call is refused, and the daemon says so to all who ask and in the journal, until a write succeeds.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $bus = Bus->new->listen;

sub read_only { return $bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly} }

is(read_only(), '', 'at first the ledger can be written');

# A file cannot replace a directory, not even as root.
my $in_the_way = "$ENV{STATE_DIRECTORY}/allocations/blocked.json";
mkdir $in_the_way or die "$in_the_way: $!";
my $tree   = tree();
my $offset = log_since();
is((allocate($bus, 'blocked', gpu => 1))[0], 'org.passthroughd1.Error.ReadOnly', 'an allocation that cannot be written is refused');
same_tree($tree, 'and nothing happens to the node');
like(log_since($offset), qr/\bledger\b/, 'the journal has a line of it');
like(read_only(), qr/\bledger\b/, 'the property ReadOnly is not empty');
is(describe($bus)->{read_only}, read_only(), 'nor is it in Describe');
ok(describe($bus)->{write_failed}, '... which tells that only a write failed');
is(allocate($bus, 'other', gpu => 1), 'done', 'an allocation that can be written is made');
is(read_only(), '', 'and then all is in order');
ok(!describe($bus)->{write_failed}, '... in Describe too');

done_testing();
