#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Fabric Manager hangs for more than a minute in each of its calls: nothing else waits, and all is in order after it.
# FABRIC_HANG (65) seconds for each call.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Test::More;
use Time::HiRes qw(clock_gettime sleep CLOCK_MONOTONIC);

use Bus;
use Node;

use constant PROMPT => 5; # seconds: the most for an answer, on a machine with other load. The daemon waits 20 for the manager

node('hgx-h100', configure => 1);
my $SECONDS = $ENV{FABRIC_HANG} || 65;
my $conf    = slurp("$FindBin::Bin/../nodes/hgx-h100-fabric.conf") =~ s/^VirtualFunctions=16$/VirtualFunctions=1/mr;
my $dir     = $ENV{NVFM_DIR};
mkdir $dir or die "$dir: $!";
spew("$dir/machine", "hgx-h100\n");
configure($conf =~ s/\[Fabric\]\n/[Fabric]\nManager=\/run\/nvidia-fabricmanager.sock\n/r);
my $bus = Bus->new->listen;

sub active { return (slurp_existing("$dir/active") // '') =~ s/\s+$//r }
sub now    { return clock_gettime(CLOCK_MONOTONIC) }

is(allocate($bus, 'other', rdma => 1), 'done', 'another pool: an allocation');
is(release($bus, 'other'), 'done', '... is released');
my $before = tree();

# What is asked meanwhile, and the slowest answer to it.
my %slowest;

sub timed {
        my ($what, $ask) = @_;
        my $begin  = now();
        my $answer = $ask->();
        my $took   = now() - $begin;
        $slowest{$what} = $took if $took > ($slowest{$what} // 0);
        return $answer;
}

sub all_answer {
        my ($signature, $entries) = request(rdma => 1);
        my $good = !timed('Ping', sub { $bus->ping() })->{error};
        $good = !timed('ListDevices', sub { $bus->call('ListDevices') })->{error} && $good;
        $good = !timed('Plan', sub { $bus->call('Plan', request(gpu => 1, rdma => 1, fabric => 'off')) })->{error} && $good;
        my $reply = timed('Allocate', sub { $bus->call('Allocate', "s$signature", 'other', $entries) });
        return 0 if $reply->{error};
        $good = timed('its job', sub { $bus->result($reply->{body}[1]) }) eq 'done' && $good;
        return timed('Release and its job', sub { release($bus, 'other') }) eq 'done' && $good;
}

sub allocated { is(allocate($bus, 'vm', gpu => 2), 'done', 'two GPUs') if allocation_state($bus, 'vm') eq 'gone'; return }

sub begin_allocate {
        my ($signature, $entries) = request(gpu => 2);
        return $bus->call('Allocate', "s$signature", 'vm', $entries);
}

# The call, what is there before it, what has it made, and what makes it again while the manager hangs.
my @calls = (
        ['fmConnect',                      sub { }, \&begin_allocate, sub { }],
        ['fmGetSupportedFabricPartitions', sub { }, \&begin_allocate, sub { }],
        ['fmActivateFabricPartition',      sub { }, \&begin_allocate, sub { }],
        ['fmDeactivateFabricPartition',    \&allocated, sub { return $bus->call('Release', 'st', 'vm', Node::generation($bus, 'vm')) }, sub { }],
        ['fmSetActivatedFabricPartitions', \&allocated, sub { spew("$dir/$_", '') for qw(active restarted); ctl('reload'); return {} }, sub { spew("$dir/restarted", '') }],
);
for my $case (@calls) {
        my ($call, $prepare, $make, $again) = @$case;
        $prepare->();
        %slowest = ();
        spew("$dir/log",  '');
        spew("$dir/hang", "$call\n");
        ok(!$make->()->{error}, "$call: something calls it");
        ok(wait_until(sub { slurp("$dir/log") =~ /^$call\b/m }), "$call: the manager is asked, and hangs");
        my $end    = now() + $SECONDS;
        my $rounds = 0;
        my $failed = 0;
        while (now() < $end) {
                $again->();
                $failed++ if !all_answer();
                $rounds++;
        }
        is($failed, 0, "$call: all else is done meanwhile, $rounds times");
        my ($worst) = sort { $slowest{$b} <=> $slowest{$a} } grep { !/job/ } keys %slowest;
        cmp_ok($slowest{$worst}, '<', PROMPT, "$call: ... and answered at once");
        diag("$call hung for $SECONDS s, the slowest of $rounds answers: ", join ', ', map { sprintf '%s %.0f ms', $_, 1000 * $slowest{$_} } sort keys %slowest);
        unlink "$dir/hang", "$dir/restarted";
        ok(wait_until(sub { ctl('reload'); my $state = allocation_state($bus, 'vm'); return $state eq 'gone' || ($state eq 'ready' && active() eq '5') || $state eq 'failed' }, 90), "$call: ... and then it ends");
        ok(wait_until(sub { return allocation_state($bus, 'vm') eq 'gone' || release($bus, 'vm') eq 'done' }, 90), "$call: ... and the allocation can be released");
        is(active(), '', "$call: ... and no partition is active");
        same_tree($before, "$call: ... and the node is as before");
}

done_testing();
