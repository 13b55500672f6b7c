#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The documents of guests of Xen: libvirt's XML, which libvirt reads, and xl.cfg, which Xen's own parser reads.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Hypervisor;
use Node;

node('xen-testbed');

my $bus = Bus->new->listen;

# What Xen reads from the text: a hash of names and values. undef when it does not understand it.
sub read_by_xen {
        my ($text) = @_;
        my $file = "$ENV{NODE_TMP}/guest.cfg";
        spew($file, $text);
        open my $f, '-|', "$ENV{BUILD}/tests/xlcfg", $file or die "xlcfg: $!";
        my %values = map { chomp; split /=/, $_, 2 } <$f>;
        return close($f) ? \%values : undef;
}

sub call { my ($name, @options) = @_; return $bus->call('GetDomainXML', 'sa{sv}', $name, [@options]) }
sub format_of { return ['format', ['s', $_[0]]] }

is((allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1, cpus => 4, memory => 2**30))[0], 'done', 'a GPU, a VF, CPUs and memory');
my $guest   = allocation($bus, 'guest');
my @devices = map { $_->{address} } @{ $guest->{devices} };
is(scalar(grep { defined } map { @$_{qw(guest_address seen_address)} } @{ $guest->{devices} }), 0, 'Xen chooses the addresses in the guest: none is told');

# ---- libvirt

my $xml = document('guest', 'for libvirt');
like($xml, qr/<domain type="xen">/, 'a domain of Xen');
is(call('guest')->{body}[0],                    $xml, 'the document over D-Bus');
is(call('guest', format_of('xml'))->{body}[0],  $xml, 'named, too');
is((ctl('xml', 'guest', '--format', 'xml'))[1], $xml, '... on the command line');
like($xml, qr/<vcpupin vcpu="$_->{vcpu}" cpuset="$_->{cpu}"\/>/, "vCPU $_->{vcpu} is pinned as allocated") for @{ $guest->{pins} };
my @sources = map { sprintf '%s:%s:%s.%s', /<driver name="xen"\/>\s*<source>\s*<address domain="0x(\S+)" bus="0x(\S+)" slot="0x(\S+)" function="0x(\S+)"\/>/ } $xml =~ /<hostdev .*?<\/hostdev>/gs;
is_deeply([sort @sources], [sort @devices], 'the devices, for the driver of Xen');
unlike($xml, qr/fwcfg|numatune|pcie-|guest="/, 'nothing that libvirt would ignore');
my ($comments) = $xml =~ /^(.*)<domain /s;
like($comments, qr/PCI tree/, 'a comment tells what the guest does without');
like($comments, qr/fw_cfg/,   '... the facts of the host, too');
unlike((ctl('xml', 'guest', '--no-guest-info'))[1], qr/fw_cfg/, '... unless they were not wanted');

my ($vf) = map { $_->{slot} } grep { $_->{pool} eq 'ib-vf' } @{ $guest->{devices} };
my $hostdev = (ctl('xml', 'guest', '--device', $vf))[1];
like($hostdev, qr/<driver name="xen"\/>/, 'one device alone');
is(() = $hostdev =~ /<address /g, 1, '... without a place in the guest');

my $template = "$ENV{NODE_TMP}/template.xml";
spew($template, "<domain type='xen'><title>mine</title><os><type>hvm</type></os><devices/></domain>");
like(document('guest', 'from a template', '--template', $template), qr/<title>mine<\/title>/, 'a template of Xen is filled in');
spew($template, "<domain type='kvm'><os><type>hvm</type></os><devices/></domain>");
is_error(call('guest', ['template', ['s', slurp($template)]]), 'InvalidTemplate', ['invalid-template', "'kvm'"], 'one of KVM is refused');

# ---- xl

my $xl = call('guest', format_of('xl'))->{body}[0];
is((ctl('xml', 'guest', '--format', 'xl'))[1], $xl, 'for xl: the same over D-Bus and on the command line');
my $read = read_by_xen($xl) // {};
is_deeply([@$read{qw(name uuid type memory maxmem vcpus)}], ['guest', $guest->{id}, 'hvm', 1024, 1024, 4], 'Xen reads name, UUID, type, memory and CPUs');
is_deeply([map { $read->{"cpus.$_->{vcpu}"} } @{ $guest->{pins} }], [map { $_->{cpu} } @{ $guest->{pins} }], '... the pins');
is_deeply([sort map { $read->{$_} } grep { /^pci\./ } keys %$read], [map { "$_ permissive=0 rdm_policy=strict" } sort @devices], '... and the devices');
is_deeply([map { $read->{"vnuma.0.$_"} } 0 .. 1], ["pnode=$guest->{cells}[0]{node}", 'size=1024'], '... and the node of the memory');
is(read_by_xen("$xl\npci = [ 'x' ]\n"), undef, 'Xen refuses a broken one');

is((allocate($bus, 'wide', cpus => 4, memory => 2**30, cells => 2))[0], 'done', 'two cells');
my $wide = allocation($bus, 'wide');
$read = read_by_xen((ctl('xml', 'wide', '--format', 'xl'))[1]) // {};
is_deeply([map { $read->{"vnuma.$_.0"} } 0 .. 1], [map { "pnode=$_->{node}" } @{ $wide->{cells} }], 'each cell on its node');
like(document('wide', 'two cells'), qr/<cell id="1" /, 'libvirt has the cells when they are on the nodes of their numbers');

# ---- many plans, on the recorded node

for (
        'gpu=1 --cpus 1 --memory 1G',
        'ib-vf=4 --cpus 7 --memory 1500M',
        'gpu=1 ib-vf=3 --cpus 8 --memory 20G --numa required',
        'gpu=1 --cpus 10 --memory 24G --cells 2',
        '--cpus 3 --memory 5000K',
        'ib-vf=1 --cpus 16 --memory 40G',
) {
        my @xml = ('xml', '--node', "$ENV{BUILD}/nodes/xen-testbed.tree", '--config', "$FindBin::Bin/../nodes/xen-testbed.conf", 'vm', split);
        my (undef, $domain) = ctl(@xml);
        valid($domain, $_);
        $read = read_by_xen((ctl(@xml, '--format', 'xl'))[1]) // {};
        my @cells = map { /^vnuma\.\d+\.1$/ ? $read->{$_} =~ /(\d+)/ : () } keys %$read;
        my $sum   = 0;
        $sum += $_ for @cells;
        is($sum, $read->{memory}, "$_: the cells have the memory");
        is(scalar(grep { /^pci\./ } keys %$read), scalar(() = $domain =~ /<hostdev /g), '... and xl the devices of libvirt');
}

# ---- what there is not

is_error(call('guest', format_of('ovf')), 'InvalidRequest', ['invalid-request', "'ovf'", "'xl'"], 'another format');
is_error(call('guest', ['format', ['u', 1]]), 'InvalidRequest', ['invalid-request', 'format'], 'a format that is a number');
is_error(call('guest', format_of('xl'), ['device', ['s', $vf]]), 'InvalidRequest', ['invalid-request', "'device'"], 'a device alone, for xl');
is_error(call('guest', format_of('xl'), ['template', ['s', '<domain/>']]), 'InvalidRequest', ['invalid-request', "'template'"], 'a template, for xl');
is((ctl('xml', 'guest', '--nccl'))[0], 1, 'no topology for NCCL');
is_error($bus->call('GetNcclTopology', 'sa{sv}', 'guest', []), 'NotSupported', ['not-supported'], '... over D-Bus too');
is((ctl('xml', 'guest', '--nccl', '--format', 'xl'))[0], 2, 'one or the other');

# ---- define asks the libvirt of Xen

my $dir = beside_hypervisor('passthroughctl');
{
        local $ENV{PATH} = "$dir:$ENV{PATH}";
        my ($status, undef, $err) = ctl('define', 'guest');
        is($status, 1, 'no such libvirt here');
        like($err, qr{xen:///system}, 'the libvirt of Xen is the default');
        hypervisor("$dir/libvirt");
        is((ctl('define', 'guest', '-c', "$dir/libvirt"))[0], 0, 'another one is defined in');
        is(slurp("$dir/libvirt/config"), $xml, '... with the document');
}

# ---- a node of KVM

my $recorded = "$ENV{BUILD}/nodes/paper-testbed.tree";
my @kvm = ('xml', '--node', $recorded, '--config', "$FindBin::Bin/../nodes/paper-testbed.conf", 'vm', qw(gpu=1 --cpus 1 --memory 1G));
my ($status, $out, $err) = ctl(@kvm, '--format', 'xl');
is($status, 1, 'a node of KVM has no configuration for xl');
like($err, names("'xl'", 'Hypervisor=xen'), '... and the way to one is told');
is((ctl(@kvm, '--format', 'xml'))[0], 0, 'it has a domain');

done_testing();
