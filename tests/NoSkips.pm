# SPDX-License-Identifier: GPL-2.0-or-later
# The harness of prove for all tests: a check that could not run has failed. A test that skips a check, or all of them, counts as failed and
# the summary has its reason, which says what is missing. Only a reason that begins with "optional: " is accepted.
package NoSkips;

use strict;
use warnings;

use parent 'TAP::Harness';

sub new {
        my ($class, @arguments) = @_;
        my $self = $class->SUPER::new(@arguments);
        $self->callback(made_parser => \&refuse_skips);
        return $self;
}

# The results of a test program that may say SKIP: its plan and its checks.
sub refuse_skips {
        my ($parser) = @_;
        for my $kind (qw(plan test)) {
                $parser->callback($kind => sub {
                        my ($result) = @_;
                        my $reason = ($result->directive // '') eq 'SKIP' ? $result->explanation : return;
                        $parser->_add_error("skipped: $reason") if $reason !~ /^optional: /;
                });
        }
        return;
}

1;
