#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the configuration wants done at start where VFs cannot be made, and devices that are bound from start.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $pf  = '0000:83:00.0';
my @vfs = map { "0000:83:00.$_" } 1 .. 4;
my $bus = Bus->new->listen;

sub pool {
        my (@lines) = @_;
        return join "\n", '[Pool ib-vf]', "Match=vendor=15b3 type=vf pf=$pf", @lines, '';
}

sub driver { my ($address) = @_; return (readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/driver") // 'none') =~ s{.*/}{}r }

# ---- mlx4_core makes its VFs when it is loaded; there is no writing to sriov_numvfs

my $before = tree();
my $offset = log_since();
configure(pool('VirtualFunctions=4'));
nothing_written('mlx4 with the VFs that are wanted: nothing to do');
unlike(log_since($offset), names($pf), 'and nothing to say');
is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 4, 'four VFs are on offer');

$offset = log_since();
configure(pool('VirtualFunctions=2'));
nothing_written('mlx4 with another number of VFs: nothing is written');
like(log_since($offset), names($pf, 4, 2), 'but a warning');
is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 4, 'four VFs are on offer all the same');
is_error($bus->call('SetVirtualFunctions', 'su', $pf, 2), 'NotSupported', ['not-supported', 4, 2, 'mlx4_core', 'num_vfs'], 'by hand neither, and it says how');
nothing_written('nothing is written');
same_tree($before, 'nothing changed');

# ---- bound from start

$bus->forget_signals();
configure(pool('Bind=start'));
is_deeply([map { driver($_) } @vfs], [('vfio-pci') x 4], 'Bind=start: the VFs are on vfio-pci when the daemon is ready');
is_deeply([$bus->signal_names()], [], 'no signal is sent before the daemon has its name');
is_deeply(devices_state($bus, 'ib-vf'), { map { $_ => 'available' } @vfs }, 'and on offer');
my $bound = tree();
my $state = snapshot();
fault('reset');
$bus->forget_signals();
# But for who a VF is, and the reset after use.
sub nothing_bound { my ($name) = @_; is_deeply([grep { !m{/admin_guids/|/reset } } write_log()], [], $name); return }
is(allocate($bus, 'guest', 'ib-vf' => 3), 'done', 'allocating them');
nothing_bound('needs no binding');
is(release($bus, 'guest'), 'done', 'releasing them');
nothing_bound('neither');
fault('reset');
same_tree($bound, 'they stay bound');
same_state($state, 'and the ledger is as before');
restart();
nothing_written('the next start has nothing to do');
same_tree($bound, 'and leaves them bound');

# One that cannot be bound does not hold up the rest.
fault('set sys/bus/pci/devices/0000:83:00.2/driver_override (null)', "write sys/bus/pci/drivers/vfio-pci/unbind $_") for @vfs;
is_deeply([map { driver($_) } @vfs], [('none') x 4], 'all unbound by somebody else');
$offset = log_since();
fault('reset', 'fail 1 EIO');
restart();
is(scalar(grep { driver($_) eq 'vfio-pci' } @vfs), 3, 'Bind=start with one that fails: the other ones are bound');
like(log_since($offset), names(qr/0000:83:00\.\d/), 'the log says which and why');
ok(wait_until(sub { log_since($offset) =~ /^Ready: /m }), 'and the daemon is ready');

done_testing();
