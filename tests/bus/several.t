#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Jobs on several devices that are cut short between any two of their writes: what is half done is finished or taken back.
# SWEEP_EVERY=1 has every write hang, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/VirtualFunctions=\d+/VirtualFunctions=2/r;
configure($conf);

my @request = (gpu => 2, rdma => 2);
my $bus     = Bus->new->listen;
my $before  = tree();
my $state   = snapshot();

fault('reset');
is(allocate($bus, 'guest', @request), 'done', 'there is an allocation of four devices');
my $ready    = tree();
my $allocate = writes();
my @devices  = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
is(scalar @devices, 4, 'two GPUs and two VFs');
fault('reset');
is(release($bus, 'guest'), 'done', 'it is released');
my $release = writes();
my @home    = map { driver_of($_) } @devices;
is_deeply([sort @home], [qw(none none nvidia nvidia)], 'the GPUs go back to their driver, the VFs to none');
same_tree($before, 'the tree is that of the start');
cmp_ok($allocate, '>=', 10, "allocate writes $allocate times");
cmp_ok($release,  '>=', 12, "release writes $release times");

# What a release did since the last reset: does one of its writes put a device from its own driver onto vfio-pci?
sub goes_home {
        my ($at_home, $what) = @_;
        my @wrong;
        for my $address (@$at_home) {
                push @wrong, grep { m{/\Q$address\E/driver_override vfio-pci|/nvidia/unbind \Q$address\E|/\Q$address\E/driver/unbind \Q$address\E} } write_log();
        }
        is_deeply(\@wrong, [], "$what: no device that is at home is moved");
        return;
}

sub at_home {
        return [map { $devices[$_] } grep { $home[$_] ne 'none' && driver_of($devices[$_]) eq $home[$_] } 0 .. $#devices];
}

# Takes back what is left of an allocation that failed.
sub take_back {
        my ($what) = @_;
        my $at_home = at_home();
        fault('reset');
        is((release($bus, 'guest'))[0], 'done', "$what: it can be released");
        goes_home($at_home, $what);
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
        return;
}

# ---- the process that writes is killed

for my $when ('before', 'after') {
        for my $n (1 .. $allocate) {
                my $what = "the writer dies $when write $n of allocate";
                fault('reset', "kill $n $when");
                is((allocate($bus, 'guest', @request))[0], 'failed', "$what: the job fails");
                is(allocation_state($bus, 'guest'), 'failed', "$what: the allocation has failed");
                take_back($what);
        }
        for my $n (1 .. $release) {
                my $what = "the writer dies $when write $n of release";
                is((allocate($bus, 'guest', @request))[0], 'done', "$what: there is an allocation");
                fault('reset', "kill $n $when");
                is((release($bus, 'guest'))[0], 'failed', "$what: the job fails");
                is(allocation_state($bus, 'guest'), 'failed', "$what: the allocation has failed");
                take_back($what);
        }
}

# A release that fails after one that was cut short puts nothing back onto vfio-pci but what it took off itself.
for my $n (1, 4, 8, $release) {
        for my $m (1 .. 3) {
                my $what = "release dies at write $n, the next fails at its write $m";
                is((allocate($bus, 'guest', @request))[0], 'done', "$what: there is an allocation");
                fault('reset', "kill $n after");
                is((release($bus, 'guest'))[0], 'failed', "$what: the first job fails");
                my $at_home = at_home();
                fault('reset', "fail $m EIO");
                my $result = (release($bus, 'guest'))[0];
                fault('reset');
                is_deeply([grep { my $a = $_; !grep { $_ eq $a } @{ at_home() } } @$at_home], [], "$what: what was at home is there still");
                is($result, 'failed', "$what: the second too") if $result ne 'done';
                take_back($what) if $result ne 'done';
                clear_quarantine($bus); # where it was a reset that failed
                same_tree($before, "$what: all is back");
        }
}

# ---- the daemon is killed while a write takes its time

for my $n (grep { $_ % 2 } 1 .. $allocate) {
        my $what = "killed in write $n of allocate";
        my ($signature, $entries) = request(@request);
        killed_in($bus, $n, $what, 'Allocate', "s$signature", 'guest', $entries);
        is(allocation_state($bus, 'guest'), 'ready', "$what: the allocation is ready with the daemon");
        same_tree(tree_without_identities($ready), "$what: as if nothing had happened", tree_without_identities());
        $bus->forget_signals();
        take_back($what);
}
for my $n (grep { $_ % 2 == 0 } 1 .. $release) {
        my $what = "killed in write $n of release";
        is((allocate($bus, 'guest', @request))[0], 'done', "$what: there is an allocation");
        killed_in($bus, $n, $what, 'Release', 'st', 'guest', Node::generation($bus, 'guest'));
        is(allocation_state($bus, 'guest'), 'gone', "$what: the allocation is gone when the daemon is ready");
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
        $bus->forget_signals();
}

# ---- out of time

configure($conf =~ s/\[Daemon\]/[Daemon]\nJobTimeoutSec=6/r);
$bus->forget_signals();
for my $n (1, $allocate) {
        my $what = "write $n of allocate hangs";
        fault('reset', "hang $n");
        is((allocate($bus, 'guest', @request))[0], 'timeout', "$what: the job ends as timeout");
        like(allocation($bus, 'guest')->{reason} // '', names(qr/\b0000:[0-9a-f:.]+/), "$what: and says why");
        ok(wait_until(sub { !grep { device($bus, $_)->{state} eq 'stuck' } @devices }), "$what: nothing is stuck once the process is gone");
        take_back($what);
}

# ---- a write that hangs costs the devices of its chain; what the others have to do is done or undone meanwhile

configure($conf =~ s/\[Daemon\]/[Daemon]\nJobTimeoutSec=4/r);
$bus->forget_signals();

# The device of the write that hangs: its directory, or what is written.
sub hanging {
        my ($write) = grep { /PENDING/ } write_log();
        return grep { $write =~ /\Q$_\E/ } @devices;
}

sub check_hang {
        my ($what, $result) = @_;
        ok($result eq 'timeout' || $result eq 'done', "$what: $result");
        my @hanging = hanging();
        for my $gpu (@devices[0, 1]) {
                next if grep { $_ eq $gpu } @hanging;
                isnt(device($bus, $gpu)->{state}, 'stuck', "$what: $gpu is not stuck");
                is(driver_of($gpu), $home[0], "$what: it is at home");
        }
        is(device($bus, $_)->{state}, 'stuck', "$what: $_ is stuck") for @hanging;
        fault('release', 'reset');
        ok(wait_until(sub { !grep { device($bus, $_)->{state} eq 'stuck' } @devices }), "$what: the kernel returns");
        is((release($bus, 'guest'))[0], 'done', "$what: it is released") if allocation_state($bus, 'guest') ne 'gone';
        clear_quarantine($bus);
        same_tree($before, "$what: the tree is that of the start");
        same_state($state, "$what: the ledger too") or release_all($bus);
        return;
}

my $every = $ENV{SWEEP_EVERY} // 6;
for my $n (grep { $_ % $every == 0 } 1 .. $allocate) {
        fault('reset', "unkillable $n");
        check_hang("write $n of allocate is stuck", allocate($bus, 'guest', @request));
}
for my $n (grep { $_ % $every == 0 } 1 .. $release) {
        my $what = "write $n of release is stuck";
        fault('reset');
        is((allocate($bus, 'guest', @request))[0], 'done', "$what: there is an allocation");
        fault('reset', "unkillable $n");
        check_hang($what, release($bus, 'guest'));
}

done_testing();
