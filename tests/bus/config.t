#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Configurations that are wrong: one broken line never hides the rest, and the same hardware is never offered twice.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $file = "$ENV{NODE_TMP}/passthroughd.conf";
my ($gpu, $pf) = qw(0000:82:00.0 0000:83:00.0);
my $good = "[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n";
my $bus  = Bus->new->listen;
my $tree = tree();

# ---- one broken line

my @broken = (
        ['an unknown key',          "[Pool gpu]\nColour=red\nMatch=vendor=10de\n",                  2, qr/\bColour=/],
        ['an unknown section',      "[Frob]\nX=1\n[Pool gpu]\nMatch=vendor=10de\n",                 1, qr/\[Frob\]/],
        ['an unknown term',         "[Pool gpu]\nMatch=vendor=10de\nMatch=shape=round\n",           3, qr/shape/],
        ['a term that is no id',    "[Pool gpu]\nMatch=vendor=10de\nMatch=vendor=nvidia\n",         3, qr/vendor/],
        ['a line without =',        "[Pool gpu]\nMatch\nMatch=vendor=10de\n",                       2, qr/./],
        ['a key before a section',  "JobTimeoutSec=3\n[Pool gpu]\nMatch=vendor=10de\n",           1, qr/./],
        ['a number that is none',   "[Daemon]\nJobTimeoutSec=soon\n[Pool gpu]\nMatch=vendor=10de\n", 2, qr/JobTimeoutSec/],
        ['a number out of range',   "[Pool gpu]\nVirtualFunctions=70000\nMatch=vendor=10de\n",      2, qr/VirtualFunctions/],
        ['CPUs that are none',      "[Daemon]\nHousekeepingCpus=a-b\n[Pool gpu]\nMatch=vendor=10de\n", 2, qr/HousekeepingCpus/],
        ['a pool without a name',   "[Pool]\nMatch=vendor=8086\n[Pool gpu]\nMatch=vendor=10de\n",   1, qr/./],
        ['a pool with a bad name',  "[Pool A/B]\nMatch=vendor=8086\n[Pool gpu]\nMatch=vendor=10de\n", 1, qr/./],
        ['a header that is open',   "[Pool x\n[Pool gpu]\nMatch=vendor=10de\n",                     1, qr/./],
        ['bytes that are no text',  "[Pool gpu]\nMatch=vendor=10de\n\xff\xfe=\x01\n",               3, qr/./],
        ['a line of 10 KiB',        "[Pool gpu]\nMatch=vendor=10de\nMatch=" . 'x' x 10_240 . "\n",  3, qr/./],
);
for my $case (@broken) {
        my ($what, $text, $line, $sentence) = @$case;
        my $offset = log_since();
        spew($file, $text);
        is(daemon('restart'), 0, "$what: the daemon starts") or next;
        my @problems = @{ describe($bus)->{config_problems} };
        is(scalar @problems, 1, "$what: one problem") or diag(explain \@problems);
        like($problems[0] // '', qr/^\Q$file:$line\E: .*$sentence.*\.$/, "$what: Describe tells file, line and sentence");
        like(log_since($offset), qr/^\Q$problems[0]\E$/m, "$what: so does the log");
        is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, "$what: the rest is as it was meant");
}
nothing_written('nothing was written to the node');

# ---- B3: a device in two pools is offered once

configure("[Pool one]\nMatch=vendor=10de\n[Pool two]\nMatch=id=10de:1028\n");
my ($problem) = @{ describe($bus)->{config_problems} };
like($problem // '', names("$file:4", 'two', $gpu, 'one', "$file:1"), 'B3: a device in two pools is told');
like(log_since(0), qr/^\Q$problem\E$/m, 'B3: in the log too');
is_deeply(devices_state($bus, 'one'), { $gpu => 'available' }, 'B3: the first has it');
is_deeply(devices_state($bus, 'two'), {}, 'B3: the second does not');
is((allocate($bus, 'b3', one => 1, two => 1))[0], 'org.passthroughd1.Error.Insufficient', 'B3: it is not counted twice');
ok(plan_ok($bus, one => 1), 'B3: it is still free');

# ---- C7: a PF and its VFs

my $both = "[Pool pf]\nMatch=address=$pf\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n";
my $conflict = names('pf', "$file:1", $pf, 'ib-vf', "$file:3", '0000:83:00.1');
configure($good);
my $reply = do { spew($file, $both); $bus->call('Reload') };
is_error($reply, 'ConfigRefused', ['config-refused', $conflict], 'C7: Reload of a configuration that offers a PF and its own VF is refused');
is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, 'C7: the old configuration stays');
like((ctl('reload'))[2], $conflict, 'C7: passthroughctl reload says it too');

is(daemon('stop', 'TERM'), 0, 'C7: the daemon stops');
my $offset = log_since();
my $status = system "passthroughd --sysroot=$ENV{NODE_ROOT} --config=$file </dev/null >>$ENV{NODE_TMP}/daemon.log 2>&1";
is($status >> 8, 78, 'C7: and does not start with it: exit status 78');
like(log_since($offset), $conflict, 'C7: naming both');
spew($file, "[Pool all]\nMatch=vendor=15b3\n");
$offset = log_since();
$status = system "passthroughd --sysroot=$ENV{NODE_ROOT} --config=$file </dev/null >>$ENV{NODE_TMP}/daemon.log 2>&1";
is($status >> 8, 78, 'C7: nor with one pool that has both');
like(log_since($offset), qr/the PF \Q$pf\E and .* VF 0000:83:00\.1/, 'C7: naming both');

# ---- C6, C11: a VF is claimed, then the configuration offers its PF instead

configure($good);
$bus->forget_signals();
is(allocate($bus, 'c11', 'ib-vf' => 1), 'done', 'C11: a VF is claimed');
my ($claimed, $state) = (tree(), snapshot(times => 1));
fault('reset');
configure("[Pool pf]\nMatch=address=$pf\n");
$bus->forget_signals();
is(device($bus, $pf)->{state} eq 'available' ? 'available' : 'not', 'not', 'B2, C11: its PF is not on offer');
is((allocate($bus, 'pf', pf => 1))[0], 'org.passthroughd1.Error.Insufficient', 'B2, C11: and cannot be claimed');
nothing_written('C11: nothing is written');
same_tree($claimed, 'C11: nothing changes');
same_state($state, 'C11: nor the ledger', times => 1);
is($bus->call('ListAllocations')->{body}[0][0][1], 'ready', 'an allocation whose pool is gone is kept');
is(release($bus, 'c11'), 'done', 'and can be released');
same_tree($tree, 'the tree is that of the start');

# ---- B1: no VFs on a PF that somebody has

my $port = '0000:02:00.1';
configure("[Pool port]\nMatch=address=$port\n");
$bus->forget_signals();
is(allocate($bus, 'b1', port => 1), 'done', 'B1: a PF without VFs is claimed');
my $taken = tree();
fault('reset');
is_error($bus->call('SetVirtualFunctions', 'su', $port, 1), 'Unavailable', ['allocated', $port, 'b1'], 'B1: it gets no VFs');
nothing_written('B1: nothing is written');
same_tree($taken, 'B1: nothing changes');
is(release($bus, 'b1'), 'done', 'B1: the PF comes back');
same_tree($tree, 'B1: the tree is that of the start');

# ---- reload

fault('reset');

spew($file, $good);
ok(!$bus->call('Reload')->{error}, 'Reload of a good configuration');
is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 4, 'takes it');
unlink $file;
is(daemon('restart'), 0, 'without a configuration the daemon starts');
is((ctl('list'))[0], 0, 'and lists');
is_deeply([grep { $_->{pool} } @{ describe($bus)->{devices} }], [], 'nothing on offer');
nothing_written('nothing was written');

done_testing();
