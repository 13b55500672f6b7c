#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-dra, the kubelet or the API server is away for long. The clocks of passthrough-dra go 50 times as fast (tests/clock): ten minutes
# take 12 s. KUBE_AWAY=SECONDS without the API server.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(sleep time);

use Kube;
use Node;

use constant RATE => 50;

my $away = $ENV{KUBE_AWAY} // 600;

kube_needed();
node('hgx-h100', configure => 1);
configure("[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n");
$ENV{CLOCK_RATE} = RATE;
kube_start();
my $pid = dra_start();
my $bus = Bus->new->listen;

sub written { my ($n) = @_; my @log = @{ control()->{log} }; return map { $_->{method} } grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @log[$n .. $#log] }
sub reads { my ($n) = @_; my @log = @{ control()->{log} }; return scalar grep { $_->{method} eq 'GET' && $_->{token} eq 'node' && $_->{path} =~ /resourceslices/ } @log[$n .. $#log] }
sub log_length { return scalar @{ control()->{log} } }
sub tainted { my ($address) = @_; return scalar @{ (slice_devices()->{ device_named($address) } // {})->{taints} // [] } }
sub remove_slices { api('DELETE', "/apis/resource.k8s.io/v1/resourceslices/$_->{metadata}{name}") for slices(); return }
sub register { kubelet('info'); return kubelet('status') }
# Until the clocks of passthrough-dra are so many seconds later.
sub later { my ($seconds) = @_; sleep $seconds / RATE; return }
# Of a call, 40 s are 0.8 s here: it is tried again, as the kubelet does.
sub does { my ($do, $ref, $name) = @_; return ok(wait_until(sub { kubelet($do, claims => [$ref])->{claims}{ $ref->{uid} }{error} eq '' }), $name) }
sub memory { return (slurp("/proc/$pid/smaps_rollup") =~ /^Private_Dirty:\s+(\d+)/m)[0] }

register();
ok(wait_until(sub { slices() == 1 }), 'the slices are published');
my $one = claim('one', gpu => '0000:13:00.0');
my $two = claim('two', gpu => '0000:23:00.0');
does(prepare => $_, "$_->{name} is prepared") for $one, $two;
my $id = allocation($bus, "claim-$one->{uid}")->{id};

# ---- The driver is away for less than the 30 s that the kubelet gives it

later(60);
my $before = log_length();
dra_stop('KILL');
$pid = dra_start();
register();
ok(wait_until(sub { reads($before) }), 'back within 30 s: the slices are read');
later(60);
is_deeply([written($before)], [], '... and none is written');

# ---- ... and for more: the kubelet has removed the slices, and claims have gone

dra_stop('KILL');
remove_slices();
delete_claim($two);
is(allocate($bus, 'human', gpu => 1, at => [['gpu', '0000:33:00.0']], consumer => uid_of(99)), 'done', 'meanwhile a person has a GPU');
$before = log_length();
$pid = dra_start();
ok(wait_until(sub { slices() == 1 }), 'back after more than 30 s: the slices are published');
is_deeply([written($before)], ['POST'], '... by one write');
ok(tainted('0000:33:00.0'), '... as the node is now');
register();
ok(wait_until(sub { allocation_state($bus, "claim-$two->{uid}") eq 'gone' }), 'a claim that has gone is released');
does(prepare => $one, 'the other is prepared');
is(allocation($bus, "claim-$one->{uid}")->{id}, $id, '... and has the same allocation as before');
release($bus, 'human');

# ---- The kubelet starts again, and somebody removes slices

$before = log_length();
register();
ok(wait_until(sub { reads($before) >= 4 }, 900 / RATE), 'after a start of the kubelet, which may remove slices for 30 s, they are read again and again');
later(120);
remove_slices();
ok(wait_until(sub { slices() == 1 }, 900 / RATE), 'at other times all is compared every 10 minutes');

# ---- The API server is away

# The line of an answer begins with the method.
sub tries { return scalar(() = dra_log() =~ m{^http://}gm) }
my ($tries, $memory) = (tries(), memory());
kube_stop_api();
my $start = time;
is(allocate($bus, 'human', gpu => 1, at => [['gpu', '0000:33:00.0']], consumer => uid_of(99)), 'done', 'the API server is away, and the node changes');
ok(wait_until(sub { tries() > $tries }), 'the driver notices');
does(prepare => $one, '... a claim that is prepared stays so');
later($away - (time - $start) * RATE) if (time - $start) * RATE < $away;
$tries = tries() - $tries;
my $minutes = (time - $start) * RATE / 60;
diag(sprintf '%.1f minutes, %d tries, %d KiB more memory', $minutes, $tries, memory() - $memory);
cmp_ok($tries, '>', $minutes / 2, 'it has tried each minute or two');
cmp_ok($tries, '<', 10 + 2 * $minutes, '... and not more than that');
ok(kill(0, $pid), '... lives');
# A sanitizer keeps freed memory on purpose.
cmp_ok(memory() - $memory, '<', $ENV{CHECK_SANITIZE} ? 1 << 20 : 2048, '... with the same memory');
does(prepare => $one, '... and the claim is still prepared');
does(unprepare => $one, '... and can be unprepared');
kube_start_api(); # which has forgotten all, as after a disaster
ok(wait_until(sub { tainted('0000:33:00.0') }, 900 / RATE), 'it is back, and gets the slices of the node as it is');
$one = claim('again', gpu => '0000:13:00.0');
does(prepare => $one, 'and claims are prepared');

is(dra_stop(), 0, 'it ends');
done_testing();
