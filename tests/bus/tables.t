#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The tables of passthroughctl on a terminal of 80 columns: equal VFs in one line, slots of allocations, names of owners, PFs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100');

my $bus = Bus->new->listen;
my @pfs = map { "0000:$_:00.0" } qw(14 24 34 44 94 a4 b4 c4);

# The lines of a command on a terminal of 80 columns, without the heading.
sub lines_at_80 {
        my (@words) = @_;
        local %ENV = %ENV;
        delete $ENV{COLUMNS};
        # Progress is written over itself.
        my @lines = map { s/\e\[[JK]//gr } split /\r*\n|\r|\e\[\d+A/, scalar qx(script -qec "stty cols 80; passthroughctl @words" /dev/null </dev/null);
        is_deeply([grep { length > 80 } @lines], [], "@words: no line is wider than the terminal");
        return @lines[1 .. $#lines];
}

# ---- list

my @lines = lines_at_80('list');
is(scalar @lines, 8 + 8, 'list: a line for each GPU, and one for the VFs of each PF') or diag(join "\n", @lines);
like($lines[1], qr/^0000:14:00\.1-02\.0 +rdma +16 available +0 /, 'the first and the last VF, and their number');
is(allocate($bus, 'vm', rdma => 2, at => [['rdma', '0000:14:00.3'], ['rdma', '0000:24:00.1']]), 'done', 'two VFs are allocated');
@lines = grep { /^0000:[12]4/ } lines_at_80('list');
is_deeply([map { [(split)[0, 2, 3]] } @lines], [
        ['0000:14:00.1-2',    2,           'available'],
        ['0000:14:00.3',      'allocated', 0],
        ['0000:14:00.4-02.0', 13,          'available'],
        ['0000:24:00.1',      'allocated', 0],
        ['0000:24:00.2-02.0', 15,          'available'],
], 'an allocated VF has a line of its own, and those on both sides of it have one each');
is_deeply([map { (split)[0] } lines_at_80('list', 'rdma')], [map { (split)[0] } grep { / rdma / } lines_at_80('list')], 'list POOL: the same lines for its VFs');
is(scalar(() = lines_at_80('list', 'rdma', '--all')), 128, 'list POOL --all: each VF');
is((ctl('list', 'rdma'))[1], (ctl('list', '--pool', 'rdma'))[1], 'the same as with --pool');
is((ctl('list', 'rdma', '--pool', 'gpu'))[0], 2, 'but not both');
is((ctl('list', 'rdma', 'gpu'))[0], 2, 'nor two');
is(ctl_json('list', 'nopool')->{error}, 'org.passthroughd1.Error.NoSuchPool', 'no such pool');
is(scalar(grep { /^0000:14:0[0-2]\.[0-7] +rdma / } split /\n/, (ctl('list', '--all'))[1]), 16, 'list --all: each VF');
is(scalar(grep { ($_->{pool} // '') eq 'rdma' } @{ ctl_json('list')->{devices} }), 128, 'list --json: each VF');
is(scalar @{ ctl_json('list', 'gpu')->{devices} }, 8, 'list POOL --json: the devices of the pool');

like((ctl('list'))[1], qr/^0000:14:00\.1-2 .* several /m, 'the groups of VFs differ');

# ---- allocations

is((ctl('allocate', 'big', 'gpu=4', 'rdma=9', '--cpus', 8, '--memory', '20G', '--owner', (getpwnam 'nobody')[2]))[0], 0, 'a large allocation of a user');
is((ctl('allocate', 'other', 'gpu=1', '--owner', 12_345))[0], 0, 'one of a user without a name');
@lines = map { [split /(?<!,)\s+/] } lines_at_80('allocations');
is_deeply([map { [@{$_}[0, 2, 3, -1]] } @lines], [
        ['big',   'nobody', 8, 'gpu0-3, rdma0-8'],
        ['other', 12_345,   0, 'gpu0'],
        ['vm',    'root',   0, 'rdma0-1'],
], 'allocations: owner, number of CPUs, slots') or diag((ctl('allocations'))[1]);
is_deeply({ map { $_->{name} => $_->{owner} } @{ ctl_json('allocations')->{allocations} } }, { big => (getpwnam 'nobody')[2], other => 12_345, vm => 0 }, 'in JSON: uids');
like((ctl('show', 'big'))[1], qr/^Owner: +nobody$/m, 'show: the owner');
is((ctl('detach', 'vm', 'rdma0'))[0], 0, 'detach');
is((ctl('attach', 'big', 'rdma=1'))[0], 0, 'attach');
is_deeply([map { (split /(?<!,)\s+/)[-1] } lines_at_80('allocations')], ['gpu0-3, rdma0-9', 'gpu0', 'rdma1'], 'the slots that are there');
my $long = 'x' x 40;
is((ctl('allocate', $long, 'gpu=1', 'rdma=1'))[0], 0, 'one with a long name');
my ($slots) = join("\n", lines_at_80('allocations')) =~ /^$long (.*(?:\n +.*)*)/m;
like($slots, qr/ gpu0,\n +rdma0$/, 'its slots are wrapped at the space') or diag($slots);
is((ctl('release', $long))[0], 0, 'released');

# ---- sizes

is((ctl('allocate', 'odd', '--cpus', 2, '--memory', '5001M'))[0], 0, 'an allocation of no whole GiB');
like((ctl('show', 'odd'))[1], qr/^Memory: +4\.8 GiB on node \d$/m, 'show: with one decimal');
is_deeply([map { values %{ $_->{memory} } } grep { $_->{name} eq 'odd' } @{ ctl_json('allocations')->{allocations} }], [5001 << 20], 'in JSON: bytes');
my @memory = map { [(split ' ', $_)[3 .. 6]] } (split /\n/, (split /\n\n/, (ctl('pools'))[1])[1])[1 .. 2];
is_deeply([map { $$_[1] } @memory], ['TiB', 'TiB'], 'pools: whole sizes have no decimal');
like("@{ $memory[0] }[2, 3] @{ $memory[1] }[2, 3]", qr/^(?=.*\.\d)(?:\d+(?:\.\d)? GiB ?){2}$/, 'what is free has at most one');
is((ctl('release', 'odd'))[0], 0, 'released');

# ---- text: the last one is long

my @addresses = map { $_->{address} } map { @{ $_->{devices} } } grep { $_->{name} eq 'big' } @{ ctl_json('allocations')->{allocations} };
my @shown = lines_at_80('show', 'big');
is_deeply([grep { my $address = $_; !grep { /\b\Q$address\E\b/ } @shown } @addresses], [], 'show: each address is in one line');
is(scalar(grep { /^ {27}\S/ } @shown), 30, 'text about a slot stays behind its name') or diag(join "\n", @shown);
{
        local %ENV = %ENV;
        delete $ENV{COLUMNS};
        is_deeply([grep { length > 80 } split /\n/, (ctl('show', 'big'))[1]], [], 'show into a file is wrapped as well');
        my $error = (ctl('allocate', 'many', 'gpu=9'))[2];
        like($error, qr/\A.{81,}\n\z/, 'an error into a file is one line');
        my @wrapped = lines_at_80('allocate', 'many', 'gpu=9');
        ok(scalar @wrapped, 'on a terminal it has several');
        my ($whole) = map { s/\s+/ /gr =~ s/ \z//r } $error;
        like($whole, qr/\Q@wrapped\E\z/, 'with the same words');
}
lines_at_80('list', '--node', "$ENV{BUILD}/nodes/paper-testbed.tree"); # says that no configuration is there
my @steps = lines_at_80('allocate', 'long', 'gpu=2', 'rdma=4', '--cpus', 4, '--memory', '8G');
is(scalar(() = join(' ', @steps) =~ /rdma\d? ?|0000:[0-9a-f:.]{7}/g) > 0, 1, 'allocate: steps and the result') or diag(join "\n", @steps);
is((ctl('release', 'long'))[0], 0, 'released');

# ---- sriov

@lines = lines_at_80('sriov');
is_deeply([map { (split)[0] } @lines], \@pfs, 'sriov: the PFs');
is_deeply([(split ' ', $lines[4])[1 .. 7]], [qw(rdma host 16 of 16 1 mlx5_core)], 'pool, state, VFs, NUMA node, driver');
is_deeply([map { $_->{address} } @{ ctl_json('sriov') }], \@pfs, 'sriov --json');

done_testing();
