#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Accelerators that are neither GPU nor NIC, and two models of GPU: each is planned, allocated, in a document that libvirt accepts, and
# back with its driver after the release.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Document;
use Node;

node('accelerators');

my $bus    = Bus->new->listen;
my $before = tree();
my @vm     = (cpus => 4, memory => 2**30, numa => 'required');

# Of each hostdev: slot and address.
sub hostdevs {
        my ($xml) = @_;
        return { map {
                my ($host) = m{<source>(.*?)</source>}s;
                my ($slot) = /<alias name="ua-([^"]+)"/;
                $slot => sprintf '%04x:%02x:%02x.%x', map { hex } $host =~ /domain="(\w+)" bus="(\w+)" slot="(\w+)" function="(\w+)"/;
        } $xml =~ m{<hostdev .*?</hostdev>}gs };
}

# Name, pools, and what the guest is to have: slot to address. Returns the document.
sub scenario {
        my ($what, $pools, $expected) = @_;
        my $reply = $bus->call('Plan', request(@$pools, @vm));
        my $plan  = $reply->{error} ? { devices => [] } : JSON::XS->new->decode($reply->{body}[0]);
        is_deeply({ map { $_->{slot} => $_->{address} } grep { $_->{slot} } @{ $plan->{devices} } }, $expected, "$what: the plan") or diag($reply->{body}[0]);
        my @was = map { driver_of($_) } sort values %$expected;
        is(allocate($bus, 'vm', @$pools, @vm), 'done', "$what: allocated");
        is_deeply([map { driver_of($_) } values %$expected], [('vfio-pci') x keys %$expected], "$what: for the guest");
        my $xml = document('vm', $what);
        is_deeply(hostdevs($xml), $expected, "$what: the document");
        is_deeply(allocation($bus, 'vm')->{numa_nodes}, [1], "$what: on the node of the devices");
        is(release($bus, 'vm'), 'done', "$what: released");
        is_deeply([map { driver_of($_) } sort values %$expected], \@was, "$what: back with the host");
        return $xml;
}

scenario('K20 and K40', [k20 => 1, k40 => 1], { k20_0 => '0000:82:00.0', k40_0 => '0000:90:00.0' });
is((allocate($bus, 'vm', k20 => 2, @vm))[0], 'org.passthroughd1.Error.Insufficient', 'a K40 is no second K20');

my $xml = scenario('Xeon Phi', [phi => 1], { phi0 => '0000:91:00.0' });
my ($hole) = $xml =~ /<pcihole64 unit="GiB">(\d+)</;
cmp_ok($hole // 0, '>=', 16, 'Xeon Phi: its memory of 16 GiB has room in the guest');

scenario('NVMe disk', [nvme => 1], { nvme0 => '0000:92:00.0' });

$xml = scenario('FPGA', [fpga => 1], { fpga0 => '0000:93:00.0', 'fpga0-1' => '0000:93:00.1' });
like($xml, qr/<address type="pci" [^>]*function="0x0" multifunction="on"/, 'FPGA: both functions are in one slot of the guest');

scenario('all of them', [k20 => 1, k40 => 1, phi => 1, nvme => 1, fpga => 1], { k20_0 => '0000:82:00.0', k40_0 => '0000:90:00.0', phi0 => '0000:91:00.0', nvme0 => '0000:92:00.0', fpga0 => '0000:93:00.0', 'fpga0-1' => '0000:93:00.1' });
same_tree($before, 'the tree is that of the start');

done_testing();
