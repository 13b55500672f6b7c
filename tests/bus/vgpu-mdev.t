#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What vgpu.t tests, on mediated devices.
use strict;
use warnings;

use FindBin;

do "$FindBin::Bin/vgpu.t" or die $@ || $!;
