#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A pool with Scheduler=nova: the daemon prepares its devices, expects Nova's guests on them, and cleans a device after each guest.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Guests;
use Node;

my ($gpu, $vf, $other) = qw(0000:13:00.0 0000:14:00.1 0000:14:00.2);
node_with_guests('hgx-h100', configure => 1);
configure("[Daemon]\nLibvirt=qemu:///system\n[Pool gpu]\nMatch=address=$gpu\nScheduler=nova\n[Pool vf]\nMatch=pf=0000:14:00.0\nVirtualFunctions=2\nScheduler=nova\n");
my $bus = Bus->new->listen;

sub runs        { my (@devices) = @_; return libvirt_reports($bus, @devices ? running_domain('instance-1', UUID, @devices) : ()) }
sub state_of    { my ($address) = @_; return device($bus, $address)->{state} }
sub quarantined { return sort map { $_->{address} } @{ describe($bus)->{quarantine} } }
sub resets      { my ($address) = @_; return scalar(grep { m{/$address/reset 1 } } write_log()) }
sub becomes {
        my ($address, $state, $what) = @_;
        wait_until(sub { state_of($address) eq $state });
        return is(state_of($address), $state, $what);
}

# ---- prepared, and not offered

ok(wait_until(sub { driver_of($gpu) eq 'vfio-pci' && driver_of($vf) eq 'vfio-pci' }), 'the GPU and the VFs that the daemon creates are bound');
is(ctl_json('plan', 'gpu=1')->{verdict}, 'scheduled', 'no request gets the GPU');
is(ctl_json('plan', 'gpu=1', "--at=gpu=$gpu")->{verdict}, 'scheduled', 'nor by its address');
my ($status, $out) = ctl('nova-config');
is($status, 0, 'the configuration of Nova');
my ($section, @lines) = split /\n/, $out;
is($section, '[pci]', 'its section');
my @specs = map { JSON::XS->new->decode(s{^device_spec = }{}r) } @lines;
is_deeply([sort map { $_->{address} } @specs], [$gpu, $vf, $other], 'each device');
is_deeply([map { $_->{managed} } @specs], [('no') x 3], 'whose driver libvirt leaves alone');
is_deeply(ctl_json('nova-config'), { device_spec => \@specs, report_in_placement => JSON::XS::false }, 'and as JSON');

# ---- a guest of Nova

my $before = resets($gpu);
runs($gpu);
becomes($gpu, 'allocated', 'a guest is expected on the device');
is(device($bus, $gpu)->{allocation}, undef, 'which has no allocation');
is(state_of($vf), 'available', 'the others are free');
is(resets($gpu), $before, 'nothing is reset under the guest');
runs();
becomes($gpu, 'available', 'after the guest the device is free');
is(resets($gpu), $before + 1, 'and was reset');
is(driver_of($gpu), 'vfio-pci', 'it stays bound');
is_deeply([quarantined()], [], 'nothing is in quarantine');

# ---- the guest ends or starts while no daemon runs

runs($gpu);
becomes($gpu, 'allocated', 'a guest again');
$before = resets($gpu);
is(daemon('stop'), 0, 'the daemon stops');
write_guests();
is(daemon('start'), 0, 'and starts after the guest has ended');
becomes($gpu, 'available', 'it cleans the device');
is(resets($gpu), $before + 1, 'by a reset');
is(daemon('stop'), 0, 'the daemon stops');
write_guests(running_domain('instance-2', UUID, $gpu));
is(daemon('start'), 0, 'and starts after a guest has started');
becomes($gpu, 'allocated', 'the guest is noticed');
is(resets($gpu), $before + 1, 'and nothing is reset under it');
runs();
becomes($gpu, 'available', 'the device is free after it');
is(resets($gpu), $before + 2, 'and clean');

# ---- the process of the guest still has the device open

my $process = 'proc/4242';
runs($gpu);
becomes($gpu, 'allocated', 'a guest whose process takes long to end');
fault("set $process/comm qemu-system-x86", "link $process/fd/7 /dev/vfio/" . device($bus, $gpu)->{iommu_group});
$before = resets($gpu);
runs();
becomes($gpu, 'quarantined', 'the device is not free while it is open');
like(describe($bus)->{quarantine}[0]{reason}, names('qemu-system-x86'), 'and the quarantine says why');
is(resets($gpu), $before, 'nothing is reset');
fault("remove $process");
becomes($gpu, 'available', 'it is cleaned without another event');
is(resets($gpu), $before + 1, 'by a reset');

# ---- a device that does not come back clean

runs($gpu);
becomes($gpu, 'allocated', 'a guest once more');
fault('reset', 'fail 1 EIO');
runs();
becomes($gpu, 'quarantined', 'a device that cannot be reset stays out of use');
is_deeply([quarantined()], [$gpu], 'for an admin to look at');
restart();
libvirt_reports($bus);
is(state_of($gpu), 'quarantined', 'also after a restart');
fault('reset');
is((ctl('quarantine', '--clear', $gpu))[0], 0, 'who clears it');
is(state_of($gpu), 'available', 'and it is free again');

# ---- a reload that offers a device which a guest of somebody else has

my $offered = "[Daemon]\nLibvirt=qemu:///system\n[Pool gpu]\nMatch=address=$gpu\n";
configure($offered);
$bus->forget_signals();
runs($vf);
isnt(state_of($vf), 'contested', 'a VF of no pool: that a guest has it is not told');
spew("$ENV{NODE_TMP}/passthroughd.conf", "$offered\[Pool vf]\nMatch=pf=0000:14:00.0\n");
is($bus->call('Reload')->{error}, undef, 'a pool gets it');
is(state_of($vf), 'contested', 'then it is contested');
like(device($bus, $vf)->{reason}, names('instance-1', $vf), '... by the guest');

done_testing();
