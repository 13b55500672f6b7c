#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A guest starts also when the host's own CPUs are all on another node than its memory: QEMU fills memory from CPUs of the node.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guest;
use Lab;

use constant DROP_IN => '/etc/passthroughd/passthroughd.conf.d/test.conf';

END { unlink DROP_IN; ctl('reload') }

spew(DROP_IN, "[Daemon]\nHousekeepingCpus=0\n");
is((ctl('reload'))[0], 0, 'all housekeeping is on node 0');
for my $pages ([], [qw(--page-size 2M)]) {
        my ($status, $out, $err) = ctl(qw(allocate vm gpu=1 --cpus 1 --memory 256M --numa required), @$pages);
        is($status, 0, "allocate @$pages") or diag($err);
        is_deeply(ctl_json('show', 'vm')->{numa_nodes}, [1], '... on node 1');
        ($status, $err) = start_guest('vm', domain('vm', 1));
        is($status, 0, '... and virsh start') or diag($err);
        end_guest('vm');
        is((ctl(qw(release vm)))[0], 0, '... and release');
}

done_testing();
