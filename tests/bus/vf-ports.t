#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFs of a card with two InfiniBand ports: what each port of each has is given, kept and brought back by itself.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use Test::More;

use Node;

my $card = 'sys/devices/pci0000:80/0000:80:03.0/0000:83:00.0';

# The node with a second port at its card, in a tree of its own.
if (!$ENV{NODE_ROOT}) {
        $ENV{BUILD} //= "$FindBin::Bin/../../build";
        plan skip_all => 'no /dev/fuse' if !-w '/dev/fuse';
        plan skip_all => "$ENV{BUILD} is not built" if !-x "$ENV{BUILD}/tests/nodesim";
        my $dir = abs_path(tempdir(CLEANUP => 0));
        spew("$dir/ports.tree", <<"END");
%include $FindBin::Bin/../nodes/paper-testbed.tree
[$card]
infiniband/mlx4_0/ports/2/link_layer=InfiniBand
END
        $ENV{PORTS_TREE} = $dir;
        exec "$FindBin::Bin/../with-node", "$dir/ports.tree", '--conf', "$FindBin::Bin/../nodes/paper-testbed.conf", '--', $^X, $0 or die "with-node: $!";
}
unlink "$ENV{PORTS_TREE}/ports.tree";
rmdir $ENV{PORTS_TREE};

my $bus = Bus->new->listen;
my $iov = "$ENV{NODE_ROOT}/$card/infiniband/mlx4_0/iov";

# What the kernel has of both ports of each VF: GUID, and index of the first key.
sub guid { my ($port, $vf) = @_; return slurp("$iov/ports/$port/admin_guids/@{[$vf + 1]}") =~ s/\n//r }
sub pkey { my ($port, $vf) = @_; return slurp("$iov/0000:83:00.@{[$vf + 1]}/ports/$port/pkey_idx/0") =~ s/\n//r }
sub all  { return { map { my $vf = $_; map { ("$vf.$_" => guid($_, $vf) . ' ' . pkey($_, $vf)) } 1, 2 } 0 .. 3 } }

sub slots {
        my ($allocation) = @_;
        return map { $_->{attributes} } grep { $_->{slot} } @{ allocation($bus, $allocation)->{devices} };
}
sub as_mlx4 { my ($guid) = @_; return $guid =~ s/://gr =~ s/^0+//r }

sub with_attributes {
        my ($name, $n, @attributes) = @_;
        my ($signature, $entries) = request('ib-vf' => $n, 'vf-attributes' => [@attributes]);
        my $reply = $bus->call('Allocate', "s$signature", $name, $entries);
        return $reply->{error} ? "$reply->{error}: $reply->{body}[0]" : $bus->result($reply->{body}[1]);
}

my ($tree, $start) = (tree(), all());
is($start->{'0.1'}, '614b1e5a0c30001 0', 'the first port');
is($start->{'0.2'}, '614b1e5a0c30101 0', 'the second port has a GUID of its own');

# ---- made up for both, and brought back to both

is(allocate($bus, 'two', 'ib-vf' => 2), 'done', 'two VFs');
my @slots = slots('two');
my %seen;
$seen{$_}++ for map { @{$_}{qw(port_guid second_port_guid)} } @slots;
is(scalar(grep { /^02:/ } keys %seen), 4, 'four GUIDs are made up');
for my $vf (0, 1) {
        is(guid(1, $vf), as_mlx4($slots[$vf]{port_guid}),        "VF $vf: the first port has its GUID");
        is(guid(2, $vf), as_mlx4($slots[$vf]{second_port_guid}), "VF $vf: the second one too");
}
is_deeply([@{ all() }{qw(2.1 2.2)}], [@{$start}{qw(2.1 2.2)}], 'no other VF was touched');
is(release($bus, 'two'), 'done', 'released');
is_deeply(all(), $start, 'each port has its own back');
same_tree($tree, 'and all is as before');

# ---- asked for

my ($first, $second) = ('02:00:00:00:00:00:aa:01', '02:00:00:00:00:00:bb:07');
my $wanted = ['ib-vf0', "port-guid=$first second-port-guid=$second pkey=0x8001 second-port-pkey=0x8002"];
is(with_attributes('asked', 1, $wanted), 'done', 'asked for');
is_deeply([map { guid($_, 0) . ' ' . pkey($_, 0) } 1, 2], [as_mlx4($first) . ' 1', as_mlx4($second) . ' 2'], 'each port has what was asked for it');
like(with_attributes('other', 1, ['ib-vf0', "port-guid=$second"]), qr/second-port-guid|\Q$second\E.*'asked'/, 'nobody else can have that of the second');
is(release($bus, 'asked'), 'done', 'released');
same_tree($tree, 'and all is as before');
is(with_attributes('asked', 1, ['ib-vf0', 'second-port-pkey=0x8002']), 'done', 'a key of the second port');
is(pkey(1, 0), '0', 'is not that of the first');
is(release($bus, 'asked'), 'done', 'released');
same_tree($tree, 'and all is as before');

# ---- whoever writes it dies, before or after any of the writes

fault('reset');
is(with_attributes('guest', 1, $wanted), 'done', 'it works without');
my $n = writes();
is(release($bus, 'guest'), 'done', 'and back');
my $back = writes() - $n;
cmp_ok($_, '>=', 4, 'four writes are those of the ports') for $n, $back;
for my $when ('before', 'after') {
        for my $i (1 .. $n) {
                fault('reset', "kill $i $when");
                my $result = with_attributes('guest', 1, $wanted);
                fault('reset');
                release($bus, 'guest') if allocation_state($bus, 'guest') ne 'gone';
                same_tree($tree, "killed $when write $i ($result): all is as before");
        }
        for my $i (1 .. $back) {
                fault('reset');
                is(with_attributes('guest', 1, $wanted), 'done', "once more, $i");
                fault('reset', "kill $i $when");
                my $result = release($bus, 'guest');
                fault('reset');
                is(release($bus, 'guest'), 'done', 'released again') if allocation_state($bus, 'guest') ne 'gone';
                clear_quarantine($bus);
                same_tree($tree, "killed $when write $i of the release ($result): all is as before");
        }
}

# ---- a boot, after which one port has what it had and the other one not

fault('reset');
is(with_attributes('guest', 1, $wanted), 'done', 'before a boot');
my $given = all();
for my $port (1, 2) {
        is(daemon('stop'), 0, "boot, port $port: the daemon is gone");
        fault("write sys/bus/pci/drivers/vfio-pci/unbind 0000:83:00.1", "set $card/infiniband/mlx4_0/iov/ports/$port/admin_guids/1 1",
                "set $card/infiniband/mlx4_0/iov/0000:83:00.1/ports/$port/pkey_idx/0 0");
        is(daemon('start'), 0, "boot, port $port: the daemon is back");
        $bus = Bus->new->listen;
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), "boot, port $port: the allocation is ready");
        is_deeply(all(), $given, "boot, port $port: with all that it had");
}
is(release($bus, 'guest'), 'done', 'released');
is_deeply(all(), $start, 'and what was there before comes back');

done_testing();
