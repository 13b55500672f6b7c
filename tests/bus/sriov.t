#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# VFs: created where there are none, at start or when asked; at start never changed where there are some.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my @pfs  = map { "0000:${_}4:00.0" } qw(1 2 3 4 9 a b c);
my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100.conf");
my $bus  = Bus->new->listen;

sub attribute { my ($pf, $name) = @_; return slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/$name") =~ s/\n//r }

sub set_attribute { my ($pf, $name, $value) = @_; fault("write sys/bus/pci/devices/$pf/$name $value"); return }

sub vfs { my ($pf) = @_; my @vfs = map { readlink =~ s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$pf/virtfn*"; return @vfs }

# The result of the job, its message, the signals until its end; or the error.
sub set_vfs {
        my ($pf, $count) = @_;
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, $count);
        return ($reply->{error}, $reply->{body}[0]) if $reply->{error};
        my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' && $_->{body}[1] eq $reply->{body}[0] });
        my ($message) = map { $_->{body}[1]{Message} } grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[1]{Message} } reverse @signals;
        return ($signals[-1]{body}[2], $message, map { $_->{member} } @signals);
}

# ---- at start

nothing_written('without a pool nothing is written at start');
my $bare = tree();
configure($conf);
my %by_pf;
push @{ $by_pf{ $_->[0] } }, $_->[1] for map { [m{/([^/ ]+)/(sriov_.*)$}] } grep { m{/sriov_} } write_log();
is_deeply(\%by_pf, { map { $_ => ['sriov_drivers_autoprobe 0 -> OK', 'sriov_numvfs 16 -> OK'] } @pfs },
        'VirtualFunctions=16 creates 16 VFs on each PF, after autoprobe is off');
my @vfs = map { vfs($_) } @pfs;
is(scalar @vfs, 128, '128 VFs are there');
is_deeply([grep { -e "$ENV{NODE_ROOT}/sys/bus/pci/devices/$_/driver" } @vfs], [], 'without a driver');
is_deeply(devices_state($bus, 'rdma'), { map { $_ => 'available' } @vfs }, 'and on offer');
is_deeply([map { $_->{total_vfs} } map { device($bus, $_) } @pfs], [(16) x 8], 'E1: a PF says how many VFs it can have');
is(device($bus, $vfs[0])->{physical_function}, $pfs[0], 'E2: a VF says whose it is');
my $log = log_since(0);
like($log, qr/^Created VFs on \Q$_\E\.$/m, "the log says so of $_") for @pfs;

my $full = tree();
fault('reset');
restart();
nothing_written('the next start finds them');
same_tree($full, 'and leaves them');

# ---- a PF with another number

set_attribute($pfs[0], 'sriov_numvfs', $_) for 0, 4;
is(scalar(vfs($pfs[0])), 4, 'somebody else changed a PF');
my $offset = log_since();
fault('reset');
restart();
nothing_written('a PF with another number of VFs is left alone');
like(log_since($offset), names($pfs[0], 4, 16), 'with a warning');
$bus->forget_signals();
is(scalar(keys %{ devices_state($bus, 'rdma') }), 116, 'and offers what it has');

# ---- SetVirtualFunctions

my $four = tree();
is_error($bus->call('SetVirtualFunctions', 'su', '0000:13:00.0', 4), 'NotSupported', ['not-supported', '0000:13:00.0'], 'a GPU has none');
is_error($bus->call('SetVirtualFunctions', 'su', '0000:14:00.1', 4), 'NotSupported', ['not-supported', '0000:14:00.1'], 'nor has a VF');
is_error($bus->call('SetVirtualFunctions', 'su', '0000:fe:00.0', 4), 'NoSuchDevice', ['no-such-device', '0000:fe:00.0'], 'nor what is not there');
is_error($bus->call('SetVirtualFunctions', 'su', 'eth0', 4), 'InvalidRequest', ['invalid-request', 'eth0'], 'nor what is no address');
my ($bluefield) = map { $_->{address} } grep { $_->{type} eq 'pf' && $_->{device} eq 'a2dc' } @{ describe($bus)->{devices} };
is_error($bus->call('SetVirtualFunctions', 'su', $bluefield, 1), 'Unavailable', ['not-in-pool'], 'nor a PF that no pool wants VFs on')
        if defined $bluefield && device($bus, $bluefield)->{total_vfs};
is((set_vfs($pfs[0], 4))[0], 'done', 'the number it has is fine');
nothing_written('and writes nothing, as all of these');
same_tree($four, 'nothing changed');

set_attribute($pfs[0], 'sriov_numvfs', 0);
ok(!$bus->call('Rescan')->{error}, 'all are removed by hand, and a rescan');
is(scalar(keys %{ devices_state($bus, 'rdma') }), 112, 'takes note');
is_error($bus->call('SetVirtualFunctions', 'su', $pfs[0], 17), 'NotSupported', ['not-supported', 16, 17], 'more than there can be');
is_error($bus->call('SetVirtualFunctions', 'su', $pfs[0], 2**32 - 1), 'NotSupported', ['not-supported', 16, 4294967295], 'far more');
$bus->forget_signals();
my ($result, undef, @signals) = set_vfs($pfs[0], 8);
is($result, 'done', 'a number is accepted where there are none');
is(scalar(vfs($pfs[0])), 8, 'and they are there');
is(scalar(keys %{ devices_state($bus, 'rdma') }), 120, 'and on offer');
is(scalar(grep { $_ eq 'DeviceAdded' } @signals), 8, 'and told of');

# ---- failures are undone

sub without_vfs {
        set_attribute($pfs[0], 'sriov_numvfs', 0);
        set_attribute($pfs[0], 'sriov_drivers_autoprobe', 1);
        return !$bus->call('Rescan')->{error};
}

ok(without_vfs(), 'again without VFs');
my $none = tree();
for my $failure ('fail 1 EIO', 'fail 2 ENOMEM', 'fail 2 ENOSPC', 'fail-after 1 EIO', 'fail-after 2 EIO', 'silent 1', 'silent 2', 'replace 2 8', 'replace 2 1') {
        fault('reset', $failure);
        ($result, my $message) = set_vfs($pfs[0], 16);
        is($result, 'failed', "VFs, $failure: the job fails");
        like($message // '', names($pfs[0]), "VFs, $failure: with a sentence");
        same_tree($none, "VFs, $failure: the tree is as before") or without_vfs();
        is(scalar(keys %{ devices_state($bus, 'rdma') }), 112, "VFs, $failure: and so is what is on offer") or without_vfs();
}
fault('reset', 'replace 2 3');
$offset = log_since();
restart();
like(log_since($offset), names($pfs[0]), 'fewer at start are told in the log');
ok(wait_until(sub { log_since($offset) =~ /^Ready: /m }), 'and the daemon gets ready');
same_tree($none, 'without them');
fault('reset');
restart();
is(scalar(vfs($pfs[0])), 16, 'the next start tries again');

# ---- a PF that stays with the host

for my $pf (@pfs) { set_attribute($pf, 'sriov_numvfs', 0) }
my ($interface) = map { s{.*/}{}r } glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$pfs[0]/net/*";
my $file = "$ENV{NODE_TMP}/passthroughd.conf";
my $pool = "[Pool one]\nMatch=type=vf pf=$pfs[0]\nVirtualFunctions=2\n";
$offset = log_since();
configure("[Daemon]\nKeepInterfaces=$interface\n$pool");
like(log_since($offset), names(2, $pfs[0], "$interface <- KeepInterfaces="), 'the log tells of VFs on a PF that the host needs');
is(device($bus, $pfs[0])->{verdict}, 'host-critical', 'the host needs the PF');
is_deeply(devices_state($bus, 'one'), { map { $_ => 'available' } vfs($pfs[0]) }, 'its VFs are on offer');
is(scalar(vfs($pfs[0])), 2, 'as many as the pool asks for');
is((set_vfs($pfs[0], 3))[0], 'done', 'their number can be changed');
is(driver_of($pfs[0]), 'mlx5_core', 'the PF keeps its driver');

for my $case (["address=$pfs[0]", 'the PF is excluded'], ["pf=$pfs[0]", 'its VFs are excluded']) {
        my ($exclude, $what) = @$case;
        set_attribute($pfs[0], 'sriov_numvfs', 0);
        configure("${pool}[Exclude]\nMatch=$exclude\n");
        my $said = names("$file:5", $pfs[0], 'one');
        is(scalar(vfs($pfs[0])), 0, "$what: it has no VFs");
        like((ctl('reload'))[2] =~ s/\s+/ /gr, $said, "$what: reload says so");
        like((ctl('check', '--node', $ENV{NODE_ROOT}, '--config', $file, '--json'))[1] =~ s/\s+/ /gr, $said, "$what: so does check");
        like((ctl('sriov', $pfs[0], 2))[2] =~ s/\s+/ /gr, $said, "$what: so does sriov");
        like((ctl('plan', 'one=1'))[2] =~ s/\s+/ /gr, $said, "$what: so does plan");
        like((ctl('explain', $pfs[0]))[1] =~ s/\s+/ /gr, $said, "$what: so does explain");
        is(scalar(vfs($pfs[0])), 0, "$what: and it still has none");
}
# VFs of another program, of which only the links are seen
configure('');
set_attribute($pfs[0], 'sriov_numvfs', 4);
my @others = vfs($pfs[0]);
fault(map { "remove sys/bus/pci/devices/$_" } @others);
configure($pool);
is_deeply([vfs($pfs[0])], \@others, 'VFs that have only links are kept');
set_attribute($pfs[0], 'sriov_numvfs', 0);

set_attribute($pfs[0], 'sriov_numvfs', 2);
configure("${pool}[Exclude]\nMatch=address=$pfs[0]\n");
is_deeply(devices_state($bus, 'one'), { map { $_ => 'available' } vfs($pfs[0]) }, 'VFs that exist on an excluded PF are on offer');

# ---- a port of a bond with RoCE LAG, which the host loses with the first VF

my $bond  = 'sys/devices/virtual/net/bond0';
my $ports = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$pfs[0]") =~ s{.*/devices/}{sys/devices/}r;

sub bond { fault("set $bond/uevent DEVTYPE=bond\\nINTERFACE=bond0", "link $ports/net/$interface/master /$bond", "set $ports/infiniband/mlx5_bond_0/node_type 1: CA"); return }

my $any = "[Pool one]\nMatch=type=vf pf=0000:14:*\nVirtualFunctions=2\n";
set_attribute($pfs[0], 'sriov_numvfs', 0);
configure($any);
is(scalar(vfs($pfs[0])), 2, 'without a bond a pattern is enough');
is((set_vfs($pfs[0], 0))[0], 'done', '... and the VFs go');
bond();
my ($error) = set_vfs($pfs[0], 2);
like($error, qr/\.Unavailable$/, 'a bond that came since the last look: SetVirtualFunctions is refused');
is(scalar(vfs($pfs[0])), 0, '... and makes none');

my $told = names($pfs[0], 'one', 'bond0');
$offset = log_since();
fault('reset');
restart();
nothing_written('at start no VFs are made');
like(log_since($offset), $told, '... and the log says so');
like((ctl('reload'))[2] =~ s/\s+/ /gr, $told, 'so does reload');
like((ctl('check', '--json'))[1] =~ s/\s+/ /gr, $told, 'so does check');
like((ctl('sriov', $pfs[0], 2))[2] =~ s/\s+/ /gr, $told, 'so does sriov');
like((ctl('plan', 'one=1'))[2] =~ s/\s+/ /gr, $told, 'so does plan');
like((ctl('explain', $pfs[0]))[1] =~ s/\s+/ /gr, $told, 'so does explain');
is(scalar(vfs($pfs[0])), 0, 'there are none');

spew($file, $pool);
$offset = log_since();
ok(!$bus->call('Reload')->{error}, 'a line names the PF');
ok(wait_until(sub { vfs($pfs[0]) == 2 && device($bus, $pfs[0])->{driver} && keys %{ devices_state($bus, 'one') } == 2 }), '... and its VFs are made');
like(log_since($offset), names(2, $pfs[0], 'bond0'), '... the log says what the host loses');
like((ctl('explain', $pfs[0]))[1] =~ s/\s+/ /gr, names($pfs[0], 'bond0'), '... and so does explain');
($result, my $message) = set_vfs($pfs[0], 3);
is($result, 'done', '... and their number can be changed');
like($message // '', names('bond0', $pfs[0]), '... with the same words');

done_testing();
