#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole group or nothing: what the daemon refuses the kernel refuses too, when it is tried by hand; what it hands out the kernel takes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

use constant DROP_IN => '/etc/passthroughd/passthroughd.conf.d/test.conf';

END { local $?; unlink DROP_IN; ctl('reload') }

ok(settled(), 'the node is settled');
my $functions = functions();
my $before    = drivers();

sub group { my ($address) = @_; return $functions->{$address}{iommu_group} }

# What the kernel refuses as well: an allocation for which this device would be needed.
sub is_refused {
        my ($address, $request, @why) = @_;
        my $drivers = drivers();
        is((ctl('rescan'))[0], 0, 'rescan');
        my ($status, $out, $err) = ctl('allocate', 'mine', $request);
        is($status, 1, "allocate $request is refused");
        like($err, names($address, @why), "... and the reason of $address given");
        is_deeply(ctl_json('allocations')->{allocations}, [], '... and nothing allocated');
        is_deeply(drivers(), $drivers, '... and nothing written');
        return ok(!group_is_viable(group($address)), '... and the kernel would not give it to a guest either');
}

# ---- a driver of the host in the group

# Behind a bridge to conventional PCI, whose hot-plug driver does not leave DMA to others; and beside functions of the chipset.
my ($bridged) = grep { readlink("/sys/bus/pci/devices/$_") =~ m{/0000:80:} && devices()->{$_}{state} eq 'host' } role('1234:11e8');
my ($sata)    = role('8086:2922');
for my $case ([$bridged, 'shpchp', 'accelerator=6'], [$sata, 'lpc_ich', 'host=1']) {
        my ($address, $driver, $request) = @$case;
        my $explained = ctl_json('explain', $address);
        is($explained->{verdict}, 'group-not-viable', "$address is not on offer");
        like($explained->{reason}, names($driver), "... because of $driver");
        my $was = bind_by_hand($address, 'vfio-pci');
        is_refused($address, $request, $driver);
        give_back($address, $was);
}

# ---- a member that another driver has

my ($first, $second) = grep { $_ =~ /\.[01]$/ && readlink("/sys/bus/pci/devices/$_") =~ m{/0000:80:} && $_ ne $bridged } role('1234:11e8');
is(group($first), group($second), "$first and $second are one group");
output(qw(modprobe uio_pci_generic));
bind_by_hand($first,  'vfio-pci');
bind_by_hand($second, 'uio_pci_generic');
spew(DROP_IN, "[Exclude]\nMatch=address=$second\n");
is((ctl('reload'))[0], 0, "$second is the host's");
is_refused($first, 'accelerator=4', $second, 'uio_pci_generic');
give_back($second);
ok(group_is_viable(group($first)), '... but does when that has none');
give_back($first);
unlink DROP_IN;
is((ctl('reload'))[0], 0, "$second is on offer again");
is_deeply(drivers(), $before, 'all is as it was');

# On offer itself, it is no obstacle: the daemon takes the whole group, and gives it back to whom it had.
bind_by_hand($second, 'uio_pci_generic');
my $bound = drivers();
is((ctl('rescan'))[0], 0, 'rescan');
is((ctl(qw(allocate card accelerator=5)))[0], 0, 'five accelerators are allocated');
is(link_name("/sys/bus/pci/devices/$second/driver"), 'vfio-pci', "$second has left uio_pci_generic");
ok(group_is_viable(group($first)), '... and the kernel would give the group to a guest');
is((ctl(qw(release card)))[0], 0, 'release');
is_deeply(drivers(), $bound, '... and all is as it was');
give_back($second);

# ---- what is handed out

is((ctl('rescan'))[0], 0, 'rescan');
my ($status, $out, $err) = ctl(qw(allocate whole accelerator=5));
is($status, 0, 'five accelerators are allocated') or diag($err);
my %taken = map { $_->{address} => 1 } @{ ctl_json('show', 'whole')->{devices} };
for my $group (sort { $a <=> $b } keys %{ { map { group($_) => 1 } keys %taken } }) {
        my @endpoints = grep { ($functions->{$_}{iommu_group} // -1) == $group && $functions->{$_}{class} !~ /^0604/ } sort keys %$functions;
        is(scalar(grep { $taken{$_} } @endpoints), scalar @endpoints, "every endpoint of group $group is in the allocation");
        is_deeply([map { link_name("/sys/bus/pci/devices/$_/driver") } @endpoints], [('vfio-pci') x @endpoints], '... and on vfio-pci');
        ok(group_is_viable($group), '... and the kernel would give them to a guest');
}
($status, $out, $err) = ctl(qw(release whole));
is($status, 0, 'release') or diag($err);
is_deeply(drivers(), $before, 'and all is as it was');

done_testing();
