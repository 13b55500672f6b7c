#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The VFs that the configuration asks for are made at boot, by the drivers that udev loads meanwhile, and before libvirt may want them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Lab;

use constant VFS => 2;

my $pci = '/sys/bus/pci/devices';
my @pfs = (role('8086:10c9'), grep { !-e "$pci/$_/physfn" } role('1b36:0010'));
is(scalar @pfs, 3, 'there are three PFs');
for my $pf (@pfs) {
        ok(wait_until(sub { my @links = glob "$pci/$pf/virtfn*"; @links == VFS }), "$pf has its VFs");
        is(fact("$pci/$pf/sriov_drivers_autoprobe"), 0, '... and keeps drivers off them');
}

my $functions = functions();
my @vfs       = grep { defined $functions->{$_}{physical_function} } sort keys %$functions;
ok(wait_until(sub { my $devices = devices(); !grep { ($devices->{$_}{state} // '') ne 'available' } @vfs }), 'all of them are on offer');
for my $vf (@vfs) {
        my $group = $functions->{$vf}{iommu_group};
        is_deeply([glob "/sys/kernel/iommu_groups/$group/devices/*"], ["/sys/kernel/iommu_groups/$group/devices/$vf"], "$vf has a group of its own");
        is($functions->{$vf}{numa_node}, $functions->{ $functions->{$vf}{physical_function} }{numa_node}, '... and the node of its PF');
        is($functions->{$vf}{driver}, undef, '... and no driver');
}

# Of this boot, in its order: the first start counts, other tests may have had more.
sub journal {
        my ($unit, $like) = @_;
        return grep { $_->{MESSAGE} =~ $like } map { decode_json($_) } split /\n/, output(qw(journalctl --boot --output json --unit), $unit);
}

my ($libvirt) = map { $_->{__MONOTONIC_TIMESTAMP} } journal('libvirtd.service', qr/^Starting libvirtd\.service/);
ok(defined $libvirt, 'the journal has when libvirt was first started');
my @early = map { $_->{MESSAGE} =~ /on (\S+)\.$/ }
        grep { $_->{__MONOTONIC_TIMESTAMP} < ($libvirt // 0) } journal('passthroughd.service', qr/^Created VFs/);
is_deeply([sort @early], [sort @pfs], 'the journal tells that they were made before that');

done_testing();
