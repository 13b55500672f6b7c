#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl cdi: the device nodes of an allocation, as the Container Device Interface has them (SPEC.md 0.5.0).
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100');
my $bus = Bus->new->listen;

sub cdi { my ($status, $text) = ctl('cdi', @_); return $status == 0 ? JSON::XS->new->decode($text) : undef }

is(allocate($bus, 'vm1', gpu => 2, rdma => 1), 'done', 'an allocation without CPUs');
my %group   = map { $_->{address} => $_->{iommu_group} } @{ describe($bus)->{devices} };
my @devices = @{ allocation($bus, 'vm1')->{devices} };
my $cdi     = cdi('vm1');
is_deeply([sort keys %$cdi], [qw(cdiVersion devices kind)], 'a document');
is_deeply([@$cdi{qw(cdiVersion kind)}], ['0.5.0', 'passthroughd.org/allocation'], 'its version and kind');
my ($device, @others) = @{ $cdi->{devices} };
is_deeply([$device->{name}, scalar @others], ['vm1', 0], 'one device: the allocation');
my $edits = $device->{containerEdits};
is_deeply([map { $_->{path} } @{ $edits->{deviceNodes} }], ['/dev/vfio/vfio', map { "/dev/vfio/$group{ $_->{address} }" } @devices], 'the node of each group, and that of VFIO once');
is_deeply([map { $_->{permissions} } @{ $edits->{deviceNodes} }], [('rw') x 4], 'for reading and writing');
my %of = map { my $pool = $_; $pool => join ',', map { $_->{address} } grep { $_->{pool} eq $pool } @devices } qw(gpu rdma);
is_deeply($edits->{env}, ['PASSTHROUGH_ALLOCATION=vm1', "PCI_RESOURCE_PASSTHROUGHD_ORG_GPU=$of{gpu}", "PCI_RESOURCE_PASSTHROUGHD_ORG_RDMA=$of{rdma}"], 'and the addresses');
is((ctl('cdi', '--json', 'vm1'))[1], (ctl('cdi', 'vm1'))[1], '--json is the same');

is((ctl('allocate', 'vm2', 'gpu=1', '--hold=60'))[0], 0, 'a reservation');
is(ctl_json('cdi', 'vm2')->{verdict}, 'wrong-state', 'has no document: its devices are not bound');
is(ctl_json('cdi', 'none')->{verdict}, 'no-such-allocation', 'nor has no allocation');
is((ctl('cdi'))[0], 2, 'a name is needed');
is(ctl_json('xml', 'vm1', '--format=docker')->{verdict}, 'invalid-request', 'another format');
is_deeply([release($bus, 'vm1')], ['done'], 'released');
is(ctl_json('cdi', 'vm1')->{verdict}, 'no-such-allocation', 'then there is none');

done_testing();
