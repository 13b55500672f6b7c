#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The page stays right while it is open: the daemon is killed in the middle of a job, stops and starts, a device is unplugged, a thousand
# changes come. It is loaded once. CHANGES= is the number of changes, LATENCIES= that of changes whose way to the screen is measured, BUSY= that of
# processes that take CPU time meanwhile: BUILD=build LATENCIES=200 BUSY=4 perl tests/cockpit/life.t
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus", $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Browser;
use Node;

plan skip_all => Browser::missing() if Browser::missing();
node('hgx-h100');

my ($changes, $latencies) = ($ENV{CHANGES} // 1000, $ENV{LATENCIES} // 30);
my $bus     = Bus->new->listen;
my $browser = Browser->new;
my $gpu     = '0000:13:00.0';

sub device_shows { my ($address, $text) = @_; return $browser->shows(qq{.device[data-address="$address"]}, $text) }
# The reply to Allocate, which does not wait for the job.
sub begin { my ($name, @more) = @_; my ($signature, $entries) = request(gpu => 1, @more); return $bus->call('Allocate', "s$signature", $name, $entries) }
sub body_is { my ($state) = @_; return $browser->becomes('return document.body.dataset.state === arguments[0]', $state) }

ok(device_shows($gpu, 'available'), 'the page is there');
daemon('stop');
$browser->open;
ok(body_is('absent'), 'a page that is opened while there is no daemon says so');
daemon('start');
ok(device_shows($gpu, 'available'), 'and begins with the daemon');
$browser->script('window.loaded = 1');

# ---- The daemon ends in the middle of a job

fault("hang unbind\@$gpu");
my $reply = begin('guest');
is($reply->{error}, undef, 'an allocation begins');
ok($browser->shows('.job', "$gpu: unbind"), 'the page shows the step at which its job hangs') or diag($browser->text('.jobs'));
daemon('stop', 'KILL');
ok(body_is('absent'), 'the daemon is killed: the page says so');
ok($browser->shows('.daemon-state', 'systemctl start passthroughd'), 'and what to do');
fault('release', 'reset');
daemon('start');
ok(body_is('ready'), 'the daemon is back, and so is the page');
ok(wait_until(sub { my $state = allocation_state($bus, 'guest'); !$state || $state ne 'preparing' }), 'the allocation is completed or rolled back');
my $state = allocation_state($bus, 'guest');
ok($state ? $browser->shows('[data-allocation=guest]', $state) : $browser->gone('[data-allocation=guest]'), 'the page shows which');
release_all($bus);
ok($browser->gone('[data-allocation]'), 'it is released');
restart('TERM');
ok(wait_until(sub { device($bus, $gpu)->{state} eq 'available' }), 'a restarted daemon knows the device');
is(allocate($bus, 'second', gpu => 1), 'done', 'an allocation after it');
ok(device_shows($gpu, 'second'), 'is on the page') or diag($browser->script('return document.body.dataset.state + document.body.innerText'), explain(allocation($bus, 'second')->{devices}));

# ---- A device is unplugged, and plugged in again

SKIP: {
        skip 'the node cannot send events', 4 if $ENV{NODE_EVENTS} ne 'yes';
        my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{.*/devices/}{sys/devices/}r;
        fault("remove $path");
        ok($browser->shows('.problem', "$gpu: missing"), 'an allocated device is unplugged: a problem');
        ok($browser->gone(qq{.device[data-address="$gpu"]}), 'and no longer on the picture');
        fault('write sys/bus/pci/rescan 1');
        ok(device_shows($gpu, 'gpu'), 'it is plugged in again');
        ok($browser->gone('.problem', 'missing'), 'and not missing');
}
release_all($bus);

# ---- Many changes: the page shows the last state, and its memory stays

sub heap {
        $browser->command('POST', 'goog/cdp/execute', { cmd => 'HeapProfiler.collectGarbage', params => {} }) for 1 .. 2;
        my $heap  = $browser->command('POST', 'goog/cdp/execute', { cmd => 'Runtime.getHeapUsage', params => {} });
        my $nodes = $browser->command('POST', 'goog/cdp/execute', { cmd => 'Memory.getDOMCounters', params => {} });
        return ($heap->{usedSize}, $nodes->{nodes});
}

# Two changes of an allocation, and those of its device, pool and node.
sub change {
        my ($name) = @_;
        begin($name, hold => 60)->{error} and die 'no reservation';
        release($bus, $name) eq 'done' or die 'no release';
        return;
}

change("warm-$_") for 1 .. 50;
ok($browser->gone('[data-allocation]'), 'the page follows changes');
my ($before, $nodes) = heap();
my $start = time;
change("n-$_") for 1 .. $changes / 2;
my $took = time - $start;
is(begin('last', hold => 60)->{error}, undef, "$changes changes");
my $then = time;
ok($browser->shows('[data-allocation=last]', 'reserved'), 'the last one is on the page');
note(sprintf '%d changes in %.1f s; the last one was seen %.2f s after it', $changes, $took, time - $then);
release_all($bus);
ok($browser->gone('[data-allocation]'), 'and gone');
my ($after, $nodes_after) = heap();
note(sprintf 'memory of the scripts: %.2f MiB before, %.2f MiB after; %d and %d nodes', $before / 2**20, $after / 2**20, $nodes, $nodes_after);
cmp_ok($after, '<', $before + 2**20, 'the memory stays');
cmp_ok($nodes_after, '<', $nodes + 500, 'so do the nodes of the document');

# ---- How long a change takes to the screen: from the reply to the caller, to the frame after the one that shows it

$browser->script(<<'END');
window.seen = {};
new MutationObserver(() => {
    const shown = [...document.querySelectorAll("[data-allocation]")].map(tr => tr.dataset.allocation);
    requestAnimationFrame(() => shown.forEach(name => window.seen[name] ??= Date.now()));
}).observe(document.body, { childList: true, subtree: true });
END
my @busy;
for (1 .. $ENV{BUSY} // 0) {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                alarm 600;
                1 while 1;
        }
        push @busy, $pid;
}
my @ms;
for my $n (1 .. $latencies) {
        begin("t-$n", hold => 60);
        my $sent = time;    # the reply comes before the signals
        my $seen = $browser->becomes("return window.seen['t-$n']") or next;
        push @ms, $seen - 1000 * $sent;
        release($bus, "t-$n");
}
kill 'KILL', @busy;
waitpid $_, 0 for @busy;
is(scalar @ms, $latencies, "$latencies changes are seen");
@ms = sort { $a <=> $b } @ms;
note(sprintf 'from the reply to the frame, %d changes beside %d busy processes: median %d ms, worst %d ms', scalar @ms, scalar @busy, $ms[@ms / 2], $ms[-1]);
cmp_ok($ms[@ms / 2], '<', 1000, 'soon');

is($browser->script('return window.loaded'), 1, 'all this time the page was not loaded again');
is_deeply([grep { !/favicon/ } $browser->errors], [], 'and had no error');
$browser->quit;
done_testing;
