#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The simulated kernel answers a script of writes, valid and invalid, as the real one did in the lab (tests/lab/t/kernel.t). The file
# "differences" has the permitted exceptions.
use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $build = $ENV{BUILD} // 'build';
my $tests = "$FindBin::Bin/..";
my $root  = tempdir(CLEANUP => 1);
plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';

sub slurp {
        my ($path) = @_;
        open my $file, '<', $path or die "$path: $!\n";
        local $/ = undef;
        return <$file>;
}

# The comment of a paragraph is the reason for its rule. A paragraph without a comment has the reason of the one before.
sub differences {
        my ($why, @rules) = ('');
        for my $paragraph (split /\n\n+/, slurp("$FindBin::Bin/differences")) {
                my $comment = join ' ', $paragraph =~ /^# (.*)$/mg;
                $why = $comment if $comment ne '';
                my %rule = $paragraph =~ /^(kernel|nodesim) +(.*)$/mg or next;
                push @rules, { why => $why, uses => 0, map { $_ => $rule{$_} eq 'none' ? undef : qr/\A$rule{$_}\z/ } qw(kernel nodesim) };
        }
        return @rules;
}

# Returns the steps in order, each with its result: [what, lines].
sub steps {
        my ($transcript) = @_;
        my @steps;
        for my $line (split /\n/, $transcript) {
                next if $line eq '';
                push @steps, [$line =~ s/ ->.*//r] if $line !~ /^ /;
                push @{ $steps[-1] }, $line;
        }
        return @steps;
}

# Returns the lines that only the first list has.
sub without {
        my ($lines, $others) = @_;
        my %count;
        $count{$_}++ for @$others;
        return grep { !$count{$_}-- } map { $count{$_} //= 0; $_ } @$lines;
}

# Removes the first line that matches the expression.
sub take {
        my ($lines, $expression) = @_;
        return 1 if !defined $expression;
        for my $i (0 .. $#$lines) {
                next if $lines->[$i] !~ $expression;
                splice @$lines, $i, 1;
                return 1;
        }
        return 0;
}

# Returns the differences of one step without the permitted ones.
sub compare {
        my ($kernel, $nodesim, $rules) = @_;
        my @kernel  = without($kernel,  $nodesim);
        my @nodesim = without($nodesim, $kernel);
        for my $rule (@$rules) {
                while (grep { $_ =~ $rule->{kernel} } @kernel) {
                        last if defined $rule->{nodesim} && !grep { $_ =~ $rule->{nodesim} } @nodesim;
                        take(\@kernel, $rule->{kernel}) && take(\@nodesim, $rule->{nodesim});
                        $rule->{uses}++;
                }
        }
        return ((map { "kernel:  $_" } @kernel), (map { "nodesim: $_" } @nodesim));
}

my @users = $> == 0 ? '--allow-other' : ();
system("$build/tests/nodesim", @users, "$tests/nodes/lab.tree", $root) == 0 or BAIL_OUT('no simulated node');
my $before     = slurp("$root/.nodesim/tree");
my $transcript = do {
        open my $out, '-|', "$tests/lab/t/sequence", $root or die "sequence: $!\n";
        local $/ = undef;
        <$out>;
};
my $after = slurp("$root/.nodesim/tree");
END { system "fusermount3 -u $root 2>/dev/null || umount $root" if $root && -e "$root/sys" }

my $expected = slurp("$tests/lab/t/transcript");
SKIP: {
        last SKIP if $> == 0;
        $expected =~ s/\n# as another user\n.*//s;
        skip 'needs root: an ordinary user can let no other user in', 1;
}
my @kernel  = steps($expected);
my @nodesim = steps($transcript);
my @rules   = differences();
is_deeply([map { $_->[0] } @nodesim], [map { $_->[0] } @kernel], 'the same is done');

my $section = '';
my %wrong;
for my $i (0 .. $#kernel) {
        $section = $kernel[$i][0] =~ s/^# //r if $kernel[$i][0] =~ /^# /;
        my @different = compare($kernel[$i], $nodesim[$i] // [], \@rules);
        push @{ $wrong{$section} }, @different ? "$kernel[$i][0]\n" . join('', map { "    $_\n" } @different) : ();
}
is(join('', @{ $wrong{$_} }), '', $_) for sort keys %wrong;
cmp_ok($_->{uses}, '>', 0, "still different: $_->{why}") for @rules;
is($after, $before, 'and the node is as it was');

done_testing();
