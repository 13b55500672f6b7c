#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A step that takes long shows on a terminal that time passes, and until when. Ctrl-C says what continues.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

plan skip_all => 'no script' if !-x '/usr/bin/script';
node('paper-testbed');

my $bus  = Bus->new->listen;
my $file = "$ENV{NODE_TMP}/terminal";
local $ENV{TERM} = 'xterm';

# Starts passthroughctl on a terminal while its second write hangs.
sub start_hanging {
        my ($command) = @_;
        fault('reset', 'hang 2');
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDIN,  '<', '/dev/null' or die $!;
                open STDOUT, '>', '/dev/null' or die $!;
                exec 'script', '-qefc', $command, $file or die $!;
        }
        ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), "$command: a step hangs");
        return $pid;
}

sub seen { return slurp_existing($file) // '' }

my $TIME = qr/\r\e\[K      (\d+) s, until (\d\d:\d\d:\d\d) at most/;

my $pid = start_hanging('exec passthroughctl allocate guest gpu=1');
ok(wait_until(sub { seen() =~ /$TIME.*$TIME/s }), 'time passes');
my @shown = seen() =~ /$TIME/g;
is($shown[0], 2, 'which is said after two seconds');
is($shown[3], $shown[1], 'the end stays the same');
fault('release');
waitpid $pid, 0;
is($?, 0, 'the job ends well');
like(seen(), qr/\r\e\[K\[3\/\d+\] .*\n.*\bguest\b/s, 'the next step replaces the line');
is(release($bus, 'guest'), 'done', 'released');

# ---- Ctrl-C

unlink $file;
$pid = start_hanging('exec passthroughctl allocate guest gpu=1');
# Tests that run beside this one have such a process too, with a node of their own.
my $is_ours = sub {
        my ($process) = @_;
        return (slurp_existing("$process/cmdline") // '') =~ /^passthroughctl\0allocate\0/ && (slurp_existing("$process/environ") // '') =~ /(?:^|\0)NODE_TMP=\Q$ENV{NODE_TMP}\E\0/;
};
my ($client) = map { m{(\d+)$} } grep { $is_ours->($_) } glob '/proc/[0-9]*';
kill 'INT', $client;
waitpid $pid, 0;
is($? >> 8, 130, 'interrupted');
my ($said) = seen() =~ /^passthroughctl: (.*)/m;
like($said, names('guest', 'monitor', 'show'), 'it says what goes on, and how to follow it');
like($said, qr/\b\d\d:\d\d:\d\d\b/, 'and until when');
fault('release');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'it does');

done_testing();
