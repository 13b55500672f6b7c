# SPDX-License-Identifier: GPL-2.0-or-later
# The examples of the README and the manual pages: their kinds, their texts, and their commands with the expected output.
package Pages;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(readme_blocks page_blocks commands);

sub slurp {
        my ($path) = @_;
        open my $f, '<', $path or die "$path: $!";
        local $/ = undef;
        return scalar <$f>;
}

# readme_blocks(FILE): returns [KIND, TEXT] of each fenced block. KIND: sh for commands, ini for configuration, text for other text.
sub readme_blocks {
        my ($file) = @_;
        my $text = slurp($file);
        my @blocks;
        push @blocks, [$1, $2] while $text =~ /^```(\w+)\n(.*?)^```$/gms;
        return @blocks;
}

# Returns a line of literal text as roff prints it.
sub plain { my ($line) = @_; return $line =~ s/\\e/\\/gr =~ s/\\&//gr =~ s/\\([-.])/$1/gr }

sub kind_of {
        my ($text) = @_;
        return 'json' if $text =~ /^[{[]\s*(?:"|[{}]|$)/;
        return 'ini'  if $text =~ /^\[\w/m && $text !~ /^[\$#] \w/m;
        return 'sh'   if $text =~ /^[\$#] \w/m;
        return 'unknown';
}

# page_blocks(FILE): returns [KIND, TEXT] of each literal block in EXAMPLES, with roff comments, which may be for the test.
sub page_blocks {
        my ($file) = @_;
        my ($examples) = slurp($file) =~ /^\.Sh EXAMPLES\n(.*?)(?=^\.Sh )/ms or return;
        my @blocks;
        while ($examples =~ /^\.Bd -literal[^\n]*\n(.*?)^\.Ed$/gms) {
                my $text = join '', map { plain("$_\n") } split /\n/, $1;
                push @blocks, [kind_of($text =~ s/^\.\\".*\n//gmr), $text];
        }
        return @blocks;
}

# commands(TEXT): returns the commands of a block: { command, root, shown => [lines] }, with test => WHAT from a comment before. "$ " or "# " begins a
# command, which continues after a backslash or a bar. Other lines are its output.
sub commands {
        my ($text) = @_;
        my ($note, @commands, $open) = ('');
        for my $line (split /\n/, $text) {
                if ($line =~ /^\.\\" test: (.*)$/) {
                        $note = $1;
                } elsif ($open) {
                        $commands[-1]{command} .= "\n$line";
                        $open = $line =~ /[\\|]$/;
                } elsif ($line =~ /^([\$#]) (.*)$/) {
                        push @commands, { command => $2, root => $1 eq '#', shown => [], test => $note };
                        $note = '';
                        $open = $line =~ /[\\|]$/;
                } elsif (@commands && $line !~ /^\.\\"/) {
                        push @{ $commands[-1]{shown} }, $line;
                }
        }
        return @commands;
}

1;
