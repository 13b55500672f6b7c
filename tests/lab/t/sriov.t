#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The number of VFs of a PF on a real kernel: changed and changed back when nobody uses them, and told at once when somebody else did it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Lab;

use constant { VFS => 2, AT_ONCE => 1, SLOWER => 3, PCI => '/sys/bus/pci/devices' };

my ($pf) = role('8086:10c9');

sub vfs { return scalar(() = glob PCI . "/$pf/virtfn*") }

# Changes the number of VFs without the daemon. Returns when the kernel had done it, and how many seconds it took.
sub by_hand {
        my ($count) = @_;
        my $begin = time;
        spew(PCI . "/$pf/sriov_numvfs", 0);
        spew(PCI . "/$pf/sriov_numvfs", $count);
        my $end = time;
        return ($end, $end - $begin);
}

# When the journal had a line of the daemon that matches, as seconds of the day and the kernel's clock; undef when it never came.
sub journal {
        my ($like) = @_;
        my $found = wait_until(sub {
                my @lines = grep { / passthroughd\[\d+\]: (.*)/ && $1 =~ $like } split /\n/, output(qw(journalctl --boot --output short-unix --unit passthroughd.service));
                return $lines[-1];
        });
        return $found && (split ' ', $found)[0];
}

ok(settled(), 'the node is settled');
my $before = functions();

my ($status, $out, $err) = ctl('sriov', $pf, 1);
is($status, 0, 'another number of VFs') or diag($err);
is(vfs(), 1, '... is there');
is(fact(PCI . "/$pf/sriov_numvfs"), 1, '... as the kernel says');
ok(wait_until(sub { !is_at_work() && devices()->{$pf}{state} ne 'contested' }), '... and nobody contests it');

($status, $out, $err) = ctl('sriov', $pf, VFS);
is($status, 0, 'and back') or diag($err);
ok(settled(), '... all is there again');
is_deeply(functions(), $before, '... and as it was');

my ($done, $took) = by_hand(VFS - 1);
my $told = journal(names($pf, qr/from ${\VFS} to 1/));
ok(defined $told, 'changed by hand: the journal says so') and diag(sprintf '%.3f s after the kernel, which took %.3f s', $told - $done, $took);
# The daemon waits for at most half a second until the uevents end. A loaded machine is slow at both, the kernel's work and the daemon's.
cmp_ok(($told // 'inf') - $done, '<', AT_ONCE + SLOWER * $took, '... at once');
my $device = devices()->{$pf};
is($device->{state}, 'contested', '... and it is contested');
like($device->{reason}, names(qr/from ${\VFS} to 1/), '... with the numbers');
is(vfs(), 1, '... and not fought');
($status, $out, $err) = ctl('sriov', $pf, VFS);
is($status, 0, 'it can be changed back') or diag($err);
ok(settled(), '... all is there again');
isnt(devices()->{$pf}{state}, 'contested', '... and it is not contested any more');
is_deeply(functions(), $before, '... and as it was');

done_testing();
