#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices that nobody uses are looked at: one that does not answer, or counted fatal errors, is nobody's until it is well again. It holds
# up no other, whoever has it may give it back, and what a guest has is left alone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my ($gpu, $other, $third, $host, $pf) = qw(0000:13:00.0 0000:23:00.0 0000:33:00.0 0000:43:00.0 0000:14:00.0);
my %path   = map { $_ => readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_") =~ s{^(?:\.\./)+}{sys/}r } $gpu, $other, $third, $host;
my %config = map { $_ => slurp("$ENV{NODE_ROOT}/$path{$_}/config") } $gpu, $other, $third, $host;
my $pools  = join '', map { "$_\n" } '[Pool gpu]', (map { "Match=address=$_" } $gpu, $other, $third), 'Bind=start', '[Pool host]', "Match=address=$host",
        '[Pool vf]', "Match=type=vf pf=$pf", 'VirtualFunctions=2', 'Bind=start';
my $bus;

sub state_of { my ($address) = @_; return device($bus, $address)->{state} // 'none' }

sub becomes {
        my ($address, $state, $name) = @_;
        ok(wait_until(sub { state_of($address) eq $state }), $name) or diag(state_of($address), ': ', device($bus, $address)->{reason} // '');
        return;
}

# Another hand writes the beginning of its config space: ones, or what it was.
sub set_config { my ($address, $bytes) = @_; fault("write $path{$address}/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $bytes); return }
sub dies  { my ($address) = @_; return set_config($address, "\xff" x 256) }
sub lives { my ($address) = @_; return set_config($address, substr $config{$address}, 0, 256) }

# So many children of the daemon are left, those that look and others that end soon; none.
sub looked { my ($left) = @_; return wait_until(sub { daemon_children() == ($left // 0) }) }

sub rescan { ctl('rescan'); return looked() }

sub start {
        my ($conf) = @_;
        configure($conf);
        $bus = Bus->new->listen;
        return looked();
}

# A signal that its state is another one.
sub signalled {
        my ($address, $state) = @_;
        return scalar $bus->signals_until(sub {
                ($_->{member} // '') eq 'PropertiesChanged' && $_->{path} =~ s{.*/}{}r =~ s/_([0-9a-f]{2})/chr hex $1/ger eq $address
                        && ($_->{body}[1]{State} // '') eq $state;
        });
}

sub errors {
        my ($address, $n) = @_;
        fault("set $path{$address}/aer_dev_fatal Undefined 0\\nDLP $n\\nTOTAL_ERR_FATAL $n");
        return;
}

# ---- at start

dies($gpu);
errors($other, 5);
start($pools);
is(driver_of($_), 'vfio-pci', "bound at start: $_") for $gpu, $other, $third;
becomes($gpu, 'unhealthy', 'one that is dead is off the market soon after the start');
my $device = device($bus, $gpu);
like($device->{reason}, names($gpu), 'with the evidence');
is($device->{verdict}, 'unhealthy', 'in a word');
my @vfs = map { $_->{address} } grep { ($_->{pool} // '') eq 'vf' } @{ describe($bus)->{devices} };
is(scalar @vfs, 2, 'there are VFs, whose ids read as ones');
is(state_of($_), 'available', "as before: $_") for $other, $third, $host, @vfs;
ok(!plan_ok($bus, gpu => 3), 'nobody gets it');
is(allocate($bus, 'guest', gpu => 2), 'done', 'the others can be had');
is(release($bus, 'guest'), 'done', 'and go back');
like((ctl('explain', $gpu))[1], names('passthroughctl rescan'), 'explain says why, and what to do');
is(state_of($other), 'available', 'fatal errors from before the start do not count');

# ---- a rescan

lives($gpu);
$bus->forget_signals();
rescan();
ok(signalled($gpu, 'available'), 'a rescan finds it well, and that is signalled');
is(device($bus, $gpu)->{reason}, undef, 'without a reason');
history_shows($gpu, sub { "@_" =~ /\bunhealthy healthy\b/ }, 'its history has both');
dies($host);
rescan();
is(state_of($host), 'available', 'one that a driver of the host has is left to it');
lives($host);
my %evidence = (
        'another device' => [sub { set_config($gpu, "\x86\x80") }, sub { lives($gpu) },                         names($gpu)],
        'D3cold'         => [sub { dies($gpu); fault("set $path{$gpu}/power_state D3cold") }, sub { lives($gpu) }, names('D3cold')],
        'power'          => [sub { fault("set $path{$gpu}/power_state error") }, sub { fault("set $path{$gpu}/power_state D0") }, names($gpu)],
);
for my $what (sort keys %evidence) {
        my ($break, $mend, $reason) = @{ $evidence{$what} };
        $break->();
        rescan();
        like(device($bus, $gpu)->{reason}, $reason, "$what: it says so");
        $mend->();
        rescan();
        becomes($gpu, 'available', "$what: and when it is well again");
}
fault("set $path{$gpu}/power_state $_"), rescan(), is(state_of($gpu), 'available', "in $_ it may be, if it answers") for qw(unknown D3hot D3cold D0);

# ---- fatal errors

errors($other, 7);
rescan();
becomes($other, 'unhealthy', 'fatal errors');
like(device($bus, $other)->{reason}, names(2), 'fatal errors: how many');
errors($other, 8);
rescan();
like(device($bus, $other)->{reason}, names(3), 'fatal errors: still more');
rescan();
becomes($other, 'available', 'fatal errors: no more of them');

# ---- events

SKIP: {
        skip 'the node cannot send events', 7 if $ENV{NODE_EVENTS} ne 'yes';
        $bus->forget_signals();
        dies($gpu);
        fault("event change $gpu");
        ok(signalled($gpu, 'unhealthy'), 'an event: it is looked at, and that is signalled');
        lives($gpu);
        fault("event change $gpu");
        ok(signalled($gpu, 'available'), 'an event: well again');
        errors($other, 9);
        fault("event change $other");
        becomes($other, 'unhealthy', 'an event: errors');
        dies($gpu);
        fault("event change $other", "event change $gpu");
        becomes($gpu, 'unhealthy', 'an event: another one');
        is(state_of($other), 'unhealthy', 'an event that tells of no more errors forgives none');
        rescan();
        becomes($other, 'available', 'a rescan does');
        fault("remove $path{$gpu}");
        ok(wait_until(sub { device($bus, $gpu)->{error} }), 'one that goes away is forgotten');
        fault('write sys/bus/pci/rescan 1');
        ok(wait_until(sub { !device($bus, $gpu)->{error} }), 'and looked at when it comes back');
        becomes($gpu, 'unhealthy', 'and dead as before');
}

# ---- with an allocation

lives($gpu);
start($pools);
is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated');
my ($held) = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my $node = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$held/iommu_group") =~ s{.*/}{/dev/vfio/}r;
fault('set proc/4242/comm qemu', "link proc/4242/fd/9 $node");
looked();
dies($held);
rescan();
is(state_of($held), 'allocated', 'allocated: what somebody has open is left alone');
fault('remove proc/4242');
rescan();
becomes($held, 'unhealthy', 'allocated: else it is looked at');
is(device($bus, $held)->{allocation}, 'guest', 'allocated: it stays where it is');
is(allocation_state($bus, 'guest'), 'ready', 'allocated: as the allocation does');
is(release($bus, 'guest'), 'done', 'allocated: it can be released');
is(state_of($held), 'quarantined', 'allocated: and is in quarantine then');
lives($held);
rescan();
is(state_of($held), 'quarantined', 'allocated: which an admin alone ends');
clear_quarantine($bus);
becomes($held, 'available', 'allocated: it is looked at afterwards');

# ---- dead without an event

my ($vf) = @vfs;
$path{$vf}   = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$vf") =~ s{^(?:\.\./)+}{sys/}r;
$config{$vf} = slurp("$ENV{NODE_ROOT}/$path{$vf}/config");

for ([host => $host, driver_of($host)], [gpu => $gpu, 'vfio-pci'], [vf => $vf, 'vfio-pci']) {
        my ($pool, $device, $driver) = @$_;
        my $what = "$pool, dead without an event";
        my @peers = grep { ($_->{pool} // '') eq $pool } @{ describe($bus)->{devices} };
        dies($device);
        fault('reset');
        is(allocate($bus, 'guest', $pool => scalar @peers), 'failed', "$what: not allocated");
        nothing_written("$what: found before the first write");
        is(allocation_state($bus, 'guest'), 'gone', "$what: no allocation is left");
        is(state_of($device), 'unhealthy', "$what: off the market");
        like(device($bus, $device)->{reason}, names($device), "$what: with the evidence");
        is(driver_of($device), $driver, "$what: on its driver");
        ok(!plan_ok($bus, $pool => scalar @peers), "$what: and in no plan");
        if (@peers > 1) {
                is(allocate($bus, 'guest', $pool => @peers - 1), 'done', "$what: the others can be had");
                is(release($bus, 'guest'), 'done', "$what: and go back");
        }
        rescan();
        is(state_of($device), 'unhealthy', "$what: a rescan finds it dead as before");
        lives($device);
        rescan();
        becomes($device, 'available', "$what: a rescan finds it well");
}

# The override, the unbind, and the bind.
fault('reset', 'hang 3');
my ($signature, $entries) = request(host => 1);
my $asked = $bus->call('Allocate', "s$signature", 'guest', $entries);
ok(wait_until(sub { grep { /^3 .*PENDING/ } write_log() }), 'dies while it is bound: the bind hangs');
dies($host);
fault('release');
is($bus->result($asked->{body}[1]), 'failed', 'dies while it is bound: not allocated');
is(allocation_state($bus, 'guest'), 'gone', 'dies while it is bound: no allocation is left');
is(state_of($host), 'unhealthy', 'dies while it is bound: off the market');
lives($host);
rescan();
becomes($host, 'available', 'dies while it is bound: a rescan finds it well');

# ---- fatal errors during an allocation

for my $after (qw(restore keep)) {
        start(join '', map { "$_\n" } '[Pool host]', "Match=address=$host", "AfterRelease=$after");
        for my $restarts (0, 1) {
                my $what    = "fatal errors, AfterRelease=$after, restarts: $restarts";
                my $between = sub { restart(), $bus = Bus->new->listen, looked() if $restarts };
                errors($host, 3);
                is(allocate($bus, 'guest', host => 1), 'done', "$what: those from before do not count");
                $between->();
                is(release($bus, 'guest'), 'done', "$what: without others the device can be had again");
                is(state_of($host), 'available', "$what: at once");
                is(allocate($bus, 'guest', host => 1), 'done', "$what: allocated again");
                errors($host, 5);
                $between->();
                is(release($bus, 'guest'), 'done', "$what: released");
                is(state_of($host), 'quarantined', "$what: not offered");
                like(device($bus, $host)->{reason}, names($host), "$what: with the evidence");
                errors($host, 0);
                clear_quarantine($bus);
                rescan();
                becomes($host, 'available', "$what: until an admin says so");
        }
}

# ---- one that does not answer at all

start("[Daemon]\nJobTimeoutSec=4\n$pools");
dies($third);
fault("unkillable-read $path{$gpu}/config");
ctl('rescan');
becomes($gpu, 'unhealthy', 'hangs: it is told');
like(device($bus, $gpu)->{reason}, names($gpu), 'hangs: and why');
becomes($third, 'unhealthy', 'hangs: the others are looked at all the same');
ok(looked(1), 'hangs: one process waits for it');
lives($third);
ctl('rescan');
becomes($third, 'available', 'hangs: a rescan looks at the others');
ok(looked(1), 'hangs: and not once more at that one');
is(state_of($other), 'available', 'hangs: nothing else is off the market');
fault('release');
becomes($gpu, 'available', 'hangs: as the read returns, it is looked at once more');
ok(looked(), 'hangs: and nobody waits any more');
fault("hang-read $path{$gpu}/config");
ctl('rescan');
becomes($gpu, 'unhealthy', 'a process that can be killed');
ok(looked(), 'is killed');
fault('release');
# On a slow machine a look may be late once more.
ok(wait_until(sub { rescan(); state_of($gpu) eq 'available' }), 'and a rescan finds it well');

done_testing();
