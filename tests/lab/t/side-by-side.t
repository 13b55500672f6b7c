#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Seven VFs and three other devices go to vfio-pci and back at once, on a real kernel, which says nothing about it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Lab;

use constant { ROUNDS => 3, VFS => 2, MANY => 7 };
use constant DROP_IN => '/etc/passthroughd/passthroughd.conf.d/test.conf';

END { unlink DROP_IN; ctl('reload') }

my @request = ('nic-vf=' . MANY, 'nvme-vf=1', 'accelerator=2');
my ($pf) = role('8086:10c9');

# What the kernel has said since this was last called.
my $said = 0;

sub kernel_log {
        my @lines = split /\n/, output('dmesg', '--nopager');
        my @new = @lines[$said .. $#lines];
        $said = @lines;
        return grep { /\bBUG\b|WARNING|Oops|stall|hung|blocked for more than|possible circular locking|AER:|DMAR:.*fault/ } @new;
}

sub timed {
        my (@words) = @_;
        my $begin = time;
        my ($status, $out, $err) = ctl(@words);
        is($status, 0, "@words") or diag($err);
        return time - $begin;
}

ok(settled(), 'the node is settled');
is((ctl('sriov', $pf, MANY))[0], 0, 'one PF has seven VFs');
ok(wait_until(sub { my $devices = devices(); MANY == grep { ($devices->{$_}{state} // '') eq 'available' && ($devices->{$_}{physical_function} // '') eq $pf } keys %$devices }), '... all are on offer');
my $before = drivers();
kernel_log();

my %times;
for my $parallel (16, 1) {
        spew(DROP_IN, "[Daemon]\nParallelDevices=$parallel\n");
        is((ctl('reload'))[0], 0, "ParallelDevices=$parallel");
        for my $round (1 .. ROUNDS) {
                push @{ $times{"allocate, $parallel at a time"} }, timed('allocate', 'all', @request);
                my $devices = devices();
                is(scalar(grep { ($devices->{$_}{allocation} // '') eq 'all' && ($devices->{$_}{driver} // '') eq 'vfio-pci' } keys %$devices), MANY + 3, "... round $round: ten are on vfio-pci");
                push @{ $times{"release, $parallel at a time"} }, timed('release', 'all');
                is_deeply(drivers(), $before, "... round $round: all is as it was");
        }
}
is_deeply([kernel_log()], [], 'the kernel complains about nothing');
diag("$_: ", join(' ', map { sprintf '%.2f', $_ } @{ $times{$_} }), ' s') for sort keys %times;
is((ctl('sriov', $pf, VFS))[0], 0, 'the PF has as many VFs as before');
ok(settled(), '... and the node is settled');

done_testing();
