#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The journal names whose calls are refused for what they ask: each uid once in a minute.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Nobody;
use SystemBus;

need_nobody();
node('paper-testbed', root => 1);

my $uid    = getpwnam 'nobody';
my $bus    = Bus->new;
my $offset = log_since();

# What the daemon logged of refused calls: uids and processes.
sub reported {
        $bus->ping;
        return map { [/ uid (\d+), process (\d+)\b/] } grep { / uid \d+, / } split /\n/, log_since($offset);
}

# Makes the calls as nobody, one after the other. The pid of the caller, and names of the errors.
sub call_as_nobody {
        my (@calls) = @_;
        return as_nobody(sub { my $client = Bus->new; return $$, map { ($client->call(@$_)->{error} // 'none') =~ s/.*\.//r } @calls });
}

my @release = ('Release', 'st', 'none', 1);
my ($pid, @errors) = call_as_nobody(['ListDevices'], ['GetAllocation', 's', 'none']);
is_deeply(\@errors, ['none', 'NoSuchAllocation'], 'calls that anybody in the group may make');
is_deeply([reported()], [], '... are not reported');

($pid, @errors) = call_as_nobody((\@release) x 50);
is_deeply(\@errors, [('AccessDenied') x 50], 'calls that only root may make');
ok(wait_until(sub { reported() }), '... are reported');
is_deeply([reported()], [[$uid, $pid]], '... once, with uid and process');

# A second later the bus may be asked again who calls.
sub later { my $end = time + 2; return wait_until(sub { time >= $end }) }
later();
call_as_nobody(\@release);
is_deeply([reported()], [[$uid, $pid]], 'the same uid is not reported again within the minute');

is($bus->call(@release)->{error}, 'org.passthroughd1.Error.NoSuchAllocation', 'a call of root');
is_deeply([reported()], [[$uid, $pid]], '... is not reported');

# ---- the bus is lost while it is asked who calls, and while polkit is asked about further calls, which are refused then

use constant {
        WAIT_FOR_POLKIT => 32,                    # as src/bus/quota.c has it
        THE_BUS         => 'org.freedesktop.DBus',
};

sub client { local $) = groups_of('nobody'); local $> = $uid; return Bus->new }
my $client = client();
is($client->call('ListDevices')->{error}, undef, 'a client that the daemon knows');
kill 'STOP', pid();
$client->post(Bus::NAME, Bus::PATH, Bus::MANAGER, @release) for 0 .. WAIT_FOR_POLKIT;
$client->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'GetId') for 1 .. 2;
signal_bus('STOP');
kill 'CONT', pid();
later();
# It serves its connections in turns, so it has read as many calls of the bus as it answers here.
my $private = Bus->new("$ENV{RUNTIME_DIRECTORY}/private");
$private->ping() for 0 .. 2 * WAIT_FOR_POLKIT;
ok(end_bus() && start_bus(), 'one call too many is refused, and the bus is another one before it tells whose call it is');
ok(wait_for_name(), 'the daemon takes its name there');
my $logged = grep { / uid \d+, process / } split /\n/, log_since($offset);
later();
$client = client();
is($client->call(@release)->{error}, 'org.freedesktop.DBus.Error.AccessDenied', 'one more call');
ok(wait_until(sub { grep({ / uid \d+, process / } split /\n/, log_since($offset)) > $logged }), '... is reported');
my $told = log_since($offset);
my $sum = 0;
$sum += 1 + (/ (\d+) earlier refusals / ? $1 : 0) for grep { / uid \d+, process / } split /\n/, $told;
is($sum, 50 + 1 + (WAIT_FOR_POLKIT + 1) + 1, 'each refusal is reported or counted');

done_testing();
