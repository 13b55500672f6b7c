#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# vGPUs on the VFs of a GPU: offered as long as the driver has room, created and removed with their allocation, and created again.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Basename qw(basename);
use JSON::XS;
use List::Util qw(sum);
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

use Boot;
use Document;
use Node;

# With vGPUs that are a property of a VF, and with mediated devices.
my $name = basename($0) eq 'vgpu.t' ? 'vgpu-h100' : 'mdev-h100';
my $mdev = $name eq 'mdev-h100';
my $tree = slurp("$FindBin::Bin/../nodes/$name.tree") =~ s{^%include }{%include $FindBin::Bin/../nodes/}mr;
node($name, configure => 1);

use constant { TYPE => 'NVIDIA H100XM-20C', ID => 1203, OTHER_ID => 1202, OTHER_UUID => '83b8f4f2-509f-382f-3c1e-e6bfe0fa1001' };

my $GPU = '0000:13:00.0';
my @VFS = map { sprintf '0000:13:%02x.%x', $_ >> 3, $_ & 7 } 4 .. 19;
my @vm  = (cpus => 2, memory => 2**30);

# One GPU in each pool.
my $conf = "[Pool vgpu]\nMatch=type=vf pf=$GPU\nVgpuType=" . TYPE . "\n";
my $bus  = Bus->new->listen;
configure($conf);

sub sys       { my ($vf, $file) = @_; return "sys/bus/pci/devices/$vf/$file" }
sub mdev_of   { my ($vf) = @_; my ($type) = glob "$ENV{NODE_ROOT}/" . sys($vf, '*/mdev_type'); return $type }
sub uuid_of   { my ($vf) = @_; return (mdev_of($vf) =~ m{([^/]+)/mdev_type$})[0] }

sub type_of {
        my ($vf) = @_;
        return (slurp_existing("$ENV{NODE_ROOT}/" . sys($vf, 'nvidia/current_vgpu_type')) // 'none') =~ s/\n//r if !$mdev;
        return 'none' if !-e "$ENV{NODE_ROOT}/" . sys($vf, 'mdev_supported_types');
        return mdev_of($vf) ? readlink(mdev_of($vf)) =~ s/.*-//r : 0;
}

sub types     { return { map { $_ => type_of($_) } grep { type_of($_) ne '0' } @VFS } }
sub available { my $states = devices_state($bus, 'vgpu'); return scalar grep { $_ eq 'available' } values %$states }
sub has       { my ($name) = @_; return map { $_->{address} } @{ allocation($bus, $name)->{devices} } }
sub shows_type { my ($id) = @_; return $mdev ? "nvidia-$id" : $id }

# Seconds of CPU time.
sub cpu_of { my ($pid) = @_; return sum((split / /, slurp("/proc/$pid/stat") =~ s/.*\) //r)[11, 12]) / POSIX::sysconf(&POSIX::_SC_CLK_TCK) }

sub ping_for {
        my ($seconds) = @_;
        for (my $end = time + $seconds; time < $end;) { $bus->ping(); select undef, undef, undef, 0.05 }
        return;
}

sub other_hand {
        my ($vf, $id) = @_;
        fault('write ' . (!$mdev ? sys($vf, 'nvidia/current_vgpu_type') . " $id" : $id ? sys($vf, "mdev_supported_types/nvidia-$id/create") . ' ' . OTHER_UUID
                          : sys($vf, OTHER_UUID . '/remove') . ' 1'));
        return;
}

# ---- what is offered

my $before = tree();
is(scalar(keys %{ devices_state($bus, 'vgpu') }), 16, 'the VFs of the GPU are in the pool');
is(available(), 4, 'and as many are on offer as the GPU has room for');
is(device($bus, $VFS[0])->{state}, 'available', 'the first');
is_deeply([@{ device($bus, $VFS[4]) }{qw(state verdict)}], ['host', 'no-vgpu'], 'the fifth is not, and says why');
like(device($bus, $VFS[4])->{reason}, names($GPU, TYPE), '... with GPU and type');
is(device($bus, $VFS[0])->{vgpu}{type}, undef, 'the VF has no vGPU');
ok((grep { $_ eq TYPE } @{ device($bus, $VFS[0])->{vgpu}{creatable} }), 'and can have one of the type');
is(!!device($bus, $VFS[0])->{vgpu}{mediated}, $mdev, 'whether it is a mediated device');
like((ctl('show', $VFS[0]))[1], names(TYPE), 'passthroughctl show lists it');
my ($pool) = grep { $_->{name} eq 'vgpu' } @{ describe($bus)->{pools} };
is_deeply([@$pool{qw(total available allocated out_of_service vgpu_type)}], [16, 4, 0, 12, TYPE], 'the pool as objects');

# ---- one, from request to document and back

my $plan = JSON::XS->new->decode($bus->call('Plan', request(vgpu => 1, @vm))->{body}[0]);
is_deeply($plan->{steps}, ["give $VFS[0] a vGPU of type " . shows_type(ID)], 'the plan has one step');
is($plan->{devices}[0]{vgpu_type}, TYPE, 'and the type');
like((ctl('plan', 'vgpu=1'))[1], names(TYPE), '... which passthroughctl plan prints');
fault('reset');
is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', 'an allocation');
is(scalar(write_log()), 1, 'it took one write') or diag(join "\n", write_log());
is_deeply(types(), { $VFS[0] => ID }, 'its VF has the vGPU');
is(driver_of($VFS[0]), 'nvidia', '... on the driver that it had');
is(available(), 3, 'room for three is left');
is(device($bus, $VFS[0])->{state}, 'allocated', 'the VF is allocated');
like((ctl('show', 'vm1'))[1], names(TYPE), 'passthroughctl show');
my $xml = document('vm1', 'vm1');
if ($mdev) {
        my $uuid = uuid_of($VFS[0]);
        like($xml, qr{<hostdev mode="subsystem" type="mdev" model="vfio-pci">\s*<source>\s*<address uuid="$uuid"/>\s*</source>}, 'the document has the mediated device');
        is(allocation($bus, 'vm1')->{devices}[0]{mdev}, $uuid, '... and so has the allocation');
        is(device($bus, $VFS[0])->{vgpu}{mdev}, $uuid, '... and the VF');
} else {
        like($xml, qr{<hostdev mode="subsystem" type="pci" managed="no">}, 'the document has the VF as it is');
        unlike($xml, qr{model="nvidia"}, '... without a driver to bind');
}
is(scalar(() = $xml =~ /<hostdev /g), 1, '... and nothing else');
is(release($bus, 'vm1'), 'done', 'it is released');
same_tree($before, 'the tree is that of the start');
is(available(), 4, 'and room for four');

# ---- never more than there is room for

is(allocate($bus, 'three', vgpu => 3, @vm), 'done', 'three at once');
is(available(), 1, 'room for one is left');
is_error($bus->call('Allocate', 's' . (request())[0], 'two', (request(vgpu => 2, @vm))[1]), 'Insufficient', ['insufficient-devices', 'vgpu'], 'two more are refused');
{
        my ($signature, $entries) = request(vgpu => 1, @vm);
        my @names   = map { "racer$_" } 1 .. 4;
        my @serials = map { $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", $_, $entries) } @names;
        my @replies = map { $bus->reply($_) } @serials;
        my @won     = grep { !$replies[$_]{error} } 0 .. $#names;
        is(scalar(@won), 1, 'of four that ask for the last, one gets it');
        is($bus->result($replies[ $won[0] ]{body}[1]), 'done', '... and has it');
        is(scalar(keys %{ types() }), 4, 'the GPU is full');
        is(release($bus, $names[ $won[0] ]), 'done', '... until it is released');
}
restart();
$bus = Bus->new->listen;
is(allocation_state($bus, 'three'), 'ready', 'another daemon finds the allocation');
is(available(), 1, 'and knows what is left, which the driver does not tell');

# a lease is a promise before anything is written
is(release($bus, 'three'), 'done', 'all are released');
is(($bus->call('Allocate', 's' . (request())[0], 'lease', (request(vgpu => 3, hold => 600, @vm))[1]))->{error}, undef, 'three are leased');
is_deeply(types(), {}, 'nothing is written');
is(available(), 1, 'and one is left');
is(release($bus, 'lease'), 'done', 'the lease is given back');

# two jobs on one GPU: the second waits, and both have what they asked for
{
        my ($signature, $entries) = request(vgpu => 1, @vm);
        fault('reset', 'hang 1');
        my @replies = map { $bus->call('Allocate', "s$signature", $_, $entries) } qw(slow fast);
        ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'the driver takes its time for a vGPU');
        fault('release');
        is($bus->result($_->{body}[1]), 'done', '... and it and the next one are made') for @replies;
        is_deeply([map { allocation_state($bus, $_) } qw(slow fast)], [qw(ready ready)], '... and both allocations are ready');
        is(release($bus, $_), 'done', "$_ is released") for qw(slow fast);
}

# exact devices
is(allocate($bus, 'exact', vgpu => 1, at => [['vgpu', $VFS[3]]], @vm), 'done', 'a VF by its address');
is_deeply(types(), { $VFS[3] => ID }, '... which has the vGPU');
is_deeply([sort grep { devices_state($bus, 'vgpu')->{$_} eq 'available' } @VFS], [@VFS[0, 1, 2]], 'the others that were on offer still are');
is_error($bus->call('Plan', request(vgpu => 1, at => [['vgpu', $VFS[9]]], @vm)), 'Unavailable', ['no-vgpu', $GPU], 'one that is not on offer');
is(release($bus, 'exact'), 'done', '... is released');

# ---- vGPUs of another program

other_hand($VFS[1], ID);
is(allocate($bus, 'vm2', vgpu => 1, @vm), 'done', 'a vGPU that another program made is left alone');
is_deeply([has('vm2')], [$VFS[0]], '... another VF is taken');
is(available(), 1, 'only the next one is certain now: nobody knows how many the GPU can have');
is_deeply([@{ device($bus, $VFS[1]) }{qw(state verdict)}], ['contested', 'contested'], 'its VF is contested');
ok(!plan_ok($bus, vgpu => 2, @vm), 'two more are not');
is(release($bus, 'vm2'), 'done', '... is released');
other_hand($VFS[1], 0);
is(allocate($bus, 'vm2', vgpu => 4, @vm), 'done', 'a request that would be refused asks the driver again');
is(release($bus, 'vm2'), 'done', '... is released');
other_hand($VFS[15], OTHER_ID);
my ($error, $sentence) = allocate($bus, 'vm2', vgpu => 1, @vm);
is($error, 'org.passthroughd1.Error.Insufficient', 'with a vGPU of another size the driver lists the type no more');
like($sentence, names('vgpu', TYPE), '... and the refusal says so');
other_hand($VFS[15], 0);
same_tree($before, 'all is as at the start');

# ---- lost: by a boot, by another driver of the GPU, by another binding of the VF

is(allocate($bus, 'vm3', vgpu => 2, @vm), 'done', 'two vGPUs');
my $ready = tree(); # with the UUIDs of mediated devices
for my $round ('a boot', 'another boot') {
        boot($bus, $round, $tree);
        is_deeply(types(), { map { $_ => ID } @VFS[0, 1] }, "$round: the vGPUs are there again when the daemon is ready");
        is(allocation_state($bus, 'vm3'), 'ready', "$round: the allocation is ready");
        same_tree($ready, "$round: the tree is as before");
}
SKIP: {
        skip 'no events here', 4 if $ENV{NODE_EVENTS} ne 'yes';
        other_hand_binds($VFS[0], '');
        ok(wait_until(sub { type_of($VFS[0]) eq ID && allocation_state($bus, 'vm3') eq 'ready' }), 'a VF that is bound again gets its vGPU again');
        fault('remove sys/bus/pci/drivers/nvidia');
        ok(wait_until(sub { (allocation($bus, 'vm3')->{reason} // '') ne '' }), 'without the driver the VFs are gone, and the allocation says so');
        fault('driver nvidia ids=10de:2330 sriov', map { 'write ' . sys("0000:$_:00.0", 'sriov_numvfs') . ' 16' } qw(c3 13 23 33 43 93 a3 b3));
        ok(wait_until(sub { keys %{ types() } == 2 && (allocation($bus, 'vm3')->{reason} // '') eq '' }), 'with it both vGPUs are there again')
                or diag(explain([types(), allocation($bus, 'vm3')->{reason}]));
        is(allocation_state($bus, 'vm3'), 'ready', '... and the allocation is ready');
}
is(release($bus, 'vm3'), 'done', 'and is released');
is_deeply(types(), {}, 'with its vGPUs');

# ---- a guest has it open

is(allocate($bus, 'vm4', vgpu => 1, @vm), 'done', 'a vGPU');
fault('set ' . sys($VFS[0], 'vgpu_open') . ' 1');
is(release($bus, 'vm4'), 'failed', 'the driver does not remove what is open');
is(allocation_state($bus, 'vm4'), 'ready', 'and the allocation stays');
is(type_of($VFS[0]), ID, '... with its vGPU');
fault('remove ' . sys($VFS[0], 'vgpu_open'));
{
        my $group = readlink("$ENV{NODE_ROOT}/" . sys($VFS[0], $mdev ? uuid_of($VFS[0]) . '/iommu_group' : 'iommu_group')) =~ s{.*/}{}r;
        fault('set proc/812/comm qemu-system-x86', "link proc/812/fd/3 /dev/vfio/$group");
        is((release($bus, 'vm4'))[0], 'org.passthroughd1.Error.Unavailable', 'a process that has its VFIO group open is found first');
        fault('remove proc/812');
}
is(release($bus, 'vm4'), 'done', 'then it is released');

# ---- attach and detach

is(allocate($bus, 'vm5', vgpu => 1, @vm), 'done', 'a vGPU');
{
        my ($signature, $entries) = request(vgpu => 1);
        my $reply = $bus->call('Attach', "st$signature", 'vm5', allocation($bus, 'vm5')->{generation}, $entries);
        is($reply->{error} // $bus->result($reply->{body}[0]), 'done', 'another is attached') or diag($reply->{body}[0]);
        is(scalar(keys %{ types() }), 2, '... and made');
        $reply = $bus->call('Detach', 'sts', 'vm5', allocation($bus, 'vm5')->{generation}, 'vgpu0');
        is($reply->{error} // $bus->result($reply->{body}[0]), 'done', 'the first is detached') or diag($reply->{body}[0]);
        is_deeply(types(), { $VFS[1] => ID }, '... and gone');
}
is(release($bus, 'vm5'), 'done', 'the rest is released');

# several at once, beside those that the allocation has: as many as the GPU has room for
is(allocate($bus, 'vm5', vgpu => 1, @vm), 'done', 'a vGPU');
{
        my ($signature, $entries) = request(vgpu => 4);
        is_error($bus->call('Attach', "st$signature", 'vm5', allocation($bus, 'vm5')->{generation}, $entries), 'Insufficient', ['insufficient-devices', 'vgpu'], 'four more do not fit');
        ($signature, $entries) = request(vgpu => 2);
        my $reply = $bus->call('Attach', "st$signature", 'vm5', allocation($bus, 'vm5')->{generation}, $entries);
        is($reply->{error} // $bus->result($reply->{body}[0]), 'done', 'two are attached') or diag($reply->{body}[0]);
        is_deeply(types(), { map { $_ => ID } @VFS[0 .. 2] }, '... on its GPU');
        is(available(), 1, '... and one is left');
        other_hand($VFS[3], ID);
        is($bus->call('Rescan')->{error}, undef, 'another program makes that');
        ($signature, $entries) = request(vgpu => 1);
        is_error($bus->call('Attach', "st$signature", 'vm5', allocation($bus, 'vm5')->{generation}, $entries), 'Insufficient', ['insufficient-devices', 'vgpu'], '... so that the GPU is full');
        other_hand($VFS[3], 0);
}
is(release($bus, 'vm5'), 'done', 'all are released');
is_deeply(types(), {}, '... with their vGPUs');

# ---- killed at each write

for my $n (1, 2) {
        my $what = "killed in write $n";
        my ($signature, $entries) = request(vgpu => 2, @vm);
        killed_in($bus, $n, "$what of an allocation", 'Allocate', "s$signature", 'vm6', $entries);
        ok(wait_until(sub { allocation_state($bus, 'vm6') eq 'ready' }), "$what: the next daemon completes it");
        is_deeply(types(), { map { $_ => ID } @VFS[0, 1] }, "$what: with its vGPUs");
        killed_in($bus, $n, "$what of a release", 'Release', 'st', 'vm6', allocation($bus, 'vm6')->{generation});
        ok(wait_until(sub { allocation_state($bus, 'vm6') eq 'gone' }), "$what: the next daemon releases it");
        is_deeply(types(), {}, "$what: with its vGPUs");
        for my $when ('before', 'after') {
                fault('reset', "kill $n $when");
                is(allocate($bus, 'vm6', vgpu => 2, @vm), 'failed', "the job is killed $when write $n");
                is(allocation_state($bus, 'vm6'), 'failed', '... and the allocation has failed');
                fault('reset');
                is(release($bus, 'vm6'), 'done', '... which is released');
                is_deeply(types(), {}, '... with all its vGPUs');
        }
}

# ---- a pool of whole VFs: one with a vGPU of another program stays

configure($conf =~ s/^VgpuType=.*\n//mr);
$bus = Bus->new->listen;
other_hand($VFS[0], ID);
is(allocate($bus, 'whole', vgpu => 1, @vm), 'done', 'another program makes a vGPU: a whole VF is allocated');
is_deeply([has('whole')], [$VFS[1]], '... which is another one');
is(type_of($VFS[0]), ID, '... and the vGPU is there');
is_deeply([@{ device($bus, $VFS[0]) }{qw(state verdict)}], ['contested', 'contested'], '... its VF is contested');
is(release($bus, 'whole'), 'done', '... and the VF is released');
is($bus->call('Allocate', 's' . (request())[0], 'whole', (request(vgpu => 1, hold => 600, @vm))[1])->{error}, undef, 'a whole VF is leased');
is_deeply([has('whole')], [$VFS[1]], '... the other one');
other_hand($VFS[0], 0);
other_hand($VFS[1], ID);
is_error($bus->call('Prepare', 'st', 'whole', allocation($bus, 'whole')->{generation}), 'Unavailable', ['contested', 'whole', $VFS[1], ID], '... is not prepared while another program has a vGPU there');
is(type_of($VFS[1]), ID, '... which stays');
other_hand($VFS[1], 0);
is($bus->result($bus->call('Prepare', 'st', 'whole', allocation($bus, 'whole')->{generation})->{body}[0]), 'done', '... and is prepared then');
is(release($bus, 'whole'), 'done', '... and released');

other_hand($VFS[0], ID);
is(allocate($bus, 'whole', vgpu => 1, @vm), 'done', 'the first VF has a vGPU of another program: an allocation');
is(release($bus, 'whole'), 'done', '... gets another VF');
is(device($bus, $VFS[0])->{state}, 'contested', '... the first is contested');
other_hand($VFS[0], 0);
is(allocate($bus, 'whole', vgpu => 1, at => [['vgpu', $VFS[0]]], @vm), 'done', '... until the vGPU is removed');
is(release($bus, 'whole'), 'done', '... and is released');

# ---- a vGPU and a driver are lacking

configure("[Pool vgpu]\nMatch=type=vf pf=$GPU\nVgpuType=" . TYPE . "\n[Pool rdma]\nMatch=vendor=15b3 id=15b3:1021 type=pf\n");
$bus = Bus->new->listen;
SKIP: {
        skip 'no events here', 6 if $ENV{NODE_EVENTS} ne 'yes';
        is(allocate($bus, 'vm6', vgpu => 1, rdma => 1, @vm), 'done', 'a vGPU and a NIC');
        my ($vf) = grep { type_of($_) eq ID } @VFS;
        fault('remove sys/bus/pci/drivers/vfio-pci');
        fault('write ' . sys($vf, $mdev ? uuid_of($vf) . '/remove 1' : 'nvidia/current_vgpu_type 0'));
        is($bus->call('Rescan')->{error}, undef, 'the VFIO driver is not loaded, and the vGPU is lost');
        ok(wait_until(sub { (allocation($bus, 'vm6')->{reason} // '') =~ names($vf) }), '... as the allocation says');
        my $begun = cpu_of(pid());
        # Each call is a turn of the loop, and the daemon has nothing to do in it.
        ping_for(1);
        cmp_ok(cpu_of(pid()) - $begun, '<', 0.5, 'the daemon waits for it');
        fault('driver vfio-pci vfio');
        ok(wait_until(sub { type_of($vf) eq ID && (allocation($bus, 'vm6')->{reason} // '') eq '' }), 'with it both are there again')
                or diag(explain(allocation($bus, 'vm6')->{reason}));
        is(release($bus, 'vm6'), 'done', 'and are released');
}

# ---- types backed by MIG, and pools that share a GPU

configure("[Pool mig]\nMatch=type=vf pf=0000:c3:00.0\nVgpuType=NVIDIA H100XM-1-10C\n");
$bus = Bus->new->listen;
for my $n (1 .. 3) {
        is((grep { $_ eq 'available' } values %{ devices_state($bus, 'mig') }), 1, "the driver has room for GPU instance $n");
        is(allocate($bus, "mig$n", mig => 1, @vm), 'done', '... which is taken');
}
ok(!plan_ok($bus, mig => 1, @vm), 'there are no more');
release_all($bus);
configure("[Pool a]\nMatch=address=0000:13:00.*\nMatch=address=0000:23:00.*\nVgpuType=" . TYPE . "\n[Pool b]\nMatch=address=0000:13:01.*\nMatch=address=0000:23:01.*\nVgpuType=NVIDIA H100XM-40C\n[Exclude]\nMatch=type=pf\n");
$bus = Bus->new->listen;
is_deeply([map { my $pool = $_; scalar grep { $_ eq 'available' } values %{ devices_state($bus, $pool) } } qw(a b)], [8, 4], 'two pools offer the same GPUs');
is(allocate($bus, 'both', a => 1, b => 1, @vm), 'done', 'one of each');
my %pf = map { $_->{pool} => $_->{physical_function} } @{ allocation($bus, 'both')->{devices} };
isnt($pf{a}, $pf{b}, '... comes from two GPUs, since the sizes differ');
release_all($bus);
is_deeply([grep { slurp($_) ne "0\n" } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/*/nvidia/current_vgpu_type"], [], 'no vGPU is left');
is_deeply([glob "$ENV{NODE_ROOT}/sys/bus/mdev/devices/*"], [], '... and no mediated device');

done_testing();
