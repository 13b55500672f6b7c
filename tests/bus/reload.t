#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The configuration read again: drop-ins, what is refused, what an allocation keeps, what is done at once. And what a restart makes of the
# same changes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Path qw(make_path remove_tree);
use IO::Socket::UNIX;
use POSIX qw(mkfifo);
use Test::More;

use Node;
use SystemBus;

node('paper-testbed', configure => 1);

my $file    = "$ENV{NODE_TMP}/passthroughd.conf";
my $dropins = "$file.d";
my ($gpu, $pf, $port) = qw(0000:82:00.0 0000:83:00.0 0000:02:00.1);
my @vfs  = map { "0000:83:00.$_" } 1 .. 4;
my $gpus = "[Pool gpu]\nMatch=vendor=10de class=0302\n";
my $good = "$gpus\[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n";
my $bus  = Bus->new->listen;
my $tree = tree();

# What there is, without what differs from one call to the next.
sub standing {
        my $d = describe($bus);
        return { map { $_ => $d->{$_} } qw(devices pools allocations config_problems) };
}

# The three ways to say it; each returns whether the daemon took it, once it did or did not.
my %ways = (
        'Reload'  => sub { return !$bus->call('Reload')->{error} },
        'SIGHUP'  => sub {
                my $offset = log_since();
                kill 'HUP', pid();
                wait_until(sub { log_since($offset) =~ /^(?:Loaded the configuration|.* The old configuration stays\.)/m }) or die 'no answer to SIGHUP';
                return log_since($offset) =~ /^Loaded the configuration/m;
        },
        'passthroughctl reload' => sub { return (ctl_json('reload')->{result} // '') eq 'done' }, # status 1 may also mean that devices are withdrawn
);

# A daemon that is to refuse its start: its exit status, and what it logged.
sub start_refused {
        daemon('stop', 'TERM');
        my $offset = log_since();
        my $status = system "passthroughd --sysroot=$ENV{NODE_ROOT} --config=$file </dev/null >>$ENV{NODE_TMP}/daemon.log 2>&1";
        return ($status >> 8, log_since($offset));
}

sub reload { my ($what) = @_; my $r = $bus->call('Reload'); is($r->{error}, undef, $what) or diag($r->{body}[0]); return }

# ---- drop-ins of --config=FILE are FILE.d/*.conf

make_path($dropins);
spew("$dropins/50-more.conf", "[Pool gpu]\nMatch=address=$port\n[Pool ib-vf]\nMatch=\nMatch=address=$vfs[0]\n[Daemon]\nColour=red\n");
spew("$dropins/60-empty.conf", '');
configure($good);
is_deeply(devices_state($bus, 'gpu'), { map { $_ => 'available' } $port, $gpu }, 'a drop-in adds to a pool');
is_deeply(devices_state($bus, 'ib-vf'), { $vfs[0] => 'available' }, 'and empties a list');
is_deeply([map { /^([^ ]+) / } @{ describe($bus)->{config_problems} }], ["$dropins/50-more.conf:7:"], 'its bad line is told with its own name');
for my $way (sort keys %ways) {
        unlink "$dropins/50-more.conf";
        ok($ways{$way}->(), "$way: the drop-in is gone");
        my $without = standing();
        is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, "$way: nothing of it is left");
        is(scalar(keys %{ devices_state($bus, 'ib-vf') }), 4, "$way: nor of what it emptied");
        is_deeply($without->{config_problems}, [], "$way: nor of its problems");
        spew("$dropins/50-more.conf", "[Pool gpu]\nMatch=\n");
        ok($ways{$way}->(), "$way: it is back");
        is_deeply(devices_state($bus, 'gpu'), {}, "$way: and counts");
        unlink "$dropins/50-more.conf";
        symlink '/dev/null', "$dropins/50-more.conf" or die $!;
        ok($ways{$way}->(), "$way: it is masked");
        is_deeply(standing(), $without, "$way: as if it were not there");
}

# ---- what is refused, with everything as before

my $unreadable = "$dropins/70-fifo.conf";
my %refused = (
        'a PF and its own VF' => [
                "[Pool pf]\nMatch=address=$pf\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n", sub { }, sub { },
                names('pf', "$file:1", $pf, 'ib-vf', "$file:3", $vfs[0])
        ],
        'a PF and its own VF, in a drop-in' => [
                $good, sub { spew("$dropins/80-pf.conf", "\n[Pool pf]\nMatch=address=$pf\n") }, sub { unlink "$dropins/80-pf.conf" },
                names('pf', "$dropins/80-pf.conf:2", $pf, 'ib-vf', "$file:3", $vfs[0])
        ],
        'a drop-in that is a FIFO' => [
                $gpus, sub { mkfifo($unreadable, 0600) or die $! }, sub { unlink $unreadable },
                names($unreadable)
        ],
        'a drop-in that is a directory' => [
                $gpus, sub { make_path($unreadable) }, sub { remove_tree($unreadable) },
                names($unreadable)
        ],
        'another hypervisor' => [
                "$good\[Daemon]\nHypervisor=xen\n", sub { }, sub { },
                names('Hypervisor', 'restart')
        ],
        'a drop-in that is a link to nothing' => [
                $gpus, sub { symlink 'nothing', $unreadable or die $! }, sub { unlink $unreadable },
                names($unreadable)
        ],
);
configure("$good\[Frob]\n");
$bus->forget_signals();
is(allocate($bus, 'kept', gpu => 1), 'done', 'an allocation is made');
my ($before, $bound, $state) = (standing(), tree(), snapshot(times => 1));
for my $what (sort keys %refused) {
        my ($text, $make, $unmake, $sentence) = @{ $refused{$what} };
        spew($file, $text);
        $make->();
        for my $way (sort keys %ways) {
                my $offset = log_since();
                ok(!$ways{$way}->(), "$what: $way is refused");
                like(log_since($offset), $sentence, "$what: $way: the log says why");
                is_deeply(standing(), $before, "$what: $way: the old configuration stays in full");
        }
        is_error($bus->call('Reload'), 'ConfigRefused', ['config-refused', $sentence], "$what: Reload says why");
        like((ctl('reload'))[2], $sentence, "$what: so does passthroughctl");
        same_tree($bound, "$what: nothing changes");
        same_state($state, "$what: nor the ledger", times => 1);
        $unmake->();
}
spew($file, $good);
reload('without it, a reload is taken');
is(release($bus, 'kept'), 'done', 'and the allocation can be released');
same_tree($tree, 'the tree is that of the start');

# ---- a file that cannot be read at start: nothing is on offer, for it may have excluded anything

mkfifo($unreadable, 0600) or die $!;
is(daemon('restart'), 0, 'with a FIFO among the drop-ins the daemon starts');
is((allocate($bus, 'no', gpu => 1))[0], 'org.passthroughd1.Error.Insufficient', 'but gives nothing away');
my $explained = device($bus, $gpu);
is($explained->{state}, 'host', 'the device stays with the host');
is($explained->{reason}, "$unreadable cannot be read: it is not a regular file. No device is offered until it can be read.", 'and says why');
like($explained->{remedy}, names('reload'), 'and what to do');
unlink $unreadable;
reload('once it can be read');
is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, 'it is on offer');

# ---- C4: the pool of a device that is allocated goes; by a restart and by a reload

my $restart = sub { configure($_[0]); $bus->forget_signals(); return };
my $reload  = sub { spew($file, $_[0]); reload('it is taken'); return };
my $others = "[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n";
my @dropped = (
        ['C4: restart', $restart, $others, undef, 'in no pool any more'],
        ['C4: reload',  $reload,  $others, undef, 'in no pool any more'],
        ['C4: reload with AfterRelease=keep', $reload, "[Daemon]\nAfterRelease=keep\n$others", undef, 'in no pool any more'],
        ['C4: excluded', $reload, "$gpus\[Exclude]\nMatch=address=$gpu\n", 'gpu', 'excluded now'],
);
for my $case (@dropped) {
        my ($what, $change, $text, $pool, $words) = @$case;
        $restart->($good);
        is(allocate($bus, 'vm1', gpu => 1), 'done', "$what: a device is allocated");
        my $taken  = tree();
        my $offset = log_since();
        $change->($text);
        is(scalar(() = log_since($offset) =~ /^.*\Q$gpu\E.*\bvm1\b.*$/mg), 1,
                "$what: with one warning");
        same_tree($taken, "$what: the device stays as it is");
        is(allocation_state($bus, 'vm1'), 'ready', "$what: the allocation is kept");
        my $d = device($bus, $gpu);
        is($d->{state}, 'allocated', "$what: the device is allocated");
        is($d->{pool},  $pool,       "$what: its pool is that of now");
        like($d->{reason}, names($gpu, 'vm1'), "$what: it says who has it");
        like((ctl('explain', $gpu))[1], qr/\Q$d->{reason}\E/, "$what: passthroughctl explain too");
        like((ctl('list'))[1], qr/^\Q$gpu\E .* allocated .* vm1 /m, "$what: it is listed");
        is(release($bus, 'vm1'), 'done', "$what: it is released");
        same_tree($tree, "$what: and has its driver back");
        is(device($bus, $gpu)->{state}, 'host', "$what: it is the host's");
        is(((grep { $_->{name} eq 'gpu' } @{ describe($bus)->{pools} })[0] // {})->{total} // 0, defined $pool ? 1 : 0, "$what: the pool has no more of it");
        isnt((allocate($bus, 'vm1', gpu => 1))[0], 'done', "$what: and cannot be had again");
}

# ---- C5: two VFs, one of them allocated, both dropped

my $two = "[Pool ib-vf]\nMatch=address=$vfs[0]\nMatch=address=$vfs[1]\n";
for my $case (['C5: restart', $restart], ['C5: reload', $reload]) {
        my ($what, $change) = @$case;
        $restart->($two);
        is(allocate($bus, 'vm1', 'ib-vf' => 1), 'done', "$what: one of two VFs is allocated");
        my ($taken) = map { $_->{address} } @{ allocation($bus, 'vm1')->{devices} };
        my ($idle)  = grep { $_ ne $taken } @vfs[0, 1];
        $change->($gpus);
        is(device($bus, $taken)->{state}, 'allocated', "$what: it stays with its allocation");
        is(device($bus, $idle)->{state},  'host',      "$what: the idle one goes");
        is(release($bus, 'vm1'), 'done', "$what: it is released");
        is(device($bus, $taken)->{state}, 'host', "$what: and goes as well");
        same_tree($tree, "$what: the tree is that of the start");
}

# ---- C6: a PF is allocated, the configuration has its VFs made and offered instead

my $instead = "[Pool vf]\nMatch=type=vf pf=$port\nVirtualFunctions=2\n";
my $twice   = names($port, 'vm1', 'VirtualFunctions=', 'vf', "$file:1");
$restart->("[Pool port]\nMatch=address=$port\n");
is(allocate($bus, 'vm1', port => 1), 'done', 'C6: a PF is allocated');
($before, $bound) = (standing(), tree());
spew($file, $instead);
is_error($bus->call('Reload'), 'ConfigRefused', ['config-refused', $twice], 'C6: a reload to its VFs is refused');
is_deeply(standing(), $before, 'C6: the old configuration stays');
my ($status, $log) = start_refused();
is($status, 78, 'C6: so is a start: exit status 78');
like($log, $twice, 'C6: which says why');
same_tree($bound, 'C6: nothing changes');
$restart->($gpus);
is(allocation_state($bus, 'vm1'), 'ready', 'C6: the allocation is still there');
is(release($bus, 'vm1'), 'done', 'C6: and is released');
same_tree($tree, 'C6: the tree is that of the start');

# ---- what a reload does at once

my ($device) = grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} };
is($device->{driver} // 'none', driver_of($gpu), 'the GPU is with its driver');
isnt(driver_of($gpu), 'vfio-pci', 'of the host');
$bus->forget_signals();
$reload->("${gpus}Bind=start\n");
is($bus->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' }) ? driver_of($gpu) : 'no job', 'vfio-pci', 'Bind=start: the device is bound at once');
fault('reset');
$reload->("${gpus}Bind=start\nMatch=address=$port\n");
ok($bus->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' }), 'a device that joins such a pool too');
is(driver_of($port), 'vfio-pci', 'is bound');
unlike(join("\n", write_log()), qr/\Q$gpu\E/, 'and the others are left alone');
other_hand_binds($_, '') for $gpu, $port;
same_tree($tree, 'the tree is that of the start');
$bus->call('Rescan');
$bus->forget_signals();
reload('the same configuration again');
is_deeply([grep { $_ eq 'JobNew' } $bus->signal_names], [], 'does nothing to devices that it applied to before');
$reload->("[Pool port]\nMatch=type=vf pf=$port\nVirtualFunctions=2\n");
ok($bus->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' }), 'VirtualFunctions=: a job is done at once');
is(scalar(keys %{ devices_state($bus, 'port') }), 2, 'that creates VFs');
$reload->($gpus); # an event that comes late makes no VFs again
fault("write sys/bus/pci/devices/$port/sriov_numvfs 0");
fault("write sys/bus/pci/devices/$port/sriov_drivers_autoprobe 1");
same_tree($tree, 'the tree is that of the start');

$restart->($gpus);
$bus->forget_signals();
$reload->($others);
for my $case ([$gpu, '', 'left its pool'], [$vfs[3], 'ib-vf', 'joined one']) {
        my ($address, $pool, $what) = @$case;
        my $path = $bus->call('GetDevice', 's', $address)->{body}[0];
        my @pools = map { $_->{body}[1]{Pool} } grep { ($_->{member} // '') eq 'PropertiesChanged' && $_->{path} eq $path } @{ $bus->{signals} };
        is_deeply(\@pools, [$pool], "the bus is told once of a device that $what");
}

sub planned_cpus { return JSON::XS->new->decode($bus->call('Plan', request(cpus => 2, memory => 2**30))->{body}[0])->{cpus} }
my $cpus = planned_cpus();
$reload->("[Daemon]\nHousekeepingCpus=$cpus\n$good");
isnt(planned_cpus(), $cpus, 'HousekeepingCpus= counts for the next plan');
$reload->("[Daemon]\nReserveMemory=1T\n$good");
ok(!plan_ok($bus, memory => 2**30), 'so does ReserveMemory=');
$reload->("[Daemon]\nVfioDriver=no_such_driver\n$good");
is(device($bus, $gpu)->{verdict}, 'no-vfio-driver', 'VfioDriver= counts for the next allocation');
same_tree($tree, 'the tree is that of the start');

# ---- while a job runs: it goes on with what it began with

$restart->("[Daemon]\nJobTimeoutSec=120\n$good");
fault('reset', 'hang 2');
my ($signature, $entries) = request(gpu => 1);
my $begun = $bus->call('Allocate', "s$signature", 'vm1', $entries)->{body}[1];
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a job hangs');
$reload->("[Daemon]\nJobTimeoutSec=4\n$others");
is(device($bus, $gpu)->{state}, 'allocated', 'a device that is dropped meanwhile is allocated');
fault('hang ' . (writes() + 2));
is(allocate($bus, 'vm2', 'ib-vf' => 1), 'timeout', 'JobTimeoutSec= counts for the next job');
is(allocation_state($bus, 'vm1'), 'preparing', 'not for the one that runs');
fault('release', 'reset');
is($bus->result($begun), 'done', 'which ends as it would have');
like(device($bus, $gpu)->{reason}, names($gpu, 'vm1'), 'its device is dropped');
$reload->($others); # without the time that is too short for what is to be undone
for my $name ('vm1', 'vm2') {
        my $result;
        ok(wait_until(sub { ($result) = release($bus, $name); $result eq 'done' }), "$name is released") or diag($result);
}
same_tree($tree, 'the tree is that of the start');

# ---- for people and for the service manager

spew($file, "$good\[Frob]\nX=1\n");
my ($code, $out, $err) = ctl('reload');
is($code, 0, 'passthroughctl reload of a configuration with a bad line succeeds');
is($out, '', 'says nothing');
is($err, "$file:5: Section [Frob] is ignored; known: [Daemon], [Fabric], [Pool NAME], [Service NAME], [Exclude].\n", 'but what was ignored, on stderr');
($code, $out, $err) = ctl('reload', '--json');
is_deeply([$code, JSON::XS->new->decode($out)], [0, { result => 'done', none_offered => undef, withdrawn => [] }], 'with --json stdout is the document');
like($err, qr/^\Q$file\E:5: /, 'and stderr the same');
spew($file, $good);
is_deeply([ctl('reload')], [0, '', ''], 'of a good one it says nothing at all');

# What broken lines withdraw comes before them, stays until they are mended, and is not what the administrator takes out of a pool.
my %broken = (
        'a pool loses its line' => ["[Pool gpu]\nMatch=vendro=10de\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n", { $gpu => 'gpu' }],
        'a header is misspelt'  => ["$good\[Excluded]\nMatch=class=0302\n", { $gpu => 'gpu', map { $_ => 'ib-vf' } @vfs }],
);
for my $what (sort keys %broken) {
        my ($text, $withdrawn) = @{ $broken{$what} };
        spew($file, $text);
        for my $again ('', ', again') {
                ($code, undef, $err) = ctl('reload');
                is($code, 1, "$what$again: reload ends with 1");
                my @lines = split /\n/, $err;
                like($lines[0], names($gpu, 'gpu', scalar keys %$withdrawn), "$what$again: it names the devices first");
                like($lines[-1], qr/^\Q$file\E:\d+: /, "$what$again: and then the lines");
        }
        is_deeply({ map { $_->{address} => $_->{pool} } @{ describe($bus)->{withdrawn} } }, $withdrawn, "$what: on the bus");
        is_deeply({ map { $_->{address} => $_->{pool} } @{ ctl_json('reload')->{withdrawn} } }, $withdrawn, "$what: and with --json");
        like((ctl('list'))[2],  names($gpu, 'gpu'), "$what: list says so");
        like((ctl())[1],        names($gpu, 'gpu'), "$what: and the overview");
        like((ctl('check'))[1], names($gpu, 'gpu'), "$what: and check");
        spew($file, $good);
        is_deeply([ctl('reload')], [0, '', ''], "$what: mended");
        unlike((ctl('list'))[2], names($gpu), "$what: list says nothing more");
}
spew($file, "$broken{'a header is misspelt'}[0]");
restart();
like((ctl('list'))[2], qr/\Q$file\E:6/, 'after a restart list says why no device is on offer');
is((ctl('reload'))[0], 1, 'and reload ends with 1');
spew($file, $gpus);
is_deeply([ctl('reload')], [0, '', ''], 'a pool that is taken out is not withdrawn');
spew($file, "[Daemon]\nColour=red\n$gpus");
is((ctl('reload'))[0], 0, 'nor is anything by a broken line after that');
rename $_, "$_.gone" or die "$_: $!" for $file, $dropins;
my ($gone, undef, $said) = ctl('reload');
is($gone, 1, 'a configuration that is gone: reload ends with 1');
like($said, names($gpu, 'gpu', 'no file'), 'and names what it withdraws');
like((ctl())[1],        names($gpu, 'gpu', 'no file'), 'so does the overview');
like((ctl('check'))[1], names($gpu, 'gpu', 'no file'), 'and check');
rename "$dropins.gone", $dropins or die "$dropins: $!";
spew($file, $good);
is((ctl('reload'))[0], 0, 'the first configuration again');

unlink "$ENV{NODE_TMP}/notify";
my $notify = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$ENV{NODE_TMP}/notify") or die $!;
sub notified {
        my @told;
        while (1) {
                my $bits = '';
                vec($bits, fileno $notify, 1) = 1;
                return @told if select($bits, undef, undef, 0) <= 0;
                $notify->recv(my $message, 4096);
                push @told, $message if $message =~ /RELOADING|READY/;
        }
}
reload('a reload');
my @told = notified();
like($told[0] // '', qr/^RELOADING=1\nMONOTONIC_USEC=\d+$/, 'the service manager is told that it begins');
is($told[1], 'READY=1', 'and that it ended');
spew($file, $refused{'a PF and its own VF'}[0]);
$bus->call('Reload');
is_deeply([map { s/=.*//sr } notified()], [qw(RELOADING READY)], 'so it is when it is refused');
$notify->close;

# ---- a reload at the end of the start, while the daemon waits for its name on the bus

SKIP: {
        skip 'no /run of its own', 6 if $ENV{NODE_EVENTS} ne 'yes';
        my $private = "$ENV{RUNTIME_DIRECTORY}/private";
        daemon('stop');
        unlink $private;
        spew($file, "${gpus}Bind=start\n");
        fault('reset', 'hang 1');
        my $starter = fork // die "fork: $!";
        if (!$starter) { POSIX::_exit(daemon('start') ? 1 : 0) }
        ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'a daemon binds a device at its start');
        signal_bus('STOP');
        fault('release', 'reset');
        $notify = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$ENV{NODE_TMP}/notify.reload") or die $!;
        ok(wait_until(sub { -S $private }), 'it serves its private socket, while the bus does not answer');
        # Its start waits at the socket that is renamed here.
        rename "$ENV{NODE_TMP}/notify", "$ENV{NODE_TMP}/notify.start" or die $!;
        rename "$ENV{NODE_TMP}/notify.reload", "$ENV{NODE_TMP}/notify" or die $!;
        ok($ways{SIGHUP}->(), 'it is told to reload, and does');
        is_deeply([notified()], [], 'the service manager is not told that it is ready');
        rename "$ENV{NODE_TMP}/notify.start", "$ENV{NODE_TMP}/notify" or die $!;
        signal_bus('CONT');
        waitpid $starter, 0;
        is($?, 0, 'but when it has its name');
        ok(!Bus->new->ping->{error}, 'and it answers on the bus');
}

done_testing();
