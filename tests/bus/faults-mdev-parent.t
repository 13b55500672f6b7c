#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The every-fault sweep of mediated devices on a GPU without VFs, beside one of another allocation and a VF that is bound to VFIO.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Sweep;

node('paper-testbed', configure => 1);
mdev_parent('0000:82:00.0', 'nvidia', 16, '222 1 GRID T4-1B', '229 4 GRID T4-4Q', '231 16 GRID T4-16Q');
configure("[Pool vgpu]\nMatch=address=0000:82:00.0\nVgpuType=GRID T4-4Q\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf pf=0000:83:00.0\n");
is(allocate(Bus->new->listen, 'bystander', vgpu => 1, cpus => 1, memory => 2**28), 'done', 'there is another allocation');

sweep('guest', qw(vgpu=1 ib-vf=1 --cpus 1 --memory 256M));

done_testing();
