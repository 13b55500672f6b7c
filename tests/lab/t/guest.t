#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The main job: a guest that libvirt starts from the daemon's domain sees its devices, in order and on the node it was promised. While it
# runs nothing is taken from it, whatever happens to the daemon.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guest;
use Lab;

use constant { MEMORY => 256 * 2**20, PAGE => 2 * 2**20, PACKAGE => '/usr/lib/lab/passthroughd.deb' };

sub state { my ($expected) = @_; return wait_until(sub { ctl_json('show', 'vm')->{state} eq $expected }) }

ok(settled(), 'the node is settled');
my $before = drivers();
my ($status, $out, $err) = ctl(qw(allocate vm gpu=1 nic-vf=1 accelerator=1 --cpus 1 --memory 256M --page-size 2M --numa required));
is($status, 0, 'allocate') or die $err;
my $allocation = ctl_json('show', 'vm');
my @devices    = sort { $a->{guest_address} cmp $b->{guest_address} } grep { $_->{guest_address} } @{ $allocation->{devices} };
my $node       = $allocation->{numa_nodes}[0];
is_deeply([map { devices()->{ $_->{address} }{numa_node} } @devices], [($node) x @devices], 'all devices are on the node of the memory');

# ---- the guest

my $functions = functions();
my @promised  = map { my $f = $functions->{ $_->{address} }; "$f->{vendor}:$f->{device} $allocation->{cells}[0]{id}" } @devices;
($status, $err) = start_guest('vm', domain('vm', scalar @promised));
is($status, 0, 'virsh start') or diag($err);
ok(state('in-use'), 'the allocation is in use');
my @seen = guest_functions('vm');
diag("the guest sees: $_") for @seen;
is_deeply(\@seen, \@promised, 'the guest lists its devices in order, with their ids, on its node');

# ---- its memory

chomp(my $pid = output('cat', '/run/libvirt/qemu/vm.pid'));
my ($huge) = grep { /ram-node0/ } split /\n/, output('cat', "/proc/$pid/numa_maps");
my %pages  = ($huge // '') =~ /\bN(\d+)=(\d+)/g;
is_deeply(\%pages, { $node => MEMORY / PAGE }, 'its memory is hugepages of the node, all of it');
like($huge, qr/kernelpagesize_kB=2048/, '... of 2 MiB');

# ---- nothing is taken from it

my $running = drivers();
($status, $out, $err) = ctl(qw(release vm));
is($status, 1, 'release is refused while the guest runs');
like($err, qr/^passthroughctl: The domain 'vm' runs with 'vm'/, '... and the domain named');
my ($vf) = grep { $functions->{$_}{physical_function} } map { $_->{address} } @devices;
($status, $out, $err) = command(qw(busctl call org.passthroughd1 /org/passthroughd1 org.passthroughd1.Manager SetVirtualFunctions su),
        $functions->{$vf}{physical_function}, 1);
isnt($status, 0, 'another number of VFs is refused');
like($err, qr/would destroy those that are there/, '... because of those that are there');

output(qw(systemctl restart passthroughd));
is_deeply(drivers(), $running, 'restarting the daemon changes no driver');
ok(state('in-use'), '... and it knows the guest');
my $old = service('MainPID');
kill 'KILL', $old;
ok(wait_until(sub { service('ActiveState') eq 'active' && service('MainPID') != $old }), 'killed, it comes back');
is_deeply(drivers(), $running, '... and has changed no driver');
ok(state('in-use'), '... and knows the guest');
for my $what ('installing the package', 'upgrading it') {
        ($status, $out, $err) = command(qw(dpkg --force-confold --install), PACKAGE);
        is($status, 0, $what) or diag("$out$err");
        is(service('ActiveState'), 'active', '... the daemon runs');
        is_deeply(drivers(), $running, '... and has changed no driver');
        ok(state('in-use'), '... and knows the guest');
}
is(guest_state('vm'), 'running', 'the guest runs through all of that');

# ---- and back

end_guest('vm');
ok(state('ready'), 'the guest ended: the allocation is ready');
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);
is_deeply(drivers(), $before, 'all drivers are what they were');
is_deeply([map { devices()->{ $_->{address} }{state} } @devices], [('available') x @devices], 'and the devices on offer');

done_testing();
