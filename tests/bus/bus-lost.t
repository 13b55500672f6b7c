#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The daemon works without the system bus, and uses the bus again when there is one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Nobody;
use Node;
use SystemBus;

node('paper-testbed', root => 1);

plan skip_all => 'no /run of its own' if $ENV{NODE_EVENTS} ne 'yes';
my $socket = "$ENV{RUNTIME_DIRECTORY}/private";
my $gpu    = '0000:82:00.0';

# passthroughctl by the private socket.
sub private_ctl {
        my ($what, @words) = @_;
        my $output = qx{env -u DBUS_SYSTEM_BUS_ADDRESS RUNTIME_DIRECTORY=/nonexistent timeout 120 passthroughctl @words 2>&1};
        is($?, 0, $what) or diag($output);
        return $output;
}

sub named { my ($what) = @_; return ok(wait_for_name(), $what) }

# Messages about the bus.
sub told { my ($offset) = @_; return scalar grep { /\bbus\b/ } split /\n/, log_since($offset) }

# ---- a start without a bus

my $offset = log_since();
is(daemon('stop'), 0, 'the daemon ends');
ok(end_bus(), 'the bus ends');
is(daemon('start'), 0, 'the daemon starts without a bus');
is(told($offset), 1, '... the journal says so once');
like(private_ctl('... and root lists', 'list'), names($gpu, 'available'), '... the devices');
private_ctl('... and allocates', qw(allocate vm gpu=1 --cpus 2 --memory 1G));
is(driver_of($gpu), 'vfio-pci', '... a device');
ok(start_bus(), 'a bus comes');
named('the daemon takes its name');
is(Bus->new->ping->{error}, undef, '... and serves clients of the bus');
is(told($offset), 2, '... which the journal says');
private_ctl('root releases', qw(release vm));

# ---- the bus ends and comes back while a job runs

my $peer = Bus->new($socket);
my $pid  = pid();
fault('reset', 'unkillable 2');
my $reply = $peer->call('Allocate', 'sa{sv}', 'vm', [['devices', ['a(su)', [['gpu', 1]]]], ['cpus', ['u', 1]], ['memory', ['t', 1 << 30]]]);
is($reply->{error}, undef, 'a job begins');
ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), '... and waits for the kernel');
$offset = log_since();
ok(end_bus(), 'the bus is killed');
is($peer->ping->{error}, undef, 'the daemon serves root');
ok(start_bus(), 'the bus is started again');
named('the daemon takes its name again');
fault('release');
is($peer->result($reply->{body}[1]), 'done', 'the job ends well');
fault('reset');
is(pid(), $pid, 'in the same daemon');
is(told($offset), 2, 'the journal says once that the bus is lost, and once that it is back');
my $bus = Bus->new->listen;
is(allocation_state($bus, 'vm'), 'ready', 'clients of the bus see the allocation');
is(release($bus, 'vm'), 'done', '... get signals, and root may change');

# A unique name of the old bus means another client on the new one, which is not root.
SKIP: {
        my $uid = getpwnam 'nobody' // skip 'no user nobody', 1;
        my $former = (map { Bus->new } 1 .. 20)[-1]; # few connections of the next bus come before one with its name
        is($former->call('Release', 'st', 'none', 1)->{error}, 'org.passthroughd1.Error.NoSuchAllocation', 'root may change');
        ok(end_bus() && start_bus(), 'another bus');
        named('the daemon has its name there');
        my ($same) = grep { $_->{name} eq $former->{name} } map { local $) = groups_of('nobody'); local $> = $uid; Bus->new } 1 .. 30;
        skip 'the name is not given again', 1 if !$same;
        is($same->call('Release', 'st', 'none', 1)->{error}, 'org.freedesktop.DBus.Error.AccessDenied', 'a client with the name of a former client has its own rights');
}

# ---- a bus that hangs

signal_bus('STOP');
my $start = time;
is(daemon('restart'), 0, 'the daemon starts beside a bus that hangs');
cmp_ok(time - $start, '<', 60, '... in bounded time');
private_ctl('... and root lists', 'list');
signal_bus('CONT');
named('the daemon takes its name when the bus answers');

# ---- another daemon owns the name

is(system(qw(env -u NOTIFY_SOCKET), "STATE_DIRECTORY=$ENV{NODE_TMP}/other", 'sh', '-c', 'mkdir -m 0700 $STATE_DIRECTORY && exec timeout 60 passthroughd --sysroot=$NODE_ROOT --config=/nonexistent') >> 8,
        1, 'a second daemon on the bus exits');
is(Bus->new->ping->{error}, undef, '... and the first one serves');

# ---- the end

$offset = log_since();
ok(end_bus(), 'the bus ends');
ok(wait_until(sub { told($offset) }), '... which the daemon sees');
is(daemon('stop'), 0, 'SIGTERM ends the daemon without a bus');
done_testing();
