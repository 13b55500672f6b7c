#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Each call that changes the state directory fails during each operation, once or from then on; then the daemon is killed. What was promised is
# kept, what may be on disk is given to nobody else, and the ledger can be read. SWEEP_EVERY=1 tries every call, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(EIO ENOSPC EROFS);
use Test::More;

use Crash;
use Node;

use constant MANY => 1_000; # more calls than an operation makes

node('../long/machine');

my @errors  = (EIO, ENOSPC, EROFS);
my @request = (gpu => 1, cpus => 2, memory => 2**30);
my @further = (ethernet => 1);
my $fail_at = "$ENV{NODE_TMP}/fail-at";
my $bus     = Bus->new->listen;

preload_dying();
restart();
is(allocate($bus, 'bystander', gpu => 1, infiniband => 1, cpus => 2, memory => 2**30), 'done', 'there is another allocation');
memorize($bus, 'bystander', '0000:11:00.0', @request);
my $start = tree();

sub fail_call {
        my ($n, $error, $ever) = @_;
        spew("$fail_at.new", sprintf "%08d %d%s\n", $n, $error, $ever ? ' ever' : '');
        rename "$fail_at.new", $fail_at or die "$fail_at: $!";
        return;
}

# What the daemon says: each allocation's state, the devices it claims, and those that it promises: not those that are being attached or detached.
sub claims {
        my $of = describe($bus);
        my %claims = (read_only => $of->{read_only} // '');
        for my $a (@{ $of->{allocations} }) {
                my $may = $a->{state} =~ /^(?:ready|reserved|preparing)$/;
                $claims{allocations}{ $a->{name} } = {
                        state    => $a->{state},
                        claims   => { map { $_->{address} => 1 } @{ $a->{devices} } },
                        promises => [map { $_->{address} } grep { $may && $_->{phase} eq 'settled' } @{ $a->{devices} }],
                };
        }
        return \%claims;
}

# What is wrong with what a start made of what was left on disk.
sub broken {
        my ($before, $after) = map { my $of = $_; sub { $of->{allocations}{ $_[0] } // {} } } @_;
        my @wrong = $_[1]{read_only} ? "read-only: $_[1]{read_only}" : ();
        for my $name (sort keys %{ $_[1]{allocations} }) {
                push @wrong, map { "$_ of '$name' was claimed by nobody" } grep { !$before->($name)->{claims}{$_} } sort keys %{ $after->($name)->{claims} };
        }
        for my $name (sort keys %{ $_[0]{allocations} }) {
                push @wrong, map { "'$name' has lost $_" } grep { !$after->($name)->{claims}{$_} } @{ $before->($name)->{promises} };
        }
        return @wrong;
}

# The disk is in order again, and somebody else asks for what a refused caller did not get.
sub mended_and_asked {
        my ($what) = @_;
        unlink $fail_at;
        my ($result) = allocate($bus, 'other', @request);
        note("$what: another is told $result");
        return;
}

# The result of the call, or of its job.
sub result_of {
        my (@call) = @_;
        $bus->forget_signals();
        my $reply = $bus->call(@call);
        my $job   = $reply->{body}[-1] // '/';
        return $reply->{error} // ($job eq '/' ? 'done' : $bus->result($job) // 'no result');
}

sub on_guest { my ($method, $signature, @values) = @_; return result_of($method, "st$signature", 'guest', Node::generation($bus, 'guest'), @values) }

sub to_allocate {
        my (@further) = @_;
        my ($signature, $entries) = request(@request, @further);
        return result_of('Allocate', "s$signature", 'guest', $entries);
}

sub to_attach { return on_guest('Attach', request(@further)) }

sub leased   { is(to_allocate(hold => 3600), 'done', 'it is reserved'); return }
sub attached { allocated(); is(to_attach(), 'done', 'it has a further device'); return }
sub quarantined {
        allocated();
        fault('reset', 'fail 1 EIO');
        is(release($bus, 'guest'), 'done', 'released to quarantine');
        fault('reset');
        return;
}

my @operations = (
        { name => 'allocate', prepare => sub { }, run => \&to_allocate },
        { name => 'reserve', prepare => sub { }, run => sub { to_allocate(hold => 3600) } },
        { name => 'prepare', prepare => \&leased, run => sub { on_guest('Prepare', '') } },
        { name => 'renew', prepare => \&leased, run => sub { on_guest('Renew', 'u', 7200) } },
        { name => 'release of a lease', prepare => \&leased, run => sub { on_guest('Release', '') } },
        { name => 'release', prepare => \&allocated, run => sub { on_guest('Release', '') } },
        { name => 'release to quarantine', prepare => \&allocated, run => sub { on_guest('Release', '') }, faults => ['fail 1 EIO'] },
        { name => 'clear quarantine', prepare => \&quarantined, run => sub { result_of('ClearQuarantine', 's', describe($bus)->{quarantine}[0]{address}) },
                kept => sub { @{ describe($bus)->{quarantine} } } },
        { name => 'attach', prepare => \&allocated, run => \&to_attach },
        { name => 'detach', prepare => \&attached, run => sub { on_guest('Detach', 's', 'ethernet0') } },
);

sub run_operation {
        my ($op) = @_;
        fault('reset', @{ $op->{faults} // [] });
        return $op->{run}->();
}

# How many calls the operation makes.
sub measure {
        my ($op) = @_;
        $op->{prepare}->();
        fail_call(MANY, EIO, 0);
        is(run_operation($op), 'done', "$op->{name}, undisturbed");
        my $calls = MANY - int((split / /, slurp($fail_at))[0]);
        unlink $fail_at;
        fault('reset');
        home_again($bus, "$op->{name}, undisturbed", 'guest');
        return $calls;
}

sub try_call {
        my ($op, $n, $ever, $asked, $what) = @_;
        $op->{prepare}->();
        fail_call($n, $errors[$n % @errors], $ever);
        my $result = run_operation($op);
        mended_and_asked($what) if $asked;
        my $before = claims();
        kill_at_once($what);
        unlink $fail_at;
        fault('reset');
        is(daemon('start'), 0, "$what: the daemon starts");
        $bus->forget_signals();
        note("$what: $result");
        my @wrong = broken($before, claims());
        # A disk that fails for ever keeps the daemon from taking its intent back.
        push @wrong, 'the start did what was refused' if $op->{kept} && !$ever && $result =~ /Error/ && !$op->{kept}->();
        ok(!@wrong, "$what: nothing is broken") or diag(map { "$_\n" } @wrong);
        wait_until(sub { !grep { $_->{state} =~ /ing$/ } values %{ claims()->{allocations} } }) or fail("$what: jobs end");
        release($bus, 'other') if allocation($bus, 'other');
        home_again($bus, $what, 'guest');
        return;
}

sub kill_at_once { my ($what) = @_; return is(daemon('stop', 'KILL'), 0, "$what: the daemon is killed") }

for my $op (@operations) {
        my $calls = measure($op);
        cmp_ok($calls, '>', 0, "$op->{name}: $calls calls change the state directory");
        for my $ever (0, 1) {
                for my $asked (0, 1) {
                        for my $n (1 .. $calls) {
                                try_call($op, $n, $ever, $asked, "$op->{name}, call $n fails" . ($ever ? ' and all after it' : '') . ($asked ? ', then another asks' : '')) if chosen();
                        }
                }
        }
}

done_testing();
