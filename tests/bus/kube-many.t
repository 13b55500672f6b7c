#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Kubernetes on a node with hundreds of devices: the limits of slices, few writes, the time of a Prepare beside that of the daemon's own Allocate,
# and memory. KUBE_PREPARES=N times more.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Temp qw(tempdir);
use List::Util qw(max);
use Test::More;
use Time::HiRes qw(time);

use Kube;
use Node;

kube_needed();
if (!$ENV{NODE_ROOT}) {
        # The node of the other tests, with 63 VFs of each network card instead of 16.
        my $directory = tempdir('kube-many.XXXXXX', TMPDIR => 1);
        spew("$directory/many.tree", slurp("$FindBin::Bin/../nodes/hgx-h100.tree") =~ s/sriov_totalvfs=16$/sriov_totalvfs=63/gmr);
        $ENV{BUILD} //= "$FindBin::Bin/../../build";
        exec "$FindBin::Bin/../with-node", "$directory/many.tree", '--conf', '/nonexistent', '--', $^X, $0 or die $!;
}
my $prepares = $ENV{KUBE_PREPARES} // 20;
configure("[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=63\nScheduler=kubernetes\n");
kube_start();
my $pid = dra_start();
my $bus = Bus->new->listen;
my $n   = grep { $_->{pool} } @{ describe($bus)->{devices} };
cmp_ok($n, '>=', 136, "$n devices");
ok(wait_until(sub { keys %{ slice_devices() } == $n }), 'all are in slices');
is(scalar(my @all = slices()), int(($n + 63) / 64), '64 in each');
is_deeply([map { $_->{spec}{pool} } slices()], [map { { name => NODE, generation => 1, resourceSliceCount => scalar @all } } @all], 'of one generation');
my $writes = () = grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @{ control()->{log} };
is($writes, scalar @all, 'one write for each');

my ($gpu, @times, @own) = '0000:13:00.0';
my $ref = claim('timed', gpu => $gpu);
sub cpu_time { my @stat = split ' ', slurp("/proc/$pid/stat") =~ s/.*\) //sr; return ($stat[11] + $stat[12]) * 10 }
my $cpu = cpu_time();
for (1 .. $prepares) {
        my $answer = prepare($ref);
        is($answer->{claims}{ $ref->{uid} }{error}, '', 'prepared') if $_ == 1;
        push @times, $answer->{ms};
        unprepare($ref);
}
$cpu = (cpu_time() - $cpu) / $prepares;
for (1 .. $prepares) {
        my $start = time;
        allocate($bus, 'own', gpu => 1, at => [['gpu', $gpu]], consumer => uid_of(99));
        push @own, (time - $start) * 1000;
        release($bus, 'own');
}
sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[@sorted / 2] }
diag(sprintf '%d devices: Prepare %.1f ms, at most %.1f; Allocate until it is ready %.1f ms, at most %.1f; CPU of passthrough-dra %.1f ms for Prepare and Unprepare', $n, median(@times), max(@times), median(@own), max(@own), $cpu);
my ($memory) = slurp("/proc/$pid/smaps_rollup") =~ /^Private_Dirty:\s+(\d+)/m;
diag("private memory: $memory KiB");
# A sanitizer keeps freed memory on purpose.
cmp_ok($memory, '<', $ENV{CHECK_SANITIZE} ? 1 << 20 : 32 << 10, 'memory');
ok(wait_until(sub { !grep { $_->{taints} } values %{ slice_devices() } }), 'nothing is left of these');
my $before = @{ control()->{log} };
is(allocate($bus, 'human', rdma => 1, at => [['rdma', '0000:14:00.1']], consumer => uid_of(98)), 'done', 'a person has a VF');
ok(wait_until(sub { slice_devices()->{'pci-0000-14-00-1'}{taints} }), 'it has a taint');
my @log = @{ control()->{log} };
is(scalar(grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @log[$before .. $#log]), 1, '... by one write');
is(dra_stop(), 0, 'it ends');

# ---- Claims that have gone while it was down: each has its turn, however many there are

my @vfs = sort map { $_->{address} } grep { ($_->{pool} // '') eq 'rdma' && $_->{state} eq 'available' } @{ describe($bus)->{devices} };
for my $i (1 .. 300) {
        my $uid = uid_of(1000 + $i);
        $bus->call('Allocate', 'sa{sv}', "claim-$uid", [[devices => ['a(su)', [['rdma', 1]]]], [at => ['a(ss)', [['rdma', $vfs[$i]]]]], [consumer => ['s', $uid]], [tag => ['s', "default/gone-$i"]]]);
}
sub n_claims { return scalar grep { $_->{name} =~ /^claim-/ } @{ describe($bus)->{allocations} } }
is(n_claims(), 300, '300 claims have VFs');
dra_start();
ok(wait_until(sub { n_claims() == 0 }, 600), '... and all are released') or diag(n_claims());
is(dra_stop(), 0, 'it ends');
done_testing();
