#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario A4: what the host stands on, behind a bridge, a bond, LVM and md, and who shares a group with that.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('edge', configure => 1);

# The disk is alone in its group; the NIC shares it with a GPU.
my ($disk, $nic, $gpu, $vga) = qw(0000:19:00.0 0000:0a:00.0 0000:02:00.0 0000:18:00.0);
my $virtual = 'sys/devices/virtual';

# The root file system is on LVM on md on a partition of the disk, the default route on a bridge on a bond on the NIC.
my $namespace = "$virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
fault("set $namespace/nvme0n1p2/partition 2", "set $namespace/nvme0n1p2/dev 259:2",
        "set $virtual/block/md0/dev 9:0", "link $virtual/block/md0/slaves/nvme0n1p2 /$namespace/nvme0n1p2",
        "set $virtual/block/dm-1/dev 253:1", "set $virtual/block/dm-1/dm/name vg0-root", "link $virtual/block/dm-1/slaves/md0 /$virtual/block/md0",
        "link sys/dev/block/253:1 /$virtual/block/dm-1",
        'set proc/1/mountinfo 30 1 253:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg0-root rw');
fault("set $virtual/net/bond0/uevent INTERFACE=bond0", "link $virtual/net/bond0/lower_enp10s0 /sys/class/net/enp10s0", "link sys/class/net/bond0 /$virtual/net/bond0",
        "set $virtual/net/br0/uevent INTERFACE=br0", "link $virtual/net/br0/lower_bond0 /$virtual/net/bond0", "link sys/class/net/br0 /$virtual/net/br0",
        'set proc/net/route ' . (slurp("$ENV{NODE_ROOT}/proc/net/route") =~ s/^eth0(?=\t00000000)/br0/mr =~ s/\n\z//r =~ s/\t/\\t/gr =~ s/\n/\\n/gr));

configure(join "\n", '[Pool disk]', "Match=address=$disk", '[Pool nic]', "Match=address=$nic", '[Pool gpu]', "Match=address=$gpu", '[Pool vga]', "Match=address=$vga", '');
my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();
my $root   = qr{\Q$disk\E <- nvme0 <- nvme0n1p2 <- md0 <- vg0-root <- / \(mounted\)};
my $route  = qr{\Q$nic\E <- enp10s0 <- bond0 <- br0 <- };

for my $case (['the disk', 'disk', $root], ['the NIC', 'nic', $route], ['a member of its group', 'gpu', $route]) {
        my ($what, $pool, $chain) = @$case;
        my ($error, $sentence) = allocate($bus, 'guest', $pool => 1);
        like($error, qr/\.(?:Unavailable|Insufficient)$/, "A4: $what is refused, root or not");
        like($sentence, $chain, "A4: $what: with the whole chain");
        my ($status, undef, $err) = ctl('allocate', 'guest', "$pool=1", '--force');
        is($status, 1, "A4: deviation: $what is refused by force as well: the host would not live through it");
        like($err, $chain, "A4: $what: with the same chain");
        ok(!plan_ok($bus, $pool => 1), "A4: $what is in no plan");
}
is(writes(), 0, 'A4: nothing is written') or diag(join "\n", write_log());
same_tree($before, 'A4: the tree is as before');
same_state($state, 'A4: nothing is promised');

my $log = log_since();
is((ctl('allocate', 'guest', 'vga=1'))[0], 1, 'A4: the boot display is refused');
is((ctl('allocate', 'guest', 'vga=1', '--force'))[0], 0, 'A4: which the host can do without: by force it is given');
like(log_since($log), names($vga, 'guest'), 'A4: and it is in the journal who did that');
is(release($bus, 'guest'), 'done', 'A4: it is given back');
same_tree($before, 'A4: and all is as before');

done_testing();
