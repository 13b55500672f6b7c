#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Guests with mediated devices: known by their UUID, which also a hot-plug names.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('mdev-h100', configure => 1);
configure("[Daemon]\nSparePorts=1\n[Pool vgpu]\nMatch=type=vf pf=0000:13:00.0\nVgpuType=NVIDIA H100XM-20C\n");

my $bus   = Bus->new->listen;
my $other = '0000:13:00.7';
my $uuid  = '83b8f4f2-509f-382f-3c1e-e6bfe0fa1001';

sub mdev_of { my ($slot) = @_; return device_in($bus, 'vm', $slot)->{mdev} }
sub has     { my ($mdev) = @_; return domain_has(qr{<address uuid="$mdev"/>}) }

is(allocate($bus, 'vm', vgpu => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
my $first = mdev_of('vgpu0');
libvirt_reports($bus, running_domain('with another UUID', UUID, $first));
is(allocation_state($bus, 'vm'), 'in-use', 'the guest that has its mediated device is known');
is((release($bus, 'vm'))[0], 'org.passthroughd1.Error.Unavailable', '... and keeps it');
libvirt_reports($bus);
is(allocation_state($bus, 'vm'), 'ready', 'it has ended');

# ---- in and out

guest_runs($bus, 'vm');
is(hotplug($bus, 'Attach', 'vm', request(vgpu => 1)), 'done', 'attach a vGPU');
my $second = mdev_of('vgpu1');
is(has($second), 'yes yes', 'the guest and its definition have its mediated device');
is_deeply([mdevs()], [sort $first, $second], '... which exists');
my $group = readlink("$ENV{NODE_ROOT}/sys/bus/mdev/devices/$second/iommu_group") =~ s{.*/}{}r;
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
is(hotplug($bus, 'Detach', 'vm', 's', 'vgpu1'), 'failed', 'a process still has it open');
is_deeply([mdevs()], [sort $first, $second], '... and it stays');
fault('remove proc/4242');
is(hotplug($bus, 'Detach', 'vm', 's', 'vgpu1'), 'done', 'detach it');
is(has($second), 'no no', 'neither the guest nor its definition has it');
is(has($first), 'yes yes', '... and both have the other');
is_deeply([mdevs()], [$first], 'it is removed');
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'the allocation is released');
is_deeply([mdevs()], [], '... with its mediated device');

# ---- of another program

fault("write sys/bus/pci/devices/$other/mdev_supported_types/nvidia-1203/create $uuid");
is($bus->call('Rescan')->{error}, undef, 'another program creates one');
libvirt_reports($bus, running_domain('foreign', UUID, $uuid));
is(device($bus, $other)->{state}, 'contested', 'the VF whose mediated device a guest has is contested');
like(device($bus, $other)->{reason}, names('foreign', $other), '... and says which guest has it');
libvirt_reports($bus);
unlike(device($bus, $other)->{reason}, qr/foreign/, 'until the guest has ended');

fault("write sys/bus/pci/devices/$other/$uuid/remove 1");

# ---- of another program, where that of the allocation was

is(allocate($bus, 'lost', vgpu => 1), 'done', 'an allocation');
my ($lost) = @{ allocation($bus, 'lost')->{devices} };
fault("write sys/bus/pci/devices/$lost->{address}/$lost->{mdev}/remove 1");
fault("write sys/bus/pci/devices/$lost->{address}/mdev_supported_types/nvidia-1203/create $uuid");
is($bus->call('Rescan')->{error}, undef, 'another program puts its own in place of its mediated device');
$group = readlink("$ENV{NODE_ROOT}/sys/bus/mdev/devices/$uuid/iommu_group") =~ s{.*/}{}r;
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
is(release($bus, 'lost'), 'done', 'a process that uses that one does not keep the allocation');
is_deeply([mdevs()], [$uuid], '... and that one stays');
fault('remove proc/4242');

done_testing();
