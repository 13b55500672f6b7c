#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A boot puts every device back to the host's drivers and makes VFs go; a promise is kept all the same.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Document;
use Node;

node('paper-testbed');

my $bus = Bus->new->listen;

sub devices { my ($name) = @_; return map { $_->{address} } @{ allocation($bus, $name)->{devices} } }

my @request = (gpu => 1, 'ib-vf' => 1, cpus => 4, memory => 4 * 2**30);
my ($gpu, $pf) = qw(0000:82:00.0 0000:83:00.0);
my $before = tree();
my $state  = snapshot();

# ---- ready: bound again before the daemon is

is(allocate($bus, 'guest', @request), 'done', 'there is an allocation');
my @devices = devices('guest');
my ($ready, $ledger, $xml, $id) = (tree(), snapshot(), document('guest', 'before'), allocation($bus, 'guest')->{id});
for my $round ('at once', 'once more') {
        is(daemon('stop'), 0, "a boot, $round: the daemon stops");
        other_hand_binds($_, '') for @devices;
        is_deeply([map { driver_of($_) } @devices], ['nvidia', driver_of($devices[1])], "a boot, $round: the host's drivers have the devices");
        unlike(driver_of($devices[1]), qr/vfio/, "a boot, $round: the VF too");
        start_again($bus, "a boot, $round");
        is_deeply([map { driver_of($_) } @devices], [qw(vfio-pci vfio-pci)], "a boot, $round: bound when the daemon is ready");
        is(allocation_state($bus, 'guest'), 'ready', "a boot, $round: and so is the allocation");
        is(allocation($bus, 'guest')->{reason} // '', '', "a boot, $round: without a reason");
        is(allocation($bus, 'guest')->{id}, $id, "a boot, $round: the same one");
        is(document('guest', "a boot, $round"), $xml, "a boot, $round: the document is the same");
        same_tree($ready, "a boot, $round: the tree is as before");
        same_state($ledger, "a boot, $round: and the ledger");
}
is(release($bus, 'guest'), 'done', 'it is released');
same_tree($before, 'to the tree of the start');
same_state($state, 'and the ledger of the start');

# ---- failed: nobody touches it, and a release has nothing to do

fault('reset', 'kill 2 after');
is(allocate($bus, 'guest', @request), 'failed', 'failed: there is an allocation');
is(daemon('stop'), 0, 'failed: the daemon stops');
other_hand_binds($_, '') for @devices;
start_again($bus, 'failed');
is(allocation_state($bus, 'guest'), 'failed', 'failed: it stays so');
nothing_written('failed: and is not touched');
is(release($bus, 'guest'), 'done', 'failed: it is released');
same_tree($before, 'failed: to the tree of the start');

# ---- releasing, and somebody's guest sits on the GPU

is(allocate($bus, 'guest', @request), 'done', 'releasing: there is an allocation');
$ready = tree();
my $group = device($bus, $gpu)->{iommu_group};
ok(defined $group, 'releasing: the GPU has a group');
is(daemon('stop'), 0, 'releasing: the daemon stops');
my $file = slurp(ledger_file('guest'));
ok($file =~ s/"ready"/"releasing"/, 'releasing: as if killed when it had just begun');
spew(ledger_file('guest'), $file);
fault("link proc/4242/fd/7 /dev/vfio/$group", 'set proc/4242/comm qemu-system-x86');
start_again($bus, 'releasing');
nothing_written('releasing: nothing is unbound');
is_deeply([map { driver_of($_) } @devices], [qw(vfio-pci vfio-pci)], 'releasing: the devices are where they were');
is(allocation_state($bus, 'guest'), 'failed', 'releasing: the allocation has failed');
like(allocation($bus, 'guest')->{reason} // '', names($gpu, 4242, 'qemu-system-x86'), 'releasing: and says by whom');
my ($error, $sentence) = release($bus, 'guest');
like($sentence // '', qr/4242 \(qemu-system-x86\)/, 'releasing: nor can it be released');
nothing_written('releasing: nothing is unbound still');
fault('remove proc/4242');
is((release($bus, 'guest'))[0], 'done', 'releasing: it can when the guest is gone');
same_tree($before, 'releasing: to the tree of the start');
same_state($state, 'releasing: and the ledger') or release_all($bus);

# ---- releasing, and a boot did it all

is(allocate($bus, 'guest', @request), 'done', 'released by a boot: there is an allocation');
is(daemon('stop'), 0, 'released by a boot: the daemon stops');
$file = slurp(ledger_file('guest'));
$file =~ s/"ready"/"releasing"/;
spew(ledger_file('guest'), $file);
other_hand_binds($_, '') for @devices;
start_again($bus, 'released by a boot');
is(allocation_state($bus, 'guest'), 'gone', 'released by a boot: it is gone when the daemon is ready');
ok(!(grep { /unbind|drivers_probe/ } write_log()), 'released by a boot: nothing is moved') or diag(join "\n", write_log());
same_tree($before, 'released by a boot: the tree is that of the start');

# ---- a boot whose binding fails: told, kept, released

is(allocate($bus, 'guest', @request), 'done', 'a boot that fails: there is an allocation');
is(daemon('stop'), 0, 'a boot that fails: the daemon stops');
other_hand_binds($_, '') for @devices;
fault('reset', 'fail 4 EIO');
is(daemon('start'), 0, 'a boot that fails: the daemon starts');
$bus->forget_signals();
is(allocation_state($bus, 'guest'), 'failed', 'a boot that fails: the allocation has failed');
like(allocation($bus, 'guest')->{reason} // '', names(qr/\b0000:[0-9a-f:.]+/), 'a boot that fails: and says why');
fault('reset');
is(release($bus, 'guest'), 'done', 'a boot that fails: it is released');
same_tree($before, 'a boot that fails: to the tree of the start');
same_state($state, 'a boot that fails: and the ledger');

done_testing();
