#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices of Bind=start pools are bound when the module of their VFIO driver is loaded after the daemon started.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

plan skip_all => 'the node cannot send events' if $ENV{NODE_EVENTS} ne 'yes';

my $gpu = '0000:82:00.0';

fault('remove sys/bus/pci/drivers/vfio-pci');
configure("[Pool gpu]\nMatch=address=$gpu\nBind=start\n");
my $bus = Bus->new;
is(device($bus, $gpu)->{verdict}, 'no-vfio-driver', 'without vfio-pci the GPU is not on offer');
is(driver_of($gpu), 'nvidia', 'and stays with its driver');
fault('driver vfio-pci vfio');
ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' }), 'it is bound when vfio-pci is loaded');
ok(wait_until(sub { device($bus, $gpu)->{state} eq 'available' }), 'and on offer');

done_testing();
