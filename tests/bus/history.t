#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What happens to a device, and who has it, is in its history and in the journal: each once, in order, and nothing else.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use JSON::PP;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::Local qw(timegm);

use Nobody;
use Node;

node('hgx-h100', configure => 1);

# A journal of our own is where the daemon looks for it, in a name space that it shares.
if ($> == 0 && !$ENV{HISTORY_JOURNAL}) {
        local $ENV{HISTORY_JOURNAL} = "$ENV{NODE_TMP}/journal";
        exec "$FindBin::Bin/../private-mounts", $^X, $0 or die "private-mounts: $!";
}

sub make_journal {
        system(qw(mount -t tmpfs run /run)) == 0 or die 'no /run';
        mkdir "/run/$_" or die "/run/$_: $!" for qw(udev systemd systemd/journal);
        spew('/run/udev/control', '');
        return IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => '/run/systemd/journal/socket') // die "journal: $!";
}

my $journal = $ENV{HISTORY_JOURNAL} && make_journal();

my ($pf, $gpu, $absent) = qw(0000:14:00.0 0000:13:00.0 0000:fe:00.0);
my $file  = "$ENV{STATE_DIRECTORY}/history";
my $pools = "[Pool vf]\nMatch=type=vf pf=$pf\nVirtualFunctions=4\n[Pool gpu]\nMatch=vendor=10de class=0302 address=$gpu\n";
my $path  = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{.*/devices/}{sys/devices/}r;
my $bus   = Bus->new->listen;

sub entries {
        my ($device, $max) = @_;
        my $reply = $bus->call('GetHistory', 'su', $device, $max // 1000);
        return $reply->{error} ? () : @{ JSON::PP->new->decode($reply->{body}[0]) };
}

# "reserved guest", or without an allocation "stuck".
sub words { return map { join ' ', $_->{event}, $_->{allocation} // () } @_ }

# What is new in the history of a device after the function.
sub happened {
        my ($function, $device) = @_;
        my $before = entries($device //= $gpu);
        $function->();
        my @now = entries($device);
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

configure("[Daemon]\nJobTimeoutSec=2\n$pools");
$bus->forget_signals();
is_deeply([entries($gpu)], [], 'a device to which nothing happened has a history, an empty one');
is((ctl('history', $gpu))[2], "There is no history of $gpu.\n", 'passthroughctl says so');
is((ctl('history', $gpu, '--json'))[1], "[]\n", 'and --json too');
is_error($bus->call('GetHistory', 'su', $absent, 9), 'NoSuchDevice', ['no-such-device', $absent], 'one that was never seen has none');
is_error($bus->call('GetHistory', 'su', '13:00.0', 9), 'InvalidRequest', ['invalid-request', '13:00.0'], 'nor has what is no address');
is_deeply([words(entries($pf))], ['vfs-created'], 'VFs were created at start');

# ---- an allocation comes and goes

my $begin = int time;
my @new   = happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated') }, ['reserved guest', 'ready guest'], 'an allocation');
my $generation = Node::generation($bus, 'guest');
for my $e (@new) {
        is_deeply([sort keys %$e], [qw(allocation device event generation message owner time)], "$e->{event}: has all keys");
        is_deeply([@{$e}{qw(device owner generation)}], [$gpu, $>, $generation], "$e->{event}: is about device, owner and generation");
        like($e->{time}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/, "$e->{event}: has a time");
        like($e->{message}, qr/^\Q$gpu\E is \S.*\.$/, "$e->{event}: and a sentence");
}
is($new[0]{message}, "$gpu is reserved for 'guest' of uid $>.", 'which says who');
cmp_ok(seconds_of($new[0]{time}), '>=', $begin, 'the time is not before');
cmp_ok(seconds_of($new[1]{time}), '<=', int time, 'nor after it');
happened_is(sub { is(release($bus, 'guest'), 'done', 'released') }, ['released guest'], 'its release');
happened_is(sub { is(allocate($bus, 'guest', gpu => 1, vf => 4), 'done', 'all at once'); release($bus, 'guest') },
        ['reserved guest', 'ready guest', 'released guest'], 'another one');
is_deeply([words(entries('0000:14:00.2'))], ['reserved guest', 'ready guest', 'released guest'], 'each device of an allocation has its own');
is((entries($gpu))[-1]{generation}, $generation + 1, 'of its own generation');

# ---- jobs that fail

fault('reset', 'fail 2 EIO');
@new = happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'failed', 'a write fails') }, ['reserved guest', 'failed guest', 'released guest'], 'undone');
like($new[1]{message}, qr/^\Q$gpu\E, allocated to 'guest': \S.*\.$/, 'with what failed');
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

# ---- a line that a crash left torn is passed over, and spoils none after it

my $lines = entries($gpu);
{
        open my $f, '>>', $file or die "$file: $!";
        print $f qq({"device":"$gpu","time":"2026-);
        close $f;
}
is(scalar entries($gpu), $lines, 'a torn line is not shown');
happened_is(sub { allocate($bus, 'guest', gpu => 1) }, ['reserved guest', 'ready guest'], 'and what comes next is whole');

# ---- gone and back, and another card

happened_is(sub { fault("remove $path"); $bus->call('Rescan'); }, ['missing guest'], 'an allocated device is unplugged');
happened_is(sub { fault('write sys/bus/pci/rescan 1'); $bus->call('Rescan'); wait_until(sub { driver_of($gpu) eq 'vfio-pci' }); ok(ready(), 'it is prepared again') },
        ['back guest', 'resumed guest', 'ready guest'], 'and plugged in');
happened_is(sub { daemon('stop'); fault("remove $path"); start_again($bus, 'missing') }, ['missing guest'], 'unplugged while the daemon was away');
happened_is(sub { restart(); $bus->forget_signals() }, [], 'which is said once');
is(release($bus, 'guest'), 'done', 'released');
is((words((entries($gpu))[-1]))[0], 'released guest', 'a device that is not there has a history');
ok($bus->call('Explain', 's', $gpu)->{error}, 'although there is nothing else to know of it');
fault('write sys/bus/pci/rescan 1');
$bus->call('Rescan');
is(allocate($bus, 'guest', gpu => 1), 'done', 'allocated');
@new = happened_is(sub { daemon('stop'); other_hand_binds($gpu, ''); fault("set $path/device 0x1234"); start_again($bus, 'another card') },
        ['hardware-changed guest', 'failed guest'], 'another card is in its place');
is($new[0]{message}, "$gpu is not the card that was allocated.", 'which it says');
is(release($bus, 'guest'), 'done', 'released');

# ---- VFs

happened_is(sub { is(set_vfs(2), 'done', 'two VFs') }, ['vfs-changed'], 'another number of VFs', $pf);
happened_is(sub { is(set_vfs(2), 'done', 'two VFs') }, [], 'the same number', $pf);
happened_is(sub { is(set_vfs(0), 'done', 'no VFs') }, ['vfs-removed'], 'none', $pf);
happened_is(sub { is(set_vfs(4), 'done', 'four VFs') }, ['vfs-created'], 'some again', $pf);
my $numvfs = "write sys/bus/pci/devices/$pf/sriov_numvfs";
happened_is(sub { fault("$numvfs 0", "$numvfs 2"); $bus->call('Rescan') }, ['contested'], 'somebody else changed it', $pf);
happened_is(sub { fault("$numvfs 0", "$numvfs 4"); $bus->call('Rescan') }, ['uncontested'], 'and back', $pf);
happened_is(sub { fault("$numvfs 0", "$numvfs 2"); $bus->call('Rescan'); is(set_vfs(4), 'done', 'four VFs') }, ['contested', 'vfs-changed', 'uncontested'], 'or we do', $pf);

# ---- how it is asked for

my @all = entries($gpu);
is_deeply([entries($gpu, 3)], [@all[-3 .. -1]], 'the newest three');
is_deeply([entries($gpu, 4_294_967_295)], \@all, 'more than there can be');
is_deeply([entries($gpu, 0)], [], 'none');
my ($status, $out, $err) = ctl('history', $gpu =~ s/^0000://r, '--lines', 2);
is($status, 0, 'passthroughctl history') or diag($err);
my @shown = split /\n/, $out;
like($shown[0], qr/^TIME +EVENT +OWNER +GENERATION +ALLOCATION +MESSAGE$/, 'a table');
is(scalar @shown, 3, 'of so many lines');
like($shown[-1], qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +released +$> +$all[-1]{generation} +guest +\Q$gpu\E /, 'with the newest last');
{
        local $ENV{TZ} = 'UTC-3';
        my ($hours) = $all[-1]{time} =~ /T(\d\d)/;
        my ($local) = (split /\n/, (ctl('history', $gpu))[1])[-1] =~ / (\d\d):/;
        is($local, sprintf('%02d', ($hours + 3) % 24), 'in local time') if defined $hours;
}
is_deeply([ctl('history', $gpu, '--json')], [0, $bus->call('GetHistory', 'su', $gpu, 1000)->{body}[0] . "\n", ''], '--json prints what GetHistory returns');
is((ctl('history', $gpu, '--lines', 1001))[0], 2, 'more lines than there can be are refused');
is((ctl('history', $gpu, '--lines', 0))[0], 2, 'and none');
is((ctl('history', $gpu, '--node', 'x.tree'))[0], 2, 'a recorded node has no history');
is((ctl('history', $absent))[0], 1, 'and a device that was never there');
SKIP: {
        skip 'needs root', 1 if $> != 0;
        my ($seen) = as_nobody(sub { return Bus->new->call('GetHistory', 'su', $gpu, 1000)->{body}[0] });
        is_deeply(JSON::PP->new->decode($seen), \@all, 'everybody may ask');
}

# ---- it is bounded, and what it was before is still read

{
        my $line = sprintf qq({"device":"%s","time":"2020-01-01T00:00:00.000000Z","event":"ready","allocation":null,"owner":null,"generation":null,"message":"%s"}\n), $absent, 'x' x 900;
        spew($file, slurp($file) . $line x (int(4 * 2**20 - length slurp($file)) / length $line));
        happened_is(sub { allocate($bus, 'guest', gpu => 1); release($bus, 'guest') }, ['reserved guest', 'ready guest', 'released guest'], 'a full history');
        cmp_ok(-s $file,     '<', 8192,     'begins anew');
        cmp_ok(-s "$file.1", '>', 2**22 - 8192, 'beside what was');
        is(scalar entries($absent), 1000, 'of which a thousand are told');
        is_deeply([map { words($_) } (entries($gpu))[0, 1]], ['reserved guest', 'ready guest'], 'and the first are still there');
}

# ---- nothing depends on it

rename $file, "$file.kept" or die $!;
mkdir $file or die $!;
my $offset = log_since();
is(allocate($bus, 'guest', gpu => 1), 'done', 'unwritable: an allocation succeeds');
is(release($bus, 'guest'), 'done', 'unwritable: and its release');
is(() = log_since($offset) =~ /^.*\bhistory\b.*$/mg, 1, 'unwritable: one warning');
is_error($bus->call('GetHistory', 'su', $gpu, 9), 'LimitExceeded', ['limit'], 'unwritable: who asks is told');
rmdir $file or die $!;
happened_is(sub { is(allocate($bus, 'guest', gpu => 1), 'done', 'it can be written again') }, ['reserved guest', 'ready guest'], 'and is');
is(release($bus, 'guest'), 'done', 'released');

spew(ledger_file('broken'), 'no JSON');
restart();
my $before = slurp($file);
fault("$numvfs 0");
$bus->call('Rescan');
is(slurp($file), $before, 'with a ledger that cannot be read nothing is written');
is((words((entries($gpu))[-1]))[0], 'released guest', 'but read');
unlink ledger_file('broken');
restart();
$bus->forget_signals();

# ---- the journal

my %id = slurp("$FindBin::Bin/../../include/util/messages.h") =~ /^#define MESSAGE_(\w+)\s+"([0-9a-f]{32})"/mg;

# What the daemon sends to the journal from now on: a hash of fields for each.
sub journal_of {
        my ($function) = @_;
        my @messages;
        $bus->ask(Bus::NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.DBus.Properties', 'Set', 'ssv',
                'org.freedesktop.LogControl1', 'LogTarget', ['s', 'journal']);
        $function->();
        $bus->ping();
        $journal->blocking(0);
        while (defined $journal->recv(my $data, 65_536)) { push @messages, { map { split /=/, $_, 2 } grep { /=/ } split /\n/, $data } }
        return grep { $_->{PASSTHROUGH_DEVICE} } @messages;
}

sub fields { my ($m) = @_; return join ' ', map { s/^PASSTHROUGH_//r . "=$m->{$_}" } grep { /^PASSTHROUGH_|^MESSAGE_ID$/ } sort keys %$m }

SKIP: {
        skip 'needs root', 4 if !$journal;
        my $g = 0;
        my @sent = journal_of(sub { allocate($bus, 'guest', gpu => 1); $g = Node::generation($bus, 'guest'); release($bus, 'guest') });
        is_deeply([map { fields($_) } @sent], [map { "MESSAGE_ID=$id{$_} ALLOCATION=guest DEVICE=$gpu GENERATION=$g OWNER=0" } qw(DEVICE_RESERVED DEVICE_READY DEVICE_RELEASED)],
                'each in the journal, with an id, the device, and who has it');
        is_deeply([map { $_->{MESSAGE} } @sent], [map { $_->{message} } (entries($gpu))[-3 .. -1]], 'with the same sentences');
        is_deeply([map { $_->{PRIORITY} } @sent], [6, 6, 6], 'as information');
        @sent = journal_of(sub { set_vfs(0) });
        is_deeply([map { fields($_) } @sent], ["MESSAGE_ID=$id{VFS_REMOVED} DEVICE=$pf"], 'and what nobody has');
}

done_testing();
