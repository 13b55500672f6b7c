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
cmp_ok($n, '>', 500, "$n devices");
ok(wait_until(sub { keys %{ slice_devices() } == $n }), 'all are in slices');
is(scalar(my @all = slices()), int(($n + 63) / 64), '64 in each');
is_deeply([map { $_->{spec}{pool} } slices()], [map { { name => NODE, generation => 1, resourceSliceCount => scalar @all } } @all], 'of one generation');
my $writes = () = grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @{ control()->{log} };
is($writes, scalar @all, 'one write for each');

my ($gpu, @times, @own) = '0000:13:00.0';
my $ref = claim('timed', gpu => $gpu);
sub cpu_time { my @stat = split ' ', slurp("/proc/$pid/stat") =~ s/.*\) //sr; return ($stat[11] + $stat[12]) * 10 }
sub memory { return (slurp("/proc/$pid/smaps_rollup") =~ /^Private_Dirty:\s+(\d+)/m)[0] }
sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[@sorted / 2] }

# In turns, so that both have the same load beside them. The first calls are not counted: memory grows to its size with them.
my ($cpu, $memory, $failed) = (0, 0, 0);
for my $i (-9 .. $prepares) {
        my $before = cpu_time();
        my $answer = prepare($ref);
        $failed++ if ($answer->{claims}{ $ref->{uid} }{error} // 'none') ne '';
        unprepare($ref);
        my $start = time;
        my $state = allocate($bus, 'own', gpu => 1, at => [['gpu', $gpu]], consumer => uid_of(99));
        my $ms = (time - $start) * 1000;
        $failed++ if $state ne 'done';
        release($bus, 'own');
        $memory = memory() if $i == 0;
        next               if $i <= 0;
        $cpu += cpu_time() - $before;
        push @times, $answer->{ms};
        push @own,   $ms;
}
is($failed, 0, "$prepares claims were prepared, and as many allocations made");
diag(sprintf 'Prepare %.1f ms, at most %.1f; Allocate until it is ready %.1f ms, at most %.1f; %.1f times as long; CPU of passthrough-dra %.1f ms for all of these',
        median(@times), max(@times), median(@own), max(@own), median(@times) / median(@own), $cpu / $prepares);
my $after = memory();
diag("private memory: $memory KiB before, $after KiB after");
# A sanitizer keeps freed memory on purpose, and the allocator some: as much after twenty calls as after a thousand.
cmp_ok($after, '<', $ENV{CHECK_SANITIZE} ? 1 << 20 : 32 << 10, 'memory');
cmp_ok($after - $memory, '<', $ENV{CHECK_SANITIZE} ? 1 << 20 : 8192, '... which calls do not add to');
ok(wait_until(sub { !grep { $_->{taints} } values %{ slice_devices() } }), 'nothing is left of these');
# What was read in the midst of these is told as well. When this one is, no earlier change is left.
is(allocate($bus, 'marker', rdma => 1, at => [['rdma', '0000:14:00.2']], consumer => uid_of(97)), 'done', 'a person has a VF');
ok(wait_until(sub { slice_devices()->{'pci-0000-14-00-2'}{taints} }), 'it has a taint');
my $before = @{ control()->{log} };
is(allocate($bus, 'human', rdma => 1, at => [['rdma', '0000:14:00.1']], consumer => uid_of(98)), 'done', 'and another');
ok(wait_until(sub { slice_devices()->{'pci-0000-14-00-1'}{taints} }), 'it has a taint');
my @log = @{ control()->{log} };
is(scalar(grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @log[$before .. $#log]), 1, '... by one write');
is(dra_stop(), 0, 'it ends');

# ---- Claims that have gone while it was down: each has its turn, however many there are

my @vfs = sort map { $_->{address} } grep { ($_->{pool} // '') eq 'rdma' && $_->{state} eq 'available' } @{ describe($bus)->{devices} };
for my $i (1 .. 100) {
        my $uid = uid_of(1000 + $i);
        $bus->call('Allocate', 'sa{sv}', "claim-$uid", [[devices => ['a(su)', [['rdma', 1]]]], [at => ['a(ss)', [['rdma', $vfs[$i]]]]], [consumer => ['s', $uid]], [tag => ['s', "default/gone-$i"]]]);
}
sub n_claims { return scalar grep { $_->{name} =~ /^claim-/ } @{ describe($bus)->{allocations} } }
is(n_claims(), 100, '100 claims have VFs, more than are asked about or released at a time');
dra_start();
ok(wait_until(sub { n_claims() == 0 }, 600), '... and all are released') or diag(n_claims());
# ---- Killed between the writes of a comparison

sub is_whole {
        my @slices = slices();
        my %generations = map { $_->{spec}{pool}{generation} => 1 } @slices;
        return @slices == @all && keys(%generations) == 1 && keys(%{ slice_devices() }) == $n && !grep { $_->{spec}{pool}{resourceSliceCount} != @all } @slices;
}
for my $k (0, 1, $#all - 1) {
        dra_stop('KILL');
        for my $slice (slices()) { api('DELETE', "/apis/resource.k8s.io/v1/resourceslices/$slice->{metadata}{name}") }
        dra_start();
        ok(wait_until(sub { scalar(my @some = slices()) >= $k }), "$k slices are written");
        dra_stop('KILL');
        dra_start();
        ok(wait_until(\&is_whole), '... and it is killed: the next start makes them whole');
}
is(dra_stop(), 0, 'it ends');
done_testing();
