#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The service that systemd started says what sysfs, lspci and numactl say.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

is(service('ActiveState'),   'active',  'systemd started the service');
is(service('UnitFileState'), 'enabled', 'because it is enabled');
is(service('NRestarts'),     0,         'at the first try');

ok(settled(), 'what it says is what sysfs says, once udev is done');

# ---- functions

my $devices   = devices();
my $functions = functions();
is_deeply([sort keys %$devices], [sort keys %$functions], 'it lists the functions that sysfs has');
for my $address (sort keys %$functions) {
        my %said = map { $_ => $devices->{$address}{$_} } keys %{ $functions->{$address} };
        is_deeply(\%said, $functions->{$address}, "$address is as in sysfs");
}

# In the daemon's words, from records of "Key:\tvalue".
sub lspci {
        my %functions;
        for my $record (split /\n\n/, output(qw(lspci -D -vmm -n -k))) {
                my %field = $record =~ /^(\w+):\t(.*)$/mg;
                $functions{ $field{Slot} } = {
                        class => $field{Class}, vendor => $field{Vendor}, device => $field{Device}, driver => $field{Driver},
                        numa_node   => defined $field{NUMANode} ? $field{NUMANode} + 0 : undef,
                        iommu_group => defined $field{IOMMUGroup} ? $field{IOMMUGroup} + 0 : undef,
                };
        }
        return \%functions;
}

my %said;
for my $address (keys %$devices) {
        my %device = %{ $devices->{$address} };
        $said{$address} = { (map { $_ => $device{$_} } qw(vendor device driver numa_node iommu_group)), class => substr $device{class}, 0, 4 };
}
is_deeply(\%said, lspci(), 'and what lspci says');

is_deeply([map { $devices->{$_}{numa_node} } role('8086:10c9')], [0, 1], 'there is a NIC with SR-IOV on each node');
is_deeply([map { $devices->{$_}{numa_node} } role('1002:5046')], [0, 1], 'and a display controller');
is_deeply([map { $devices->{$_}{verdict} } role('1002:5046')], ['boot-vga', 'none'], 'of which one is the boot VGA');

# ---- nodes

my %numactl;
for my $line (split /\n/, output(qw(numactl -H))) {
        $numactl{$1}{cpus} = $2 if $line =~ /^node (\d+) cpus: (.*)/;
        $numactl{$1}{size} = $2 if $line =~ /^node (\d+) size: (\d+) MB/;
        $numactl{$1}{distances} = join ' ', split ' ', $2 if $line =~ /^ +(\d+): +([\d ]+)$/;
}
my %nodes;
for my $node (@{ ctl_json('topology')->{nodes} }) {
        $nodes{ $node->{id} } = {
                cpus      => join(' ', map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $node->{cpus}{total}{cpus}),
                size      => int($node->{memory_total} / 2**20),
                distances => join(' ', map { $node->{distances}{$_} } sort { $a <=> $b } keys %{ $node->{distances} }),
        };
}
is_deeply(\%nodes, \%numactl, 'its nodes have the CPUs, the memory and the distances that numactl tells');

# ---- groups

# The other members of each group, as sysfs has them.
sub companions {
        my ($address) = @_;
        my $group = $functions->{$address}{iommu_group};
        return grep { $_ ne $address } map { s{.*/}{}r } glob "/sys/kernel/iommu_groups/$group/devices/*";
}

for my $address (role('1234:11e8')) {
        my ($status, $out) = ctl('explain', $address);
        my ($table) = $out =~ /^ADDRESS .*\n((?:.+\n)*)/m;
        is_deeply([sort(($table // '') =~ /^(\S+)/mg)], [sort(companions($address))], "explain $address names the rest of its group");
}

my ($upstream) = role('104c:8232');
my @ports      = role('104c:8233');
my @switched   = grep { readlink("/sys/bus/pci/devices/$_") =~ m{/\Q$upstream\E/} } role('1234:11e8');
is(scalar @switched, 3, 'there are three endpoints behind the switch');
is_deeply([map { $devices->{$_}{acs} } @ports], [('open') x 3], 'whose ports have no ACS');
is_deeply([map { $devices->{$_}{isolated} } @switched], [(JSON::XS::false) x 3], 'so none of the endpoints is isolated');
is($functions->{ $switched[0] }{iommu_group}, $functions->{ $switched[1] }{iommu_group}, 'those behind one slot share a group');
isnt($functions->{ $switched[2] }{iommu_group}, $functions->{ $switched[1] }{iommu_group},
        'the kernel gives that behind a slot of its own another group, which is why the daemon has to tell');

done_testing();
