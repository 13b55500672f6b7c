#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Another card at the address of one that was promised is a stranger; one that is gone is waited for.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my @request    = (gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30);
my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my $path       = "sys/devices/pci0000:80/0000:80:02.0/$gpu";
my $bus        = Bus->new->listen;
my $before     = tree();
my $state      = snapshot();

sub stranger_untouched {
        my ($what) = @_;
        my @touched = grep { /\Q$gpu\E/ } write_log();
        is_deeply(\@touched, [], "$what: nothing is written to the stranger");
        return;
}

# The allocation, the daemon stopped, and the devices as NEXT leaves them.
sub meanwhile {
        my ($what, $next) = @_;
        is((allocate($bus, 'guest', @request))[0], 'done', "$what: there is an allocation");
        is(daemon('stop'), 0, "$what: the daemon stops");
        $next->();
        start_again($bus, $what);
        return;
}

# Back to the tree of the start, whatever there is.
sub in_order {
        my ($what) = @_;
        release_all($bus);
        fault("set $path/device 0x1028") if -e "$ENV{NODE_ROOT}/$path";
        fault('write sys/bus/pci/rescan 1');
        other_hand_binds($gpu, '') if driver_of($gpu) ne 'nvidia' || slurp("$ENV{NODE_ROOT}/$path/driver_override") !~ /null/;
        ok(!$bus->call('Rescan')->{error}, "$what: the card of the start is back");
        same_tree($before, "$what: and the tree");
        same_state($state, "$what: and the ledger");
        return;
}

# ---- another card, with the host's driver or none, or bound to vfio-pci by somebody else

my %where = (
        'on a driver of the host' => sub { other_hand_binds($gpu, ''); fault("set $path/device 0x1234") },
        'on no driver'            => sub { other_hand_binds($gpu, ''); fault("write sys/bus/pci/drivers/nvidia/unbind $gpu", "set $path/device 0x1234") },
        'on vfio-pci'             => sub { fault("set $path/device 0x1234", "write $path/driver_override \\n") },
);
for my $where (sort keys %where) {
        my $what = "another card $where";
        meanwhile($what, $where{$where});
        stranger_untouched("$what, at start");
        is(allocation_state($bus, 'guest'), 'failed', "$what: the allocation has failed");
        like(allocation($bus, 'guest')->{reason} // '', names($gpu), "$what: and says why");
        history_shows($gpu, sub { grep { $_ eq 'hardware-changed' } @_ }, "$what: so does the history");
        fault('reset');
        is((release($bus, 'guest'))[0], 'done', "$what: it can be released");
        is(allocation_state($bus, 'guest'), 'gone', "$what: and is gone");
        stranger_untouched("$what, released");
        in_order($what);
}

# Somebody else's guest on the stranger is no reason to keep the promise about the card before it.
meanwhile('a guest on the stranger', $where{'on vfio-pci'});
fault('link proc/4242/fd/7 /dev/vfio/' . device($bus, $gpu)->{iommu_group}, 'set proc/4242/comm other-guest');
my ($result, $sentence) = release($bus, 'guest');
is($result, 'done', 'a guest on the stranger: it can be released') or diag($sentence);
stranger_untouched('a guest on the stranger');
fault('remove proc/4242');
in_order('a guest on the stranger');

# ---- another card while the daemon runs, and nobody asked for a rescan

is(allocate($bus, 'guest', @request), 'done', 'another card under way: there is an allocation');
fault("remove $path", 'write sys/bus/pci/rescan 1', "set $path/device 0x1234", 'reset');
is((release($bus, 'guest'))[0], 'done', 'another card under way: it can be released');
stranger_untouched('another card under way');
in_order('another card under way');

# ---- gone at start

for my $now ('ready', 'preparing', 'releasing') {
        my $what = "gone, $now";
        meanwhile($what, sub {
                my $file = slurp(ledger_file('guest'));
                $file =~ s/"ready"/"$now"/;
                spew(ledger_file('guest'), $file);
                fault("remove $path");
        });
        stranger_untouched($what);
        if ($now ne 'releasing') {
                isnt(allocation_state($bus, 'guest'), 'gone', "$what: the promise is kept");
                like(allocation($bus, 'guest')->{reason} // '', names($gpu), "$what: with the reason");
                history_shows($gpu, sub { grep { $_ eq 'missing' } @_ }, "$what: so does the history");
                is((allocate($bus, 'other', gpu => 1))[0], 'org.passthroughd1.Error.Insufficient', "$what: nobody else gets one");
        }
        if ($now ne 'releasing') {
                ($result, $sentence) = release($bus, 'guest');
                is($result, 'done', "$what: it can be released") or diag($sentence);
        }
        is(allocation_state($bus, 'guest'), 'gone', "$what: and is gone");
        unlike(driver_of($vf), qr/vfio/, "$what: the VF is back");
        if (allocation_state($bus, 'guest') ne 'gone') {
                fault('write sys/bus/pci/rescan 1');
                restart();
                $bus->forget_signals();
        }
        in_order($what);
}

# ---- gone at a start, back at the next

meanwhile('gone and back', sub { fault("remove $path") });
is(daemon('stop'), 0, 'gone and back: the daemon stops');
fault('write sys/bus/pci/rescan 1');
is(driver_of($gpu), 'nvidia', 'gone and back: the host has it');
start_again($bus, 'gone and back');
is(driver_of($gpu), 'vfio-pci', 'gone and back: it is bound again');
is(allocation_state($bus, 'guest'), 'ready', 'gone and back: the allocation is ready');
is(allocation($bus, 'guest')->{reason} // '', '', 'gone and back: without a reason');
is((release($bus, 'guest'))[0], 'done', 'gone and back: it can be released');
in_order('gone and back');

done_testing();
