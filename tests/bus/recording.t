#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A recording of a machine leads to the same decisions as the machine itself, whatever its configuration looks like; and a
# recording that cannot be made or written is told by one true sentence.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use JSON::XS ();
use POSIX qw(mkfifo);
use Test::More;

use Node qw(names slurp spew ctl files_below);

use constant FIFO_PARTS => 7;

my $source = "$FindBin::Bin/../..";
my $build  = Cwd::abs_path($ENV{BUILD} // "$source/build");
plan skip_all => "$build is not built" if !-x "$build/passthroughctl";
my $tmp = tempdir(CLEANUP => 1);
chmod 0755, $tmp;
$ENV{NODE_TMP} = $ENV{TMPDIR} = $tmp;
$ENV{PATH}     = "$build:$ENV{PATH}";
my $root = qx{$build/tests/tree-tool unpack $build/nodes/paper-testbed.tree} // '';
chomp $root;
# Without a directory of its own this would configure, and clean up, the machine it runs on.
BAIL_OUT('tree-tool') if $root !~ m{^\Q$tmp\E/.} || !-d "$root/sys";

my $GPU = "[Pool gpu]\nMatch=vendor=10de class=0302\n";
my $NIC = "[Exclude]\nMatch=vendor=15b3\n";

# Files and links (a reference to the target) below passthroughd/ of the unpacked machine.
sub configure {
        my (%files) = @_;
        remove_tree("$root/$_/passthroughd") for qw(etc run usr/lib usr/local/lib);
        for my $name (sort keys %files) {
                my $path = "$root/$name" =~ s{^(.*?/)(passthroughd\.conf)}{$1passthroughd/$2}r;
                make_path($path =~ s{/[^/]*$}{}r);
                ref $files{$name} ? symlink(${ $files{$name} }, $path) : spew($path, $files{$name});
        }
        return;
}

# As that user, what is said of the devices. Why a file cannot be read, and what helps, is not the same in a recording, nor may its name be.
sub decisions {
        my ($as, $node) = @_;
        my $said = qx{$as passthroughctl list --all --json --node $node 2>/dev/null};
        return $said =~ s/cannot be read: .*?\.(?= Nothing|")/cannot be read./gr =~ s/"remedy":\s*"[^"]*, then reload the configuration\."/"remedy":-/gr =~ s{conf\.d/\S*?\.conf\b}{conf.d/FILE}gr;
}

sub same_decisions {
        my ($name, $as, $expected, $replaced) = @_;
        my $same  = sub { return $replaced ? $_[0] =~ s/$replaced/-/gr : $_[0] };
        my $there = decisions($as, $root);
        like($there, $expected, "$name: the machine");
        for my $options ('', ' --identities') {
                my $text = qx{$as passthroughctl snapshot --node $root$options 2>&1};
                spew("$tmp/r.tree", $text);
                ok($same->(decisions($as, "$tmp/r.tree")) eq $same->($there), "$name: its recording, snapshot$options") or diag(grep { /passthroughd/ } map { "$_\n" } split /\n/, $text);
        }
        return;
}

my $OFFERED  = qr/"pool": ?"gpu"[^{}]*"state": ?"available"/;
my $WITHHELD = qr/\A(?!.*"state": ?"available").*"verdict": ?"excluded"/s;

configure('etc/passthroughd.conf' => \'/dev/null', 'usr/lib/passthroughd.conf' => $GPU);
same_decisions('a masked main file', '', qr/\A(?!.*"pool": ?"gpu")./s);
configure('etc/passthroughd.conf.d/a.conf' => \'/dev/null', 'usr/lib/passthroughd.conf.d/a.conf' => $NIC, 'usr/lib/passthroughd.conf' => $GPU);
same_decisions('a masked drop-in', '', $OFFERED);
configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d/a.conf' => "[Exclude]\nMatch=\0vendor=15b3\nMatch=vendor=8086\n");
same_decisions('a NUL byte', '', $WITHHELD);
configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d/a.conf' => \'nowhere');
same_decisions('a link to nothing', '', $WITHHELD);
configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d/a.conf' => \'../../../../../../../../dev/null');
same_decisions('a link to a null device that was not recorded', '', $WITHHELD);
configure('etc/passthroughd.conf' => $GPU, map { ("etc/passthroughd.conf.d/$_.conf" => '') } 0 .. 256);
same_decisions('too many drop-ins', '', $WITHHELD);
configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d/a.conf' => $NIC, map { ("etc/passthroughd.conf.d/$_.bak" => '') } 0 .. 300);
same_decisions('many other files', '', $OFFERED);
configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d' => 'a file');
same_decisions('a file in place of the directory', '', $WITHHELD);

SKIP: {
        skip 'only root can be somebody else', 1 if $> != 0;
        configure('etc/passthroughd.conf' => $GPU, 'etc/passthroughd.conf.d/a.conf' => $NIC);
        system('chmod', '-R', 'a+rX', $root);
        chmod 0700, "$root/etc/passthroughd/passthroughd.conf.d";
        chmod 01777, $tmp;
        system('cp', "$build/passthroughctl", "$tmp/passthroughctl");
        chmod 0755, "$tmp/passthroughctl";
        local $ENV{PATH} = "$tmp:$ENV{PATH}";
        my $as = 'setpriv --reuid=65534 --regid=65534 --clear-groups';
        same_decisions('a directory of root', $as, $WITHHELD);
        my $text = qx{$as passthroughctl snapshot --node $root};
        like($text, qr{^etc/passthroughd/passthroughd\.conf\.d!EACCES$}m, 'it is recorded as what it is');
        like($text, names('etc/passthroughd/passthroughd.conf.d'), 'and the header says so');
}

# ---- drop-ins whose names say whose machine it is: the order is what it was, and who hides whom

make_path("$root/proc/sys/kernel");
spew("$root/proc/sys/kernel/hostname", "node042.example.com\n");
my @pools = map { "[Pool $_]\nMatch=vendor=10de class=0302\n" } qw(first second third hidden);
configure('etc/passthroughd.conf.d/node042.conf' => $pools[1], 'usr/lib/passthroughd.conf.d/node042.conf' => $pools[3],
        'run/passthroughd.conf.d/00:11:22:33:44:55.conf' => $pools[0], 'etc/passthroughd.conf.d/z.conf' => $pools[2]);
same_decisions('names', '', qr/"pool": ?"first"/);
my $text = qx{passthroughctl snapshot --node $root};
unlike($text, qr/node042|00:11:22:33:44:55/, 'names that tell whose machine it is are not in a recording');
like($text, qr{^etc/passthroughd/passthroughd\.conf\.d/\d{4}-z\.conf=}m, 'others are');
configure('etc/passthroughd.conf.d/50-gpu.conf' => "# GPUs of node042.example.com and node042\n# 00-11-22-33-44-55 0011aabbccdd\n" . $GPU);
$text = qx{passthroughctl snapshot --node $root};
like($text, qr{^etc/passthroughd/passthroughd\.conf\.d/50-gpu\.conf=# GPUs of ([0-9a-f]{12}) and \1\\n}m, 'a name without that stays; comments do not tell it either');
unlike($text, qr/node042|00-11-22|0011aabb/, 'by no spelling');

# ---- other machines, and what guests are told: neither is in a recording, and the plan is the same

# Each pair is the same host. A broken line stays broken, and a line that is a comment is one.
my @secrets = qw(rack7 example GPU1 gpu2 10.9.8.7 fm.example hunter2 s3cret letmein secret-plan qwerty);
configure('etc/passthroughd.conf' => <<"END");
$GPU
[Fabric]
Manager=fm.example.org:6666
[Service one]
Kind=lupine
Endpoint=GPU1.rack7.example.org:9999\tslots=2 ; of secret-plan
Endpoint = gpu1.rack7.example.org:10000 slots=1
Endpoint=10.9.8.7:9999 slots=0
Endpoint=10.9.8.7 slots=3 hunter2
Variables=SERVER=%h:%p SLOTS=%n TOKEN=hunter2  URL=http://s3cret.example.org/%h=letmein,%p   
#Variables=TOKEN=qwerty
; Endpoint=gpu2.example.org:1 slots=2
[Service two]
Kind=rcuda
Endpoint=gpu2.example.org:8308 slots=3
Variables=TOKEN="hunter2 letmein"
Variables=A=%q hunter2=letmein
Endpoint=@{['gpu2.example.org:8309 slots=4']}@{[' ' x 200]}
END
sub plan_of { my ($node) = @_; my ($status, $said) = ctl('plan', '--json', '--node', $node, 'one=2', 'two=7', 'gpu=1'); return $status == 0 && JSON::XS->new->decode($said) }
sub hosts { my ($plan) = @_; return join ' ', map { "$_->{pool} $_->{slots} " . ($_->{endpoint} =~ s/.*://r) } @{ $plan->{allocation}{services} // $plan->{services} // [] } }
$text = qx{passthroughctl snapshot --node $root};
my ($said) = $text =~ m{^etc/passthroughd/passthroughd\.conf=(.*)$}m;
unlike($said // '', qr/\Q$_\E/i, "$_ is not in a recording") for @secrets;
like($said, qr/Endpoint=([0-9a-f]{12}):9999 slots=2\\nEndpoint = \1:10000 slots=1\\nEndpoint=([0-9a-f]{12}):9999 slots=0\\n/, 'the same host is the same, with its ports and slots');
like($said, qr{Variables=SERVER=%h:%p SLOTS=%n TOKEN=[0-9a-f]{7} URL=[0-9a-f]{4}://[0-9a-f.]+/%h=[0-9a-f]{7},%p\\n}, 'placeholders stay');
like($said, qr/Manager=[0-9a-f]{12}:6666\\n/, 'and the port of Fabric Manager');
spew("$tmp/r.tree", $text);
my @plans = map { plan_of($_) } $root, "$tmp/r.tree";
like(hosts($plans[0]), qr/^one 2 9999 two 3 8308 two 4 8309$/, 'the machine has a plan');
is(hosts($plans[1]), hosts($plans[0]), 'and its recording the same');
my %slots = map { $_->{name} => $_->{total} } @{ JSON::XS->new->decode((ctl('pools', '--json', '--node', "$tmp/r.tree"))[1])->{pools} };
is_deeply([@slots{qw(one two)}], [3, 7], 'and as many slots');
like(scalar(qx{passthroughctl snapshot --identities --node $root}), qr/10\.9\.8\.7.*TOKEN=hunter2/, '--identities keeps them');
configure('etc/passthroughd.conf' => "$GPU\[Fabric]\nManager=/run/fm/node.sock\n");
like(scalar(qx{passthroughctl snapshot --node $root}), qr{Manager=/run/fm/node\.sock(?:\\n)?$}m, 'the path of a socket stays');

# ---- what the host stands on: the same devices are withheld, by whatever name

configure('etc/passthroughd.conf' => $GPU);
my ($gpu) = map { m{/([^/]+)$} } grep { slurp("$_/vendor") =~ /10de/ && slurp("$_/class") =~ /0x0302/ } glob "$root/sys/bus/pci/devices/*";
my $device = Cwd::abs_path("$root/sys/bus/pci/devices/$gpu") =~ s{^\Q@{[Cwd::abs_path($root)]}\E/}{}r;
make_path(map { "$root/$_" } "$device/block/nvme9n1", 'dev/mapper', 'dev/disk/by-id', 'sys/class/block');
symlink "../../../$device/block/nvme9n1", "$root/sys/class/block/nvme9n1" or die $!;
symlink '../nvme9n1', "$root/dev/mapper/node042--vg-a b" or die $!;
spew("$root/dev/nvme9n1", '');
my ($mounts, $swaps) = map { slurp("$root/proc/$_") // '' } '1/mountinfo', 'swaps';
my $elsewhere = 'ext4 /dev/disk/by-id/ata-SERIAL9 rw';
for (['a mount', '1/mountinfo', "90 1 0:99 / /srv rw - btrfs /dev/mapper/node042--vg-a\\040b rw\n91 1 8:99 / /x rw - $elsewhere\n"],
        ['swap', 'swaps', "Filename Type Size Used Priority\n/dev/mapper/node042--vg-a\\040b partition 1 0 -2\n/srv/node042/swap file 1 0 -2\n"])
{
        my ($name, $file, $lines) = @$_;
        spew("$root/proc/$file", slurp("$root/proc/$file") . $lines);
        same_decisions($name, '', qr/\Q$gpu\E <- nvme9n1/);
        $text = qx{passthroughctl snapshot --node $root};
        unlike($text, qr/node042|SERIAL9/, "$name: names are not in a recording");
        spew("$root/proc/1/mountinfo", $mounts);
}
like($text, qr{/srv/[0-9a-f]{12}/swap}, 'a swap file by the rest of its name');

spew("$root/proc/swaps", $swaps);

# What is added to the machine for a moment, a path and its contents or, as a reference, what it leads to; what is said then, of what.
sub recorded_use {
        my ($name, $expected, %added) = @_;
        my $said = delete $added{replaced};
        for my $path (sort keys %added) {
                my $to = $added{$path};
                make_path("$root/$path" =~ s{/[^/]*$}{}r);
                ref $to ? symlink($$to, "$root/$path") : $path =~ m{/$} ? make_path("$root/$path") : spew("$root/$path", $to);
        }
        same_decisions($name, '', $expected, $said);
        $text = qx{passthroughctl snapshot --node $root};
        unlike($text, qr/node042|SERIAL9|8b4b1f0c-1111/, "$name: names are not in a recording");
        for my $path (reverse sort keys %added) { $path =~ m{/$} ? remove_tree("$root/$path") : unlink "$root/$path" }
        spew("$root/proc/1/mountinfo", $mounts);
        return;
}

my $stack = 'sys/devices/virtual/block/dm-9';
recorded_use('a volume by its name', qr/\Q$gpu\E <- nvme9n1 <- node042-root <- \/srv/, replaced => qr/nvme9n1 <- \K\S+/, 'sys/class/block/dm-9' => \"../../../$stack",
        'sys/dev/block/253:9' => \"../../../$stack", "$stack/dm/name" => "node042-root\n", "$stack/slaves/nvme9n1" => \"../../../../../../$device/block/nvme9n1",
        'proc/1/mountinfo' => "${mounts}90 1 253:9 / /srv rw - ext4 /dev/mapper/x rw\n");
my $loop = 'sys/devices/virtual/block/loop9';
recorded_use('a loop device', qr/\Q$gpu\E <- nvme9n1 <- loop9 <- \/srv/, 'sys/class/block/loop9' => \"../../../$loop", 'sys/dev/block/7:9' => \"../../../$loop",
        "$loop/loop/backing_file" => "/dev/nvme9n1\n", 'proc/1/mountinfo' => "${mounts}90 1 7:9 / /srv rw - ext4 /dev/loop9 rw\n");
recorded_use('a loop device in a file', qr/\A(?!.*nvme9n1)./s, "$loop/loop/backing_file" => "/srv/node042/image\n", 'sys/class/block/loop9' => \"../../../$loop");
recorded_use('a journal of its own', qr/\Q$gpu\E <- nvme9n1 <- \/srv/, 'proc/1/mountinfo' => "${mounts}90 1 8:99 / /srv rw - xfs /dev/sdz rw,logdev=/dev/nvme9n1,x=node042\n");
recorded_use('one of two disks', qr/\Q$gpu\E <- nvme9n1 <- \/srv/, 'proc/1/mountinfo' => "${mounts}90 1 0:99 / /srv rw - bcachefs /dev/sdz:/dev/nvme9n1 rw\n");
recorded_use('a mount elsewhere', names($gpu, 'nvme9n1'), 'sys/fs/ext4/nvme9n1/' => '', 'sys/fs/ext4/node042/' => '');
recorded_use('btrfs', names($gpu, 'nvme9n1'), 'sys/fs/btrfs/8b4b1f0c-1111-4111-8111-000000000001/devices/nvme9n1' => \"../../../../../$device/block/nvme9n1");
spew("$root/$device/block/nvme9n1/dev", "259:9\n");
my $config = 'sys/kernel/config';
recorded_use('an NVMe target', qr/\Q$gpu\E <- nvme9n1 <- NVMe target/, "$config/nvmet/subsystems/nqn.node042/namespaces/1/enable" => "1\n",
        "$config/nvmet/subsystems/nqn.node042/namespaces/1/device_path" => "/dev/mapper/node042--vg-a b\n");
recorded_use('an NVMe target that is off', qr/\A(?!.*nvme9n1)./s, "$config/nvmet/subsystems/nqn.node042/namespaces/1/enable" => "0\n",
        "$config/nvmet/subsystems/nqn.node042/namespaces/1/device_path" => "/dev/nvme9n1\n");
recorded_use('a target of files', qr/\A(?!.*nvme9n1)./s, "$config/target/core/fileio_0/node042/udev_path" => "/srv/node042/image\n");
recorded_use('a LIO target', qr/\Q$gpu\E <- nvme9n1 <- LIO target/, "$config/target/core/iblock_0/node042/udev_path" => "/dev/nvme9n1\n");
recorded_use('a heartbeat of OCFS2', qr/\Q$gpu\E <- nvme9n1 <- OCFS2 heartbeat/, "$config/cluster/node042/heartbeat/8b4b1f0c11114111811100000000000a/dev" => "nvme9n1\n");
my $lun = "$config/usb_gadget/node042/functions/mass_storage.node042/lun";
recorded_use('a USB gadget', qr/\Q$gpu\E <- nvme9n1 <- USB gadget/, "$lun.0/file" => "/srv/node042/image\n", "$lun.1/file" => "/dev/mapper/node042--vg-a b\n");
recorded_use('zram', qr/\Q$gpu\E <- nvme9n1 <- zram/, 'sys/class/block/zram9' => \'../../../sys/devices/virtual/block/zram9',
        'sys/devices/virtual/block/zram9/backing_dev' => "/dev/nvme9n1\n");
symlink 'nvme9', "$root/dev/SERIAL9" or die $!;
spew("$root/dev/nvme9", '');
for my $node (qw(nvme9 SERIAL9)) {
        recorded_use("a controller that an NVMe target passes through as $node", qr/\Q$gpu\E <- nvme9 <- NVMe target/, 'sys/class/nvme/nvme9' => \"../../../$device/nvme/nvme9",
                "$device/nvme/nvme9/" => '', "$config/nvmet/subsystems/nqn.node042/passthru/enable" => "1\n",
                "$config/nvmet/subsystems/nqn.node042/passthru/device_path" => "/dev/$node\n");
}
my $exports = 'sys/devices/virtual/rnbd-server/ctl';
recorded_use('an RNBD target', qr/\Q$gpu\E <- nvme9n1 <- RNBD target/, 'sys/class/rnbd-server/ctl' => \"../../../$exports",
        "$exports/devices/nvme9n1/block_dev" => \"../../../../../../../$device/block/nvme9n1");
recorded_use('bcache', qr/\Q$gpu\E <- nvme9n1 <- bcache/, "$device/block/nvme9n1/bcache/" => '',
        'sys/fs/bcache/8b4b1f0c-1111-4111-8111-000000000001/cache0' => \"../../../../$device/block/nvme9n1/bcache");
recorded_use('bcachefs', names($gpu, 'nvme9n1'), 'sys/fs/bcachefs/8b4b1f0c-1111-4111-8111-000000000001/dev-0/block' => \"../../../../../$device/block/nvme9n1");
recorded_use('a ZFS pool', qr/\Q$gpu\E <- nvme9n1 <- ZFS pool node042/, replaced => qr/ZFS pool \K\w+/, 'proc/spl/kstat/zfs/node042 a/' => '', 'proc/spl/kstat/zfs/arcstats' => "1\n",
        'run/udev/data/b259:9' => "S:disk/by-id/SERIAL9\nE:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=node042_a\n",
        'run/udev/data/b259:10' => "E:ID_FS_LABEL=payroll\nE:ID_FS_TYPE=ext4\n");
unlike($text, qr/payroll/, '... nor is the label of another filesystem');
my $pool = '8b4b1f0c-1111-4111-8111-000000000001';
recorded_use('a ZFS pool of the name of a UUID', qr/\Q$gpu\E <- nvme9n1 <- ZFS pool $pool/, replaced => qr/ZFS pool \K[-\w]+/, "proc/spl/kstat/zfs/$pool/" => '',
        'run/udev/data/b259:9' => "E:ID_FS_TYPE=zfs_member\nE:ID_FS_LABEL=$pool\n");
my ($region, $endpoint) = ('sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0', 'sys/devices/platform/ACPI0017:00/root0/port1/endpoint2');
recorded_use('CXL memory', qr/\Q$gpu\E <- mem0 <- region0/, "$device/mem0/" => '', "$endpoint/uport" => \"../../../../../../../$device/mem0", "$endpoint/decoder2.0/" => '',
        'sys/bus/cxl/devices/decoder2.0' => \"../../../../$endpoint/decoder2.0", 'sys/bus/cxl/devices/region0' => \"../../../../$region", "$region/resource" => "0x1000000000\n",
        'sys/bus/cxl/devices/endpoint2' => \"../../../../$endpoint", 'sys/bus/cxl/devices/mem0' => \"../../../../$device/mem0",
        "$region/size" => "0x80000000\n", "$region/target0" => "decoder2.0\n", 'sys/devices/system/memory/block_size_bytes' => "80000000\n",
        'sys/devices/system/memory/memory32/state' => "online\n");
recorded_use('a CXL region', qr/\Q$gpu\E <- mem0 <- region0 <- enabled region/, "$device/mem0/" => '', "$endpoint/uport" => \"../../../../../../../$device/mem0", "$endpoint/decoder2.0/" => '',
        'sys/bus/cxl/devices/decoder2.0' => \"../../../../$endpoint/decoder2.0", 'sys/bus/cxl/devices/region0' => \"../../../../$region",
        'sys/bus/cxl/devices/endpoint2' => \"../../../../$endpoint", 'sys/bus/cxl/devices/mem0' => \"../../../../$device/mem0",
        "$region/driver" => \'../../../../../../bus/cxl/drivers/cxl_region', "$region/target0" => "decoder2.0\n");
recorded_use('DAX memory', qr/\Q$gpu\E <- dax0\.0/, "$device/dax0.0/target_node" => "0\n", 'sys/bus/dax/devices/dax0.0' => \"../../../../$device/dax0.0",
        "$device/dax0.0/driver" => \'../../../../bus/dax/drivers/kmem');
recorded_use('memory of the GPU', names('NUMA', 0), "proc/driver/nvidia/gpus/$gpu/numa_status" => "Node: 0\nStatus: online\n");
my $console = 'sys/devices/virtual/vtconsole/vtcon1';
recorded_use('the console', qr/\Q$gpu\E <- fb0 <- console/, "$device/graphics/fb0/" => '', 'sys/class/graphics/fb0' => \"../../../$device/graphics/fb0",
        "$console/name" => "(M) frame buffer device\n", 'sys/class/vtconsole/vtcon1' => \"../../../$console");
configure('etc/passthroughd.conf' => "[Daemon]\nKeepInterfaces=nothing e??9\n$GPU");
recorded_use('an interface that is kept', qr/\Q$gpu\E <- eth9 <- KeepInterfaces=/, "$device/net/eth9/" => '', 'sys/class/net/eth9' => \"../../../$device/net/eth9");
configure('etc/passthroughd.conf' => $GPU);
my ($bridge, $below) = ('br-0123456789ab', 'enx001b213a4f2c');
make_path(map { "$root/$_" } "$device/net/$below", "sys/devices/virtual/net/$bridge", 'sys/class/net', 'proc/net');
symlink "../../../$device/net/$below", "$root/sys/class/net/$below" or die $!;
symlink "../../devices/virtual/net/$bridge", "$root/sys/class/net/$bridge" or die $!;
symlink "../../../../../$device/net/$below", "$root/sys/devices/virtual/net/$bridge/lower_$below" or die $!;
spew("$root/proc/net/route", join "\n", "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT", "$bridge\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n");
same_decisions('a default route over a bridge', '', qr/\Q$gpu\E <- /, qr/enx[0-9a-f]{12}/);
unlike(scalar(qx{passthroughctl snapshot --node $root}), qr/001b213a4f2c/, 'whose port is named by its address');

# ---- a node of another architecture: a document for it, or none of what would need one

for my $architecture (qw(aarch64 ppc64le)) {
        my $tree = "$tmp/$architecture.tree";
        spew($tree, "proc/sys/kernel/arch=$architecture\n" . slurp("$build/nodes/paper-testbed.tree"));
        spew($tree, scalar qx{passthroughctl snapshot --node $tree});
        my @request = ('--node', $tree, '--config', "$source/tests/nodes/paper-testbed.conf", 'gpu=1');
        is((ctl('plan', @request))[0], 0, "$architecture: devices alone can be had");
        my ($status, $said) = ctl('plan', '--json', @request, '--cpus', 2, '--memory', '1G');
        is($status, $architecture eq 'aarch64' ? 0 : 1, "$architecture: with CPUs");
        is(JSON::XS->new->decode($said)->{verdict}, $architecture eq 'aarch64' ? undef : 'not-supported', "$architecture: the verdict");
        ($status, $said) = ctl('xml', 'vm', @request, '--cpus', 2, '--memory', '1G');
        like($said, qr/<type arch="aarch64" machine="virt">/, 'and the document is for it') if $architecture eq 'aarch64';
}

# ---- recordings of other tools: what is recorded can be read, and says the same

my $other = "$tmp/other";
my $port  = "$other/sys/devices/pci0000:00/0000:00:01.0";
my $nic   = "$port/0000:01:00.0";
sub same_recording {
        my ($name) = @_;
        my $tree = "$tmp/other.tree";
        my ($taken, $said, $problem) = ctl('snapshot', '--node', $other);
        is($taken, 0, "$name: is recorded") or diag($problem);
        spew($tree, $said);
        for my $command (['list', '--all', '--json'], ['topology', '--json']) {
                my ($status, $first) = ctl(@$command, '--node', $other);
                is($status, 0, "$name: $command->[0]");
                is_deeply([ctl(@$command, '--node', $tree)]->[1], $first, "$name: $command->[0] of the recording");
        }
        return;
}
make_path("$other/sys/bus");
same_recording('a directory with nothing in it');
make_path($nic, "$other/sys/bus/pci/devices", "$other/sys/class/net", map { "$other/sys/devices/system/$_" } 'node/node0', 'cpu/cpu0', 'cpu/cpu1');
same_recording('a directory without proc/');
make_path("$other/proc");
same_recording('a directory with an empty proc/');
spew("$nic/$_->[0]", "$_->[1]\n") for [vendor => '0x8086'], [device => '0x10c9'], [class => '0x020000'], [numa_node => 0];
symlink '../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0', "$other/sys/bus/pci/devices/0000:01:00.0" or die $!;
make_path("$port/0000:01:00.1/net/eth9");
symlink '../../devices/pci0000:00/0000:00:01.0/0000:01:00.1/net/eth9', "$other/sys/class/net/eth9" or die $!;
spew("$other/sys/devices/system/node/node0/cpulist", "0-1\n");
same_recording('functions of which only paths were recorded');
is_deeply([map { $_->{address} } @{ JSON::XS->new->decode([ctl('list', '--all', '--json', '--node', $other)]->[1])->{devices} }], ['0000:01:00.0'], 'are no functions');

# ---- FIFOs, which nobody writes to

# All files of a name. A part of the names at a time, because a FIFO may hide another.
my %files;
for (grep { !-l "$root/$_" } files_below($root)) { push @{ $files{ (/([^\/]+)$/)[0] } }, "$root$_" }
my @names = sort keys %files;
for my $part (0 .. FIFO_PARTS - 1) {
        my @replaced = map { @{ $files{ $names[$_] } } } grep { $_ % FIFO_PARTS == $part } 0 .. $#names;
        for my $path (@replaced) { rename $path, "$path.saved" or die "$path: $!"; mkfifo($path, 0600) or die "$path: $!" }
        for my $verb (qw(check list topology snapshot suggest)) {
                is(system("timeout --kill-after=1 60 passthroughctl $verb --node $root >/dev/null 2>&1") >> 8 & ~3, 0, "$verb does not wait for a FIFO, part $part");
        }
        for my $path (@replaced) { rename "$path.saved", $path or die "$path: $!" }
}

# ---- what cannot be recorded

my ($status, $out, $err) = ctl('snapshot', '--node', '/proc');
is($err, "passthroughctl: /proc is not a recorded node: there is neither sys/devices nor sys/bus in it.\n", 'a directory of something else');
is((ctl('list', '--all', '--node', '/proc'))[2], $err, 'is refused by list too');
spew("$tmp/empty.tree", "a=1\n");
($status, $out, $err) = ctl('snapshot', '--node', "$tmp/empty.tree");
is($out, '', 'a text of something else: nothing is written');
is($err, "passthroughctl: $tmp/empty.tree is not a recorded node: there is no sys/ in it.\n", 'but a sentence');
is((ctl('list', '--node', "$tmp/empty.tree"))[2], $err, 'that of list');
make_path(map { "$tmp/$_" } qw(none/sys none/proc loop/sys/bus/pci loop/proc));
like((ctl('list', '--all', '--node', "$tmp/none"))[2], qr{neither sys/devices nor sys/bus}, 'an empty one');
symlink 'devices', "$tmp/loop/sys/bus/pci/devices";
like((ctl('list', '--all', '--node', "$tmp/loop"))[2], names('sys/bus/pci/devices'), 'one whose devices cannot be read');
($status, $out, $err) = ctl('snapshot', 'out.tree');
is($status, 2, 'snapshot takes no file name');
like($err, qr/'out\.tree'.*> out\.tree/, 'and says where its output goes');

# ---- what cannot be written

sub said { my ($shell) = @_; return qx{exec 2>&1; $shell} }

for my $command ('snapshot', "snapshot --node $root", "snapshot --node $tmp/r.tree", "list --all --node $root") {
        is(said("passthroughctl $command >/dev/full"), "passthroughctl: Cannot write: No space left on device\n", "$command to a full disk");
        is(said("passthroughctl $command >&-"), "passthroughctl: Cannot write: Bad file descriptor\n", "$command to nowhere");
        is(said("(trap '' PIPE; passthroughctl $command; echo \$? >&2) | :"), "passthroughctl: Cannot write: Broken pipe\n1\n", "$command to nobody");
}

# ---- descriptors of the caller

spew("$tmp/gpu.conf", $GPU);
like(said("passthroughctl list --node $root --config /dev/fd/4 4<$tmp/gpu.conf"), qr/ gpu /, 'a configuration by its descriptor');
is(said("cat $tmp/gpu.conf | passthroughctl list --node $root --config /dev/stdin"), "passthroughctl: /dev/stdin cannot be read: it is not a regular file.\n", 'not a pipe');
like(said("cat $tmp/r.tree | passthroughctl snapshot --node /dev/stdin"), names('/dev/stdin'), 'nor as a recorded node');

system("$build/tests/tree-tool", 'remove', $root);
done_testing();
