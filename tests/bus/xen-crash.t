#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any instant, the daemon in dom0 has all in order soon after its next start: each device is on pciback with its slot, or with the host and
# without one. SWEEP_EVERY=1 tries every instant.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Crash;
use Node;
use Xen;

node('xen');
start_xenstore();

my @request = (gpu => 1, ethernet => 1, infiniband => 1);
my $bus     = Bus->new->listen;

preload_dying();
restart();
is(allocate($bus, 'bystander', gpu => 1, infiniband => 1), 'done', 'there is another allocation');
memorize($bus, 'bystander', '0000:11:00.0', @request);
my $start = tree();

allocated();
my $ready = tree();
like($ready, qr{^sys/bus/pci/drivers/pciback/slots=(?:[^\n]*\\n){4,}}m, 'an allocation has slots');
home_again($bus, 'at the start', 'guest');

my %whole_or_gone = (may => { ready => [$ready], gone => [$start] }, writer_may => { failed => 1 });

crash_points($bus, { %whole_or_gone, name => 'allocate', prepare => sub { }, begin => \&begin_allocate });
crash_points($bus, { %whole_or_gone, name => 'release', prepare => \&allocated, begin => \&begin_release });

tell_outcomes();
done_testing();
