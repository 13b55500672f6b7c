#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The GPUs of a guest are an NVLink partition: what is planned, allocated, refused and shown.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;

node('hgx-h100', configure => 1);
my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100-fabric.conf") =~ s/VirtualFunctions=\d+/VirtualFunctions=1/r;
configure($conf);
my $bus    = Bus->new->listen;
my %module = $conf =~ /^Module=(\S+)=(\d+)$/mg;
my %gpu    = reverse %module;
my ($first, $fifth) = @gpu{1, 5};

# The partition of a plan, and its modules.
sub planned {
        my (@arguments) = @_;
        my $plan = ctl_json('plan', @arguments);
        return join ' ', $plan->{partition} // 'none', sort map { $_->{module} // () } @{ $plan->{devices} };
}

sub gpu_of { my ($name) = @_; return device_in($bus, $name, 'gpu0')->{address} }
sub command { my (@arguments) = @_; return (ctl(@arguments))[1] }

# ---- partitions

is(planned('gpu=8'), '0 1 2 3 4 5 6 7 8', 'eight GPUs');
is(planned('gpu=4', 'rdma=4'), '2 5 6 7 8', 'four GPUs, those of the first node');
is(planned('gpu=4', '--at', "gpu=$gpu{3}"), '1 1 2 3 4', 'four GPUs, one of which the request names');
is(planned('gpu=2'), '5 5 7', 'two GPUs');
is(planned('rdma=2'), 'none', 'no GPU');
is(planned('gpu=3', '--fabric', 'off'), 'none 5 6 7', 'three GPUs for a guest without NVLink');
like(command('plan', 'gpu=2'), qr/^Partition: +5, of modules 5, 7$/m, 'the plan says so');
is(allocate($bus, 'one', gpu => 1), 'done', 'a GPU is allocated');
my $one = allocation($bus, 'one');
is_deeply([$one->{partition}, $one->{devices}[0]{address}], [11, $gpu{5}], 'it is the first');
like(slurp(ledger_file('one')), qr/"partition": 11,/, 'its partition is on disk');
restart();
is(allocation($bus, 'one')->{partition}, 11, 'the next daemon knows it');
is(planned('gpu=4'), '1 1 2 3 4', 'then four GPUs are those that are whole');
is(planned('gpu=2'), '6 6 8', 'two GPUs break no four');
is(planned('gpu=1'), '13 7', '... and one GPU breaks no two');
is(ctl_json('plan', 'gpu=1', '--repeat')->{count}, 7, 'all GPUs can be had');
is(ctl_json('plan', 'gpu=2', '--repeat')->{count}, 3, '... but not all in pairs');

# ---- refusals

is(allocate($bus, 'two', gpu => 1, at => [['gpu', $gpu{2}]]), 'done', 'another GPU');
is_error($bus->call('Plan', request(gpu => 4)), 'Insufficient', ['insufficient-devices', 'gpu', 'one', $gpu{5}, 'two', $gpu{2}], 'no four are whole');
is_error($bus->call('Plan', request(gpu => 3)), 'Insufficient', ['insufficient-devices', 'gpu'], 'there are no partitions of three');
is_error($bus->call('Plan', request(gpu => 2, at => [map { ['gpu', $gpu{$_}] } 6, 7])), 'Insufficient', ['insufficient-devices', 'gpu'], 'two that are no partition');
is_error($bus->call('Plan', request(gpu => 1, fabric => 'on')), 'InvalidRequest', ['invalid-request', 'on'], 'an unknown word');
is_error($bus->call('Detach', 'sts', 'one', Node::generation($bus, 'one'), 'gpu0'), 'NotSupported', ['not-supported', $gpu{5}, 'one'], 'a GPU of a partition stays');
my ($signature, $entries) = request(gpu => 1);
is_error($bus->call('Attach', "st$signature", 'one', Node::generation($bus, 'one'), $entries), 'NotSupported', ['not-supported', 'gpu', 'one'], '... and gets no other beside it');
is(allocate($bus, 'off', gpu => 3, fabric => 'off'), 'done', 'three GPUs without NVLink');
is(allocation($bus, 'off')->{partition}, undef, 'they are no partition');
is(release($bus, 'off'), 'done', 'they are released');

# ---- what is shown

like(command('list', '--pool', 'gpu'), qr/ ALLOCATION .*MODULE PARTITION .*^\Q$fifth\E [^\n]* one [^\n]* 5 +11 .*^\Q$first\E [^\n]* - [^\n]* 1 +- /ms, 'list');
like(command('explain', $gpu{5}), qr/^It is NVLink module 5, in partition 11\.$/m, 'explain');
like(command('explain', $gpu{1}), qr/^It is NVLink module 1\.$/m,                  'explain, without an allocation');
like(command('show', $gpu{5}), qr/^Module: +5\nPartition: +11$/m, 'show a device');
like(command('show', 'one'),   qr/^Partition: +11$/m,             'show an allocation');
like(command('topology'), qr/\Q$fifth\E +gpu +allocated +one .*, module 5 of partition 11$/m, 'topology');
my $matrix = command('topology', '--matrix');
like($matrix, qr/^GPU0 +X +NVL +NVL +NVL +NVL +NVL +NVL +NVL\b/m, 'the matrix has NVLink between GPUs');
like($matrix, qr/^NIC0 +NODE|^NIC0 +PIX/m, '... and distances between others') or diag($matrix);
like($matrix, qr/^NVL   /m, '... and says what NVL is');

# ---- a GPU of a partition stays, with any configuration

is(allocate($bus, 'pair', gpu => 2, rdma => 1), 'done', 'two GPUs and a NIC');
my %later = (
        'Fabric=no'                 => $conf =~ s/^Fabric=yes$//mr,
        'a pool of another name'    => $conf =~ s/^\[Pool gpu\]$/[Pool other]/mr,
        'no [Fabric]'               => $conf =~ s/^\[Fabric\].*?^(?=\[Pool)//smr =~ s/^Fabric=yes$//mr,
        'Fabric=no and no Module='  => $conf =~ s/^(?:Fabric=yes|Module=.*)\n//gmr,
);
for my $change (sort keys %later) {
        configure($later{$change});
        is_error($bus->call('Detach', 'sts', 'pair', Node::generation($bus, 'pair'), 'gpu0'), 'NotSupported', ['not-supported', 'pair', gpu_of('pair')], "$change: a GPU stays");
}
configure($later{'Fabric=no'});
is($bus->result($bus->call('Detach', 'sts', 'pair', Node::generation($bus, 'pair'), 'rdma0')->{body}[0]), 'done', 'the NIC can be detached');
{
        my $gpu = gpu_of('pair');
        fault('remove ' . readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{^(?:\.\./)+}{sys/}r);
        is($bus->call('Rescan')->{error}, undef, 'a GPU is lost');
        is_error($bus->call('Detach', 'sts', 'pair', Node::generation($bus, 'pair'), 'gpu0'), 'NotSupported', ['not-supported', 'pair', $gpu], '... and stays');
        fault('write sys/bus/pci/rescan 1');
        is($bus->call('Rescan')->{error}, undef, '... until it is back');
}
configure($conf);

# ---- module ids that were wrong are corrected: the partition of an allocation is of GPUs that it does not have

release_all($bus);
configure($conf =~ s/=5$/=X/mr =~ s/=6$/=5/mr =~ s/=X$/=6/mr =~ s/=7$/=X/mr =~ s/=8$/=7/mr =~ s/=X$/=8/mr);
is(allocate($bus, 'wrong', gpu => 2), 'done', 'two GPUs');
my ($partition, @has) = (allocation($bus, 'wrong')->{partition}, map { $_->{address} } @{ allocation($bus, 'wrong')->{devices} });
like($partition, qr/^[56]$/, '... of the modules that are exchanged');
configure($conf);
is_deeply([grep { my $gpu = $_; grep { $_ eq $gpu } @has } @gpu{ $partition == 5 ? (5, 7) : (6, 8) }], [], 'they are of another partition now');
unlike(planned('gpu=2'), qr/^$partition /, '... and no other allocation gets the partition that the first has');
is(allocate($bus, 'far', gpu => 4), 'done', 'the other four GPUs are allocated');
is_error($bus->call('Plan', request(gpu => 2)), 'Insufficient', ['insufficient-devices', 'gpu', 'wrong', $partition, $has[0]], '... and the refusal names the allocation and the partition');
release_all($bus);
is(allocate($bus, 'one', gpu => 1), 'done', 'a GPU is allocated');

# ---- a node without NVSwitches

configure(slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/VirtualFunctions=\d+/VirtualFunctions=1/r);
like(command('list', '--pool', 'gpu'), qr/^ADDRESS +POOL (?!.*MODULE).*\n(?:0000:.*\n){8}/, 'list has no such columns');
unlike(command('topology', '--matrix'), qr/^GPU\d .* NVL /m, 'the matrix has PCIe distances');
is(allocation($bus, 'one')->{partition}, 11, 'an allocation keeps its partition');
is(release($bus, 'one'), 'done', '... until it is released');

done_testing();
