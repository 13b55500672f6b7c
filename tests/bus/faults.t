#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The every-fault sweep of the main job.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Sweep;

node('paper-testbed');

sweep('guest', qw(gpu=1 ib-vf=2 --cpus 8 --memory 20G --numa required));

# D2: a device whose binding to vfio-pci fails with ENODEV goes back to the driver it had.
my $gpu    = '0000:82:00.0';
my $bus    = Bus->new->listen;
my $before = tree();
fault('reset', 'fail 3 ENODEV'); # override, unbind, probe
my ($status, undef, $err) = ctl('allocate', 'd2', 'gpu=1');
is($status, 1, 'D2: the operation fails');
like($err, names($gpu, 'vfio-pci'), 'D2: and says at what');
is(device($bus, $gpu)->{driver}, 'nvidia', 'D2: the device is back on its driver');
is(device($bus, $gpu)->{state}, 'available', 'D2: and on offer');
same_tree($before, 'D2: the tree is as before');

# The same when the probe succeeds and nothing is bound, which is how the kernel reports a driver that declines.
fault('reset', 'silent 3');
($status, undef, $err) = ctl('allocate', 'd2', 'gpu=1');
is($status, 1, 'D2: a probe that binds nothing is a failure');
like($err, names($gpu, 'vfio-pci'), 'D2: and is told as one');
same_tree($before, 'D2: the tree is as before');

done_testing();
