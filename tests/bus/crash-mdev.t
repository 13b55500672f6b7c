#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any instant while it makes or removes a mediated device, the daemon has all in order soon after its next start, and the mediated
# device of another allocation on the same GPU is not touched. SWEEP_EVERY=1 tries every instant.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

BEGIN { $ENV{SWEEP_EVERY} ||= 3 }

use Test::More;

use Crash;
use Node;

node('paper-testbed', configure => 1);
mdev_parent('0000:82:00.0', 'nvidia', 16, '222 1 GRID T4-1B', '229 4 GRID T4-4Q', '231 16 GRID T4-16Q');

my @request = (vgpu => 1, cpus => 1, memory => 2**28);

preload_dying();
configure("[Daemon]\nAfterRelease=restore\n[Pool vgpu]\nMatch=address=0000:82:00.0\nVgpuType=GRID T4-4Q\n");
my $bus = Bus->new->listen;
is(allocate($bus, 'bystander', @request), 'done', 'there is another allocation');
memorize($bus, 'bystander', undef, @request);
my $start = tree();

sub begin_attach { return begin_on_guest('Attach', request(vgpu => 1)) }

allocated();
my $ready = tree();
is(begin_attach()->(0), 'done', 'a further vGPU is attached');
my $attached = tree();
home_again($bus, 'at the start', 'guest');

my %whole_or_gone = (may => { ready => [$ready], gone => [$start] }, writer_may => { failed => 1 });

crash_points($bus, { %whole_or_gone, name => 'allocate', prepare => sub { }, begin => \&begin_allocate });
crash_points($bus, { %whole_or_gone, name => 'release', prepare => \&allocated, begin => \&begin_release });
crash_points($bus, { name => 'attach', prepare => \&allocated, begin => \&begin_attach, may => { ready => [$ready, $attached] }, writer_may => { failed => 1 } });
crash_points($bus, { %whole_or_gone, %START, name => 'start after allocate was killed', prepare => sub { interrupted(1, \&begin_allocate) } });
crash_points($bus, { %whole_or_gone, %START, name => 'start after release was killed', prepare => sub { allocated(); interrupted(1, \&begin_release) } });

# The mediated device is gone, as after a boot.
crash_points($bus, { %whole_or_gone, %START, name => 'start without the mediated device', prepare => sub {
        allocated();
        my $mdev = allocation($bus, 'guest')->{devices}[0]{mdev};
        daemon('stop', 'TERM');
        fault("write sys/bus/pci/devices/0000:82:00.0/$mdev/remove 1");
} });

tell_outcomes();
done_testing();
