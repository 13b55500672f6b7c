#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A promise outlives the daemon, and what was cut short is taken up again.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my @request = (gpu => 1, 'ib-vf' => 1, cpus => 8, memory => 20 * 2**30, numa => 'required');
my $gpu     = '0000:82:00.0';
my $bus     = Bus->new->listen;
my $before  = tree();
my $state   = snapshot();

sub state_of {
        my ($name) = @_;
        my $reply = $bus->call('ListAllocations');
        return $reply->{error} if $reply->{error};
        my ($found) = grep { $_->[0] eq $name } @{ $reply->{body}[0] };
        return $found ? $found->[1] : 'gone';
}

# ---- the daemon ends while all is in order

is(allocate($bus, 'guest', @request), 'done', 'there is an allocation');
my ($ready, $ledger, $generation) = (tree(), snapshot(times => 1), Node::generation($bus, 'guest'));
my ($allocation) = @{ describe($bus)->{allocations} };

for my $signal ('TERM', 'KILL') {
        my $old = pid();
        fault('reset');
        restart($signal);
        isnt(pid(), $old, "SIG$signal: another daemon");
        is_deeply(describe($bus)->{allocations}, [$allocation], "SIG$signal: has the same allocation");
        is((allocate($bus, 'other', gpu => 1))[0], 'org.passthroughd1.Error.Insufficient', "SIG$signal: and gives its devices to nobody");
        nothing_written("SIG$signal: hardware that is in order is not touched");
        same_tree($ready, "SIG$signal: the tree is as before");
        same_state($ledger, "SIG$signal: and the ledger", times => 1);
}
my ($status, undef, $err) = ctl('release', 'guest');
is($status, 0, 'it is released by the daemon that did not make it') or diag($err);
same_tree($before, 'to what was there before the daemon that did');

is(allocate($bus, 'guest', 'ib-vf' => 1), 'done', 'an allocation by the same name');
cmp_ok(Node::generation($bus, 'guest'), '>', $generation, 'has a higher generation');
$generation = Node::generation($bus, 'guest');
is(release($bus, 'guest'), 'done', 'also after it is gone');
restart('KILL');
is(allocate($bus, 'guest', 'ib-vf' => 1), 'done', 'and the daemon was killed');
cmp_ok(Node::generation($bus, 'guest'), '>', $generation, 'the next one has a higher generation still');
$generation = Node::generation($bus, 'guest');
is(release($bus, 'guest'), 'done', 'it is released');
is_deeply($bus->call('Release', 'st', 'guest', $generation)->{body}, ['/'], 'for good');

# ---- the process that writes is killed: allocate

for my $when ('before', 'after') {
        for my $n (1 .. 6) {
                my $what = "the writer dies $when write $n of allocate";
                fault('reset', "kill $n $when");
                is(allocate($bus, 'guest', @request), 'failed', "$what: the job fails");
                is(state_of('guest'), 'failed', "$what: the allocation has failed");
                like(describe($bus)->{allocations}[0]{reason} // '', names(qr/\b0000:[0-9a-f:.]+/), "$what: and says why");
                is(device($bus, $gpu)->{allocation}, 'guest', "$what: it keeps its devices");
                is((release($bus, 'guest'))[0], 'done', "$what: it can be released");
                same_tree($before, "$what: the tree is that of the start");
                same_state($state, "$what: the ledger too") or release_all($bus);
        }
}
for my $when ('before', 'after') {
        for my $n (1 .. 7) {
                my $what = "the writer dies $when write $n of release";
                is(allocate($bus, 'guest', @request), 'done', "$what: there is an allocation");
                fault('reset', "kill $n $when");
                is((release($bus, 'guest'))[0], 'failed', "$what: the job fails");
                is(state_of('guest'), 'failed', "$what: the allocation has failed");
                is(device($bus, $gpu)->{allocation}, 'guest', "$what: it keeps its devices");
                is((release($bus, 'guest'))[0], 'done', "$what: it can be released again");
                same_tree($before, "$what: the tree is that of the start");
                same_state($state, "$what: the ledger too") or release_all($bus);
        }
}

# ---- the daemon is killed with its job in the middle

for my $n (1 .. 6) {
        my $what = "killed in write $n of allocate";
        my ($signature, $entries) = request(@request);
        killed_in($bus, $n, $what, 'Allocate', "s$signature", 'guest', $entries);
        ok(wait_until(sub { state_of('guest') eq 'ready' }), "$what: the allocation becomes ready") or diag(state_of('guest'));
        same_tree(tree_without_identities($ready), "$what: its devices are as if nothing had happened", tree_without_identities());
        is((release($bus, 'guest'))[0], 'done', "$what: it is released");
        same_tree($before, "$what: to the tree of the start");
        same_state($state, "$what: and the ledger of the start") or release_all($bus);
}
for my $n (1 .. 7) {
        my $what = "killed in write $n of release";
        is(allocate($bus, 'guest', @request), 'done', "$what: there is an allocation");
        killed_in($bus, $n, $what, 'Release', 'st', 'guest', Node::generation($bus, 'guest'));
        ok(wait_until(sub { state_of('guest') eq 'gone' }), "$what: the allocation goes") or diag(state_of('guest'));
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: and the ledger too") or release_all($bus);
}

# ---- ends that are asked for wait for the job, a second one does not

my ($signature, $entries) = request(@request);
fault('reset', 'unkillable 3');
is($bus->call('Allocate', "s$signature", 'guest', $entries)->{error}, undef, 'SIGTERM in a job: it is begun');
ok(wait_until(sub { grep { /^3 .*PENDING/ } write_log() }), 'SIGTERM in a job: a write takes its time');
my $offset = log_since();
kill 'TERM', pid();
ok(wait_until(sub { log_since($offset) =~ /^.*\b1\b.*\bjob\b/m }), 'SIGTERM in a job: the daemon waits for it');
fault('release');
is(daemon('stop', 0), 0, 'SIGTERM in a job: and ends') or fault('reset');
is(scalar(grep { / -> OK$/ } write_log()), 6, 'SIGTERM in a job: the daemon ends when all writes are done');
same_tree(tree_without_identities($ready), 'SIGTERM in a job: and the devices are ready', tree_without_identities());
fault('reset');
is(daemon('start'), 0, 'SIGTERM in a job: the next daemon');
is(state_of('guest'), 'ready', 'SIGTERM in a job: finds it ready');
nothing_written('SIGTERM in a job: and has nothing to do');
$bus->forget_signals(); # those of the daemon before, whose jobs had the same numbers
is(release($bus, 'guest'), 'done', 'SIGTERM in a job: it is released');
same_tree($before, 'the tree is that of the start');
same_state($state, 'and the ledger');

done_testing();
