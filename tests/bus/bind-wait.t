#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two devices of Bind=start pools whose service is the same: the second job waits for the first, and looks again before it binds.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('domains', configure => 1);

my ($gpu, $audio, $first) = qw(0000:81:00.0 0000:81:00.1 1234:81:00.1);
my $dir     = "$ENV{NODE_TMP}/units";
my $service = 'nvidia-persistenced.service';

mkdir $dir or die "$dir: $!";
spew("$dir/log", '');
spew("$dir/$service.state", "active\n");
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
END { my $status = $?; if ($systemd) { kill 'TERM', $systemd; waitpid $systemd, 0 } $? = $status }

sub has_systemd { return Bus->new->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', 'org.freedesktop.systemd1')->{body}[0] }
ok(wait_until(\&has_systemd), 'there is a systemd');

# The last device of the queue is the first that is bound. The driver is only called while the first write of the job waits.
sub start_and {
        my ($meanwhile) = @_;
        fault('reset', 'hang 1');
        my $starter = fork // die "fork: $!";
        if (!$starter) { POSIX::_exit(daemon('start') ? 1 : 0) }
        ok(wait_until(sub { grep { /^1 .*\Q$first\E.*PENDING/ } write_log() }), 'the first job is at work');
        fault(@$meanwhile, 'release');
        waitpid $starter, 0;
        is($?, 0, 'the daemon starts');
        return;
}

daemon('stop');
spew("$ENV{NODE_TMP}/passthroughd.conf", join '', map { "[Pool $_->[0]]\nMatch=address=$_->[1]\nBind=start\nStopServices=$service\n" } ['gpu', $gpu], ['first', $first]);
my $offset = log_since();
start_and(["set sys/devices/LNXSYSTM:00/LNXSYBUS:00/pci0000:80/0000:80:01.0/$audio/sound/card0/controlC0/dev 116:7",
        'set proc/4242/comm pulseaudio', 'link proc/4242/fd/7 /dev/snd/controlC0']);
is(driver_of($first), 'vfio-pci', 'the device whose job waited for nothing is bound');
is_deeply([map { driver_of($_) } $gpu, $audio], ['nvidia', 'snd_hda_intel'], 'a companion that is in use by now is left alone, with its GPU');
like(log_since($offset), names($audio, 4242, 'pulseaudio'), 'the journal says why');

fault('remove proc/4242');
daemon('stop');
is(daemon('start'), 0, 'the next start');
is_deeply([map { driver_of($_) } $gpu, $audio], ['vfio-pci', 'vfio-pci'], 'binds both');

done_testing();
