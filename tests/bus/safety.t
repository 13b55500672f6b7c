#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the host or somebody's guest stands on is not taken when it cannot be told, at start, or on the way back.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my ($gpu, $nic) = qw(0000:82:00.0 0000:02:00.1);
my $pools = "[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool nic]\nMatch=address=$nic\n";
configure($pools);
my $bus    = Bus->new->listen;
my $before = tree();

# Nobody can tell what is mounted.
my $mounts = slurp("$ENV{NODE_ROOT}/proc/1/mountinfo");
fault('remove proc/1/mountinfo');
fault('reset');
is((allocate($bus, 'blind', gpu => 1))[0], 'org.passthroughd1.Error.Insufficient', 'without mountinfo nothing is allocated');
nothing_written('and nothing is written');
is(device($bus, $gpu)->{verdict}, 'host-critical', 'for the sake of the host');
chomp(my $line = $mounts);
fault("set proc/1/mountinfo " . $line =~ s/\n/\\n/gr);
is((allocate($bus, 'sighted', gpu => 1))[0], 'done', 'with it there is no rescan needed');
is((release($bus, 'sighted'))[0], 'done', 'and back');
same_tree($before, 'the tree is that of the start');

# A device left without a driver by a job that died is not kept as it is.
configure("[Daemon]\nAfterRelease=keep\n$pools");
fault('reset', 'kill 2 after');
is((allocate($bus, 'cut', gpu => 1))[0], 'failed', 'the writer dies after it unbound the GPU');
fault('reset');
is((release($bus, 'cut'))[0], 'done', 'AfterRelease=keep: it is released');
is(driver_of($gpu), 'nvidia', 'and goes back to its driver, for it never was on the VFIO driver');
same_tree($before, 'the tree is that of the start again');

# After a boot the host stands on what was allocated before it.
configure($pools);
is((allocate($bus, 'port', nic => 1))[0], 'done', 'a NIC is allocated');
is(daemon('stop', 'TERM'), 0, 'the daemon stops');
other_hand_binds($nic, 'igb');
my $route = slurp("$ENV{NODE_ROOT}/proc/net/route");
(my $moved = $route) =~ s/eth0\t00000000/eth1\t00000000/;
isnt($moved, $route, 'the default route moves to it');
chomp $moved;
fault('reset');
fault("set proc/net/route " . $moved =~ s/\t/\\t/gr =~ s/\n/\\n/gr);
is(daemon('start'), 0, 'the daemon starts');
$bus->forget_signals();
is(allocation_state($bus, 'port'), 'failed', 'the allocation has failed');
nothing_written('and the NIC is left to the host');
is((release($bus, 'port'))[0], 'done', 'it can be released');
is(driver_of($nic), 'igb', 'and the NIC is where it was');

done_testing();
