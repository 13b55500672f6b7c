#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices come to an allocation and leave it while its guest runs: tests/hypervisor has the documents of the domain.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Hypervisor;
use Node;

node_with_guests('paper-testbed', configure => 1);
configure(slurp("$FindBin::Bin/../nodes/paper-testbed.conf") =~ s/^\[Daemon\]\n/[Daemon]\nSparePorts=1\n/mr);

my $bus    = Bus->new->listen;
my $domain = "$ENV{BUILD}/domain";

sub vm         { return allocation($bus, 'vm') // { devices => [], generation => 0 } }
sub devices_of { return map { "$_->{slot} $_->{phase}" } grep { $_->{slot} } @{ vm()->{devices} } }
sub address_of { my ($slot) = @_; return device_in($bus, 'vm', $slot)->{address} }

sub begin_attach { return begin_hotplug($bus, 'Attach', 'vm', request(@_)) }
sub begin_detach { return begin_hotplug($bus, 'Detach', 'vm', 's', @_) }
sub attach { return $bus->result(begin_attach(@_)) }
sub detach { return $bus->result(begin_detach(@_)) }

# The guest has the device, its definition has it.
sub has {
        my ($address) = @_;
        my $bus_number = (split /:/, $address)[1];
        my ($function) = $address =~ /\.(\d)$/;
        return domain_has(qr{<source>\s*<address domain="0x0000" bus="0x$bus_number" slot="0x00" function="0x$function"/>});
}
sub does { my ($what) = @_; return spew("$domain/does", $what) }

is(allocate($bus, 'vm', gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
guest_runs($bus, 'vm');
is(allocation_state($bus, 'vm'), 'in-use', 'its guest runs');
my $other = address_of('ib-vf0');
is(has($other), 'yes yes', 'with its VF');

# ---- in and out

is(attach('ib-vf' => 1), 'done', 'attach a VF');
my $vf = address_of('ib-vf1');
is(has($vf), 'yes yes', 'the guest and its definition have it');
my ($port) = slurp("$domain/live") =~ m{<alias name="ua-ib-vf1"/>\s*<address type='pci' domain='0x0000' bus='0x(\w\w)'};
my ($above) = slurp("$domain/live") =~ m{<controller [^>]*index="@{[hex($port // 0)]}"[^>]*model="pcie-root-port"[^>]*>.*?bus="0x(\w\w)"}s;
like(slurp("$domain/live"), qr{index="@{[hex($above // 0)]}"[^>]*model="pcie-expander-bus"}, 'on a root port behind the expander of its cell');
is(allocation_state($bus, 'vm'), 'in-use', 'the guest still runs');
is(detach('ib-vf1'), 'done', 'detach it');
is(has($vf), 'no no', 'neither the guest nor its definition has it');
isnt(driver_of($vf), 'vfio-pci', 'it is back');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 settled'], 'and not in the allocation');

# ---- no port is left

is(attach('ib-vf' => 1), 'done', 'a VF in the spare port');
is(attach('ib-vf' => 1), 'failed', 'another one');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 settled', 'ib-vf1 settled'], 'is not attached');
is(detach('ib-vf1'), 'done', 'the port is free again');

# ---- libvirt refuses, or its client dies

does('refuse-request');
is(attach('ib-vf' => 1), 'failed', 'libvirt refuses to attach');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 settled'], 'the allocation is as before');
is(detach('ib-vf0'), 'failed', 'libvirt refuses to detach');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 settled'], 'the allocation is as before');
is(driver_of($other), 'vfio-pci', 'and so is the device');

# Waits for the request of libvirt that hangs, and kills its process.
sub kill_hanging {
        my ($what, $n) = @_;
        my $call = sub { return () = (slurp_existing("$domain/calls") // '') =~ /^$what/mg };
        wait_until(sub { $call->() >= $n }) or die "no $what";
        return kill 'KILL', slurp("$ENV{BUILD}/pid") + 0;
}
sub calls_of { my ($what) = @_; return scalar(() = (slurp_existing("$domain/calls") // '') =~ /^$what/mg) }

does('hang');
my $n_attach = calls_of('attach');
my $job      = begin_attach('ib-vf' => 1);
kill_hanging('attach', $n_attach + 1);
does('break');
is($bus->result($job), 'failed', 'the client dies in an attach');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 settled'], 'which is undone');
does('');

# ---- the guest does not let go

does('guest-refuses');
is(detach('ib-vf0'), 'failed', 'the guest refuses to release a device');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 kept'], 'it keeps the device, and the allocation says so');
is(has($other), 'yes yes', 'the guest has it');
is(driver_of($other), 'vfio-pci', 'on its VFIO driver');
is(allocation_state($bus, 'vm'), 'in-use', 'the allocation is in use');
like((ctl('xml', 'vm'))[1], qr/ua-ib-vf0/, 'its document has the device');
restart();
libvirt_reports($bus, running_domain('vm', vm()->{id}, map { $_->{address} } @{ vm()->{devices} }));
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 kept'], 'the next daemon knows it');
does('guest-is-late');
is(detach('ib-vf0'), 'done', 'the guest releases it, later');
is(has($other), 'no no', 'the guest does not have it');
does('');

# ---- a process has the device open when libvirt says that it is removed

is(attach('ib-vf' => 1), 'done', 'a VF');
$vf = address_of('ib-vf0');
my $group = device($bus, $vf)->{iommu_group};
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
is(detach('ib-vf0'), 'failed', 'it is open');
is_deeply([devices_of()], ['gpu0 settled', 'ib-vf0 detaching'], 'it is on its way back');
is(driver_of($vf), 'vfio-pci', 'but still on its VFIO driver');
is_error($bus->call('Attach', 'sta{sv}', 'vm', vm()->{generation}, (request('ib-vf' => 1))[1]), 'WrongState', ['wrong-state', 'vm'], 'an attach');
fault('remove proc/4242');
is(detach('ib-vf0'), 'done', 'it is closed');
is_deeply([devices_of()], ['gpu0 settled'], 'the allocation does not have it');

# ---- the daemon dies while libvirt serves a request

for my $what ('attach', 'detach') {
        is(attach('ib-vf' => 1), 'done', "$what: a VF") if $what eq 'detach';
        does('hang');
        my $n = calls_of($what);
        $what eq 'attach' ? begin_attach('ib-vf' => 1) : begin_detach('ib-vf0');
        wait_until(sub { calls_of($what) > $n }) or die 'no request';
        $vf = address_of('ib-vf0');
        daemon('stop', 'KILL');
        kill 'KILL', slurp("$ENV{BUILD}/pid") + 0;
        does('');
        is(daemon('start'), 0, "$what: the next daemon starts");
        libvirt_reports($bus, running_domain('vm', vm()->{id}, map { $_->{address} } @{ vm()->{devices} }));
        ok(wait_until(sub { join(' ', devices_of()) eq 'gpu0 settled' }), "$what: the device is detached") or diag(devices_of());
        isnt(driver_of($vf), 'vfio-pci', "$what: it is back");
        is(has($vf), 'no no', "$what: the guest does not have it");
}

# ---- the guest has its device by iommufd: before Linux 6.19 and QEMU 11.0 two devices do not reach each other

my $lost    = names('iommufd', 'GPUDirect', '6.19', '11.0');
my $without = slurp("$domain/live");
unlike(ctl_json('attach', 'vm', 'ib-vf=1')->{message} // '', qr/iommufd/, 'a guest without iommufd loses nothing');
is(detach('ib-vf0'), 'done', 'detached');
spew("$domain/live", $without =~ s{(<hostdev\b[^>]*>)}{$1<driver name="vfio" iommufd="yes"/>}gr);
my ($status, $said) = ctl('attach', 'vm', 'ib-vf=1');
is($status, 0, 'attach to a guest with iommufd');
like($said, $lost, 'says that peer-to-peer DMA is lost');
is(detach('ib-vf0'), 'done', 'detached');
like(ctl_json('attach', 'vm', 'ib-vf=1')->{message} // '', $lost, '... and so does its JSON');
is(detach('ib-vf0'), 'done', 'detached');
spew("$domain/live", $without);

# ---- the guest ends during an attach, and the allocation with it

hypervisor($domain);
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'a release');
is(allocate($bus, 'vm', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1), 'done', 'an allocation that ends with its guest');
guest_runs($bus, 'vm');
fault('reset', 'hang 2');
$job = begin_attach('ib-vf' => 1);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'an attach hangs');
hypervisor($domain);
libvirt_reports($bus);
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'ready' }), 'the guest ends');
fault('release');
is($bus->result($job), 'done', 'the attach ends');
ok(wait_until(sub { !allocation($bus, 'vm') }), 'the allocation is released');
fault('reset');
is(allocate($bus, 'vm', gpu => 1, cpus => 2, memory => 2**30), 'done', 'another one');
guest_runs($bus, 'vm');

# ---- the daemon is killed during an attach, and the kernel does not return

fault('reset', 'unkillable 2');
begin_attach('ib-vf' => 1);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'an attach hangs in the kernel');
$vf = address_of('ib-vf0');
my $n_writes = writes();
restart('KILL');
libvirt_reports($bus, running_domain('vm', vm()->{id}, address_of('gpu0')));
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'in-use' }), 'the next daemon knows the guest');
is(device($bus, $vf)->{state}, 'stuck', 'the device is stuck');
ok(!wait_until(sub { writes() != $n_writes }, 2), 'nothing more is written to it') or diag(join "\n", write_log());
is(device($bus, $vf)->{allocation}, 'vm', 'it stays in the allocation');
fault('release');
ok(wait_until(sub { !grep { /^ib-vf0/ } devices_of() }), 'when the kernel returns, the attach is undone');
ok(wait_until(sub { device($bus, $vf)->{state} eq 'available' }), 'and the device can be had') or diag(device($bus, $vf)->{reason});

# ---- libvirt does not report

write_raw("die\n");
kill 'KILL', libvirt_process();
ok(wait_until(sub { describe($bus)->{libvirt}{reason} }), 'libvirt is lost');
is_error($bus->call('Attach', 'sta{sv}', 'vm', vm()->{generation}, (request('ib-vf' => 1))[1]), 'Unavailable', ['busy', 'vm'], 'an attach is refused');

done_testing();
