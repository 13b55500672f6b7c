#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The unit as systemd sees it: nothing to complain of, and shut in as far as its work lets it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

# What is left: CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_CHOWN and CAP_FOWNER, the writable directories of devices in sysfs, and the host's network and
# processes. The unit says for each why. A higher number is a regression; a lower one belongs here.
use constant EXPOSURE_MAX => 2.3;

my ($status, $out, $err) = command(qw(systemd-analyze verify passthroughd.service));
is($status,      0,  'systemd-analyze verify finds nothing wrong');
is("$out$err", '', '... and has nothing to say');

my ($exposure) = output(qw(systemd-analyze security --no-pager passthroughd.service)) =~ /exposure level .*: ([\d.]+)/;
cmp_ok($exposure, '<=', EXPOSURE_MAX, 'systemd-analyze security');

my ($main) = service('MainPID');
is((split /\t/, (grep { /^NoNewPrivs:/ } split /\n/, output('cat', "/proc/$main/status"))[0])[1], 1, 'the daemon gains no privileges');
is(output('findmnt', '--noheadings', '--output', 'VFS-OPTIONS', '--task', $main, '/') =~ /\bro\b/, 1, 'and sees the file system read-only');

done_testing();
