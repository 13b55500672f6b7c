#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Hardware that is pulled and plugged in while the node runs is told as a signal within a second of the kernel's knowing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../../bus"; # in the checkout; on the machine Bus.pm is beside this file

use JSON::XS;
use Test::More;
use Time::HiRes qw(time);

use Bus;
use Lab;

use constant { AT_ONCE => 1, PLUG_DEADLINE => 60, ROUNDS => 3 };

$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/run/dbus/system_bus_socket';
my $bus = Bus->new->listen;

# Waits for sysfs to have the devices, or not, and for the signals: address to how long after the kernel its signal came, without those
# for which one of the two did not come.
sub told {
        my ($member, $there, @addresses) = @_;
        my ($end, %known, %signalled) = (time + PLUG_DEADLINE);
        while (time < $end && grep { !defined $known{$_} || !defined $signalled{$_} } @addresses) {
                $bus->turn(time + 0.02);
                for my $message (splice @{ $bus->{signals} }) {
                        next if $message->{interface} ne Bus::MANAGER || $message->{member} ne $member;
                        my $payload = encode_json($message->{body});
                        $signalled{$_} //= time for grep { $payload =~ /\Q$_\E/ } @addresses;
                }
                $known{$_} //= time for grep { !!-e "/sys/bus/pci/devices/$_" == $there } @addresses;
        }
        return map { $_ => $signalled{$_} - $known{$_} } grep { defined $known{$_} && defined $signalled{$_} } @addresses;
}

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

# The names of the blocks of memory that the machine has, those of its devices among them.
sub blocks { return monitor('human-monitor-command', 'command-line' => 'info ramblock') =~ /^\s*(\S+)/mg }

my %own; # id to those that came with it

# QEMU forgets the id of a device before its memory, and ends itself when the same device comes while that is still there.
sub plug {
        my (%device) = @_;
        my %theirs = map { $_ => 1 } @{ $own{ $device{id} } // [] };
        wait_until(sub { !grep { $theirs{$_} } blocks() }) or return;
        my %before = map { $_ => 1 } blocks();
        wait_until(sub { eval { monitor('device_add', %device); 1 } }) or return;
        $own{ $device{id} } = [grep { !$before{$_} } blocks()];
        return 1;
}

# What the machine runs on has other work too: the least delay of each counts, of as many rounds as it takes.
my %least;

sub is_told {
        my ($member, $there, @addresses) = @_;
        my %delay = told($member, $there, @addresses);
        for my $address (@addresses) {
                my $what = "$member of $address";
                ok(defined $delay{$address}, "$what came") or next;
                diag(sprintf '%s %.3f s after the kernel', $what, $delay{$address});
                $least{$what} = $delay{$address} if $delay{$address} < ($least{$what} // PLUG_DEADLINE);
                is(!!devices()->{$address}, !!$there, '... and the list agrees');
        }
        return;
}

sub are_at_once {
        my ($round) = @_;
        %least = ();
        for (1 .. ROUNDS) {
                $round->();
                last if !grep { $_ >= AT_ONCE } values %least;
        }
        cmp_ok($least{$_}, '<', AT_ONCE, "$_ came at once") for sort keys %least;
        return;
}

are_at_once(sub {
        ok(plug(%gpu), 'the port takes it');
        is_told('DeviceAdded', 1, $gpu);
        is(devices()->{$gpu}{state}, 'available', 'the display controller is on offer');
        monitor('device_del', id => 'gpu2');
        is_told('DeviceRemoved', 0, $gpu);
});

my $all = functions();
my @vfs = grep { ($all->{$_}{physical_function} // '') eq $nic } sort keys %$all;
is(scalar @vfs, 2, 'the NIC has VFs');
are_at_once(sub {
        monitor('device_del', id => 'nic1');
        is_told('DeviceRemoved', 0, $nic, @vfs);
        ok(plug(%nic1), 'QEMU has let go of it and plugs in another');
        is_told('DeviceAdded', 1, $nic);
        ok(settled(), 'and the VFs of the NIC come back');
});

done_testing();
