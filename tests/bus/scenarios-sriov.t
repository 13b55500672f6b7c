#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Scenarios by their ids: VFs shared out, VFs that go away, VFs whose group nobody knows before they are there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my @pfs = qw(0000:14:00.0 0000:24:00.0);
my $bus = Bus->new->listen;

sub path { my ($address) = @_; return "sys/bus/pci/devices/$address" }

sub vfs { my ($pf) = @_; my @vfs = map { readlink =~ s{.*/}{}r } glob "$ENV{NODE_ROOT}/" . path($pf) . '/virtfn*'; return @vfs }

sub set_vfs { my ($pf, $count) = @_; fault('write ' . path($pf) . "/sriov_numvfs $count"); return }

sub pool { my ($name) = @_; my ($pool) = grep { $_->{name} eq $name } @{ describe($bus)->{pools} }; return $pool && { %$pool{qw(total available)} } }

sub addresses { my ($name) = @_; return map { $_->{address} } @{ (allocation($bus, $name) // {})->{devices} } }

sub pfs_of { my ($name) = @_; my @pfs = sort map { device($bus, $_)->{physical_function} } addresses($name); return @pfs }

sub start_with { my ($text) = @_; configure($text); $bus->forget_signals(); return }

my $bare = tree();

# ---- B9: two PFs of two VFs

start_with("[Pool vf]\n" . join('', map { "Match=type=vf pf=$_\n" } @pfs) . "VirtualFunctions=2\n");
my $four = tree();
my @all  = map { vfs($_) } @pfs;
is(scalar @all, 4, 'B9: two PFs have two VFs each');
is_deeply(pool('vf'), { total => 4, available => 4 }, 'B9: all on offer');
is(allocate($bus, 'vm1', vf => 1), 'done', 'B9: one guest takes a VF');
is_deeply(pool('vf'), { total => 4, available => 3 }, 'B9: three are left');
is(allocate($bus, 'vm2', vf => 2), 'done', 'B9: another one takes two');
is_deeply(pool('vf'), { total => 4, available => 1 }, 'B9: one is left');
is(scalar keys %{ { map { $_ => 1 } addresses('vm1'), addresses('vm2') } }, 3, 'B9: nobody has what another one has');
is_deeply([pfs_of('vm2')], \@pfs, 'B9: the two are of both PFs');
is((allocate($bus, 'vm3', vf => 2))[0], 'org.passthroughd1.Error.Insufficient', 'B9: a third one cannot have two');
is(release($bus, $_), 'done', "B9: $_ leaves") for qw(vm1 vm2);

# With one VF of each PF left there is no other way than to take both.
is(allocate($bus, "vm$_", vf => 1), 'done', "B9: guest $_ of four takes a VF") for 1 .. 4;
my %left;
for my $name (map { "vm$_" } 1 .. 4) {
        my ($pf) = pfs_of($name);
        next if $left{$pf};
        $left{$pf} = (addresses($name))[0];
        is(release($bus, $name), 'done', "B9: the first one on $pf leaves");
}
is_deeply([sort keys %left], \@pfs, 'B9: one VF of each PF is left');
is(allocate($bus, 'split', vf => 2), 'done', 'B9: a guest takes two');
is_deeply([sort { $a cmp $b } addresses('split')], [sort { $a cmp $b } values %left], 'B9: one of each PF');
is_deeply(pool('vf'), { total => 4, available => 0 }, 'B9: none is left');
release_all($bus);
same_tree($four, 'B9: the tree is that of the start');
set_vfs($_, 0) for @pfs;

# ---- C9: VFs that are made by somebody else, and gone at the next start

my $theirs = "[Pool vf]\nMatch=type=vf pf=$pfs[0]\n";
for my $left (2, 1, 0) {
        daemon('stop');
        set_vfs($pfs[0], 0);
        set_vfs($pfs[0], $left) if $left > 0;
        start_with($theirs);
        is_deeply(devices_state($bus, 'vf'), { map { $_ => 'available' } vfs($pfs[0]) }, "C9: $left VFs are there, $left are listed");
        is_deeply(pool('vf'), { total => $left, available => $left }, "C9: the pool has $left")  if $left > 0;
        is_deeply(pool('vf'), { total => 0, available => 0 }, 'C9: deviation: a pool without a device stays, with 0 of 0') if $left == 0;
}
is((allocate($bus, 'vm1', vf => 1))[0], 'org.passthroughd1.Error.Insufficient', 'C9: and there is nothing to be had of it');

# ---- C1: a VF is allocated, its PF loses all

# What there is of the pool, whether it is there or only promised.
sub known { return { map { $_->{address} => $_->{state} } grep { ($_->{pool} // '') eq 'vf' } @{ describe($bus)->{devices} } } }

set_vfs($pfs[0], 2);
start_with($theirs);
my $two = tree();
is(allocate($bus, 'vm1', vf => 1), 'done', 'C1: a VF is allocated');
my ($vf)   = addresses('vm1');
my $offset = log_since();
set_vfs($pfs[0], 0);
ok(!$bus->call('Rescan')->{error}, 'C1: the VFs vanish, and a rescan');
my $warning = names($vf, 'vm1');
ok(wait_until(sub { log_since($offset) =~ $warning }), 'C1: a warning');
is(allocation_state($bus, 'vm1'), 'failed', 'C1: the allocation is kept');
is_deeply(known(), { $vf => 'missing' }, 'C1: with its VF, which is missing; the other one is gone');
ok(!$bus->call('Rescan')->{error}, 'C1: another rescan');
is_deeply(known(), { $vf => 'missing' }, 'C1: does not forget it');
restart();
$bus->forget_signals();
is_deeply(known(), { $vf => 'missing' }, 'C1: nor does a restart');
is(release($bus, 'vm1'), 'done', 'C1: it is released');
is_deeply(known(), {}, 'C1: and only then forgotten');
set_vfs($pfs[0], 2);
$bus->call('Rescan');
same_tree(tree_without_identities($two), 'C1: the tree is that of the start', tree_without_identities()); # the card gives VFs the GUIDs that they had last
set_vfs($pfs[0], 0);

# ---- E11: the same VFs get other group numbers when they are made again

sub groups_of {
        my ($what) = @_;
        my %kernel = map { $_ => (readlink("$ENV{NODE_ROOT}/" . path($_) . '/iommu_group') =~ s{.*/}{}r) } map { vfs($_) } @pfs;
        my %daemon = map { $_->{address} => $_->{iommu_group} } grep { exists $kernel{ $_->{address} } } @{ describe($bus)->{devices} };
        is_deeply(\%daemon, \%kernel, "E11: $what: the groups are what the kernel says");
        return %kernel;
}

sub make_vfs {
        my ($pf) = @_;
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, 2);
        is($reply->{error} ? $reply->{body}[0] : $bus->result($reply->{body}[0]), 'done', "E11: VFs are made on $pf");
        return;
}

start_with("[Pool vf]\n" . join('', map { "Match=type=vf pf=$_\n" } @pfs) . "VirtualFunctions=2\n");
set_vfs($_, 0) for @pfs;
ok(!$bus->call('Rescan')->{error}, 'E11: there are no VFs');
make_vfs($_) for @pfs;
my %first = groups_of('one PF after the other');
set_vfs($_, 0) for @pfs;
ok(!$bus->call('Rescan')->{error}, 'E11: all are removed');
make_vfs($_) for reverse @pfs;
my %second = groups_of('in the other order');
is_deeply([sort keys %second], [sort keys %first], 'E11: the VFs have the addresses they had');
my @same = grep { $first{$_} eq $second{$_} } keys %first;
is_deeply(\@same, [], 'E11: but none the group it had');
is(allocate($bus, 'vm1', vf => 2), 'done', 'E11: they can be allocated');
my @nodes = map { "$ENV{NODE_ROOT}/dev/vfio/$second{$_}" } addresses('vm1');
is_deeply([grep { !-e } @nodes], [], 'E11: and VFIO has nodes for the groups of now');
is(release($bus, 'vm1'), 'done', 'E11: and released');
set_vfs($_, 0) for @pfs;
fault('write ' . path($_) . '/sriov_drivers_autoprobe 1') for @pfs;
same_tree($bare, 'E11: the tree is that of the start');

# ---- A7: eight VFs, one of which a guest has that we did not start

my $pf = '0000:34:00.0'; # whose VFs never were anybody
fault('reset');
start_with("[Pool vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=8\nBind=start\n");
my @vfs = vfs($pf);
is(scalar @vfs, 8, 'A7: eight VFs from start');

# Each is told who it is before it is bound.
sub identified_first {
        my (%identified, @early);
        for (write_log()) {
                $identified{$1} = 1 if m{/vf-netlink/(\d+)/port_guid \S+ -> OK$};
                push @early, $_ if m{drivers_probe (\S+) -> OK$} && grep { $vfs[$_] eq $1 && !$identified{$_} } 0 .. $#vfs;
        }
        return (scalar keys %identified, @early);
}

is_deeply([identified_first()], [8], 'A7: each had its GUIDs before');
is_deeply([map { driver_of($_) } @vfs], [('vfio-pci') x 8], 'A7: bound');
my $eight = tree();

sub change { my ($count) = @_; my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, $count); return $reply->{error} ? ($reply->{error}, $reply->{body}[0]) : $bus->result($reply->{body}[0]) }

fault('set proc/4711/comm qemu-kvm', 'set proc/4711/cgroup 0::/machine.slice/qemu-other.scope', 'link proc/4711/fd/12 /dev/vfio/' . device($bus, $vfs[3])->{iommu_group}, 'reset');
my ($error, $sentence) = change(4);
like($error, qr/\.Unavailable$/, 'A7: another number is refused');
like($sentence, names($vfs[3], $pf, 4711, 'qemu-kvm', 'qemu-other.scope'), 'A7: with the process');
nothing_written('A7: nothing is written');
fault('remove proc/4711');
is(change(4), 'done', 'A7: it ends, and the same call succeeds');
ok(wait_until(sub { 4 == grep { driver_of($_) eq 'vfio-pci' } vfs($pf) }), 'A7: the four are bound');
fault('reset');
ok(wait_until(sub { change(8) eq 'done' }), 'A7: and back, when their jobs have ended');
is(scalar vfs($pf), 8, 'A7: all eight are there when that is said');
is(slurp("$ENV{NODE_ROOT}/" . path($pf) . '/sriov_drivers_autoprobe'), "0\n", 'A7: the host probes none');
ok(wait_until(sub { 8 == grep { driver_of($_) eq 'vfio-pci' } @vfs }), 'A7: they are bound');
ok(wait_until(sub { tree() eq $eight }), 'A7: the tree is as at first') or same_tree($eight, 'A7: what differs');

done_testing();
