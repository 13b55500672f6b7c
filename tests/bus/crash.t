#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Killed at any instant, the daemon has all in order soon after its next start: each allocation is whole or gone, no other one is touched.
# SWEEP_EVERY=1 tries every instant, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Crash;
use Node;

node('../long/machine');

my @request = (gpu => 1, ethernet => 1, infiniband => 1, 'remote-gpu' => 2, cpus => 2, memory => 2**30, 'vf-attributes' => [['ethernet0', 'trust=on,vlan=100']]);
my $pf      = '0000:11:00.0';
my $bus     = Bus->new->listen;

preload_dying();
# The kernel may suspend the GPUs.
fault(map { ("set sys/bus/pci/devices/$_/power/control auto", "set sys/bus/pci/devices/$_/d3cold_allowed 1") } qw(0000:13:00.0 0000:13:00.1 0000:84:00.0 0000:84:00.1));
restart();
is(allocate($bus, 'bystander', gpu => 1, infiniband => 1, 'remote-gpu' => 1, cpus => 2, memory => 2**30), 'done', 'there is another allocation');
memorize($bus, 'bystander', $pf, @request);
my $start = tree();

sub set_vfs {
        my ($count) = @_;
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, $count);
        return is($reply->{error} ? $reply->{body}[0] : $bus->result($reply->{body}[0]), 'done', "there are $count VFs");
}

allocated();
my $ready = tree();
my $gpu   = device_in($bus, 'guest', 'gpu0')->{address};
fault('reset', "fail reset\@$gpu EIO");
is(release($bus, 'guest'), 'done', 'released, though the GPU cannot be reset');
my $quarantined = tree();
fault('reset');
home_again($bus, 'at the start', 'guest');

my %whole_or_gone = (may => { ready => [$ready], gone => [$start] }, writer_may => { failed => 1 });

crash_points($bus, { %whole_or_gone, name => 'allocate', prepare => sub { }, begin => \&begin_allocate });
crash_points($bus, { %whole_or_gone, name => 'release', prepare => \&allocated, begin => \&begin_release });
crash_points($bus, { %whole_or_gone, %START, name => "start after allocate was killed at write $_",
                prepare => do { my $n = $_; sub { interrupted($n, \&begin_allocate) } } }) for 3, 9, 14;
crash_points($bus, { %whole_or_gone, %START, name => "start after release was killed at write $_",
                prepare => do { my $n = $_; sub { allocated(); interrupted($n, \&begin_release) } } }) for 2, 9, 17;

# A boot: what was bound is with the host again, and the VFs of a PF are gone.
crash_points($bus, { %whole_or_gone, %START, name => 'start after a boot', prepare => sub {
        allocated();
        daemon('stop', 'TERM');
        other_hand_binds($_, '') for $gpu, $gpu =~ s/0$/1/r;
        fault("write sys/bus/pci/devices/$pf/sriov_numvfs 0");
} });

# One that cannot be reset goes to quarantine, and out of it.
my %to_quarantine = (may => { ready => [$ready], gone => [$start], quarantined => [$quarantined] }, writer_may => { failed => 1 });
crash_points($bus, { %to_quarantine, name => 'release to quarantine', prepare => \&allocated, begin => \&begin_release,
                faults => ["fail reset\@$gpu EIO"] });
crash_points($bus, { may => { gone => [$start], quarantined => [$quarantined] }, name => 'clear quarantine', begin => sub { begin_call('ClearQuarantine', 's', $gpu) }, prepare => sub {
        allocated();
        fault('reset', "fail reset\@$gpu EIO");
        is(release($bus, 'guest'), 'done', 'released to quarantine');
        fault('reset');
} });

# ---- the number of VFs

my %trees = (2 => $start);
for my $count (0, 4) { set_vfs($count); $trees{$count} = tree() }
set_vfs(2);
for my $change ([2, 0], [0, 4], [4, 2], [2, 4]) {
        my ($from, $to) = @$change;
        crash_points($bus, { name => "set-vfs from $from to $to", begin => sub { begin_call('SetVirtualFunctions', 'su', $pf, $to) },
                        prepare => sub { set_vfs($from) }, may => { gone => [map { $trees{$_} } $to, $from, 2] }, home => sub { set_vfs(2) } });
}

tell_outcomes();
done_testing();
