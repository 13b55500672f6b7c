#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A boot takes the VFs away; they are made again first, then those that were promised are bound.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('hgx-h100', configure => 1);

# Of one PF: jobs at start run side by side, and the numbers of IOMMU groups are handed out in the order in which VFs appear.
my $pf = '0000:14:00.0';
configure(slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/id=15b3:101e\nVirtualFunctions=\d+/pf=$pf\nVirtualFunctions=4/r);
my $bus    = Bus->new->listen;
my $before = tree();

# What a boot does to the PF.
sub boot {
        my ($what) = @_;
        is(daemon('stop'), 0, "$what: the daemon stops");
        fault("write sys/bus/pci/devices/$pf/sriov_numvfs 0", "write sys/bus/pci/devices/$pf/sriov_drivers_autoprobe 1");
        is(scalar(() = glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/*/virtfn*"), 0, "$what: the VFs are gone");
        return;
}

is(allocate($bus, 'guest', gpu => 1, rdma => 2, cpus => 4, memory => 4 * 2**30), 'done', 'a GPU and two VFs are allocated');
my @devices = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my ($gpu)   = grep { driver_of($_) && device($bus, $_)->{type} ne 'vf' } @devices;
my ($ready, $xml) = (tree(), document('guest', 'before'));

boot('a boot');
other_hand_binds($gpu, '');
fault('reset');
is(daemon('start'), 0, 'a boot: the daemon starts');
$bus->forget_signals();
my @log = write_log();
my ($last_vf)    = grep { $log[$_] =~ /sriov_numvfs/ } reverse 0 .. $#log;
my ($first_bind) = grep { $log[$_] =~ /driver_override|drivers_probe|unbind/ } 0 .. $#log;
cmp_ok($last_vf // 999, '<', $first_bind // 0, 'a boot: all VFs are made before any device is bound') or diag(join "\n", @log);
is_deeply([map { driver_of($_) } @devices], [('vfio-pci') x 3], 'a boot: the devices are bound when the daemon is ready');
is(allocation_state($bus, 'guest'), 'ready', 'a boot: and the allocation is');
is(document('guest', 'a boot'), $xml, 'a boot: its document is the same');
same_tree($ready, 'a boot: the tree is as before');

# The VFs cannot be made this time: the promise waits for the next.
boot('no VFs');
fault('reset', map { "fail $_ ENOMEM" } 1, 2);
is(daemon('start'), 0, 'no VFs: the daemon starts');
$bus->forget_signals();
isnt(allocation_state($bus, 'guest'), 'gone', 'no VFs: the promise is kept');
like(allocation($bus, 'guest')->{reason} // '', names(qr/\b0000:[0-9a-f:.]+/), 'no VFs: and says what it lacks');
is((allocate($bus, 'other', rdma => 1))[0], 'org.passthroughd1.Error.Insufficient', 'no VFs: there is none to be had');
fault('reset');
restart();
$bus->forget_signals();
is(allocation_state($bus, 'guest'), 'ready', 'no VFs: the next start makes them');
is(allocation($bus, 'guest')->{reason} // '', '', 'no VFs: and forgets the reason');
same_tree($ready, 'no VFs: the tree is as before');

is(release($bus, 'guest'), 'done', 'it is released');
same_tree($before, 'to the tree of the start');

done_testing();
