#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Under Xen with libvirt: a running guest keeps its devices, gets none, and is released from when it has ended.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;
use Xen;

node_with_guests('xen', configure => 1);
start_xenstore();

sub configuration { my (@daemon) = @_; return join "\n", '[Daemon]', @daemon, '[Pool gpu]', 'Match=vendor=10de class=0302', '[Pool nic]', 'Match=address=0000:12:00.0', '' }

configure(configuration('Hypervisor=xen', 'Libvirt=qemu:///system'));
my $bus   = Bus->new->listen;
my $start = tree();

sub change { my ($method, $signature, @arguments) = @_; return $bus->call($method, $signature, 'guest', Node::generation($bus, 'guest'), @arguments) }
sub slot_of { my ($address) = @_; return (map { $_->{slot} } grep { $_->{address} eq $address } @{ allocation($bus, 'guest')->{devices} })[0] }

is((allocate($bus, 'guest', gpu => 2))[0], 'done', 'there is an allocation');
my ($gpu) = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my ($signature, $entries) = request(nic => 1);

# ---- without a guest

libvirt_reports($bus);
my $reply = change('Attach', "st$signature", $entries);
is($reply->{error}, undef, 'attach without a guest') or diag($reply->{body}[0]);
is($bus->result($reply->{body}[0]), 'done', 'attach without a guest: done');
is(driver_of('0000:12:00.0'), 'pciback', 'attach without a guest: the NIC is on pciback');
$reply = change('Detach', 'sts', slot_of('0000:12:00.0'));
is($reply->{error}, undef, 'detach without a guest') or diag($reply->{body}[0]);
is($bus->result($reply->{body}[0]), 'done', 'detach without a guest: done');
isnt(driver_of('0000:12:00.0'), 'pciback', 'detach without a guest: the NIC is with the host');

# ---- a guest runs

libvirt_reports($bus, running_domain('web', UUID, $gpu));
guest_has(5, 'web', $gpu);
my $running = tree();
fault('reset');
is_error(change('Attach', "st$signature", $entries), 'NotSupported', ['not-supported', 'web', 'guest'], 'attach to a running guest');
is_error(change('Detach', 'sts', slot_of($gpu)), 'NotSupported', ['not-supported', 'web', 'guest'], 'detach from a running guest');
nothing_written('a running guest: nothing is written');
same_tree($running, 'a running guest: the tree is as before');
isnt((release($bus, 'guest'))[0], 'done', 'a running guest: no release');
nothing_written('a running guest: nothing is written for it');

# libvirt does not know it, xenstore does.
libvirt_reports($bus);
fault('reset');
is_error(change('Detach', 'sts', slot_of($gpu)), 'Unavailable', ['busy', 'web', $gpu], 'detach from a guest that libvirt does not know');
nothing_written('a guest that libvirt does not know: nothing is written');
guest_had(5);
is((release($bus, 'guest'))[0], 'done', 'released when it has ended');
same_tree($start, 'to the tree of the start');

# ---- AfterRelease=keep

configure(configuration('Hypervisor=xen', 'Libvirt=', 'AfterRelease=keep'));
$bus = Bus->new->listen;
is((allocate($bus, 'guest', nic => 1))[0], 'done', 'keep: allocated');
is((release($bus, 'guest'))[0],            'done', 'keep: released');
is(driver_of('0000:12:00.0'), 'pciback', 'keep: the NIC stays on pciback');
like(slurp("$ENV{NODE_ROOT}/sys/bus/pci/drivers/pciback/slots"), qr/^0000:12:00\.0$/m, 'keep: with its slot');
is((allocate($bus, 'guest', nic => 1))[0], 'done', 'keep: allocated again');
is((release($bus, 'guest'))[0],            'done', 'keep: released again');

# ---- a configuration that does not know Xen

is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'an allocation');
($gpu) = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
guest_gets(9, 'new', $gpu);
configure(configuration('Hypervisor=xne', 'Libvirt='));
$bus = Bus->new->listen;
fault('reset');
isnt((release($bus, 'guest'))[0], 'done', 'a wrong Hypervisor=: what a guest is about to get is not released');
nothing_written('... and nothing is written');
guest_gets(9, 'new');
configure(configuration('Hypervisor=xen', 'Libvirt='));
$bus = Bus->new->listen;
is((release($bus, 'guest'))[0], 'done', '... it is, when no guest gets it');

# ---- what the configuration says and the node is differ

configure(configuration());
is(device($bus = Bus->new->listen, $gpu)->{verdict}, 'not-supported', 'for KVM a node with Xen offers nothing');
fault('set proc/xen/capabilities none');
$bus->call('Rescan');
is(device($bus, $gpu)->{verdict}, 'no-iommu', 'a guest of Xen is no dom0');
fault('set proc/xen/capabilities control_d');
$bus->call('Rescan');
is(device($bus, $gpu)->{verdict}, 'not-supported', 'dom0 is');
configure(configuration('Hypervisor=xen', 'Libvirt='));
fault('remove sys/bus/pci/drivers/pciback');
$bus = Bus->new->listen;
$bus->call('Rescan');
is(device($bus, $gpu)->{verdict}, 'no-vfio-driver', 'without pciback it offers nothing');
like(device($bus, $gpu)->{remedy} // device($bus, $gpu)->{reason}, qr/xen-pciback/, 'and says which module to load');

done_testing();
