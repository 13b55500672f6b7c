#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Cards whose driver makes VFs only when it is loaded: its options are kept as the configuration wants them, and the driver is left alone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;

use Node;

my ($pf, $second) = qw(0000:83:00.0 0000:80:07.0);
my $port = "sys/devices/pci0000:80/$second";

# The node with a second card, in a tree of its own.
if (!$ENV{NODE_ROOT}) {
        $ENV{BUILD} //= "$FindBin::Bin/../../build";
        plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';
        plan skip_all => "$ENV{BUILD} is not built" if !-x "$ENV{BUILD}/tests/nodesim";
        my $dir = abs_path(tempdir(CLEANUP => 0));
        spew("$dir/two.tree", <<"END");
%include $FindBin::Bin/../nodes/paper-testbed.tree
[$port]
vendor=0x15b3
device=0x1003
subsystem_vendor=0x15b3
subsystem_device=0x0050
class=0x028000
numa_node=1
driver_override=(null)
enable=1
reset_method=flr
sriov_totalvfs=8
sriov_numvfs=0
sriov_drivers_autoprobe=1
sriov_vf_device=1004
net/ib9/ifindex=90
net/ib9/type=32
net/ib9/address=80:00:00:00:fe:80
driver -> /sys/bus/pci/drivers/mlx4_core
iommu_group -> /sys/kernel/iommu_groups/40
END
        $ENV{MLX4_TREE} = $dir;
        exec "$FindBin::Bin/../with-node", "$dir/two.tree", '--conf', '/nonexistent', '--', $^X, $0 or die "with-node: $!";
}
unlink "$ENV{MLX4_TREE}/two.tree";
rmdir $ENV{MLX4_TREE};

my $dir  = $ENV{MODPROBE_DIRECTORY};
my $file = "$dir/passthroughd.conf";
my $conf = "$ENV{NODE_TMP}/passthroughd.conf";
my $bus  = Bus->new->listen;
my $tree;

sub pools {
        my (@keys) = @_;
        return join "\n", '[Pool ib-vf]', 'Match=vendor=15b3 type=vf', @keys, '';
}

sub options { my ($text) = @_; return (grep { /^options/ } split /\n/, $text // slurp($file))[0] // 'none' }
sub stamp   { return join ' ', (stat $file)[1, 2], (Time::HiRes::stat($file))[9] }

sub reload {
        my ($text, $what) = @_;
        my $offset = log_since();
        spew($conf, $text);
        my $reply = $bus->call('Reload');
        is($reply->{error}, undef, $what) or diag($reply->{body}[0]);
        return log_since($offset);
}

# Another hand pulls the second card, or puts it in.
sub unplug { fault("remove $port"); $bus->call('Rescan'); return }
sub plug   { fault('write sys/bus/pci/rescan 1'); $bus->call('Rescan'); return }

# ---- nothing wanted

ok(!-e $file, 'without VirtualFunctions= there is no file');
unlike(log_since(0), qr/modprobe/, 'and nothing to say of it');
unplug();
$tree = tree();

# ---- what is wanted is there

configure(pools('VirtualFunctions=4'));
is(options(), 'options mlx4_core num_vfs=4 probe_vf=0', 'the options are written at start');
like(slurp($file), names('ib-vf', 'VirtualFunctions=4', "$conf:3"), 'with who wrote them, and why');
is((stat $file)[2] & oct 7777, oct 644, 'everybody may read them');
like(log_since(0), names($file, 'mlx4_core', 4), 'which is said');
unlike(log_since(0), names($pf), 'nothing is due');
is(device($bus, $pf)->{verdict}, 'not-in-pool', 'nor is it said of the card');
is_deeply(devices_state($bus, 'ib-vf'), { map { ("0000:83:00.$_" => 'available') } 1 .. 4 }, 'its VFs are on offer');

my $stamp = stamp();
restart();
is(stamp(), $stamp, 'the next start does not write what is there');
reload(pools('VirtualFunctions=4'), 'a reload');
is(stamp(), $stamp, 'nor does a reload');
nothing_written('the hardware is not touched');
same_tree($tree, 'at all');

# ---- another number

is(allocate($bus, 'vm7', 'ib-vf' => 1), 'done', 'a VF is in use');
my ($held) = map { $_->{address} } @{ allocation($bus, 'vm7')->{devices} };
fault('reset');
$tree = tree();
$bus->forget_signals();
my $log = reload(pools('VirtualFunctions=6', 'PortTypes=ib,eth'), 'a reload with another number');
is(options(), 'options mlx4_core num_vfs=6 probe_vf=0 port_type_array=1,2', 'is written');
like($log, qr/^Wrote .* makes 6 VFs/m, 'and said');
ok(wait_until(sub { log_since(0) =~ names($pf, 4, 6, $file, 'num_vfs=6') }),
        'a warning says that the driver is to be loaded again');
my $due = device($bus, $pf);
is($due->{verdict}, 'not-supported', 'the card says so too');
like($due->{reason}, names($pf, 4, 6, 'mlx4_core', $file, 'num_vfs=6'), 'with what is asked for');
like($due->{remedy}, names('modprobe -r mlx4_ib mlx4_en mlx4_core', 'mlx4_core', 'vm7', $held), 'how, and why not now');
like((ctl('explain', $pf))[1], qr/\bnum_vfs=6\b.*\bvm7\b/s, 'explain prints it');
like((ctl('show', $pf))[1], qr/\bnum_vfs=6\b.*\bvm7\b/s, 'and show');
is_error($bus->call('SetVirtualFunctions', 'su', $pf, 6), 'NotSupported', ['not-supported', 'num_vfs=6', 'vm7'], 'by hand it is the same');
is_error($bus->call('SetVirtualFunctions', 'su', $pf, 2), 'NotSupported', ['not-supported', 4, 2, 'VirtualFunctions='], 'or another way to another number');
nothing_written('nothing is written to the hardware, and no driver loaded');
same_tree($tree, 'at all');
is(release($bus, 'vm7'), 'done', 'VFs that are there are used as before');
unlike(device($bus, $pf)->{remedy}, names('vm7'), 'when it is released, nothing is against it any more');

# ---- the driver is loaded again with that number

reload(pools('VirtualFunctions=3'), 'fewer');
like(device($bus, $pf)->{reason}, names(4, 3), 'are due');
my $offset = log_since();
fault("remove sys/devices/pci0000:80/0000:80:03.0/$pf/virtfn3", 'remove sys/devices/pci0000:80/0000:80:03.0/0000:83:00.4');
$bus->call('Rescan');
is(device($bus, $pf)->{verdict}, 'not-in-pool', 'when they are there nothing is due');
is(device($bus, $pf)->{state}, 'host', 'and the number is not contested');
unlike(log_since($offset), names($pf), 'by anybody');
is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 3, 'those that are there are on offer');

# ---- a card that no pool wants VFs on would have them too

$stamp = stamp();
$offset = log_since();
reload("[Pool ib-vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=3\n", 'VFs of one card');
like(slurp($file), names('mlx4_core', 'num_vfs=3'), 'are the options of all');
$stamp = stamp();
plug();
like(log_since($offset), names("$conf:3", 'mlx4_core', 'ib-vf', 3, $pf, $second), 'a second card is in the way');
is(scalar(() = log_since($offset) =~ /^\Q$conf\E:3: .*\Q$second\E/mg), 1, 'said once');
is(stamp(), $stamp, 'and nothing is guessed');
ok((grep { $_ =~ names($conf, 'ib-vf', $second) } @{ describe($bus)->{config_problems} }), 'it is a problem of the configuration');
$log = reload("[Pool ib-vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=4\n", 'another number then');
is(scalar(() = $log =~ /^\Q$conf\E:3: .*\bmlx4_core\b/gm), 1, 'is told of once');
is(stamp(), $stamp, 'and not written');
like(device($bus, $pf)->{reason}, names('num_vfs', 'mlx4_core'), 'the card says why');
$log = reload("[Pool ib-vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=4\n[Pool more]\nMatch=type=vf pf=$second\nVirtualFunctions=2\n", 'different numbers');
like($log, names("$conf:3", 'mlx4_core', 'ib-vf', 4, 'more', "$conf:6", 2), 'neither');
is(stamp(), $stamp, 'are not written');
unplug();
is(options(), 'options mlx4_core num_vfs=4 probe_vf=0', 'when the card is out, the options are written');
plug();
reload(pools('VirtualFunctions=4'), 'the same for both');
is(options(), 'options mlx4_core num_vfs=4 probe_vf=0', 'is written');
like(device($bus, $second)->{reason}, names(0, 4), 'and due on the one that has none');

# ---- a card that the host needs: it stays with the host, and has VFs as the others do

reload("[Daemon]\nKeepInterfaces=ib9\n" . pools('VirtualFunctions=4'), 'VFs of both, one of which the host needs now');
is(options(), 'options mlx4_core num_vfs=4 probe_vf=0', 'of both: the options stay');
my $needed = device($bus, $second);
is($needed->{verdict}, 'host-critical', 'of both: the host needs the one');
like($needed->{reason}, names('ib9', 0, 4), 'of both: for what, and that they are due there');
unlike($_, names('modprobe -r'), 'of both: its driver stays loaded') for $needed->{remedy}, (ctl('explain', $second))[1];
$stamp = stamp();
$log = reload("[Daemon]\nKeepInterfaces=ib9\n[Pool ib-vf]\nMatch=type=vf pf=$second\nVirtualFunctions=4\n", 'VFs of that one alone');
like($log, names("$conf:5", 'ib-vf', 4, $second, $pf), 'of that one alone: the other card is in the way');
is(stamp(), $stamp, 'of that one alone: the options stay');
reload("[Daemon]\nKeepInterfaces=ib9\n" . pools('VirtualFunctions=4') . "[Exclude]\nMatch=address=$second\n", 'for good');
ok((grep { $_ =~ names($conf, $second, '[Exclude]') } @{ describe($bus)->{config_problems} }), 'for good: why they are not written');
$log = reload("[Daemon]\nKeepInterfaces=ib9\n[Pool ib-vf]\nMatch=type=vf pf=$second\nVirtualFunctions=4\n[Exclude]\nMatch=address=$second\n", 'nothing else is wanted');
ok(!-e $file, 'then they are taken away');
reload(pools('VirtualFunctions=4'), 'when it does not need it');
is(options(), 'options mlx4_core num_vfs=4 probe_vf=0', 'they are written');
unplug();

# ---- nothing is wanted any more

$log = reload(pools(), 'no VFs wanted');
ok(!-e $file, 'the file is gone');
like($log, qr/^Removed \Q$file\E/m, 'which is said');

# ---- a broken [Exclude] may have meant the card: what is there stays

reload(pools('VirtualFunctions=4'), 'wanted again');
$stamp = stamp();
reload(pools('VirtualFunctions=2') . "[Exclude]\nMatch=where=$pf\n", 'held back');
is(stamp(), $stamp, 'what was written stays');

# ---- somebody else's file

spew($file, "options mlx4_core num_vfs=8\n");
$stamp = stamp();
$log = reload(pools('VirtualFunctions=6'), 'a file of somebody else');
is(stamp(), $stamp, 'is left alone');
like($log, names($file), 'with a warning');
like(device($bus, $pf)->{reason}, names('num_vfs', $file), 'and the card says so');
$log = reload(pools(), 'nor is it removed');
is(stamp(), $stamp, 'when nothing is wanted');
unlike($log, qr/modprobe/, 'and nothing said');
restart();
is(stamp(), $stamp, 'nor at start');
unlink $file;

# ---- a directory that takes no file, and one that is missing

for (['takes no file', sub { symlink "$ENV{NODE_ROOT}/sys/kernel", $dir or die $! }], ['is missing', sub { }]) {
        my ($what, $make) = @$_;
        rmdir $dir or unlink $dir or die $!;
        $make->();
        configure(pools('VirtualFunctions=6'));
        like(log_since(0), names($file), "a directory that $what: a warning");
        is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 3, 'the daemon lives');
        like(device($bus, $pf)->{reason}, names($file), 'and says it of the card');
        $offset = log_since();
        $bus->call('Rescan');
        unlike(log_since($offset), names($file), 'once');
        configure(pools());
}
unlink $dir;
configure(pools('VirtualFunctions=6'));
mkdir $dir or die $!;
$bus->call('Rescan');
is(options(), 'options mlx4_core num_vfs=6 probe_vf=0', 'when it is there, the next look writes it');

done_testing();
