#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What a VF is given through its PF, by a real driver and real netlink: as "ip" reads it back, as it was before when it is given back, and
# another one for the next tenant.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Lab;

use constant PCI => '/sys/bus/pci/devices';
use constant MAC => '02:11:22:33:44:55';

# The interface that the PF has, which nobody has named for us.
sub interface {
        my ($pf) = @_;
        my ($path) = glob PCI . "/$pf/net/*" or die "$pf has no interface\n";
        return $path =~ s{.*/}{}r;
}

# What the kernel says of a VF: "ip" names some of it only when it is not the default.
sub vf_info {
        my ($vf) = @_;
        my $pf     = link_name(PCI . "/$vf/physfn");
        my ($n)    = map { /virtfn(\d+)$/ } grep { link_name($_) eq $vf } glob PCI . "/$pf/virtfn*";
        my ($link) = @{ decode_json(output(qw(ip -json -details link show dev), interface($pf))) };
        my ($info) = grep { $_->{vf} == $n } @{ $link->{vfinfo_list} };
        return {
                mac        => $info->{address},
                vlan       => ($info->{vlan_list}[0] // $info)->{vlan} // 0,
                spoofcheck => $info->{spoofchk} ? 1 : 0,
                max_rate   => $info->{rate}{max_tx} // $info->{tx_rate} // 0,
        };
}

sub all_info { return { map { $_ => vf_info($_) } @_ } }

sub allocate {
        my (@words) = @_;
        my ($status, undef, $err) = ctl('allocate', @words);
        is($status, 0, "allocate @words") or diag($err);
        return $status ? undef : (ctl_json('show', $words[0])->{devices})[0][0];
}

sub release {
        my ($name) = @_;
        my ($status, undef, $err) = ctl('release', $name);
        return is($status, 0, "release $name") || diag($err);
}

ok(settled(), 'the node is settled');
my @vfs = role('8086:10ca');
# igb takes a rate only while it has a link.
my %interfaces = map { interface(link_name(PCI . "/$_/physfn")) => 1 } @vfs;
output(qw(ip link set up dev), $_) for keys %interfaces;
END { local $?; command(qw(ip link set down dev), $_) for keys %interfaces }
ok(wait_until(sub { !grep { !fact("/sys/class/net/$_/carrier") } keys %interfaces }), 'and has one');
my $baseline = all_info(@vfs);
diag("$_: ", join ', ', map { "$_ $baseline->{$vfs[0]}{$_}" } sort keys %{ $baseline->{ $vfs[0] } }) for $vfs[0];

# ---- all that was asked for

my $device = allocate('vm1', qw(--cpus 1 --memory 256M --page-size 2M nic-vf=1), 'nic-vf0:mac=' . MAC . ',vlan=100,spoof-check=off,max-rate=100') or die "no allocation\n";
my $vf     = $device->{address};
my %wanted = (mac => MAC, vlan => 100, spoofcheck => 0, max_rate => 100);
is_deeply(vf_info($vf), \%wanted, 'the kernel has what was asked for');
is_deeply({ %{ all_info(@vfs) }, $vf => 0 }, { %$baseline, $vf => 0 }, '... and gave it to no other VF');
is($device->{attributes}{mac}, MAC, 'the allocation says so');
is(link_name(PCI . "/$vf/driver"), 'vfio-pci', '... and the VF is with vfio-pci');
my $domain = output(qw(passthroughctl xml vm1));
like($domain, qr/<(?:\w+:)?attributes\b[^>]*\bmac="\Q${\MAC}\E"/, "the domain's metadata has the address");
like($domain, qr/<(?:\w+:)?attributes\b[^>]*\bvlan="100"/, '... and the VLAN');
release('vm1');
is_deeply(all_info(@vfs), $baseline, 'afterwards all VFs have what they had');

# ---- nothing was asked for: an address of its own

my @seen;
for my $name (qw(vm2 vm3)) {
        $device = allocate($name, 'nic-vf=1') or die "no allocation\n";
        my $mac = vf_info($device->{address})->{mac};
        is($mac, $device->{attributes}{mac}, '... the kernel has the address that the allocation says');
        like($mac, qr/^.[26ae]:/, '... a locally administered one');
        isnt($mac, $baseline->{ $device->{address} }{mac}, '... not what the VF had');
        is(vf_info($device->{address})->{vlan}, 0, '... and no VLAN');
        push @seen, $mac;
        release($name);
        is_deeply(all_info(@vfs), $baseline, '... afterwards all VFs have what they had');
}
isnt($seen[0], $seen[1], 'the next tenant has another address');
isnt($_, MAC, '... nobody has that of the first') for @seen;

# ---- the daemon ends in between

allocate('vm4', 'nic-vf=1', 'nic-vf0:mac=' . MAC . ',vlan=7') or die "no allocation\n";
output(qw(systemctl restart passthroughd));
release('vm4');
is_deeply(all_info(@vfs), $baseline, 'after a restart too all VFs have what they had');

# ---- a PF that has nothing of the kind to offer

$device = allocate('vm5', 'nvme-vf=1') or die "no allocation\n";
is($device->{attributes}, undef, 'a VF of an NVMe controller has no attributes');
release('vm5');
my ($status, $out, $err) = ctl('allocate', 'vm6', 'nvme-vf=1', 'nvme-vf0:vlan=100');
isnt($status, 0, '... and who asks for some is refused');
like($err, qr/\Q$device->{address}\E|vlan/, '... with a reason') or diag($err);
if (grep { $_->{name} eq 'vm6' } @{ ctl_json('list', '--all')->{allocations} // [] }) { release('vm6') }
ok(settled(), 'the node is as it was');

done_testing();
