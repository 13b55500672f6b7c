#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl show calls a device isolated when it is, and the ports above it are.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $devices = describe(Bus->new)->{devices};
my (%seen, %said);
for my $device (@$devices) {
        my ($status, $out) = ctl('show', $device->{address});
        my ($acs) = $out =~ /^ACS: +(.*)$/m;
        my $isolated = $device->{isolated} && $device->{acs} =~ /^(?:clean|isolated)$/;
        $seen{ "$device->{acs} " . ($device->{isolated} ? 'below isolating ports' : 'below others') }++;
        $said{ $isolated ? 'isolated' : 'not' }{$acs} = $device->{address};
}
ok($said{$_}, "show tells of devices that are $_") for 'isolated', 'not';
is_deeply([grep { $said{not}{$_} } keys %{ $said{isolated} }], [], 'in other words');
ok($seen{$_}, "there is a device that is $_") for 'open below isolating ports', 'clean below isolating ports';

done_testing();
