#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The names that the kernel gave a device, and its PCI Express link, in JSON, on the bus, and for people.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;

use constant NIC => '0000:11:00.0';

node('connectx');

$ENV{COLUMNS} = 200;

my $bus    = Bus->new->listen;
my %device = map { $_->{address} => $_ } @{ describe($bus)->{devices} };
my @named  = grep { @{ $_->{kernel_names} } } values %device;

is_deeply($device{ +NIC }{kernel_names}, [qw(mlx5_0 eth0)], 'an RDMA device and a network interface');
is_deeply($device{'0000:10:01.0'}{kernel_names}, [], 'a bridge has none');
is_deeply($device{ +NIC }{link}, { generation => 3, width => 8, max_generation => 4, max_width => 16 }, 'the link');
is($device{'0000:12:00.0'}{link}, undef, 'an unknown link');

my $properties = $bus->properties('/org/passthroughd1/device/_30000_3a11_3a00_2e0', 'org.passthroughd1.Device');
is_deeply($properties->{KernelNames}, [qw(mlx5_0 eth0)], 'on the bus');
is_deeply([@{$properties}{qw(LinkGeneration LinkWidth MaxLinkGeneration MaxLinkWidth)}], [3, 8, 4, 16], 'and the link');

my ($status, $list) = ctl('list', '--all');
my ($show, $topology) = map { (ctl(@$_))[1] } ['show', NIC], ['topology', '--all'];
for my $d (@named) {
        my $names = join ' ', @{ $d->{kernel_names} };
        like($list,     qr/^\Q$d->{address}\E .* \Q$names\E /m, "list: $d->{address}");
        like($topology, qr/\Q$d->{address}\E .*\Q($names)\E/m,  "topology: $d->{address}");
}
like($show, qr/^Kernel names: +mlx5_0 eth0$/m, 'show');

done_testing;
