# SPDX-License-Identifier: GPL-2.0-or-later
# Finds facts in a sentence, so that tests of the bus and of the lab need not repeat the sentence.
package Names;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(names);

# Matches a text of which one line has all these in it, as whole words: addresses, names, numbers, or what a regular expression finds.
sub names {
        my (@nouns) = @_;
        my @each = map { ref ? $_ : (/^\w/ ? '(?<![\w])' : '') . quotemeta . (/\w$/ ? '(?![\w])' : '') } @nouns;
        my $all  = join '', map { "(?=.*$_)" } @each;
        return qr/^$all/m;
}

1;
