#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The first thing that a reader of the README sees: what its commands print on the simulated HGX node, and the picture of the node after them.
# "make golden" writes both anew.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd qw(abs_path);
use Test::More;

use Node;
use Pages;

node('hgx-h100', root => 1);

my $SOURCE  = abs_path("$FindBin::Bin/../..");
my $README  = "$SOURCE/README.md";
my $PICTURE = 'man/hgx-h100.svg';
local $ENV{COLUMNS} = 120;

sub printed {
        my ($command) = @_;
        my ($status, $out, $err) = ctl(split ' ', $command =~ s/^(?:sudo )?passthroughctl ?//r);
        is($status, 0, $command) or diag($err);
        return $out;
}

# Each pci.ids spells the names of devices in its own way.
sub nameless { my ($svg) = @_; return $svg =~ s/(?<=<title>)([0-9a-f:.]+) [^,<]+/$1/gr =~ s/(<text [^>]*font-size="11" fill="#1f2328">)[^<]+/$1/gr }

# GUIDs are random, and the steps of different devices come in any order.
sub steady {
        my ($text) = @_;
        $text =~ s/guid=\S+/guid=/g;
        my @steps = sort $text =~ m{^\[\d+/\d+\] (.*)$}mg;
        return $text =~ s{^\[\d+/\d+\] \K.*$}{shift @steps}gemr;
}

my ($transcript) = map { $_->[1] } grep { $_->[0] eq 'console' } readme_blocks($README);
ok($transcript, 'the README has a transcript') or BAIL_OUT('no transcript');
my $found = join "\n", map { "\$ $_->{command}\n" . printed($_->{command}) } commands($transcript);
my $picture = printed('passthroughctl topology --svg -') =~ s/(?<=>Topology of )[^<]+/hgx-h100/gr;

if ($ENV{UPDATE_GOLDEN}) {
        (my $text = slurp($README)) =~ s/\Q$transcript\E/$found/;
        spew($README, $text);
        spew("$SOURCE/$PICTURE", $picture);
        $transcript = $found;
}
is(steady($found), steady($transcript), 'the commands print what the README shows');
is(nameless($picture), nameless(slurp("$SOURCE/$PICTURE")), $PICTURE);
like(slurp($README), qr/\]\(\Q$PICTURE\E\)/, 'the README shows the picture');

done_testing();
