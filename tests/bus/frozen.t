#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A libvirt that hangs: while guests run, and while the daemon starts. At boot systemd starts libvirt only after the daemon is ready.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use List::Util qw(max min);
use POSIX ();
use Test::More;
use Time::HiRes qw(time sleep);

use Guests;
use Node;

# Seconds in which libvirt must answer, with some to spare.
use constant ANSWER => 32;

node_with_guests('paper-testbed', configure => 1);

my $gpu  = '0000:82:00.0';
my $pool = "[Pool gpu]\nMatch=address=$gpu\n";
configure($pool);
my $bus = Bus->new->listen;
libvirt_reports($bus);

sub reason { return describe($bus)->{libvirt}{reason} }

sub ping {
        my $start = time;
        $bus->ping()->{error} and die 'Ping fails';
        return time - $start;
}

# ---- while a guest runs

is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU is allocated');
libvirt_reports($bus, running_domain('md-worker', UUID, $gpu));
is(allocation_state($bus, 'guest'), 'in-use', 'a guest runs with it');
my @quiet  = map { ping() } 1 .. 200;
my $offset = log_since();
my $frozen = libvirt_process();
kill 'STOP', $frozen;
is($bus->call('Rescan')->{error}, undef, 'frozen: libvirt is asked');
my (@pings, %states);
wait_until(
        sub {
                push @pings, ping();
                $states{ allocation_state($bus, 'guest') } = 1 if @pings % 5 == 0;
                return @pings % 5 == 0 && reason();
        },
        ANSWER + 30
);
ok(reason(), 'frozen: the guests are unknown');
is_deeply([keys %states], ['in-use'], 'frozen: the allocation stays in use');
note(sprintf 'fastest and slowest Ping: quiet %.2f and %.2f ms, frozen %.2f and %.2f ms', map { 1e3 * $_ } min(@quiet), max(@quiet), min(@pings), max(@pings));
cmp_ok(min(@pings), '<', min(@quiet) + 0.001, 'frozen: a Ping takes as long as before');
cmp_ok(max(@pings), '<', 1, 'frozen: none waits');
ok(wait_until(sub { !reason() }), 'another process answers');
isnt(libvirt_process(), $frozen, 'the frozen one is gone');
is(allocation_state($bus, 'guest'), 'in-use', 'and the guest still runs');
is(() = log_since($offset) =~ /\bunknown\b/g, 1, 'told once in the log');
libvirt_reports($bus);
is(release($bus, 'guest'), 'done', 'the guest ends: released');

# ---- while the daemon starts

daemon('stop');
spew("$ENV{NODE_TMP}/passthroughd.conf", "${pool}Bind=start\n");
write_raw("hang\n");
$offset = log_since();
fault('reset', 'hang 1');
my $starter = fork // die "fork: $!";
POSIX::_exit(daemon('start')) if !$starter; # it waits for less than this test
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'a start: the binding hangs');
sleep ANSWER;
ok(Bus->new->ping()->{error}, 'the daemon is not ready yet');
fault('release');
ok(wait_until(sub { !Bus->new->ping()->{error} }), 'it is ready');
waitpid $starter, 0;
is(() = log_since($offset) =~ /\bunknown\b/g, 0, 'no warning: libvirt could not answer');
write_guests();
ok(wait_until(sub { !reason() }, ANSWER + 30), 'ready: it must answer in time, and another process does');

done_testing();
