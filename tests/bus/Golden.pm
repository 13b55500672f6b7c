# SPDX-License-Identifier: GPL-2.0-or-later
# Collects the sentences that a test receives in one file of tests/golden. Tests check facts; a person reviews the sentences when they change. "make
# golden" writes the files.
package Golden;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use Test::More;

use Node;

our @EXPORT = qw(record is_golden);

my $DIR = abs_path(dirname(__FILE__) . '/../golden');
my (@sentences, %seen);

# Notes a sentence and its subject, each pair once. Removes the directories of this run.
sub record {
        my ($about, $text) = @_;
        my $entry = "$about\n        " . (($text // '(nothing)') =~ s/\Q$ENV{NODE_TMP}\E/TMP/gr =~ s/\n(?=.)/\n        /gr =~ s/\n+\z//r) . "\n";
        push @sentences, $entry if !$seen{$entry}++;
        return;
}

sub is_golden {
        my ($name) = @_;
        my $found = join '', @sentences;
        spew("$DIR/$name", $found) if $ENV{UPDATE_GOLDEN};
        return is($found, slurp("$DIR/$name"), "the sentences of tests/golden/$name");
}

1;
