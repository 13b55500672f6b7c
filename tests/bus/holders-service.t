#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughd-holders hangs, is gone, or gets questions that are none: the daemon touches no device then, and goes on.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(sleep time);

use Node;
use Wire;

use constant PATIENCE => 9; # seconds that the daemon waits for an answer

node('hgx-h100', configure => 1);

my $gpu = '0000:13:00.0';
configure("[Pool gpu]\nMatch=address=$gpu\n");
my $bus   = Bus->new->listen;
my $state = snapshot();
my $pid   = holders_pid();

sub refused {
        my ($what, $within) = @_;
        my $tree = tree();
        fault('reset');
        my $begin = time;
        my ($signature, $entries) = request(gpu => 1);
        is_error($bus->call('Allocate', "s$signature", 'vm', $entries), 'Unavailable', ['busy', $gpu, 'passthroughd-holders'], "$what: the device is refused");
        cmp_ok(time - $begin, '<', $within, "$what: in time");
        nothing_written("$what: nothing is written");
        same_tree($tree, "$what: the tree is as before");
        same_state($state, "$what: nothing is promised");
        return;
}

sub works {
        my ($what) = @_;
        is((allocate($bus, 'vm', gpu => 1))[0], 'done', "$what: the device is allocated");
        is((release($bus, 'vm'))[0], 'done', "$what: and released");
        return;
}

# What the log says about the service since the position.
sub warnings { my ($from) = @_; return scalar(() = log_since($from) =~ /passthroughd-holders/g) }

works('it runs');

# ---- questions that are none

for my $bytes ('', 'x', "\xff" x 16, wire_message(0, ''), (map { wire_message(0, $_) } 'x' x 16, pack('QQ', 65536, 65536), map { pack('QQ', @$_) . "\xff" x 4096 } [1, 0], [0, 1], [2**63, 0])) {
        () = wire_ask($ENV{HOLDERS_SOCKET}, $bytes); # until it is dealt with
}
my @silent = map { wire_connect($ENV{HOLDERS_SOCKET}) } 1 .. 4;
works('others ask nonsense, or nothing so far');
my ($result, $answer) = wire_ask($ENV{HOLDERS_SOCKET}, wire_message(0, pack 'QQ', 0, 0));
is($result, 0, 'nothing is no device in use');

# ---- it hangs

my $log = log_since();
kill 'STOP', -$pid or die "kill: $!";
refused('it hangs', 2 * PATIENCE);
refused('it still hangs', PATIENCE);
is($bus->ping()->{error}, undef, 'the daemon answers');
is(warnings($log), 1, 'the log says so once');
kill 'CONT', -$pid or die "kill: $!";
ok(wait_until(sub { (allocate($bus, 'vm', gpu => 1))[0] eq 'done' }), 'it goes on: the device is allocated');

# ---- the daemon is stopped while it waits, and goes on

is((release($bus, 'vm'))[0], 'done', 'released');
$log = log_since();
kill 'STOP', -$pid or die "kill: $!";
my ($signature, $entries) = request(gpu => 1);
my $asked = $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", 'vm', $entries);
for (1 .. 20) { stopped_and_continued(pid()); sleep 0.01 }
kill 'CONT', -$pid or die "kill: $!";
is($bus->result($bus->reply($asked)->{body}[1]), 'done', 'the daemon is stopped while it waits: the device is allocated');
is(warnings($log), 0, '... without a word');

# ---- it is gone, and the daemon releases nothing that it knows nothing of

kill 'KILL', -$pid or die "kill: $!";
ok(wait_until(sub { !IO::Socket::UNIX->new(Peer => $ENV{HOLDERS_SOCKET}) }), 'it is gone');
isnt((release($bus, 'vm'))[0], 'done', 'it is gone: the device is not released') for 1, 2;
is(driver_of($gpu), 'vfio-pci', 'it is gone: the device stays with its driver');
ok(kill(0, pid()), 'the daemon lives');

# ---- another answers in its place: a holder of the first node, and a struct of nonsense

unlink $ENV{HOLDERS_SOCKET};
my $listening = IO::Socket::UNIX->new(Local => $ENV{HOLDERS_SOCKET}, Listen => 8) or die "$ENV{HOLDERS_SOCKET}: $!";
my $liar      = fork // die "fork: $!";
if (!$liar) {
        while (my $asked = $listening->accept) {
                wire_receive($asked);
                $asked->send(wire_message(1, "\0" x 8 . "\xff" x (length($answer) - 8)));
        }
        exit;
}
isnt((release($bus, 'vm'))[0], 'done', 'it answers nonsense: the device is not released') for 1, 2;
ok(kill(0, pid()), 'the daemon lives');
is($bus->ping()->{error}, undef, '... and answers');
kill 'KILL', $liar;
waitpid $liar, 0;

done_testing();
