#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughd-root does what the configuration says and nothing else, whatever it is asked for.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Errno qw(EPERM EINVAL);
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOCK_SEQPACKET);
use Test::More;

use Node;

use constant { STOP => 0, START => 1, CLEAN => 2, SET_OPTIONS => 3, REMOVE_OPTIONS => 4 };
use constant { MARK => "# Written by passthroughd\n", DEADLINE => 20 };

node('hgx-h100', configure => 1);

my $dir     = "$ENV{NODE_TMP}/systemd";
my $options = "$ENV{MODPROBE_DIRECTORY}/passthroughd.conf";
mkdir $dir or die "$dir: $!";
spew("$dir/log",                  '');
spew("$dir/command.state",        "0\n");
spew("$dir/$_.service.state", "active\n") for qw(configured other);
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
END { my $status = $?; kill 'TERM', $systemd if $systemd; $? = $status }
configure("[Pool gpu]\nMatch=vendor=10de\nStopServices=configured.service\nCleanerCommand=/usr/bin/clean --all\n[Pool nic]\nMatch=vendor=15b3\n");
ok(wait_until(sub { system('busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" status org.freedesktop.systemd1 >/dev/null 2>&1') == 0 }), 'there is a systemd');

# What the service answers to a message: its result, and the exit status of a command; () when it only hangs up.
sub answer {
        my ($message) = @_;
        my $socket = IO::Socket::UNIX->new(Type => SOCK_SEQPACKET, Peer => $ENV{ROOT_SOCKET}) // die "$ENV{ROOT_SOCKET}: $!";
        $socket->send($message);
        $socket->recv(my $answer, 64);
        return unpack 'll', $answer // '';
}

sub ask {
        my ($action, $name, $payload) = @_;
        my $end = POSIX::floor((Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) + DEADLINE) * 1e6);
        return (answer(pack('L Z256 x4 Q', $action, $name, $end) . ($payload // '')))[0];
}

sub address { my ($bus) = @_; return pack 'L CCC x', 0, $bus, 0, 0 }
sub calls { return split /\n/, slurp("$dir/log") }

# ---- units

is(ask(STOP,  'configured.service'), 0, 'a unit of StopServices= is stopped');
is(ask(START, 'configured.service'), 0, '... and started');
is_deeply([calls()], ['stop configured.service', 'start configured.service'], '... by systemd');
spew("$dir/log", '');
for my $name ('other.service', 'configured', 'configured.service ', 'Configured.service', 'gpu', '', 'x' x 300) {
        is(ask(STOP,  $name), -EPERM, "unit '$name' is not stopped");
        is(ask(START, $name), -EPERM, "unit '$name' is not started");
}
is_deeply([calls()], [], 'systemd was not asked');

# ---- commands

is(ask(CLEAN, 'gpu', address(0x13) . address(0x33)), 0, 'the command of a pool runs');
like((calls())[0], names('/usr/bin/clean', '--all', '0000:13:00.0', '0000:33:00.0'), '... as it is configured, with the devices');
spew("$dir/log", '');
is(ask(CLEAN, $_, address(0x13)), -EPERM, "pool '$_' has no command") for 'nic', 'none', '', '/bin/sh';
is(ask(CLEAN, 'gpu', $_), -EINVAL, 'what is no device is refused') for '', 'x', address(0x13) . 'x', '--help' x 4 . 'x';
is_deeply([calls()], [], 'systemd was not asked');

# ---- options

is(ask(SET_OPTIONS, '', MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n"), 1, 'options are written');
is(slurp($options), MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n", '... as they are');
my @bad = (
        "install vfio-pci /bin/sh\n", "options vfio-pci ids=1\n", "options mlx4_core num_vfs=8\\\ninstall x y\n", " install x y\n", "\tinstall x y\n",
        "options mlx4_core num_vfs=8\rinstall x y\n", "options mlx4_core num_vfs=8", "include /tmp\n", "options mlx4_core \0\n",
);
is(ask(SET_OPTIONS, '', MARK . $_), -EINVAL, 'no other line is written: ' . s{[^ -~]}{.}gr) for @bad;
is(slurp($options), MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n", 'the file is unchanged');
is(ask(REMOVE_OPTIONS, ''), 1, 'options are removed');
ok(!-e $options, '... with their file');
spew($options, "options mlx4_core num_vfs=1\n");
isnt(ask(SET_OPTIONS, '', MARK), 1, "the administrator's file is not replaced");
is(ask(REMOVE_OPTIONS, ''), 0, '... or removed');
is(slurp($options), "options mlx4_core num_vfs=1\n", '... it is unchanged');
unlink $options;

# ---- messages that are none

is(ask(99, 'configured.service'), -EINVAL, 'an unknown request is refused');
is_deeply([answer($_)], [], 'a message of ' . length($_) . ' bytes gets no answer') for 'x', 'x' x 200, 'x' x 100_000;
is(ask(STOP, 'configured.service'), 0, 'then it still answers');

done_testing();
