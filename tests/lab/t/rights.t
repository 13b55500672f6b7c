#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What a process with the rights of the daemon can do, and what it cannot: whoever breaks into the daemon gets these and no others.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use Test::More;

use Lab;

my $unit = '/run/systemd/system/rights.service';
my $dir  = '/run/rights';

# Others on the machine: a process of root with all capabilities, and one with none.
sub process {
        my (@words) = @_;
        my $pid = fork // die "fork: $!";
        if (!$pid) { exec @words or die "@words: $!" }
        return $pid;
}

my $root = process(qw(sleep infinity));
my $bare = process(qw(setpriv --bounding-set=-all --inh-caps=-all sleep infinity));
my $user = process(qw(setpriv --reuid=nobody --regid=nogroup --clear-groups sleep infinity));
mkdir $dir or die "$dir: $!";
open my $file, '>', "$dir/secret" or die "$dir/secret: $!";
chmod 0600, "$dir/secret";
chown((getpwnam 'nobody')[2], -1, "$dir/secret");
umask 0077;
my $socket = IO::Socket::UNIX->new(Local => "$dir/of-root", Listen => 1) or die "$dir/of-root: $!";
my $other  = IO::Socket::UNIX->new(Local => "$dir/of-nobody", Listen => 1) or die "$dir/of-nobody: $!";
chown((getpwnam 'nobody')[2], -1, "$dir/of-nobody");

END { my $status = $?; kill 'KILL', grep { $_ } $root, $bare, $user; unlink $unit; system qw(rm -rf), $dir; system qw(systemctl daemon-reload); $? = $status }

# The answers in the sandbox of a service: all that its unit says, but for what runs in it and when.
sub sandbox {
        my ($service, @questions) = @_;
        my ($section, @lines) = ('');
        for my $line (split /\n/, output('systemctl', 'cat', "$service.service")) {
                $section = $1 if $line =~ /^\[(\w+)\]/;
                next if $section ne 'Service' || $line !~ /^[A-Z]\w*=/;
                push @lines, $line if $line !~ /^(?:Type|BusName|Exec\w+|(?:State|Runtime)Directory\w*|WatchdogSec|Restart\w*|Timeout\w+|KillMode|Sockets)=/;
        }
        my $words = join ' ', map { "\"$_\"" } @questions;
        open my $out, '>', $unit or die "$unit: $!";
        print $out join "\n", '[Service]', 'Type=oneshot', "StandardOutput=truncate:$dir/out", @lines, "ExecStart=/usr/lib/lab/rights $words", '';
        close $out or die "$unit: $!";
        output(qw(systemctl daemon-reload));
        output(qw(systemctl start rights.service));
        return split /\n/, output('cat', "$dir/out");
}

my ($main) = service('MainPID');
my $status = join "\n", grep { /^(?:Uid|Cap\w+|NoNewPrivs|Seccomp):/ } split /\n/, output('cat', "/proc/$main/status");
is(join("\n", sandbox('passthroughd', 'status')), $status, 'the process has the uid, the capabilities and the filter of the daemon');

sub has_rights {
        my ($service, @table) = @_;
        my @answers = sandbox($service, map { $_->[0] } @table);
        is(scalar @answers, scalar @table, "$service: every question has an answer") or diag(join "\n", @answers);
        is($answers[$_], $table[$_][1], "$service $table[$_][2] ($table[$_][0])") for 0 .. $#table;
        return;
}

has_rights('passthroughd',
        # Its work
        ['write /sys/bus/pci/rescan',                 'ok',  'changes devices'],
        ['read /proc/1/mountinfo',                    'ok',  'sees the mounts of the host'],
        ['read /sys/kernel/iommu_groups',             'ok',  'sees IOMMU groups'],
        ['read /dev/shm',                             'ok',  'sees shared memory'],
        ['connect /run/dbus/system_bus_socket',       'ok',  'reaches the bus'],
        ['connect /run/passthroughd-holders',         'ok',  'asks who uses a device'],
        # Other processes
        ["write /proc/1/mem",                         'EACCES', 'does not write to the memory of PID 1'],
        ["read /proc/1/mem",                          'EACCES', 'does not read the memory of PID 1'],
        ["read /proc/1/environ",                      'EACCES', 'does not read the environment of PID 1'],
        ["write /proc/$root/mem",                     'EACCES', 'does not write to the memory of a process of root'],
        ["read /proc/$root/fd/0",                     'EACCES', 'does not see the files of a process of root'],
        ["write /proc/$user/mem",                     'EACCES', 'does not write to the memory of a user'],
        ["read /proc/$user/fd/0",                     'EACCES', 'does not see the files of a user'],
        ["ptrace $root",                              'EPERM',  'traces no process of root'],
        ["ptrace $bare",                              'EPERM',  'traces no process of root without capabilities'],
        ["signal $user",                              'EPERM',  'sends no signal to a user'],
        ['namespace /proc/1/ns/mnt',                  'EACCES', 'does not leave its sandbox'],
        # The kernel
        ['write /proc/sys/kernel/core_pattern',       'EROFS',  'does not choose the program for crashes'],
        ['write /proc/sys/kernel/modprobe',           'EROFS',  'does not choose the program for modules'],
        ['write /proc/sysrq-trigger',                 'EROFS',  'does not reboot by SysRq'],
        ['write /sys/power/state',                    'EROFS',  'does not suspend'],
        ['write /sys/kernel/mm/transparent_hugepage/enabled', 'EROFS', 'does not tune the kernel'],
        ['mount',                                     'EPERM',  'mounts nothing'],
        ['module',                                    'EPERM',  'loads no module'],
        ['bpf',                                       'EPERM',  'loads no BPF'],
        # Files and devices
        ['write /etc/passwd',                         'EROFS',  'does not write to /etc'],
        ['write /usr/bin/passthroughctl',             'EROFS',  'does not replace its program'],
        ["read $dir/secret",                          'EACCES', 'does not read the files of others'],
        ["connect $dir/of-nobody",                    'EACCES', 'does not connect to the sockets of others'],
        ['read /root',                                'EACCES', 'does not see the home of root'],
        ['read /dev/vda',                             'EPERM',  'does not read the disk'],
        ['write /dev/kmsg',                           'EACCES', 'does not write to the log of the kernel'],
        # What is left of root: the daemon has its uid, because sysfs is root's
        ["write /proc/$bare/mem",                     'ok',  'LEFT: writes to the memory of a process of root without capabilities'],
        ["connect $dir/of-root",                      'ok',  'LEFT: connects to the sockets of root'],
        ['run systemd-run --quiet --wait true 2>/dev/null','ok',  'LEFT: has systemd run a program'],
);

has_rights('passthroughd-holders',
        ["read /proc/$root/fd/0",                     'ok',     'sees the files of a process of root'],
        ["read /proc/$user/fd/0",                     'ok',     'sees the files of a user'],
        ["write /proc/$root/mem",                     'EACCES', 'does not write to the memory of a process'],
        ["write /proc/$user/mem",                     'EACCES', 'does not write to the memory of a user'],
        ["ptrace $user",                              'EPERM',  'traces no process'],
        ["signal $root",                              'EPERM',  'sends no signal'],
        ['namespace /proc/1/ns/mnt',                  'EPERM',  'does not leave its sandbox'],
        ['write /proc/sys/kernel/core_pattern',       'EACCES', 'does not change the kernel'],
        ['write /sys/bus/pci/rescan',                 'EACCES', 'changes no device'],
        ['write /etc/passwd',                         'EACCES', 'does not write to /etc'],
        ['read /dev/vda',                             'ENOENT', 'sees no disk'],
        ["connect $dir/of-root",                      'EBADF',  'connects to nothing'],
        ['mount',                                     'EPERM',  'mounts nothing'],
        ['run systemd-run --quiet --wait true 2>/dev/null','1',      'has systemd run no program'],
        # With CAP_SYS_PTRACE a process may read what it may see.
        ["read /proc/$root/mem",                      'ok',     'LEFT: reads the memory of a process'],
);

done_testing();
