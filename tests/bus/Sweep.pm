# SPDX-License-Identifier: GPL-2.0-or-later
# Lets every write of an operation fail once in each way. Afterwards everything must be as before.
package Sweep;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

use Node;

our @EXPORT = qw(sweep);

use constant WRITES_MAX => 100;

# The ways in which write N fails. In the last one it reports success.
my %FAILURES = (
        'fails with EIO'           => sub { "fail $_[0] EIO" },
        'fails with ENODEV'        => sub { "fail $_[0] ENODEV" },
        'fails after its effect'   => sub { "fail-after $_[0] EIO" },
        'silently has no effect'   => sub { "silent $_[0]" },
);

# Runs a command whose job fails: checks the result, the sentence, and that everything is as before.
sub failed_and_undone {
        my ($bus, $what, $verb, $before, @command) = @_;
        my ($status, undef, $err) = ctl(@command);
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' });
        is($signals[-1]{body}[2], $status == 0 ? 'done' : 'failed', "$what: result");
        return 0 if $status == 0;
        is($status, 1, "$what: exit status");
        like($err, qr/\Apassthroughctl: [^\n]+\.\n\z/, "$what: a sentence");
        same_tree($before->{tree}, "$what: the tree is as before");
        same_state($before->{state}, "$what: the ledger is as before");
        return 1;
}

sub quarantined { my ($bus) = @_; return map { $_->{address} } @{ describe($bus)->{quarantine} } }

# sweep(NAME, ARGUMENTS OF ALLOCATE): allocates and releases with every failure of every write.
sub sweep {
        my ($name, @request) = @_;
        my $bus    = Bus->new->listen;
        my $start  = { tree => tree(), state => snapshot() };
        my $others = $bus->call('ListAllocations')->{body}[0];
        my $tested = 0;

        for my $failure (sort keys %FAILURES) {
                my $clean = 0;
                for my $n (1 .. WRITES_MAX) {
                        fault('reset', $FAILURES{$failure}->($n));
                        last if $clean = !failed_and_undone($bus, "allocate $name, write $n $failure", 'allocate', $start, 'allocate', $name, @request);
                        is_deeply($bus->call('ListAllocations')->{body}[0], $others, "... and nothing else is allocated") or return;
                        is((ctl('plan', @request))[0], 0, '... and it can be planned again');
                        $tested++;
                }
                ok($clean, "allocate $name succeeds when no write $failure");

                my $ready = { tree => tree(), state => snapshot() };
                $clean = 0;
                for my $n (1 .. WRITES_MAX) {
                        fault('reset', $FAILURES{$failure}->($n));
                        my $what = "release $name, write $n $failure";
                        if (failed_and_undone($bus, $what, 'release', $ready, 'release', $name)) {
                                is(allocation_state($bus, $name), 'ready', '... and the allocation is ready as before');
                        } else {
                                last if $clean = !quarantined($bus);
                                fault('reset');
                                is((ctl('quarantine', '--clear', $_))[0], 0, "$what: $_ was not reset, and is cleared") for quarantined($bus);
                                same_tree($start->{tree}, "$what: the tree is that of the very start");
                                is((ctl('allocate', $name, @request))[0], 0, "$what: it can be allocated again");
                                $ready = { tree => tree(), state => snapshot() };
                                $bus->forget_signals();
                        }
                        $tested++;
                }
                ok($clean, "release $name succeeds when no write $failure");
                fault('reset');
                same_tree($start->{tree}, "$name: after it the tree is that of the very start");
                same_state($start->{state}, "$name: and so is the ledger") or return;
        }
        cmp_ok($tested, '>', 2 * keys %FAILURES, "$name: $tested failures were tried");
        return;
}

1;
