#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The VF attributes of a simulated PF: read and written by ip(8), by the daemon's code, and by files. The daemon itself does not run here.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Errno;
use Fcntl;
use JSON::XS;
use POSIX qw(:sys_wait_h);
use Test::More;

use Node;

my %trees = map { $_ => 1 } qw(connectx paper-testbed);
my ($tree) = grep { $trees{$_} } @ARGV;
if (!$tree) { # each in a node of its own
        plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';
        for my $name (sort keys %trees) {
                my $output = `$^X $0 $name 2>&1`;
                is($?, 0, $name) ? note($output) : diag($output);
        }
        done_testing();
        exit;
}
node($tree, configure => 1);
daemon('stop');

my ($eth, $igb, $ib, $ofed, $switchdev) = map { "0000:$_:00.0" } qw(11 12 81 82 83);
my $mlx4 = '0000:83:00.0';
my $pci  = "$ENV{NODE_ROOT}/sys/bus/pci/devices";

sub errno { for my $name (grep { $!{$_} } keys %!) { return $name } return "errno $!" }

sub put {
        my ($path, $text) = @_;
        sysopen my $f, "$pci/$path", O_WRONLY or return 'open ' . errno();
        return defined syswrite($f, $text) ? 'OK' : errno();
}

sub get {
        my ($path) = @_;
        open my $f, '<', "$pci/$path" or return '!' . errno();
        return scalar(<$f>) =~ s/\n//r;
}

# libasan must come first if the program uses it.
my ($asan) = map { "$_:" } `ldd $ENV{BUILD}/tests/vf-attributes` =~ m{libasan\S* => (\S+)};
$asan //= '';

# Runs a program whose netlink is the node's. Returns its status and output.
sub preloaded {
        my (@command) = @_;
        my $first = $command[0] eq 'ip' ? '' : $asan;
        my $pid = open(my $out, '-|') // die "fork: $!";
        if (!$pid) {
                $ENV{LD_PRELOAD} = "$first$ENV{BUILD}/tests/netlink.so";
                open STDERR, '>&', \*STDOUT or die $!;
                exec @command or POSIX::_exit(127);
        }
        local $/ = undef;
        my $text = <$out>;
        close $out;
        return ($? >> 8, $text // '');
}

sub ip { return preloaded('ip', @_) }

# Returns the attributes of a VF that ip shows.
sub ip_vf {
        my ($dev, $vf) = @_;
        my ($status, $text) = ip('link', 'show', 'dev', $dev);
        return "status $status" if $status != 0;
        return "no VF $vf" if $text !~ /^\s+vf $vf\s+(.*?)\s*$/m;
        return $1 =~ s/ +/ /gr =~ s/^link\/\S+ (\S+) brd \S+?,/$1,/r;
}

sub ip_set {
        my ($dev, $vf, @words) = @_;
        my ($status, $text) = ip('link', 'set', 'dev', $dev, 'vf', $vf, @words);
        return $status == 0 ? 'OK' : $text =~ s/^RTNETLINK answers: (.*)\n/$1/r;
}

# Does the same with the daemon's code.
sub attributes {
        my ($pf, $vf, @terms) = @_;
        my (undef, $text) = preloaded("$ENV{BUILD}/tests/vf-attributes", $ENV{NODE_ROOT}, $pf, $vf, @terms);
        chomp $text;
        return $text;
}

sub vfs { my ($pf, $n) = @_; return put("$pf/sriov_numvfs", $n) }

my $NO_GUID = '00:00:00:00:00:00:00:00';
my ($NODE_GUID, $PORT_GUID) = qw(02:11:22:33:44:55:66:77 02:11:22:33:44:55:66:78);

sub connectx {
        my $before = tree();
        is(vfs($_, 4), 'OK', "VFs of $_") for $eth, $igb, $ib, $ofed, $switchdev;

        subtest 'Ethernet' => sub {
                my $plain = 'spoof checking on, link-state auto, trust off';
                is(ip_vf('eth0', 0), "00:00:00:00:00:00, $plain", 'as created');
                is(ip_set('eth0', 1, qw(mac 02:00:00:00:00:01 vlan 100 qos 3 max_tx_rate 1000 min_tx_rate 10 spoofchk off trust on state disable)),
                        'OK', 'all at once');
                is(ip_vf('eth0', 1),
                        '02:00:00:00:00:01, vlan 100, qos 3, tx rate 1000 (Mbps), max_tx_rate 1000Mbps, min_tx_rate 10Mbps, '
                                . 'spoof checking off, link-state disable, trust on',
                        'told back');
                is(get("$eth/vf-netlink/1/vlan"), '100 3 802.1q', 'a file has it');
                is(ip_vf('eth0', 0), "00:00:00:00:00:00, $plain", 'another VF has not');
                is(attributes($eth, 1),
                        'mac=02:00:00:00:00:01 vlan=100 qos=3 protocol=802.1q trust=on spoof-check=off min-rate=10 max-rate=1000 link=down',
                        'the daemon reads the same');
                is(attributes($eth, 2, 'mac=02:00:00:00:00:02 vlan=7 trust=on max-rate=50 link=up'),
                        'mac=02:00:00:00:00:02 vlan=7 qos=0 protocol=802.1q trust=on spoof-check=on min-rate=0 max-rate=50 link=up',
                        'and writes it');
                is(ip_vf('eth0', 2), '02:00:00:00:00:02, vlan 7, tx rate 50 (Mbps), max_tx_rate 50Mbps, spoof checking on, link-state enable, trust on',
                        'as ip sees');
        };

        subtest 'what is refused' => sub {
                is(ip_set('eth0', 0, qw(mac 03:00:00:00:00:01)),   'Invalid argument',        'a group address');
                is(ip_set('eth0', 4, qw(mac 02:00:00:00:00:01)),   'Invalid argument',        'a VF that is not there');
                is(put("$eth/vf-netlink/0/vlan", "4096 0 802.1q"), 'EINVAL', 'a VLAN out of range');
                is(put("$eth/vf-netlink/0/rate", "6 5"),           'EINVAL', 'more at least than at most');
                is(ip_set('eth0', 0, qw(vlan 5 proto 802.1ad)),    'Protocol not supported',  '802.1ad');
                is(ip_set('eth0', 0, 'node_guid', $NODE_GUID),     'Operation not supported', 'a GUID on Ethernet');
                is(ip_set('eth1', 0, qw(state enable)),            'Operation not supported', 'link state of igb');
                is(ip_set('eth1', 0, qw(max_tx_rate 9 min_tx_rate 6)), 'Invalid argument',    'least rate of igb');
                is(ip_set('ib0', 0, qw(trust on)),                 'Operation not supported', 'trust on InfiniBand');
                is(ip_set('eth2', 0, qw(vlan 7)),                  'Operation not supported', 'a VLAN in switchdev mode');
                is(ip_set('eth2', 0, qw(trust on)),                'Operation not supported', 'trust in switchdev mode');
                is(ip_set('eth2_0', 0, qw(trust on)),              'Operation not supported', 'anything of a representor');
                is(ip_set('ib1', 0, qw(state auto)),               'Operation not supported', 'anything by netlink where MLNX_OFED is');
                is((ip(qw(link show dev eth9)))[0], 1, 'an interface that is not there');
                is(attributes($eth, 4), 'ENODEV', 'the daemon knows without asking');
                is(attributes($ib, 0, 'mac=02:00:00:00:00:01'), 'EOPNOTSUPP', 'MAC on InfiniBand');
                is(attributes($eth, 0, 'protocol=802.1ad vlan=5'), 'EPROTONOSUPPORT', 'an errno of the driver reaches it');
                is(ip_vf('eth0', 0), '00:00:00:00:00:00, spoof checking on, link-state auto, trust off', 'nothing changed');
        };

        subtest 'igb, switchdev' => sub {
                is(ip_set('eth1', 3, qw(mac 02:00:00:00:00:03 trust on)), 'OK', 'igb');
                is(ip_vf('eth1', 3), '02:00:00:00:00:03, spoof checking on, link-state auto, trust on', '... told back');
                is(ip_set('eth2', 3, qw(mac 02:00:00:00:00:04)), 'OK', 'switchdev');
                my (undef, $text) = ip(qw(-d -j link show dev eth2_3));
                my $dev = decode_json($text)->[0];
                is("@$dev{qw(phys_port_name phys_switch_id parentdev)}", "pf0vf3 00835e0053000002 $switchdev", 'its representor');
                ok(!exists $dev->{vfinfo_list}, '... answers for no VF');
                my (undef, $all) = ip(qw(-j link show));
                my %seen;
                $seen{ $_->{ifindex} }++ for @{ decode_json($all) };
                is((grep { $_ > 1 } values %seen), 0, 'each interface has its number');
        };

        subtest 'InfiniBand by IPoIB' => sub {
                my $none = "NODE_GUID $NO_GUID, PORT_GUID $NO_GUID";
                like(ip_vf('ib0', 0), qr/, $none, link-state disable$/, 'as created');
                is(ip_set('ib0', 1, 'node_guid', $NODE_GUID), 'OK', 'node GUID');
                is(ip_set('ib0', 1, 'port_guid', $PORT_GUID), 'OK', 'port GUID');
                is(ip_set('ib0', 1, qw(state auto)),          'OK', 'link');
                like(ip_vf('ib0', 1), qr/, NODE_GUID $NODE_GUID, PORT_GUID $PORT_GUID, link-state auto$/, 'told back');
                is(ip_set('ib0', 2, 'node_guid', $NODE_GUID, 'port_guid', $PORT_GUID), 'OK', 'both in one');
                like(ip_vf('ib0', 2), qr/, NODE_GUID $NODE_GUID, PORT_GUID $NO_GUID/, 'of which the kernel takes the first');
                is(attributes($ib, 3, "node-guid=$NODE_GUID port-guid=$PORT_GUID link=auto"),
                        "link=auto node-guid=$NODE_GUID port-guid=$PORT_GUID", 'the daemon gives it both');
        };

        subtest 'InfiniBand by MLNX_OFED' => sub {
                my $dir = "$ofed/sriov/1";
                is(join(' ', map { get("$dir/$_") } qw(node port policy)), "$NO_GUID $NO_GUID Down", 'as created');
                is(put("$dir/node",   "$NODE_GUID\n"),   'OK',     'node GUID');
                is(put("$dir/node",   '02:11:22:33:44'), 'EINVAL', '... cut short');
                is(put("$dir/policy", "Follow\n"),       'OK',     'policy');
                is(put("$dir/policy", 'Up'),             'EINVAL', '... without a newline');
                is(put("$dir/policy", "up\n"),           'EINVAL', '... in small letters');
                is(attributes($ofed, 1), "link=auto node-guid=$NODE_GUID port-guid=$NO_GUID", 'the daemon reads it');
                is(attributes($ofed, 1, "port-guid=$PORT_GUID link=up"), "link=up node-guid=$NODE_GUID port-guid=$PORT_GUID", 'and writes it');
        };

        subtest 'writes are counted, and go wrong when asked to' => sub {
                fault('reset');
                is(ip_set('eth0', 0, qw(trust on)), 'OK', 'one write');
                is(writes(), 1, '... is one');
                fault('fail 2 EIO');
                is(ip_set('eth0', 0, qw(trust off)), 'Input/output error', 'an errno');
                is(get("$eth/vf-netlink/0/trust"), 'on', '... without effect');
                fault('fail-after 3 ETIMEDOUT');
                is(ip_set('eth0', 0, qw(trust off)), 'Connection timed out', 'an errno afterwards');
                is(get("$eth/vf-netlink/0/trust"), 'off', '... with effect');
                fault('hang 4');
                my $pid = fork // die;
                POSIX::_exit(ip_set('eth0', 0, qw(trust on)) eq 'OK' ? 0 : 1) if !$pid;
                ok(wait_until(sub { writes() == 4 }), 'one that hangs');
                is(waitpid($pid, WNOHANG), 0, '... waits');
                is(ip_set('eth1', 0, qw(trust on)), 'OK', '... alone');
                fault('release');
                waitpid $pid, 0;
                is($?, 0, '... until it is let go');
                fault('reset', 'fail 2 EPERM');
                like(attributes($eth, 0, 'mac=02:00:00:00:00:0a vlan=9'), qr/^EPERM$/, 'the second of two for the daemon');
                is(get("$eth/vf-netlink/0/mac"), '02:00:00:00:00:0a', '... the first one stays, as it does in the kernel');
                fault('reset');
        };

        subtest 'VFs go and come' => sub {
                is(vfs($_, 0), 'OK', "no VFs of $_") for $eth, $igb, $ib, $ofed, $switchdev;
                ok(!-e "$pci/$_", "no $_") for "$eth/vf-netlink", "$ofed/sriov", "$ib/vf-netlink/1", "$switchdev/net/eth2_0";
                is(put("$eth/vf-netlink/0/mac", '1'), 'open ENOENT', 'nothing to write to');
                is(ip_vf('eth0', 0), 'no VF 0', 'nothing to ask for');
                is(vfs($_, 2), 'OK', "VFs of $_") for $eth, $ib, $ofed;
                is(ip_vf('eth0', 1), '00:00:00:00:00:00, spoof checking on, link-state auto, trust off', 'Ethernet begins anew');
                like(ip_vf('ib0', 1), qr/NODE_GUID $NODE_GUID, PORT_GUID $PORT_GUID, link-state auto$/, 'InfiniBand has what was');
                is(get("$ofed/sriov/1/policy"), 'Up', '... with MLNX_OFED too');
                is(get("$ofed/sriov/0/policy"), 'Down', '... for those that had something');
                is(put("$_/driver/unbind", $_), 'OK', "driver of $_ goes") for $ib, $ofed;
                is(put("../drivers/mlx5_core/bind", $_), 'OK', '... and comes') for $ib, $ofed;
                is(vfs($_, 2), 'OK', "VFs of $_") for $ib, $ofed;
                like(ip_vf('ib0', 1), qr/NODE_GUID $NO_GUID, PORT_GUID $NO_GUID, link-state disable$/, 'now it is forgotten');
                is(get("$ofed/sriov/1/policy"), 'Down', '... with MLNX_OFED too');
                is(vfs($_, 0), 'OK', "no VFs of $_") for $eth, $ib, $ofed;
                is(tree(), $before, 'the tree is what it was');
        };
        return;
}

sub paper_testbed {
        my $iov = "$mlx4/infiniband/mlx4_0/iov";

        subtest 'alias GUIDs' => sub {
                is(get("$iov/ports/1/admin_guids/0"), '2005e0053ff0083', 'that of the port, without leading zeros');
                is(get("$iov/ports/1/admin_guids/2"), '614b1e5a0c30002', 'that of a VF, made up at load');
                is(get("$iov/ports/1/admin_guids/5"), '0',               'none');
                is(get("$iov/0000:83:00.2/ports/1/gid_idx/0"), '2', 'where that VF finds it');
                is(put("$iov/ports/1/admin_guids/2", '0x0211223344556677'), 'OK', 'changed');
                is(get("$iov/ports/1/admin_guids/2"), '211223344556677', '... to this');
                is(get("$iov/ports/1/gids/2"), 'fe80:0000:0000:0000:0211:2233:4455:6677', '... which the port has');
                is(put("$iov/ports/1/gids/2", '1'), 'open EACCES', 'that file is only read');
                is(put("$iov/ports/1/admin_guids/2", 'ffffffffffffffff'), 'OK', 'deleted');
                is(get("$iov/ports/1/gids/2"), 'fe80:0000:0000:0000:0000:0000:0000:0000', '... the port has none');
                is(put("$iov/ports/1/admin_guids/0", '1'), 'OK', 'that of the PF cannot be changed');
                is(get("$iov/ports/1/admin_guids/0"), '2005e0053ff0083', '... though nothing is said');
        };

        subtest 'partition keys' => sub {
                is(join(' ', map { get("$iov/ports/1/pkeys/$_") } 0 .. 3), '0xffff 0x8001 0x8002 0x0000', 'of the port');
                is(join(' ', map { get("$iov/0000:83:00.1/ports/1/pkey_idx/$_") } 0 .. 2), '0 none none', 'of a VF');
                is(put("$iov/0000:83:00.1/ports/1/pkey_idx/1", '2'), 'OK', 'another one');
                is(get("$iov/0000:83:00.1/ports/1/pkey_idx/1"), '2', '... is seen');
                is(put("$iov/0000:83:00.1/ports/1/pkey_idx/1", "none\n"), 'OK', '... and none');
                is(get("$iov/0000:83:00.1/ports/1/pkey_idx/1"), 'none', '... again');
                is(put("$iov/0000:83:00.1/ports/1/pkey_idx/1", $_), 'EINVAL', "not '$_'") for qw(x -1 16);
                is(put("$iov/0000:83:00.0/ports/1/pkey_idx/1", '2'), 'EINVAL', 'those of the PF stay');
        };

        subtest 'the daemon' => sub {
                is(attributes($mlx4, 0), 'port-guid=06:14:b1:e5:a0:c3:00:01 pkey=0xffff', 'reads them');
                is(attributes($mlx4, 0, "port-guid=$PORT_GUID pkey=0x8002"), "port-guid=$PORT_GUID pkey=0x8002", 'and writes them');
                is(get("$iov/ports/1/admin_guids/1"), $PORT_GUID =~ s/://gr =~ s/^0+//r, '... the GUID of the first VF');
                is(get("$iov/0000:83:00.1/ports/1/pkey_idx/0"), '2', '... its key');
        };

        subtest 'without a driver' => sub {
                ok(-e "$pci/$_/driver", "a device: $_") for $mlx4;
                ok(!-e "$pci/0000:83:00.5", 'what has the name of a device is none');
                is(put("$mlx4/driver/unbind", $mlx4), 'OK', 'mlx4_core goes');
                ok(!-e "$pci/$iov", '... and its directory with it');
                is(put('../drivers/mlx4_core/bind', $mlx4), 'OK', 'it comes');
                ok(-e "$pci/$iov", '... as well');
        };
        return;
}

$tree eq 'connectx' ? connectx() : paper_testbed();
done_testing();
