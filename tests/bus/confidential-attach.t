#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A guest that is not confidential keeps its devices and loses them, whatever confidential mode its pool has since.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Hypervisor;
use Node;

node_with_guests('hgx-h100', configure => 1);
my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/^\[Daemon\]\n/[Daemon]\nSparePorts=2\n/mr;
configure($conf);

my $bus = Bus->new->listen;

sub change   { my ($method, @call) = @_; return hotplug($bus, $method, 'vm', @call) }
sub slots    { return join ' ', map { "$_->{slot} $_->{phase}" } grep { $_->{slot} } @{ allocation($bus, 'vm')->{devices} } }

is(allocate($bus, 'vm', gpu => 1, rdma => 2, cpus => 4, memory => 2**32), 'done', 'an allocation');
guest_runs($bus, 'vm');
is(allocation_state($bus, 'vm'), 'in-use', 'its guest runs');
spew("$ENV{NODE_TMP}/passthroughd.conf", $conf =~ s/^(\[Pool gpu\]\n)/$1ConfidentialMode=on\n/mr);
is((ctl('reload'))[0], 0, 'its GPU is of a pool for confidential guests now');
my ($signature, $entries) = request(gpu => 1);
is_error($bus->call('Attach', "st$signature", 'vm', Node::generation($bus, 'vm'), $entries), 'NotSupported', ['not-supported', 'confidential guest'], 'a GPU in mode on does not come to it');
is(slots(), 'gpu0 settled rdma0 settled rdma1 settled', '... and nothing has changed');
is(change('Attach', request(rdma => 1)), 'done', 'a NIC does');
is(change('Detach', 's', $_), 'done', "$_ leaves it") for qw(rdma0 rdma1 gpu0);
is(slots(), 'rdma2 settled', '... and the allocation');
is_error($bus->call('Attach', "st$signature", 'vm', Node::generation($bus, 'vm'), $entries), 'NotSupported', ['not-supported', 'confidential guest'], 'a GPU in mode on does not come to a guest without GPU');
hypervisor("$ENV{BUILD}/domain");
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'a release');
is(allocate($bus, 'vm', gpu => 1), 'done', 'devices alone, for a guest of another program');
is(change('Attach', request(gpu => 1)), 'done', '... get a GPU in mode on');
is(release($bus, 'vm'), 'done', 'a release');

done_testing();
