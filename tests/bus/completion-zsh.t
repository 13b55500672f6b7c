#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What zsh offers for passthroughctl on a node: the words of the completion for bash.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Path qw(make_path);
use Test::More;

use Node;

my ($zsh) = grep { -x } map { "$_/zsh" } split /:/, $ENV{PATH};
plan skip_all => 'no zsh' if !$zsh;
node('paper-testbed');

# As installed.
my $share = "$ENV{NODE_TMP}/share";
my $conf  = Cwd::abs_path("$FindBin::Bin/../../conf");
make_path("$share/zsh/vendor-completions", "$share/bash-completion/completions");
spew("$share/zsh/vendor-completions/_passthroughctl", slurp("$conf/passthroughctl.zsh"));
spew("$share/bash-completion/completions/passthroughctl", slurp("$conf/passthroughctl.bash"));

# What is offered for the last of the words, sorted; what the line editor has is replaced.
sub offered {
        my (@words) = @_;
        open my $in, '-|', $zsh, '-f', '-c', <<'END', 'zsh', "$share/zsh/vendor-completions", @words or die "zsh: $!";
compadd() { while [[ $1 != -- ]]; do [[ $1 != -S ]] || suffix=" (no space)"; shift; done; shift; (($# == 0)) || print -rl -- "${@/%/$suffix}"; suffix= }
_files() { print FILES }
_hosts() { print HOSTS }
fpath=("$1" $fpath)
autoload -Uz _passthroughctl
shift
suffix=
words=("$@")
CURRENT=$#
_passthroughctl
END
        chomp(my @all = <$in>);
        close $in;
        return join ' ', sort @all;
}

is(offered('passthroughctl', 'explain', '0000:82:00.0'), '0000:82:00.0', 'a device');
like(offered('passthroughctl', ''), qr/\bcheck\b.*\blist\b.*\btopology\b/, 'the verbs');
is(offered('passthroughctl', 'relo'), 'reload', 'those that begin so');
like(offered('passthroughctl', 'check', '-'), qr/--config.*--json.*--node/, 'options of a verb');
is(offered('passthroughctl', 'list', '--pool', 'g'), 'gpu', 'a pool');
is(offered('passthroughctl', 'plan', 'g'), 'gpu= (no space)', 'a pool, to be continued');
is(offered('passthroughctl', 'list', '--node', ''), 'FILES', 'files');
is(offered('passthroughctl', 'list', '-H', ''), 'HOSTS', 'hosts');
is(allocate(Bus->new->listen, 'guest', gpu => 1), 'done', 'an allocation');
is(offered('passthroughctl', 'release', 'g'), 'guest', 'is offered to release');
done_testing();
