#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The every-fault sweep of mediated devices beside a VF that is bound to VFIO.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Sweep;

node('mdev-h100');

sweep('guest', qw(vgpu=2 mig=1 rdma=1 --cpus 4 --memory 4G));

done_testing();
