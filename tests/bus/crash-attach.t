#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any instant of an attach, a detach, or a lease, the daemon completes or undoes it after its next start.
# SWEEP_EVERY=1 tries every instant, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Crash;
use Node;

node('../long/machine');

my @request = (gpu => 1, cpus => 2, memory => 2**30);
my @further = (ethernet => 1, 'vf-attributes' => [['ethernet', 'trust=on,vlan=100']]);
my $bus     = Bus->new->listen;

preload_dying();
restart();
is(allocate($bus, 'bystander', gpu => 1, infiniband => 1, cpus => 2, memory => 2**30), 'done', 'there is another allocation');
memorize($bus, 'bystander', '0000:11:00.0', @request);

sub begin_attach  { return begin_on_guest('Attach', request(@further)) }
sub begin_detach  { return begin_on_guest('Detach', 's', 'ethernet0') }
sub begin_prepare { return begin_on_guest('Prepare', '') }

sub leased   { begin_allocate(hold => 3600)->(1) if !allocation($bus, 'guest'); return is(allocation_state($bus, 'guest'), 'reserved', 'it is reserved') }
sub attached { allocated(); is(begin_attach()->(0), 'done', 'it has a further device'); return }

my $start = tree();
allocated();
my $small = tree();
attached();
my $large = tree();
home_again($bus, 'at the start', 'guest');

my %one_of_both = (may => { ready => [$small, $large] });

crash_points($bus, { %one_of_both, name => 'attach', prepare => \&allocated, begin => \&begin_attach });
crash_points($bus, { %one_of_both, name => 'detach', prepare => \&attached,  begin => \&begin_detach });

crash_points($bus, { may => { ready => [$small], gone => [$start], reserved => [$start] }, writer_may => { failed => 1 },
                name => 'prepare', prepare => \&leased, begin => \&begin_prepare });

tell_outcomes();
done_testing();
