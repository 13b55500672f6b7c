#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Root's private socket: who may open it, that it works while the bus does not, and that no peer keeps the daemon from ending.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use POSIX ();
use Socket;
use Test::More;
use Time::HiRes qw(time);

use Node;
use SystemBus;

node('paper-testbed', root => 1);

use constant PEERS_MAX => 16; # src/bus/server-internal.h

plan skip_all => 'no /run of its own' if $ENV{NODE_EVENTS} ne 'yes';
my $socket = "$ENV{RUNTIME_DIRECTORY}/private";
my $bus    = Bus->new;

# Exit status and output of passthroughctl by the private socket, or by the bus where it cannot be opened.
sub private_ctl {
        my (@words) = @_;
        my $output = qx{env -u DBUS_SYSTEM_BUS_ADDRESS RUNTIME_DIRECTORY=/nonexistent timeout 120 passthroughctl @words 2>&1};
        return ($? >> 8, $output);
}

sub succeeds {
        my ($what, @words) = @_;
        my ($status, $output) = private_ctl(@words);
        is($status, 0, $what) or diag($output);
        return $output;
}

# ---- who may open it

is((stat $socket)[2], 0140600, 'a socket for root alone');
is(system("setpriv --reuid=nobody --regid=nogroup --clear-groups perl -MIO::Socket::UNIX -e 'exit !!IO::Socket::UNIX->new(Peer => shift)' $socket"), 0, 'another user cannot open it');
my $peer = Bus->new($socket);
is($peer->ping->{error}, undef, 'root can');
is($peer->call('Allocate', 'sa{sv}', 'vm', [['devices', ['a(su)', [['gpu', 99]]]]])->{error}, 'org.passthroughd1.Error.InvalidRequest', 'a refusal has its name');

# A call that comes together with the end of the authentication.
{
        socketpair my $write, my $read, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
        my $eager  = bless { socket => $write, in => '', serial => 0, replies => {}, signals => [] }, 'Bus';
        my $serial = $eager->post(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.Peer', 'Ping');
        sysread $read, my $call, 65_536;
        $eager->{socket} = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!";
        syswrite $eager->{socket}, "\0AUTH EXTERNAL " . unpack('H*', $>) . "\r\nBEGIN\r\n$call";
        my $line = '';
        until ($line =~ /\n/) { sysread $eager->{socket}, $line, 1, length $line }
        is($eager->reply($serial)->{error}, undef, 'a call that comes with the authentication is served');
}

# A peer that leaves before its call is served.
{
        my $leaves = Bus->new($socket);
        my $log    = log_since();
        kill 'STOP', pid();
        $leaves->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', 'sa{sv}', 'left', [['cpus', ['u', 1]], ['memory', ['t', 1 << 30]]]);
        undef $leaves;
        kill 'CONT', pid();
        ok(wait_until(sub { allocation_state($peer, 'left') =~ /^(?:ready|gone)$/ }), 'a peer leaves');
        is_deeply([grep { !/'left'/ } split /\n/, log_since($log)], [], '... and nothing but its allocation is logged');
        private_ctl(qw(release left));
}

# No descriptor is free.
sub cpu_seconds { my @stat = split ' ', slurp('/proc/' . pid() . '/stat') =~ s/^.*\) //r; return ($stat[11] + $stat[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK) }
is(system('prlimit', '--pid=' . pid(), '--nofile=3:'), 0, 'the daemon may have no more descriptors');
{
        my $connection = IO::Socket::UNIX->new(Peer => $socket) or die "$socket: $!";
        my $before     = cpu_seconds();
        my $end        = time + 2;
        is($peer->ping->{error}, undef, 'other peers are served');
        Time::HiRes::sleep(0.1) while time < $end;
        cmp_ok(cpu_seconds() - $before, '<', 0.5, '... and the daemon does not spin');
        is(system('prlimit', '--pid=' . pid(), '--nofile=1024:'), 0, 'the daemon may have descriptors again');
        is(Bus->new($socket)->ping->{error}, undef, '... and serves new peers');
}

# ---- while the bus does not work

ok(signal_bus('STOP'), 'the bus is stopped');
like(succeeds('list', 'list'), names('0000:82:00.0', 'available'), '... names the devices');
like(succeeds('allocate, which waits for its job', qw(allocate vm gpu=1 --cpus 2 --memory 1G)), names('0000:82:00.0'), '... has the GPU');
is(driver_of('0000:82:00.0'), 'vfio-pci', '... which is bound');
succeeds('xml',     qw(xml vm));
succeeds('release', qw(release vm));
is($peer->ping->{error}, undef, 'and an earlier peer is served');
ok(signal_bus('CONT'), 'the bus goes on');
is($bus->ping->{error}, undef, '... and its clients are served');

# ---- too many peers

my $silent = Bus->new($socket);
$silent->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Describe', '') for 1 .. 1000;
is($peer->ping->{error}, undef, 'a peer that does not read keeps nobody waiting');
my $reply = $peer->call('Allocate', 'sa{sv}', 'cpus', [['cpus', ['u', 1]], ['memory', ['t', 1 << 30]]]);
is($peer->result($reply->{body}[1]), 'done', 'another one allocates');
my @more = map { Bus->new($socket) } 3 .. PEERS_MAX;
isnt((private_ctl('list'))[0], 0, 'more than the limit are refused');
is($_->ping->{error}, undef, '... and the others are served') for $bus, $peer, $more[-1];

# ---- the end

$more[0]->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Describe', '') for 1 .. 1000;
is($peer->ping->{error}, undef, 'replies wait for a peer that does not read');
signal_bus('STOP');
my $pid = pid();
kill 'TERM', $pid;
ok(wait_until(sub { !kill 0, $pid }), 'SIGTERM ends the daemon while the bus is stopped and peers do not read');
signal_bus('CONT');
daemon('start');
succeeds('another one takes its place', 'list');
done_testing();
