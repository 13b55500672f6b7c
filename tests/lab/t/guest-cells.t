#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A guest of two cells has each device on the cell that has memory of the device's node. It ends by itself.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guest;
use Lab;

use constant { CELL => 128 * 2**20, PAGE => 2 * 2**20 };

sub state { my ($expected) = @_; return wait_until(sub { ctl_json('show', 'vm')->{state} eq $expected }) }

# Three VFs of PFs that have two each: some from either node. So many accelerators that two are below one switch.
ok(settled(), 'the node is settled');
my $before = drivers();
my ($status, $out, $err) = ctl(qw(allocate vm nic-vf=3 gpu=1 accelerator=4 --cpus 2 --memory 256M --page-size 2M --cells 2 --numa required));
is($status, 0, 'allocate') or die $err;
my $allocation = ctl_json('show', 'vm');
my $functions  = functions();
my @devices    = slot_order($allocation, qw(nic-vf gpu accelerator));
my @promised;
is_deeply([map { $_->{id} } @{ $allocation->{cells} }], [0, 1], 'it has two cells');
for my $cell (@{ $allocation->{cells} }) {
        my @here = grep { $functions->{ $_->{address} }{numa_node} == $cell->{node} } @devices;
        ok(scalar @here, "devices are on node $cell->{node}, which cell $cell->{id} has");
        push @promised, map { "$functions->{ $_->{address} }{vendor}:$functions->{ $_->{address} }{device} $cell->{id}" } @here;
}
is(scalar @promised, @devices, 'that is all of them');
is($allocation->{topology}, 'mirror', 'it is to see the tree of the host');

($status, $err) = start_guest('vm', domain('vm', scalar @promised));
is($status, 0, 'virsh start') or diag($err);
my @seen = guest_functions('vm');
diag("the guest sees: $_") for @seen;
is_deeply([sort @seen], [sort @promised], 'the guest lists each on its cell');

# ---- behind the promised port

my ($wanted, $found) = (promised_paths('/tmp/vm.xml'), guest_paths('vm'));
diag("$_ is at $wanted->{$_}") for sort keys %$wanted;
for my $device (@devices) {
        my $path = $wanted->{ $device->{address} } // 'nowhere';
        like($path, qr/\Q$device->{seen_address}\E\z/, "$device->{slot} is promised at $device->{seen_address}");
        is($found->{ $device->{seen_address} }, $path, 'which is where the guest finds it, behind those ports');
}

# Two levels above a device below a switch is its upstream port, here and there.
sub above { my ($path) = @_; my @part = split m{/}, $path; return @part > 4 ? "@part[0 .. $#part - 2]" : $path }
my %host  = map { $_->{address} => above(readlink("/sys/bus/pci/devices/$_->{address}") =~ s{.*/devices/}{}r) } @devices;
my @pairs = map { my $one = $_; map { [$one, $_] } grep { $_->{address} gt $one->{address} && $host{ $_->{address} } eq $host{ $one->{address} } } @devices } @devices;
ok(scalar @pairs, 'on the host some share a switch');
is(above($found->{ $_->[0]{seen_address} }), above($found->{ $_->[1]{seen_address} }), "$_->[0]{slot} and $_->[1]{slot}, which the guest finds below one too") for @pairs;
for my $cell (@{ $allocation->{cells} }) {
        my ($pages) = guest_memory('vm', $cell->{id});
        is_deeply($pages, { $cell->{node} => CELL / PAGE }, "the memory of cell $cell->{id} is on node $cell->{node}");
}

# The CPU that QEMU emulates for the node is one of AMD.
my ($sockets, $flag) = guest_cpus('vm');
is_deeply($sockets, { 0 => '0', 1 => '1' }, 'each cell has a socket of its own');
is($flag, 'topoext', '... as the guest reads by topoext');
ok(state('in-use'), 'the allocation is in use');
my $console = guest_hears('vm', 'off');
ok(wait_until(sub { !defined qemu('vm') }), 'told to, the guest powers off');
ok(state('ready'), 'the allocation is ready');
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);
is_deeply(drivers(), $before, 'all drivers are what they were');
is_deeply([map { devices()->{ $_->{address} }{state} } @devices], [('available') x @devices], 'and the devices on offer');
end_guest('vm');

done_testing();
