#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations that running guests use, by the status files that libvirt keeps of them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my $bus = Bus->new->listen;

# The status file of a domain on these devices.
sub status {
        my (@devices) = @_;
        my $list = join '', map {
                my ($domain, $slot_bus, $slot, $function) = split /[:.]/;
                "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x$domain' bus='0x$slot_bus' slot='0x$slot' function='0x$function'/></source></hostdev>"
        } @devices;
        return "<domstatus state='running' reason='booted' pid='4242'><domain type='kvm' id='1'><name>md-worker</name><devices>$list</devices></domain></domstatus>";
}

sub rescan { return !$bus->call('Rescan')->{error} }

sub release_refused {
        my ($words, $what) = @_;
        return is_error($bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation}), 'Unavailable', ['busy', $words], $what);
}

is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'a GPU is allocated');
is(allocation_state($bus, 'guest'), 'ready', 'no guest runs');
$bus->forget_signals();

fault('set proc/4242/comm qemu-system-x86', 'set run/libvirt/qemu/md-worker.xml ' . status($gpu), 'set run/libvirt/qemu/md-worker.pid 4242');
ok(rescan(), 'one does');
is(allocation_state($bus, 'guest'), 'in-use', 'the allocation is in use');
ok($bus->signals_until(sub { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'in-use' }), 'that is told');
like((ctl('allocations'))[1], qr/^guest +in-use /m, 'and shown');
is(describe($bus)->{allocations}[0]{state}, 'in-use', 'and described');
release_refused(names('md-worker', 'guest'), 'a release');
restart();
is(allocation_state($bus, 'guest'), 'in-use', 'the next daemon sees it too');

# A file that says nothing may be of a guest that has anything: what was known stays, and open files decide.
fault('set run/libvirt/qemu/other.xml <domstatus');
my $offset = log_since();
ok(rescan(), 'a status file that is cut off');
like(log_since($offset), names('/run/libvirt/qemu'), 'is told in the log');
ok(rescan(), 'and');
is(() = log_since($offset) =~ m{/run/libvirt/qemu}g, 1, 'once');
is(allocation_state($bus, 'guest'), 'in-use', 'the allocation stays in use');
my $group = device($bus, $gpu)->{iommu_group};
fault("link proc/4242/fd/7 /dev/vfio/$group");
release_refused(names(4242, 'qemu-system-x86'), 'a release while the device is open');
fault('remove run/libvirt/qemu/other.xml', 'remove proc/4242/fd');

# Gone while nobody tidied up: the file is still there.
fault('remove proc/4242');
ok(rescan(), 'its process died without libvirt');
is(allocation_state($bus, 'guest'), 'ready', 'ready again');
fault('set proc/4242/comm qemu-system-x86', 'set run/libvirt/qemu/md-worker.xml ' . status($vf));
ok(rescan(), 'a guest on something else');
is(allocation_state($bus, 'guest'), 'ready', 'is none of its business');
is(device($bus, $vf)->{state}, 'contested', 'but what it has is off the market');
like(device($bus, $vf)->{reason}, names("'md-worker'", $vf), 'and it says why');
isnt(ctl_json('plan', 'ib-vf=1')->{devices}[0]{address}, $vf, 'others are given out instead');
like((ctl('plan', 'ib-vf=4'))[2], names($vf, 'md-worker'), 'and it is told of where it is missed');
fault('set run/libvirt/qemu/md-worker.xml ' . status($vf, $gpu));
ok(rescan(), 'it gets the GPU too');
is(allocation_state($bus, 'guest'), 'in-use', 'in use');
fault('remove proc/4242');
ok(rescan(), 'it ends');
is(device($bus, $vf)->{state}, 'available', 'and the VF is on the market again');
is(release($bus, 'guest'), 'done', 'a release looks for itself whether the guest still runs');

# The pid in the status file now belongs to another program, or to the QEMU of another domain.
my $uuid = '4b20d080-1b54-4048-85b3-a6a62d165c01';
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'another program: a GPU is allocated');
fault('set run/libvirt/qemu/md-worker.xml ' . status($gpu) =~ s{(?=<devices>)}{<uuid>$uuid</uuid>}r);
my %program = (
        'its QEMU'          => ['qemu-system-x86_64', '-name', 'guest=md-worker', '-uuid', $uuid, '-no-user-config'],
        'another QEMU'      => ['qemu-system-x86_64', '-uuid', $uuid =~ s/1$/2/r],
        'a program with it' => ['less', "$uuid.log", $uuid],
        'a kernel thread'   => [],
);
for my $what (sort keys %program) {
        my $state = $what eq 'its QEMU' ? 'in-use' : 'ready';
        fault('set proc/4242/comm program', 'set proc/4242/cmdline ' . join '', map { "$_\\x00" } @{ $program{$what} });
        ok(rescan(), "$what has the pid");
        is(allocation_state($bus, 'guest'), $state, "$what: the allocation is $state");
}
# libvirt writes the status file before the child that it started has become QEMU.
fault('set proc/4242/cmdline libvirtd\\x00', 'set run/libvirt/qemu/md-worker.xml ' . status($gpu) =~ s{(?=<devices>)}{<uuid>$uuid</uuid>}r =~ s{state='running' reason='booted'}{state='paused' reason='starting up'}r);
ok(rescan(), 'its QEMU is about to start');
is(allocation_state($bus, 'guest'), 'in-use', 'its QEMU is about to start: the allocation is in use');
release_refused(names('md-worker', 'guest'), 'its QEMU is about to start: a release');
fault('set run/libvirt/qemu/md-worker.xml ' . status($gpu) =~ s{(?=<devices>)}{<uuid>$uuid</uuid>}r);
fault('set proc/4242/cmdline less\\x00');
fault("link proc/4242/fd/7 /dev/vfio/$group");
release_refused(names(4242), 'another program: a release while the device is open');
fault('remove proc/4242/fd');
is(release($bus, 'guest'), 'done', 'another program: it is released');
fault('remove proc/4242');

# Asked for with the allocation: it goes with the domain.
for my $away (0, 1) {
        my $what = $away ? 'with its domain, while the daemon is away' : 'with its domain';
        is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1), 'done', "$what: a GPU");
        ok(rescan(), "$what: before there is one");
        is(allocation_state($bus, 'guest'), 'ready', "$what: nothing happens");
        fault('set proc/4242/comm qemu-system-x86', 'set run/libvirt/qemu/md-worker.xml ' . status($gpu));
        ok(rescan(), "$what: it runs");
        is(allocation_state($bus, 'guest'), 'in-use', "$what: in use");
        daemon('stop') if $away;
        fault('remove proc/4242');
        $away ? start_again($bus, $what) : ok(rescan(), "$what: it ends");
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), "$what: released");
        is(driver_of($gpu), 'nvidia', "$what: and back");
}

# A ledger that cannot be trusted: nothing is released then.
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1), 'done', 'a broken ledger: a GPU');
fault('set proc/4242/comm qemu-system-x86', 'set run/libvirt/qemu/md-worker.xml ' . status($gpu));
ok(rescan(), 'a broken ledger: a domain runs');
daemon('stop');
my $broken = ledger_file('broken');
spew($broken, '{');
fault('remove proc/4242', 'reset');
my $state = snapshot(times => 1);
is(daemon('start'), 0, 'a broken ledger: the domain ended while the daemon was away');
ok(rescan(), 'a broken ledger: and a rescan');
is(allocation_state($bus, 'guest'), 'ready', 'a broken ledger: it is not released');
nothing_written('a broken ledger: nothing is written to the node');
same_state($state, 'a broken ledger: nor to the ledger', times => 1);
daemon('stop');
unlink $broken;
start_again($bus, 'a mended ledger');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), 'a mended ledger: it is released');

done_testing();
