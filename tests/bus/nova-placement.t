#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# One-time-use devices of Nova: the agent returns a device to Placement after the daemon has cleaned it, and not before.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;
use Placement;
use PlacementProxy;

placement_needed();
my ($gpu, $class) = qw(0000:13:00.0 CUSTOM_PCI_10DE_2330);
my ($root, $provider, $consumer) = map { "33333333-0000-4000-8000-00000000000$_" } 1 .. 3;
node_with_guests('hgx-h100', configure => 1);
configure("[Daemon]\nLibvirt=qemu:///system\n[Pool gpu]\nMatch=address=$gpu\nScheduler=nova\nOneTimeUse=yes\n");
my $bus = Bus->new->listen;

sub runs { my (@devices) = @_; return libvirt_reports($bus, @devices ? running_domain('instance-1', UUID, @devices) : ()) }
sub becomes {
        my ($state, $what) = @_;
        wait_until(sub { device($bus, $gpu)->{state} eq $state });
        return is(device($bus, $gpu)->{state}, $state, $what);
}
sub inventory { return (placement('GET', "/resource_providers/$provider/inventories"))[1] }
sub reserved  { return inventory()->{inventories}{$class}{reserved} }

# What Nova writes: all is reserved when an instance gets the device.
sub report {
        my ($reserved) = @_;
        my $generation = (placement('GET', "/resource_providers/$provider"))[1]{generation};
        my ($status)   = placement('PUT', "/resource_providers/$provider/inventories",
                { resource_provider_generation => $generation, inventories => { $class => { total => 1, max_unit => 1, reserved => $reserved } } });
        return $status == 200 || die "inventories: $status";
}

# Nova gives the device to an instance.
sub starts {
        my ($status) = placement('PUT', "/allocations/$consumer",
                { allocations => { $provider => { resources => { $class => 1 } } }, project_id => 'p', user_id => 'u', consumer_generation => undef, consumer_type => 'INSTANCE' });
        $status == 204 or die "claim: $status";
        report(1);
        return runs($gpu);
}

placement_start();
placement('POST', '/resource_providers', { name => 'nova1',       uuid => $root });
placement('POST', '/resource_providers', { name => "nova1_$gpu", uuid => $provider, parent_provider_uuid => $root });
placement('PUT', "/resource_classes/$class");
report(0);
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=nova1', 'AddRoot=no');
my $before = inventory();
is((agent('--once'))[0], 0, 'a comparison');
is_deeply(inventory(), $before, 'leaves Nova\'s provider alone');
is(ctl_json('nova-config')->{device_spec}[0]{one_time_use}, 'true', 'Nova is told that the device is for one use');
like((ctl('nova-config'))[1], qr/^report_in_placement = true$/m, 'and that it is reported to Placement, without which Nova does not start');

starts();
becomes('allocated', 'an instance has the device');
my $agent = agent_start();
placement('DELETE', "/allocations/$consumer");
runs();
becomes('available', 'the instance is gone, and the device is clean');
ok(wait_until(sub { reserved() == 0 }), 'the agent returns it');

starts();
becomes('allocated', 'an instance again');
runs();
becomes('available', 'whose claim outlives it');
is((agent('--once'))[0], 0, 'a comparison');
is(reserved(), 1, 'a claimed device is not returned');
placement('DELETE', "/allocations/$consumer");
kill 'HUP', $agent;
ok(wait_until(sub { reserved() == 0 }), 'it is returned when the claim is gone');

# ---- an instance starts and ends while no daemon runs. The agent sees the device only when it is clean again.

kill 'STOP', $agent;
my $resets = () = grep { m{/$gpu/reset 1 } } write_log();
is(daemon('stop'), 0, 'the daemon stops');
report(1);
is(daemon('start'), 0, 'and starts after the instance is gone');
becomes('available', 'it cleans the device');
is(scalar(() = grep { m{/$gpu/reset 1 } } write_log()), $resets + 1, 'which it did not see in use');
kill 'CONT', $agent;
ok(wait_until(sub { reserved() == 0 }), 'then the agent returns it');

starts();
becomes('allocated', 'an instance once more');
placement('DELETE', "/allocations/$consumer");
is((agent('--once'))[0], 0, 'a comparison while the guest still runs');
is(reserved(), 1, 'a device in a guest is not returned');
fault('reset', 'fail 1 EIO');
runs();
becomes('quarantined', 'the device does not come back clean');
is((agent('--once'))[0], 0, 'a comparison');
is(reserved(), 1, 'it is not returned either');
agent_stop($agent);
fault('reset');
is((ctl('quarantine', '--clear', $gpu))[0], 0, 'an admin has cleaned it');
is((agent('--once'))[0], 0, 'a comparison');
is(reserved(), 0, 'it is returned');

# A guest starts and ends while the agent waits for Placement.
agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=nova1', 'AddRoot=no');
is(scalar compare_through(sub {
        my (undef, $path, undef, undef, $reply) = @_;
        return if $reply || $path ne "/resource_providers/$provider/inventories" || reserved();
        $bus = Bus->new->listen;
        starts();
        wait_until(sub { device($bus, $gpu)->{state} eq 'allocated' });
        fault('reset', 'fail 1 EIO');
        runs();
        placement('DELETE', "/allocations/$consumer");
        wait_until(sub { device($bus, $gpu)->{state} eq 'quarantined' });
        return;
}), 0, 'a comparison during which a guest has the device');
is(device($bus, $gpu)->{state}, 'quarantined', 'which is not clean');
is(reserved(), 1, 'and is not returned');

done_testing();
