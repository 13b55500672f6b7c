#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A GPU without VFs is the parent of several mediated devices: of one size, as with NVIDIA's driver, or of several sizes that share the
# memory, as with Intel's GVT-g.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Errno;
use Fcntl;
use Test::More;

use Node;

node('paper-testbed', configure => 1);
daemon('stop');

my $gpu   = '0000:82:00.0';
my $dir   = "$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu";
my @uuids = map { sprintf '83b8f4f2-509f-382f-3c1e-e6bfe0fa10%02d', $_ } 1 .. 17;

sub put {
        my ($file, $text) = @_;
        sysopen my $f, "$dir/$file", O_WRONLY or die "$file: $!";
        return 'OK' if defined syswrite $f, $text;
        return (grep { $!{$_} } keys %!)[0];
}

sub create    { my ($type, $uuid) = @_; return put("mdev_supported_types/$type/create", $uuid) }
sub available { return join ' ', map { m{([^/]+)/[^/]+\z} ? "$1=" . slurp($_) =~ s/\n//r : () } sort glob "$dir/mdev_supported_types/*/available_instances" }
sub count_mdevs { return scalar(() = glob "$ENV{NODE_ROOT}/sys/bus/mdev/devices/*") }

# ---- one size on a GPU

mdev_parent($gpu, 'nvidia', 16, '222 1 GRID T4-1B', '230 8 GRID T4-8Q', '231 16 GRID T4-16Q');
is(available(), 'nvidia-222=16 nvidia-230=2 nvidia-231=1', 'an idle GPU can have as many as fit');
is(create('nvidia-230', $uuids[0]), 'OK', 'one is created');
is(available(), 'nvidia-222=0 nvidia-230=1 nvidia-231=0', 'it leaves only its size');
is(create('nvidia-222', $uuids[1]), 'ENOSPC', 'another size is refused');
is(create('nvidia-230', $uuids[1]), 'OK', 'a second one of its size is created');
is(create('nvidia-230', $uuids[2]), 'ENOSPC', '... and no third');
my %groups = map { readlink("$dir/$_/iommu_group") => 1 } @uuids[0, 1];
is(scalar keys %groups, 2, 'each has an IOMMU group of its own');
is(put("$uuids[0]/remove", 1), 'OK', 'the first is removed');
ok(!-e "$dir/$uuids[0]" && -e "$dir/$uuids[1]", '... and the other stays');
is(available(), 'nvidia-222=0 nvidia-230=1 nvidia-231=0', '... with its size');
is(put("$uuids[1]/remove", 1), 'OK', 'that is removed too');
is(create('nvidia-222', $_), 'OK', "the GPU is filled: $_") for @uuids[0 .. 15];
is(create('nvidia-222', $uuids[16]), 'ENOSPC', '... and full');
other_hand_binds($gpu, 'vfio-pci');
is(count_mdevs(), 0, 'without its driver it loses them');
ok(!-e "$dir/mdev_supported_types", '... and the types');

# ---- sizes that share the memory

fault('driver i915 any', "set sys/bus/pci/devices/$gpu/vgpu_mixed 1");
mdev_parent($gpu, 'i915', 8, 'GVTg_V5_8 1 GVTg_V5_8', 'GVTg_V5_4 2 GVTg_V5_4', 'GVTg_V5_2 4 GVTg_V5_2');
is(available(), 'i915-GVTg_V5_2=2 i915-GVTg_V5_4=4 i915-GVTg_V5_8=8', 'an idle GPU');
is(create('i915-GVTg_V5_4', $uuids[0]), 'OK', 'one is created');
is(available(), 'i915-GVTg_V5_2=1 i915-GVTg_V5_4=3 i915-GVTg_V5_8=6', 'the instances of all types shrink');
is(create('i915-GVTg_V5_2', $uuids[1]), 'OK', 'another type is created');
is(available(), 'i915-GVTg_V5_2=0 i915-GVTg_V5_4=1 i915-GVTg_V5_8=2', '... and takes of all types, too');

done_testing();
