#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What bash offers for passthroughctl on a node.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

plan skip_all => 'no bash' if !-x '/bin/bash';
node('paper-testbed');

# What is offered for the last of the words, sorted.
sub offered {
        my (@words) = @_;
        open my $in, '-|', 'bash', '-c', <<'END', 'bash', "$FindBin::Bin/../../conf/passthroughctl.bash", @words or die "bash: $!";
. "$1"
shift
compopt() { echo "[$*]"; } # outside of readline it would only complain
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_passthroughctl
printf '%s\n' "${COMPREPLY[@]}"
END
        chomp(my @all = grep { /\S/ } <$in>);
        close $in;
        return join ' ', sort @all;
}

my @help  = qx(passthroughctl --help);
my @verbs = sort map { /^  ([a-z-]+) / ? $1 : () } @help[0 .. (grep { $help[$_] =~ /^Options/ } 0 .. $#help)[0]];
my @wide = grep { length > length("\n") + 80 } @help, map { qx(passthroughctl $_ --help) } @verbs;
is("@wide", '', 'what it takes them from fits 80 columns');
is(offered('passthroughctl', ''), "@verbs", 'the verbs');
is(offered('passthroughctl', 'rel'), 'release reload', 'those that begin so') if !grep { /^rel(?!ease|oad)/ } @verbs;
like(offered('passthroughctl', '-'), qr/--help.*--host.*--json/, 'global options');
is(offered('passthroughctl', 'plan', '--p'), '--page-size --paths --proximity', 'options of a verb');
is(offered('passthroughctl', '--json', 'plan', '--p'), '--page-size --paths --proximity', 'after another option');
is(offered('passthroughctl', 'snapshot', '--'), '--help --host --identities --node --version', 'not those that a verb refuses');
is(offered('passthroughctl', 'plan', '--numa', ''), 'legacy preferred required single socket', 'values of an option');
is(offered('passthroughctl', 'plan', 'g'), '[-o nospace] gpu=', 'a pool, to be continued');
is(offered('passthroughctl', 'explain', '0000:82:00.0'), '0000:82:00.0', 'a device');
is(offered('passthroughctl', 'list', 'i'), 'ib-vf', 'a pool');
is(offered('passthroughctl', 'sriov', ''), '0000:02:00.0 0000:02:00.1 0000:83:00.0', 'the PFs');
is(offered('passthroughctl', 'release', ''), '', 'no allocation yet');
my $bus = Bus->new->listen;
is(allocate($bus, 'guest', gpu => 1), 'done', 'an allocation');
is(offered('passthroughctl', 'release', 'g'), 'guest', 'is offered to release');
is(allocate($bus, 'whole', 'ib-vf' => 2, cpus => 2, memory => 2**30), 'done', 'an allocation with CPUs');
is(offered('passthroughctl', 'xml', 'whole', '--device', ''), 'ib-vf0 ib-vf1', 'the slots of an allocation');
is(offered('passthroughctl', '-H', 'release', 'gu'), '', 'the value of an option is not a verb');

# Files: those and directories, as what they are.
chdir "$ENV{NODE_TMP}" or die $!;
mkdir $_ or die "$_: $!" for 'files', 'files/a dir', 'files/x.tree';
chdir 'files' or die $!;
is(offered('passthroughctl', 'list', '--node', ''), '[-o filenames] a dir x.tree', 'directories where there is no recorded node');
spew($_, '') for 'my node.tree', 'my.conf';
is(offered('passthroughctl', 'list', '--node', ''), '[-o filenames] a dir my node.tree x.tree', 'recorded nodes beside them');
is(offered('passthroughctl', 'list', '--config', 'my'), '[-o filenames] my node.tree my.conf', 'any file as a configuration');
chdir '/';
done_testing();
