#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What start gives to devices is given to them later too: when a PF gets its driver, when a configuration is mended.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my ($pf, $gpu) = qw(0000:14:00.0 0000:13:00.0);
my $dir  = "sys/bus/pci/devices/$pf";
my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100.conf");
my $bus  = Bus->new->listen;

sub vfs { return scalar @{ device($bus, $pf)->{virtual_functions} } }

# ---- a driver reload of a PF takes its VFs along

SKIP: {
        skip 'the kernel has no network namespace for the events of a node', 4 if $ENV{NODE_EVENTS} ne 'yes';
        configure($conf);
        my ($driver, $n) = (driver_of($pf), vfs());
        ok($n > 0, 'the PF has VFs');
        fault('reset', "write $dir/sriov_numvfs 0", "write $dir/driver/unbind $pf", "write sys/bus/pci/drivers/$driver/bind $pf");
        ok(wait_until(sub { grep { m{/sriov_numvfs \Q$n\E -> OK} } write_log() }), 'they are made anew after its driver was loaded anew');
        ok(wait_until(sub { vfs() == $n }), 'and it has them again');
        is(driver_of($pf), $driver, 'on the same driver');
}

# ---- a PF that a write hangs on stays out of circulation, whatever is asked

configure("[Daemon]\nJobTimeoutSec=4\n$conf");
my $n = vfs();
fault("write $dir/sriov_numvfs 0");
ok(!$bus->call('Rescan')->{error}, 'stuck: no VFs');
ok(wait_until(sub { vfs() == 0 }), 'stuck: that is seen');
fault('reset', 'unkillable 1');
is($bus->call('SetVirtualFunctions', 'su', $pf, $n)->{error}, undef, 'stuck: VFs are made');
ok(wait_until(sub { device($bus, $pf)->{state} eq 'stuck' }), 'stuck: and that hangs');
fault("write $dir/sriov_numvfs $n");
ok(!$bus->call('Rescan')->{error}, 'stuck: somebody else makes them');
ok(wait_until(sub { vfs() == $n }), 'stuck: they are there');
is_error($bus->call('SetVirtualFunctions', 'su', $pf, $n), 'Unavailable', ['stuck', $pf], 'stuck: asking for what there is');
is(device($bus, $pf)->{state}, 'stuck', 'stuck: changes nothing');
fault('release');
ok(wait_until(sub { device($bus, $pf)->{state} ne 'stuck' }), 'stuck: until the write returns');
fault('reset');

# ---- what a broken line held back

my $start = "[Pool gpu]\nMatch=vendor=10de class=0302 address=$gpu\nBind=start\n";
configure("$start\[Exclude]\nMatch=nonsense\n");
isnt(driver_of($gpu), 'vfio-pci', 'held back: nothing is bound');
spew("$ENV{NODE_TMP}/passthroughd.conf", $start);
is($bus->call('Reload')->{error}, undef, 'held back: mended');
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' }), 'held back: and bound');
other_hand_binds($gpu, '');

done_testing();
