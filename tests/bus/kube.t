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
my %group = map { $_->{address} => $_->{iommu_group} } @{ describe($bus)->{devices} };
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

# ---- iommufd

sub nodes { my ($ref) = @_; return [map { map { $_->{path} } @{ $_->{containerEdits}{deviceNodes} } } @{ cdi_of($ref)->{devices} }] }
configure("[Daemon]\nIommufd=yes\n$pools");
ok(wait_until(sub { prepare($pair)->{claims}{ $pair->{uid} }{error} eq '' }), 'Iommufd=yes: prepared');
is(nodes($pair)->[0], '/dev/vfio/vfio', '... but the kernel has no character devices of VFIO');
my @cdevs = map { s{^\Q$ENV{NODE_ROOT}\E/}{}r } map { glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$_/vfio-dev/vfio*" } '0000:13:00.0', '0000:14:00.1';
fault(map { "set $_/dev 511:0" } @cdevs);
ctl('rescan');
ok(wait_until(sub { prepare($pair)->{claims}{ $pair->{uid} }{error} eq '' && nodes($pair)->[0] eq '/dev/iommu' }), 'it has them now');
is_deeply(nodes($pair), [map { ('/dev/iommu', "/dev/vfio/devices/" . s{.*/}{}r) } @cdevs], '... the pod has the character devices, and not the container of VFIO');
configure($pools);
ok(wait_until(sub { prepare($pair)->{claims}{ $pair->{uid} }{error} eq '' && nodes($pair)->[0] eq '/dev/vfio/vfio' }), 'without it, a later try gives the groups again');
unprepared_ok($pair, 'unprepared');

# ---- Slices

ok(wait_until(sub { slices() == 1 }), 'the API server has the node as slices');
my $published = slice_devices();
is(scalar keys %$published, 40, 'eight GPUs and 32 VFs');
my ($gpu, $vf) = @$published{qw(pci-0000-13-00-0 pci-0000-14-00-1)};
is_deeply($gpu->{attributes}, {
                'resource.kubernetes.io/pcieRoot' => { string => 'pci0000:10' }, 'resource.kubernetes.io/pciBusID' => { string => '0000:13:00.0' }, iommuGroup => { int => $group{'0000:13:00.0'} },
                isVF => { bool => JSON::XS::false }, link => { string => 'gen5x16' }, model => { string => device($bus, '0000:13:00.0')->{name} }, numaNode => { int => 0 },
                pool => { string => 'gpu' }, switch => { string => '0000:11:00.0' } }, 'the attributes of a GPU');
is_deeply([map { $vf->{attributes}{$_} } qw(resource.kubernetes.io/pcieRoot switch isVF pool)],
        [{ string => 'pci0000:10' }, { string => '0000:11:00.0' }, { bool => JSON::XS::true }, { string => 'rdma' }], 'a VF beside it has the same root and switch');
my ($slice) = slices();
is_deeply([@{ $slice->{spec} }{qw(driver nodeName pool)}], [DRIVER, NODE, { name => NODE, generation => 1, resourceSliceCount => 1 }], 'driver, node and pool');
is($slice->{metadata}{ownerReferences}[0]{name}, NODE, 'the slice goes with its node');

sub taints { my ($name) = @_; return [map { "$_->{key}=$_->{value}:$_->{effect}" } @{ slice_devices()->{$name}{taints} // [] }] }
sub writes_since { my ($n) = @_; my $log = control()->{log}; return [map { "$_->{method} $_->{status}" } grep { $_->{method} ne 'GET' && $_->{token} eq 'node' } @$log[$n .. $#$log]] }
sub log_length { return scalar @{ control()->{log} } }

prepared_ok($pair, 'the claim again');
# The slices follow the node; until they do, a write belongs to what was before.
my $before;
my $json = JSON::XS->new->canonical;
sub text_of_devices { my (@devices) = @_; delete $_->{timeAdded} for map { @{ $_->{taints} // [] } } @devices; return $json->encode({ map { $_->{name} => $_ } @devices }) }
sub wanted { return text_of_devices(map { @{ $_->{devices} // [] } } @{ $json->decode(scalar qx($ENV{BUILD}/passthrough-dra --config=$ENV{NODE_TMP}/dra.conf --print)) }) }
sub settled { ok(wait_until(sub { text_of_devices(values %{ slice_devices() }) eq wanted() }), 'the slices are those of the node'); return $before = log_length() }
settled();
configure($pools =~ s/^Scheduler.*\n\z//mr);
ok(wait_until(sub { @{ [keys %{ slice_devices() }] } == 8 }), 'a pool that Kubernetes has no more is not in the slices');
is_deeply(writes_since($before), ['PUT 200'], '... by one write');
is((slices())[0]{spec}{pool}{generation}, 1, '... which needs no new generation');
is(allocate($bus, 'human', rdma => 1), 'done', 'a person has a VF');
configure($pools);
my ($held) = map { device_named($_->{address}) } @{ allocation($bus, 'human')->{devices} };
ok(wait_until(sub { "@{ taints($held) }" eq 'passthroughd.org/in-use=allocation:NoSchedule' }), 'the VF of the person is tainted');
is_deeply(taints('pci-0000-13-00-0'), [], '... the devices of a claim are not');
release($bus, 'human');
ok(wait_until(sub { !@{ taints($held) } }), 'released, it is for Kubernetes again');

# ---- A device fails

kubelet('watch', version => $_) for qw(v1 v1alpha1);
ok(wait_until(sub { @{ kubelet('health', version => 'v1alpha1')->{messages} } }), 'the kubelet watches the health of devices');
is_deeply(kubelet('health', version => 'v1')->{messages}[0]{'pci-0000-23-00-0'}, [NODE, 1, ''], 'a GPU is healthy');
my $path = "sys/bus/pci/devices/0000:13:00.0/config";
my $alive = substr slurp("$ENV{NODE_ROOT}/$path"), 0, 256;
sub set_config { my ($bytes) = @_; fault("write $path " . join '', map { sprintf '\\x%02x', $_ } unpack 'C*', $bytes); return ctl('rescan') }
sub health { my ($version, $name) = @_; return (kubelet('health', version => $version)->{messages}[-1]{$name} // [])->[1] // -1 }
set_config("\xff" x 256);
ok(wait_until(sub { health('v1', 'pci-0000-13-00-0') == 2 && health('v1alpha1', 'pci-0000-13-00-0') == 2 }), 'the GPU of a claim fails: it is unhealthy, in both versions');
like(kubelet('health', version => 'v1')->{messages}[-1]{'pci-0000-13-00-0'}[2], qr/0000:13:00.0/, '... with the sentence of the daemon');
is(health('v1', 'pci-0000-23-00-0'), 1, '... the others are not');
ok(wait_until(sub { "@{ taints('pci-0000-13-00-0') }" eq 'passthroughd.org/out-of-service=unhealthy:NoSchedule' }), '... and tainted');
set_config($alive);
ok(wait_until(sub { health('v1', 'pci-0000-13-00-0') == 1 }), 'it is well again');
unprepared_ok($pair, 'unprepared');

# ---- The kubelet starts again, and has removed the slices

settled();
api('DELETE', "/apis/resource.k8s.io/v1/resourceslices/$_->{metadata}{name}") for slices();
kubelet_restart();
kubelet('status');
ok(wait_until(sub { slices() == 1 }), 'they are published again');

# ---- Another driver publishes a device too

my $other = { metadata => { name => 'n1-gpu.example.org' }, spec => { driver => 'gpu.example.org', nodeName => NODE, pool => { name => NODE, generation => 1, resourceSliceCount => 1 },
                devices => [map { { name => device_named($_), attributes => { 'resource.kubernetes.io/pciBusID' => { string => $_ } } } } '0000:33:00.0', '0000:99:00.0'] } };
is((api('POST', '/apis/resource.k8s.io/v1/resourceslices', $other))[0], 201, 'another driver has a slice');
kubelet('status');
ok(wait_until(sub { dra_log() =~ /gpu\.example\.org/ }), 'the journal names it');
$before = log_length();
kubelet('status');
ok(wait_until(sub { my $log = control()->{log}; return grep { $_->{status} && $_->{token} eq 'node' && $_->{path} =~ /resourceslices/ } @$log[$before .. $#$log] }), '... when the slices are read again');
is(scalar(my @told = dra_log() =~ /^.*gpu\.example\.org.*0000:33:00\.0/gm), 1, '... with the device that both have, once');
unlike(dra_log(), qr/0000:99:00/, '... and not with others');
is(scalar(grep { $_->{metadata}{name} =~ /gpu\.example/ } slices()), 1, '... and its slice is left alone');
api('DELETE', '/apis/resource.k8s.io/v1/resourceslices/n1-gpu.example.org');
settled();

# ---- Conflicts, lost replies, an API server that is away

control(faults => { conflicts => 2 });
is(allocate($bus, 'human', rdma => 1, at => [['rdma', '0000:14:00.2']], consumer => uid_of(99)), 'done', 'another engine has a VF');
ok(wait_until(sub { @{ taints('pci-0000-14-00-2') } }), 'after two conflicts the slice is written');
control(faults => { lost => 1 });
release($bus, 'human');
ok(wait_until(sub { !@{ taints('pci-0000-14-00-2') } }), 'a write whose reply is lost is no loss');
kube_stop_api();
my $again = prepare($pair)->{claims}{ $pair->{uid} };
like($again->{error}, qr/API server/, 'a claim that is not prepared needs the API server');
is(allocate($bus, 'human', rdma => 1, at => [['rdma', '0000:14:00.2']], consumer => uid_of(99)), 'done', 'the node changes meanwhile');
kube_start_api();
ok(wait_until(sub { @{ taints('pci-0000-14-00-2') } }), 'the API server is back, and gets all slices');
$pair = claim('pair2', gpu => '0000:13:00.0', nic => '0000:14:00.1');
prepared_ok($pair, 'prepared');
kube_stop_api();
prepared_ok($pair, 'a prepared claim does not need it');
unprepared_ok($pair, 'nor does unprepare');
kube_start_api();

is(dra_stop(), 0, 'it ends when it is told to');
done_testing();
