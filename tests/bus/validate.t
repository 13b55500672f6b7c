#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# While libvirt validates the document of a template the daemon serves others; a process that dies or hangs costs the answer.
use strict;
use warnings;

use Cwd qw(abs_path);
use File::Copy qw(cp);
use File::Path qw(remove_tree);
use Fcntl qw(:flock);
use File::Temp qw(tempdir);
use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

# As src/bus/answers.h has it.
use constant WAITING_OF_ONE => 16;

# The programs as they were built, but for the one that validates: it does what the file "mode" says. The daemon finds it beside itself.
if (!$ENV{NODE_ROOT}) {
        my $build = abs_path($ENV{BUILD} // "$FindBin::Bin/../../build");
        my $dir   = $ENV{BUILD} = tempdir('validate.XXXXXX', TMPDIR => 1);
        symlink "$build/$_", "$dir/$_" or die "$dir/$_: $!" for qw(tests passthroughctl passthroughd-holders passthroughd-root passthroughd-endpoints);
        cp("$build/passthroughd", "$dir/passthroughd") or die "$dir/passthroughd: $!";
        chmod 0755, "$dir/passthroughd";
        spew("$dir/lock", '');
        spew("$dir/passthroughd-libvirt", <<"END");
#!/bin/sh
read mode <$dir/mode
case \$mode in
wait) flock -s $dir/lock true ;;
hang) exec sleep 1000 ;;
die) kill -KILL \$\$ ;;
fail) exit 77 ;;
nonsense) echo nonsense; exit 1 ;;
esac
exec $build/passthroughd-libvirt
END
}
my $dir     = $ENV{BUILD};
my $program = "$dir/passthroughd-libvirt";
node('paper-testbed');
END { remove_tree($dir) if $ENV{NODE_ROOT} }

sub mode { spew("$dir/mode", "$_[0]\n"); return }
chmod 0755, $program;
mode('real');

my $bus      = Bus->new->listen;
my $template = "<domain type='kvm'>\n<devices>\n<input type='tablet' bus='usb'/>\n%s</devices>\n</domain>\n";
my $good     = sprintf $template, '';
my $bad      = sprintf $template, "<disk type='file'>\n<source file='/x'/>\n</disk>\n";
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');

sub document { my ($text) = @_; return $bus->call('GetDomainXML', 'sa{sv}', 'guest', [['template', ['s', $text]]]) }
sub post     { my ($from, $text) = @_; return $from->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'GetDomainXML', 'sa{sv}', 'guest', [['template', ['s', $text]]]) }

my $document = document($good)->{body}[0];
like($document, qr/<input type="tablet"/, 'a document of a template');
is_error(document($bad), 'InvalidTemplate', ['invalid-template', 'disk', 'line 4'], 'a disk without its target');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'guest', [(['template', ['s', $good]]) x 2]), 'InvalidRequest', ['invalid-request', 'template'], 'two templates');

# ---- it takes its time

open my $lock, '<', "$dir/lock" or die "$dir/lock: $!";
flock $lock, LOCK_EX or die "$dir/lock: $!";
mode('wait');
my $other = Bus->new;
my @calls = map { post($other, $good) } 1 .. WAITING_OF_ONE + 4;
is_error($other->reply($calls[$_]), 'LimitExceeded', ['limit', 'replies'], 'one caller has one more than may wait') for WAITING_OF_ONE .. $#calls;
my $mine = post($bus, $bad);
is($bus->ping()->{error}, undef, 'while libvirt validates, the daemon answers');
ok(plan_ok($bus, 'ib-vf' => 1), 'and plans');
is($bus->call('GetDomainXML', 'sa{sv}', 'guest', [])->{error}, undef, 'and prints the document that needs no validation');
ok(wait_until(sub { daemon_children() == 3 }), 'with two processes for the first caller, one for the second');
mode('real');
flock $lock, LOCK_UN or die "$dir/lock: $!";
is($other->reply($calls[$_])->{body}[0], $document, 'the documents come in the end') for 0 .. WAITING_OF_ONE - 1;
is_error($bus->reply($mine), 'InvalidTemplate', ['invalid-template', 'line 4'], 'and the refusal of another caller');
ok(wait_until(sub { !daemon_children() }), 'no process is left');

# ---- it does not validate

for my $mode (qw(die fail nonsense)) {
        mode($mode);
        is_error(document($good), 'NotValidated', ['not-validated', 'passthroughd-libvirt'], "$mode: no document");
        is($bus->call('GetDomainXML', 'sa{sv}', 'guest', [])->{error}, undef, "$mode: without a template there is one");
}
mode('real');
rename $program, "$program.away" or die $!;
is_error(document($good), 'NotValidated', ['not-validated', 'passthroughd-libvirt', 'No such file'], 'not installed: no document');
rename "$program.away", $program or die $!;
is(document($good)->{body}[0], $document, 'installed again: the document');

mode('hang');
@calls = post($other, $good);
ok(wait_until(sub { daemon_children('sleep') }), 'it hangs');
mode('real');
push @calls, post($other, $good);
is_error($other->reply($calls[0]), 'NotValidated', ['not-validated', 'passthroughd-libvirt'], 'it hangs: no document');
is($other->reply($calls[1])->{body}[0], $document, 'it hangs no more: the document');
ok(wait_until(sub { !daemon_children() }), 'no process is left');

# ---- the daemon ends meanwhile

flock $lock, LOCK_EX or die "$dir/lock: $!";
mode('wait');
post($other, $good);
my $child;
ok(wait_until(sub { ($child) = daemon_children('passthroughd-li') }), 'libvirt validates');
is(daemon('stop'), 0, 'the daemon stops');
ok(!kill(0, $child), 'the process has ended with it');

done_testing();
