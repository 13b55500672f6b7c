#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A running guest gets a VF and gives it back, through the real libvirt and the guest's own kernel; a guest that does not answer keeps it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(WNOHANG);
use Test::More;
use Time::HiRes qw(sleep);

use Guest;
use Lab;

use constant VF => '8086:10ca';

my ($libvirt);
END {
        my $status = $?;
        kill 'CONT', $libvirt if $libvirt;
        command(qw(virsh resume vm));
        command(qw(virsh destroy vm));
        command(qw(virsh undefine vm));
        ctl(qw(release vm));
        $? = $status;
}

sub state { my ($expected) = @_; return wait_until(sub { ctl_json('show', 'vm')->{state} eq $expected }) }
sub slots { return map { "$_->{slot} $_->{phase}" } grep { $_->{slot} } @{ ctl_json('show', 'vm')->{devices} } }
sub address_of { my ($slot) = @_; return (map { $_->{address} } grep { ($_->{slot} // '') eq $slot } @{ ctl_json('show', 'vm')->{devices} })[0] }

# The VFs of the guest, once there are so many: "VENDOR:DEVICE NODE PATH".
sub guest_has {
        my ($count) = @_;
        my @vfs;
        wait_until(sub { @vfs = grep { /^${\VF} / } guest_lists('vm'); @vfs == $count }, 60);
        return @vfs;
}

# Whether the documents of the domain have a host device.
sub documents_have {
        my ($address) = @_;
        my ($bus, $slot, $function) = $address =~ /:(\w+):(\w+)\.(\d)$/;
        my $source = qr{<source>\s*<address domain='0x0000' bus='0x$bus' slot='0x$slot' function='0x$function'/>};
        return join ' ', map { output('virsh', 'dumpxml', 'vm', @$_) =~ $source ? 'yes' : 'no' } [], ['--inactive'];
}

ok(settled(), 'the node is settled');
my $before = drivers();
my ($status, $out, $err) = ctl(qw(allocate vm gpu=1 --cpus 1 --memory 256M --numa required));
is($status, 0, 'allocate') or die $err;
my @devices = grep { $_->{guest_address} } @{ ctl_json('show', 'vm')->{devices} };
($status, $err) = start_guest('vm', domain('vm', scalar @devices));
is($status, 0, 'virsh start') or die $err;
ok(state('in-use'), 'the allocation is in use');
is(scalar(my @seen = guest_functions('vm')), scalar @devices, 'the guest has its devices');
my $qemu = qemu('vm');

# ---- in and out

($status, $out, $err) = ctl(qw(attach vm nic-vf=1));
is($status, 0, 'attach') or diag("$out$err");
my $vf = address_of('nic-vf0');
is(documents_have($vf), 'yes yes', 'the running domain and its definition have the VF');
my @vfs = guest_has(1);
is(scalar(@vfs), 1, 'the guest has it') or diag(guest_lists('vm'));
my $xml = output(qw(virsh dumpxml vm));
my %number = $xml =~ m{<controller type='pci' index='(\d+)' model='pcie-expander-bus'>.*?<target busNr='(\d+)'>}gs;
my ($node, $path) = (split / /, $vfs[0] // '')[1, 2];
if (%number) {
        is($node, 0, 'on its cell');
        like($path, qr{/pci0000:(?:@{[join '|', map { sprintf '%02x', $_ } values %number]})/}, 'behind an expander');
}
diag("the guest sees: $vfs[0]") if @vfs;
is(qemu('vm'), $qemu, 'it is the same guest');
ok(state('in-use'), 'the allocation is in use');
($status, $out, $err) = ctl(qw(detach vm nic-vf0));
is($status, 0, 'detach') or diag("$out$err");
is(documents_have($vf), 'no no', 'no document has the VF');
is(scalar(my @none = guest_has(0)), 0, 'nor has the guest');
is(drivers()->{$vf}, $before->{$vf}, 'it is with the host again');

# ---- no port is left

($status, $out, $err) = ctl(qw(attach vm nic-vf=2));
is($status, 1, 'two VFs for one port');
like($err, names('vm', 'SparePorts'), 'are refused');
is_deeply([grep { /nic-vf/ } slots()], [], 'and not attached');
is(drivers()->{$vf}, $before->{$vf}, 'but with the host');

# ---- a guest that does not answer

($status, $out, $err) = ctl(qw(attach vm nic-vf=1));
is($status, 0, 'attach again') or diag("$out$err");
$vf = address_of('nic-vf0');
is(scalar(guest_has(1)), 1, 'the guest has it');
output(qw(virsh suspend vm));
($status, $out, $err) = ctl(qw(detach vm nic-vf0));
is($status, 1, 'a guest that does not answer');
is_deeply([grep { /nic-vf/ } slots()], ['nic-vf0 kept'], 'keeps the VF');
like(drivers()->{$vf}, qr/vfio-pci/, 'on its VFIO driver');
output(qw(virsh resume vm));
ok(wait_until(sub { (ctl(qw(detach vm nic-vf0)))[0] == 0 }, 90), 'when it answers, the VF is detached');
is(drivers()->{$vf}, $before->{$vf}, 'it is with the host again');

# ---- the daemon is killed at any instant, and undoes what was begun

my %whole = ('' => 1, 'nic-vf0 settled' => 1);
for my $round (1 .. 5) {
        my $attached = grep { /nic-vf0/ } slots();
        my @words    = $attached ? qw(detach vm nic-vf0) : qw(attach vm nic-vf=1);
        my $what     = "round $round, $words[0]";
        my $daemon   = service('MainPID');
        my $pid      = fork // die "fork: $!";
        if (!$pid) { open STDERR, '>', '/dev/null'; open STDOUT, '>', '/dev/null'; exec 'passthroughctl', @words }
        ok(wait_until(sub { is_at_work() || waitpid($pid, WNOHANG) == $pid }, 30), "$what: is begun");
        sleep rand $attached ? 1.5 : 2.5;
        kill 'KILL', $daemon;
        waitpid $pid, 0;
        ok(wait_until(sub { service('ActiveState') eq 'active' && service('MainPID') != $daemon }), "$what: the daemon is started again");
        my $state;
        ok(wait_until(sub { !is_at_work() && $whole{ $state = join ' ', grep { /nic-vf/ } slots() } }), "$what: the VF is attached or not") or diag($state);
        ok(state('in-use'), "$what: the allocation is in use");
        is(documents_have($vf), $state ? 'yes yes' : 'no no', "$what: libvirt agrees");
        is(scalar(my @have = guest_has($state ? 1 : 0)), $state ? 1 : 0, "$what: so does the guest");
        is(drivers()->{$vf} eq $before->{$vf}, !$state, "$what: and the kernel");
        is(qemu('vm'), $qemu, "$what: it is the same guest");
}
ctl(qw(detach vm nic-vf0)) if slots() > 1;

# ---- libvirt is frozen

($libvirt) = output(qw(systemctl show --property MainPID --value libvirtd.service)) =~ /(\d+)/;
kill 'STOP', $libvirt;
($status, $out, $err) = ctl(qw(attach vm nic-vf=1));
is($status, 1, 'an attach while libvirt is frozen fails');
kill 'CONT', $libvirt;
$libvirt = undef;
is_deeply([grep { /nic-vf/ } slots()], [], 'and is undone');
is(qemu('vm'), $qemu, 'the guest goes on');

# ---- the end

end_guest('vm');
ok(state('ready'), 'the guest has ended');
($status, $out, $err) = ctl(qw(release vm));
is($status, 0, 'release') or diag($err);
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, 'and as it was');

done_testing();
