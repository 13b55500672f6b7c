#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What happens to a device, and who has it, is in the journal, where passthroughctl history finds it: each once, in order, and nothing else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use JSON::XS;
use Test::More;
use Time::Local qw(timegm);

use Nobody;
use Node;

node('hgx-h100', configure => 1, root => 1);
need_nobody();
plan skip_all => 'no journal for the node here' if $ENV{NODE_JOURNAL} ne 'yes';

my ($pf, $gpu, $absent) = qw(0000:14:00.0 0000:13:00.0 0000:fe:00.0);
my $pools = "[Pool vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=4\n[Pool gpu]\nMatch=vendor=10de class=0302 address=$gpu\n";
my $path  = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{.*/devices/}{sys/devices/}r;
my $bus   = Bus->new->listen;

# "reserved guest", or without an allocation "stuck".
sub words { return map { join ' ', $_->{event}, $_->{allocation} // () } @_ }

# What is new in the history of a device after the function.
sub happened {
        my ($function, $device) = @_;
        my $before = () = history($device //= $gpu);
        $function->();
        my @now = history($device);
        return @now[$before .. $#now];
}

sub happened_is {
        my ($function, $expected, $name, $device) = @_;
        my @new = happened($function, $device);
        is_deeply([words(@new)], $expected, $name) or diag(explain(\@new));
        return @new;
}

sub seconds_of {
        my ($year, $month, @rest) = $_[0] =~ /\d+/g;
        return timegm(reverse(@rest[0 .. 3]), $month - 1, $year);
}

sub set_vfs {
        my ($count) = @_;
        my $reply = $bus->call('SetVirtualFunctions', 'su', $pf, $count);
        return $reply->{error} // $bus->result($reply->{body}[0]);
}

sub ready { return wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }) }

# ---- nothing happened yet

configure("[Daemon]\nJobTimeoutSec=4\n$pools");
$bus->forget_signals();
for my $device ($gpu, $absent) {
        is_deeply([ctl('history', $device, '--json')], [0, "[]\n", ''], "$device: nothing happened to it");
        is_deeply([(ctl('history', $device))[0, 1]], [0, ''], "$device: so there is no table");
        like((ctl('history', $device))[2], names($device), "$device: but a sentence");
}
is((ctl('history', 'vm7'))[0], 2, 'what is no address has no history');
is_deeply([words(history($pf))], ['vfs-created'], 'VFs were created at start');

# ---- an allocation comes and goes

my $begin = int time;
my @new   = happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated') }, ['reserved guest', 'ready guest'], 'an allocation');
my $generation = Node::generation($bus, 'guest');
for my $e (@new) {
        is_deeply([sort keys %$e], [qw(allocation device event generation message owner time)], "$e->{event}: has all keys");
        is_deeply([@{$e}{qw(device owner generation)}], [$gpu, 0, $generation], "$e->{event}: is about device, owner and generation");
        like($e->{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/, "$e->{event}: has a time");
        like($e->{message}, qr/^(?=.*\Q$gpu\E)(?=.*\bguest\b)\S.*\.$/, "$e->{event}: and a sentence");
}
cmp_ok(seconds_of($new[0]{time}), '>=', $begin, 'the time is not before');
cmp_ok(seconds_of($new[1]{time}), '<=', int time, 'nor after it');
happened_is(sub { is(release($bus, 'guest'), 'done', 'released') }, ['released guest'], 'its release');
happened_is(sub { is(allocate($bus, 'guest', gpu => 1, vf => 4), 'done', 'all at once'); release($bus, 'guest') },
        ['reserved guest', 'ready guest', 'released guest'], 'another one');
is_deeply([words(history('0000:14:00.2'))], ['reserved guest', 'ready guest', 'released guest'], 'each device of an allocation has its own');
is((history($gpu))[-1]{generation}, $generation + 1, 'of its own generation');

# ---- jobs that fail

fault('reset', 'fail 2 EIO');
@new = happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'failed', 'a write fails') }, ['reserved guest', 'failed guest', 'released guest'], 'undone');
like($new[1]{message}, names($gpu, 'guest'), 'with what failed');
fault('reset');
is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated');
fault('reset', 'fail 2 EIO'); # after the reset
happened_is(sub { is(release($bus, 'guest'), 'failed', 'a write of the release fails') }, ['failed guest'], 'it is not released');
fault('reset');
is(release($bus, 'guest'), 'done', 'released');
fault('reset', 'fail 1 EIO');
@new = happened_is(sub { is(set_vfs(0), 'failed', 'VFs are not removed') }, ['failed'], 'which is about the PF', $pf);
is_deeply([@{ $new[0] }{qw(allocation owner generation)}], [undef, undef, undef], 'that nobody has');
fault('reset');

# ---- stuck, and not any more

fault('reset', 'unkillable 2');
happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'timeout', 'a write hangs') }, ['reserved guest', 'stuck guest', 'failed guest'], 'stuck');
happened_is(sub { fault('release'); ok(wait_until(sub { device($bus, $gpu)->{state} ne 'stuck' }), 'it comes back') }, ['unstuck guest'], 'not any more');
fault('reset');
is(release($bus, 'guest'), 'done', 'released');

# ---- a crash in the middle of preparing, of releasing, and after both

my ($signature, $request) = request(gpu => 1);
happened_is(sub { killed_in($bus, 2, 'prepare', 'Allocate', "s$signature", 'guest', $request); ok(ready(), 'it is brought in order') },
        ['reserved guest', 'resumed guest', 'ready guest'], 'a crash while it is prepared');
happened_is(sub { restart('KILL'); $bus->forget_signals(); ok(ready(), 'it is still there') }, [], 'a crash when all is in order');
happened_is(sub { killed_in($bus, 2, 'release', 'Release', 'st', 'guest', Node::generation($bus, 'guest')); ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), 'it is released') },
        ['resumed guest', 'released guest'], 'a crash while it is released');

# ---- gone and back, and another card

is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated');
my @gone = words(happened(sub { fault("remove $path"); $bus->call('Rescan') }));
# The kernel unbinds the device before it removes it, and the daemon may hear of the first alone.
is_deeply([grep { $_ ne 'promise-broken guest' } @gone], ['missing guest'], 'an allocated device is unplugged');
happened_is(sub { fault('write sys/bus/pci/rescan 1'); $bus->call('Rescan'); wait_until(sub { driver_of($gpu) eq 'vfio-pci' }); ok(ready(), 'it is prepared again') },
        ['back guest', 'resumed guest', 'ready guest'], 'and plugged in');
happened_is(sub { daemon('stop'); fault("remove $path"); start_again($bus, 'missing') }, ['missing guest'], 'unplugged while the daemon was away');
happened_is(sub { restart(); $bus->forget_signals() }, [], 'which is said once');
is(release($bus, 'guest'), 'done', 'released');
is((words((history($gpu))[-1]))[0], 'released guest', 'a device that is not there has a history');
ok($bus->call('Explain', 's', $gpu)->{error}, 'although there is nothing else to know of it');
fault('write sys/bus/pci/rescan 1');
$bus->call('Rescan');
is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated');
@new = happened_is(sub { daemon('stop'); other_hand_binds($gpu, ''); fault("set $path/device 0x1234"); start_again($bus, 'another card') },
        ['hardware-changed guest', 'failed guest'], 'another card is in its place');
is(release($bus, 'guest'), 'done', 'released');

# ---- VFs

happened_is(sub { is(set_vfs(2), 'done', 'two VFs') }, ['vfs-changed'], 'another number of VFs', $pf);
happened_is(sub { is(set_vfs(2), 'done', 'two VFs') }, [], 'the same number', $pf);
happened_is(sub { is(set_vfs(0), 'done', 'no VFs') }, ['vfs-removed'], 'none', $pf);
happened_is(sub { is(set_vfs(4), 'done', 'four VFs') }, ['vfs-created'], 'some again', $pf);
my $numvfs = "write sys/bus/pci/devices/$pf/sriov_numvfs";
happened_is(sub { fault("$numvfs 0"); $bus->call('Rescan') }, ['contested'], 'somebody else changed it', $pf);
happened_is(sub { fault("$numvfs 4"); $bus->call('Rescan') }, ['uncontested'], 'and back', $pf);
happened_is(sub { fault("$numvfs 0"); $bus->call('Rescan'); is(set_vfs(4), 'done', 'four VFs') }, ['contested', 'vfs-created', 'uncontested'], 'or we do', $pf);

# ---- how it is asked for

my @all = history($gpu);
is_deeply([history($gpu, '--lines', 3)], [@all[-3 .. -1]], 'the newest three');
is_deeply([history($gpu, '--lines', 1000)], \@all, 'more than there are');
my ($status, $out, $err) = ctl('history', $gpu =~ s/^0000://r, '--lines', 2);
is($status, 0, 'passthroughctl history') or diag($err);
my @shown = split /\n/, $out;
like($shown[0], qr/^TIME +EVENT +OWNER +GENERATION +ALLOCATION +MESSAGE$/, 'a table');
is(scalar @shown, 3, 'of so many lines');
like($shown[-1], qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +released +root +$all[-1]{generation} +guest +\Q$all[-1]{message}\E$/, 'with the newest last');
{
        delete local $ENV{COLUMNS};
        my @lines = map { s/\r//gr } split /\n/, scalar qx(script -qec "stty cols 80; passthroughctl history $gpu --lines 2" /dev/null </dev/null);
        is_deeply([grep { length > 80 } @lines], [], 'no line is wider than the terminal');
        my $column = index $lines[0], 'MESSAGE';
        my $messages = join ' ', map { length > $column ? substr($_, $column) =~ s/ +$//r : () } @lines[1 .. $#lines];
        is($messages, join(' ', map { $_->{message} } @all[-2, -1]), 'and no word of the messages is cut') or diag(join "\n", @lines);
}
{
        local $ENV{TZ} = 'UTC-3';
        my ($hours) = $all[-1]{time} =~ /T(\d\d)/;
        my ($local) = (split /\n/, (ctl('history', $gpu))[1])[-1] =~ / (\d\d):/;
        is($local, sprintf('%02d', ($hours + 3) % 24), 'in local time') if defined $hours;
}
is((ctl('history', $gpu, '--lines', 1001))[0], 2, 'more lines than there can be are refused');
is((ctl('history', $gpu, '--lines', 0))[0], 2, 'and none');
is((ctl('history', $gpu, '--node', 'x.tree'))[0], 2, 'a recorded node has no history');

# ---- who may ask, and who is believed

my ($seen, $exit) = as_nobody(sub { return (scalar qx(passthroughctl history $gpu --json), $? >> 8) });
is($exit, 1, 'who may not read the journal is refused');
is(JSON::XS->new->decode($seen)->{error}, 'org.freedesktop.DBus.Error.AccessDenied', 'with the name of the error');
like($seen, names('systemd-journal', 'adm'), 'and the groups that may');

sub forge {
        open my $logger, '|-', qw(logger --journald) or return 0;
        print $logger "MESSAGE=Forged.\nPASSTHROUGH_EVENT=ready\nPASSTHROUGH_DEVICE=$gpu\n";
        return close $logger ? 1 : 0;
}
is_deeply([as_nobody(\&forge)], [1], 'another user sends an event');
is_deeply([history($gpu)], \@all, 'which is not shown');

# ---- what the daemon logs, and where, does not matter

sub log_control {
        my ($property, $value) = @_;
        my $reply = $bus->ask(Bus::NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                'org.freedesktop.LogControl1', $property, ['s', $value]);
        return is($reply->{error}, undef, "$property $value");
}

sub cycle { is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated'); is(release($bus, 'guest'), 'done', 'released'); return }

my $cycle = ['reserved guest', 'ready guest', 'released guest'];
log_control(LogTarget => 'journal');
my $offset = log_since();
happened_is(\&cycle, $cycle, 'the target journal');
is(log_since($offset), '', 'and nowhere else');
log_control(LogLevel => 'emerg');
happened_is(\&cycle, $cycle, 'at the lowest level');
log_control(LogLevel => 'info');
log_control(LogTarget => 'null');
happened_is(\&cycle, $cycle, 'the target null');
log_control(LogTarget => 'auto');

# ---- nothing depends on it

my $socket = '/run/systemd/journal/socket';
rename $socket, "$socket.gone" or die "$socket: $!";
$offset = log_since();
happened_is(\&cycle, [], 'without a journal all else goes on');
like(log_since($offset), names($gpu, 'guest'), 'and standard error has it');
rename "$socket.gone", $socket or die "$socket: $!";
happened_is(\&cycle, $cycle, 'with it again');

# A journal that does not read: nothing waits for it, and what is lost is counted.
rename $socket, "$socket.gone" or die "$socket: $!";
my $hung = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => $socket) or die "$socket: $!";
my $writer = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Peer => $socket) or die "$socket: $!";
$writer->blocking(0);
1 while defined $writer->send("MESSAGE=full\n");
log_control(LogTarget => 'journal');
is($bus->ping->{error}, undef, 'a journal that hangs keeps nobody waiting');
cycle();
my @entries;
my $read = sub {
        while (defined $hung->recv(my $entry, 65_536)) { push @entries, $entry if $entry !~ /full/ }
        return scalar @entries;
};
$hung->blocking(0);
$read->();
log_control(LogTarget => 'auto');
ok(wait_until($read), 'a journal that reads again');
like($entries[0], qr/^MESSAGE=.*\b[1-9]\d*\b.*\nPRIORITY=4\n/, '... has the number of lost messages');
rename "$socket.gone", $socket or die "$socket: $!";
happened_is(\&cycle, $cycle, 'with it again');

# ---- as journalctl shows it

my %id = slurp("$FindBin::Bin/../../include/util/messages.h") =~ /^#define MESSAGE_(\w+)\s+"([0-9a-f]{32})"/mg;

# The last COUNT entries of the journal about a device.
sub journal_of {
        my ($device, $count) = @_;
        return map { JSON::XS->new->decode($_) } split /\n/, qx(journalctl --quiet --sync && journalctl --quiet -o json -n $count PASSTHROUGH_DEVICE=$device);
}

sub fields {
        my ($m) = @_;
        return join ' ', map { my $v = $m->{$_}; s/^PASSTHROUGH_//r . '=' . (ref $v ? join ',', sort @$v : $v) } grep { /^PASSTHROUGH_|^MESSAGE_ID$|^PRIORITY$/ } sort keys %$m;
}

is(allocate($bus, 'guest', gpu => 1, vf => 1), 'done', 'allocated');
my $g       = Node::generation($bus, 'guest');
my $devices = join ',', sort map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
is(release($bus, 'guest'), 'done', 'released');
is_deeply([map { fields($_) } journal_of($gpu, 3)],
        [map { "MESSAGE_ID=$id{\"DEVICE_\U$_\"} ALLOCATION=guest DEVICE=$devices EVENT=$_ GENERATION=$g OWNER=0 PRIORITY=6" } qw(reserved ready released)],
        'one entry for all devices, with an id and who has them');
is(set_vfs(0), 'done', 'no VFs');
is_deeply([map { fields($_) } journal_of($pf, 1)], ["MESSAGE_ID=$id{VFS_REMOVED} DEVICE=$pf EVENT=vfs-removed PRIORITY=5"], 'and what nobody has');

done_testing();
