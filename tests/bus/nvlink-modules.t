#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# NVLink module ids are learnt while NVIDIA's driver has the GPUs, and known by serial number afterwards.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;

node('hgx-h100', configure => 1);
my $conf   = slurp("$FindBin::Bin/../nodes/hgx-h100-fabric.conf") =~ s/\[Pool rdma\].*//sr;
my %module = $conf =~ /^Module=(\S+)=(\d+)$/mg;
my ($gpu, $nameless) = qw(0000:13:00.0 0000:33:00.0);
my $dir = $ENV{NVFM_DIR};
$conf =~ s/^Module=.*\n//mg;
mkdir $dir or die "$dir: $!";

# What the library knows.
sub library { my (@gpus) = @_; spew("$dir/modules", join '', map { "0000$_ $module{$_}\n" } @gpus); return }

sub module_of { my ($address) = @_; return device($_[1] // Bus->new->listen, $address)->{module} }

# All GPUs but one get a serial number.
for my $address (grep { $_ ne $nameless } sort keys %module) {
        my $path   = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address") =~ s{^(?:\.\./)+}{sys/}r;
        my $config = substr(slurp("$ENV{NODE_ROOT}/$path/config"), 0, 256) . pack 'V V V', 0x00010003, hex substr($address, 5, 2), 0x11223344;
        fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $config);
}
library(keys %module);
configure($conf);
my $bus = Bus->new->listen;
ok(wait_until(sub { !grep { !defined device($bus, $_)->{module} } keys %module }), 'each GPU is asked for');
is_deeply({ map { $_ => device($bus, $_)->{module} } keys %module }, { map { $_ => $module{$_} + 0 } keys %module }, 'the daemon learns all module ids');
is(ctl_json('plan', 'gpu=4')->{partition}, 2, 'and plans with them');
is(allocate($bus, 'vm', gpu => 1, at => [['gpu', $gpu]]), 'done', 'a GPU leaves the driver');
is(device($bus, $gpu)->{module}, $module{$gpu}, '... and its module id is still known');
library(grep { $_ ne $gpu } keys %module);
restart();
is(module_of($gpu), $module{$gpu}, '... also to the next daemon, by its serial number');
is(allocation(Bus->new->listen, 'vm')->{partition}, 11, '... as is its partition');

other_hand_binds($nameless, 'vfio-pci');
restart();
is(module_of($nameless), undef, 'that of a card without a serial number is not');
spew("$dir/modules", '');
restart();
is(module_of($_), $module{$_}, "$_ is known without the library") for grep { $_ ne $nameless } sort keys %module;

# ---- a library that hangs

unlink "$ENV{STATE_DIRECTORY}/nvlink-modules" or die $!;
spew("$dir/nvml-hangs", '');
restart();
$bus = Bus->new->listen;
is(module_of('0000:23:00.0', $bus), undef, 'while the library hangs, nothing is learnt');
ok(!$bus->ping()->{error}, '... and the daemon works');
library(keys %module);
unlink "$dir/nvml-hangs";
is((ctl('rescan'))[0], 0, 'rescan');
ok(wait_until(sub { (device($bus, '0000:23:00.0')->{module} // 0) == $module{'0000:23:00.0'} }), 'later it is learnt');

done_testing();
