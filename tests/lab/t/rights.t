#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What a process with the rights of the daemon can do, and what it cannot: whoever breaks into the daemon gets these and no others.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::INET;
use IO::Socket::UNIX;
use Test::More;

use Lab;
use Wire;

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

my ($registers) = glob '/sys/bus/pci/devices/*/resource0' or die "no device has registers\n";
my @taken = ('/sys/bus/pci/rescan', $registers);

END { my $status = $?; chown 0, -1, @taken; kill 'KILL', grep { $_ } $root, $bare, $user; unlink $unit; system qw(rm -rf), $dir; system qw(systemctl daemon-reload); $? = $status }

# The answers in the sandbox of a service: all that its unit says, but for what runs in it and when.
sub sandbox {
        my ($service, @questions) = @_;
        my ($section, @lines) = ('');
        for my $line (split /\n/, output('systemctl', 'cat', "$service.service")) {
                $section = $1 if $line =~ /^\[(\w+)\]/;
                next if $section ne 'Service' || $line !~ /^[A-Z]\w*=/;
                push @lines, $line if $line !~ /^(?:Type|BusName|Exec\w+|(?:State|Runtime)Directory\w*|WatchdogSec|Restart\w*|Timeout\w+|KillMode|Sockets|Standard\w+|RuntimeMaxSec)=/;
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
# The lines of the status of a process about privileges, but for ambient capabilities: the daemon passes none on.
sub privileges { return join "\n", grep { /^(?:Uid|Cap(?!Amb)\w+|NoNewPrivs|Seccomp):/ } @_ }
my $status = privileges(split /\n/, output('cat', "/proc/$main/status"));
is(privileges(sandbox('passthroughd', 'status')), $status, 'the process has the uid, the capabilities and the filter of the daemon');
like($status, qr/^Uid:\s+[1-9]/m, '... which is not root');
my @children = split ' ', slurp("/proc/$main/task/$main/children");
ok(scalar @children, 'the daemon has children');
is_deeply([grep { slurp("/proc/$_/status") !~ /^CapPrm:\s+0+$/m && readlink("/proc/$_/exe") !~ m{/passthroughd$} } @children], [], '... and programs that it started have no capabilities');

# Root calls the daemon on its private socket, and is not taken for the daemon's user.
output(qw(passthroughctl allocate rights --cpus 1 --memory 16M));
is((grep { $_->{name} eq 'rights' } @{ ctl_json('allocations')->{allocations} })[0]{owner}, 0, 'what root allocates belongs to root');
output(qw(passthroughctl release rights));

sub has_rights {
        my ($service, @table) = @_;
        my @answers = sandbox($service, map { $_->[0] } @table);
        is(scalar @answers, scalar @table, "$service: every question has an answer") or diag(join "\n", @answers);
        is($answers[$_], $table[$_][1], "$service $table[$_][2] ($table[$_][0])") for 0 .. $#table;
        return;
}

has_rights('passthroughd',
        # Its work
        ['take /sys/bus/pci/rescan',                  'ok',  'changes devices'],
        ['read /proc/1/mountinfo',                    'ok',  'sees the mounts of the host'],
        ['read /sys/kernel/iommu_groups',             'ok',  'sees IOMMU groups'],
        ['read /dev/shm',                             'ok',  'sees shared memory'],
        ['connect /run/dbus/system_bus_socket',       'ok',  'reaches the bus'],
        ['connect /run/passthroughd-holders',         'ok',  'asks who uses a device'],
        ['connect /run/passthroughd-endpoints',       'ok',  'asks which endpoints accept connections'],
        # Other processes
        ['write /proc/1/mem',                         'EACCES', 'does not write to the memory of PID 1'],
        ['read /proc/1/mem',                          'EACCES', 'does not read the memory of PID 1'],
        ['read /proc/1/environ',                      'EACCES', 'does not read the environment of PID 1'],
        ["write /proc/$root/mem",                     'EACCES', 'does not write to the memory of a process of root'],
        ["read /proc/$root/fd/0",                     'EACCES', 'does not see the files of a process of root'],
        ["write /proc/$bare/mem",                     'EACCES', 'does not write to the memory of a process of root without capabilities'],
        ["take /proc/$bare/mem",                      'EACCES', '... not as its owner either'],
        ["read /proc/$bare/fd/0",                     'EACCES', 'does not see the files of a process of root without capabilities'],
        ["write /proc/$user/mem",                     'EACCES', 'does not write to the memory of a user'],
        ["read /proc/$user/fd/0",                     'EACCES', 'does not see the files of a user'],
        ["ptrace $root",                              'EPERM',  'traces no process of root'],
        ["ptrace $bare",                              'EPERM',  'traces no process of root without capabilities'],
        ["signal $bare",                              'EPERM',  'sends no signal to a process of root'],
        ["signal $user",                              'EPERM',  'sends no signal to a user'],
        ['namespace /proc/1/ns/mnt',                  'EACCES', 'does not leave its sandbox'],
        # Services of root
        ["connect $dir/of-root",                      'EACCES', 'does not connect to the sockets of root, as that of docker'],
        ["take $dir/of-root",                         'EROFS',  '... and does not become their owner'],
        ["connect $dir/of-nobody",                    'EACCES', 'does not connect to the sockets of others'],
        ['connect /run/systemd/private',              'EACCES', 'does not connect to systemd'],
        ['take /run/systemd/private',                 'EROFS',  '... and does not become the owner of its socket'],
        ['take /run/libvirt/libvirt-sock',            'EROFS',  'does not become the owner of the socket of libvirt'],
        ['run systemd-run --quiet --wait true 2>/dev/null', '1', 'has systemd run no program'],
        ['run systemctl stop lab-heartbeat.service 2>/dev/null', '1', 'has systemd stop no unit'],
        # The kernel
        ['write /proc/sys/kernel/core_pattern',       'EACCES', 'does not choose the program for crashes'],
        ['take /proc/sys/kernel/core_pattern',        'EROFS',  '... not as its owner either'],
        ['take /proc/sys/kernel/modprobe',            'EROFS',  'does not choose the program for modules'],
        ['take /proc/sysrq-trigger',                  'EROFS',  'does not reboot by SysRq'],
        ['take /sys/power/state',                     'EROFS',  'does not suspend'],
        ['take /sys/kernel/mm/transparent_hugepage/enabled', 'EROFS', 'does not tune the kernel'],
        ['mount',                                     'EPERM',  'mounts nothing'],
        ['module',                                    'EPERM',  'loads no module'],
        ['bpf',                                       'EPERM',  'loads no BPF'],
        # Files and devices
        ['read /etc/shadow',                          'EACCES', 'does not read the passwords'],
        ['take /etc/shadow',                          'EROFS',  '... and does not become their owner'],
        ['write /etc/passwd',                         'EACCES', 'does not write to /etc'],
        ['take /etc/passwd',                          'EROFS',  '... and does not become the owner of a file there'],
        ['create /etc/modprobe.d/evil.conf',          'EROFS', 'has modprobe run no program'],
        ['take /etc/modprobe.d',                      'EROFS',  '... and does not become the owner of its directory'],
        ['take /usr/bin/passthroughctl',              'EROFS',  'does not replace its program'],
        ['create /run/evil',                          'EROFS', 'does not write to /run'],
        ["read $dir/secret",                          'EACCES', 'does not read the files of others'],
        ["take $dir/secret",                          'EROFS',  '... and does not become their owner'],
        ['read /root',                                'EACCES', 'does not see the home of root'],
        ['read /dev/vda',                             'EACCES', 'does not read the disk'],
        ['take /dev/vda',                             'EROFS',  '... and does not become its owner'],
        ['write /dev/kmsg',                           'EACCES', 'does not write to the log of the kernel'],
        # What is left: the registers of a device are an attribute beside those that the daemon writes
        ["take $registers",                           'ok',  'LEFT: maps the registers of a device, which may have it write to memory'],
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

# Root, with the right to read files of others.
has_rights('passthroughd-root@',
        ['write /sys/bus/platform/drivers_probe',     'EROFS', 'binds no device'],
        ['write /sys/power/state',                    'EROFS', 'does not suspend'],
        ['create /run/evil',                          'EROFS', 'does not write to /run'],
        ['write /etc/passwd',                         'EROFS', 'does not write to /etc'],
        ['read /dev/vda',                             'EPERM', 'does not read the disk'],
        ['mount',                                     'EPERM', 'mounts nothing'],
);

# The only one with a network. The lines of its unit, and what it does as systemd starts it.
has_rights('passthroughd-endpoints@',
        ["read /proc/$root/fd/0",                     'ENOENT', 'does not see the processes of others'],
        ["ptrace $user",                              'EPERM',  'traces no process'],
        ["signal $user",                              'EPERM',  'sends no signal'],
        ['namespace /proc/1/ns/mnt',                  'ENOENT', 'does not leave its sandbox'],
        ["connect $dir/of-root",                      'EACCES', 'does not connect to the sockets of root'],
        ['connect /run/passthroughd-holders',         'EACCES', 'does not ask who uses a device'],
        ['write /proc/sys/kernel/core_pattern',       'ENOENT', 'does not change the kernel'],
        ['write /sys/bus/pci/rescan',                 'EACCES', 'changes no device'],
        ['write /etc/passwd',                         'EACCES', 'does not write to /etc'],
        ['read /etc/shadow',                          'EACCES', 'does not read the passwords'],
        ['read /dev/vda',                             'ENOENT', 'sees no disk'],
        ['mount',                                     'EPERM',  'mounts nothing'],
        ['run systemd-run --quiet --wait true 2>/dev/null', '1', 'has systemd run no program'],
);
my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "listen: $!";
my ($result, $answers) = wire_ask('/run/passthroughd-endpoints', wire_message(0, join '', map { pack 'a128', $_ } '127.0.0.1:' . $server->sockport, '127.0.0.1:1', 'localhost:1', 'nosuch.invalid:1'));
is_deeply([(unpack 'C*', $answers)[0 .. 2]], [1, 2, 2], 'passthroughd-endpoints connects, and looks up a host');
is(length $answers, 4, '... and has an answer for each endpoint');
unlike((command(qw(journalctl --quiet --boot -u), 'passthroughd-endpoints@*'))[1], qr/Started|Deactivated/, 'its starts are not in the journal'); # journalctl fails when there is no entry

done_testing();
