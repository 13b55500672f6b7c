#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl --host runs passthroughctl on the other node: the same output, exit status and files as there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

# ssh, as far as passthroughctl uses it: every host is this one, and the words of the command are for a shell there.
my $bin = "$ENV{NODE_TMP}/bin";
mkdir $bin or die "$bin: $!";
spew("$bin/ssh", <<"END");
#!/bin/sh
while [ "\$1" != -- ]; do shift; done
[ "\$2" != unreachable ] || exit 255
echo "\$2" >>$ENV{NODE_TMP}/hosts
shift 2
cd /
exec sh -c "\$*"
END
chmod 0755, "$bin/ssh" or die $!;
$ENV{PATH} = "$bin:$ENV{PATH}";
chdir $ENV{NODE_TMP} or die $!;

sub same {
        my ($what, @words) = @_;
        my @here  = ctl(@words);
        my @there = ctl('-H', 'root@node7', @words);
        is_deeply(\@there, \@here, "$what: as on the node");
        return @there;
}

same('list', 'list');
is(slurp("$ENV{NODE_TMP}/hosts"), "root\@node7\n", 'ssh was given the host');
same('JSON', 'list', '--json');
same('a plan', qw(plan gpu=1 --cpus 2 --memory 1G));
is((same('a refusal', qw(plan gpu=99)))[0],      1, '... is its exit status');
is((same('a wrong operand', qw(show nothing)))[0], 1, '... is its exit status');
same('a word for which a shell has another use', 'show', q{a 'b' $HOME "c" \\ ; exit 0});
same('an operand that looks like an option',     'show', '--', '-x');

is((ctl('-H', 'node7', 'allocate', 'vm', 'gpu=1', '--cpus', 2, '--memory', '1G'))[0], 0, 'an allocation');
spew('template.xml', "<domain type='kvm'>\n<devices>\n<input type='tablet' bus='usb'/>\n</devices>\n</domain>\n");
like((same('a template of this machine', qw(xml vm --template template.xml)))[1], qr/type="tablet"/, '... is in the document');
is((ctl('-H', 'node7', qw(xml vm --template absent.xml)))[0], 1, 'a template that is missing');
is((ctl('-H', 'node7', qw(topology --svg here.svg)))[0],      0, 'a picture');
like(slurp('here.svg'), qr/<svg/, '... is written on this machine');
is((ctl('-H', 'node7', qw(release vm)))[0],                   0, 'a release');

is((ctl('-H', 'unreachable', 'list'))[0], 255, 'the exit status of ssh');
spew('kept.svg', 'an earlier picture');
is((ctl('-H', 'unreachable', qw(topology --svg kept.svg)))[0], 255, '... also with a file to write');
is(slurp('kept.svg'), 'an earlier picture', '... which is left as it is');
unlink "$bin/ssh" or die $!;
$ENV{PATH} = join ':', grep { !-x "$_/ssh" } split /:/, $ENV{PATH};
is((ctl('-H', 'node7', 'list'))[0], 1, 'no ssh on this machine');

done_testing();
