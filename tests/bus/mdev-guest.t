#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Guests with mediated devices: known by their UUID, which also a hot-plug names.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Hypervisor;
use Node;

node_with_guests('mdev-h100', configure => 1);
configure("[Daemon]\nSparePorts=1\n[Pool vgpu]\nMatch=type=vf pf=0000:13:00.0\nVgpuType=NVIDIA H100XM-20C\n");

my $bus    = Bus->new->listen;
my $domain = "$ENV{BUILD}/domain";
my $other  = '0000:13:00.7';
my $uuid   = '83b8f4f2-509f-382f-3c1e-e6bfe0fa1001';

sub vm      { return allocation($bus, 'vm') }
sub mdev_of { my ($slot) = @_; return (grep { $_->{slot} eq $slot } @{ vm()->{devices} })[0]{mdev} }
sub mdevs   { return join ' ', sort map { m{([^/]+)\z} } glob "$ENV{NODE_ROOT}/sys/bus/mdev/devices/*" }
sub has     { my ($mdev) = @_; return join ' ', map { slurp("$domain/$_") =~ m{<address uuid="$mdev"/>} ? 'yes' : 'no' } qw(live config) }

sub change {
        my ($method, $signature, @arguments) = @_;
        my $reply = $bus->call($method, "st$signature", 'vm', vm()->{generation}, @arguments);
        return $reply->{error} ? "$reply->{error}: $reply->{body}[0]" : $bus->result($reply->{body}[0]);
}

is(allocate($bus, 'vm', vgpu => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
my $first = mdev_of('vgpu0');
libvirt_reports($bus, running_domain('with another UUID', UUID, $first));
is(allocation_state($bus, 'vm'), 'in-use', 'the guest that has its mediated device is known');
is((release($bus, 'vm'))[0], 'org.passthroughd1.Error.Unavailable', '... and keeps it');
libvirt_reports($bus);
is(allocation_state($bus, 'vm'), 'ready', 'it has ended');

# ---- in and out

my $xml = (ctl('xml', 'vm'))[1];
hypervisor($domain, live => $xml, config => $xml);
libvirt_reports($bus, running_domain('vm', vm()->{id}, $first));
is(change('Attach', request(vgpu => 1)), 'done', 'attach a vGPU');
my $second = mdev_of('vgpu1');
is(has($second), 'yes yes', 'the guest and its definition have its mediated device');
is(mdevs(), join(' ', sort $first, $second), '... which exists');
my $group = readlink("$ENV{NODE_ROOT}/sys/bus/mdev/devices/$second/iommu_group") =~ s{.*/}{}r;
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
is(change('Detach', 's', 'vgpu1'), 'failed', 'a process still has it open');
is(mdevs(), join(' ', sort $first, $second), '... and it stays');
fault('remove proc/4242');
is(change('Detach', 's', 'vgpu1'), 'done', 'detach it');
is(has($second), 'no no', 'neither the guest nor its definition has it');
is(has($first), 'yes yes', '... and both have the other');
is(mdevs(), $first, 'it is removed');
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'the allocation is released');
is(mdevs(), '', '... with its mediated device');

# ---- of another program

fault("write sys/bus/pci/devices/$other/mdev_supported_types/nvidia-1203/create $uuid");
is($bus->call('Rescan')->{error}, undef, 'another program creates one');
libvirt_reports($bus, running_domain('foreign', UUID, $uuid));
is(device($bus, $other)->{state}, 'contested', 'the VF whose mediated device a guest has is contested');
like(device($bus, $other)->{reason}, names('foreign', $other), '... and says which guest has it');
libvirt_reports($bus);
unlike(device($bus, $other)->{reason}, qr/foreign/, 'until the guest has ended');

done_testing();
