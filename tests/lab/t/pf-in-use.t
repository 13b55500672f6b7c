#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A QEMU holds a VF that another hand made on an allocated PF: the daemon does not unbind the PF, and its start does not wait for QEMU.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(time);

use Lab;

use constant {
        CONFIG => '/etc/passthroughd/passthroughd.conf.d/lab.conf',
        PCI    => '/sys/bus/pci/devices',
        VFS    => 2,
        SOON   => 20, # seconds, on an emulated machine
};

my ($pf) = role('8086:10c9');
my $lab  = slurp(CONFIG);
my $qemu;

END {
        my $status = $?;
        if ($qemu) { kill 'KILL', $qemu; waitpid $qemu, 0 }
        spew(CONFIG, $lab) && ctl('reload') if defined $lab;
        $? = $status;
}

sub write_config {
        my ($text) = @_;
        unlink CONFIG;
        spew(CONFIG, $text);
        return is((ctl('reload'))[0], 0, 'the configuration is read');
}

sub succeeds {
        my (@words) = @_;
        my ($status, $out, $err) = ctl(@words);
        return is($status, 0, "@words") || diag("$out$err");
}

sub vfs { return map { link_name($_) } sort glob PCI . "/$pf/virtfn*" }

# What the kernel says to the user of a device that it is to be unbound.
sub requests { return scalar(() = output('dmesg') =~ /Relaying device |blocked until /g) }

ok(settled(), 'the node is settled');
my $before = drivers();
my $host   = link_name(PCI . "/$pf/driver");
succeeds('sriov', $pf, 0);
write_config($lab =~ s/\[Pool nic-vf\].*?(?=\n\[)//sr =~ s/Match=class=02 type=device\n?//r . "\n[Pool pf]\nMatch=address=$pf\n");
succeeds(qw(allocate mine pf=1));
is(link_name(PCI . "/$pf/driver"), 'vfio-pci', 'the PF is allocated');

# ---- another hand gives it back to the host while the daemon is away, and a VF of it to QEMU

output(qw(systemctl stop passthroughd.service));
bind_by_hand($pf, $host);
spew(PCI . "/$pf/sriov_drivers_autoprobe", 0);
spew(PCI . "/$pf/sriov_numvfs",            VFS);
my ($vf) = vfs();
bind_by_hand($vf, 'vfio-pci');
my $group = link_name(PCI . "/$vf/iommu_group");
$qemu = fork // die "fork: $!\n";
if (!$qemu) {
        exec qw(qemu-system-x86_64 -S -machine q35 -accel tcg -m 64 -nodefaults -display none -device), "vfio-pci,host=$vf" or exit 127;
}
ok(wait_until(sub { grep { (readlink // '') eq "/dev/vfio/$group" } glob "/proc/$qemu/fd/*" }), 'QEMU has a VF of it open');
my $there    = drivers();
my $requests = requests();
my $began    = time;
output(qw(systemctl start passthroughd.service));
cmp_ok(time - $began, '<', SOON, 'the daemon starts without waiting for QEMU');
is_deeply(drivers(), $there, 'no driver and no override is changed');
is(scalar vfs(), VFS, 'the VFs are there');
is(requests(), $requests, 'the kernel asks QEMU for nothing');
is(waitpid($qemu, WNOHANG), 0, 'QEMU runs');
my ($mine) = grep { $_->{name} eq 'mine' } @{ ctl_json('allocations')->{allocations} };
is($mine->{state}, 'failed', 'the allocation has failed');
like($mine->{reason} // '', names($vf, $pf, "process $qemu", 'qemu-system-x86'), 'its reason names the VF and QEMU');
isnt(devices()->{$pf}{state}, 'stuck', 'the PF is not stuck');

# ---- back

succeeds(qw(release mine));
is(scalar vfs(), VFS, 'the release leaves the VFs there');
isnt((ctl(qw(allocate mine pf=1)))[0], 0, 'while they are there the PF cannot be had');
kill 'KILL', $qemu;
waitpid $qemu, 0;
undef $qemu;
give_back($vf);
spew(PCI . "/$pf/sriov_numvfs",    0);
spew(PCI . "/$pf/driver_override", "\n");
succeeds('rescan');
succeeds(qw(allocate mine pf=1));
succeeds(qw(release mine));
write_config($lab);
# The daemon makes the VFs of the configuration on a PF that is back on its driver; sriov is refused while that job runs.
ok(wait_until(sub { (ctl('sriov', $pf, VFS))[0] == 0 }), 'the VFs are made again');
ok(settled(), 'the node is settled again');
is_deeply(drivers(), $before, 'all is as it was');

done_testing();
