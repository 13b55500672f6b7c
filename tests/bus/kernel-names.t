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
my ($in_topology) = grep { $_->{address} eq NIC } @{ ctl_json('topology')->{devices} };
is_deeply($in_topology->{link}, $device{ +NIC }{link}, 'the link in the topology');
like($list,     qr/^@{[NIC]} .* 3x8 of 4x16 +mlx5_0 eth0 /m,     'list: the link');
like($topology, qr/@{[NIC]} .* 3x8 of 4x16 .*\(mlx5_0 eth0\)/m, 'topology: the link');
like((ctl('topology', '--svg', '-'))[1], qr/\(mlx5_0 eth0\),.*PCIe\xc2\xa03x8\xc2\xa0of\xc2\xa04x16</s, 'picture: the link');
like($list, qr/^@{[NIC]} .* ConnectX-6 Dx *$/m, 'list: the product');
{
        delete local $ENV{COLUMNS};
        my %has = map { $_ => scalar qx(script -qec "stty cols $_; passthroughctl list --all" /dev/null </dev/null) } 80, 120;
        $_ = join ' ', /\b(?:GROUP|DRIVER|PCIE)\b/g for values %has;
        is_deeply(\%has, { 80 => '', 120 => 'GROUP DRIVER PCIE' }, 'a narrow terminal has no room for the group, the driver and the link');
        my $build = $ENV{BUILD} // "$FindBin::Bin/../../build";
        my $hgx   = "--node $build/nodes/hgx-h100.tree --config $FindBin::Bin/../nodes/hgx-h100.conf";
        like(scalar qx(script -qec "stty cols 80; passthroughctl list --all $hgx" /dev/null </dev/null), qr/^0000:13:00\.0 .* H100 SXM5 80G/m, '... but for the product');
}
like($show, qr/^Kernel names: +mlx5_0 eth0$/m, 'show');

done_testing;
