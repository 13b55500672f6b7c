#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A lease ends when its seconds have passed, whatever the clock of the node says meanwhile.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Lab;

use constant { HOLD => 20, YEARS => 10 * 365 * 86_400 };

my $set = 0; # seconds that the clock is ahead
sub set_clock { my ($ahead) = @_; output('date', '-s', '@' . (time + $ahead - $set)); $set = $ahead; return }
END { my $status = $?; set_clock(0); ctl(qw(release vm)); $? = $status }

sub state { my ($vm) = grep { $_->{name} eq 'vm' } @{ ctl_json('allocations')->{allocations} }; return $vm ? $vm->{state} : 'gone' }

ok(settled(), 'the node is settled');
my $before = drivers();
for my $years (YEARS, -YEARS()) {
        my ($status, undef, $err) = ctl(qw(allocate vm gpu=1 --cpus 1 --memory 64M --hold), HOLD);
        my $begun = clock_gettime(CLOCK_MONOTONIC);
        is($status, 0, 'reserve') or diag($err);
        set_clock($years);
        is(state(), 'reserved', "the clock is set by $years s: it is reserved");
        is((command(qw(systemctl kill --signal KILL passthroughd)))[0], 0, '... the daemon is killed');
        ok(wait_until(sub { service('ActiveState') eq 'active' && state() }), '... and started again');
        ok(wait_until(sub { state() eq 'gone' }), '... the lease ends');
        my $held = clock_gettime(CLOCK_MONOTONIC) - $begun;
        cmp_ok($held, '>=', HOLD - 1,  '... not before its end');
        cmp_ok($held, '<=', HOLD + 10, '... and not long after it') or diag($held);
        set_clock(0);
}
is_deeply(drivers(), $before, 'no device was touched');

done_testing();
