#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The main job: a guest that libvirt starts from the daemon's domain sees its devices, in order and on the node it was promised. While it
# runs nothing is taken from it, whatever happens to the daemon and to libvirt.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS qw(decode_json);
use Test::More;

use Guest;
use Lab;

use constant { MEMORY => 256 * 2**20, PAGE => 2 * 2**20, PACKAGE => '/usr/lib/lab/passthroughd.deb' };

my $pf;
my @sockets = map { "$_.socket" } qw(libvirtd libvirtd-ro libvirtd-admin);
END { local $?; command('systemctl', 'start', @sockets) }

sub state { my ($expected) = @_; return wait_until(sub { ctl_json('show', 'vm')->{state} eq $expected }) }

# Of the PF whose VF the guest has: as the kernel says, undef when it shows others.
sub count_vfs {
        my $n = fact("/sys/bus/pci/devices/$pf/sriov_numvfs");
        return $n == (() = glob "/sys/bus/pci/devices/$pf/virtfn*") ? $n : undef;
}

sub libvirt { chomp(my $state = output(qw(systemctl show --property ActiveState --value libvirtd.service))); return $state }

# ---- an allocation whose pools are neither in the order of their names nor in that of the host's addresses

ok(settled(), 'the node is settled');
my $before = drivers();
my ($status, $out, $err) = ctl(qw(allocate vm nic-vf=1 gpu=1 accelerator=1 --cpus 1 --memory 256M --page-size 2M --numa required));
is($status, 0, 'allocate') or die $err;
my $allocation = ctl_json('show', 'vm');
my @devices    = slot_order($allocation, qw(nic-vf gpu accelerator));
my $node       = $allocation->{numa_nodes}[0];
my $functions  = functions();
is_deeply([map { $functions->{ $_->{address} }{numa_node} } @devices], [($node) x @devices], 'all devices are on the node of the memory');

# ---- the guest

my @promised = map { my $f = $functions->{ $_->{address} }; "$f->{vendor}:$f->{device} $allocation->{cells}[0]{id}" } @devices;
is_deeply([map { (split / /)[0] } @promised[0 .. 2]], [qw(8086:10ca 1002:5046 1234:11e8)], 'its slots are in the order of the request');
($status, $err) = start_guest('vm', domain('vm', scalar @promised));
is($status, 0, 'virsh start') or diag($err);
ok(state('in-use'), 'the allocation is in use');
my @seen = guest_functions('vm');
diag("the guest sees: $_") for @seen;
is_deeply(\@seen, \@promised, 'the guest lists its devices in that order, with their ids, on its node');
my $qemu  = qemu('vm');
my ($pid) = split / /, $qemu;

# ---- what it is told

my ($told, $files) = guest_told('vm');
diag("fw_cfg has $files files");
is($told->{'nccl-topology.xml'}, output(qw(passthroughctl xml vm --nccl --template /tmp/vm.template)), 'the guest reads the topology that the daemon has for NCCL');
my @keys = qw(slot pool guest_address seen_address);
is_deeply(decode_json($told->{'devices.json'}), { devices => [map { my $device = $_; +{ map { $_ => $device->{$_} } @keys } } grep { $_->{guest_address} } @{ $allocation->{devices} }] }, '... and its devices');
is_deeply(qemu_told('vm'), $told, '... to the byte as QEMU was given them');
is_deeply([sort keys %$told], [qw(devices.json nccl-topology.xml)], '... and no more');
my $paths = guest_paths('vm');
is_deeply([grep { !$paths->{ $_->{seen_address} } } @{ decode_json($told->{'devices.json'})->{devices} }], [], '... and finds each at its address');

my ($pages, $size) = guest_memory('vm', 0);
is_deeply($pages, { $node => MEMORY / PAGE }, 'its memory is pages of the node, all of it');
is($size, PAGE / 1024, '... of 2 MiB');

# ---- nothing is taken from it

my $running = drivers();

sub goes_on {
        is_deeply(drivers(), $running, '... and changes no driver');
        is(qemu('vm'), $qemu, '... nor the process of the guest');
        return ok(state('in-use'), '... and the daemon knows that it runs');
}

($status, $out, $err) = ctl(qw(release vm));
is($status, 1, 'release is refused while the guest runs');
like($err, names(qr/domain 'vm'/), '... and the domain named');
my ($vf) = grep { $functions->{$_}{physical_function} } map { $_->{address} } @devices;
$pf = $functions->{$vf}{physical_function};
my $vfs = count_vfs();
($status, $out, $err) = ctl('sriov', $pf, $vfs - 1);
isnt($status, 0, 'A7: another number of VFs is refused');
like($err, names($vf, $pf, "'vm'", qr/domain 'vm'/), 'A7: ... because the guest has one of those that are there');
is(count_vfs(), $vfs, 'A7: ... and the number is what it was');
goes_on();

is((command(qw(systemctl restart passthroughd)))[0], 0, 'the daemon is restarted');
goes_on();
my $old = service('MainPID');
kill 'KILL', $old;
ok(wait_until(sub { service('ActiveState') eq 'active' && service('MainPID') != $old }), 'killed, it comes back');
goes_on();
for my $what ('installing the package', 'upgrading it') {
        ($status, $out, $err) = command(qw(dpkg --force-confold --install), PACKAGE);
        is($status, 0, $what) or diag("$out$err");
        is(service('ActiveState'), 'active', '... the daemon runs');
        goes_on();
}
my $console = guest_hears('vm', 'you');
ok(guest_says('vm', 'heard you'), 'the guest answers through all of that');
close $console;

# ---- libvirt out of reach: who has the devices open decides

sub libvirt_known { return !ctl_json('list')->{libvirt}{reason} }

ok(wait_until(sub { libvirt_known() }), 'libvirt reports the domains');
my ($libvirt) = output(qw(systemctl show --property MainPID --value libvirtd.service)) =~ /(\d+)/;
kill 'STOP', $libvirt;
goes_on();
kill 'CONT', $libvirt;
output('systemctl', 'stop', @sockets, 'libvirtd.service');
like(libvirt(), qr/^(?:inactive|failed)$/, 'libvirt is stopped, however it ended');
ok(wait_until(sub { !libvirt_known() }), 'the daemon knows that it is');
goes_on();
($status, $out, $err) = ctl(qw(release vm));
is($status, 1, 'release is refused all the same');
my ($open) = grep { $err =~ names($_, "process $pid", 'qemu-system-x86') } map { $_->{address} } @devices;
ok($open, '... for a device that QEMU has open, and that named') or diag($err);
is_deeply(drivers(), $running, '... and no driver is changed');
is(qemu('vm'), $qemu, '... nor the process of the guest');
my ($daemon) = service('MainPID');
my @clients  = grep { (fact("/proc/$_/status") // '') =~ /^PPid:\s+$daemon$/m } map { m{(\d+)$} } glob '/proc/[0-9]*';
is_deeply([grep { (fact("/proc/$_/maps") // '') =~ /libvirt[.]so/ } $daemon, @clients], [], 'without libvirt no process maps its library');
output('systemctl', 'start', @sockets);
ok(wait_until(sub { libvirt_known() }), 'its sockets are back, and so is libvirt');
goes_on();
ok((fact("/proc/$daemon/maps") // '') !~ /libvirt[.]so/, 'the daemon does not map the library');

# ---- the guest dies while libvirt is stopped

output('systemctl', 'stop', @sockets, 'libvirtd.service');
kill 'KILL', $pid;
ok(wait_until(sub { !defined qemu('vm') }), 'the guest is killed');
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);
is_deeply(drivers(), $before, 'all drivers are what they were');
is_deeply([map { devices()->{ $_->{address} }{state} } @devices], [('available') x @devices], 'and the devices on offer');
output('systemctl', 'start', @sockets);
end_guest('vm');
is(libvirt(), 'active', 'libvirt is back, to find the guest gone');
is_deeply(drivers(), $before, '... and leaves all as it was');

# ---- what was refused while the guest ran

for my $count ($vfs - 1, $vfs) {
        ($status, $out, $err) = ctl('sriov', $pf, $count);
        is($status, 0, "A7: $count VFs, now that the guest is gone") or diag($err);
        is(count_vfs(), $count, 'A7: ... are there');
}
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, '... and as it was');

done_testing();
