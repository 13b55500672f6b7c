#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded machines say what the machine says: an unpacked tree what nodesim serves of it, a recording what was recorded;
# and a recording does not say whose machine it was.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use File::Temp qw(tempdir);
use Time::HiRes qw(time);

use Node qw(names slurp spew);

my $source = "$FindBin::Bin/../..";
my $build  = $ENV{BUILD} // "$source/build";
plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';

my $tmp = tempdir(CLEANUP => 1);
$ENV{TMPDIR} = "$tmp/unpacked";
mkdir $_ or die $! for $ENV{TMPDIR}, "$tmp/root";

# Standard output of a command that must succeed.
sub output {
        my (@command) = @_;
        open my $out, '-|', @command or die "$command[0]: $!";
        local $/ = undef;
        my $text = <$out> // '';
        close $out or BAIL_OUT("@command failed");
        return $text;
}

# Which errno a damaged file gives is not a fact about the machine.
sub inventory { my ($root) = @_; return output("$build/tests/dump-inventory", $root) =~ s/cannot be read \(.*?\)/cannot be read/gr }

sub with_mount {
        my ($tree, $code) = @_;
        output("$build/tests/nodesim", $tree, "$tmp/root");
        $code->("$tmp/root");
        system('fusermount3', '-u', "$tmp/root") == 0 or BAIL_OUT('unmount');
        return;
}

sub with_unpacked {
        my ($tree, $code) = @_;
        chomp(my $dir = output("$build/tests/tree-tool", 'unpack', $tree));
        $code->($dir);
        output("$build/tests/tree-tool", 'remove', $dir);
        return;
}

sub nothing_left { my ($what) = @_; is_deeply([glob "$ENV{TMPDIR}/*"], [], "$what: nothing is left behind") }

sub record { my ($root, $verb) = @_; return output("$build/tests/tree-tool", $verb // 'record', $root) }
sub body   { my ($text) = @_; return $text =~ s/^#.*\n//mgr }

sub is_same {
        my ($got, $expected, $what) = @_;
        return pass($what) if $got eq $expected;
        spew("$tmp/got", $got);
        spew("$tmp/expected", $expected);
        fail($what);
        diag(`diff $tmp/expected $tmp/got | head -20`);
        return;
}

for my $name (qw(paper-testbed hgx-h100 edge edge-noiommu)) {
        my $tree = "$source/tests/nodes/$name.tree";
        my ($mounted, $recorded);
        with_mount($tree, sub { $mounted = inventory($_[0]); $recorded = record($_[0]); spew("$tmp/whole", record($_[0], 'record-identities')) });
        with_unpacked("$build/nodes/$name.tree", sub {
                is_same(inventory($_[0]), $mounted, "$name: unpacked as served");
                is_same(body(record($_[0])) =~ s/!ENXIO$/!EIO/mgr, body($recorded) =~ s/!ENXIO$/!EIO/mgr, "$name: recorded as when served")
                  if $recorded !~ /address|_guid/; # those are replaced by something else each time
        });
        for my $text ($recorded, slurp("$tmp/whole")) {
                spew("$tmp/again.tree", $text);
                with_unpacked("$tmp/again.tree", sub { is_same(inventory($_[0]), $mounted, "$name: the recording says the same") });
        }
        with_mount("$tmp/again.tree", sub { is_same(inventory($_[0]), $mounted, "$name: and can be served again") });
        nothing_left($name);
}

# ---- identities

my $mac  = '00:1b:21:3a:4f:2c';
my $uuid = '01234567-89ab-cdef-0123-456789abcdef';
my $dev  = 'sys/devices/pci0000:00/0000:00:01.0';
spew("$tmp/hand-written.tree", <<"END");
proc/sys/kernel/hostname=gpu-node-17.example.com
proc/cmdline=root=UUID=$uuid rd.luks.uuid=luks-$uuid root2=PARTUUID=1234-abcd iommu=pt hostname=gpu-node-17 BOOTIF=01-00-1b-21
proc/1/mountinfo=1 0 8:1 /secret / rw,x=y - ext4 /dev/disk/by-uuid/$uuid rw,z=w\\n2 1 0:5 / /nfs rw - nfs4 filer.example.com:/home rw,addr=192.0.2.1\\n3 1 0:6 / /srv/gpu-node-17 rw - btrfs /dev/mapper/vg-srv rw
proc/swaps=Filename Type Size Used Priority\\n/dev/sda2 partition 1 0 -2
proc/net/route=Iface\\tDestination\\tGateway\\tFlags\\tRefCnt\\tUse\\tMetric\\tMask\\tMTU\\tWindow\\tIRTT\\nenx001b213a4f2c\\t00000000\\t010200C0\\t0003\\t0\\t0\\t100\\t00000000\\t0\\t0\\t0\\neth1\\t000200C0\\t00000000\\t0001\\t0\\t0\\t0\\t00FFFFFF\\t0\\t0\\t0
proc/net/ipv6_route=00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe80000000000000021b21fffe3a4f2c 00000400 00000001 00000000 00000003 eth0
dev/mapper/vg-srv -> ../dm-7
dev/dm-7=
sys/devices/virtual/block/dm-7/
sys/class/block/dm-7 -> ../../devices/virtual/block/dm-7
etc/passthroughd/passthroughd.conf=# of $mac\\n[Pool gpu]\\nMatch=class=03
etc/passthroughd/passthroughd.conf.d/50-x.conf=[Pool x]
etc/passthroughd/passthroughd.conf.d/README=not read
usr/lib/passthroughd/passthroughd.conf.d/60-masked.conf=[Pool y]
sys/class/net/enx001b213a4f2c -> ../../devices/pci0000:00/0000:00:01.0/net/enx001b213a4f2c
[$dev]
vendor=0x15b3
device=0x1021
class=0x020000
sriov_numvfs!EIO
vpd=secret
serial_number=secret
net/enx001b213a4f2c/address=$mac
net/eth1/address=$mac
net/eth2/address=00:1b:21:3a:4f:2d
net/lo/address=00:00:00:00:00:00
infiniband/mlx5_0/node_guid=0002:c903:00f5:1234
infiniband/mlx5_0/sys_image_guid=0002:c903:00f5:1234
infiniband/mlx5_1/node_guid=0002:c903:00f5:1235
[sys/devices/pci0000:00/0000:00:02.0]
vendor=0x8086
device=0x2030
class=0x060400
secondary_bus_number=1
config\@0x00=86 80 30 20
config\@0x100=03 00 41 01 2c 4f 3a ff ff 21 1b 00
config\@0x140=0d 00 01 00
[sys/devices/pci0000:00/0000:00:03.0]
vendor=0x8086
device=0x2030
class=0x060400
secondary_bus_number=2
power_state=D3cold
config\@0x00=86 80 30 20
END
spew("$tmp/who.tree", output("$build/tests/print-node", "$tmp/hand-written.tree")
        . "etc/passthroughd/passthroughd.conf.d/60-masked.conf -> /dev/null\n");

my (@texts, $whole, $long);
with_unpacked("$tmp/who.tree", sub { @texts = map { record($_[0]) } 1 .. 2; $whole = record($_[0], 'record-identities') });
# Users can make mountinfo long, and call what they mount by FUSE like a disk.
with_unpacked("$tmp/who.tree", sub {
        my $mounts = "$_[0]/proc/1/mountinfo";
        spew($mounts, join "\n", slurp($mounts), map { "$_ 1 0:99 / /home/eve/" . 'x' x 25_000 . ' rw - fuse /dev/sda rw' } 1 .. 800);
        $long = record($_[0]);
});
my $text = $texts[0];
for my $secret ($mac, '001b213a4f2c', $uuid, '1234-abcd', 'gpu-node-17', '00-1b-21', 'filer', '192.0.2.1', 'secret', 'x=y', 'z=w',
        '010200C0', '021b21fffe3a4f2c', '00f5:1234', '2c 4f 3a ff', 'example.com')
{
        unlike($text, qr/\Q$secret\E/i, "$secret is not in a recording");
}
my %value = $text =~ /^\Q$dev\E\/(\S+?)=(.*)$/mg;
my ($name) = map { m{^net/(enx\w+)/address$} } keys %value;
like($name, qr/^enx[0-9a-f]{12}$/, 'an interface that is named by its address still has such a name');
like($value{'net/eth1/address'}, qr/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/, 'an address still looks like one');
is($value{"net/$name/address"}, $value{'net/eth1/address'}, 'what was the same is the same');
is('enx' . $value{"net/$name/address"} =~ s/://gr, $name, 'by any spelling');
isnt($value{'net/eth2/address'}, $value{'net/eth1/address'}, 'what was different is different');
is($value{'net/lo/address'}, '00:00:00:00:00:00', 'none stays none');
is($value{'infiniband/mlx5_0/node_guid'}, $value{'infiniband/mlx5_0/sys_image_guid'}, 'GUIDs: the same');
isnt($value{'infiniband/mlx5_0/node_guid'}, $value{'infiniband/mlx5_1/node_guid'}, 'GUIDs: different');
like($text, qr{^sys/class/net/$name -> \.\./\.\./devices/pci0000:00/0000:00:01\.0/net/$name$}m, 'links follow');
like($text, qr/^proc\/net\/route=$name\\t00000000\\t00000000\\t0003/m, 'routes too, without gateways');
unlike($text, qr/eth1\\t/, 'only default routes');
like($text, qr/^proc\/cmdline=root=[0-9a-f]{12} .* iommu=pt hostname=[0-9a-f]{12} /m, 'the command line keeps what it is for');
for ($text, $long) {
        like($_, qr{^proc/1/mountinfo=1 0 8:1 / / rw - ext4 /dev/disk/by-uuid/[0-9a-f]{12} rw\\n3 1 0:6 / /srv/\w+ rw - btrfs /dev/dm-7 rw$}m, 'mounts: devices, and where');
}
unlike($text, qr/sriov_numvfs|vpd|serial_number/, 'never sriov_numvfs, VPD, serial numbers');
unlike($text, qr/0000:00:03\.0\/config/, 'no config space of what sleeps');
like($text, qr/0000:00:02\.0\/config\@0x140=0d 00 01 00/, 'but that of a bridge');
like($text, qr/0000:00:02\.0\/config\@0x100=03 00 41 01 ?(?! 2c 4f 3a ff ff 21 1b 00)/, 'with another serial number in it');
like($text, qr/^etc\/passthroughd\/passthroughd\.conf=# of [0-9a-f:]{17}\\n\[Pool gpu\]\\nMatch=class=03$/m, 'the configuration');
like($text, qr/^etc\/passthroughd\/passthroughd\.conf\.d\/50-x\.conf=\[Pool x\]$/m, 'its drop-ins');
like($text, qr/^etc\/passthroughd\/passthroughd\.conf\.d\/60-masked\.conf:=$/m, 'and masks');
unlike($text, qr/not read/, 'and nothing else');
isnt(body($texts[1]), body($text), 'the next recording replaces by something else');
like($whole, qr/\Q$_\E/, "with identities: $_") for $mac, $uuid, 'gpu-node-17', '0002:c903:00f5:1234', '2c 4f 3a ff ff 21 1b 00';
unlike($whole, qr/sriov_numvfs|vpd|serial_number/, 'with identities: what the daemon does not read is not there either');
like($text, qr/\A# .*\bpassthroughctl \S+ .*\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, Linux \S+, .*\n# .*\n/, 'the header');
nothing_left('identities');

# ---- volumes: answers name them, so their names stay, except what identifies the machine or the disk

my $wwid    = '0QEMU_QEMU_HARDDISK_WX12345';
my $doubled = $uuid =~ s/-/--/gr;
my @volumes = (
        # name, uuid, and a use: a node in mounts or swaps, or none
        ['vg--a-lv--b',                 'LVM-x',                '/dev/mapper/vg--a-lv--b'],
        ['vg--a-swap',                  'LVM-x',                '/dev/vg-a/swap'],
        ['ubuntu--vg-ubuntu--lv',       'LVM-x'],
        ['sda3_crypt',                  'CRYPT-LUKS2-x',        '/dev/mapper/sda3_crypt'],
        ['mpatha',                      'mpath-3600508b400105e210000900000490000'],
        ['rhel_gpu--node--17-root',     'LVM-x',                '/dev/rhel_gpu-node-17/root'],
        ['gpu--node--17.example.com-a', 'LVM-x',                '/dev/mapper/gpu--node--17.example.com-a'],
        ['gpu-node-17_crypt',           'CRYPT-LUKS2-x'],
        ["luks-$uuid",                  'CRYPT-LUKS2-x',        "/dev/mapper/luks-$uuid"],
        ["$doubled-$doubled",           'LVM-x',                "/dev/mapper/$doubled-$doubled"],
        [$wwid,                         "mpath-$wwid",          "/dev/mapper/$wwid"],
        ["$wwid-part1",                 "part1-mpath-$wwid"],
);

# With the links of udev or, as in most recordings, without.
sub volumes {
        my ($links, @which) = @_;
        my $disk = "$dev/nvme/nvme0/nvme0n1";
        my ($mounts, $swaps, $rest) = ('', 'Filename Type Size Used Priority', '');
        while (my ($i, $volume) = each @which) {
                my ($volume_name, $volume_uuid, $node) = @$volume;
                my $dm = "sys/devices/virtual/block/dm-$i";
                $rest .= "$dm/dm/name=$volume_name\n$dm/dm/uuid=$volume_uuid\n$dm/slaves/nvme0n1 -> /$disk\n$dm/dev=253:$i\nsys/class/block/dm-$i -> /$dm\nsys/dev/block/253:$i -> /$dm\n";
                $rest .= ($node =~ s{^/}{}r) . " -> /dev/dm-$i\ndev/dm-$i=\n" if $node && $links;
                $swaps .= "\\n$node partition 1 0 -2" if $node && $volume_name =~ /swap/;
                # The number of the first is that of the volume, others have an anonymous one.
                my ($number, $type) = $i ? ("0:$i", 'btrfs') : ("253:$i", 'xfs');
                $mounts .= "$i 1 $number / /srv/$i rw - $type $node rw\\n" if $node && $volume_name !~ /swap/;
        }
        my $loop = 'sys/devices/virtual/block/loop0';
        return <<"END";
proc/sys/kernel/hostname=gpu-node-17.example.com
proc/cmdline=root=/dev/mapper/rhel_gpu--node--17-root rd.lvm.lv=rhel_gpu-node-17/root resume=/dev/mapper/vg--a-swap
proc/1/mountinfo:=$mounts
proc/swaps=$swaps
$dev/vendor=0x144d
$dev/device=0xa80a
$dev/class=0x010802
$disk/dev=259:0
sys/class/block/nvme0n1 -> /$disk
$loop/loop/backing_file=/dev/mapper/$which[-1][0]
sys/class/block/loop0 -> /$loop
$rest
END
}

# What a volume is called in a chain of uses, with or without identifiers.
sub without_identifiers { return $_[0] =~ s/\Q$wwid\E(-part1)?|gpu(--?)node\g{-1}17(\.example\.com)?|(?<![0-9a-f])[0-9a-f]{8}(?:--?[0-9a-f]{4}){3}--?[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{12}(?![0-9a-f])/ID/gr }

for my $links (0, 1) {
        my $with = $links ? 'with links' : 'without links';
        for my $which ([@volumes[0 .. 4]], map { [$_] } @volumes) {
                my ($first) = map { $_->[0] } @$which;
                my $identifies = without_identifiers($first) ne $first;
                my ($volume_text, $inventory);
                spew("$tmp/volumes.tree", output("$build/tests/print-node", do { spew("$tmp/written.tree", volumes($links, @$which)); "$tmp/written.tree" }));
                with_unpacked("$tmp/volumes.tree", sub { $volume_text = record($_[0]); $inventory = inventory($_[0]); spew("$tmp/whole", record($_[0], 'record-identities')) });
                like($inventory, qr/<- \Q$first\E <- /, "$with: $first is named");
                unlike($volume_text, qr/\Q$_\E/i, "$with: $first: $_ is not in its recording") for $uuid, $doubled, 'gpu-node-17', 'gpu--node--17', 'WX12345';
                for my $recording ($volume_text, slurp("$tmp/whole")) {
                        my @compared;
                        spew("$tmp/again.tree", $recording);
                        with_unpacked("$tmp/again.tree", sub {
                                @compared = (inventory($_[0]), $inventory);
                                unlike(record($_[0]), qr/\Q$uuid\E|\Q$doubled\E|WX12345/i, "$with: $first: a recording of the recording has no WWID or UUID");
                        });
                        @compared = map { without_identifiers($_) } @compared if $identifies;
                        is_same(@compared, "$with: $first: the recording says the same");
                }
        }
}
nothing_left('volumes');

# ---- the command

my $ctl = "$build/passthroughctl";
spew("$tmp/edge.tree", output($ctl, 'snapshot', '--node', "$build/nodes/edge.tree"));
with_unpacked("$tmp/edge.tree", sub {
        my ($dir) = @_;
        my $inventory = inventory($dir);
        spew("$tmp/edge2.tree", output($ctl, 'snapshot', '--node', $dir));
        with_unpacked("$tmp/edge2.tree", sub { is_same(inventory($_[0]), $inventory, 'passthroughctl snapshot --node FILE and DIRECTORY') });
});
like(output($ctl, 'snapshot', '--identities', '--node', "$tmp/who.tree"), qr/\Q$mac\E/, '--identities');
my @json = map { output($ctl, 'list', '--json', '--all', '--config', "$source/tests/nodes/edge.conf", '--node', $_) } "$build/nodes/edge.tree", "$tmp/edge.tree";
is_same(map({ s/cannot be read \(.*?\)/cannot be read/gr } @json[1, 0]), 'list --json says the same of both');

my $begin = time;
my $here  = output($ctl, 'snapshot');
cmp_ok(time - $begin, '<', 60, 'this machine is recorded');
spew("$tmp/here.tree", $here);
with_unpacked("$tmp/here.tree", sub { is_same(inventory($_[0]), inventory('/'), 'and its recording says what it says') });

sub refused {
        my ($pattern, @arguments) = @_;
        my $said = `$ctl @arguments 2>&1 >/dev/null`;
        isnt($?, 0, "refused: @arguments");
        like($said, $pattern, 'with a sentence');
        return;
}
spew("$tmp/bad.tree", "sys/\nnonsense\n");
refused(qr{^passthroughctl: \S+/bad\.tree:2: expected NAME=VALUE.*\.$}, 'snapshot', '--node', "$tmp/bad.tree");
refused(names('absent.tree'), 'snapshot', '--node', "$tmp/absent.tree");
refused(names('.tree', 'passthroughctl snapshot --help'), 'snapshot', '--json');
is($? >> 8, 2, 'as a command line that makes no sense');
refused(names('/dev/null'), 'snapshot', '--node', '/dev/null');
my $help = output($ctl, 'snapshot', '--help');
like($help, qr/^ +--node NODE +\S/m, 'its help says what --node is here');
unlike($help, qr/--json/, 'and not what it does not take');
nothing_left('the command');

# ---- thousands of functions

spew("$tmp/generated.tree", output("$source/tests/nodes/generate", 4096));
spew("$tmp/large.tree", output("$build/tests/print-node", "$tmp/generated.tree"));
delete $ENV{TMPDIR};
spew("$tmp/memory.tree", output($ctl, 'snapshot', '--node', "$tmp/edge.tree"));
is_same(map({ my $said; with_unpacked($_, sub { $said = inventory($_[0]) }); $said } "$tmp/memory.tree", "$tmp/edge.tree"), 'unpacked in memory, it says the same');
$begin = time;
chomp(my $dir = output("$build/tests/tree-tool", 'unpack', "$tmp/large.tree"));
my $middle = time;
my $large  = record($dir);
my $end    = time;
output("$build/tests/tree-tool", 'remove', $dir);
is(scalar(() = $large =~ m{^sys/bus/pci/devices/\S+ -> }mg), 4096, '4096 functions');
diag(sprintf '4096 functions: unpacked in %.2f s, recorded in %.2f s', $middle - $begin, $end - $middle);

done_testing();
