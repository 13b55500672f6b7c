#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Peers of passthrough-dra that break the rules of HTTP/2 and gRPC, are slow, or many: each loses its call or its connection, and the kubelet
# is served meanwhile and afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(time);

use Kube;
use Node;

kube_needed();
node('hgx-h100', configure => 1);
configure("[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n");
kube_start();
my $pid    = dra_start();
my $socket = kubelet('info')->{endpoint};

use constant { DATA => 0, HEADERS => 1, PRIORITY => 2, RESET => 3, SETTINGS => 4, PUSH => 5, PING => 6, GOAWAY => 7, WINDOW => 8, CONTINUATION => 9 };
my $PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

sub frame { my ($type, $flags, $stream, $payload) = @_; return substr(pack('N', length $payload), 1) . pack('CCN', $type, $flags, $stream) . $payload }
sub field { my ($name, $value) = @_; return "\0" . pack('C/a*', $name) . pack('C/a*', $value) }
sub head  { my ($path, @more) = @_; return "\x83\x86" . field(':path', $path) . field(':authority', 'x') . field('content-type', 'application/grpc') . join '', @more }
sub body  { my ($message, $flag, $size) = @_; return pack('CN', $flag // 0, $size // length $message) . $message }
my $begin   = $PREFACE . frame(SETTINGS, 0, 0, '');
my $prepare = '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources';
my $watch   = '/v1.DRAResourceHealth/NodeWatchResources';
my $call    = frame(HEADERS, 4, 1, head($prepare));

sub peer { return IO::Socket::UNIX->new(Peer => $socket) // die "$socket: $!" }

# What the plugin says until it hangs up, or is silent.
sub hears {
        my ($peer, $seconds) = @_;
        my ($bits, $all) = ('', '');
        vec($bits, fileno $peer, 1) = 1;
        while (select(my $ready = $bits, undef, undef, $seconds // 0.3) > 0) {
                sysread($peer, $all, 65_536, length $all) or return ($all, 1);
        }
        return ($all, 0);
}

# Until the plugin hangs up or resets the first call of the peer.
sub loses {
        my ($peer, $end) = @_;
        my ($bits, $all, $reset) = ('', '', substr frame(RESET, 0, 1, pack 'N', 0), 0, 9);
        vec($bits, fileno $peer, 1) = 1;
        while (index($all, $reset) < 0) {
                return 0 if $end <= time || select(my $ready = $bits, undef, undef, $end - time) <= 0;
                sysread($peer, $all, 65_536, length $all) or return 1;
        }
        return 1;
}

my %hostile = (
        'nothing but a hang-up'               => '',
        'HTTP/1.1'                            => "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        'noise'                               => join('', map { chr(($_ * 7919) % 256) } 1 .. 5000),
        'half a preface'                      => substr($PREFACE, 0, 10),
        'data before headers'                 => $begin . frame(DATA, 1, 1, body('')),
        'data on stream 0'                    => $begin . frame(DATA, 1, 0, body('')),
        'an even stream'                      => $begin . frame(HEADERS, 5, 2, head($prepare)),
        'streams in the wrong order'          => $begin . frame(HEADERS, 5, 5, head($prepare)) . frame(HEADERS, 5, 3, head($prepare)),
        'a frame of 16 MiB'                   => $begin . "\xff\xff\xff" . pack('CCN', DATA, 0, 1),
        'a continuation without headers'      => $begin . frame(CONTINUATION, 4, 1, head($prepare)),
        'headers that never end'              => $begin . frame(HEADERS, 0, 1, head($prepare)) . frame(CONTINUATION, 0, 1, field('a', 'b' x 100)) x 400,
        'headers of 64 KiB'                   => $begin . frame(HEADERS, 0, 1, head($prepare)) . frame(CONTINUATION, 0, 1, field('x' x 100, 'y' x 100) x 60) x 6 . frame(CONTINUATION, 4, 1, ''),
        'a broken header block'               => $begin . frame(HEADERS, 5, 1, "\xff\xff\xff\xff\xff"),
        'no path'                             => $begin . frame(HEADERS, 5, 1, "\x83\x86"),
        'a GET'                               => $begin . frame(HEADERS, 5, 1, "\x82\x86" . field(':path', $prepare) . field(':authority', 'x')),
        'no such method'                      => $begin . frame(HEADERS, 4, 1, head('/x/y')) . frame(DATA, 1, 1, body('')),
        'no message'                          => $begin . frame(HEADERS, 5, 1, head($prepare)),
        'half a message'                      => $begin . $call . frame(DATA, 1, 1, body('abc', 0, 100)),
        'two messages'                        => $begin . $call . frame(DATA, 1, 1, body('') . body('')),
        'a compressed message'                => $begin . $call . frame(DATA, 1, 1, body('', 1)),
        'a message of 4 GiB'                  => $begin . $call . frame(DATA, 1, 1, body('', 0, 0xffffffff)),
        'a message that is no protobuf'       => $begin . $call . frame(DATA, 1, 1, body("\x0a\xff\xff\xff\xff\x0f")),
        'a claim of a path'                   => $begin . $call . frame(DATA, 1, 1, body("\x0a\x0c\x0a\x02..\x12\x02..\x1a\x02..")),
        'more data than a window'             => $begin . $call . frame(DATA, 0, 1, 'x' x 16_000) x 8,
        'a window of more than 31 bits'       => $begin . $call . frame(WINDOW, 0, 1, pack 'N', 0x7fffffff) x 2,
        'a push promise'                      => $begin . frame(PUSH, 4, 1, pack('N', 2) . head($prepare)),
        '3,000 pings'                         => $begin . frame(PING, 0, 0, 'x' x 8) x 3000,
        '3,000 settings'                      => $begin . frame(SETTINGS, 0, 0, pack 'nN', 3, 100) x 3000,
        '2,000 calls that are reset'          => $begin . join('', map { frame(HEADERS, 5, $_, head($watch)) . frame(RESET, 0, $_, pack 'N', 8) } map { 2 * $_ + 1 } 0 .. 1999),
        '100 calls at once'                   => $begin . join('', map { frame(HEADERS, 4, $_, head($prepare)) } map { 2 * $_ + 1 } 0 .. 99),
        '20 streams of health that nobody reads' => $begin . join('', map { frame(HEADERS, 4, $_, head($watch)) . frame(DATA, 1, $_, body('')) } map { 2 * $_ + 1 } 0 .. 19),
        'a goaway in the middle'              => $begin . $call . frame(GOAWAY, 0, 0, pack 'NN', 0, 0),
);
for my $name (sort keys %hostile) {
        my $peer = peer();
        local $SIG{PIPE} = 'IGNORE';
        for (my $rest = $hostile{$name}; length $rest;) { my $n = syswrite($peer, $rest) or last; substr $rest, 0, $n, '' }
        shutdown $peer, 1 if $name =~ /hang-up/;
        my ($said) = hears($peer);
        unlike($said, qr/\0\0\0\0\0.{0,20}claim-/s, "$name: no claim is touched");
        is(kubelet('info')->{type}, 'DRAPlugin', '... and the kubelet is served');
}
ok(kill(0, $pid), 'the program lives');

# ---- Peers that are slow, and many

my $start = time;
my @slow  = map { my $peer = peer(); syswrite $peer, $_; $peer } '', substr($begin, 0, 5), $begin . $call, $begin . $call . frame(DATA, 0, 1, "\0");
my $one   = claim('one', gpu => '0000:13:00.0');
prepared_ok($one, 'a claim is prepared beside slow peers');
ok(loses($_, $start + 90), 'a slow peer loses its call or connection in time') for @slow;
my @many = map { my $peer = peer(); syswrite $peer, $begin; $peer } 1 .. 60;
is_deeply(prepare($one)->{claims}{ $one->{uid} }{error}, '', 'the kubelet is served beside 60 connections');
my $descriptors = () = glob "/proc/$pid/fd/*";
cmp_ok($descriptors, '<', 60, 'not all of which are kept');
@many = ();
unprepared_ok($one, 'unprepared');
my ($memory) = slurp("/proc/$pid/status") =~ /^VmRSS:\s+(\d+)/m;
cmp_ok($memory, '<', 60_000, "memory afterwards: $memory KiB");
is(dra_stop(), 0, 'it ends');
done_testing();
