#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The every-fault sweep where a group has several members: a GPU, its audio function and a network port that is not shown to the guest.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Sweep;

node('edge', configure => 1);

configure(<<'END');
[Pool gpu]
AllowNoReset=yes
Match=address=0000:02:00.0

[Pool nic]
Match=id=8086:1533
Match=address=0000:04:00.0
END

my $bus = Bus->new;
my %group = map { $_->{address} => $_->{role} } @{ device($bus, '0000:02:00.0')->{group} };
is_deeply([sort grep { !/^0000:00:/ } keys %group], ['0000:02:00.1', '0000:0a:00.0'], 'D9: two endpoints share the group with the GPU');

sweep('guest', 'gpu=1');

# D9: every endpoint of the group is on VFIO, also the one that is only held.
my $listener = Bus->new->listen;
my $before   = tree();
is(allocate($listener, 'd9', gpu => 1), 'done', 'D9: the group goes to one allocation');
is(device($bus, $_)->{driver}, 'vfio-pci', "D9: $_ is on vfio-pci") for '0000:02:00.0', '0000:02:00.1', '0000:0a:00.0';
is(device($bus, $_)->{allocation}, 'd9', "D9: $_ is allocated") for '0000:02:00.0', '0000:02:00.1', '0000:0a:00.0';
my ($error, $sentence) = allocate($listener, 'd9-nic', nic => 2);
is($error, 'org.passthroughd1.Error.Insufficient', 'D9: and to no other one') or diag($sentence);
is(release($listener, 'd9'), 'done', 'D9: it is released');
same_tree($before, 'D9: to what it was');

# A device that is on vfio-pci already: nothing to bind, and it stays there.
sweep_nothing();

sub sweep_nothing {
        my $nic = '0000:04:00.0';
        is(device($bus, $nic)->{driver}, 'vfio-pci', "$nic is on vfio-pci before anything is allocated");
        is(allocate($listener, 'bound', nic => 1), 'done', 'it can be allocated');
        is(device($bus, $nic)->{allocation}, 'bound', 'as the one whose group has nothing else');
        is(release($listener, 'bound'), 'done', 'and released');
        same_tree($before, 'and is as it was');
        return;
}

done_testing();
