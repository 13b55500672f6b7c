#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A call that is made again, because its caller did not see the reply, means the same; what a caller wants to be shown.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $bus     = Bus->new->listen;
my @request = (gpu => 1, cpus => 2, memory => 2**30, token => 'one', tag => "job 7 \xc3\xa4"); # UTF-8

sub post_allocate { my ($signature, $entries) = request(@_); return $bus->call('Allocate', "s$signature", 'vm', $entries) }
sub error_of { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }
sub generation_of { return (allocation($bus, 'vm') // { generation => 0 })->{generation} }
sub hangs { return ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a write of the job hangs') }
sub release_again { my ($generation) = @_; return $bus->call('Release', 'st', 'vm', $generation) }

my $before = tree_without_identities();

# ---- while the job runs, and after it

fault('hang ' . (writes() + 1));
my $first = post_allocate(@request);
my $again = post_allocate(@request);
is_deeply($again->{body}, $first->{body}, 'again, while the job runs: the same allocation and job');
hangs();
fault('release');
is($bus->result($first->{body}[1]), 'done', 'the job ends');
fault('reset');
my $generation = generation_of();
is_deeply(post_allocate(@request)->{body}, [$first->{body}[0], '/'], 'again, after it: no job') for 1 .. 3;
is(generation_of(), $generation, 'it is the same allocation');
is((ctl('allocate', 'vm', 'gpu=1', '--token', 'one'))[0], 0, 'passthroughctl, whatever else the request has');
is(error_of(post_allocate(gpu => 1, token => 'two')), 'NameTaken', 'another token');
is(error_of(post_allocate(gpu => 1)), 'NameTaken', 'no token');
is(error_of(post_allocate(@request, owner => 4711)), 'NameTaken', 'another owner');
restart();
is_deeply(post_allocate(@request)->{body}, [$first->{body}[0], '/'], 'again, after a restart');
is(error_of(post_allocate(gpu => 1, token => 'x' x 129)), 'InvalidRequest', 'a token that is too long');
is(error_of(post_allocate(gpu => 1, tag => 'x' x 256)), 'InvalidRequest', 'a tag that is too long');
for my $text ("a\nb", "\x7f", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xae", "a\xe2\x80\x8bb", "\xd8\x9c", "\xf3\xa0\x81\x81") {
        my $shown = sprintf '%vd', $text;
        for my $key ('tag', 'token') {
                is(error_of($bus->call('Plan', request(gpu => 1, $key => $text))), 'InvalidRequest', "a $key that is not printable: $shown");
                is((ctl('plan', 'gpu=1', "--$key", $text))[0], 2, "... nor for passthroughctl");
        }
}

# ---- the tag

is(allocation($bus, 'vm')->{tag}, "job 7 \x{e4}", 'Describe has the tag');
my $tag = $bus->ask(Bus::NAME, $first->{body}[0], 'org.freedesktop.DBus.Properties', 'Get', 'ss', 'org.passthroughd1.Allocation', 'Tag')->{body}[0];
utf8::decode($tag) if !utf8::is_utf8($tag);
is($tag, "job 7 \x{e4}", 'and so has the object');
like((ctl('xml', 'vm'))[1], qr/ tag="job 7 /, 'and the metadata of the domain');
like((ctl('show', 'vm'))[1], qr/^Tag: +job 7 /m, 'and show');

# ---- a release

fault('hang ' . (writes() + 1));
my $release = release_again($generation);
is_deeply(release_again($generation)->{body}, $release->{body}, 'a release again: the same job');
is(error_of(release_again($generation - 1)), 'Stale', 'with another generation');
hangs();
fault('release');
is($bus->result($release->{body}[0]), 'done', 'the job ends');
fault('reset');
is_deeply(release_again($generation)->{body}, ['/'], 'again, when it is gone') for 1 .. 2;
is((ctl('release', 'vm', '--generation', $generation))[0], 0, 'passthroughctl');
restart();
is_deeply(release_again($generation)->{body}, ['/'], 'again, after a restart');
is(error_of(release_again($generation + 10_000_000)), 'NoSuchAllocation', 'a generation that never was');
is(error_of(release_again(0)), 'NoSuchAllocation', 'none');
is((ctl('release', 'vm'))[0], 1, 'passthroughctl without a generation: there is no such allocation');
is(tree_without_identities(), $before, 'the node is as before');

# ---- each call up to five times, at any time, with kills in between

srand($ENV{TOKEN_SEED} //= time);
diag("TOKEN_SEED=$ENV{TOKEN_SEED}");

# Repeats the call until it has a reply after the last kill; the daemon may die at each write.
sub repeated {
        my ($what, $call, $over) = @_;
        for (1 .. 1 + int rand 4) {
                if (rand() < 0.5) {
                        fault('reset', 'hang ' . (1 + int rand 6));
                        my $reply = $call->();
                        wait_until(sub { $over->() || grep { /PENDING/ } write_log() });
                        daemon('stop', 'KILL');
                        fault('release', 'reset');
                        is(daemon('start'), 0, "$what: the daemon starts again");
                        $bus->forget_signals();
                }
                my $reply = $call->();
                is($reply->{error}, undef, "$what: is answered") or diag($reply->{body}[0]);
        }
        fault('reset');
        return ok(wait_until($over), "$what: is over");
}

for my $round (1 .. $ENV{TOKEN_ROUNDS} // 6) {
        repeated("round $round, allocate", sub { post_allocate(gpu => 1, 'ib-vf' => 1, token => "round $round") }, sub { allocation_state($bus, 'vm') eq 'ready' });
        my $held = generation_of();
        repeated("round $round, release", sub { release_again($held) }, sub { allocation_state($bus, 'vm') eq 'gone' });
        is(tree_without_identities(), $before, "round $round: the node is as before");
        is_deeply(describe($bus)->{quarantine}, [], "round $round: nothing is in quarantine");
}

done_testing();
