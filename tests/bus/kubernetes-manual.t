#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The objects of Kubernetes in passthroughd-kubernetes(7): they can be parsed, and name the driver, classes, requests and attributes that there are.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;

my $page = slurp("$FindBin::Bin/../../man/passthroughd-kubernetes.7");
my $yaml = 'import sys, json, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))';
plan skip_all => 'python3-yaml is not installed' if system('python3 -c "import yaml" 2>/dev/null') != 0;
plan skip_all => 'passthrough-dra is not built'  if !-x "$ENV{BUILD}/passthrough-dra";

# What the program publishes of a node with everything.
node('hgx-h100', configure => 1);
configure(<<'END');
[Daemon]
Fabric=yes
[Pool gpu]
Match=vendor=10de class=0302
Scheduler=kubernetes
[Pool rdma]
Match=vendor=15b3 type=vf id=15b3:101e
VirtualFunctions=4
Scheduler=kubernetes
END
my $slices = JSON::XS->new->decode(scalar qx($ENV{BUILD}/passthrough-dra --config=$ENV{NODE_TMP}/none --print));
my @devices = map { @{ $_->{devices} // [] } } @$slices;
cmp_ok(scalar @devices, '>', 8, 'devices are published');
my %pools      = map { $_->{attributes}{pool}{string} => 1 } @devices;
my %attributes = map { $_ => 1 } map { keys %{ $_->{attributes} } } @devices;
# Only some nodes have these; their names are those of the source.
my $source = slurp("$FindBin::Bin/../../src/kube/slices.c");
ok($source =~ /"vgpuType"/ && $source =~ /"partition%zu"/, 'names of attributes in the source');
$attributes{$_} = 1 for 'vgpuType', map { "partition$_" } 1, 2, 4, 8;

my @blocks = grep { /^apiVersion:/ } $page =~ /^\.Bd -literal[^\n]*\n(.*?)^\.Ed$/gms;
spew("$ENV{NODE_TMP}/all.yaml", join "---\n", map { s/\\e/\\/gr } @blocks);
my $text = qx(python3 -c '$yaml' <$ENV{NODE_TMP}/all.yaml);
is($?, 0, 'the objects can be parsed') or BAIL_OUT('no objects');
my @objects = @{ JSON::XS->new->decode($text) };
is(@objects, @blocks + (() = "@blocks" =~ /^---$/mg), 'each part of a block is one object');

my %kind;
push @{ $kind{ $_->{kind} } }, $_ for @objects;
is_deeply({ map { $_ => scalar @{ $kind{$_} } } keys %kind }, { ClusterRole => 1, ClusterRoleBinding => 1, DeviceClass => 1, ResourceClaimTemplate => 3, VirtualMachine => 3 }, 'their kinds');
is_deeply([grep { !/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/ } map { $_->{metadata}{name} } @objects], [], 'their names');
is_deeply([map { $_->{apiVersion} } @{ $kind{DeviceClass} }, @{ $kind{ResourceClaimTemplate} }], [('resource.k8s.io/v1') x 4], 'the version of the API');
is($kind{ClusterRoleBinding}[0]{roleRef}{name}, $kind{ClusterRole}[0]{metadata}{name}, 'the binding is of the role');
like($kind{DeviceClass}[0]{spec}{selectors}[0]{cel}{expression}, qr/^device\.driver == "passthroughd\.org"$/, 'the class has the devices of the driver');

my $is_ours = sub {
        my ($name) = @_;
        return $name =~ m{^resource\.kubernetes\.io/} ? $attributes{$name} : $name =~ m{^passthroughd\.org/(\w+)$} && $attributes{$1};
};
for my $template (@{ $kind{ResourceClaimTemplate} }) {
        my ($name, $claim) = ($template->{metadata}{name}, $template->{spec}{spec}{devices});
        my @requests = map { $_->{name} } @{ $claim->{requests} };
        is_deeply([grep { $_->{exactly}{deviceClassName} ne $kind{DeviceClass}[0]{metadata}{name} } @{ $claim->{requests} }], [], "$name: the class");
        is_deeply([grep { ($_->{exactly}{count} // 1) != 1 } @{ $claim->{requests} }], [], "$name: KubeVirt takes one device for each request");
        my @expressions = map { $_->{cel}{expression} } map { @{ $_->{exactly}{selectors} } } @{ $claim->{requests} };
        is(scalar(grep { /device\.attributes\["passthroughd\.org"\]/ } @expressions), @requests, "$name: each request chooses by attributes");
        is_deeply([grep { !$attributes{$_} } map { /\["passthroughd\.org"\]\.\??(\w+)/g } @expressions], [], "$name: which there are");
        is_deeply([grep { !$pools{$_} } map { /\.pool == "(\w+)"/ } @expressions], [], "$name: pools");
        for my $constraint (@{ $claim->{constraints} // [] }) {
                ok($is_ours->($constraint->{matchAttribute}), "$name: $constraint->{matchAttribute} is an attribute");
                is_deeply([sort @{ $constraint->{requests} }], [sort @requests], "$name: of all its requests");
        }
}

# kubevirt/kubevirt v1.9.0, staging/src/kubevirt.io/api/core/v1: types.go has resourceClaims, schema.go the claimName and requestName of a GPU and
# a HostDevice. pkg/dra/admitter/dra_admitter.go wants each claim in resourceClaims, either a claim or a template of it, and each pair of names once;
# pkg/dra/utils.go takes one device of a request.
my %templates = map { $_->{metadata}{name} => $_ } @{ $kind{ResourceClaimTemplate} };
my %used;
for my $machine (@{ $kind{VirtualMachine} }) {
        my ($name, $spec) = ($machine->{metadata}{name}, $machine->{spec}{template}{spec});
        my %claims = map { $_->{name} => $templates{ $_->{resourceClaimTemplateName} } } @{ $spec->{resourceClaims} };
        my @devices = (@{ $spec->{domain}{devices}{gpus} }, @{ $spec->{domain}{devices}{hostDevices} // [] });
        is_deeply([map { join ' ', sort keys %$_ } @{ $spec->{resourceClaims} }], [('name resourceClaimTemplateName') x keys %claims], "$name: its claims are of templates");
        is_deeply([map { join ' ', sort keys %$_ } @devices], [('claimName name requestName') x @devices], "$name: each device has the names that KubeVirt knows");
        is_deeply([map { "$_->{claimName} $_->{requestName}" } @devices], [map { my $c = $_; map { "$c $_->{name}" } @{ $claims{$c}{spec}{spec}{devices}{requests} } } sort keys %claims], "$name has each request of its claim");
        my %disks = map { $_->{name} => 1 } @{ $spec->{volumes} };
        is_deeply([grep { !$disks{ $_->{name} } } @{ $spec->{domain}{devices}{disks} }], [], "$name: each disk has a volume");
        $used{ $_->{resourceClaimTemplateName} }++ for @{ $spec->{resourceClaims} };
}
is_deeply([sort keys %used], [sort keys %templates], 'each template has a machine');

# The pools of the page are those of its configuration, which the daemon takes.
my ($ini) = $page =~ /^\.Bd -literal -offset indent\n(\[Pool .*?)^\.Ed$/ms;
configure($ini);
is_deeply({ map { $_->{name} => $_->{scheduler} } @{ describe(Bus->new)->{pools} } }, { map { $_ => 'kubernetes' } keys %pools }, 'the pools of the page');

done_testing();
