#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# QEMU ends while its guest starts: libvirt sends no event then, and the allocation is ready again without a rescan.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(mkfifo);
use Test::More;

use Guest;
use Lab;

# QEMU opens it before it answers libvirt, and waits in open() until the file has a reader.
use constant PIPE => '/run/lab-failed-start';

my $virsh;
END {
        my $status = $?;
        command(qw(virsh destroy vm));
        waitpid $virsh, 0 if $virsh;
        command(qw(virsh undefine vm));
        ctl(qw(release vm));
        unlink PIPE;
        $? = $status;
}

sub state { return ctl_json('show', 'vm')->{state} }

ok(settled(), 'the node is settled');
my $before = drivers();
my ($status, $out, $err) = ctl(qw(allocate vm gpu=1 --cpus 1 --memory 256M));
is($status, 0, 'allocate') or die $err;
my $file = domain('vm', 1);
my $pipe = PIPE;
my $text = slurp($file);
$text =~ s{<domain }{<domain xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0' };
$text =~ s{</domain>}{<qemu:commandline><qemu:arg value='-chardev'/><qemu:arg value='file,id=held,path=$pipe'/></qemu:commandline></domain>};
unlink $file;
spew($file, $text);
mkfifo(PIPE, 0600) or die PIPE . ": $!\n";
chown scalar(getpwnam 'libvirt-qemu'), -1, PIPE or die PIPE . ": $!\n";

# ---- a start that hangs

output('virsh', 'define', '--validate', $file);
$virsh = fork // die "fork: $!\n";
if (!$virsh) { exec 'virsh', 'start', 'vm' or POSIX::_exit(127) }
my $domstate = sub { return (command(qw(virsh domstate --reason vm)))[1] };
ok(wait_until(sub { $domstate->() =~ /^paused \(starting up\)/ }), 'libvirt says that the guest starts') or diag($domstate->());
ok(wait_until(sub { ctl('rescan'); state() eq 'in-use' }), 'the allocation is in use');

# ---- and fails

my ($qemu) = map { m{^/proc/(\d+)/} } grep { (slurp($_) // '') =~ /\0guest=vm,/ } glob '/proc/[0-9]*/cmdline';
ok($qemu, 'QEMU runs') or die;
kill 'KILL', $qemu;
waitpid $virsh, 0;
$virsh = undef;
isnt($?, 0, 'virsh start fails');
ok(wait_until(sub { state() eq 'ready' }), 'the allocation is ready again') or diag(state());
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);

# ---- the end

output(qw(virsh undefine vm));
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, 'and as it was');

done_testing();
