#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A mediated device on a GPU without VFs goes into a running guest and out of it beside another one of the same GPU, and into quarantine.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('paper-testbed', configure => 1);
mdev_parent('0000:82:00.0', 'nvidia', 16, '222 1 GRID T4-1B', '229 4 GRID T4-4Q', '231 16 GRID T4-16Q');

my $pool = "[Pool vgpu]\nMatch=vendor=10de\nVgpuType=GRID T4-4Q\n";
my $bus  = Bus->new->listen;

sub mdev_of { my ($slot) = @_; return device_in($bus, 'vm', $slot)->{mdev} }
sub has     { my ($mdev) = @_; return domain_has(qr{<address uuid="$mdev"/>}) }

sub detach_while_open {
        my ($mdev) = @_;
        my $group = readlink("$ENV{NODE_ROOT}/sys/bus/mdev/devices/$mdev/iommu_group") =~ s{.*/}{}r;
        fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
        my $result = hotplug($bus, 'Detach', 'vm', 's', 'vgpu1');
        fault('remove proc/4242');
        return $result;
}

# ---- in and out

configure("[Daemon]\nSparePorts=1\n$pool");
is(allocate($bus, 'vm', vgpu => 1, cpus => 2, memory => 2**28), 'done', 'an allocation');
my $first = mdev_of('vgpu0');
guest_runs($bus, 'vm');
is(hotplug($bus, 'Attach', 'vm', request(vgpu => 1)), 'done', 'attach another of the same GPU');
my $second = mdev_of('vgpu1');
is(has($second), 'yes yes', 'the guest and its definition have it');
is_deeply([mdevs()], [sort $first, $second], '... and it exists');
is(detach_while_open($second), 'failed', 'it is not detached while a process has it open');
is_deeply([mdevs()], [sort $first, $second], '... and it stays');
is(detach_while_open($first), 'done', 'it is detached while a process has the other one open');
is(has($second), 'no no', 'neither the guest nor its definition has it');
is(has($first), 'yes yes', '... and both have the other');
is_deeply([mdevs()], [$first], 'it is removed');
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'the allocation is released');
is_deeply([mdevs()], [], '... with its mediated device');

# ---- in quarantine

configure("${pool}OneTimeUse=yes\n");
is(allocate($bus, 'once', vgpu => 1, cpus => 2, memory => 2**28), 'done', 'an allocation of a pool for one use');
is(release($bus, 'once'), 'done', '... is released');
is_deeply([mdevs()], [], '... with its mediated device');
restart();
$bus = Bus->new->listen;
is_deeply([map { $_->{address} } @{ describe($bus)->{quarantine} }], ['0000:82:00.0.1'], 'its slot is in quarantine, also for another daemon');
is(allocate($bus, 'vm', vgpu => 1, cpus => 2, memory => 2**28), 'done', 'the next one is allocated');
is(allocation($bus, 'vm')->{devices}[0]{address}, '0000:82:00.0.2', '... in another slot');
clear_quarantine($bus);
is_deeply(describe($bus)->{quarantine}, [], 'the slot is out of quarantine');
is(device($bus, '0000:82:00.0.1')->{state}, 'available', '... and available');

done_testing();
