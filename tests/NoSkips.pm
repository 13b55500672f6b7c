# SPDX-License-Identifier: GPL-2.0-or-later
# The harness of prove for all tests: a check that could not run has failed. A test that skips a check, or all of them, counts as failed and
# the summary has its reason, which says what is missing. Only a reason that begins with "optional: " is accepted.
# The tests that took longest in the last run start first, so that none is alone in the end. TEST_TIMES is the file of these times.
package NoSkips;

use strict;
use warnings;

use parent 'TAP::Harness';

sub new {
        my ($class, @arguments) = @_;
        my $self = $class->SUPER::new(@arguments);
        $self->callback(made_parser => \&refuse_skips);
        $self->callback(after_test => sub { my ($job, $parser) = @_; $self->{took}{ $job->[0] } = $parser->end_time - $parser->start_time });
        return $self;
}

# Name to seconds. Without a file nothing is known.
sub read_times {
        my ($file) = @_;
        open my $in, '<', $file or return {};
        return { map { /^(\S+) (.+)$/ ? ($2 => $1) : () } <$in> };
}

sub write_times {
        my ($file, $times) = @_;
        open my $out, '>', "$file.$$" or return;
        printf {$out} "%.1f %s\n", $times->{$_}, $_ for sort keys %$times;
        return close $out && rename "$file.$$", $file;
}

# A test that is not known may take long.
sub runtests {
        my ($self, @tests) = @_;
        my $file = delete $ENV{TEST_TIMES} or return $self->SUPER::runtests(@tests);
        my $known = read_times($file);
        my $seconds = sub { my ($test) = @_; return $known->{ ref $test ? $test->[0] : $test } // 9**9 };
        my $aggregate = $self->SUPER::runtests(sort { $seconds->($b) <=> $seconds->($a) } @tests);
        write_times($file, { %$known, %{ $self->{took} // {} } });
        return $aggregate;
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
