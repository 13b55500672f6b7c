#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What every allocation needs of the kernel is looked at before a device is taken off its driver.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $gpu    = '0000:82:00.0';
my $sysfs  = "sys/bus/pci/devices/$gpu";
my $bus    = Bus->new->listen;
my $before = tree();

# The GPU is not on offer, for that reason; and an allocation writes nothing.
sub unavailable {
        my ($what, $verdict, $remedy) = @_;
        my ($tree, $state) = (tree(), snapshot(times => 1));
        my $device = device($bus, $gpu);
        is($device->{state},   'host',   "$what: it is not on offer");
        is($device->{verdict}, $verdict, "$what: for that reason");
        like($device->{remedy} // '', $remedy, "$what: with a remedy");
        ok(!plan_ok($bus, gpu => 1), "$what: Plan refuses");
        refused($what, $tree, $state);
        return;
}

sub refused {
        my ($what, $tree, $state) = @_;
        fault('reset');
        like((allocate($bus, 'guest', gpu => 1))[0], qr/\.Error\.(?:Insufficient|Unavailable)$/, "$what: Allocate refuses");
        nothing_written("$what: and writes nothing");
        same_tree($tree, "$what: the tree stays");
        same_state($state, "$what: and the ledger", times => 1);
        return;
}

sub given {
        my ($what) = @_;
        is((allocate($bus, 'guest', gpu => 1))[0], 'done',     "$what: it is given");
        is(driver_of($gpu),                        'vfio-pci', "$what: on vfio-pci");
        is((release($bus, 'guest'))[0],            'done',     "$what: and released");
        same_tree($before, "$what: to the tree of the start");
        return;
}

sub becomes { my ($state, $what) = @_; return ok(wait_until(sub { device($bus, $gpu)->{state} eq $state }), $what) }

given('with all there is');

# ---- the VFIO driver: events tell that its module was loaded or unloaded

my @load = ('driver vfio-pci vfio');
fault('remove sys/bus/pci/drivers/vfio-pci');
becomes('host', 'vfio-pci is unloaded: the GPU goes off offer');
unavailable('vfio-pci is unloaded', 'no-vfio-driver', qr/\bmodprobe\@vfio-pci\.service\b/);
like((ctl('explain', $gpu))[1], qr/modprobe\@vfio-pci\.service/, 'vfio-pci is unloaded: explain names the remedy');
fault(@load);
becomes('available', 'vfio-pci is loaded: the GPU is on offer');
given('vfio-pci is loaded');

# ---- without events: Allocate looks again

fault('events off', 'remove sys/bus/pci/drivers/vfio-pci');
refused('unloaded without an event', tree(), snapshot(times => 1));
is(device($bus, $gpu)->{verdict}, 'no-vfio-driver', 'unloaded without an event: Describe says so then');
fault(@load);
given('loaded without an event');

# ---- at start, and a rescan

fault('remove sys/bus/pci/drivers/vfio-pci');
restart();
unavailable('a start without vfio-pci', 'no-vfio-driver', qr/\bmodprobe\@vfio-pci\.service\b/);
fault(@load);
ok(!$bus->call('Rescan')->{error}, 'vfio-pci is loaded, and a rescan');
given('a rescan with vfio-pci');

# ---- an allocation of before is not taken up again without it

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'a boot without vfio-pci: an allocation');
is(daemon('stop'), 0, 'a boot without vfio-pci: the daemon stops');
fault('remove sys/bus/pci/drivers/vfio-pci');
other_hand_binds($gpu, 'nvidia');
fault('reset');
is(daemon('start'), 0, 'a boot without vfio-pci: the next one starts');
is(writes(), 0, 'a boot without vfio-pci: nothing is taken off its driver');
is(driver_of($gpu), 'nvidia', 'a boot without vfio-pci: the GPU stays with the host');
is(allocation_state($bus, 'guest'), 'failed', 'a boot without vfio-pci: the allocation failed');
like(allocation($bus, 'guest')->{reason} // '', names('vfio-pci', 'modprobe@vfio-pci.service'), 'a boot without vfio-pci: the reason names the driver, and its module');
is((ctl('xml', 'guest'))[0], 1, 'a boot without vfio-pci: no document');
is((release($bus, 'guest'))[0], 'done', 'a boot without vfio-pci: it can be released');
fault(@load);
ok(!$bus->call('Rescan')->{error}, 'vfio-pci is loaded');
given('afterwards');

# ---- the promise stands until the module is there, which is noticed at once

fault('events on');

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'a late vfio-pci: an allocation');
is(daemon('stop'), 0, 'a late vfio-pci: the daemon stops');
fault('remove sys/bus/pci/drivers/vfio-pci');
other_hand_binds($gpu, 'nvidia');
is(daemon('start'), 0, 'a late vfio-pci: the next one starts without it');
is(allocation_state($bus, 'guest'), 'failed', 'a late vfio-pci: the allocation cannot run');
fault(@load);
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'a late vfio-pci: the allocation is in order when it is loaded')
        or diag(allocation($bus, 'guest')->{reason});
is(driver_of($gpu), 'vfio-pci', 'a late vfio-pci: the GPU is bound again');

# ---- the same for work that was cut off, at once or at the next start

for my $restarts (0, 1) {
        my $what = $restarts ? 'cut off, then a restart' : 'cut off';
        is(daemon('stop'), 0, "$what: the daemon stops");
        fault('remove sys/bus/pci/drivers/vfio-pci');
        other_hand_binds($gpu, 'nvidia');
        spew(ledger_file('guest'), slurp(ledger_file('guest')) =~ s/"ready"/"preparing"/r);
        is(daemon('start'), 0, "$what: the next one starts without vfio-pci");
        is(allocation_state($bus, 'guest'), 'failed', "$what: the allocation cannot run");
        is(driver_of($gpu), 'nvidia', "$what: the GPU stays with the host");
        daemon('stop') if $restarts;
        fault(@load);
        daemon('start') if $restarts;
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), "$what: the allocation is prepared when vfio-pci is there");
        is(allocation($bus, 'guest')->{reason}, undef, "$what: without a reason");
        is(driver_of($gpu), 'vfio-pci', "$what: the GPU is bound");
}
is((release($bus, 'guest'))[0], 'done', 'a late vfio-pci: released');
given('a late vfio-pci');

# ---- driver_override

my $override = slurp("$ENV{NODE_ROOT}/$sysfs/driver_override") =~ s/\n//r;
fault("remove $sysfs/driver_override");
refused('without driver_override', tree(), snapshot(times => 1));
unavailable('without driver_override', 'no-driver-override', qr/\bLinux\b/);
fault("set $sysfs/driver_override $override");
ok(!$bus->call('Rescan')->{error}, 'driver_override is back');
given('with driver_override');

# ---- the IOMMU

fault("remove $sysfs/iommu_group");
refused('without an IOMMU group', tree(), snapshot(times => 1));
is(device($bus, $gpu)->{verdict}, 'no-iommu', 'without an IOMMU group: Describe says so then');

done_testing();
