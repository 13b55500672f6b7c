#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFIO variant drivers: which device gets which, and that it is remembered.
use strict;
use warnings;

use File::Path qw(make_path);
use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;

node('variants', configure => 1);

my $conf    = slurp("$FindBin::Bin/../nodes/variants.conf");
my $dropins = "$ENV{NODE_TMP}/passthroughd.conf.d";
make_path($dropins);
my $bus = Bus->new->listen;
configure($conf);
my $before = tree();
my @vm     = (cpus => 2, memory => 2**30);

sub drivers_of { my ($name) = @_; return { map { $_->{slot} => driver_of($_->{address}) } @{ allocation($bus, $name)->{devices} } } }

# ---- each device gets the driver that is made for it, the most particular one that is loaded

my $plan = JSON::XS->new->decode($bus->call('Plan', request(gpu => 1, rdma => 1, @vm))->{body}[0]);
is((grep { /bind \S+ to mlx5_vfio_pci/ } @{ $plan->{steps} }), 1, 'the plan says which driver a VF gets') or diag(explain($plan->{steps}));
is(allocate($bus, 'vm1', gpu => 1, rdma => 1, @vm), 'done', 'a GPU and a VF');
is_deeply(drivers_of('vm1'), { gpu0 => 'nvgrace-gpu-vfio-pci', rdma0 => 'mlx5_vfio_pci' }, 'are on the drivers of their makers');
is(allocation_state($bus, 'vm1'), 'ready', 'which is in order');

my %driver = %{ drivers_of('vm1') };
my ($gpu)  = map { $_->{address} } grep { $_->{slot} eq 'gpu0' } @{ allocation($bus, 'vm1')->{devices} };
restart('KILL');
$bus = Bus->new->listen;
is_deeply(drivers_of('vm1'), \%driver, 'another daemon leaves them there');
is(allocation_state($bus, 'vm1'), 'ready', 'and finds them in order');
other_hand_binds($gpu, 'vfio-pci');
is($bus->call('Rescan')->{error}, undef, 'somebody binds the GPU to the plain driver');
is(device($bus, $gpu)->{state}, 'contested', 'that is not the one it was promised on');
like(device($bus, $gpu)->{reason}, names('nvgrace-gpu-vfio-pci'), 'and the sentence says so');
restart();
$bus = Bus->new->listen;
wait_until(sub { driver_of($gpu) eq 'nvgrace-gpu-vfio-pci' });
is(driver_of($gpu), 'nvgrace-gpu-vfio-pci', 'a restart binds it again');
wait_until(sub { allocation_state($bus, 'vm1') eq 'ready' });

# ---- VfioDriver= says otherwise, for the next one

spew("$dropins/driver.conf", "[Daemon]\nVfioDriver=vfio-pci\n");
is($bus->call('Reload')->{error}, undef, 'VfioDriver=vfio-pci');
is(allocate($bus, 'vm2', gpu => 1, rdma => 1, @vm), 'done', 'a GPU and a VF');
is_deeply(drivers_of('vm2'), { gpu0 => 'vfio-pci', rdma0 => 'vfio-pci' }, 'are on that one');
is_deeply(drivers_of('vm1'), \%driver, 'those from before stay where they are');
is(release($bus, $_), 'done', "$_ is released") for qw(vm1 vm2);
same_tree($before, 'the tree is that of the start');

# ---- a recorded node

spew("$dropins/driver.conf", '');
my ($status, $out, $err) = ctl('plan', qw(--steps gpu=1 --cpus 2 --memory 2G --node), "$ENV{BUILD}/nodes/variants.tree", '--config', "$FindBin::Bin/../nodes/variants.conf");
is($status, 0, 'a plan on a recorded node') or diag($err);
like($out, names('nvgrace-gpu-vfio-pci'), 'has the driver of that kernel');

done_testing();
