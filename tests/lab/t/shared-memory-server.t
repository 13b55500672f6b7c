#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Guests that share memory by a server: what it gives them is the memory that was promised, of ordinary pages and of hugepages, and they ring each
# other's doorbell. Without a server they do not start, another owner is refused, and one that is left over gets in nobody's way.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guest;
use Lab;

use constant { FILE => '/dev/shm/passthroughd-', HUGE => '/dev/hugepages/passthroughd-', SOCKETS => '/run/ivshmem', CONFIG => '/etc/passthroughd/passthroughd.conf.d/server.conf' };
use constant { TENANT => 5000, OTHER => 5001 };

my @guests  = qw(rank0 rank1);
my @regions = qw(mpi halo);

sub request {
        my ($name, $owner) = @_;
        return ('allocate', $name, '--owner', $owner, qw(--cpus 1 --memory 256M --page-size 2M --shared-memory), "mpi=32M,halo=4M:2M");
}

sub socket_of { my ($region) = @_; return SOCKETS . "/$region.sock" }

# As an administrator runs one, for the group that QEMU is of.
sub serve {
        my ($region) = @_;
        output(qw(systemd-run --quiet --property=Group=kvm --property=UMask=0007), "--unit=ivshmem-$region", '/usr/lib/lab/ivshmem-server', socket_of($region), FILE . $region);
        return ok(wait_until(sub { -S socket_of($region) }), "a server of '$region'");
}

sub stop_serving {
        my ($region) = @_;
        output('systemctl', 'stop', "ivshmem-$region");
        return unlink socket_of($region);
}

# Blocks of the file that the server of a region has open.
sub blocks_of_server {
        my ($region) = @_;
        chomp(my $pid = output('systemctl', 'show', '--property=MainPID', '--value', "ivshmem-$region"));
        my ($fd) = grep { (readlink // '') =~ m{/passthroughd-\Q$region\E} } glob "/proc/$pid/fd/*" or return;
        return (stat $fd)[12];
}

ok(settled(), 'the node is settled');
mkdir SOCKETS;
spew(CONFIG, "[Daemon]\nSharedMemoryServer=" . SOCKETS . "/%n.sock\n");
is((ctl('reload'))[0], 0, 'a server is configured');
my ($status, $out, $err);
for my $name (@guests) {
        ($status, $out, $err) = ctl(request($name, TENANT));
        is($status, 0, "allocate $name") or die $err;
}
my $shared = ctl_json('show', 'rank1')->{shared_memory};
is_deeply([map { $_->{members} } @$shared], [[@guests], [@guests]], 'both share both');
($status, $out, $err) = ctl(request('rank2', OTHER));
is($status, 1, 'a third of another owner is refused');
like($err, names("'mpi'", TENANT, OTHER), '... and told why');

# ---- the guests

my %domain = map { $_ => domain($_, 0) } @guests;
($status, $err) = start_guest('rank0', $domain{rank0});
is($status, 1, 'without a server it does not start');
like($err, names("'${\ socket_of('mpi') }'"), '... and QEMU says which is missing');
serve($_) for @regions;
for my $name (@guests) {
        ($status, $err) = start_guest($name, $domain{$name});
        is($status, 0, "virsh start $name") or diag($err);
}
guest_functions($_) for @guests;
says('rank0', 'put 1 0x12345678', 'put 1 0x12345678');
says('rank1', 'get 1',            'get 1: 0x12345678');
says('rank1', 'put 1 0x0badcafe', 'put 1 0x0badcafe');
says('rank0', 'get 1',            'get 1: 0x0BADCAFE');
says('rank0', 'put 2 0x00000042', 'put 2 0x00000042');
says('rank1', 'get 2',            'get 2: 0x00000042');
my %node = map { $_->{name} => $_->{numa_node} } @$shared;
for my $name (@guests) {
        is_deeply([keys %{ nodes_of($name, $_->[1]) }], [$node{ $_->[0] }], "$name has $_->[1] on the node it was promised on") for ['mpi', FILE . 'mpi'], ['halo', HUGE . 'halo'];
}

# ---- the doorbell

my %id = (rank0 => 0, rank1 => 1); # as they came
says($_, 'id 1', "id 1: $id{$_}") for @guests;
says($_, 'listen 1', 'listen 1') for @guests;
says('rank1', 'rung 1',           'rung 1: 0');
says('rank0', "ring 1 $id{rank1}", "ring 1 $id{rank1}");
says('rank1', 'await 1',          'await 1: 1');
says('rank0', 'rung 1',           'rung 1: 0');
says('rank1', "ring 1 $id{rank0}", "ring 1 $id{rank0}");
says('rank0', 'await 1',          'await 1: 1');

# ---- the end of both

for my $name (@guests) {
        end_guest($name);
        ok(wait_until(sub { ctl_json('show', $name)->{state} eq 'ready' }), "$name is gone");
        is((ctl('release', $name))[0], 0, '... and released');
}
ok(!-l $_ && !-e $_, "$_ is gone") for FILE . 'mpi', FILE . 'halo', HUGE . 'halo';
is(blocks_of_server($_), 0, "... and the server keeps no memory of '$_'") for @regions;
($status, $out, $err) = ctl(request('rank0', TENANT));
is($status, 1, 'with servers of what is gone there is none of the name');
like($err, names("'mpi'", '/run/ivshmem/mpi.sock'), '... and it says so');
stop_serving($_) for @regions;
is((ctl(request('rank0', TENANT)))[0], 0, 'when they have ended there is');
is((ctl('release', 'rank0'))[0],       0, '... and released');

unlink CONFIG;
rmdir SOCKETS;
is((ctl('reload'))[0], 0, 'no server is configured');

done_testing();
