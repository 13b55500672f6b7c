#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the real kernel answers to a script of writes, good and bad, is what was written down; tests/nodesim/kernel.t holds the simulated one to it.
# "kernel.t record", in make lab-shell, writes it and the machine to BUILD/lab/journal, as a tar file of transcript and lab.snapshot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

my $PCI  = '/sys/bus/pci';
my $TMP  = '/tmp/lab-kernel';
my $port = '/dev/virtio-ports/lab.journal';

ok(settled(), 'the node is settled');
my %vfs     = map { $_ => fact($_) } glob "$PCI/devices/*/sriov_numvfs";
my %probes  = map { $_ => fact($_) } glob "$PCI/devices/*/sriov_drivers_autoprobe";
my $drivers = drivers();

# The other tests need the VFs and the daemon, however this one ends.
sub restore {
        spew($_, $probes{$_}) for keys %probes;
        for my $pf (grep { fact($_) != $vfs{$_} } keys %vfs) {
                spew($pf, '0') if fact($pf);
                spew($pf, $vfs{$pf});
        }
        output(qw(systemctl start passthroughd.service));
        return 1;
}
END {
        my $status = $?;
        eval { restore() } or output(qw(systemctl start passthroughd.service));
        $? = $status;
}

# The daemon would act on what is done here. All drivers are there, no PF has VFs: what a boot or another test left is of no account.
output(qw(systemctl stop passthroughd.service));
output(qw(modprobe --all vfio-pci pci-stub igbvf));
spew($_, '0') for grep { $vfs{$_} } keys %vfs;
spew($_, '1') for keys %probes;
mkdir $TMP;

# The machine, with what is compared here but the daemon does not read, so that no snapshot has it. What counts of a bridge is not compared.
sub machine {
        my @devices = grep { fact("$_/class") !~ /^0x0604/ } glob "$PCI/devices/*";
        return join '', output(qw(passthroughctl snapshot)), "[]\n", map { 'sys/' . (readlink =~ s{^[./]*}{}r) . '/enable=' . fact("$_/enable") . "\n" } @devices;
}

my $record = @ARGV && $ARGV[0] eq 'record';
spew("$TMP/lab.snapshot", machine()) if $record;
my ($ended, $transcript, $complaint) = command("$FindBin::Bin/sequence", '/');
is("$ended$complaint", '0', 'the script came to its end');
spew("$TMP/transcript", $transcript);
output('tar', '-C', $TMP, '-cf', $port, 'transcript', 'lab.snapshot') if $record;
my ($status, $difference) = command('diff', '-U3', "$FindBin::Bin/transcript", "$TMP/transcript");
ok($status == 0, 'the kernel answers as it is written down') or diag($difference);

restore();
ok(wait_until(sub { is_same(drivers(), $drivers) }), 'and all is as it was') or is_deeply(drivers(), $drivers);

done_testing();

sub is_same {
        my ($is, $was) = @_;
        return keys %$is == keys %$was && !grep { ($is->{$_} // '') ne $was->{$_} } keys %$was;
}
