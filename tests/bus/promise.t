#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A promise that the node can no longer keep is told once, with what to do; its document is refused until it can be kept again.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('connectx', configure => 1);

my $bus = Bus->new->listen;
my $pf  = '0000:11:00.0';
configure(slurp("$FindBin::Bin/../nodes/connectx.conf"));
$bus = Bus->new->listen;


# The promise of 'guest' is broken, as the reason says; the bus is told.
sub broken {
        my ($what, $words) = @_;
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'failed' }), "$what: the state");
        like(allocation($bus, 'guest')->{reason} // '', $words, "$what: the reason");
        my $reply = $bus->call('GetDomainXML', 'sa{sv}', 'guest', []);
        like($reply->{error} // '', qr/[.](?:Unavailable|Insufficient)$/, "$what: the document is refused");
        like($reply->{body}[0], $words, "$what: for that reason");
        return;
}

sub kept {
        my ($what) = @_;
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), "$what: ready again");
        is(allocation($bus, 'guest')->{reason}, undef, "$what: without a reason");
        is($bus->call('GetDomainXML', 'sa{sv}', 'guest', [])->{error}, undef, "$what: with a document");
        return;
}

# A VF of the PF gets other attributes from another hand.
sub ip {
        my (@command) = @_;
        local $ENV{LD_PRELOAD} = "$ENV{BUILD}/tests/netlink.so";
        return system('ip', @command) == 0;
}

# The state of 'guest' is signalled within a second of the change.
sub notified {
        my ($what, $state, $change) = @_;
        return within_a_second($bus, $what, $change, sub { $_->{member} eq 'PropertiesChanged' && $_->{path} =~ m{/allocation/guest$} && ($_->{body}[1]{State} // '') eq $state });
}

# ---- attributes of a VF

my ($signature, $entries) = request(ethernet => 1, cpus => 2, memory => 2**30, 'vf-attributes' => [['ethernet0', 'vlan=100 max-rate=1000 trust=off mac=02:00:00:00:00:07']]);
my $reply = $bus->call('Allocate', "s$signature", 'guest', $entries);
is($bus->result($reply->{body}[1]), 'done', 'attributes: a VF with a VLAN') or diag($reply->{body}[0]);
my $vf = allocation($bus, 'guest')->{devices}[0]{address};
my ($index) = grep { readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/virtfn$_") =~ /\Q$vf\E$/ } 0 .. 3;
my ($interface) = map { s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/net/*";
kept('attributes');

SKIP: {
        skip 'no ip', 64 if !grep { -x "$_/ip" } split /:/, $ENV{PATH};
        my @changes = (
                ['vlan',        '0',                 '100',               qr/vlan=100.*vlan=0/],
                ['mac',         '02:00:00:00:00:08', '02:00:00:00:00:07', qr/mac=02:00:00:00:00:07.*mac=02:00:00:00:00:08/],
                ['trust',       'on',                'off',               qr/trust=off.*trust=on/],
                ['max_tx_rate', '500',               '1000',              qr/max-rate=1000.*max-rate=500/],
        );
        my $n = 0;
        for my $change (@changes) {
                my ($name, $other, $promised, $words) = @$change;
                $n++;
                notified("$name changed", 'failed', sub { ok(ip('link', 'set', $interface, 'vf', $index, $name, $other), "$name: it is changed") });
                broken($name, qr/\Q$vf\E.*$words/);
                history_shows($vf, sub { $n == grep { $_ eq 'promise-broken' } @_ }, "$name: in the history");
                is(device($bus, $vf)->{state}, 'contested', "$name: the device is contested");
                notified("$name given again", 'ready', sub { ok(ip('link', 'set', $interface, 'vf', $index, $name, $promised), "$name: it is given again") });
                kept($name);
                history_shows($vf, sub { $n == grep { $_ eq 'promise-kept' } @_ }, "$name: in the history too");
        }
}

# Where nothing notifies: at a rescan, and at the next start.
my $vlan = "sys/bus/pci/devices/$pf/vf-netlink/$index/vlan";
fault("set $vlan 0 0 802.1q");
ok(!$bus->call('Rescan')->{error}, 'a rescan');
broken('rescan', qr/vlan=100.*vlan=0/);
restart();
$bus = Bus->new->listen;
broken('restart', qr/vlan=100.*vlan=0/);
fault("set $vlan 100 0 802.1q");
ok(!$bus->call('Rescan')->{error}, 'a rescan');
kept('rescan');

# ---- a VF that a guest has, after a reset of its PF

# The guest has the VF open. No event tells of the reset, only the interface of the PF.
SKIP: {
        skip 'no ip', 15 if !grep { -x "$_/ip" } split /:/, $ENV{PATH};
        my $dir  = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$vf") =~ s{^(?:[.]{2}/)*}{sys/}r;
        my $header = slurp("$ENV{NODE_ROOT}/$dir/config");
        my $group  = readlink("$ENV{NODE_ROOT}/$dir/iommu_group") =~ s{.*/}{/dev/vfio/}r;
        my $write  = sub { fault("write $dir/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', substr($_[0], 0, 64)) };
        my $link   = sub { ok(ip('link', 'set', $interface, 'vf', $index, 'spoofchk', $_[0]), "reset: the interface changes, $_[0]") };
        fault('set proc/4242/comm qemu', "link proc/4242/fd/9 $group");
        for my $again (sub { $link->('off') }, sub { ok(!$bus->call('Rescan')->{error}, 'reset: a rescan') }) {
                $write->("\xff" x 64);
                is(device($bus, $vf)->{state}, 'allocated', 'reset: nothing tells of it');
                $link->('on');
                ok(wait_until(sub { device($bus, $vf)->{state} eq 'unhealthy' }), 'reset: the VF is found dead');
                like(device($bus, $vf)->{reason}, names($vf), 'reset: with the evidence');
                is(allocation($bus, 'guest')->{devices}[0]{address}, $vf, 'reset: the guest keeps it');
                $write->($header);
                $again->();
                ok(wait_until(sub { device($bus, $vf)->{state} eq 'allocated' }), 'reset: then it is found well');
        }
        history_shows($vf, sub { 4 == grep { $_ eq 'healthy' || $_ eq 'unhealthy' } @_ }, 'reset: its history has it all');
        fault('remove proc/4242');
}

# ---- a driver, CPUs and hugepages

# The simulator tells udev of what it is given, where it can.
sub changed {
        my ($what, $state, @commands) = @_;
        return notified($what, $state, sub { fault(@commands) }) if $ENV{NODE_EVENTS} eq 'yes';
        fault(@commands);
        return ok(!$bus->call('Rescan')->{error}, "$what: a rescan");
}

my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$vf") =~ s{^(?:[.]{2}/)*}{sys/}r;
changed('driver, another hand unbinds', 'failed', "write $path/driver/unbind $vf");
broken('driver', qr/\Q$vf\E/);
changed('driver, and binds', 'ready', "write $path/driver_override vfio-pci", "write sys/bus/pci/drivers_probe $vf");
kept('driver');

my $online = slurp("$ENV{NODE_ROOT}/sys/devices/system/cpu/online") =~ s/\n//r;
my ($first) = allocation($bus, 'guest')->{cpus} =~ /^(\d+)/;
changed('cpus, offline', 'failed', 'set sys/devices/system/cpu/online ' . ($first > 0 ? '0-' . ($first - 1) : '8-15'), "event offline cpu/cpu$first");
broken('cpus', qr/CPUs $first\b/);
history_shows($vf, sub { grep { $_ eq 'promise-broken' } @_ }, 'cpus: in the history of its device');
changed('cpus, online', 'ready', "set sys/devices/system/cpu/online $online", "event online cpu/cpu$first");
kept('cpus');

# A job writes attributes: what was reported before does not count.
is(release($bus, 'guest'), 'done', 'attributes: released');
is(allocate($bus, 'guest', ethernet => 1, cpus => 2, memory => 2**30), 'done', 'attributes: another one');
kept('another one');
is(release($bus, 'guest'), 'done', 'another one: released');

# Nothing notifies of hugepages: they are counted when the document is asked for.
my $pages = 'sys/devices/system/node/node0/hugepages/hugepages-1048576kB';
fault(map { "set $pages/${_}_hugepages 4" } qw(nr free));
is(allocate($bus, 'guest', cpus => 2, memory => 2 * 2**30, 'page-size' => 2**30), 'done', 'hugepages: two of four are promised');
fault(map { "set $pages/${_}_hugepages 2" } qw(nr free));
kept('hugepages, enough');
fault(map { "set $pages/${_}_hugepages 0" } qw(nr free));
is_error($bus->call('GetDomainXML', 'sa{sv}', 'guest', []), 'Insufficient', ['insufficient-memory', 0, '1 GiB', 2], 'hugepages: the document is refused');
is(allocation_state($bus, 'guest'), 'failed', 'hugepages: and the state says so');
restart();
$bus = Bus->new->listen;
broken('hugepages, a restart', names(0, '1 GiB', 2));
fault(map { "set $pages/${_}_hugepages 2" } qw(nr free));
is($bus->call('GetDomainXML', 'sa{sv}', 'guest', [])->{error}, undef, 'hugepages: reserved again');
kept('hugepages');

done_testing();
