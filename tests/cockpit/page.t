#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The page in Cockpit shows what the daemon knows, as it changes, and changes what the user asks for.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus", $FindBin::Bin;

use Test::More;

use Browser;
use Node;

plan skip_all => Browser::missing() if Browser::missing();
node('hgx-h100');

my $bus     = Bus->new->listen;
my $browser = Browser->new;

ok($browser->shows('.numa', 'NUMA node 1'), 'the picture has the NUMA nodes');
is($browser->script('return document.querySelectorAll(".slot > .device").length'), 18, 'and the devices');
ok($browser->shows('.bar-text', '128 free'), 'the bars have the VFs');
is(allocate($bus, 'guest', gpu => 2, rdma => 2), 'done', 'a client allocates');
ok($browser->shows('[data-allocation=guest]', 'ready'), 'the page shows the allocation');
ok($browser->shows('.device[data-holder=guest]', 'guest'), 'and the picture');
is_deeply([$browser->errors], [], 'no errors');
$browser->screenshot("$ENV{PICTURES}/first.png") if $ENV{PICTURES};
$browser->quit;
done_testing;
