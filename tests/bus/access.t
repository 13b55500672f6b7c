#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon itself lets nobody but root change anything, also on a bus whose policy would.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../bench";

use Test::More;

use Bench;
use Bus;
use Nobody;

need_nobody();

my $root = directory("$memory/node");
lines("$source/tests/nodes/generate", '--dir', 24, $root);
my $config = spew("$disk/access.conf", "[Pool vf]\nMatch=vendor=15b3 type=vf\n");
my $state  = directory("$disk/state");

local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = start_bus();
start_daemon($ENV{DBUS_SYSTEM_BUS_ADDRESS}, $root, $config, $state, with_readers("$disk/group"));

my @request = ('sa{sv}', 'mine', [['devices', ['a(su)', [['vf', 1]]]]]);
my %calls   = (
        Describe            => [],
        Allocate            => \@request,
        Release             => ['st', 'mine', 1],
        SetVirtualFunctions => ['su', '0000:05:00.0', 1],
        Rescan              => [],
        Reload              => [],
);

# Name to error of all calls.
sub errors {
        my $bus = Bus->new;
        return { map { $_ => $bus->call($_, @{ $calls{$_} })->{error} // 'none' } sort keys %calls };
}

my $denied = 'org.freedesktop.DBus.Error.AccessDenied';
my %wanted = map { $_ => $_ eq 'Describe' ? 'none' : $denied } keys %calls;

is_deeply([as_nobody(\&errors)], [\%wanted], 'nobody may read, and change nothing');
my $bus = Bus->new;
is($bus->call('Allocate', @request)->{error}, undef, 'root may');
is_deeply([as_nobody(\&errors)], [\%wanted], 'and that root did before makes no difference to nobody');

done_testing();
