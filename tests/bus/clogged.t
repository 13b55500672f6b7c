#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Clients that do not read their replies: the daemon's memory does not grow, and the bus does not stay clogged for others.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use SystemBus;

node('hgx-h100', root => 1);

# A sanitizer keeps freed memory on purpose.
use constant { CONNECTIONS => 40, CALLS => 128, GROWTH_KIB => $ENV{CHECK_SANITIZE} ? 512 << 10 : 32 << 10 };

my @objects = (Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects');
my $peer    = Bus->new("$ENV{RUNTIME_DIRECTORY}/private");

sub memory { return (slurp('/proc/' . pid() . '/status') =~ /^RssAnon:\s+(\d+)/m)[0] }

sub writable {
        my ($client, $seconds) = @_;
        my $bits = '';
        vec($bits, fileno $client->{socket}, 1) = 1;
        return select(undef, $bits, undef, $seconds // 0) > 0;
}

# Sends calls until the daemon reads no more of them.
sub fill {
        my ($client) = @_;
        while (writable($client, 1)) { $client->post(@objects) }
        return;
}

sub owner { return $_[0]->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'GetNameOwner', 's', Bus::NAME)->{body}[0] }

# The bus reads no more of a sender when so many bytes of it are unread: 127 MiB if nobody sets another limit.
ok(end_bus() && start_bus(max_incoming_bytes => 1 << 20) && wait_for_name(), 'a bus with a small limit');
my $bus   = Bus->new;
my $reply = $bus->ask(@objects);
my $owner = owner($bus);
my $quiet = memory();

my @silent = map { Bus->new } 1 .. CONNECTIONS;
for my $client (@silent) { $client->post(@objects) for 1 .. CALLS }
my $waiting = $bus->post(@objects);
is($peer->ping->{error}, undef, 'root is served by the private socket');
ok(wait_until(sub { my $now = owner($bus); $now ne $owner && $now =~ /^:/ }, 180), 'the daemon connects to the bus anew');
cmp_ok(memory() - $quiet, '<', GROWTH_KIB, 'its memory has not grown');
is($bus->reply($waiting)->{error}, 'org.freedesktop.DBus.Error.NoReply', 'a caller of the lost connection gets an error');
is($bus->ping->{error}, undef, 'others are served on the bus');
is(scalar @{ $bus->ask(@objects)->{body} }, 1, '... with large replies too');

# A peer without a bus.
local $SIG{PIPE} = 'IGNORE';
my $mute = Bus->new("$ENV{RUNTIME_DIRECTORY}/private");
fill($mute);
is($peer->ping->{error}, undef, 'a peer that does not read keeps nobody waiting');
cmp_ok(memory() - $quiet, '<', GROWTH_KIB, '... and the memory has not grown');
ok(wait_until(sub { writable($mute) && !eval { $mute->post(@objects) } }), '... and it is disconnected');

my $other = Bus->new("$ENV{RUNTIME_DIRECTORY}/private");
fill($other);
is(daemon('stop'), 0, 'SIGTERM ends the daemon while a peer does not read');
done_testing();
