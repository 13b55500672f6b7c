#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two guests of one owner exchange data through memory that they share, of ordinary pages and of hugepages; a third of another owner is
# refused. The memory is on the node it was promised on, and nothing is left of it when both are gone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guest;
use Lab;

use constant { FILE => '/dev/shm/passthroughd-', HUGE => '/dev/hugepages/passthroughd-' };
use constant { TENANT => 5000, OTHER => 5001, MIB => 2**20 };

my @guests = qw(rank0 rank1);

# The second has some of its own as well: its CPU, and so that, is on the other node.
my %own = (rank0 => '', rank1 => ',own=32M', rank2 => '');

sub request {
        my ($name, $owner) = @_;
        return ('allocate', $name, '--owner', $owner, qw(--cpus 1 --memory 256M --page-size 2M --shared-memory), "mpi=32M,halo=4M:2M$own{$name}");
}

# MiB in files of tmpfs on a node.
sub tmpfs_on {
        my ($node) = @_;
        my ($kib) = output('cat', "/sys/devices/system/node/node$node/meminfo") =~ /\bShmem: +(\d+) kB/;
        return $kib / 1024;
}

sub free_pages { my ($node) = @_; return fact("/sys/devices/system/node/node$node/hugepages/hugepages-2048kB/free_hugepages") }

ok(settled(), 'the node is settled');
my ($status, $out, $err);
my @before = map { tmpfs_on($_) } 0, 1;
for my $name (@guests) {
        ($status, $out, $err) = ctl(request($name, TENANT));
        is($status, 0, "allocate $name") or die $err;
}
my $shared = ctl_json('show', 'rank1')->{shared_memory};
is_deeply([map { $_->{members} } @$shared], [[@guests], [@guests], ['rank1']], 'both share both, and one is of one alone');
my $node = $shared->[0]{numa_node};
my @more = map { tmpfs_on($_) - $before[$_] } 0, 1;
is($shared->[2]{numa_node}, 1 - $node, 'that is on the other node');
cmp_ok(abs($more[$_] - 32), '<', 8, "node $_ has 32 MiB more in tmpfs") or diag("@more") for 0, 1;
is($shared->[1]{numa_node}, $node, '... which are on one node');
($status, $out, $err) = ctl(request('rank2', OTHER));
is($status, 1, 'a third of another owner is refused');
like($err, names("'mpi'", TENANT, OTHER), '... and told why');

# ---- as the kernel has it

my ($user, $kvm) = ((getpwnam 'passthroughd')[2], (getgrnam 'kvm')[2]);
my %size = (FILE . 'mpi', 32, HUGE . 'halo', 4);
for my $file (sort keys %size) {
        my @stat = stat $file;
        is(sprintf('%o %d %d %d', @stat[2, 4, 5, 7]), sprintf('100660 %d %d %d', $user, $kvm, $size{$file} * MIB), "$file is for QEMU's group");
        is($stat[12] * 512, $size{$file} * MIB, '... and there as a whole');
}
is(readlink FILE . 'halo', HUGE . 'halo', 'the one of hugepages is found by its name as well');
is((lstat FILE . 'halo')[4], 0, '... by a link that the kernel lets QEMU follow');

# ---- the guests

for my $name (@guests) {
        ($status, $err) = start_guest($name, domain($name, 0));
        is($status, 0, "virsh start $name") or diag($err);
}
guest_functions($_) for @guests;
says('rank0', 'put 1 0x12345678', 'put 1 0x12345678');
says('rank1', 'get 1',            'get 1: 0x12345678');
says('rank1', 'put 2 0x0badcafe', 'put 2 0x0badcafe');
says('rank0', 'get 2',            'get 2: 0x0BADCAFE');
for my $name (@guests) {
        is_deeply([keys %{ nodes_of($name, $_) }], [$node], "what $name has touched of $_ is on node $node") for FILE . 'mpi', HUGE . 'halo';
}
($status, $out, $err) = ctl('release', 'rank0');
is($status, 1, 'a guest that runs keeps its memory');
like($err, names(qr/domain 'rank0'/), '... and is named');
is((command(qw(systemctl restart passthroughd)))[0], 0, 'the daemon is restarted');
says('rank0', 'put 1 0x00000042', 'put 1 0x00000042');
says('rank1', 'get 1',            'get 1: 0x00000042');

# ---- the end of both

end_guest('rank0');
ok(wait_until(sub { ctl_json('show', 'rank0')->{state} eq 'ready' }), 'one is gone');
is((ctl('release', 'rank0'))[0], 0, '... and released');
says('rank1', 'put 1 0x00000043', 'put 1 0x00000043');
ok(-e FILE . $_, "the other still has '$_'") for qw(mpi halo);
end_guest('rank1');
ok(wait_until(sub { ctl_json('show', 'rank1')->{state} eq 'ready' }), 'the other is gone');
my $free = free_pages($node);
is((ctl('release', 'rank1'))[0], 0, '... and released');
ok(!-l $_ && !-e $_, "$_ is gone") for FILE . 'mpi', FILE . 'own', FILE . 'halo', HUGE . 'halo';
is(free_pages($node), $free + 2, 'and the node has its hugepages again');

done_testing();
