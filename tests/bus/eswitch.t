#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The mode of a PF's eswitch is shown and never changed; a devlink that does not answer costs that alone; what switchdev mode refuses is
# refused with the reason.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::PP;
use POSIX qw(mkfifo);
use Test::More;

use Node;

node('connectx', configure => 1);

my $pools = slurp("$FindBin::Bin/../nodes/connectx.conf");
my ($ethernet, $igb, $infiniband, $ofed, $switchdev) = map { "0000:$_:00.0" } qw(11 12 81 82 83);
my %modes = ($ethernet => 'legacy', $igb => undef, $infiniband => undef, $ofed => undef, $switchdev => 'switchdev');
my $file  = "sys/bus/pci/devices/$switchdev/vf-netlink/eswitch_mode";
my $fifo  = "$ENV{NODE_TMP}/fifo";

configure($pools);
my $bus = Bus->new->listen;

sub mode { my ($address) = @_; return device($bus, $address)->{eswitch_mode} }

# The children of the daemon that ask.
sub asking { return daemon_children('passthroughd-es') }

sub becomes {
        my ($address, $mode, $name) = @_;
        ok(wait_until(sub { (mode($address) // 'null') eq ($mode // 'null') }), $name) or diag(mode($address) // 'null');
        return;
}

# Until whoever asks now has ended, as long as there is nothing else to be asked.
sub answered { return wait_until(sub { !daemon_children() }) }

# The other program that asks.
sub devlink {
        my ($address) = @_;
        my $text = qx(LD_PRELOAD=$ENV{BUILD}/tests/netlink.so devlink dev eswitch show pci/$address 2>&1);
        return $text =~ /: mode (\S+)/ ? $1 : undef;
}

# ---- shown

becomes($switchdev, 'switchdev', 'the mode is there soon after the start');
answered();
my %described = map { $_->{address} => $_ } @{ describe($bus)->{devices} };
is_deeply({ map { $_ => $described{$_}{eswitch_mode} } keys %modes }, \%modes, 'each PF has its own, or none');
is_deeply([grep { !exists $described{$_}{eswitch_mode} } keys %described], [], 'every device has the key');
is_deeply([grep { defined $described{$_}{eswitch_mode} && !exists $modes{$_} } keys %described], [], 'what is no PF has none');
SKIP: {
        skip 'no devlink(8)', 1 if system('command -v devlink >/dev/null') != 0;
        is_deeply({ map { $_ => devlink($_) } keys %modes }, \%modes, 'devlink(8) says the same');
}
my (undef, $text) = ctl('show', $switchdev);
like($text, qr/^Eswitch mode: +switchdev$/m, 'show');
(undef, $text) = ctl('show', $igb);
unlike($text, qr/Eswitch/, 'show: nothing where there is none');
(undef, $text) = ctl('sriov', $switchdev);
like($text, names($switchdev, 4, 'switchdev'), 'sriov');
(undef, $text) = ctl('sriov', $igb);
like($text, qr/^\Q$igb\E has 4 of 7 VFs\.$/m, 'sriov: nothing where there is none');

# ---- as it changes

for my $mode (qw(switchdev_inactive legacy)) {
        fault("set $file $mode");
        ctl('rescan');
        becomes($switchdev, $mode, "$mode: seen by a rescan");
}
fault("set $file something");
ctl('rescan');
becomes($switchdev, undef, 'a mode that is not known: null');
fault("set $file switchdev");
ctl('rescan');
becomes($switchdev, 'switchdev', 'known again');
answered();

# ---- what its driver refuses in that mode

my $before = tree();
my $state  = snapshot();
for my $try (['vlan=5', ''], ['trust=on', ''], ['spoof-check=off', ''], ['vlan=7 qos=3', '']) {
        my $from = log_since();
        my ($signature, $entries) = request(switchdev => 1, 'vf-attributes' => [['switchdev0', $try->[0]]]);
        my $reply = $bus->call('Allocate', "s$signature", 'guest', $entries);
        is($reply->{error}, undef, "$try->[0]: begun") or next;
        is($bus->result($reply->{body}[1]), 'failed', "$try->[0]: fails");
        like(log_since($from),
                names(qr/eth2_\d/, $switchdev),
                "$try->[0]: says why, and what to do");
        is(allocation_state($bus, 'guest'), 'gone', "$try->[0]: nothing stays allocated");
        same_tree($before, "$try->[0]: nor changed");
}
same_state($state, 'what is on disk is as before');
my ($signature, $entries) = request(switchdev => 1, 'vf-attributes' => [['switchdev0', 'mac=02:00:00:00:00:07 max-rate=100']]);
is($bus->result($bus->call('Allocate', "s$signature", 'guest', $entries)->{body}[1]), 'done', 'a MAC and a rate are given');
my ($vf) = grep { $_->{slot} eq 'switchdev0' } @{ allocation($bus, 'guest')->{devices} };
my ($index) = grep { readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$switchdev/virtfn$_") =~ /\Q$vf->{address}\E/ } 0 .. 3;
is(slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$switchdev/vf-netlink/$index/mac"), "02:00:00:00:00:07\n", 'the kernel has the MAC');
is(slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$switchdev/vf-netlink/$index/rate"), "0 100\n", 'and the rate');
is(release($bus, 'guest'), 'done', 'released');
same_tree($before, 'and as before');

# The representor may be elsewhere: then devlink tells that there is one.
my $net = "sys/bus/pci/devices/$switchdev/net";
fault(map { "set $net/eth2_$_/phys_port_name p0" } 0 .. 3);
my $from = log_since();
($signature, $entries) = request(switchdev => 1, 'vf-attributes' => [['switchdev0', 'vlan=5']]);
is($bus->result($bus->call('Allocate', "s$signature", 'guest', $entries)->{body}[1]), 'failed', 'a representor that is not found: fails');
like(log_since($from), qr/\bswitchdev\b/, 'and says so');
$from = log_since();
($signature, $entries) = request(ethernet => 1, 'vf-attributes' => [['ethernet0', 'pkey=0x8001']]);
is($bus->result($bus->call('Allocate', "s$signature", 'guest', $entries)->{body}[1]), 'failed', 'another mode: fails');
unlike(log_since($from), qr/\bswitchdev\b/, 'and is not blamed on that');

# ---- a devlink that never answers

mkfifo($fifo, oct 600) or die "$fifo: $!";

sub hang { fault("remove $file", "link $file ../../../../../../../fifo"); return }

my $warning = names('devlink', $switchdev, 'ignoring');
sub warnings { my @found = slurp("$ENV{NODE_TMP}/daemon.log") =~ /$warning/g; return scalar @found }

configure("[Daemon]\nJobTimeoutSec=3\n$pools");
$bus = Bus->new->listen;
becomes($switchdev, 'switchdev', 'before it hangs');
answered();
hang();
is(daemon('restart'), 0, 'hangs: the daemon starts');
$bus = Bus->new->listen;
becomes($ethernet, 'legacy', 'hangs: what was asked before is known');
ok(wait_until(sub { asking() == 1 }), 'hangs: one process asks');
is(warnings(), 0, 'hangs: and waits');
ok(!$bus->ping()->{error}, 'hangs: the daemon answers');
is(mode($switchdev), undef, 'hangs: it is null meanwhile');
is(allocate($bus, 'other', ethernet => 1, switchdev => 1), 'done', 'hangs: devices are allocated, those of that PF too');
is(release($bus, 'other'), 'done', 'hangs: and released');
ctl('rescan');
is(scalar asking(), 1, 'hangs: no second one');
ok(wait_until(sub { warnings() == 1 }), 'hangs: it is given up');
ok(wait_until(sub { warnings() == 2 }), 'hangs: after the rescan it was asked once more');
ok(answered(), 'hangs: the process is gone');
is(mode($switchdev), undef, 'hangs: it stays null');
fault("remove $file", "set $file legacy");
is(allocate($bus, 'other', ethernet => 1, switchdev => 1), 'done', 'not asked again: when devices are bound');
is(release($bus, 'other'), 'done', 'not asked again: nor when they are released');
is(mode($switchdev), undef, 'not asked again: it is null');
is(warnings(), 2, 'not asked again: nothing more is said');
ctl('rescan');
becomes($switchdev, 'legacy', 'a rescan asks');

# ---- a PF whose driver goes and comes

SKIP: {
        skip 'the node cannot send events', 4 if $ENV{NODE_EVENTS} ne 'yes';
        configure('');
        $bus = Bus->new->listen;
        fault("write sys/bus/pci/devices/$switchdev/sriov_numvfs 0");
        becomes($switchdev, 'legacy', 'a driver that goes: before');
        fault("write sys/bus/pci/drivers/mlx5_core/unbind $switchdev");
        becomes($switchdev, undef, 'a driver that goes: null');
        fault("set $file switchdev", "write sys/bus/pci/drivers/mlx5_core/bind $switchdev");
        becomes($switchdev, 'switchdev', 'a driver that comes: asked');
        hang();
        fault("write sys/bus/pci/drivers/mlx5_core/unbind $switchdev", "write sys/bus/pci/drivers/mlx5_core/bind $switchdev");
        becomes($switchdev, undef, 'a driver that comes at once: what was so before does not stay');
}

done_testing();
