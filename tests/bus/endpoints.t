#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Health=tcp: an endpoint that accepts no connection gives no slots, and its allocations keep theirs. What is unknown changes nothing, and nothing
# of this delays the daemon.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Fcntl qw(F_SETFL O_NONBLOCK);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Socket;
use Test::More;
use Time::HiRes qw(sleep time);

use Node;
use Wire;

use constant { ACCEPTS => 1, REFUSES => 2, SILENT => 3, UNREACHABLE => 4, NAMELESS => 5 }; # of model/endpoint-status.h
use constant { NAME_SIZE => 128, CONNECT => 5, PATIENCE => 15, INTERVAL => 30 };         # the last three in seconds

node('paper-testbed', configure => 1);
system(qw(ip link set lo up)) == 0 or die 'ip';

# A name that is not in /etc/hosts does not exist. The file is that of this node alone.
my $names = $ENV{NODE_EVENTS} eq 'yes' && do {
        spew("$ENV{NODE_TMP}/nsswitch.conf", "hosts: files\n");
        system('mount', '--bind', "$ENV{NODE_TMP}/nsswitch.conf", '/etc/nsswitch.conf') == 0;
};

my $config = "$ENV{NODE_TMP}/passthroughd.conf";
my $pools  = "[Pool gpu]\nMatch=vendor=10de class=0302\n";

# ---- servers

sub listening {
        my ($port) = @_;
        return IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', LocalPort => $port // 0, ReuseAddr => 1) // die "listen: $!";
}

# The kernel drops a SYN to a socket whose queue is full.
sub dropping {
        my @sockets;
        socket my $server, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
        bind $server, pack_sockaddr_in(0, INADDR_LOOPBACK) or die "bind: $!";
        listen $server, 0 or die "listen: $!";
        my $address = getsockname $server;
        for (1 .. 4) {
                socket my $client, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
                fcntl $client, F_SETFL, O_NONBLOCK or die "fcntl: $!";
                connect $client, $address;
                push @sockets, $client;
        }
        return ((unpack_sockaddr_in($address))[0], $server, @sockets);
}

my $server  = listening();
my $free    = listening();
my $port    = $free->sockport;
my $up      = '127.0.0.1:' . $server->sockport;
my $refuses = "127.0.0.1:$port";
close $free;
my ($full, @queue) = dropping();
my $silent = "127.0.0.1:$full";

sub service { my ($name, $endpoint, $slots, $health) = @_; return "[Service $name]\nKind=lupine\nEndpoint=$endpoint slots=$slots\n" . ($health // "Health=tcp\n") }
my $services = service('up', $up, 2) . service('refuses', $refuses, 2) . service('silent', $silent, 2) . service('nameless', 'nosuch.invalid:1', 2) . service('unasked', 'localhost:1', 2, '');
my $begin    = time;
configure($pools . $services);
my $bus = Bus->new->listen;

sub pool { my ($name) = @_; my ($found) = grep { $_->[0] eq $name } @{ $bus->call('ListPools')->{body}[0] }; return $found && "@$found[1 .. 5]" }
sub endpoint { my ($name) = @_; my ($pool) = grep { $_->{name} eq $name } @{ describe($bus)->{pools} }; return $pool->{endpoints}[0] }
sub endpoint_problem { my ($name) = @_; return join '', grep { index($_, $name) >= 0 } @{ $bus->properties(Bus::PATH, Bus::MANAGER)->{EndpointProblems} } }
sub health { my ($name) = @_; return endpoint($name)->{health} // 'none' }
# A due question waits until the one before it is answered. An endpoint that was up is down after two failed connects.
sub becomes { my ($name, $health, $what) = @_; return ok(wait_until(sub { health($name) eq $health }, 2 * INTERVAL + PATIENCE), $what) || diag(log_since(0)) }
sub reload { my ($text, $what) = @_; spew($config, $text); my $r = $bus->call('Reload'); is($r->{error}, undef, $what) or diag($r->{body}[0]); return }
sub rescan { my $r = $bus->call('Rescan'); is($r->{error}, undef, 'rescan') if $r->{error}; return }
sub count_log { my ($from, @names) = @_; my $names = names(@names); return scalar grep { /$names/ } split /\n/, log_since($from) }

sub refused {
        my ($what, $facts, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        return is_error($bus->call('Allocate', "s$signature", 'refused', $entries), 'Insufficient', $facts, $what);
}

# The slowest Ping while the function is true.
sub slowest_ping {
        my ($while) = @_;
        my ($slowest, $n) = (0, 0);
        while ($while->()) {
                my $start = time;
                $bus->ping();
                my $took = time - $start;
                $slowest = $took if $took > $slowest;
                $n++;
                sleep 0.02; # what delays a Ping delays it for longer
        }
        note(sprintf '%d pings, the slowest %.1f ms', $n, $slowest * 1000);
        return $slowest;
}

# ---- what real servers answer

my $unknown = health('silent');
is($unknown, 'unknown', 'before the first answer nothing is known') if time - $begin < CONNECT;
my $slots = pool('silent');
is($slots, '2 2 0 0 0', '... and the slots are on offer') if $unknown eq 'unknown' && time - $begin < CONNECT;
cmp_ok(slowest_ping(sub { time - $begin < 3 * CONNECT && health('silent') eq 'unknown' }), '<', CONNECT - 2, 'no Ping is delayed while an endpoint does not answer');
is(health('up'), 'up', 'one that listens is up');
is(pool('up'), '2 2 0 0 0', '... and offers its slots');
my %slots = (refuses => $refuses, silent => $silent, $names ? (nameless => 'nosuch.invalid:1') : ());
my %reason;
for my $name (sort keys %slots) {
        is(health($name), 'down', "$name: down");
        is(pool($name), '0 0 0 0 0', '... it offers nothing');
        refused('... no request gets a slot', ['insufficient-slots', $name, 1, 0, 2, $slots{$name}], $name => 1);
        $reason{ endpoint($name)->{reason} } = 1;
        my ($status, $out) = ctl('pools');
        like($out, qr/^\Q$slots{$name}\E: \Q@{[endpoint($name)->{reason}]}\E$/m, '... passthroughctl pools says why');
        ($status, $out) = ctl('plan', "$name=1");
        isnt($status, 0, '... no plan');
        ($status, $out) = ctl('check');
        like($out, names($slots{$name}), '... passthroughctl check names it');
        like(endpoint_problem($slots{$name}), names($slots{$name}, $name), '... so does a property of the manager');
        is(count_log(0, $slots{$name}), 1, '... the log says so once');
}
is(scalar keys %reason, scalar keys %slots, 'each has a reason of its own');
is(health('unasked'), 'none', 'without Health= there is no health');
is(pool('unasked'), '2 2 0 0 0', '... and the slots are on offer');
like(ctl_json('gres')->{gres}, qr/\bvm$_\b/, "Slurm gets $_") for qw(up:2 unasked:2), map { "$_:0" } keys %slots;

# ---- it comes back by itself

$bus->forget_signals();
my $back = listening($port);
becomes('refuses', 'up', 'a server that has been started is found');
is(endpoint_problem($refuses), '', '... it is no problem any more');
ok(grep({ $_->{member} eq 'PropertiesChanged' && exists $_->{body}[1]{EndpointProblems} } @{ $bus->{signals} }), '... a signal tells of that');
is(pool('refuses'), '2 2 0 0 0', '... its slots are on offer');
is(endpoint('refuses')->{reason}, undef, '... without a reason');
is(count_log(0, $refuses), 2, '... the log says so');

# ---- an allocation keeps its slot

is(allocate($bus, 'vm1', up => 1), 'done', 'vm1 has a slot');
my $log = log_since();
close $server;
rescan() for 1, 2;
becomes('up', 'down', 'its server ends');
is(pool('up'), '1 0 1 0 0', '... vm1 keeps the slot, and there is no other');
is(allocation($bus, 'vm1')->{services}[0]{endpoint}, $up, '... it is in the allocation');
refused('... nobody gets another one', ['insufficient-slots', 'up', 'vm1', $up], up => 1);
like(log_since($log), names($up, 'vm1'), '... the log names the allocation');
is(release($bus, 'vm1'), 'done', '... it is released');
is(pool('up'), '0 0 0 0 0', '... and its slot is given to nobody');
$server = listening((split /:/, $up)[1]);
rescan();
becomes('up', 'up', 'its server starts');
is(pool('up'), '2 2 0 0 0', '... and all slots are back');

# ---- what is not a question

sub name { return pack 'a' . NAME_SIZE, $_[0] }

for my $bytes ('x', name('a'), name('a:0'), name('a b:1'), name('/etc/passwd:1'), 'x' x NAME_SIZE, name($up) . 'x', name($up) x 257) {
        is_deeply([wire_ask($ENV{ENDPOINTS_SOCKET}, wire_message(0, $bytes))], [], 'no answer to nonsense');
}
my ($code, $all) = wire_ask($ENV{ENDPOINTS_SOCKET}, wire_message(0, name('127.0.0.1:1') x 256));
is($all, chr(REFUSES) x 256, 'as many endpoints as a configuration can have');

# ---- a passthroughd-endpoints of the test's own

unlink $ENV{ENDPOINTS_SOCKET};
my $listener = IO::Socket::UNIX->new(Local => $ENV{ENDPOINTS_SOCKET}, Listen => 8) or die "$ENV{ENDPOINTS_SOCKET}: $!";

sub is_asking { return scalar IO::Select->new($listener)->can_read($_[0] // 0) }

# The next question: the connection, and the names.
sub question {
        is_asking(INTERVAL + PATIENCE) or die 'no question';
        my $socket = $listener->accept;
        my ($code, $bytes) = wire_receive($socket);
        return ($socket, map { s/\0.*//sr } unpack '(a' . NAME_SIZE . ')*', $bytes);
}

# Answers, until the daemon has taken it. () hangs up.
sub answer_with {
        my ($socket, @bytes) = @_;
        $socket->send(wire_message(0, join '', @bytes)) if @bytes;
        return close $socket if !@bytes;
        IO::Select->new($socket)->can_read(PATIENCE) or die 'the answer is not taken';
        return close $socket;
}

my %all = map { $_ => ACCEPTS } $up, $refuses, $silent, 'nosuch.invalid:1';

# A rescan has it ask; %other: answers other than that it accepts.
sub round {
        my (%other) = @_;
        rescan();
        my ($socket, @asked) = question();
        answer_with($socket, map { chr($other{$_} // $all{$_}) } @asked);
        return;
}

round();
is(health($_), 'up', "$_ is up") for qw(up refuses silent nameless);
for my $answer (REFUSES, SILENT, UNREACHABLE, NAMELESS) {
        round($up => $answer);
        is(health('up'), 'up', "answer $answer: once is not enough");
        round($up => 0);
        is(health('up'), 'up', '... nor is what is unknown');
        round($up => $answer);
        is(health('up'), 'down', '... twice is');
        round($up => 0);
        is(health('up'), 'down', '... what is unknown does not bring it back');
        round();
        is(health('up'), 'up', '... a connection does');
        round($up => $answer);
        round();
        round($up => $answer);
        is(health('up'), 'up', '... two that are not in a row are two first ones');
        round();
}
$all{$refuses} = REFUSES;
round() for 1, 2;
$log = log_since();
round($up => 0) for 1 .. 3;
is(count_log($log, $up), 1, 'unknown three times: the log says so once');
round($up => 200);
is(join(' ', map { health($_) } qw(up refuses)), 'up down', 'an answer that does not exist is unknown');

# ---- it is broken

sub stays { my ($what) = @_; is(join(' ', map { health($_) } qw(up refuses silent)), 'up down up', "$what: all is as before"); return }

$log = log_since();
for my $bytes ('', chr(REFUSES), chr(REFUSES) x 5, chr(REFUSES) x 4096) {
        rescan();
        answer_with((question())[0], length $bytes ? $bytes : ());
        stays(length($bytes) . ' bytes of an answer');
}
ok(wait_until(sub { count_log($log, 'passthroughd-endpoints') }), '... the log says so');
is(count_log($log, 'passthroughd-endpoints'), 1, '... once');
round();
rescan();
answer_with((question())[0]);
ok(wait_until(sub { count_log($log, 'passthroughd-endpoints') == 2 }), 'and once more after it has answered');
round();

# ---- it hangs

$log   = log_since();
$begin = time;
rescan();
my ($hanging) = question();
rescan() for 1 .. 3;
ok(!is_asking(), 'it hangs: there is no second question');
stays('it hangs');
cmp_ok(slowest_ping(sub { time - $begin < 2 * PATIENCE && !is_asking() }), '<', PATIENCE / 3, '... no Ping is delayed');
my ($again, @names) = question();
cmp_ok(time - $begin, '>=', PATIENCE - 1, '... the daemon has been patient');
stays('it has hung');
is(count_log($log, 'passthroughd-endpoints'), 1, '... the log says so');
ok(IO::Select->new($hanging)->can_read(0), '... and the daemon has hung up');
answer_with($again, map { chr $all{$_} } @names);
ok(!is_asking(), 'three rescans meanwhile were one question');

# ---- a reload

reload($pools . $services . "[Service new]\nKind=lupine\nEndpoint=new:1 slots=1\nHealth=tcp\n", 'a further endpoint');
my ($socket, @asked) = question();
is_deeply([sort @asked], [sort keys %all, 'new:1'], '... is in the next question, at once');
stays('the others have been reloaded');
is(health('new'), 'unknown', '... of the new one nothing is known');
reload($pools . service('up', $up, 2, '') . service('refuses', $refuses, 0) . service('silent', $silent, 2), 'they are gone while the question is open');
is(health('up'), 'none', '... one has no health any more');
answer_with($socket, map { chr REFUSES } @asked);
is(pool('up'), '2 2 0 0 0', '... and the answer does not matter');
($socket, @asked) = question();
is_deeply(\@asked, [$silent], 'the next question is about what is left: neither those without Health=, nor those of 0 slots');
answer_with($socket, chr ACCEPTS);
reload($pools . service('up', $up, 2, ''), 'no service with Health=');
rescan();
$bus->ping() for 1 .. 3;
ok(!is_asking(), 'no question');

# ---- a restart forgets

reload($pools . service('up', $up, 2), 'Health= again');
answer_with((question())[0], chr REFUSES);
is(health('up'), 'down', 'never up: the first refusal is enough');
restart();
is(health('up'), 'unknown', 'after a restart nothing is known');
answer_with((question())[0], chr ACCEPTS);
is(health('up'), 'up', '... until the first answer');

done_testing();
