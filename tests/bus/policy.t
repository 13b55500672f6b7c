#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Reading is for everyone, changing for root.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Nobody;

need_nobody();
node('paper-testbed');

my $root = Bus->new->listen;
is(allocate($root, 'guest', 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'root allocates');
my $generation = Node::generation($root, 'guest');
$root->forget_signals();
fault('reset');
my ($tree, $state, $daemon) = (tree(), snapshot(times => 1), pid());

my @request = request('ib-vf' => 1);
my %reading = (
        ListDevices     => [],
        GetDevice       => ['s', '0000:82:00.0'],
        ListAllocations => [],
        GetAllocation   => ['s', 'guest'],
        ListPools       => [],
        ListNodes       => [],
        Explain         => ['s', '0000:82:00.0'],
        Plan            => \@request,
        Describe        => [],
        DescribeTopology => [],
);
# Changes, and documents of root's allocation.
my %changing = (
        GetDomainXML        => ['sa{sv}', 'guest', []],
        GetNcclTopology     => ['sa{sv}', 'guest', []],
        Allocate            => ['sa{sv}', 'mine', $request[1]],
        Release             => ['st', 'guest', $generation],
        SetVirtualFunctions => ['su', '0000:83:00.0', 4],
        Rescan              => [],
        Reload              => [],
);

my ($replies) = as_nobody(sub {
        my $bus = Bus->new;
        my %replies = map { $_ => $bus->call($_, @{ $reading{$_} // $changing{$_} }) } keys %reading, keys %changing;
        $replies{listen} = eval { $bus->listen; 1 } ? {} : { error => $@ };
        for my $object (['', 'Manager'], ['/allocation/guest', 'Allocation'], ['/device/_30000_3a82_3a00_2e0', 'Device']) {
                my $reply = $bus->ask(Bus::NAME, Bus::PATH . $object->[0], 'org.freedesktop.DBus.Properties', 'GetAll',
                        's', "org.passthroughd1.$object->[1]");
                $replies{"properties of $object->[1]"} = $reply;
        }
        $replies{managed} = $bus->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects');
        $replies{introspect} = $bus->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.Introspectable', 'Introspect');
        $replies{ping} = $bus->ping();
        $replies{set} = $bus->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.Properties', 'Set', 'ssv', Bus::MANAGER, 'Version', ['s', '9']);
        # A handle is nothing for JSON.
        delete $_->{descriptors} for grep { ref } values %replies;
        return \%replies;
});
is(ref $replies, 'HASH', 'nobody reaches the bus') or die $replies;

is($replies->{$_}{error}, undef, "nobody may call $_") for sort keys %reading;
is($replies->{$_}{error}, undef, "nobody may ask: $_") for 'listen', 'managed', 'introspect', 'ping', sort grep { /^properties/ } keys %$replies;
is($replies->{'properties of Manager'}{body}[0]{Version}, $root->properties(Bus::PATH, Bus::MANAGER)->{Version}, 'and is told what root is');
like($replies->{'properties of Device'}{body}[0]{Address} // '', qr/^0000:82:00\.0$/, 'about devices too');

is($replies->{$_}{error} // 'done', 'org.freedesktop.DBus.Error.AccessDenied', "nobody may not call $_") for sort keys %changing;
is($replies->{set}{error}, 'org.freedesktop.DBus.Error.PropertyReadOnly', 'nor set a property');

# The command line says it in a sentence.
my ($commands) = as_nobody(sub {
        my %out = map { $_ => scalar qx(passthroughctl $_ 2>&1) } 'list', 'allocate mine ib-vf=1', 'release guest', 'rescan', 'reload';
        return \%out;
});
like($commands->{list}, qr/^0000:82:00\.0 /m, 'passthroughctl list works for nobody');
like($commands->{$_}, qr/^passthroughctl: .*polkit.*\.\n\z/, "passthroughctl $_ does not") for sort grep { $_ ne 'list' } keys %$commands;

nothing_written('nothing was written to the node');
same_tree($tree, 'which is as before');
same_state($state, 'and the ledger too', times => 1);
is_deeply([$root->signal_names()], [], 'nobody was told of a change');
is(pid(), $daemon, 'the daemon lives');
ok(!$root->ping()->{error}, 'and answers');

done_testing();
