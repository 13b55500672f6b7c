#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Mediated devices and the nodes of auxiliary devices count as the PCI function that they are part of.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my ($gpu, $pf) = qw(0000:13:00.0 0000:14:00.0);
my $uuid = '4b20d080-1b54-4048-85b3-a6a62d165c01';
my %path = map { $_ => readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_") =~ s{^(?:\.\./)+}{sys/}r } $gpu, $pf;

configure("[Pool gpu]\nMatch=address=$gpu\n[Pool pf]\nMatch=address=$pf\n");
my $bus    = Bus->new->listen;
my $before = tree();

sub mediated { my ($parent) = @_; fault("link $path{$parent}/$uuid/iommu_group /sys/kernel/iommu_groups/107"); return }

sub unmediated { my ($parent) = @_; fault("remove $path{$parent}/$uuid"); return }

sub process {
        my ($node) = @_;
        fault('set proc/812/comm qemu-system-x86', "link proc/812/fd/7 $node");
        return;
}

sub refused {
        my ($what, $pool, $sentence) = @_;
        fault('reset');
        my ($error, $message) = allocate($bus, 'late', $pool => 1);
        like($error, qr/\.Error\.Unavailable$/, "$what: it is refused");
        like($message, $sentence, "$what: with what is in the way");
        nothing_written("$what: nothing is written");
        release_all($bus) if $error eq 'done';
        return;
}

sub can_be_had {
        my ($what, $pool) = @_;
        is((allocate($bus, 'late', $pool => 1))[0], 'done', "$what: it can be had");
        is((release($bus, 'late'))[0], 'done', "$what: and is released");
        same_tree($before, "$what: to the tree as before");
        return;
}

# ---- a mediated device

my $held = names($uuid, $gpu, 812, 'qemu-system-x86');
mediated($gpu);
process('/dev/vfio/107');
refused('a guest has its group', 'gpu', $held);
process('/dev/vfio/devices/vfio9');
fault("set $path{$gpu}/$uuid/vfio-dev/vfio9/dev 511:9");
refused('a guest has its device', 'gpu', $held);
fault('remove proc/812');
refused('nobody has it', 'gpu', names($gpu, $uuid));
unmediated($gpu);
can_be_had('it was removed', 'gpu');

# ---- after a boot

is(allocate($bus, 'guest', gpu => 1), 'done', 'boot: a GPU is allocated');
daemon('stop');
other_hand_binds($gpu, 'nvidia');
mediated($gpu);
process('/dev/vfio/107');
start_again($bus, 'boot');
nothing_written('boot: nothing is written');
is(driver_of($gpu), 'nvidia', 'boot: the GPU stays with the host');
is(allocation_state($bus, 'guest'), 'failed', 'boot: the allocation has failed');
like(allocation($bus, 'guest')->{reason} // '', names($uuid, $gpu, 812, 'qemu-system-x86'), 'boot: and says why');
is((release($bus, 'guest'))[0], 'done', 'boot: it is released');
unmediated($gpu);
fault('remove proc/812');
can_be_had('boot', 'gpu');

# ---- an auxiliary device

fault("set $path{$pf}/mlx5_core.vnet.0/vdpa0/vhost-vdpa-0/dev 240:0");
process('/dev/vhost-vdpa-0');
refused('an auxiliary device', 'pf', names($pf, 812, 'qemu-system-x86'));
fault('remove proc/812', "remove $path{$pf}/mlx5_core.vnet.0");
can_be_had('an auxiliary device', 'pf');

# ---- the number of VFs

configure("[Pool vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=2\n");
mediated($pf);
process('/dev/vfio/107');
for my $count (0, 4) {
        fault('reset');
        is_error($bus->call('SetVirtualFunctions', 'su', $pf, $count), 'Unavailable', ['busy', $uuid, $pf, 812], "$count VFs are refused");
        nothing_written("$count VFs: nothing is written");
}
fault('remove proc/812');
is($bus->result($bus->call('SetVirtualFunctions', 'su', $pf, 0)->{body}[0]), 'done', 'it ends, and there are none');

done_testing();
