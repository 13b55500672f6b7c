#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices that go away and come back, and a node that is read again while a job is at work.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my $path   = "sys/devices/pci0000:80/0000:80:02.0/$gpu";
my $bus    = Bus->new->listen;
my $daemon = pid();

sub rescan_kernel { fault('write sys/bus/pci/rescan 1'); return }

sub signals { my @names = $bus->signal_names(); $bus->forget_signals(); return grep { /^Device/ } @names }

# ---- a free device

my $before = tree();
fault("remove $path");
ok(!$bus->call('Rescan')->{error}, 'a free GPU is removed, and a rescan');
is_deeply([signals()], ['DeviceRemoved'], 'is told');
is_deeply(devices_state($bus, 'gpu'), {}, 'none is left');
is_error($bus->call('Explain', 's', $gpu), 'NoSuchDevice', ['no-such-device', $gpu], 'it is not there');
rescan_kernel();
ok(!$bus->call('Rescan')->{error}, 'it comes back');
is_deeply([signals()], ['DeviceAdded'], 'is told');
is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, 'it is on offer');
same_tree($before, 'the tree is that of the start');

# ---- an allocated one

is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'vanished: a GPU and a VF are allocated');
my @devices = @{ describe($bus)->{allocations}[0]{devices} };
fault('reset', "remove $path");
ok(!$bus->call('Rescan')->{error}, 'vanished: the GPU is removed, and a rescan');
is($bus->call('ListAllocations')->{body}[0][0][0], 'guest', 'vanished: the allocation is kept');
my ($gone) = grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} };
is($gone->{state}, 'missing', 'vanished: its device is missing');
is($gone->{allocation}, 'guest', 'vanished: but still allocated');
is_deeply([map { "$_->{address} $_->{guest_address}" } @{ describe($bus)->{allocations}[0]{devices} }],
        [map { "$_->{address} $_->{guest_address}" } @devices], 'vanished: no device changes its address in the guest');
restart();
$daemon = pid();
$bus->forget_signals();
is($bus->call('ListAllocations')->{body}[0][0][1], 'failed', 'vanished: also by the next daemon');
nothing_written('vanished: nothing is written');
my $offset = log_since();
is(release($bus, 'guest'), 'done', 'vanished: it can be released');
unlike(log_since($offset), qr/Failed/, 'vanished: without complaints');
ok(!(grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} }), 'vanished: then the missing one is gone');
is(device($bus, $vf)->{state}, 'available', 'vanished: and the one that is there on offer');
rescan_kernel();
ok(!$bus->call('Rescan')->{error}, 'vanished: it comes back');
same_tree($before, 'vanished: the tree is that of the start');

# ---- a device that goes while a job is at work on it

sub begin {
        my ($what, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        my $reply = $bus->call('Allocate', "s$signature", 'guest', $entries);
        is($reply->{error}, undef, "$what: the job begins");
        ok(wait_until(sub { grep { /PENDING/ } write_log() }), "$what: and a write waits");
        return $reply->{body}[1];
}

for my $n (1 .. 5) {
        my $what = "a GPU goes in write $n";
        fault('reset', "unkillable $n");
        my $job = begin($what, gpu => 1, 'ib-vf' => 1);
        fault("remove $path");
        ok(!$bus->call('Rescan')->{error}, "$what: rescan");
        fault('release');
        my $result = $bus->result($job) // 'nothing';
        like($result, qr/^(?:done|failed)$/, "$what: the job ends, as $result");
        fault('reset');
        for (1 .. 2) { release($bus, 'guest') if @{ $bus->call('ListAllocations')->{body}[0] } }
        is_deeply($bus->call('ListAllocations')->{body}[0], [], "$what: nothing stays allocated");
        rescan_kernel();
        ok(!$bus->call('Rescan')->{error}, "$what: it comes back");
        same_tree($before, "$what: the tree is that of the start");
}

# ---- the node and the configuration are read again in the middle of a job

fault('reset', 'unkillable 2');
my $job = begin('rescan', gpu => 1, 'ib-vf' => 1);
for (1 .. 3) {
        ok(!$bus->call($_)->{error}, "$_ in the middle of a job") for 'Rescan', 'Reload';
}
is(device($bus, $gpu)->{state}, 'allocated', 'the GPU is allocated all the time');
fault('release');
is($bus->result($job), 'done', 'the job ends well');
is(release($bus, 'guest'), 'done', 'its release too');
same_tree($before, 'the tree is that of the start');
is(pid(), $daemon, 'the daemon lives');
ok(!$bus->ping()->{error}, 'and answers');

done_testing();
