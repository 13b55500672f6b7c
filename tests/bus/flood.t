#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# No flood of calls ends the daemon, or keeps root waiting.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../bench";

use Test::More;
use Time::HiRes qw(time);

use Bench;
use Bus;

# Calls that are put aside at once, of one connection, as src/bus/caller.h says.
use constant WAITING_OF_ONE => 32;

my $root   = machine(4096);
my $config = spew("$disk/flood.conf", "[Pool gpu]\nMatch=vendor=10de\n[Pool vf]\nMatch=vendor=15b3 type=vf\n");
local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = start_bus();
my ($daemon) = start_daemon($ENV{DBUS_SYSTEM_BUS_ADDRESS}, $root, $config, directory("$disk/state"));
my $bus = Bus->new;

sub flood {
        my (@arguments) = @_;
        my $pid = fork // die "fork: $!";
        if (!$pid) { exec "$program/tests/flood", @arguments or die "flood: $!" }
        return $pid;
}

# Seconds until the daemon answers.
sub answered {
        my $start = time;
        my $reply = $bus->ping();
        is($reply->{error}, undef, 'the daemon answers');
        return time - $start;
}

# One such plan takes some milliseconds, all of them minutes.
waitpid flood(10_000, 'gpu=8', 'vf=9'), 0;
is($?, 0, 'calls of Plan that want no reply are sent');
cmp_ok(answered(), '<', 10, 'and keep nobody waiting');

# The daemon has to ask the bus who calls.
is(system('prlimit', "--pid=$daemon", '--nofile=128'), 0, 'the daemon may have 128 descriptors');
my @floods = map { flood(1000, '--regions', '--descriptors', 'gpu=8', 'vf=9') } 1 .. 4;
answered();
waitpid $_, 0 for @floods;
answered();
ok(kill(0, $daemon) && waitpid($daemon, 1) == 0, 'descriptors do not end the daemon');

# Calls of one connection whose uid is not known yet: all at once, so that the bus cannot have told it.
my $other = Bus->new;
my @calls = map { $other->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', 'none', 1) } 1 .. 100;
my %errors;
$errors{ $other->reply($_)->{error} }++ for @calls;
my @names = map { "org.passthroughd1.Error.$_" } qw(LimitExceeded NoSuchAllocation);
is_deeply([grep { $_ ne $names[0] } sort keys %errors], [$names[1]], 'calls that wait for their uid are served') or diag(explain(\%errors));
cmp_ok($errors{ $names[1] }, '>=', WAITING_OF_ONE, 'as many as there is room for') or diag(explain(\%errors));

done_testing();
