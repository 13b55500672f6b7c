#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFs go to vfio-pci and back to the driver they had, or stay, as the configuration says.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

use constant DROP_IN => '/etc/passthroughd/passthroughd.conf.d/test.conf';

END { unlink DROP_IN; ctl('reload') }

ok(settled(), 'the node is settled');
my $before = drivers();
my @vfs    = role('8086:10ca');
is(scalar @vfs, 4, 'there are four VFs');
output(qw(modprobe igbvf));
for my $vf (@vfs) {
        bind_by_hand($vf, 'igbvf');
        spew("/sys/bus/pci/devices/$vf/driver_override", "\n");
}
my $bound = drivers();

sub on { my ($driver) = @_; return is_deeply([map { link_name("/sys/bus/pci/devices/$_/driver") } @vfs], [($driver) x @vfs], "... all on $driver") }

sub succeeds {
        my (@words) = @_;
        my ($status, $out, $err) = ctl(@words);
        return is($status, 0, "@words") || diag($err);
}

ok(wait_until(sub { my $devices = devices(); !grep { ($devices->{$_}{driver} // '') ne 'igbvf' } @vfs }), 'the daemon sees who has them');
succeeds(qw(allocate all nic-vf=4));
on('vfio-pci');
for my $vf (@vfs) {
        is(scalar(my @cdev = glob "/sys/bus/pci/devices/$vf/vfio-dev/vfio*"), 1, "$vf is VFIO's");
}
succeeds(qw(release all));
on('igbvf');
is_deeply(drivers(), $bound, '... and all as it was');

spew(DROP_IN, "[Daemon]\nAfterRelease=keep\n");
succeeds('reload');
succeeds(qw(allocate all nic-vf=4));
succeeds(qw(release all));
on('vfio-pci');
is((ctl(qw(allocate again nic-vf=4)))[0], 0, 'they can be had again');
unlink DROP_IN;
succeeds('reload');
succeeds(qw(release again));
on('vfio-pci');
give_back($_) for @vfs;
is_deeply(drivers(), $before, 'all is as it was at first');

done_testing();
