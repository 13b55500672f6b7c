#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the daemon knows of domains comes from libvirt's library in a process of its own, at once and without a wrong state, and the daemon
# never waits for it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../../bus"; # in the checkout; on the machine Bus.pm is beside this file

use Test::More;
use Time::HiRes qw(sleep time);

use Bus;
use Guest;
use Lab;

use constant { TRACE => '/run/trace', PINGS => 200, FROZEN => 60, AT_ONCE => 1 };

$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/run/dbus/system_bus_socket';
my @sockets = map { "$_.socket" } qw(libvirtd libvirtd-ro libvirtd-admin);
my $frozen;
END {
        my $status = $?;
        kill 'CONT', $frozen if $frozen;
        command('systemctl', 'start', @sockets);
        command(qw(virsh destroy vm));
        command(qw(virsh undefine vm));
        ctl(qw(release vm));
        $? = $status;
}

sub known   { return !ctl_json('list')->{libvirt}{reason} }
sub libvirt { return (output(qw(systemctl show --property MainPID --value libvirtd.service)) =~ /(\d+)/)[0] }

# Waits for a state of the allocation, and returns when it was there: seconds since 1970.
sub since_state {
        my ($expected) = @_;
        my $bus = Bus->new;
        my ($path) = @{ $bus->call('GetAllocation', 's', 'vm')->{body} };
        return wait_until(sub { $bus->properties($path, 'org.passthroughd1.Allocation')->{State} eq $expected && time });
}

# The median and the longest time of a Ping, in ms.
sub pings {
        my $bus   = Bus->new;
        my @times = sort { $a <=> $b } map { my $begin = time; $bus->ping; 1000 * (time - $begin) } 1 .. PINGS;
        return @times[$#times / 2, $#times];
}

# ---- what a start opens

ok(settled(), 'the node is settled');
my $before = drivers();
mkdir TRACE;
my $tracer = fork // die "fork: $!";
if (!$tracer) { exec 'strace', '-q', '-ff', '-e', 'trace=execve,openat,open', '-o', TRACE . '/of', '-p', 1 }
ok(wait_until(sub { (fact('/proc/1/status') // '') && slurp('/proc/1/status') =~ /^TracerPid:\s+$tracer$/m }), 'systemd is traced');
output(qw(systemctl restart passthroughd));
ok(wait_until(sub { known() }), 'libvirt reports its domains');
kill 'TERM', $tracer;
waitpid $tracer, 0;
my %opened; # of each process of the daemon
for my $text (grep { defined } map { slurp($_) } glob TRACE . '/of.*') {
        my ($program) = reverse $text =~ m{^execve\("[^"]*/(passthroughd[-\w]*)"}mg or next;
        push @{ $opened{$program} }, $text =~ /^open(?:at)?\(.*?"([^"]+)".*\) = \d+$/mg;
}
is_deeply([grep { !$opened{$_} } qw(passthroughd passthroughd-libvirt)], [], 'the daemon and its client of libvirt were traced');
my %libvirt = map { my $p = $_; $p => [grep { /libvirt/ } @{ $opened{$p} }] } keys %opened;
# The daemon waits for the sockets to appear in their directory.
is_deeply([grep { $_ ne '/run/libvirt' } map { @{ $libvirt{$_} } } grep { $_ ne 'passthroughd-libvirt' } keys %libvirt], [], 'only the client opens files of libvirt');
is_deeply([grep { !m{/libvirt[-\w]*[.]so[.\d]*$|^/etc/libvirt/libvirt[.]conf$|/libvirt[.]mo$} } @{ $libvirt{'passthroughd-libvirt'} }], [], 'and none that is private');
diag("the client opens: $_") for @{ $libvirt{'passthroughd-libvirt'} };

# ---- a guest starts and ends

my ($status, $out, $err) = ctl(qw(allocate vm gpu=1 --cpus 1 --memory 256M));
is($status, 0, 'allocate') or die $err;
my $file = domain('vm', 1);

sub is_at_once {
        my ($state, $what) = @_;
        my $end = time;
        my $at  = since_state($state);
        ok($at, "the allocation is $state") or return;
        diag(sprintf '%s %.2f s after %s', $state, $at - $end, $what);
        return cmp_ok($at - $end, '<=', AT_ONCE, '... within a second');
}

sub start {
        ($status, $err) = start_guest('vm', $file);
        is($status, 0, 'virsh start') or diag($err);
        return is_at_once('in-use', 'virsh start');
}

sub stop {
        output(qw(virsh destroy vm));
        return is_at_once('ready', 'virsh destroy');
}

start();
stop();
start();
my $qemu = qemu('vm');

# ---- libvirt is frozen for a minute, killed, restarted, upgraded

sub goes_on {
        my ($what) = @_;
        is(ctl_json('show', 'vm')->{state}, 'in-use', "$what: the allocation is in use");
        return is(qemu('vm'), $qemu, "$what: the guest goes on");
}

sub is_known {
        my ($what) = @_;
        ok(wait_until(sub { known() }), "$what: libvirt reports its domains again");
        return goes_on($what);
}

my ($idle, $idle_max) = pings();
my (@medians, $longest, $said);
$frozen = libvirt();
kill 'STOP', $frozen;
my $begin = time;
until (time > $begin + FROZEN && ($said = !known()) || time > $begin + 3 * FROZEN) {
        my ($median, $max) = pings();
        push @medians, $median;
        $longest = $max if $max > ($longest // 0);
        goes_on('frozen');
}
ok($said, 'frozen: the daemon says that the domains are not known');
my $median = (sort { $a <=> $b } @medians)[$#medians / 2];
diag(sprintf 'frozen: Ping %.2f ms, at most %.2f ms; before %.2f ms, at most %.2f ms', $median, $longest, $idle, $idle_max);
# The processor is emulated, dozens of times slower than a real one.
cmp_ok($median, '<=', 1.5 * $idle, 'frozen: no Ping waits');
kill 'CONT', $frozen;
$frozen = undef;
is_known('frozen and back');

my $old = libvirt();
kill 'KILL', $old;
ok(wait_until(sub { !-e "/proc/$old" }), 'libvirt is killed');
goes_on('killed');
output('systemctl', 'start', @sockets, 'libvirtd.service');
is_known('killed and back');

output(qw(systemctl restart libvirtd.service));
is_known('restarted');

# A new package replaces the files of the old one.
for my $replaced ('/usr/sbin/libvirtd', map { readlink($_) ? $_ =~ s{[^/]+$}{readlink $_}er : $_ } glob '/usr/lib/x86_64-linux-gnu/libvirt*.so.0') {
        output('cp', '--preserve', $replaced, "$replaced.new");
        rename "$replaced.new", $replaced or die "$replaced: $!";
}
output(qw(systemctl restart libvirtd.service));
is_known('upgraded');
stop();

# ---- the end

output(qw(virsh undefine vm));
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, 'and as it was');

done_testing();
