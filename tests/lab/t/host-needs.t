#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenario A4: what the host stands on stays with it, and so does what shares a group with that, though pools ask for all of it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

my ($disk)      = readlink('/sys/block/vda') =~ m{/([0-9a-f:.]+)/virtio\d+/block/};
my ($interface) = output(qw(ip -4 route show default)) =~ /\bdev (\S+)/;
my ($nic)       = readlink("/sys/class/net/$interface") =~ m{/([0-9a-f:.]+)/virtio\d+/net/};
my %carries     = ($disk => qr{vda <- / \(mounted\)}, $nic => qr/\Q$interface\E <- default route/);
my $before      = drivers();

for my $address (sort keys %carries) {
        my $device = devices()->{$address};
        is($device->{pool},  'host', "A4: a pool asks for $address");
        is($device->{state}, 'host', 'A4: ... which stays with the host');
        my $why = ctl_json('explain', $address);
        is($why->{verdict}, 'host-critical', 'A4: ... because the host needs it');
        like($why->{reason}, names($address, $carries{$address}), 'A4: ... and explain says for what');

        my $member = $address =~ s/\.0$/.1/r;
        is(devices()->{$member}{pool},  'accelerator', "A4: a pool asks for $member, which shares its group");
        is(devices()->{$member}{state}, 'host',        'A4: ... and stays as well');
        $why = ctl_json('explain', $member);
        is($why->{verdict}, 'group-not-viable', 'A4: ... because of its group');
        like($why->{reason}, names($address), 'A4: ... and explain names the device that the host needs');
}

my ($status, $out, $err) = ctl(qw(allocate mine host=1));
is($status, 1, 'A4: an allocation of one is refused');
like($err, names($_), "A4: ... and the reason of $_ given") for sort keys %carries;
($status, $out, $err) = ctl(qw(allocate mine accelerator=7));
is($status, 1, 'A4: and so is one of everything that shares with them');
like($err, names($_), "A4: ... and $_ named") for sort keys %carries;
is_deeply(ctl_json('allocations')->{allocations}, [], 'A4: nothing is allocated');
is_deeply(drivers(),                              $before, 'A4: and no function has another driver or override');

done_testing();
