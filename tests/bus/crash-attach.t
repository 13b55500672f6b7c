#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any instant of an attach, a detach, or a lease, the daemon completes or undoes it after its next start.
# SWEEP_EVERY=1 tries every instant, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Crash;
use Node;

node('../long/machine');

my @request = (gpu => 1, cpus => 2, memory => 2**30);
my @further = (ethernet => 1, 'vf-attributes' => [['ethernet', 'trust=on,vlan=100']]);
my $pf      = '0000:11:00.0';
my $bus     = Bus->new->listen;

spew("$ENV{NODE_TMP}/daemon.preload", slurp("$ENV{NODE_TMP}/daemon.preload") =~ s/\n/:$ENV{BUILD}\/tests\/dying.so\n/r);
restart();
is(allocate($bus, 'bystander', gpu => 1, infiniband => 1, cpus => 2, memory => 2**30), 'done', 'there is another allocation');
memorize($bus, 'bystander', $pf);

my $job;

sub call {
        my (@call) = @_;
        $bus->forget_signals();
        my $reply = $bus->call(@call);
        $job = $reply->{error} ? undef : $reply->{body}[-1];
        return sub {
                my ($killed) = @_;
                return 1 if $killed;
                diag("$reply->{error}: $reply->{body}[0]") if $reply->{error};
                return $bus->result($job // 'none');
        };
}

sub job_is_over { return !$job || $bus->ping()->{error} || grep { $_->{member} eq 'JobRemoved' } @{ $bus->{signals} } }

sub begin_attach {
        my ($signature, $entries) = request(@further);
        return call('Attach', "st$signature", 'guest', Node::generation($bus, 'guest'), $entries);
}
sub begin_detach { return call('Detach', 'sts', 'guest', Node::generation($bus, 'guest'), 'ethernet0') }

sub begin_lease {
        my ($signature, $entries) = request(@request, hold => 3600);
        return call('Allocate', "s$signature", 'guest', $entries);
}
sub begin_prepare { return call('Prepare', 'st', 'guest', Node::generation($bus, 'guest')) }

sub leased    { begin_lease()->(1) if !allocation($bus, 'guest'); return is(allocation_state($bus, 'guest'), 'reserved', 'it is reserved') }
sub allocated { is(allocate($bus, 'guest', @request), 'done', 'there is an allocation') if !allocation($bus, 'guest'); return }
sub attached  { allocated(); is(begin_attach()->(0), 'done', 'it has a further device'); return }

my $start = tree();
allocated();
my $small = tree();
attached();
my $large = tree();
home_again($bus, 'at the start', 'guest');

my %one_of_both = (over => \&job_is_over, may => { ready => [$small, $large] });

crash_points($bus, { %one_of_both, name => 'attach', prepare => \&allocated, begin => \&begin_attach });
crash_points($bus, { %one_of_both, name => 'detach', prepare => \&attached,  begin => \&begin_detach });

crash_points($bus, { over => \&job_is_over, may => { ready => [$small], gone => [$start], reserved => [$start] }, writer_may => { failed => 1 },
                name => 'prepare', prepare => \&leased, begin => \&begin_prepare });

diag(sprintf '%d instants were tried, all converged: %s', tried(), join ', ', map { "$SEEN{$_} $_" } sort keys %SEEN) if Test::More->builder->is_passing;
done_testing();
