#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# An idle device on a VFIO driver does not go to D3, and is with the host again as it was.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my $pools = slurp("$FindBin::Bin/../nodes/hgx-h100.conf");
configure($pools);
my $bus = Bus->new->listen;
my ($gpu, $other) = map { $_->{address} } grep { ($_->{pool} // '') eq 'gpu' } @{ describe($bus)->{devices} };

sub power { my ($address) = @_; return join ' ', map { slurp_existing("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/$_") =~ s/\n//r } qw(power/control d3cold_allowed) }

sub may_sleep {
        my ($address, $control, $d3cold) = @_;
        fault("set sys/bus/pci/devices/$address/power/control $control", "set sys/bus/pci/devices/$address/d3cold_allowed $d3cold");
        return;
}

sub answers { my ($address) = @_; return slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/config") !~ /^\xff{64}/ }

sub taken { my ($bus, $name) = @_; return grep { ($_->{slot} // '') =~ /^gpu/ } @{ allocation($bus, $name)->{devices} } }

sub quarantined { my ($bus) = @_; return map { $_->{address} } @{ describe($bus)->{quarantine} } }

# ---- there and back

for my $prior (['auto', 1], ['on', 1], ['auto', 0], ['on', 0]) {
        my $what = "control $prior->[0], D3cold $prior->[1]";
        may_sleep($_, @$prior) for $gpu, $other;
        my $before = tree();
        is(allocate($bus, 'guest', gpu => 2), 'done', "$what: allocated");
        is(power($_), 'on 0', "$what: $_ is kept awake") for $gpu, $other;
        fault("idle $_") for $gpu, $other;
        ok(answers($_), "$what: $_ answers when it was idle") for $gpu, $other;
        is(release($bus, 'guest'), 'done', "$what: released");
        is_deeply([quarantined($bus)], [], "$what: nothing is in quarantine");
        same_tree($before, "$what: all is as before");
}

# ---- a write fails

may_sleep($_, 'auto', 1) for $gpu, $other;
my $before = tree();
fault('reset');
is(allocate($bus, 'guest', gpu => 2), 'done', 'allocated');
my $writes = writes();
fault('reset');
is(release($bus, 'guest'), 'done', 'released');
my $back = writes();
for my $n (1 .. $writes) {
        for my $kind ("fail $n EIO", "silent $n", "fail-after $n EIO") {
                fault('reset', $kind);
                isnt(allocate($bus, 'guest', gpu => 2), 'done', "$kind: not allocated");
                same_tree($before, "$kind: all is as before");
        }
}
for my $n (1 .. $back) {
        for my $kind ("fail $n EIO", "fail-after $n EIO") {
                fault('reset');
                is(allocate($bus, 'guest', gpu => 2), 'done', "release, $kind: allocated");
                fault('reset', $kind);
                release($bus, 'guest');
                for my $address (grep { driver_of($_) eq 'vfio-pci' } $gpu, $other) {
                        is(power($address), 'on 0', "release, $kind: $address is still with VFIO, and awake");
                }
                fault('reset');
                release($bus, 'guest') if allocation_state($bus, 'guest') ne 'gone';
                clear_quarantine($bus);
                same_tree($before, "release, $kind: in the end all is as before");
        }
}

# ---- it stays with VFIO

fault('reset');
is(allocate($bus, 'guest', gpu => 2), 'done', 'allocated');
fault('reset', 'fail 1 EIO');
is(release($bus, 'guest'), 'done', 'released, though one cannot be reset');
my ($bad) = quarantined($bus);
is(power($bad), 'on 0', 'in quarantine it is kept awake');
fault('reset', "idle $bad");
is(clear_quarantine($bus), 1, 'it leaves the quarantine');
same_tree($before, 'and all is as before');

configure($pools =~ s/^(\[Daemon\]\n)/$1AfterRelease=keep\n/mr);
$bus = Bus->new->listen;
is(allocate($bus, 'guest', gpu => 2), 'done', 'a pool that keeps its devices');
is(release($bus, 'guest'), 'done', 'released');
is(driver_of($_) . ' ' . power($_), 'vfio-pci on 0', "$_ stays with VFIO, and awake") for $gpu, $other;
fault("idle $_") for $gpu, $other;
is(allocate($bus, 'guest', gpu => 2), 'done', 'the next guest has them');
ok(answers($_), "$_ answers") for $gpu, $other;
is(release($bus, 'guest'), 'done', 'released');
is(driver_of($_) . ' ' . power($_), 'vfio-pci on 0', "$_ is as before") for $gpu, $other;

# ---- another hand has bound it

configure($pools);
$bus = Bus->new->listen;
for my $address ($gpu, $other) {
        other_hand_binds($address, '');
        may_sleep($address, 'on', 1);
        other_hand_binds($address, 'vfio-pci');
        is(power($address), 'auto 1', "$address may go to D3");
}
my ($found) = grep { $_->{check} eq 'power' } @{ ctl_json('check')->{findings} };
is($found->{result}, 'warning', 'which a check finds');
like($found->{message}, names($gpu, '1 more'), 'and tells');
is(allocate($bus, 'guest', gpu => 2), 'done', 'allocated as they are');
is(power($_), 'on 0', "$_ is kept awake") for $gpu, $other;
($found) = grep { $_->{check} eq 'power' } @{ ctl_json('check')->{findings} };
is($found->{result}, 'ok', 'so the check finds nothing');
is(release($bus, 'guest'), 'done', 'released');
is(driver_of($_) . ' ' . power($_), 'vfio-pci on 0', "$_ is still with VFIO, and awake") for $gpu, $other;

# ---- bound at the start

for my $address ($gpu, $other) {
        other_hand_binds($address, 'nvidia');
        may_sleep($address, 'on', 1);
}
other_hand_binds($other, 'vfio-pci');
configure($pools =~ s/^(\[Pool gpu\]\n)/$1Bind=start\n/mr);
$bus = Bus->new->listen;
is(driver_of($_), 'vfio-pci', "$_ is bound at the start") for $gpu, $other;
is(power($gpu), 'on 0', 'the one that the daemon bound is kept awake');
is(power($other), 'on 0', 'and so is the one that another hand bound');

# D3cold, override, unbind, probe, and the write that keeps it awake.
for my $n (1 .. 5) {
        for my $kind (qw(before after)) {
                other_hand_binds($gpu, 'nvidia');
                may_sleep($gpu, 'on', 1);
                daemon('stop', 'TERM');
                fault('reset', "kill $n $kind");
                daemon('start');
                fault('reset');
                restart();
                is(driver_of($gpu) . ' ' . power($gpu), 'vfio-pci on 0', "the job was killed $kind write $n: the next start keeps it awake");
        }
}
$bus = Bus->new->listen;

# ---- not read, so not written

fault("remove sys/bus/pci/devices/$gpu/power", "remove sys/bus/pci/devices/$gpu/d3cold_allowed");
is(allocate($bus, 'guest', gpu => 1), 'done', 'without power management: allocated');
is(release($bus, 'guest'), 'done', 'without power management: released');

done_testing();
