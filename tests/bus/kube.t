#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-dra between a kubelet that speaks by gRPC's own client, an API server with its limits, and the daemon.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Kube;
use Node;

kube_needed();
node('hgx-h100', configure => 1);

my $pools = "[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=4\nScheduler=kubernetes\n";
configure($pools);
kube_start();
dra_start();
my $bus = Bus->new->listen;

# ---- Registration

my $info = kubelet('info');
is_deeply([@$info{qw(type name)}], ['DRAPlugin', 'passthroughd.org'], 'the plugin tells its type and name');
is_deeply($info->{versions}, [qw(v1.DRAPlugin v1.DRAResourceHealth v1alpha1.DRAResourceHealth)], '... and its services');
is($info->{endpoint}, "$ENV{NODE_TMP}/kubelet/plugins/passthroughd.org/dra.sock", '... and its socket');
is_deeply(kubelet('status'), {}, 'the kubelet has registered it');

# ---- Prepare and unprepare

my $pair = claim('pair', gpu => '0000:13:00.0', nic => '0000:14:00.1');
my $answer = prepare($pair)->{claims}{ $pair->{uid} };
is($answer->{error}, '', 'a claim of a GPU and a VF is prepared') or diag(dra_log());
is_deeply(
        [map { [$_->{requests}[0], $_->{pool}, $_->{device}, $_->{cdi}[0]] } @{ $answer->{devices} }],
        [map { [$_->[0], 'n1', $_->[1], "passthroughd.org/claim=$pair->{uid}_$_->[1]"] } ['gpu', 'pci-0000-13-00-0'], ['nic', 'pci-0000-14-00-1']],
        'the answer has both devices');
my $has = allocation($bus, "claim-$pair->{uid}");
is_deeply([@$has{qw(state consumer tag)}], ['ready', $pair->{uid}, 'default/pair'], 'the ledger has the claim');
is_deeply([sort map { $_->{address} } @{ $has->{devices} }], ['0000:13:00.0', '0000:14:00.1'], '... with these devices');
is_deeply([map { driver_of($_) } '0000:13:00.0', '0000:14:00.1'], ['vfio-pci', 'vfio-pci'], '... which are ready for a guest');

my $cdi = cdi_of($pair);
is_deeply([@$cdi{qw(cdiVersion kind)}], ['0.5.0', 'passthroughd.org/claim'], 'the CDI document');
my %group = map { $_ => device($bus, $_)->{device}{iommu_group} // device($bus, $_)->{iommu_group} } '0000:13:00.0', '0000:14:00.1';
is_deeply([map { [map { $_->{path} } @{ $_->{containerEdits}{deviceNodes} }] } @{ $cdi->{devices} }],
        [map { ['/dev/vfio/vfio', "/dev/vfio/$group{$_}"] } '0000:13:00.0', '0000:14:00.1'], '... has the groups of the devices');
my ($mount) = @{ $cdi->{devices}[0]{containerEdits}{mounts} };
is($mount->{containerPath}, '/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/devices/gpu/passthroughd.org-metadata.json', '... and mounts the metadata');
ok(-f $mount->{hostPath}, '... which are there');
my @metadata = metadata_of($pair, 'gpu');
is_deeply([map { $_->{apiVersion} } @metadata], [map { "metadata.resource.k8s.io/$_" } qw(v1beta1 v1alpha1)], 'the metadata, in both versions');
is($metadata[0]{requests}[0]{devices}[0]{attributes}{'resource.kubernetes.io/pciBusID'}{string}, '0000:13:00.0', '... have the address, for KubeVirt');

is_deeply(prepare($pair)->{claims}{ $pair->{uid} }, $answer, 'again is the same');
is(scalar @{ describe($bus)->{allocations} }, 1, '... and the same allocation');
unprepared_ok($pair, 'it is unprepared');
is(allocation_state($bus, "claim-$pair->{uid}"), 'gone', '... and released');
is_deeply([claim_files()], [], '... and no file is left');
unprepared_ok($pair, 'unprepared again');

is(dra_stop(), 0, 'it ends when it is told to');
done_testing();
