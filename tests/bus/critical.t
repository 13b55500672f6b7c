#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the host uses at this moment stays with it, and the refusal names the whole way; only a display can be had by force.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('edge', configure => 1);

my ($vga, $disk) = qw(0000:18:00.0 0000:19:00.0);
my $pools = "[Pool vga]\nMatch=address=$vga\n[Pool disk]\nMatch=address=$disk\n";
configure($pools);
my $bus    = Bus->new->listen;
my $before = tree();

sub explained { my ($address) = @_; return (ctl('explain', $address))[1] }

sub refused {
        my ($why, $name, @request) = @_;
        fault('reset');
        my ($status, undef, $err) = ctl('allocate', 'mine', @request);
        is($status, 1, "$name: refused");
        like($err, $why, '... with the way to what the host uses') if $why;
        nothing_written("... and nothing is written");
        return;
}

# ---- storage: device mapper on multipath NVMe

my $way = qr{\Q$disk\E <- nvme0 <- nvme0n1 <- vg-var <- /var \(mounted\)};
like(explained($disk), $way, 'explain prints the chain');
refused($way, 'a disk', 'disk=1');
refused($way, 'a disk by force', 'disk=1', '--force');

# ---- the display: a loss, but no end

like(explained($vga), qr/boot VGA.*\n.*--force/, 'explain of the boot VGA tells what there is for it');
refused(qr/boot VGA/, 'the boot VGA', 'vga=1');
is((ctl('plan', 'vga=1'))[0], 1, 'plan refuses it as well');
is((ctl('plan', 'vga=1', '--force'))[0], 0, 'and with --force it plans');
my $log = log_since();
is((ctl('allocate', 'mine', 'vga=1', '--force'))[0], 0, 'by force it is given');
is(driver_of($vga), 'vfio-pci', '... and on the VFIO driver');
like(log_since($log), names($vga, 'mine'), '... and the log says who did that');
is((ctl('release', 'mine'))[0], 0, 'it is released');
is(driver_of($vga), 'nvidia', '... and back on its driver');
same_tree($before, 'the tree is that of the start');

# A crash is no reason to think better of it.
my (undef, $entries) = request(vga => 1);
killed_in($bus, 2, 'by force', 'Allocate', 'sa{sv}', 'mine', [@$entries, ['force', ['b', 1]]]);
ok(wait_until(sub { allocation_state($bus, 'mine') eq 'ready' }), 'the allocation gets ready all the same');
is(driver_of($vga), 'vfio-pci', '... with its device');
is((release($bus, 'mine'))[0], 'done', 'and can be released');
same_tree($before, 'the tree is that of the start again');
is($bus->call('Plan', 'a{sv}', [@$entries, ['force', ['s', 'yes']]])->{error}, 'org.passthroughd1.Error.InvalidRequest', 'force is a boolean');

# ---- what the admin keeps, and what shares a group with it; taken by a reload

my ($nic, $gpu) = qw(0000:0a:00.0 0000:02:00.0);
my $keep  = qr{\Q$nic\E <- enp10s0 <- KeepInterfaces=};
my $more  = "[Pool gpu]\nAllowNoReset=yes\nMatch=address=$gpu\n[Pool nic]\nMatch=address=$nic\n";
my $write = sub { spew("$ENV{NODE_TMP}/passthroughd.conf", $_[0]); is((ctl('reload'))[0], 0, $_[1]); return };
$write->($more, 'a GPU and a NIC of one group are offered');
is(device($bus, $_)->{state}, 'available', "$_ can be had") for $nic, $gpu;
$write->("[Daemon]\nKeepInterfaces=eth9 enp10*\n$more", 'the interface is kept');
like(explained($nic), $keep, 'explain of the NIC says so');
like(explained($gpu), names($nic, $keep), '... and of the GPU');
refused($keep, 'the GPU', 'gpu=1');
is((ctl('reload'))[0], 0, 'a reload changes nothing');
like(explained($nic), $keep, '... of that');
spew("$ENV{NODE_TMP}/passthroughd.conf", "[Pool nic]\nMatch=address=$nic\n[Pool all]\nMatch=class=02\nVirtualFunctions=1\n");
is((ctl('reload'))[0], 1, 'a configuration that offers hardware twice is not taken');
like(explained($nic), $keep, 'what was kept before is kept');
$write->($more, 'it is not kept any more');
is(device($bus, $nic)->{state}, 'available', 'and can be had');

# ---- facts of now: the default route moves to it, and back

my $file   = "$ENV{NODE_ROOT}/proc/net/route";
my $routes = slurp($file);
chomp(my $there = $routes);
my $moved = $there =~ s/^eth0(?=\t00000000)/enp10s0/mr;
isnt($moved, $there, 'the default route moves');
my $set = sub { fault('set proc/net/route ' . $_[0] =~ s/\t/\\t/gr =~ s/\n/\\n/gr); return };
$set->($moved);
refused(qr{\Q$nic\E <- enp10s0 <- }, 'the GPU beside the NIC that has the default route', 'gpu=1');
$set->($there);
is((allocate($bus, 'mine', gpu => 1))[0], 'done', 'without it, no rescan is needed');
is((release($bus, 'mine'))[0], 'done', 'and back');

# ---- the host takes the NIC from a ready allocation, and needs it

is((allocate($bus, 'mine', nic => 1))[0], 'done', 'the NIC is allocated');
other_hand_binds($nic, 'igb');
$set->($moved);
ok(wait_until(sub { device($bus, $nic)->{state} eq 'contested' }), 'its driver takes it back, and it is contested');
restart();
is(device($bus, $nic)->{state}, 'contested', 'the next daemon says the same');
is(allocation_state($bus, 'mine'), 'failed', 'the allocation cannot be used');
like(allocation($bus, 'mine')->{reason}, qr{\Q$nic\E <- enp10s0 <- }, '... because the host needs it');
is(driver_of($nic), 'igb', 'it is left alone');
$set->($there);
restart();
ok(wait_until(sub { allocation_state($bus, 'mine') eq 'ready' }), 'without the route, the next start binds it again');
is((release($bus, 'mine'))[0], 'done', 'and it is released');

# ---- storage of the host over the network: it appears, and goes

chomp(my $mounts = slurp("$ENV{NODE_ROOT}/proc/1/mountinfo"));
my $mount = sub { fault('set proc/1/mountinfo ' . ($mounts . $_[0]) =~ s/\n/\\n/gr); return };
$set->("$there\nenp10s0\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0");
$mount->("\n90 22 0:52 / /data rw - nfs4 filer:/data rw,addr=10.1.0.5");
refused(qr{\Q$nic\E <- enp10s0 <- 10[.]1[.]0[.]5 <- /data}, 'the GPU beside the NIC to a file server', 'gpu=1');
$mount->('');
my $controller = 'sys/class/nvme/nvme7';
fault("set $controller/transport tcp", "set $controller/address traddr=10.1.0.6,trsvcid=4420");
refused(qr{\Q$nic\E <- enp10s0 <- 10[.]1[.]0[.]6 <- nvme7}, 'the GPU beside the NIC to a remote disk', 'gpu=1');
fault("remove $controller");
is((allocate($bus, 'mine', gpu => 1))[0], 'done', 'without them it is given');
is((release($bus, 'mine'))[0], 'done', 'and back');

done_testing();
