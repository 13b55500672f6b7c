# SPDX-License-Identifier: GPL-2.0-or-later
# The harness of prove for all tests: a check that could not run has failed. A test that skips a check, or all of them, counts as failed and
# the summary has its reason, which says what is missing. Only a reason that begins with "optional: " is accepted.
# The tests that took longest in the last run start first, so that none is alone in the end. TEST_TIMES is the file of these times.
# Each test runs on one CPU, that with the fewest tests. Its programs wait for each other most of the time: to wake one on another CPU costs
# more than what it does, a fifth of all CPU time on two CPUs. With TEST_ON_ALL_CPUS=1 they run at the same time, as "make check-long" has it.
package NoSkips;

use strict;
use warnings;

use parent 'TAP::Harness';

sub new {
        my ($class, @arguments) = @_;
        my $self = $class->SUPER::new(@arguments);
        $self->callback(made_parser => \&refuse_skips);
        $self->{on} = { map { $_ => 0 } cpus() };
        $self->callback(parser_args => sub { $self->choose_cpu(@_) });
        $self->callback(after_test => sub { $self->after(@_) });
        return $self;
}

# Those that this process may use; none when there is a single one.
sub cpus {
        return if $ENV{TEST_ON_ALL_CPUS};
        open my $status, '<', '/proc/self/status' or return;
        my ($list) = map { /^Cpus_allowed_list:\s*(\S+)/ ? $1 : () } <$status>;
        my @cpus = map { /^(\d+)-(\d+)$/ ? ($1 .. $2) : $_ } split /,/, $list // '';
        return @cpus > 1 ? @cpus : ();
}

sub choose_cpu {
        my ($self, $args, $job) = @_;
        my ($cpu) = sort { $self->{on}{$a} <=> $self->{on}{$b} || $a <=> $b } keys %{ $self->{on} };
        return if !defined $cpu || !$args->{exec};
        $args->{exec} = ['taskset', '--cpu-list', $cpu, @{ $args->{exec} }];
        $self->{on}{$cpu}++;
        $self->{cpu}{ $job->[0] } = $cpu;
        return;
}

sub after {
        my ($self, $job, $parser) = @_;
        my $cpu = delete $self->{cpu}{ $job->[0] };
        $self->{on}{$cpu}-- if defined $cpu;
        $self->{took}{ $job->[0] } = $parser->end_time - $parser->start_time;
        return;
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
