#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# How a device is taken from the host and given back, with a real systemd and a real reset: who holds it, services that are stopped for it, the command
# that cleans it, and what becomes of one that does not come back well.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Lab;

use constant {
        CONFIG  => '/etc/passthroughd/passthroughd.conf.d/lab.conf',
        UNIT    => '/run/systemd/system/lab-holder.service',
        CLEANER => '/usr/local/sbin/lab-cleaner',
        STATUS  => '/tmp/lab-cleaner.status',
        LOG     => '/tmp/lab-cleaner.log',
        TRACING => '/sys/kernel/tracing',
        SOON    => 10, # seconds, on an emulated machine
};

my ($nvme) = role('1b36:0010');
my $dir     = "/sys/bus/pci/devices/$nvme";
my $lab     = slurp(CONFIG);
my $mounted = 0;

END {
        my $status = $?;
        system 'umount', "$dir/reset" if $mounted;
        system 'systemctl', 'stop', 'lab-holder.service';
        spew(CONFIG, $lab) && ctl('reload') if defined $lab;
        unlink UNIT, CLEANER, STATUS, LOG;
        $? = $status;
}

sub write_file {
        my ($path, $text) = @_;
        unlink $path;
        return spew($path, $text);
}

sub succeeds {
        my (@words) = @_;
        my ($status, $out, $err) = ctl(@words);
        return is($status, 0, "@words") || diag("$out$err");
}

# The pools of the lab without its VFs on the controller, which itself is in one, with more lines.
sub configure {
        my (@more) = @_;
        write_file(CONFIG, $lab =~ s/\[Pool nvme-vf\].*?(?=\n\[)//sr =~ s/Match=class=01 type=device\n//r . join "\n", '', "[Pool nvme]\nMatch=address=$nvme", @more, '');
        return succeeds('reload');
}

sub driver { return link_name("$dir/driver") }

sub device { return devices()->{$nvme} }

sub holder { my ($property) = @_; chomp(my $value = output('systemctl', 'show', '--property', $property, '--value', 'lab-holder.service')); return $value }

sub cleaned { return split /\n/, slurp(LOG) // '' }

# ---- A5: a process in another mount namespace has the controller open

ok(settled(), 'the node is settled');
my $before = drivers();
succeeds('sriov', $nvme, 0);
configure();
write_file(UNIT, "[Service]\nPrivateTmp=yes\nExecStart=/bin/sh -c '[ ! -e /dev/nvme0 ] || exec 3</dev/nvme0; exec sleep infinity'\n");
output(qw(systemctl daemon-reload));
output(qw(systemctl start lab-holder.service));
my $pid = holder('MainPID');
isnt(readlink("/proc/$pid/ns/mnt"), readlink('/proc/self/ns/mnt'), 'A5: a service in a mount namespace of its own');
ok(wait_until(sub { grep { (readlink // '') eq '/dev/nvme0' } glob "/proc/$pid/fd/*" }), 'A5: ... has the controller open');
my $there = drivers();
my $began = time;
my ($status, $out, $err) = ctl('allocate', 'mine', 'nvme=1');
cmp_ok(time - $began, '<', SOON, 'A5: an allocation is answered soon');
is($status, 1, 'A5: ... it is refused');
like($err, names($nvme, "process $pid", qr/\((?:sh|sleep), lab-holder\.service\)/, 'systemctl stop lab-holder.service'), 'A5: ... with the process and its service');
is_deeply(drivers(), $there, 'A5: ... and nothing has another driver or override');

# ---- services that are stopped for it

configure('StopServices=lab-holder.service');
succeeds(qw(allocate mine nvme=1));
is(driver(), 'vfio-pci', 'its service stopped, it is taken');
is(holder('ActiveState'), 'active', '... and that is started again');
isnt(holder('MainPID'), $pid, '... as another process');

# ---- a reset, as the kernel sees it

output('mount', '-t', 'tracefs', 'tracefs', TRACING) if !-e(TRACING . '/kprobe_events');
sub trace { my ($file, $text) = @_; return spew(TRACING . "/$file", "$text\n") }

trace('kprobe_events',          'p:lab/flr pcie_flr');
trace('events/lab/flr/enable', 1);
trace('trace',                  '');
succeeds(qw(release mine));
is(scalar(() = slurp(TRACING . '/trace') =~ /: flr: /g), 1, 'released, the function is reset once');
trace('events/lab/flr/enable', 0);
trace('kprobe_events',          ''); # which is opened to be emptied
is(driver(), 'nvme', 'it is with the host again');
ok(wait_until(sub { -e '/dev/nvme0' }), '... which has its node');
is(device()->{state}, 'available', '... and it can be had');

# ---- one that cannot be reset

output(qw(systemctl stop lab-holder.service));
configure();
succeeds(qw(allocate mine nvme=1));
output('mount', '--bind', '/dev/full', "$dir/reset");
$mounted = 1;
succeeds(qw(release mine));
is(device()->{state}, 'quarantined', 'A12: what is not reset is in quarantine');
like(device()->{reason}, names('reset', $nvme), 'A12: ... which says why');
is((ctl('allocate', 'other', 'nvme=1'))[0], 1, 'A12: ... and nobody gets it');
is_deeply([map { "$_->{address} $_->{allocation}" } @{ ctl_json('quarantine') }], ["$nvme mine"], 'A12: ... it is listed');
is((command(qw(systemctl restart passthroughd)))[0], 0, 'A12: a restart');
is(device()->{state}, 'quarantined', 'A12: ... forgets nothing');
output('umount', "$dir/reset");
$mounted = 0;
succeeds('quarantine', '--clear', $nvme);
is(driver(), 'nvme', 'A12: cleared, it is with the host again');
is(device()->{state}, 'available', 'A12: ... and can be had');

# ---- the command that cleans

write_file(CLEANER, "#!/bin/sh\necho \"\$\@\" >>" . LOG . "\ncat /proc/self/cgroup >>" . LOG . "\nread -r end <" . STATUS . "\n[ \"\$end\" != hang ] || exec sleep 1000\nexit \"\$end\"\n");
chmod 0755, CLEANER;
configure('CleanerCommand=' . CLEANER . ' --all');

# Released while the command ends so.
sub released {
        my ($end) = @_;
        write_file(STATUS, "$end\n");
        write_file(LOG,    '');
        succeeds(qw(allocate mine nvme=1));
        return succeeds(qw(release mine));
}

released(0);
my ($arguments, $cgroup) = cleaned();
is($arguments, "--all $nvme", 'A12: the command gets the device');
like($cgroup // '', qr{/passthroughd-clean-[^/]+\.service$}, 'A12: ... in a control group of its own');
is(device()->{state}, 'available', 'A12: ... and when it succeeds the device can be had');
released(3);
is(device()->{state}, 'quarantined', 'A12: when it fails that is in quarantine');
like(device()->{reason}, names('clean', $nvme, 'status 3'), 'A12: ... with the reason');
succeeds('quarantine', '--clear', $nvme);
configure('CleanerCommand=' . CLEANER, '[Daemon]', 'JobTimeoutSec=20');
released('hang');
is(device()->{state}, 'quarantined', 'A12: when it does not end that is in quarantine');
like(device()->{reason}, names('clean', $nvme), 'A12: ... with the reason');
is_deeply([grep { (slurp($_) // '') eq "sleep\0001000\0" } glob '/proc/[0-9]*/cmdline'], [], 'A12: ... and the command is gone');
succeeds('quarantine', '--clear', $nvme);

# Its VFs are there again, for the configuration asks for them.
spew(CONFIG, $lab);
succeeds('reload');
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, 'and all is as it was at first');

done_testing();
