#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The uevents of the simulated kernel: in the order of the real kernel, and only for this node.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Test::More;

use Events;
use Node;

node('paper-testbed');
plan skip_all => 'no network namespace' if $ENV{NODE_EVENTS} ne 'yes';

my ($gpu, $nic) = qw(0000:82:00.0 0000:02:00.0);
my $pci    = 'sys/bus/pci';
my $device = "$pci/devices/$gpu";
my @vfs    = qw(0000:02:10.0 0000:02:10.4);
my $events = Events->new;

# The daemon does not run here.
daemon('stop');

sub put {
        my ($path, $text) = @_;
        open my $f, '>', "$ENV{NODE_ROOT}/$path" or die "$path: $!";
        defined syswrite $f, $text or die "$path: $!";
        return;
}

sub hears {
        my ($change, $expected, $name) = @_;
        $change->();
        is_deeply([$events->heard()], $expected, $name);
        return;
}

sub with_node {
        my (@command) = @_;
        return ("$FindBin::Bin/../with-node", "$FindBin::Bin/../nodes/paper-testbed.tree", '--', @command);
}

my $before = tree();

subtest 'drivers' => sub {
        hears(sub { put("$device/driver_override", 'vfio-pci') }, [], 'an override is no event');
        hears(sub { put("$device/driver/unbind", $gpu) }, ["unbind $gpu"], 'unbind');
        put("$pci/drivers_probe", $gpu);
        my @bind = map { $events->next_event(0) } 1 .. 3;
        is_deeply([map { Events::text($_) } @bind], ['add vfio 7', 'add vfio-dev vfio0', "bind $gpu vfio-pci"],
                'on vfio-pci: the group, the device of vfio, then bind');
        is_deeply([map { $_->{HASH} } @bind], [qw(9cba94c3 573b34c1 59163b92)], 'with the hash that a filter looks for');
        is_deeply($bind[0], { ACTION => 'add', SUBSYSTEM => 'vfio', DEVPATH => '/devices/virtual/vfio/7', DEVNAME => '/dev/vfio/7', SEQNUM => 2, HASH => $bind[0]{HASH} },
                'all of the group');
        is_deeply($bind[2], {
                ACTION => 'bind', SUBSYSTEM => 'pci', SEQNUM => 4, DEVPATH => "/devices/pci0000:80/0000:80:02.0/$gpu", DRIVER => 'vfio-pci',
                PCI_CLASS => '30200', PCI_ID => '10DE:1028', PCI_SUBSYS_ID => '10DE:1015', PCI_SLOT_NAME => $gpu,
                MODALIAS => 'pci:v000010DEd00001028sv000010DEsd00001015bc03sc02i00', HASH => $bind[2]{HASH},
        }, 'all of the device');
        hears(sub { put("$pci/drivers_probe", $gpu) }, [], 'a probe of what is bound');
        hears(sub { put("$device/driver/unbind", $gpu) }, ['remove vfio-dev vfio0', 'remove vfio 7', "unbind $gpu"], 'off vfio-pci');
        put("$device/driver_override", "\n");
        hears(sub { put("$pci/drivers/nvidia/bind", $gpu) }, ["bind $gpu nvidia"], 'bind');
};

subtest 'virtual functions' => sub {
        hears(sub { put("$pci/devices/$nic/sriov_drivers_autoprobe", '0') }, [], 'an attribute is no event');
        hears(sub { put("$pci/devices/$nic/sriov_numvfs", '2') }, [(map { ("add $_", "change $_") } @vfs), "change $nic igb"], 'made, on no driver');
        hears(sub { put("$pci/devices/$nic/sriov_numvfs", '0') }, [map { "remove $_" } reverse @vfs], 'gone');
        put("$pci/devices/$nic/sriov_drivers_autoprobe", '1');
        hears(sub { put("$pci/devices/$nic/sriov_numvfs", '1') },
                ["add $vfs[0]", "change $vfs[0]", "bind $vfs[0] igbvf", "change $nic igb"], 'made, on a driver');
        hears(sub { put("$pci/devices/$nic/driver/unbind", $nic) }, ["unbind $vfs[0]", "remove $vfs[0]", "unbind $nic"], 'their PF unbound');
        hears(sub { put("$pci/drivers_probe", $nic) }, ["bind $nic igb"], 'and bound');
};

subtest 'another hand' => sub {
        hears(sub { fault("remove $device") }, ["unbind $gpu", "remove $gpu"], 'a device goes');
        hears(sub { fault("write $pci/rescan 1") }, ["add $gpu", "bind $gpu nvidia"], 'and comes back');
        hears(sub { fault("remove $device/driver") }, ["unbind $gpu"], 'its driver goes');
        hears(sub { fault("link $device/driver /$pci/drivers/nvidia") }, ["bind $gpu nvidia"], 'and comes back');
        hears(sub { fault("link $device/driver /$pci/drivers/nvidia") }, ["unbind $gpu", "bind $gpu nvidia"], 'another driver');
        hears(sub { fault("set $device/numa_node 0", "set $device/numa_node 1") }, [], 'an attribute is no event');
        hears(sub { fault('reset', 'silent 1'); put("$device/driver/unbind", $gpu) }, [], 'nor is a write without effect');
};

subtest 'lost, and for nothing' => sub {
        hears(sub { fault('events off', "remove $device") }, [], 'events off: a silent change');
        hears(sub { fault("event remove $gpu") }, ["remove $gpu"], 'one by hand, of what is not there');
        hears(sub { fault("write $pci/rescan 1", 'events on') }, [], 'what was not told is not told later');
        hears(sub { fault("event change $gpu") }, ["change $gpu nvidia"], 'one by hand');
        hears(sub { fault('flood 3') }, [('change 0000:00:00.0') x 3], 'a flood');
        my $small = Events->new(buffer => 4096);
        fault('flood 1000');
        my @heard = $small->heard();
        is(scalar(grep { $_ eq 'lost' } @heard), 1, 'which a small buffer does not hold');
        cmp_ok(scalar @heard, '<', 100, 'so that most is lost');
        $events->heard();
        for my $command ('events', 'events of', 'event', 'event add', 'event add rubbish', 'flood', 'flood 0', 'flood x', 'flood 1000001') {
                ok(!eval { fault($command); 1 }, "'$command' is refused");
        }
};

same_tree($before, 'the node is as it was');

subtest 'to this node alone' => sub {
        my $script = 'test $NODE_EVENTS = yes || exit 1; echo "events off" >$NODE_CONTROL || exit 2; echo "events on" >$NODE_CONTROL;'
                . "echo 'remove $device' >\$NODE_CONTROL; test ! -e \$NODE_ROOT/$device || exit 3; exit 77";
        hears(sub { is(system(with_node('sh', '-c', $script)) >> 8, 77, 'another node beside this one, and its exit status') },
                [], 'is not heard here');
        SKIP: {
                skip 'needs root: in a namespace, an ordinary user can mount only in one of his own', 2 if $> != 0;
                local $ENV{PATH} = "$ENV{NODE_TMP}/bin:$ENV{PATH}";
                mkdir "$ENV{NODE_TMP}/bin";
                spew("$ENV{NODE_TMP}/bin/unshare", "#!/bin/sh\nexit 1\n");
                chmod 0755, "$ENV{NODE_TMP}/bin/unshare";
                $script = 'test $NODE_EVENTS = no || exit 1; test -d $NODE_ROOT/sys || exit 2; echo "events off" 2>/dev/null >$NODE_CONTROL && exit 3; exit 78';
                hears(sub { is(system(with_node('sh', '-c', $script)) >> 8, 78, 'a node where there are no namespaces has no events') }, [], 'nor heard');
        }
};

subtest 'the end by a signal' => sub {
        for (['INT', 130], ['TERM', 143]) {
                my ($signal, $status) = @$_;
                unlink "$ENV{NODE_TMP}/where";
                my $pid = fork // die "fork: $!";
                if (!$pid) {
                        $SIG{INT} = 'DEFAULT';
                        setpgrp;
                        exec with_node('sh', '-c', "echo \$NODE_TMP >$ENV{NODE_TMP}/new; mv $ENV{NODE_TMP}/new $ENV{NODE_TMP}/where; exec sleep 60") or die $!;
                }
                ok(wait_until(sub { -e "$ENV{NODE_TMP}/where" }), 'a node runs');
                chomp(my $where = slurp("$ENV{NODE_TMP}/where"));
                kill $signal, -$pid;
                waitpid $pid, 0;
                is($? >> 8, $status, "SIG$signal ends it");
                ok(!-e $where, 'and nothing is left');
        }
};

done_testing();
