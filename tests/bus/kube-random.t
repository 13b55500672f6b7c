#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Random claims of Kubernetes and allocations of a person on one node, with a driver and a daemon that are killed. No device is given twice,
# none is lost, and the files are as the ledger says. KUBE_SEED=N repeats a run, KUBE_CLAIMS=N makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Kube;
use Node;

kube_needed();
node('hgx-h100', configure => 1);

my $seed   = $ENV{KUBE_SEED}   // int rand 2**31;
my $claims = $ENV{KUBE_CLAIMS} // 60;
srand $seed;
diag("KUBE_SEED=$seed KUBE_CLAIMS=$claims");

configure("[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=2\nScheduler=kubernetes\n");
kube_start();
dra_start();
my $bus     = Bus->new->listen;
my @devices = map { [$_->{pool}, $_->{address}] } grep { $_->{pool} } @{ describe($bus)->{devices} };
my ($made, $person, %prepared, $done, $refused) = (0, 0);

sub pick { return $_[int rand @_] }
sub chosen { my %seen; return grep { !$seen{ $_->[1] }++ } map { pick(@devices) } 1 .. 1 + int rand 3 }

# Each operation may fail, as it does for a pod.
sub op_prepare {
        my $n      = 0;
        my $ref    = claim('c' . ++$made, map { 'r' . ++$n => $_->[1] } chosen());
        my $answer = prepare($ref);
        if (($answer->{claims}{ $ref->{uid} }{error} // 'none') eq '') { $prepared{ $ref->{uid} } = $ref; $done++ }
        else                                                          { $refused++; unprepare($ref) }
        return;
}

sub op_again     { my $ref = pick(values %prepared) // return; prepared_ok($ref, "$ref->{name} again"); return }
sub op_unprepare { my $ref = pick(values %prepared) // return; my $answer = unprepare($ref); delete $prepared{ $ref->{uid} } if ($answer->{claims}{ $ref->{uid} }{error} // 'none') eq ''; return }
sub op_person    { my @chosen = chosen(); my %n; $n{ $_->[0] }++ for @chosen; allocate($bus, 'vm' . ++$person, %n, at => \@chosen, consumer => uid_of(900_000 + $person)); return }
sub op_release   { my $one = pick(grep { $_->{name} =~ /^vm/ } @{ describe($bus)->{allocations} }) // return; release($bus, $one->{name}); return }
sub op_kill      { dra_stop('KILL'); dra_start(); return }
sub op_restart   { restart('KILL'); $bus = Bus->new->listen; return }

my @operations = ((\&op_prepare) x 10, (\&op_unprepare) x 8, (\&op_again) x 2, (\&op_person) x 2, (\&op_release) x 2);
while ($made < $claims) {
        (rand() < 0.01 ? \&op_kill : rand() < 0.01 ? \&op_restart : pick(@operations))->();
}

sub settled {
        my @all = @{ describe($bus)->{allocations} };
        return !grep { $_->{state} !~ /^(?:ready|in-use)$/ } @all;
}
ok(wait_until(\&settled), 'all is at rest');
my @all = @{ describe($bus)->{allocations} };
my %owner;
push @{ $owner{ $_->[1] } }, $_->[0] for map { my $a = $_; map { [$a->{name}, $_->{address}] } @{ $a->{devices} } } @all;
is_deeply([grep { @{ $owner{$_} } > 1 } keys %owner], [], 'no device is given twice');
is_deeply([sort map { $_->{name} =~ /^claim-(.*)/ ? $1 : () } @all], [sort keys %prepared], 'the ledger has what the kubelet has');
is_deeply([claim_files()], [sort keys %prepared], '... and so have the files');

sub tainted { return join ' ', sort map { $_->{taints} ? $_->{name} : () } values %{ slice_devices() } }
my $persons = join ' ', sort map { device_named($_) } grep { $owner{$_}[0] =~ /^vm/ } keys %owner;
ok(wait_until(sub { tainted() eq $persons }), 'the slices have a taint for what the person has, and for nothing else') or diag(tainted(), ' / ', $persons);
unprepared_ok($_, "$_->{name} is unprepared") for values %prepared;
release_all($bus);
is_deeply([claim_files()], [], 'no file is left');
is_deeply([grep { $_->{state} ne 'available' } grep { $_->{pool} } @{ describe($bus)->{devices} }], [], 'and each device is free');
diag("$done prepared, $refused refused");
done_testing();
