#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The demo of a cluster, interrupted from the keyboard at several steps: nothing is left of it. That it succeeds is tested by "make check-fresh".
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Temp qw(tempdir);
use POSIX ();
use Test::More;

use Node;
use Slurm;

need_slurm();
plan skip_all => 'python3-placement is not installed' if !-x '/usr/bin/placement-api';
plan skip_all => 'no /dev/fuse'                       if !-w '/dev/fuse';

# Processes that have this directory for their temporary files: all of the demo.
sub left {
        my ($tmp) = @_;
        return grep { (eval { slurp($_) } // '') =~ /(?:^|\0)TMPDIR=\Q$tmp\E\0/ } glob '/proc/[0-9]*/environ';
}

for my $step ('two nodes start', 'Placement starts', 'Slurm starts', 'jobs run') {
        my $tmp = tempdir(CLEANUP => 1);
        chmod 0755, $tmp or die $!;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                setpgrp or POSIX::_exit(127);
                $ENV{TMPDIR} = $tmp;
                $SIG{INT} = 'DEFAULT';
                open STDOUT, '>', "$tmp.out" or die $!;
                open STDERR, '>&', \*STDOUT  or die $!;
                exec "$FindBin::Bin/../demo-cluster" or POSIX::_exit(127);
        }
        my %begun = ('two nodes start' => qr/^\[/m, 'Placement starts' => qr/Placement starts/, 'Slurm starts' => qr/Slurm starts/, 'jobs run' => qr{</domain>});
        ok(wait_until(sub { (slurp_existing("$tmp.out") // '') =~ $begun{$step} }, 600), "$step") or diag(slurp("$tmp.out"));
        kill 'INT', -$pid;
        waitpid $pid, 0;
        is($? & 127 ? 'signal ' . ($? & 127) : $? >> 8, 130, "$step: it ends");
        is_deeply([left($tmp)], [], "$step: no process is left") or diag(map { slurp(s/environ/cmdline/r) =~ tr/\0/ /r . "\n" } left($tmp));
        is_deeply([glob "$tmp/*"], [], "$step: no file is left");
        unlink "$tmp.out";
}

done_testing();
