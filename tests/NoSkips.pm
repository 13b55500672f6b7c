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

# A check, also one of a subtest, or the plan of a test says SKIP.
sub refuse_skips {
        my ($parser) = @_;
        $parser->callback(ALL => sub {
                my ($reason) = $_[0]->raw =~ /^\s*(?:1\.\.0|(?:not )?ok\b[^#]*)\s*# *SKIP\S*\s*(.*)/i or return;
                $parser->_add_error("skipped: $reason") if $reason !~ /^optional: /;
        });
        return;
}

1;
