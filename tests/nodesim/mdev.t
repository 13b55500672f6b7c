#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The mediated devices of the simulated node by their files: which can be created, and which are refused.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Errno;
use Fcntl;
use Test::More;

use Node;

node('mdev-h100', configure => 1);
daemon('stop');

my ($large, $half, $quarter) = (1201, 1202, 1203);
my $pci = "$ENV{NODE_ROOT}/sys/bus/pci/devices";
my ($first, $second, $third, $mig) = qw(0000:13:00.4 0000:13:00.5 0000:13:00.6 0000:c3:00.4);
my @uuids = map { "83b8f4f2-509f-382f-3c1e-e6bfe0fa100$_" } 1 .. 4;

sub errno { for my $name (grep { $!{$_} } keys %!) { return $name } return "errno $!" }

sub put {
        my ($file, $text) = @_;
        sysopen my $f, "$pci/$file", O_WRONLY or return 'open ' . errno();
        return defined syswrite($f, $text) ? 'OK' : errno();
}

sub create    { my ($vf, $id, $text) = @_; return put("$vf/mdev_supported_types/nvidia-$id/create", $text) }
sub destroy   { my ($vf, $uuid, $text) = @_; return put("$vf/$uuid/remove", $text // 1) }
sub attribute { my ($vf, $id, $name) = @_; return slurp("$pci/$vf/mdev_supported_types/nvidia-$id/$name") =~ s/\n//r }
sub types     { my ($vf) = @_; return join ' ', grep { attribute($vf, $_, 'available_instances') } map { /(\d+)\z/ } sort glob "$pci/$vf/mdev_supported_types/*" }

ok(!-e "$pci/$first/nvidia", 'the VF has no nvidia/');
is(types($first), '1201 1202 1203 1204 1205 1206 1207 1208', 'an idle GPU can have each type');
is(attribute($first, $half, 'name'), 'NVIDIA H100XM-40C', 'with its name');
is(attribute($first, $half, 'device_api'), 'vfio-pci', '... and API');
is(create($first, $half, $_), 'EINVAL', "'$_' is no UUID") for 'x', substr($uuids[0], 1), "$uuids[0]00", $uuids[0] =~ s/8/g/r;
is(create($first, $half, "$uuids[0]\n"), 'OK', 'one is created');
is(readlink("$pci/$first/$uuids[0]/mdev_type") =~ s{.*/}{}r, "nvidia-$half", 'of its type');
like(readlink("$pci/$first/$uuids[0]/iommu_group"), qr{/iommu_groups/\d+\z}, '... in an IOMMU group');
isnt(readlink("$pci/$first/$uuids[0]/iommu_group") =~ s{.*/}{}r, readlink("$pci/$first/iommu_group") =~ s{.*/}{}r, '... of its own');
ok(-e "$pci/$first/mdev_supported_types/nvidia-$half/devices/$uuids[0]", '... and listed');
is(types($first), '', 'the VF can have no other');
is(create($first, $half, $uuids[1]), 'ENOSPC', '... and has not');
is(types($second), $half, 'the others only that size');
is(create($second, $half, $uuids[0]), 'EEXIST', 'a UUID that exists is refused');
is(create($second, $quarter, $uuids[1]), 'ENOSPC', 'another size is refused');
is(create($second, $half, $uuids[1]), 'OK', 'the GPU is filled');
is(types($third), '', '... and full');
is(create($third, $half, $uuids[2]), 'ENOSPC', 'no more is created');
is(destroy($first, $uuids[0], 'x'), 'EINVAL', 'what is no number');
is(destroy($first, $uuids[0], 0), 'OK', 'zero removes nothing');
fault("set sys/bus/pci/devices/$first/vgpu_open 1");
is(destroy($first, $uuids[0]), 'EBUSY', 'what is open is not removed');
fault("remove sys/bus/pci/devices/$first/vgpu_open");
is("@{[mdevs()]}", "@uuids[0, 1]", 'both are there');
is(destroy($first, $uuids[0]), 'OK', 'it is removed');
is("@{[mdevs()]}", $uuids[1], '... and gone');
other_hand_binds($second, 'vfio-pci');
is("@{[mdevs()]}", '', 'without its driver the other is lost');
ok(!-e "$pci/$second/mdev_supported_types", '... with the types');
is(types($third), '1201 1202 1203 1204 1205 1206 1207 1208', 'the GPU is idle');
is(types($mig), '1221 1222', 'types on GPU instances');

done_testing();
