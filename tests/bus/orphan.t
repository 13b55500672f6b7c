#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A process that hangs in a write outlives its daemon: the next one gives nobody what that may still write to.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Fcntl qw(:flock);
use Test::More;

use Node;

node('connectx', configure => 1);

# A job is given up soon only where that is what the test is about: on a busy machine any write may take a second.
my $pools = slurp("$FindBin::Bin/../nodes/connectx.conf");
my $soon  = "[Daemon]\nJobTimeoutSec=4\n$pools";
my $conf  = "$ENV{NODE_TMP}/passthroughd.conf";
my $pci   = "$ENV{NODE_ROOT}/sys/bus/pci/devices";
my $jobs  = "$ENV{STATE_DIRECTORY}/jobs";
my %pf    = (ethernet => '0000:11:00.0', igb => '0000:12:00.0', infiniband => '0000:81:00.0', ofed => '0000:82:00.0');
my $bus;

sub connect_again { $bus = Bus->new->listen; return }
sub stuck         { my ($address) = @_; return device($bus, $address)->{state} eq 'stuck' }
sub pending       { return grep { /PENDING/ } write_log() }

# Names of the files that say which jobs have a process.
sub locks {
        opendir my $d, $jobs or die "$jobs: $!";
        return join ' ', sort grep { !/^[.]/ } readdir $d;
}

# What the kernel keeps of a VF.
sub kernel {
        my ($pool, $vf) = @_;
        my ($dir) = grep { -d } map { "$pci/$pf{$pool}/$_/$vf" } qw(vf-netlink sriov);
        opendir my $d, $dir or die "$dir: $!";
        return { map { $_ => slurp("$dir/$_") =~ s/\n//r } grep { !/^[.]/ && $_ ne 'config' } readdir $d };
}

# The VF of an allocation of one has the identity that the allocation says.
sub is_told {
        my ($name, $pool, $what) = @_;
        my ($d) = @{ allocation($bus, $name)->{devices} };
        my ($index) = grep { readlink("$pci/$pf{$pool}/virtfn$_") =~ /\Q$d->{address}\E$/ } 0 .. 3;
        my $key = $pool eq 'ofed' ? 'node' : 'mac';
        is(kernel($pool, $index)->{$key}, $d->{attributes}{ $pool eq 'ofed' ? 'node_guid' : 'mac' }, "$what: the VF of '$name' is who it was made");
        return;
}

sub vf_attribute { return ['vf-attributes' => [["$_[0]0", 'vlan=77']]] }

# The number of the first write of Allocate that is like that.
sub find_write {
        my ($pattern, @request) = @_;
        fault('reset');
        is(allocate($bus, 'a', @request), 'done', "there is a write like $pattern") or BAIL_OUT('no allocation');
        my ($n) = map { /^(\d+) / } grep { /$pattern/ } write_log();
        is(release($bus, 'a'), 'done', 'released');
        return $n // BAIL_OUT("no write like $pattern: " . join "\n", write_log());
}

# ---- an allocation that hangs, and a daemon that ends before it comes back

configure($pools);
connect_again();
my $before = tree();
my $state  = snapshot();

sub hang_and_restart {
        my ($signal, $n, $what, @call) = @_;
        spew($conf, $signal eq 'TERM' ? $soon : $pools);
        is((ctl('reload'))[0], 0, "$what: the time limit");
        fault('reset', "unkillable $n");
        my $reply = $bus->call(@call);
        is($reply->{error}, undef, "$what: it is begun") or diag($reply->{body}[0]);
        ok(wait_until(sub { pending() }), "$what: the write hangs") or diag(join "\n", write_log());
        is($bus->result($reply->{body}[-1]), 'timeout', "$what: the job is given up") if $signal eq 'TERM';
        is(scalar(split ' ', locks()), 1, "$what: its process is on record");
        spew($conf, $pools);
        is(daemon('restart', $signal), 0, "$what: the daemon is another one");
        connect_again();
        is(scalar(pending()), 1, "$what: the write hangs still") or diag(join "\n", write_log());
        return;
}

for my $case (
        ['a sysfs attribute', 'ofed', qr{/sriov/\d+/(?:node|port|policy) }],
        ['a netlink attribute', 'ethernet', qr{vf-netlink/\d+/\w+ }],
        ['a bind', 'ofed', qr{drivers_probe }],
        )
{
        my ($kind, $pool, $pattern) = @$case;
        my @request = ($pool => 1, $pool eq 'ethernet' ? @{ vf_attribute($pool) } : ());
        my $n = find_write($pattern, @request);
        for my $signal ('TERM', 'KILL') {
                my $what = "$kind, $signal";
                my ($signature, $entries) = request(@request);
                hang_and_restart($signal, $n, $what, 'Allocate', "s$signature", 'a', $entries);
                my ($vf) = map { $_->{address} } @{ allocation($bus, 'a')->{devices} };
                my @at = ($vf, $kind =~ /attribute/ ? $pf{$pool} : ());
                is(device($bus, $_)->{state}, 'stuck', "$what: $_ is stuck") for @at;
                like(device($bus, $_)->{reason}, names($_, 'prepare a'), "$what: and it is said by what") for @at;
                is(allocation_state($bus, 'a'), $signal eq 'TERM' ? 'failed' : 'preparing', "$what: the allocation is left as it was");
                like(allocation($bus, 'a')->{reason} // '', $signal eq 'TERM' ? qr/\S/ : names($vf, 'prepare a'), "$what: with the reason");
                is_error($bus->call('Release', 'st', 'a', Node::generation($bus, 'a')), 'Unavailable', ['stuck'], "$what: it cannot be released");
                is((allocate($bus, 'b', $pool => 4))[0], 'org.passthroughd1.Error.Insufficient', "$what: nobody gets its VF");
                is((allocate($bus, 'b', $pool => 1))[0], 'org.passthroughd1.Error.Insufficient', "$what: nor another of the PF") if $kind =~ /attribute/;
                is(allocate($bus, 'b', igb => 1, infiniband => 1), 'done', "$what: other PFs' are to be had");
                is(release($bus, 'b'), 'done', "$what: and go back");
                if ($signal eq 'KILL') {
                        is(daemon('restart', 'TERM'), 0, "$what: and one more daemon");
                        connect_again();
                        ok(stuck($_), "$what: for which $_ is stuck too") for @at;
                }
                fault('release');
                ok(wait_until(sub { !grep { stuck($_) } @at }), "$what: until it comes back");
                history_shows($_, sub { join(' ', grep { /stuck/ } @_) =~ /\bstuck unstuck$/ }, "$what: which is in the history of $_") for @at;
                ok(wait_until(sub { allocation_state($bus, 'a') eq ($signal eq 'TERM' ? 'failed' : 'ready') }), "$what: then it is brought to its end");
                ok(wait_until(sub { locks() eq '' }), "$what: no process is on record") or diag(locks());
                is(allocation($bus, 'a')->{reason}, undef, "$what: without a reason any more") if $signal eq 'KILL';
                is_told('a', $pool, $what) if $signal eq 'KILL';
                is(allocate($bus, 'b', $pool => 1), 'done', "$what: others get theirs");
                is_told('b', $pool, $what);
                is(release($bus, $_), 'done', "$what: '$_' is released") for 'a', 'b';
                same_tree($before, "$what: all is as before");
                same_state($state, "$what: the state directory too") or release_all($bus);
        }
}

# ---- a number of VFs

for my $signal ('TERM', 'KILL') {
        for my $n ($signal eq 'TERM' ? 2 : 1) {
                my $what = "a number of VFs, write $n, $signal";
                hang_and_restart($signal, $n, $what, 'SetVirtualFunctions', 'su', $pf{igb}, 2);
                my $device = device($bus, $pf{igb});
                is($device->{state}, 'stuck', "$what: the PF is stuck");
                like($device->{reason} // '', names($pf{igb}, "set-vfs $pf{igb}"), "$what: and it is said by what");
                is_error($bus->call('SetVirtualFunctions', 'su', $pf{igb}, 4), 'Unavailable', ['stuck'], "$what: nobody changes it");
                is_error($bus->call('SetVirtualFunctions', 'su', $pf{ethernet}, 2), 'Unavailable', ['stuck', "set-vfs $pf{igb}"], "$what: nor that of another PF");
                is((allocate($bus, 'b', igb => 1))[0], 'org.passthroughd1.Error.Insufficient', "$what: nobody gets a VF");
                is(allocate($bus, 'b', ofed => 1), 'done', "$what: but of other PFs");
                is(release($bus, 'b'), 'done', "$what: and they go back");
                fault('release');
                ok(wait_until(sub { !stuck($pf{igb}) }), "$what: until it comes back");
                isnt(device($bus, $pf{igb})->{state}, 'contested', "$what: and it is nobody's quarrel");
                ok(wait_until(sub { locks() eq '' }), "$what: no process is on record") or diag(locks());
                my $reply;
                ok(wait_until(sub { $reply = $bus->call('SetVirtualFunctions', 'su', $pf{igb}, 4); !$reply->{error} }), "$what: it can be changed") or diag($reply->{body}[0]);
                is($bus->result($reply->{body}[0]), 'done', "$what: back");
                same_tree($before, "$what: all is as before");
                same_state($state, "$what: the state directory too");
        }
}

# ---- bound at start

for my $signal ('TERM', 'KILL') {
        my $what = "Bind=start, $signal";
        configure($pools);
        is(daemon('stop'), 0, "$what: stopped");
        spew($conf, $soon =~ s/(Pool igb\]\n)/$1Bind=start\n/r);
        fault('reset', 'unkillable 2');
        is(daemon('start'), 0, "$what: one hangs at start");
        connect_again();
        my ($vf) = grep { $_ ne $pf{igb} && stuck($_) } map { $_->[0] } @{ $bus->call('ListDevices')->{body}[0] };
        ok($vf, "$what: and is stuck");
        restart($signal);
        connect_again();
        ok(stuck($vf), "$what: for the next daemon too");
        is((allocate($bus, 'b', igb => 4))[0], 'org.passthroughd1.Error.Insufficient', "$what: nobody gets it");
        fault('release');
        ok(wait_until(sub { driver_of($vf) eq 'vfio-pci' && device($bus, $vf)->{state} eq 'available' && locks() eq '' }), "$what: then it is bound");
        for my $device (grep { driver_of($_) eq 'vfio-pci' } map { $_->[0] } @{ $bus->call('ListDevices')->{body}[0] }) {
                is(daemon('stop'), 0, "$what: stopped") if -e $ENV{DAEMON_PID};
                fault("write sys/bus/pci/devices/$device/driver/unbind $device", "write sys/bus/pci/devices/$device/driver_override \\n");
        }
        fault('reset');
        configure($pools);
        connect_again();
        same_tree($before, "$what: all is as before");
}

# ---- files

sub lock_file {
        my ($id, $text) = @_;
        spew("$jobs/$id", $text);
        open my $f, '<', "$jobs/$id" or die "$jobs/$id: $!";
        flock $f, LOCK_EX or die "flock: $!";
        return $f;
}

is(daemon('stop'), 0, 'files: stopped');
spew("$jobs/7", "prepare guest\n$pf{igb}\n");
spew("$jobs/8", '');
is(daemon('start'), 0, 'files: a daemon that finds some of processes that are gone');
connect_again();
is(locks(), '', 'files: removes them');
ok(!stuck($pf{igb}), 'files: and nothing is stuck');
is(daemon('stop'), 0, 'files: stopped');
my @held = (lock_file(7, "prepare guest\n$pf{igb}\n0000:77:00.0\nwhatever\n$pf{ofed}"), lock_file(4, "prepare other\n$pf{igb}\n"), lock_file(9, "\0\xff"));
spew("$jobs/README", 'Not one of ours.');
is(daemon('start'), 0, 'files: a daemon that finds some with a lock');
connect_again();
ok(stuck($_), "files: $_ is stuck") for @pf{qw(igb ofed)};
is(allocate($bus, 'a', ethernet => 1), 'done', 'files: it makes its own beside them');
is(release($bus, 'a'), 'done', 'files: and more');
is(locks(), '4 7 9 README', 'files: which are gone');
shift @held;
ok(wait_until(sub { !stuck($pf{ofed}) }), 'files: one is unlocked');
ok(stuck($pf{igb}), 'files: what the other is about stays stuck');
@held = ();
ok(wait_until(sub { !stuck($pf{igb}) && locks() eq 'README' }), 'files: until that is unlocked too');
unlink "$jobs/README" or die $!;
same_state($state, 'files: nothing is left');

is(daemon('stop'), 0, 'files: stopped');
rmdir $jobs or die $!;
spew($jobs, '');
my $offset = log_since();
is(daemon('start'), 0, 'files: a daemon without a place for them');
connect_again();
for my $round (1, 2) {
        is(allocate($bus, 'a', ethernet => 1), 'done', "files: works all the same, $round");
        is(release($bus, 'a'), 'done', "files: both ways, $round");
}
is(scalar(() = log_since($offset) =~ m{state/jobs}g), 1, 'files: having said so once') or diag(log_since($offset));
same_tree($before, 'all is as before');

done_testing();
