#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A boot takes the VFs away and gives the buses other numbers: the VFs are made again, and are those that were promised.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Boot;
use Document;
use Node;

node('hgx-h100', configure => 1, root => 1);
# Of one PF, wherever it is.
configure("[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool rdma]\nMatch=vendor=15b3 type=vf pf=0000:14:00.0\nMatch=vendor=15b3 type=vf pf=0000:16:00.0\nVirtualFunctions=3\n");

my $bus  = Bus->new->listen;
my $path = 'sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0';
my %pf   = (14 => "$path/0000:12:01.0/0000:14:00.0");
my $tree = slurp("$FindBin::Bin/../nodes/hgx-h100.tree");

sub devices { my ($name) = @_; return [map { $_->{address} } @{ allocation($bus, $name)->{devices} }] }

sub in_order {
        my ($what, @devices) = @_;
        is(allocation_state($bus, 'guest'), 'ready', "$what: it is ready");
        is(allocation($bus, 'guest')->{reason}, undef, "$what: without a reason");
        is_deeply(devices('guest'), \@devices, "$what: it has its devices");
        is(driver_of($_), 'vfio-pci', "$what: $_ is on vfio-pci") for @devices;
        return;
}

# The number of a VF among those of its PF.
sub vf_index {
        my ($vf) = @_;
        my $pf = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$vf/physfn") =~ s{.*/}{}r;
        my ($found) = grep { (readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/virtfn$_") // '') =~ m{/\Q$vf\E$} } 0 .. 15;
        return "$pf, $found";
}

for my $case (['without serial numbers', $tree], ['with serial numbers', with_serial($tree, $pf{14}, '0002c90300123456', 0x140)]) {
        my ($how, $text) = @$case;
        my $what = "other numbers, $how";
        boot($bus, "$what, before", $text);
        is((allocate($bus, 'first', gpu => 1, rdma => 1))[0], 'done', "$what: somebody has a VF");
        is((allocate($bus, 'guest', rdma => 1))[0], 'done', "$what: and we have another one");
        my ($vf) = @{ devices('guest') };
        my ($first) = grep { /00\.[1-9]$/ } @{ devices('first') };
        is(vf_index($vf) =~ s/, .*//r, '0000:14:00.0', "$what: of the PF that moves") or diag("$vf $first");
        my $index = vf_index($vf) =~ s/.*, //r;
        boot($bus, $what, renumbered($text, 13 => 14, 14 => 16));
        my $now = $vf =~ s/0000:14/0000:16/r;
        in_order($what, $now);
        is(vf_index($now), "0000:16:00.0, $index", "$what: the same VF of the same PF");
        is_deeply([map { $_->{address} =~ s/:00\.\d$//r } @{ allocation($bus, 'first')->{devices} }], ['0000:14', '0000:16'], "$what: and the other one has what it had");
        history_shows($now, sub { grep { $_ eq 'moved' } @_ }, "$what: the history says so");
        is((release($bus, $_))[0], 'done', "$what: '$_' is released") for qw(guest first);
}

# ---- another card instead of the PF: its VFs are others

my $what = 'another PF';
boot($bus, "$what, before", with_serial($tree, $pf{14}, '0002c90300123456', 0x140));
is((allocate($bus, 'guest', rdma => 1))[0], 'done', "$what: there is an allocation");
my ($vf) = @{ devices('guest') };
boot($bus, $what, with_serial($tree, $pf{14}, '0002c90300654321', 0x140));
is(allocation_state($bus, 'guest'), 'failed', "$what: it has failed");
like(allocation($bus, 'guest')->{reason}, names($vf), "$what: and says why");
is(device($bus, $vf)->{state}, 'hardware-changed', "$what: so does the VF");
is_deeply([grep { /\Q$vf\E/ } write_log()], [], "$what: which is left alone");
is((ctl('accept', 'guest'))[0], 0, "$what: it is accepted");
in_order($what, $vf);
my $file = JSON::XS->new->decode(slurp(ledger_file('guest')));
is($file->{devices}[0]{serial}, '00-02-c9-03-00-65-43-21', "$what: and remembered");
is((release($bus, 'guest'))[0], 'done', "$what: it is released");

done_testing();
