#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The demo of claims of Kubernetes succeeds, and shows each step.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Kube;
use Node;

kube_needed();
plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';

my $text = qx($FindBin::Bin/../demo-kubernetes 2>&1);
is($?, 0, 'it succeeds') or diag($text);
like($text, qr/^ +Pod train-2 is Pending.*^ +Pod train-0 has ended.*^ +Pod train-2 runs/ms, 'two pods run, one waits and follows');
like($text, qr/out-of-service=unhealthy:NoSchedule/, 'a taint');
like($text, qr/^ +Health that.*\b0000:23:00\.0\b/m, 'the health of a GPU');
is(($text =~ /^ +Event.* (0000:\S+):/m)[0], '0000:23:00.0', 'an event names the GPU');

done_testing();
