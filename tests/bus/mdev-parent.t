#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A GPU without VFs whose driver creates several mediated devices on the GPU itself: each is a device of a pool of vGPUs, as many as the
# driver has room for, and the whole GPU is offered while it has none.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Boot;
use Document;
use Guests;
use Node;

node_with_guests('paper-testbed', configure => 1);

my $gpu    = '0000:82:00.0';
my $device = "sys/bus/pci/devices/$gpu";
my @slots  = map { "$gpu.$_" } 1 .. 32;
my @uuids  = map { "83b8f4f2-509f-382f-3c1e-e6bfe0fa100$_" } 1 .. 2;
my @vm     = (cpus => 1, memory => 2**28);

fault('driver i915 any');
my $bus = Bus->new->listen;

sub types     { return { map { (split m{/})[-2] => (split m{/}, readlink)[-1] } glob "$ENV{NODE_ROOT}/$device/*/mdev_type" } }
sub available { my ($pool) = @_; my $states = devices_state($bus, $pool); return join ' ', sort grep { $states->{$_} eq 'available' } keys %$states }
sub mdev_of   { my ($name) = @_; return allocation($bus, $name)->{devices}[0]{mdev} }
sub slot_of   { my ($name) = @_; return allocation($bus, $name)->{devices}[0]{address} }
sub create    { my ($type, $uuid) = @_; fault("write $device/mdev_supported_types/$type/create $uuid"); return }
sub free      { my ($uuid) = @_; fault("write $device/$uuid/remove 1"); return }
sub rescan    { is($bus->call('Rescan')->{error}, undef, 'rescan'); return }

sub pool {
        my ($name) = @_;
        my ($found) = grep { $_->{name} eq $name } @{ describe($bus)->{pools} };
        return [@$found{qw(total available allocated out_of_service)}];
}

sub guest_uses {
        my ($uuid) = @_;
        my $group = readlink("$ENV{NODE_ROOT}/sys/bus/mdev/devices/$uuid/iommu_group") =~ s{.*/}{}r;
        fault('set proc/812/comm qemu-system-x86', "link proc/812/fd/3 /dev/vfio/$group");
        return;
}

my @nvidia = ('222 1 GRID T4-1B', '230 8 GRID T4-8Q', '231 16 GRID T4-16Q');
my @gvt    = ('GVTg_V5_8 1 GVTg_V5_8', 'GVTg_V5_4 2 GVTg_V5_4', 'GVTg_V5_2 4 GVTg_V5_2');

# ---- the driver registers its types after the daemon has started

configure("[Pool vgpu]\nMatch=vendor=10de\nVgpuType=GRID T4-8Q\n");
is_deeply(pool('vgpu'), [1, 0, 0, 1], 'without types the GPU is out of service');
fault("set $device/mdev_supported_types/nvidia-230/name GRID T4-8Q", "set $device/mdev_supported_types/nvidia-230/available_instances 1");
is((allocate($bus, 'late', vgpu => 2, @vm))[0], 'org.passthroughd1.Error.Insufficient', 'two are refused');
is_deeply(pool('vgpu'), [1, 1, 0, 0], '... and the types are known then');
fault("remove $device/mdev_supported_types");

# ---- NVIDIA's: one size on a GPU

mdev_parent($gpu, 'nvidia', 16, @nvidia);
my $conf = "[Pool vgpu]\nMatch=vendor=10de\nVgpuType=GRID T4-8Q\n";
my $tree = slurp("$FindBin::Bin/../nodes/paper-testbed.tree");
configure($conf);
my $start = tree();
is_deeply(pool('vgpu'), [2, 2, 0, 0], 'the pool has as many slots as the GPU has room for');
is(available('vgpu'), "@slots[0, 1]", '... the first');
is_deeply([@{ device($bus, $gpu) }{qw(pool state verdict)}], [undef, 'host', 'not-in-pool'], 'the whole GPU is not offered beside them');
is(device($bus, $slots[0])->{physical_function}, $gpu, 'a slot names its GPU');
{
        my $reply = $bus->call('SetVirtualFunctions', 'su', $slots[0], 2);
        is($reply->{error}, 'org.passthroughd1.Error.NotSupported', 'it can have no VFs');
        like($reply->{body}[0], names($slots[0], $gpu), '... and is not called a VF');
}
is_deeply([sort @{ device($bus, $slots[0])->{vgpu}{creatable} }], ['GRID T4-16Q', 'GRID T4-1B', 'GRID T4-8Q'], '... and its types');
ok(device($bus, $slots[0])->{vgpu}{mediated}, '... and its vGPU is a mediated device');

fault('reset');
is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', 'an allocation');
is(scalar(write_log()), 1, 'it took one write') or diag(join "\n", write_log());
is_deeply(types(), { mdev_of('vm1') => 'nvidia-230' }, 'the GPU has its mediated device');
is(slot_of('vm1'), $slots[0], '... in the first slot');
is(driver_of($gpu), 'nvidia', '... on the driver that it had');
is(device($bus, $slots[0])->{vgpu}{mdev}, mdev_of('vm1'), '... which the slot shows');
is(available('vgpu'), $slots[1], 'one more is available');
my $uuid = mdev_of('vm1');
like(document('vm1', 'vm1'), qr{<hostdev mode="subsystem" type="mdev" model="vfio-pci">\s*<source>\s*<address uuid="$uuid"/>\s*</source>}, 'the document has it');
like((ctl('show', 'vm1'))[1], names($slots[0]), 'passthroughctl show names the slot');
like((ctl('show', 'vm1'))[1], names('GRID T4-8Q'), '... and the type');
like((ctl('explain', $slots[0]))[1], names($slots[0], 'vm1'), 'passthroughctl explain');
like((ctl('list'))[1], names($slots[0], 'vm1'), 'passthroughctl list');

# ---- the last instance of a type: one of four gets it

{
        my ($signature, $entries) = request(vgpu => 1, @vm);
        my @names   = map { "racer$_" } 1 .. 4;
        my @serials = map { $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", $_, $entries) } @names;
        my @replies = map { $bus->reply($_) } @serials;
        my @won     = grep { !$replies[$_]{error} } 0 .. $#names;
        is(scalar(@won), 1, 'of four that ask for the last, one gets it');
        is($bus->result($replies[ $won[0] ]{body}[1]), 'done', '... and has it');
        is(scalar(keys %{ types() }), 2, 'the GPU is full');
        is_deeply(pool('vgpu'), [2, 0, 2, 0], '... and the pool');
        is(release($bus, $names[ $won[0] ]), 'done', '... until it is released');
        is_deeply(types(), { $uuid => 'nvidia-230' }, 'the other stays');
}

# ---- two jobs on one GPU

is(release($bus, 'vm1'), 'done', 'the first is released');
{
        my ($signature, $entries) = request(vgpu => 1, @vm);
        fault('reset', 'hang 1');
        my @replies = map { $bus->call('Allocate', "s$signature", $_, $entries) } qw(slow fast);
        ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'the driver takes its time for a mediated device');
        is((allocate($bus, 'third', vgpu => 1, @vm))[0], 'org.passthroughd1.Error.Insufficient', 'both are promised');
        fault('release');
        is($bus->result($_->{body}[1]), 'done', '... and both are made') for @replies;
        is_deeply([map { allocation_state($bus, $_) } qw(slow fast)], [qw(ready ready)], '... and both allocations are ready');
        is(release($bus, $_), 'done', "$_ is released") for qw(slow fast);
}
is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', 'the first again');

# ---- a guest runs beside one that is released

is(allocate($bus, 'vm2', vgpu => 1, @vm), 'done', 'a second');
is(slot_of('vm2'), $slots[1], '... in the second slot');
guest_uses(mdev_of('vm2'));
is(release($bus, 'vm1'), 'done', 'the first is released while a guest has the second');
is_deeply(types(), { mdev_of('vm2') => 'nvidia-230' }, '... which stays');
is((release($bus, 'vm2'))[0], 'org.passthroughd1.Error.Unavailable', 'the second is not released');
is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', 'another is allocated beside it');
is(slot_of('vm1'), $slots[0], '... in the free slot');
fault('remove proc/812');
libvirt_reports($bus, running_domain('vm2', allocation($bus, 'vm2')->{id}, mdev_of('vm2')));
is(allocation_state($bus, 'vm2'), 'in-use', 'libvirt reports the guest of the second');
is(allocation_state($bus, 'vm1'), 'ready', '... and the first is not in use');
is(release($bus, 'vm1'), 'done', '... and is released');
is((release($bus, 'vm2'))[0], 'org.passthroughd1.Error.Unavailable', 'the second is not');
libvirt_reports($bus);

# ---- another program's

create('nvidia-230', $uuids[0]);
is((allocate($bus, 'late', vgpu => 1, @vm))[0], 'org.passthroughd1.Error.Insufficient', 'a mediated device of another program takes its room')
        or diag(explain(types()));
is(device($bus, $slots[31])->{vgpu}{mdev}, $uuids[0], '... and has the last slot');
is(release($bus, 'vm2'), 'done', 'the allocation is released');
is_deeply(types(), { $uuids[0] => 'nvidia-230' }, '... and that of the other program stays');
is_deeply(pool('vgpu'), [2, 1, 0, 1], 'the pool counts it');
is_deeply([@{ device($bus, $slots[1]) }{qw(state verdict)}], ['host', 'no-vgpu'], '... and says why a slot is not available');
like(device($bus, $slots[1])->{reason}, names($gpu, 'GRID T4-8Q'), '... with GPU and type');
is(available('vgpu'), $slots[0], 'there is room for one beside it');
is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', '... which is allocated');
is(release($bus, 'vm1'), 'done', '... and released');
free($uuids[0]);
rescan();
same_tree($start, 'all is as at the start');
SKIP: {
        skip 'no events here', 4 if $ENV{NODE_EVENTS} ne 'yes';
        is(available('vgpu'), "@slots[0, 1]", 'both slots are available');
        create('nvidia-230', $uuids[0]);
        ok(wait_until(sub { available('vgpu') eq $slots[0] }), 'the event of a mediated device is followed');
        free($uuids[0]);
        ok(wait_until(sub { available('vgpu') eq "@slots[0, 1]" }), '... and that of its removal');
        same_tree($start, 'all is as at the start');
}

# ---- a lease, another daemon, a boot

is(($bus->call('Allocate', 's' . (request())[0], 'lease', (request(vgpu => 1, hold => 600, @vm))[1]))->{error}, undef, 'one is leased');
is_deeply(types(), {}, '... and not made');
is(available('vgpu'), $slots[1], 'one is left');
restart();
$bus = Bus->new->listen;
is(available('vgpu'), $slots[1], '... also for another daemon');
is(release($bus, 'lease'), 'done', 'the lease is given back');

is(allocate($bus, 'vm1', vgpu => 1, @vm), 'done', 'a vGPU');
is(allocate($bus, 'vm2', vgpu => 1, @vm), 'done', 'and another');
is(release($bus, 'vm1'), 'done', 'the first is released, so the second has a gap before it');
my $ready = types();
SKIP: {
        skip 'no events here', 5 if $ENV{NODE_EVENTS} ne 'yes';
        fault('remove sys/bus/pci/drivers/nvidia');
        ok(wait_until(sub { (allocation($bus, 'vm2')->{reason} // '') ne '' }), 'without the driver the slots are gone, and the allocation says so');
        is_deeply(types(), {}, '... with the mediated device');
        fault('driver nvidia ids=10de:1028');
        ok(wait_until(sub { keys %{ types() } == 1 && (allocation($bus, 'vm2')->{reason} // '') eq '' }), 'with it the mediated device is there again')
                or diag(explain([types(), allocation($bus, 'vm2')->{reason}]));
        is_deeply(types(), $ready, '... with its UUID');
        is(allocation_state($bus, 'vm2'), 'ready', '... and the allocation is ready');
}
free(mdev_of('vm2'));
rescan();
ok(wait_until(sub { keys %{ types() } == 1 }), 'removed by another program, it is made again');
is_deeply(types(), $ready, '... with its UUID');

# ---- killed at each write

for my $when ('before', 'after') {
        fault('reset', "kill 1 $when");
        is(allocate($bus, 'vm3', vgpu => 1, @vm), 'failed', "the job is killed $when its write");
        fault('reset');
        is(release($bus, 'vm3'), 'done', '... and the allocation is released');
        is_deeply(types(), $ready, '... and the other one stays');
}
{
        my ($signature, $entries) = request(vgpu => 1, @vm);
        killed_in($bus, 1, 'killed in an allocation', 'Allocate', "s$signature", 'vm3', $entries);
        ok(wait_until(sub { allocation_state($bus, 'vm3') eq 'ready' }), 'the next daemon completes it');
        is(scalar(keys %{ types() }), 2, '... with its mediated device');
        killed_in($bus, 1, 'killed in a release', 'Release', 'st', 'vm3', allocation($bus, 'vm3')->{generation});
        ok(wait_until(sub { allocation_state($bus, 'vm3') eq 'gone' }), 'the next daemon releases it');
        is_deeply(types(), $ready, '... and the other one stays');
}
is(release($bus, 'vm2'), 'done', 'that is released, too');
same_tree($start, 'the tree is that of the start');

# ---- the kernel does not return

configure("[Daemon]\nJobTimeoutSec=4\n$conf");
fault('reset', 'unkillable 1');
is(allocate($bus, 'stuck', vgpu => 1, @vm), 'timeout', 'the kernel does not return from making one');
is_deeply([map { device($bus, $_)->{state} } @slots[0, 1]], [qw(stuck stuck)], 'no other one of the GPU is available');
is((allocate($bus, 'late', vgpu => 1, @vm))[0], 'org.passthroughd1.Error.Insufficient', '... or allocated');
fault('release');
ok(wait_until(sub { available('vgpu') eq $slots[1] }), 'it returns, and one is available') or diag(available('vgpu'));
is(release($bus, 'stuck'), 'done', 'the other one is released');
same_tree($start, 'the tree is that of the start');

# ---- a boot, after which the GPU has another address, and which lost all mediated devices

configure($conf);
is(allocate($bus, "vm$_", vgpu => 1, @vm), 'done', "vm$_ is allocated") for 1, 2;
is(release($bus, 'vm1'), 'done', 'the first is released');
(my $moved = $tree) =~ s/\[sys\/\S*$gpu\]\n\K/join '', "vgpu_mdev=1\nvgpu_memory=16\nvgpu_types=$nvidia[0]\n", map { "vgpu_types+=$_\n" } @nvidia[1, 2]/e;
boot($bus, 'a boot', $moved);
ok(wait_until(sub { (allocation_state($bus, 'vm2') // '') eq 'ready' && keys %{ types() } == 1 }), 'the mediated device is made again') or diag(explain(types()));
is_deeply([keys %{ types() }], [mdev_of('vm2')], '... with its UUID');
boot($bus, 'another boot', renumbered($moved, 82 => 92));
ok(wait_until(sub { allocation($bus, 'vm2')->{devices}[0]{address} eq '0000:92:00.0.2' && mdev_of('vm2') =~ m{9200\z} && allocation_state($bus, 'vm2') eq 'ready' }), 'the allocation follows its GPU to another address')
        or diag(explain(allocation($bus, 'vm2')));
is_deeply([mdevs()], [mdev_of('vm2')], '... and has the mediated device there');
like(mdev_of('vm2'), qr/9200\z/, '... whose UUID names the address');
ok(wait_until(sub { allocation_state($bus, 'vm2') eq 'ready' }), '... and is ready');
is(release($bus, 'vm2'), 'done', '... and is released');
is_deeply([mdevs()], [], '... with its mediated device');

# ---- a boot, after which the driver registers its types late

SKIP: {
        skip 'no events here', 40 if $ENV{NODE_EVENTS} ne 'yes';
        boot($bus, 'a third boot', $moved);
        is(allocate($bus, "vm$_", vgpu => 1, @vm), 'done', "vm$_ is allocated") for 1, 2;
        is(release($bus, 'vm1'), 'done', 'the first is released');
        my $made = mdev_of('vm2');
        for my $section ("[Pool vgpu]\nMatch=vendor=10de\nVgpuType=GRID T4-8Q\n", "[Pool other]\nMatch=address=$gpu\n") {
                my ($pool) = $section =~ /Pool (\w+)/;
                boot($bus, "a boot without types, pool $pool", $moved =~ s/^vgpu_mdev=1\n//mr);
                configure($section);
                is_deeply([mdevs()], [], 'there are no types yet');
                like(allocation($bus, 'vm2')->{reason}, names($slots[1]), '... and the allocation says that its slot is missing');
                fault("set $device/vgpu_mdev 1", "register $gpu");
                ok(wait_until(sub { my $vm = allocation($bus, 'vm2'); $vm->{state} eq 'ready' && ($vm->{reason} // '') eq '' }), 'the driver registers its types, and the allocation is as before')
                        or diag(explain(allocation($bus, 'vm2')));
                is_deeply([mdevs()], [$made], '... with its mediated device');
        }
        configure($conf);
        boot($bus, 'a boot without types or events', $moved =~ s/^vgpu_mdev=1\n//mr);
        fault('events off', "set $device/vgpu_mdev 1", "register $gpu", 'events on');
        is(release($bus, 'vm2'), 'done', 'a release reads the GPU of a missing slot');
        is_deeply(pool('vgpu'), [2, 2, 0, 0], '... and knows its types');
        boot($bus, 'a boot without types or allocations', $moved =~ s/^vgpu_mdev=1\n//mr);
        is_deeply(pool('vgpu'), [1, 0, 0, 1], 'there are no types yet');
        fault("set $device/vgpu_mdev 1", "register $gpu");
        ok(wait_until(sub { "@{ pool('vgpu') }" eq '2 2 0 0' }), 'the driver registers its types, and the pool has its slots');
}
boot($bus, 'the first numbers again', $tree);
mdev_parent($gpu, 'nvidia', 16, @nvidia);
fault('driver i915 any');

# ---- the whole GPU

sub whole {
        my ($driver, $type) = @_;

        configure("[Pool gpu]\nMatch=address=$gpu\n");
        create($type, $_) for @uuids;
        rescan();
        for my $uuid (@uuids) {
                fault('reset');
                my ($error, $message) = allocate($bus, 'vm', gpu => 1, @vm);
                is($error, 'org.passthroughd1.Error.Unavailable', "$driver: the whole GPU is refused");
                like($message, names($gpu, $uuid), "$driver: ... with $uuid");
                nothing_written("$driver: ... and nothing is written");
                free($uuid);
        }
        is(allocate($bus, 'vm', gpu => 1, @vm), 'done', "$driver: the whole GPU is allocated when it has none");
        is(driver_of($gpu), 'vfio-pci', "$driver: ... to VFIO");
        is(release($bus, 'vm'), 'done', "$driver: it is released");
        is_deeply([mdevs()], [], "$driver: none was made");
        return;
}

whole('nvidia', 'nvidia-230');

# ---- GVT-g: types that share the memory, in two pools

fault("set $device/vgpu_mixed 1");
mdev_parent($gpu, 'i915', 8, @gvt);
configure("[Pool small]\nMatch=address=$gpu\nVgpuType=GVTg_V5_8\n");
is_deeply(pool('small'), [16, 8, 0, 8], 'eight of the smallest type');
is(allocate($bus, 'small1', small => 1, @vm), 'done', 'one is allocated');
fault("remove $device/mdev_supported_types/i915-GVTg_V5_8/available_instances");
is(release($bus, 'small1'), 'done', '... and released while its type is not listed');
is_deeply(types(), {}, '... with its mediated device');
is(allocate($bus, 'small1', small => 1, @vm), 'done', '... and allocated again');
is(allocate($bus, 'small2', small => 1, @vm), 'done', 'and another');
is_deeply([sort values %{ types() }], [('i915-GVTg_V5_8') x 2], 'the GPU has them');
{
        my ($signature, $entries) = request(small => 2);
        my $reply = $bus->call('Attach', "st$signature", 'small1', allocation($bus, 'small1')->{generation}, $entries);
        is($reply->{error} // $bus->result($reply->{body}[0]), 'done', 'two more are attached to the first') or diag($reply->{body}[0]);
        is(scalar(keys %{ types() }), 4, '... and made');
        is_deeply(pool('small'), [16, 4, 4, 8], '... and counted');
        for my $slot (qw(small1 small2)) {
                $reply = $bus->call('Detach', 'sts', 'small1', allocation($bus, 'small1')->{generation}, $slot);
                is($reply->{error} // $bus->result($reply->{body}[0]), 'done', "$slot is detached") or diag($reply->{body}[0]);
        }
}
configure("[Pool large]\nMatch=address=$gpu\nVgpuType=GVTg_V5_4\n");
is(scalar(split / /, available('large')), 3, 'of the next type three fit beside them');
is(allocate($bus, "large$_", large => 1, @vm), 'done', "number $_ is allocated") for 1 .. 3;
is((allocate($bus, 'large4', large => 1, @vm))[0], 'org.passthroughd1.Error.Insufficient', '... and no more');
is_deeply([sort values %{ types() }], [('i915-GVTg_V5_4') x 3, ('i915-GVTg_V5_8') x 2], 'the GPU is full');
is(release($bus, 'small1'), 'done', 'one of the first type is released');
is(available('large'), '', '... which is too small for one of the other');
is(release($bus, 'small2'), 'done', 'the other, too');
is(scalar(split / /, available('large')), 1, '... and there is room');
release_all($bus);
is_deeply(types(), {}, 'all are removed');
configure("[Pool small]\nMatch=address=$gpu\nVgpuType=GVTg_V5_8\n[Exclude]\nMatch=address=$gpu\n");
is(available('small'), '', '[Exclude] names the GPU');
is(device($bus, $slots[0])->{verdict}, 'excluded', '... for its slots');
whole('i915', 'i915-GVTg_V5_4');

done_testing();
