#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Hardware that is pulled and plugged in while the node runs is told as a signal within a second of the kernel's knowing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Select;
use JSON::PP;
use Test::More;
use Time::HiRes qw(time);

use Lab;

use constant { AT_ONCE => 1, PLUG_DEADLINE => 60 };

# What "busctl monitor" prints of the daemon's signals, as it comes.
my $match = "type='signal',sender='org.passthroughd1',interface='org.passthroughd1.Manager'";
my $pid   = open my $signals, '-|', 'sh', '-c', 'exec busctl --json=short --match "$1" monitor 2>&1', 'sh', $match;
END { kill 'TERM', $pid if $pid }
my $select = IO::Select->new($signals);
my $buffer = '';

# Waits for sysfs to have the device, or not, and for the signal; how long after the kernel the signal came, undef when one did not come.
sub told {
        my ($member, $address, $there) = @_;
        my ($end, $known, $signalled) = (time + PLUG_DEADLINE);
        while (time < $end && !(defined $known && defined $signalled)) {
                if ($select->can_read(0.02)) {
                        sysread $signals, $buffer, 65536, length $buffer or die "busctl ended\n";
                        while ($buffer =~ s/^(.*)\n//) {
                                my $message = eval { decode_json($1) } or next;
                                $signalled //= time if ($message->{member} // '') eq $member && encode_json($message->{payload}) =~ /\Q$address\E/;
                        }
                }
                $known //= time if !!-e "/sys/bus/pci/devices/$address" == $there;
        }
        return if !defined $known || !defined $signalled;
        return $signalled - $known;
}

$select->can_read(PLUG_DEADLINE) && sysread($signals, $buffer, 65536) or die "busctl says nothing\n"; # that it listens
ok(settled(), 'the node is settled');

# A display controller in the empty port, and a NIC with VFs that was there from the start: [id, what is plugged in].
my ($nic) = grep { functions()->{$_}{numa_node} == 1 } role('8086:10c9');
my $port  = monitor('qom-get', path => '/machine/peripheral/nic1', property => 'parent_bus') =~ s{.*/}{}r;
my %gpu   = (driver => 'secondary-vga', id => 'gpu2', bus => 'empty');
my %nic1  = (driver => 'igb', id => 'nic1', bus => $port, mac => '52:54:00:00:00:11');
my $gpu   = empty_slot();

# What will be the address of what is plugged into the one port of node 1 that is empty.
sub empty_slot {
        my ($path) = grep { my @below = grep { /\.\d$/ } glob "$_/0000:*"; !@below } glob '/sys/devices/pci0000:80/0000:80:*';
        return sprintf '0000:%02x:00.0', fact("$path/secondary_bus_number");
}

sub is_told {
        my ($member, $address, $there) = @_;
        my $delay = told($member, $address, $there);
        ok(defined $delay, "$member of $address came") or return;
        diag(sprintf '%s %.3f s after the kernel', $member, $delay);
        cmp_ok($delay, '<', AT_ONCE, '... at once');
        is(!!devices()->{$address}, !!$there, '... and the list agrees');
        return;
}

monitor('device_add', %gpu);
is_told('DeviceAdded', $gpu, 1);
is(devices()->{$gpu}{state}, 'available', 'the display controller is on offer');
monitor('device_del', id => 'gpu2');
is_told('DeviceRemoved', $gpu, 0);

monitor('device_del', id => 'nic1');
is_told('DeviceRemoved', $nic, 0);
ok(wait_until(sub { eval { monitor('device_add', %nic1); 1 } }), 'QEMU has let go of it and plugs in another');
is_told('DeviceAdded', $nic, 1);
ok(settled(), 'and the VFs of the NIC come back');

done_testing();
