#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A driver's refusal of a VF attribute in switchdev mode is reported with the mode and the representor. The daemon asks devlink only then,
# so a devlink that does not answer holds up nothing else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(mkfifo);
use Test::More;

use Node;

node('connectx', configure => 1);

my $pools = slurp("$FindBin::Bin/../nodes/connectx.conf");
my $switchdev = '0000:83:00.0';
my $file  = "sys/bus/pci/devices/$switchdev/vf-netlink/eswitch_mode";
my $fifo  = "$ENV{NODE_TMP}/fifo";

configure($pools);
my $bus = Bus->new->listen;

# ---- The representors are names of the PF. A terminal of 80 columns has room for two names.
for my $words ('sriov', 'list --all') {
        local %ENV = %ENV;
        delete $ENV{COLUMNS};
        my @lines = split /\r?\n/, scalar qx(script -qec "stty cols 80; passthroughctl $words" /dev/null </dev/null);
        is_deeply([grep { length > 80 } @lines], [], "$words: no line is wider than the terminal");
        is(scalar(grep { /^\Q$switchdev\E .* mlx5_3 eth2 and 4 more / } @lines), 1, "$words: two names, and how many more") or diag(join "\n", @lines);
}

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
configure("[Daemon]\nJobTimeoutSec=4\n$pools");
$bus = Bus->new->listen;
fault("remove $file", "link $file ../../../../../../../fifo");
is(daemon('restart'), 0, 'hangs: the daemon starts');
$bus = Bus->new->listen;
is(allocate($bus, 'other', ethernet => 1, switchdev => 1), 'done', 'hangs: devices are allocated, those of that PF too');
is(release($bus, 'other'), 'done', 'hangs: and released');
ctl('rescan');
ok(wait_until(sub { !daemon_children() }), 'hangs: no process waits for devlink');

done_testing();
