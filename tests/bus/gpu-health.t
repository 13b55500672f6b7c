#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A GPU is back on NVIDIA's driver: its health as the driver tells it, and persistence mode as it was before.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS ();
use Test::More;

use Node;

node('hgx-h100', configure => 1);

my ($gpu, $other) = qw(0000:13:00.0 0000:23:00.0);
my $dir   = $ENV{NVFM_DIR};
my $units = "$ENV{NODE_TMP}/units";
mkdir $_ or die "$_: $!" for $dir, $units;
spew("$units/log",           '');
spew("$units/command.state", "0\n");
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $units or die "fake-systemd: $!" }
END { my $status = $?; if ($systemd) { kill 'TERM', $systemd; waitpid $systemd, 0 } $? = $status }

my $pools = "[Daemon]\nJobTimeoutSec=8\n[Pool gpu]\nMatch=address=$gpu\nMatch=address=$other\n";
configure($pools);
ok(wait_until(sub { system('busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" status org.freedesktop.systemd1 >/dev/null 2>&1') == 0 }), 'there is a systemd');
my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();

# What the library tells of the first GPU.
sub library { my ($file, $number) = @_; spew("$dir/$file", "0000$gpu" . (defined $number ? " $number" : '') . "\n"); return }
sub quarantined { return sort map { $_->{address} } @{ describe($bus)->{quarantine} } }
sub calls { return split /\n/, slurp("$units/log") }

sub returned {
        my ($what) = @_;
        is(allocate($bus, 'guest', gpu => 2), 'done', "$what: two GPUs");
        is(release($bus, 'guest'), 'done', "$what: released");
        return;
}

# It is given to nobody until an admin clears it.
sub is_bad {
        my ($what, @words) = @_;
        returned($what);
        is_deeply([quarantined()], [$gpu], "$what: it is in quarantine, the other one is not");
        like(device($bus, $gpu)->{reason}, names($gpu, @words), "$what: it says why");
        is(driver_of($gpu), 'nvidia', "$what: it is on the driver of the host");
        is(device($bus, $other)->{state}, 'available', "$what: the other one is available");
        is(clear_quarantine($bus), 1, "$what: an admin clears it");
        is(device($bus, $gpu)->{state}, 'available', "$what: then it is available");
        same_tree($before, "$what: all is back");
        same_state($state, "$what: the ledger too");
        return;
}

sub is_good {
        my ($what) = @_;
        returned($what);
        is_deeply([quarantined()], [], "$what: none is in quarantine");
        is(device($bus, $gpu)->{state}, 'available', "$what: it is available");
        same_tree($before, "$what: all is back");
        same_state($state, "$what: the ledger too");
        return;
}

# ---- health

is_good('healthy');
for my $bad (
        ['remapped', 1, qr/remapping .* failed/, 'Replace'], ['remapped', 3, qr/remapping .* failed/], ['remapped', 2, 'waits', 'nvidia-smi --gpu-reset'],
        ['sram', undef, 'ECC', 'diagnostic'], ['fabric', 999, 'Fabric Manager'], ['lost', undef, 'lost', 'kernel log'],
) {
        my ($file, $number, @words) = @$bad;
        library($file, $number);
        is_bad("$file " . ($number // ''), @words);
        unlink "$dir/$file" or die $!;
}
for my $good (['unknown'], ['fabric', 0], ['registering', 999]) {
        library(@$good);
        is_good("@$good");
        unlink "$dir/$good->[0]" or die $!;
}

# With Manager= the GPU is registered with no partition.
library('fabric', 999);
configure("$pools\[Fabric]\nManager=127.0.0.1:6666\nPartition=3=1,2\n");
is_good('fabric with Manager=');
unlink "$dir/fabric" or die $!;
configure($pools);

# AfterRelease=keep
library('remapped', 1);
configure($pools =~ s/(\[Daemon\]\n)/$1AfterRelease=keep\n/r);
returned('kept');
is(driver_of($gpu), 'vfio-pci', 'kept: it stays on its VFIO driver');
is_deeply([quarantined()], [], 'kept: it is not checked');
configure($pools);
other_hand_binds($_, 'nvidia') for $gpu, $other;
unlink "$dir/remapped" or die $!;
fault("set sys/bus/pci/devices/$_/driver_override (null)") for $gpu, $other;
(ctl('rescan'))[0] == 0 or die 'rescan';
$before = tree();

# ---- a driver that hangs

spew("$dir/nvml-hangs", '');
returned('hang');
unlink "$dir/nvml-hangs" or die $!;
my @hung = quarantined();
is(scalar @hung, 1, 'hang: the GPU that was asked about is in quarantine');
like(device($bus, $hung[0])->{reason}, names($hung[0], 'does not answer'), 'hang: it says why');
is(clear_quarantine($bus), scalar @hung, 'hang: an admin clears it');
same_tree($before, 'hang: all is back');

# ---- persistence mode

# An initialized GPU has interrupts.
sub initialize { fault("set sys/bus/pci/devices/$_/msi_irqs/40 msix") for @_; return }
# The GPUs that the ledger says were in persistence mode.
sub noted { return sort map { $_->{address} } grep { $_->{prior_persistence} } @{ JSON::XS->new->decode(slurp(ledger_file('guest')))->{devices} } }
my $program = qr{^run \S+/passthroughd-root --persistence=};

# Allocated and released; the driver forgets the mode with the unbind.
sub returns {
        my ($what, $noted, @faults) = @_;
        spew("$units/log", '');
        is(allocate($bus, 'guest', gpu => 2), 'done', "$what: two GPUs");
        is_deeply([noted()], $noted, "$what: noted");
        unlink "$dir/persistent";
        fault('reset', @faults);
        is(release($bus, 'guest'), 'done', "$what: released");
        return;
}

library('persistent');
returns('no interrupts', []);
is_deeply([calls()], [], 'no interrupts: a GPU that is not initialized is not in persistence mode');

initialize($gpu, $other);
$before = tree();
returns('off', []);
is_deeply([calls()], [], 'off: it stays off');
library('persistent');
returns('on', [$gpu]);
is(scalar(() = calls()), 1, 'on: systemd runs one command');
like((calls())[0], qr/$program\Q$gpu\E$/, 'on: ... for that GPU');
same_tree($before, 'on: all is back');
my ($command) = (calls())[0] =~ /^run (.*)/;
for my $time (qw(first second)) {
        is(system($command), 0, "on: the command runs a $time time");
        is(slurp("$dir/persistent"), "0000$gpu\n", 'on: persistence mode is on');
}
unlink "$dir/persistent" or die $!;
library('lost');
isnt(system("$command 2>/dev/null"), 0, 'on: the command fails for a GPU that is lost');
isnt(system('passthroughd-root --persistence=x 2>/dev/null'), 0, 'on: ... and for what is no GPU');
unlink "$dir/lost" or die $!;

library('persistent');
spew("$units/command.state", "1\n");
returns('refused', [$gpu]);
like((calls())[0], $program, 'refused: the command ends with a failure');
is_deeply([quarantined()], [], 'refused: which is no fault of the GPU');
spew("$units/command.state", "0\n");

library('persistent');
returns('quarantine', [$gpu], 'fail 1 EIO', 'fail 2 EIO');
is_deeply([calls()], [], 'quarantine: a GPU on its VFIO driver has no persistence mode');
is(clear_quarantine($bus), 2, 'quarantine: an admin clears both');
like((calls())[0], qr/$program\Q$gpu\E$/, 'quarantine: then it is on again');
is(scalar(() = calls()), 1, 'quarantine: ... for that GPU alone');

library('persistent');
fault('reset', 'hang 1');
my ($signature, $entries) = request(gpu => 2);
$bus->call('Allocate', "s$signature", 'guest', $entries);
ok(wait_until(sub { grep { /PENDING/ } write_log() }), 'before the first write');
is_deeply([noted()], [$gpu], '... the mode is on disk');
fault('release');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), '... then it is allocated');
is(release($bus, 'guest'), 'done', '... and released');

spew("$dir/nvml-hangs", '');
returns('driver hangs', []);
is(slurp("$dir/nvml-hangs"), "asked\n" x 2, 'driver hangs: it is asked once for each job');
is(clear_quarantine($bus), 1, 'driver hangs: an admin clears the GPU');
unlink "$dir/nvml-hangs" or die $!;
same_tree($before, 'all is back');

done_testing();
