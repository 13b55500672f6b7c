#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# ConnectX-7 ports of both kinds in one node: VFs of each have what was asked for, give it back, and the next tenant gets others.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Boot;
use Node;

node('hgx-h100', configure => 1, root => 1);

my %pf    = (ib => '0000:14:00.0', eth => '0000:24:00.0');
my $pools = join '', map { "[Pool $_]\nMatch=vendor=15b3 type=vf pf=$pf{$_}\nVirtualFunctions=2\n" } sort keys %pf;
my $tree  = slurp("$FindBin::Bin/../nodes/hgx-h100.tree");
my $bus   = Bus->new->listen;

# The firmware of a VPI card has its port be Ethernet.
my $path = 'sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0/0000:24:00.0';
$tree =~ s/^(%vf \Q$pf{eth}\E .*)attributes=infiniband$/$1attributes=ethernet/m or die;
$tree =~ s/^(\[\Q$path\E\]\n(?:.+\n)*?class=)0x020700$/${1}0x020000/m or die;
$tree =~ s/^(\[\Q$path\E\/net\/ib1\]\n(?:.+\n)*?)address=.*\n((?:.+\n)*?)type=32$/$1address=02:00:5e:00:53:01\n$2type=1/m or die;

sub kernel {
        my ($pool, $vf) = @_;
        my $dir = "$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf{$pool}/vf-netlink/$vf";
        opendir my $d, $dir or die "$dir: $!";
        return { map { $_ => slurp("$dir/$_") =~ s/\n//r } grep { !/^[.]/ } readdir $d };
}

sub all { return { map { my $pool = $_; map { ("$pool$_" => kernel($pool, $_)) } 0, 1 } sort keys %pf } }

sub with_attributes {
        my ($name, %attributes) = @_;
        my ($signature, $entries) = request(ib => 1, eth => 1, 'vf-attributes' => [map { [$_, $attributes{$_}] } sort keys %attributes]);
        my $reply = $bus->call('Allocate', "s$signature", $name, $entries);
        return $reply->{error} // $bus->result($reply->{body}[1]);
}

configure($pools);
boot($bus, 'a port is Ethernet', $tree);
my $before = all();
like($before->{$_}{mac}, qr/^02(:[0-9a-f]{2}){5}$/, "$_: a MAC is made up") for qw(eth0 eth1);
like($before->{$_}{node_guid}, qr/^02(:[0-9a-f]{2}){7}$/, "$_: a GUID is made up") for qw(ib0 ib1);

is(with_attributes('first', eth0 => 'mac=02:11:22:33:44:55,vlan=100,qos=3,trust=on,spoof-check=off,max-rate=1000,link=up', ib0 => 'node-guid=02:00:00:00:00:00:aa:00,link=up'), 'done', 'attributes of both');
my $first = all();
is_deeply([@{ $first->{eth0} }{qw(mac vlan trust spoofchk rate link_state)}], ['02:11:22:33:44:55', '100 3 802.1q', 'on', 'off', '0 1000', 'enable'], 'Ethernet: the kernel has them');
is($first->{ib0}{node_guid}, '02:00:00:00:00:00:aa:00', 'InfiniBand: the kernel has them');
is($first->{ib0}{link_state}, 'enable', 'InfiniBand: and the link');
is_deeply([@$first{qw(eth1 ib1)}], [@$before{qw(eth1 ib1)}], 'the other VFs are as they were');
is((release($bus, 'first'))[0], 'done', 'released');
is_deeply(all(), $before, 'and all VFs are who they were');

is((allocate($bus, 'next', ib => 1, eth => 1))[0], 'done', 'the next tenant');
my $next = all();
for my $of ([$first, 'the last one had'], [$before, 'they were made with']) {
        my ($then, $what) = @$of;
        isnt($next->{eth0}{mac}, $then->{eth0}{mac}, "Ethernet: not what $what");
        isnt($next->{ib0}{$_}, $then->{ib0}{$_}, "InfiniBand: not the $_ that $what") for qw(node_guid port_guid);
}
is($next->{eth0}{vlan}, $before->{eth0}{vlan}, 'nor its VLAN');
is((release($bus, 'next'))[0], 'done', 'released again');
is_deeply(all(), $before, 'and all is as before');

done_testing();
