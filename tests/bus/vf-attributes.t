#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFs are given their MAC, VLAN, GUIDs before a guest sees them, and what they had comes back; by every way that a PF offers.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('connectx', configure => 1);

my $pools = slurp("$FindBin::Bin/../nodes/connectx.conf");
my $bus   = Bus->new->listen;
my $pci   = "$ENV{NODE_ROOT}/sys/bus/pci/devices";
my %pf    = (ethernet => '0000:11:00.0', igb => '0000:12:00.0', infiniband => '0000:81:00.0', ofed => '0000:82:00.0', switchdev => '0000:83:00.0');
my @pools = sort keys %pf;

# What the kernel keeps of a VF.
sub kernel {
        my ($pool, $vf) = @_;
        my ($dir) = grep { -d } map { "$pci/$pf{$pool}/$_/$vf" } qw(vf-netlink sriov);
        opendir my $d, $dir or die "$dir: $!";
        return { map { $_ => slurp("$dir/$_") =~ s/\n//r } grep { !/^[.]/ && $_ ne 'config' } readdir $d };
}

sub all { return { map { my $pool = $_; map { ("$pool$_" => kernel($pool, $_)) } 0 .. 3 } @pools } }

sub slot {
        my ($allocation, $slot) = @_;
        my ($found) = grep { ($_->{slot} // '') eq $slot } @{ allocation($bus, $allocation)->{devices} };
        return $found->{attributes};
}

# allocate with attributes: slot => text
sub with_attributes {
        my ($name, $pools, %attributes) = @_;
        my ($signature, $entries) = request(%$pools, 'vf-attributes' => [map { [$_, $attributes{$_}] } sort keys %attributes]);
        my $reply = $bus->call('Allocate', "s$signature", $name, $entries);
        return $reply if $reply->{error};
        return { result => $bus->result($reply->{body}[1]) };
}

# What a boot leaves of the PFs: no VFs.
sub boot {
        my ($what, @pfs) = @_;
        is(daemon('stop'), 0, $what);
        fault(map { "write sys/bus/pci/devices/$_/sriov_numvfs 0" } @pfs);
        return;
}

# ---- VFs are there with an identity when the daemon is up, and with the same one after a boot

configure($pools =~ s/(Pool ethernet\].*?VirtualFunctions=4)/$1\nVfAttributes=vlan=7 max-rate=500/sr);
my $start = all();
for my $i (0 .. 3) {
        like($start->{"ethernet$i"}{mac}, qr/^02(:[0-9a-f]{2}){5}$/, "VF $i: a MAC is made up");
        is($start->{"ethernet$i"}{vlan}, '7 0 802.1q', "VF $i: what its pool says");
        is($start->{"ethernet$i"}{rate}, '0 500', "VF $i: and more of it");
        like($start->{"infiniband$i"}{node_guid}, qr/^02(:[0-9a-f]{2}){7}$/, "VF $i: a GUID is made up");
        is($start->{"ofed$i"}{policy}, 'Follow', "VF $i: and its port follows the PF's");
}
my %seen;
$seen{$_}++ for map { my $vf = $start->{$_}; map { $vf->{$_} // () } qw(mac node_guid port_guid node port) } keys %$start;
is_deeply([grep { $seen{$_} > 1 } keys %seen], [], 'no two VFs have the same');
boot('a boot', values %pf);
is(daemon('start'), 0, 'a boot: the daemon is back');
$bus = Bus->new->listen;
is_deeply(all(), $start, 'a boot: each VF is who it was');

# ---- given, shown, taken back; the next one gets others

my $before = tree();

# The first VF of each pool has a MAC or a node GUID, and another one than before.
sub other_identity {
        my ($now, $before, $what) = @_;
        for my $slot (map { "${_}0" } @pools) {
                my ($new, $old) = map { $_->{mac} // $_->{node_guid} // $_->{node} // '' } $now->{$slot}, $before->{$slot};
                ok($new ne '' && $new ne $old, "$slot: $what") or diag($new);
        }
        return;
}

my %wanted = (ethernet0 => 'vlan=100,qos=3,trust=on,spoof-check=off,min-rate=10,max-rate=1000,link=up', igb0 => 'mac=02:11:22:33:44:55');
is(with_attributes('guest', { (map { $_ => 1 } @pools), cpus => 2, memory => 1 << 30 }, %wanted)->{result}, 'done', 'attributes of all kinds');
my $now = all();
is_deeply($now->{ethernet0}, { mac => slot('guest', 'ethernet0')->{mac}, vlan => '100 3 802.1q', trust => 'on', spoofchk => 'off', rate => '10 1000', link_state => 'enable' },
        'Ethernet: the kernel has them');
is_deeply({ %{ slot('guest', 'ethernet0') }, mac => undef },
        { mac => undef, vlan => 100, qos => 3, trust => JSON::XS::true, spoof_check => JSON::XS::false, min_rate => 10, max_rate => 1000, link => 'up' },
        'Ethernet: and the allocation');
is($now->{igb0}{mac}, '02:11:22:33:44:55', 'igb: the MAC that was asked for');
for my $pool (qw(infiniband ofed)) {
        my ($node, $port) = $pool eq 'ofed' ? qw(node port) : qw(node_guid port_guid);
        is($now->{"${pool}0"}{$node}, slot('guest', "${pool}0")->{node_guid}, "$pool: the node GUID");
        is($now->{"${pool}0"}{$port}, slot('guest', "${pool}0")->{port_guid}, "$pool: the port GUID");
        is(slot('guest', "${pool}0")->{mac}, undef, "$pool: no MAC");
}
other_identity($now, $start, 'another identity than before');
is_deeply({ map { $_ => $now->{$_} } grep { !/0$/ } keys %$now }, { map { $_ => $start->{$_} } grep { !/0$/ } keys %$start }, 'no other VF was touched');
my ($status, $xml) = ctl('xml', 'guest');
like($xml, qr/mac=['"]02:11:22:33:44:55['"]/, 'the domain has them in its metadata');
is(release($bus, 'guest'), 'done', 'released');
is_deeply(all(), $start, 'what they had is back');
same_tree($before, 'and all else');
is(allocate($bus, 'next', map { $_ => 1 } @pools), 'done', 'the next one');
my $next = all();
other_identity($next, $now, 'another one than the last guest');
is($next->{ethernet0}{vlan}, '7 0 802.1q', 'and the VLAN of its pool');

# ---- a restart and a boot under it

my $prepared = tree();
restart();
$bus = Bus->new->listen;
same_tree($prepared, 'a restart changes nothing');
boot('a boot under it', values %pf);
is(daemon('start'), 0, 'a boot under it: the daemon is back');
$bus = Bus->new->listen;
is(allocation_state($bus, 'next'), 'ready', 'a boot under it: it is ready');
is_deeply(all(), $next, 'a boot under it: its VFs are who they were');
is(release($bus, 'next'), 'done', 'released');
is_deeply(all(), $start, 'and what they had comes back');

# ---- what cannot be had

my $taken = with_attributes('one', { igb => 1 }, igb0 => 'mac=02:00:00:00:00:01');
is($taken->{result}, 'done', 'a MAC');
like(with_attributes('two', { ethernet => 1 }, ethernet0 => 'mac=02:00:00:00:00:01')->{body}[0] // '', qr/02:00:00:00:00:01.*'one'/s, 'is not given twice');
is(release($bus, 'one'), 'done', 'released');
$before = tree();
for (
        [igb => 'link=up'],
        [infiniband => 'vlan=5'],
        [ofed => 'trust=on'],
        [ethernet => 'pkey=0x8001'],
        [ethernet => 'vlan=5 protocol=802.1ad'],
        )
{
        my ($pool, $text) = @$_;
        my $offset = log_since();
        is(with_attributes('guest', { $pool => 1 }, "${pool}0" => $text)->{result}, 'failed', "$pool, $text: fails");
        like(log_since($offset), names('guest', $pf{$pool}, $text =~ /^(\S+)/), "$pool, $text: says what");
        is(allocation_state($bus, 'guest'), 'gone', "$pool, $text: and nothing stays allocated");
        same_tree($before, "$pool, $text: nor changed");
}

# ---- each write fails, or has no effect: all is as before

for my $how ('fail %d EBUSY', 'fail-after %d EIO', 'silent %d') {
        fault('reset');
        is(with_attributes('guest', { ethernet => 1, infiniband => 1 }, ethernet0 => 'vlan=9 trust=on')->{result}, 'done', "$how: it works without");
        my $n = writes();
        is(release($bus, 'guest'), 'done', "$how: and back");
        for my $i (1 .. $n) {
                fault('reset', sprintf $how, $i);
                my $result = with_attributes('guest', { ethernet => 1, infiniband => 1 }, ethernet0 => 'vlan=9 trust=on')->{result};
                fault('reset');
                release($bus, 'guest') if allocation_state($bus, 'guest') ne 'gone';
                same_tree($before, sprintf "$how: (%s) all is as before", $i, $result);
        }
        fault('reset');
        is(with_attributes('guest', { ethernet => 1, infiniband => 1 }, ethernet0 => 'vlan=9 trust=on')->{result}, 'done', "$how: release");
        for my $i (1 .. $n) {
                fault('reset', sprintf $how, $i);
                my $result = release($bus, 'guest');
                fault('reset');
                is(release($bus, 'guest'), 'done', sprintf "$how: released again", $i) if allocation_state($bus, 'guest') ne 'gone';
                clear_quarantine($bus); # where it was the reset that failed
                same_tree($before, sprintf "$how: released (%s), all is as before", $i, $result);
                is(with_attributes('guest', { ethernet => 1, infiniband => 1 }, ethernet0 => 'vlan=9 trust=on')->{result}, 'done', sprintf "$how: once more", $i);
        }
        is(release($bus, 'guest'), 'done', "$how: the end");
}

# ---- the driver of a PF that never answers holds nothing else up

configure("[Daemon]\nJobTimeoutSec=4\n" . $pools);
$bus    = Bus->new->listen;
$before = tree();
fault('reset', 'unkillable 2');
is(with_attributes('guest', { ethernet => 1 })->{result}, 'timeout', 'hangs: the job ends');
is(device($bus, $pf{ethernet})->{state}, 'stuck', 'hangs: its PF is stuck');
like(release($bus, 'guest'), names($pf{ethernet}), 'hangs: what it hangs in may still come, so it is not released') for 1, 2;
is(allocate($bus, 'other', igb => 1, infiniband => 1), 'done', 'hangs: others are served');
is(release($bus, 'other'), 'done', 'hangs: and released');
fault('release');
ok(wait_until(sub { device($bus, $pf{ethernet})->{state} ne 'stuck' }), 'hangs: until it answers');
fault('reset');
is(release($bus, 'guest'), 'done', 'hangs: then it can be released');
same_tree($before, 'hangs: and all is as before');

# ---- made, and killed before they are told who they are

configure($pools);
boot('killed: a boot', values %pf);
is(daemon('start'), 0, 'killed: the daemon is back from it');
my $identified = all();
boot('killed: a boot', values %pf);
fault('reset', map { "kill $_ after" } 1 .. 12);
daemon('start');
fault('reset');
daemon('stop', 'KILL');
is(daemon('start'), 0, 'killed: the daemon is back');
$bus = Bus->new->listen;
is_deeply(all(), $identified, 'killed: each VF is who it was all the same');

# ---- a change of their number that fails: they are who they were

my $failing = tree();
for my $n (1 .. 6) {
        fault('reset', "fail $n ENOSPC");
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf{ethernet}, 2);
        my $result = $reply->{error} // $bus->result($reply->{body}[0]);
        fault('reset');
        last if $result eq 'done';
        same_tree($failing, "VFs, write $n fails: they are made again as they were");
}
is_deeply($bus->result($bus->call('SetVirtualFunctions', 'su', $pf{ethernet}, 4)->{body}[0]), 'done', 'VFs: four again');
same_tree($failing, 'VFs: as they were');

# ---- refused when they are made: they are there all the same. One PF alone, because the order of the writes to several is left to chance.

boot('one that cannot be told: a boot', $pf{ethernet});
fault('reset', 'fail 4 EOPNOTSUPP');
is(daemon('start'), 0, 'one that cannot be told: the daemon starts');
fault('reset');
$bus = Bus->new->listen;
is(scalar(grep { ($_->{pool} // '') ne '' } @{ describe($bus)->{devices} }), 20, 'one that cannot be told: all VFs are there');
like(slurp("$ENV{NODE_TMP}/daemon.log"), names(qr/VF \d/, qr/0000:\S+/), 'one that cannot be told: that is told');
restart();
$bus = Bus->new->listen;
is_deeply(all(), $identified, 'one that cannot be told: the next start makes up for it');

# ---- a VLAN takes its priority along

configure($pools =~ s/(Pool ethernet\]\n)/$1VfAttributes=vlan=5 qos=3\n/r);
$bus = Bus->new->listen;
is(kernel('ethernet', 0)->{vlan}, '5 3 802.1q', 'VLAN: of the pool');
is(with_attributes('guest', { ethernet => 1 }, ethernet0 => 'vlan=0')->{result}, 'done', 'VLAN: none is asked for');
is(kernel('ethernet', 0)->{vlan}, '0 0 802.1q', 'VLAN: and none is there');
is(release($bus, 'guest'), 'done', 'VLAN: released');
is(kernel('ethernet', 0)->{vlan}, '5 3 802.1q', 'VLAN: both are back');
is(with_attributes('guest', { ethernet => 1 }, ethernet0 => 'vlan=100')->{result}, 'done', 'VLAN: another one is asked for');
is(kernel('ethernet', 0)->{vlan}, '100 0 802.1q', 'VLAN: without the priority of the one before');
is(release($bus, 'guest'), 'done', 'VLAN: released');

# ---- always the same, when the pool says so; a pool of others' VFs is left alone

configure($pools =~ s/(Pool ethernet\]\n)/$1VfIdentity=stable\n/r =~ s/(Pool igb\].*?)VirtualFunctions=4/$1VirtualFunctions=external/sr);
$bus = Bus->new->listen;
my $stable = all();
for my $round (1, 2) {
        is(allocate($bus, 'guest', ethernet => 1, igb => 1), 'done', "stable, $round: allocated");
        is(slot('guest', 'ethernet0')->{mac}, $stable->{ethernet0}{mac}, "stable, $round: it is always the same");
        is_deeply(kernel('ethernet', 0), $stable->{ethernet0}, "stable, $round: in the kernel too");
        is(slot('guest', 'igb0'), undef, "external, $round: nothing is made up");
        is_deeply(kernel('igb', 0), $stable->{igb0}, "external, $round: nor written");
        is(release($bus, 'guest'), 'done', "stable, $round: released");
}

# ---- nothing sets the GUIDs of an InfiniBand VF without the interface of its PF

configure($pools);
$bus = Bus->new->listen;

# Removes the interface of the PF, as when the module that makes it is unloaded. Returns the commands that put it back.
sub unload {
        my ($pool) = @_;
        my $dir = readlink("$pci/$pf{$pool}") =~ s{^(?:\.\./)+}{sys/}r . '/net';
        my ($name) = map { s{.*/}{}r } glob "$pci/$pf{$pool}/net/*";
        my @back = map { "set $dir/$name/$_ " . slurp("$ENV{NODE_ROOT}/$dir/$name/$_") =~ s/\n//r } qw(address ifindex type dev_port);
        fault("remove $dir/$name");
        push @back, "link $dir/$name/device /$dir" =~ s{/net$}{}r;
        return @back;
}

for my $stale (1, 0) {
        my $what = 'no ib_ipoib, ' . ($stale ? 'the daemon does not know' : 'after a rescan');
        my ($ib) = map { $_->{address} } grep { ($_->{pool} // '') eq 'infiniband' } @{ describe($bus)->{devices} };
        my @back = unload('infiniband');
        if ($stale) {
                is(allocate($bus, 'guest', infiniband => 2), 'failed', "$what: not allocated");
        }
        else {
                ctl('rescan');
                my $device = device($bus, $ib);
                isnt($device->{state}, 'available', "$what: not offered");
                like($device->{reason}, names($pf{infiniband}), "$what: the PF is named");
                like(join("\n", ctl('explain', $ib)), names('ib_ipoib'), "$what: explain names the module");
                like(join("\n", ctl('check')), names('ib_ipoib'), "$what: so does check");
                my ($error, $sentence) = allocate($bus, 'guest', infiniband => 1);
                like($error, qr/^org[.]passthroughd1[.]Error[.]/, "$what: refused");
                like($sentence, names($ib, $pf{infiniband}, 'ib_ipoib'), "$what: with the module to load");
        }
        is(allocation_state($bus, 'guest'), 'gone', "$what: no allocation is left");
        is(driver_of($ib), 'none', "$what: the VF is on no driver");
        fault(@back);
        is(allocate($bus, 'guest', infiniband => 2), 'done', "$what: with the interface again, allocated");
        my $given = slot('guest', 'infiniband0');
        my ($index) = grep { readlink("$pci/$pf{infiniband}/virtfn$_") =~ /\Q@{[device_in($bus, 'guest', 'infiniband0')->{address}]}\E$/ } 0 .. 3;
        my $now = kernel('infiniband', $index);
        is_deeply([@$now{qw(node_guid port_guid link_state)}], [@$given{qw(node_guid port_guid)}, 'auto'], "$what: with GUIDs and a link");
        is(release($bus, 'guest'), 'done', "$what: released");
}
for my $pool (qw(ethernet ofed)) {
        my @back = unload($pool);
        ctl('rescan');
        is(allocate($bus, 'guest', $pool => 1), 'done', "$pool needs no interface");
        release($bus, 'guest');
        fault(@back);
        clear_quarantine($bus);
}
my @back = unload('infiniband');
configure($pools =~ s/(Pool infiniband\].*?)VirtualFunctions=4/$1VirtualFunctions=external/sr);
$bus = Bus->new->listen;
is(allocate($bus, 'guest', infiniband => 1), 'done', 'VFs that keep their addresses need none');
is(release($bus, 'guest'), 'done', 'and are released');
fault(@back);

# ---- the interface of a PF is away

configure($pools);
$bus = Bus->new->listen;

my $net = readlink("$pci/$pf{ethernet}") =~ s{^(?:\.\./)+}{sys/}r . '/net';
is(with_attributes('guest', { ethernet => 2 }, ethernet0 => 'vlan=66 trust=on')->{result}, 'done', 'away: two VFs');
my @vfs = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my ($name) = map { s{.*/}{}r } glob "$pci/$pf{ethernet}/net/*";
fault("remove $net/$name");
is(release($bus, 'guest'), 'done', 'away: they are released');
is_deeply([sort map { $_->{address} } @{ describe($bus)->{quarantine} }], [sort @vfs], 'away: and nobody else gets what they had');
like(device($bus, $vfs[0])->{reason}, names(qr/\b0000:[0-9a-f:.]+/), 'away: it says why');

done_testing();
