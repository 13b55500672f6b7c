#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The documents of large requests, as libvirt sees them.
use strict;
use warnings;

use File::Path qw(make_path);
use JSON::XS qw(decode_json);
use MIME::Base64 qw(decode_base64);
use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('hgx-h100', configure => 1);

my $bus     = Bus->new->listen;
my $dropins = "$ENV{NODE_TMP}/passthroughd.conf.d";
make_path($dropins);
configure(slurp("$FindBin::Bin/../nodes/hgx-h100.conf"));
my $before = tree();

# The addresses that the daemon tells are those of its document.
sub agree {
        my ($allocation, $xml) = @_;
        my $number  = qr/domain="0x(\S+)" bus="0x(\S+)" slot="0x(\S+)" function="0x(\S+)"/;
        my $written = sub { sprintf '%s:%s:%s.%s', @_ };
        my %in;
        for ($xml =~ /<hostdev .*?<\/hostdev>/gs) {
                my @host  = /<source>\s*<address $number/ or next;
                my @guest = /<address type="pci" $number/ or next;
                $in{ $written->(@host) } = $written->(@guest);
        }
        is_deeply(\%in, { map { $_->{address} => $_->{guest_address} } @{ $allocation->{devices} } }, 'the addresses in the guest are those that the allocation tells');
        return;
}

# The entries of fw_cfg, by their names below that of passthroughd.
sub told {
        my ($xml) = @_;
        my %entry = $xml =~ m{<entry name=["']opt/org\.passthroughd1/([^"']+)["']>([A-Za-z0-9+/]+=*)</entry>}g;
        return { map { $_ => decode_base64($entry{$_}) } keys %entry };
}

sub spare_ports {
        my ($n) = @_;
        spew("$dropins/spare.conf", "[Daemon]\nSparePorts=$n\n");
        is($bus->call('Reload')->{error}, undef, "SparePorts=$n");
        return;
}


# ---- eight devices and CPUs of both nodes, on 1 GiB pages

my ($status, undef, $err) = ctl('allocate', 'train', qw(gpu=4 rdma=4 --cpus 32 --cells 2 --memory 200G --page-size 1G --numa required --proximity switch));
is($status, 0, 'four GPUs and four VFs, two cells, 1 GiB pages') or diag($err);
my ($allocation) = grep { $_->{name} eq 'train' } @{ describe($bus)->{allocations} };
my $xml = document('train', 'two cells');
is(() = $xml =~ /<hostdev [^>]*managed="no"/g, 8, 'eight host devices');
is(() = $xml =~ /<vcpupin /g, 32, '32 pinned vCPUs');
is(scalar @{ $allocation->{pins} }, 32, 'as many as in the allocation');
is(scalar @{ $allocation->{devices} }, 8, 'and as many devices');
for my $pin (@{ $allocation->{pins} }) {
        like($xml, qr/<vcpupin vcpu="$pin->{vcpu}" cpuset="$pin->{cpu}"\/>/, "vCPU $pin->{vcpu} is pinned as allocated");
}
like($xml, qr/<memory mode="strict" nodeset="0-1"\/>|<memory mode="strict" nodeset="0,1"\/>/, 'memory of both nodes');
like($xml, qr/<memnode cellid="$_" mode="strict" nodeset="$_"\/>/, "the memory of cell $_ is that of node $_") for 0, 1;
like($xml, qr/<cell id="0" cpus="0-15" memory="100" unit="GiB"/, 'cell 0 has half the CPUs and half the memory');
like($xml, qr/<cell id="1" cpus="16-31" memory="100" unit="GiB"/, 'cell 1 the other half');
like($xml, qr/<page size="1" unit="(?:G|GiB)"|<page size="1048576" unit="KiB"/, 'pages of 1 GiB');
like($xml, qr/<emulatorpin cpuset="0,56,112,168"\/>/, 'the emulator runs on the housekeeping CPUs');
for my $device (@{ $allocation->{devices} }) {
        my ($domain, $bus_number, $slot, $function) = split /[:.]/, $device->{address};
        my $address = qq{<address domain="0x$domain" bus="0x$bus_number" slot="0x$slot" function="0x$function"/>};
        like($xml, qr{<hostdev (?:(?!</hostdev>).)*$address(?:(?!</hostdev>).)*<alias name="ua-\Q$device->{slot}\E"/>}s,
                "$device->{address} is handed out as $device->{slot}");
}
my @numbers = $xml =~ /<target busNr="(\d+)">/g;
is(scalar @numbers, scalar(keys %{ { map { $_ => 1 } @numbers } }), 'bus numbers of expander buses differ');

# The same into somebody's own document.
spew("$ENV{NODE_TMP}/template.xml", <<'END');
<domain type='kvm'>
  <name>replaced</name>
  <title>the title of a template</title>
  <memory unit='GiB'>1</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  <devices>
    <disk type='file' device='disk'>
      <source file='/srv/template.qcow2'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
END
my $merged = document('train', 'with a template', '--template', "$ENV{NODE_TMP}/template.xml");
like($merged, names('/title'), 'a template keeps its title');
like($merged, qr/\/srv\/template\.qcow2/, 'and its disk');
unlike($merged, qr/replaced/, 'but not its name');
is(() = $merged =~ /<hostdev /g, 8, 'and has the host devices');
is(() = $merged =~ /<vcpupin /g, 32, 'and the pins');
is($bus->call('GetDomainXML', 'sa{sv}', 'train', [['template', ['s', slurp("$ENV{NODE_TMP}/template.xml")]]])->{body}[0], $merged, 'over D-Bus too');

is(release($bus, 'train'), 'done', 'it is released');

# ---- devices on both nodes

($status, undef, $err) = ctl('allocate', 'wide', qw(gpu=6 rdma=6 --cpus 48 --memory 96G --numa required));
is($status, 0, 'six GPUs and six VFs, which are on two nodes') or diag($err);
($allocation) = grep { $_->{name} eq 'wide' } @{ describe($bus)->{allocations} };
is_deeply($allocation->{numa_nodes}, [0, 1], 'takes CPUs of both');
$xml = document('wide', 'devices on two nodes');
is(() = $xml =~ /<hostdev /g, 12, 'twelve host devices');
is($allocation->{topology}, 'mirror', 'the guest is to see the host\'s tree');
is(() = $xml =~ /model="pcie-expander-bus"/g, 6, 'behind an expander bus for each root complex');
is_deeply([sort $xml =~ /<node>(\d)<\/node>/g], [0, 0, 0, 0, 1, 1], 'that belongs to the cell of its node');
is(() = $xml =~ /model="pcie-switch-upstream-port"/g, 6, 'each GPU shares a switch with its VF');
is(() = $xml =~ /model="pcie-switch-downstream-port"/g, 12, 'where both have a port');
agree($allocation, $xml);

# ---- A11: what else a guest is to know of it agrees with that

my @slots = map { $_->{slot} } @{ $allocation->{devices} };
is_deeply([$xml =~ /<alias name="ua-([^"]+)"\/>/g], \@slots, 'A11: aliases are the slots, in the order of the request');
my %bars = map { $_->{address} => $_->{bars} } @{ describe($bus)->{devices} };
my ($hole, $sum) = ($xml =~ /<pcihole64 unit="GiB">(\d+)</, 0);
$sum += $_->{size} for map { @{ $bars{ $_->{address} } } } @{ $allocation->{devices} };
cmp_ok($hole * 2**30, '>=', $sum, 'A11: the 64-bit window has room for all BARs');
my %seen = map { $_->{seen_address} => $_->{slot} } @{ $allocation->{devices} };
is_deeply({ map { /slot="(\S+)"/; my $slot = $1; /seen="(\S+)"/; $1 => $slot } $xml =~ /<passthroughd:device [^>]*>/g }, \%seen, 'A11: the metadata has the addresses in the guest');
my $nccl = $bus->call('GetNcclTopology', 'sa{sv}', 'wide', [])->{body}[0];
my (%above, @open);
for ($nccl =~ /<[^>]+>/g) {
        if    (/^<\//)                          { pop @open }
        elsif (/^<pci busid="([^"]+)"[^>]*\/>/) { $above{$1} = $open[-1] }
        elsif (!/\/>$/)                         { push @open, /busid="([^"]+)"/ ? $1 : /numaid="(\d+)"/ ? "cell $1" : 'system' }
}
is_deeply([sort keys %above], [sort keys %seen], 'A11: the NCCL topology has these too');
my %switch = map { $seen{$_} => $above{$_} } keys %above;
is_deeply([map { $switch{"gpu$_"} eq $switch{"rdma$_"} ? 'shared' : 'apart' } 0 .. 5], [('shared') x 6], 'A11: in which each GPU is at one switch with its VF');
is((ctl('xml', 'wide', '--nccl'))[1], $nccl, 'A11: passthroughctl prints the same');

# ---- what the guest is told

my $told = told($xml);
is_deeply([sort keys %$told], [qw(devices.json nccl-topology.xml)], 'the guest is told two files');
is($told->{'nccl-topology.xml'}, $nccl, 'the topology for NCCL, to the byte');
my @keys = qw(slot pool guest_address seen_address);
sub devices_with { my ($keys, $devices) = @_; return [map { my $device = $_; +{ map { $_ => $device->{$_} } @$keys } } @$devices] }
is_deeply(decode_json($told->{'devices.json'}), { devices => devices_with(\@keys, $allocation->{devices}) }, 'and its devices, without their addresses on the host');
SKIP: {
        skip 'virsh is not installed', 1 if !Document::has('virsh');
        spew("$ENV{NODE_TMP}/told.xml", $xml);
        my $kept = qx(virsh -q -c test:///default 'define $ENV{NODE_TMP}/told.xml; dumpxml --inactive wide');
        is_deeply(told($kept), $told, 'libvirt keeps the text of both');
}
is_deeply(decode_json(told(document('wide', 'host addresses', '--host-addresses'))->{'devices.json'}), { devices => devices_with([@keys, 'address'], $allocation->{devices}) }, 'with those on the host, if asked to');
unlike(document('wide', 'nothing for the guest', '--no-guest-info'), qr/sysinfo/, 'nothing, if asked to');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'wide', [['guest-info', ['b', 0]], ['host-addresses', ['b', 1]]]), 'InvalidRequest', ['invalid-request'], 'host addresses in nothing');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'wide', [['guest-info', ['s', 'no']]]), 'InvalidRequest', ['invalid-request'], 'a word instead of a boolean');
is_error($bus->call('GetNcclTopology', 'sa{sv}', 'wide', [['guest-info', ['b', 0]]]), 'InvalidRequest', ['invalid-request'], 'the topology alone has none');
is(release($bus, 'wide'), 'done', 'it is released');

($status, undef, $err) = ctl('allocate', 'wide', qw(gpu=6 rdma=6 --cpus 48 --memory 96G --numa required --topology flat));
is($status, 0, 'the same, flat') or diag($err);
($allocation) = grep { $_->{name} eq 'wide' } @{ describe($bus)->{allocations} };
$xml = document('wide', 'flat');
is(() = $xml =~ /model="pcie-expander-bus"/g, 2, 'behind an expander bus for each node');
is_deeply([sort $xml =~ /<node>(\d)<\/node>/g], [0, 1], 'that belongs to the cell of that node');
unlike($xml, qr/pcie-switch/, 'without a switch');
agree($allocation, $xml);
is(() = $xml =~ /model="pcie-root-port"/g, 12 + 2 + 1 + 2, 'each has a root port; one to spare behind both, and those that the rest would take');

# One device: the same element, ready for "virsh attach-device".
sub lines { return join "\n", map { s/^\s+|\s+$//gr } split /\n/, $_[0] }
for my $slot (qw(gpu0 rdma5)) {
        my (undef, $hostdev) = ctl('xml', 'wide', '--device', $slot);
        like($hostdev, qr/\A<hostdev .*<alias name="ua-$slot"\/>.*<\/hostdev>\n\z/s, "$slot alone");
        like(lines($xml), qr/\Q@{[lines($hostdev)]}\E/, "$slot: as in the document");
        is(ctl_json('xml', 'wide', '--device', $slot)->{xml}, $hostdev =~ s/\n\z//r, "$slot: as JSON");
}
my $templated = (ctl('xml', 'wide', '--device', 'gpu0', '--template', "$ENV{NODE_TMP}/template.xml"))[1];
like(lines(document('wide', 'with a template', '--template', "$ENV{NODE_TMP}/template.xml")), qr/\Q@{[lines($templated)]}\E/, 'gpu0: as in the document of a template');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'wide', [['device', ['s', 'gpu9']]]), 'NoSuchDevice', ['no-such-device', 'gpu9'], 'a slot that is not in it');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'wide', [['device', ['u', 1]]]), 'InvalidRequest', ['invalid-request'], 'a slot that is a number');
is_error($bus->call('GetNcclTopology', 'sa{sv}', 'wide', [['device', ['s', 'gpu0']]]), 'InvalidRequest', ['invalid-request'], 'not for NCCL');
is((ctl('xml', 'wide', '--device', 'gpu0', '--nccl'))[0], 2, 'nor on the command line');
is(release($bus, 'wide'), 'done', 'it is released');

# ---- SparePorts=, of the time when it was allocated

spare_ports(0);
($status, undef, $err) = ctl('allocate', 'tight', qw(gpu=1 --cpus 2 --memory 2G));
is($status, 0, 'one GPU, SparePorts=0') or diag($err);
spare_ports(3);
is(() = document('tight', 'no spare ports') =~ /model="pcie-root-port"/g, 1, 'no port but its own, whatever SparePorts= says later');
is(release($bus, 'tight'), 'done', 'it is released');

# ---- CPUs and memory alone, on 2 MiB pages if there are any, and devices alone

($status, undef, $err) = ctl('allocate', 'plain', qw(--cpus 4 --memory 4G));
is($status, 0, 'no devices') or diag($err);
unlike(document('plain', 'no devices'), qr/<hostdev /, 'no host devices');
is(release($bus, 'plain'), 'done', 'it is released');

($status, undef, $err) = ctl('allocate', 'bare', qw(gpu=1));
is($status, 0, 'no CPUs') or diag($err);
($status, my $out, $err) = ctl('xml', 'bare');
if ($status == 0) { valid($out, 'no CPUs') }
else              { like($err, qr/\Apassthroughctl: \S.*\.\n\z/, 'no CPUs: a sentence says why there is no document') }
unlike((ctl('xml', 'bare', '--device', 'gpu0'))[1], qr/<address type=/, 'no CPUs: libvirt chooses the address');
is(release($bus, 'bare'), 'done', 'it is released');

same_tree($before, 'the tree is that of the start');

done_testing();
