#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Fabric Manager activates the NVLink partitions of guests, or fails, hangs, ends and restarts at each of its calls.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use Bus;
use Node;

node('hgx-h100', configure => 1);
my $conf = slurp("$FindBin::Bin/../nodes/hgx-h100-fabric.conf") =~ s/\[Pool rdma\].*//sr;
my $dir  = $ENV{NVFM_DIR};
mkdir $dir or die "$dir: $!";

# A manager of this machine without active partitions, with further files.
sub manager {
        my ($machine, %files) = @_;
        unlink glob "$dir/*";
        $files{machine} = $machine if $machine;
        spew("$dir/$_", "$files{$_}\n") for keys %files;
        return;
}

sub active { return (slurp_existing("$dir/active") // '') =~ s/\s+$//r }
sub changes { return map { /^fm(Activate|Deactivate|SetActivated)\w+(?: (\d+))?$/ ? "$1 $2" : () } split /\n/, slurp_existing("$dir/log") // '' }
sub calls { return scalar grep { !/^fmLib/ } split /\n/, slurp_existing("$dir/log") // '' }

# The daemon asks now and then whether the manager has restarted, which would count as a call.
manager('');
$conf =~ s/\[Fabric\]\n/[Fabric]\nManager=\/run\/nvidia-fabricmanager.sock\n/;
configure($conf);
my $bus    = Bus->new->listen;
my $before = tree();

# ---- from allocation to release

manager('hgx-h100');
like((ctl('plan', 'gpu=2', '--steps'))[1], qr/\d+\. bind \S+ to vfio-pci\n +\d+\. activate NVLink partition 5$/m, 'the plan activates the partition at last');
is(allocate($bus, 'vm', gpu => 2), 'done', 'two GPUs');
is(active(), '5', 'their partition is active');
is(allocate($bus, 'other', gpu => 4), 'done', 'four GPUs');
is(active(), '1 5', 'theirs too');
is(release($bus, 'vm'), 'done', 'the two are released');
is(active(), '1', 'their partition is not active any more');
is_deeply([changes()], ['Activate 5', 'Activate 1', 'Deactivate 5'], 'each was asked for once');
is(allocate($bus, 'off', gpu => 3, fabric => 'off'), 'done', 'GPUs without NVLink');
is(active(), '1', 'nothing is activated for them');
release_all($bus);
is(active(), '', 'nothing is left active');
same_tree($before, 'the node is as before');

# ---- failures

my %says = (
        0   => 'as before',
        -2  => 'reports an error',
        -3  => 'FABRIC_MODE=1',
        -5  => 'does not answer in time',
        -6  => 'other versions',
        -7  => 'another active partition',
        -8  => 'not ready',
        -10 => 'NVLinks do not work',
);
for my $result (sort { $b <=> $a } keys %says) {
        manager('hgx-h100', fail => "fmActivateFabricPartition $result");
        my ($failed) = allocate($bus, 'vm', gpu => 2);
        is($failed, 'failed', "activation fails with $result");
        like(join(' ', map { $_->{body}[-1] // '' } grep { $_->{member} eq 'JobRemoved' } @{ $bus->{signals} }) . log_since(0), qr/\Q$says{$result}\E/, '... for a reason');
        is(allocation_state($bus, 'vm'), 'gone', '... and there is no allocation');
        same_tree($before, '... nor anything of it on the node');
}
for my $case (['no manager', ''], ['a manager of another version', 'hgx-h100', version => 1], ['another machine', 'hgx-b200']) {
        my ($what, @manager) = @$case;
        manager(@manager);
        # When the manager has reported its partitions, those that it does not have are refused.
        like((allocate($bus, 'vm', gpu => 2))[0], $what eq 'another machine' ? qr/^failed$|Insufficient$/ : qr/^failed$/, "$what: activation fails");
        is(allocation_state($bus, 'vm'), 'gone', "$what: there is no allocation");
        same_tree($before, "$what: nor anything of it on the node");
}
manager('hgx-h100');
is((ctl('reload'))[0], 0, 'reload');
ok(wait_until(sub { plan_ok($bus, gpu => 2) }), 'a manager with the partitions');
is(allocate($bus, 'vm', gpu => 2), 'done', 'with a manager it works');
spew("$dir/fail", "fmDeactivateFabricPartition -2\n");
my $ready = tree();
is((release($bus, 'vm'))[0], 'failed', 'deactivation fails');
is(allocation_state($bus, 'vm'), 'ready', '... and the allocation stays');
is(active(), '5', '... with its partition');
same_tree($ready, '... and its devices');
spew("$dir/fail", "fmActivateFabricPartition -2\n");
my $offset = log_since();
fault('reset', 'fail driver_override@' . allocation($bus, 'vm')->{devices}[0]{address} . ' EIO');
is((release($bus, 'vm'))[0], 'failed', 'the release fails after the deactivation, and so does its undo');
ok(wait_until(sub { log_since($offset) =~ names('partition 5') }), '... and the message names the partition');
unlike(log_since($offset), qr/0000:00:00\.0/, '... and no other device');
fault('reset');
unlink "$dir/fail";
is(release($bus, 'vm'), 'done', 'later it is released');
is(active(), '', '... and its partition deactivated');

# ---- the manager ends before or after each of its calls

# The manager starts again, and is told which partitions are active.
sub revive {
        my ($what) = @_;
        spew("$dir/$_", '') for qw(active restarted);
        unlink "$dir/dead";
        is((ctl('reload'))[0], 0, "$what: reload");
        # An earlier question may end it once more.
        return ok(wait_until(sub { unlink "$dir/dead"; return !-e "$dir/restarted" }), "$what: it restarts, and is told what is active");
}

sub sweep {
        my ($what, $begin, $finish) = @_;
        for my $n (map { ($_, -$_) } 1 .. 8) {
                manager('hgx-h100');
                $begin->();
                spew("$dir/die", "$n\n");
                my ($result) = $finish->();
                my $died = -e "$dir/dead";
                my $how  = "$what, the manager ends " . ($n > 0 ? 'before' : 'after') . ' call ' . abs $n;
                unlink "$dir/die";
                revive($how) if $died;
                my $state = allocation_state($bus, 'vm');
                ok($state eq 'gone' || $state eq 'ready' || $state eq 'failed', "$how: $result, $state");
                is(active(), $state eq 'gone' ? '' : '5', "$how: the partition is as active as the allocation is there") if $state ne 'failed';
                is((release($bus, 'vm'))[0], 'done', "$how: it can be released") if $state ne 'gone';
                is(active(), '', "$how: then nothing is active") if $state ne 'gone';
                same_tree($before, "$how: and the node is as before");
                last if !$died;
        }
        return;
}

sweep('allocate', sub { }, sub { allocate($bus, 'vm', gpu => 2) });
sweep('release', sub { is(allocate($bus, 'vm', gpu => 2), 'done', 'an allocation') }, sub { release($bus, 'vm') });

# ---- the daemon is killed while the manager works

for my $case (['allocate', sub { }, 'fmActivateFabricPartition 5', sub { my ($s, $e) = request(gpu => 2); $bus->call('Allocate', "s$s", 'vm', $e) }, 'ready', '5'],
        ['release', sub { allocate($bus, 'vm', gpu => 2) }, 'fmDeactivateFabricPartition 5', sub { $bus->call('Release', 'st', 'vm', Node::generation($bus, 'vm')) }, 'gone', '']) {
        my ($what, $begin, $change, $call, $state, $active) = @$case;
        for my $line ('fmConnect', 'fmGetSupportedFabricPartitions', $change) {
                my $how = "$what, killed in $line";
                manager('hgx-h100');
                $begin->();
                unlink "$dir/log";
                spew("$dir/hang", $line =~ s/ .*//r . "\n");
                $call->();
                ok(wait_until(sub { (slurp_existing("$dir/log") // '') =~ /^\Q$line\E$/m }), "$how: the manager is asked");
                is(daemon('stop', 'KILL'), 0, '... and the daemon is killed');
                unlink "$dir/hang";
                start_again($bus, $how);
                ok(wait_until(sub { allocation_state($bus, 'vm') eq $state }), "... the next one ends it: $state");
                is(active(), $active, '... with the partition');
                release_all($bus);
                same_tree($before, '... and then the node is as before');
        }
}

# ---- the manager hangs: nothing else waits, and it is not waited for without end

manager('hgx-h100', hang => 'fmActivateFabricPartition');
my $begin = clock_gettime(CLOCK_MONOTONIC);
my ($signature, $entries) = request(gpu => 2);
ok(!$bus->call('Allocate', "s$signature", 'vm', $entries)->{error}, 'allocate, and the manager hangs');
ok(wait_until(sub { changes() }), 'it is asked');
my $slowest = 0;
my $others  = 0;
while ($others < 20) {
        my $at = clock_gettime(CLOCK_MONOTONIC);
        $bus->ping();
        is_deeply(scalar @{ $bus->call('ListDevices')->{body}[0] } > 0, 1, 'the daemon answers') if $others == 0;
        my $took = clock_gettime(CLOCK_MONOTONIC) - $at;
        $slowest = $took if $took > $slowest;
        $others++;
}
is(allocate($bus, 'other', gpu => 1, fabric => 'off'), 'done', 'another allocation is made meanwhile');
is(release($bus, 'other'), 'done', '... and released');
is(allocation_state($bus, 'vm'), 'preparing', 'the first still waits');
ok(wait_until(sub { allocation_state($bus, 'vm') ne 'preparing' }), 'it does not wait without end');
diag(sprintf 'the manager was given up after %.1f s; the slowest answer meanwhile took %.3f s', clock_gettime(CLOCK_MONOTONIC) - $begin, $slowest);
unlink "$dir/hang";
is((release($bus, 'vm'))[0], 'done', 'then it can be released') if allocation_state($bus, 'vm') ne 'gone';
is(active(), '', 'nothing is active');
same_tree($before, 'the node is as before');

# ---- the manager restarts, and asks which partitions are active

manager('hgx-h100');
is(allocate($bus, 'vm', gpu => 2), 'done', 'two GPUs');
spew("$dir/$_", '') for qw(active restarted);
ok(wait_until(sub { !-e "$dir/restarted" }), 'a manager that has restarted is told');
is(active(), '5', '... what is active');

# It ends before or after one of the calls with which it is told.
for my $n (map { ($_, -$_) } 1 .. 3) {
        my $how = 'told, the manager ends ' . ($n > 0 ? 'before' : 'after') . ' call ' . abs $n;
        spew("$dir/$_", '') for qw(active restarted);
        spew("$dir/die", "$n\n");
        ok(wait_until(sub { ctl('reload'); -e "$dir/dead" || !-e "$dir/restarted" }), "$how: it is asked");
        ok(wait_until(sub { !daemon_children('passthroughd-fm') }), "$how: the child has ended"); # it waits for the call, and for what the call does
        my $died = -e "$dir/dead";
        unlink "$dir/die";
        revive($how) if $died;
        ok(wait_until(sub { active() eq '5' }), "$how: it has the partition");
        ok(wait_until(sub { allocation_state($bus, 'vm') eq 'ready' }), "$how: and the allocation is ready");
        is(abs $n, 3, "$how: there are no more calls") if !$died;
}
revive('told for the last time');
is(release($bus, 'vm'), 'done', 'it is released');
spew("$dir/$_", '') for qw(active restarted log);
ok(wait_until(sub { !-e "$dir/restarted" }), 'it is told, too');
is_deeply([changes()], ['SetActivated 0'], '... that nothing is active');

# ---- the manager restarts while an allocation is prepared, whose partition it would not initialize if it was told

manager('hgx-h100');
fault('reset', 'hang 2');
($signature, $entries) = request(gpu => 2);
ok(!$bus->call('Allocate', "s$signature", 'vm', $entries)->{error}, 'allocate');
ok(wait_until(sub { grep { /^2 .*PENDING/ } write_log() }), '... and a write hangs');
spew("$dir/restarted", '');
is((ctl('reload'))[0], 0, '... the manager restarts');
ok(wait_until(sub { !-e "$dir/restarted" }), '... and is told');
is_deeply([changes()], ['SetActivated 0'], '... that nothing is active');
fault('release');
ok(wait_until(sub { allocation_state($bus, 'vm') eq 'ready' }), '... the allocation is ready');
is_deeply([changes()], ['SetActivated 0', 'Activate 5'], '... after its partition was activated');
is(release($bus, 'vm'), 'done', '... and is released');

# ---- a partition that is active without an allocation

manager('hgx-h100');
my @plan = qw(0000:13:00.0 0000:23:00.0); # of partition 5
spew("$dir/active", '5');
is((ctl('reload'))[0], 0, 'another program activates a partition');
ok(wait_until(sub { device($bus, $plan[0])->{state} eq 'unhealthy' }), '... its GPUs are unhealthy');
is(device($bus, $plan[1])->{state}, 'unhealthy', '... both');
like((ctl('explain', $plan[0]))[1] . (ctl('explain', $plan[0]))[2], names('partition 5'), '... which names the partition');
my @six = (gpu => 6, fabric => 'off', cpus => 2, memory => 2**30);
is((allocate($bus, 'seven', gpu => 7, fabric => 'off'))[0], 'org.passthroughd1.Error.Insufficient', '... no guest gets them, also without NVLink');
is(allocate($bus, 'six', @six), 'done', '... and the others are given out');
is(release($bus, 'six'), 'done', '... and come back');
is(active(), '5', '... the partition is left alone');
spew("$dir/active", '');
is((ctl('reload'))[0], 0, 'it is deactivated');
ok(wait_until(sub { device($bus, $plan[0])->{state} eq 'available' && device($bus, $plan[1])->{state} eq 'available' }), '... and its GPUs are available');
is(allocate($bus, 'vm', gpu => 2), 'done', '... an allocation gets them');
is((ctl('reload'))[0], 0, '... and');
ok(wait_until(sub { calls() > 6 }), '... after another report');
is_deeply([map { device($bus, $_)->{state} } @plan], [('allocated') x 2], '... its own partition is no other');
{
        my @lacking   = qw(0000:33:00.0 0000:43:00.0);
        my $corrected = $conf =~ s/=5$/=X/mr =~ s/=6$/=5/mr =~ s/=X$/=6/mr =~ s/=7$/=X/mr =~ s/=8$/=7/mr =~ s/=X$/=8/mr;
        spew("$ENV{NODE_TMP}/passthroughd.conf", $corrected);
        is((ctl('reload'))[0], 0, '... Module= is corrected');
        ok(wait_until(sub { !grep { device($bus, $_)->{state} ne 'unhealthy' } @lacking }), '... GPUs of its active partition that it does not have are unhealthy');
        is_deeply([map { device($bus, $_)->{state} } @plan], [('allocated') x 2], '... those that it has are not');
        is((allocate($bus, 'five', gpu => 5, fabric => 'off'))[0], 'org.passthroughd1.Error.Insufficient', '... no guest gets them');
        is(release($bus, 'vm'), 'done', '... it is released');
        is(active(), '', '... with its partition');
        is((ctl('reload'))[0], 0, '... and with the next report');
        ok(wait_until(sub { !grep { device($bus, $_)->{state} ne 'available' } @lacking }), '... they are available');
}

# ---- on an A100, no GPU is reset between the activation and the start of the guest

sub resets { return grep { m{/reset\b} } write_log() }

manager('hgx-a100');
configure($conf =~ s/^Partitions=hgx-h100$/Partitions=hgx-a100/mr);
$bus = Bus->new->listen;
fault('reset');
is(allocate($bus, 'vm', gpu => 2, cpus => 2, memory => 2**30), 'done', 'A100: two GPUs');
my $partition = active();
like($partition, qr/^1[1-4]$/, '... have their partition');
is_deeply([resets()], [], '... without a reset');
fault('reset');
spew("$dir/active", '');
is((ctl('reload'))[0], 0, '... the manager forgets the partition');
ok(wait_until(sub { active() eq $partition && allocation_state($bus, 'vm') eq 'ready' }), '... which is activated again');
nothing_written('... without a reset, or another write');
my ($status, $document) = ctl('xml', 'vm');
is($status, 0, '... there is a document');
is_deeply([$document =~ /<hostdev\b[^>]*\bmanaged=["'](\w+)/g], [('no') x 2], '... with which libvirt neither binds nor resets the GPUs');
nothing_written('... and making it writes nothing');
is(release($bus, 'vm'), 'done', '... the release');
is(scalar(() = resets()), 2, '... resets the GPUs');

done_testing();
