#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The vGPUs of the simulated node by their files: which can be created, and which are refused.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use Errno;
use Fcntl;
use Test::More;

use Node;

node('vgpu-h100', configure => 1);
daemon('stop');

my ($large, $half, $quarter) = (1201, 1202, 1203);
my $pci = "$ENV{NODE_ROOT}/sys/bus/pci/devices";
my ($first, $second, $mig) = qw(0000:13:00.4 0000:13:00.5 0000:c3:00.4);

sub errno { for my $name (grep { $!{$_} } keys %!) { return $name } return "errno $!" }

sub put {
        my ($vf, $id) = @_;
        sysopen my $f, "$pci/$vf/nvidia/current_vgpu_type", O_WRONLY or return 'open ' . errno();
        return defined syswrite($f, $id) ? 'OK' : errno();
}

sub type    { my ($vf) = @_; return slurp("$pci/$vf/nvidia/current_vgpu_type") =~ s/\n//r }
sub types   { my ($vf) = @_; return join ' ', map { /^(\d+) : NVIDIA / } split /\n/, slurp("$pci/$vf/nvidia/creatable_vgpu_types") }
sub control { my ($command) = @_; return fault($command =~ s{VF}{sys/bus/pci/devices/$first}gr) }

is(types($first), '1201 1202 1203 1204 1205 1206 1207 1208', 'an idle GPU can have each type');
is(put($first, $half), 'OK', 'one is created');
is(type($first), $half, 'and shown');
is(types($first), '', 'the VF can have no other');
is(types($second), $half, 'the others only that size');
is(put($second, $quarter), 'EINVAL', 'another size is refused');
is(put($second, $half), 'OK', 'the GPU is filled');
is(types('0000:13:00.6'), '', '... and full');
is(put('0000:13:00.6', $half), 'EINVAL', 'no more is created');
is(put($second, 7), 'EINVAL', 'an id that does not exist is refused');
is(type($second), 0, '... and leaves none');
is(put($second, 'x'), 'EINVAL', 'what is no id');
control('set VF/vgpu_open 1');
is(put($first, 0), 'EPERM', 'what is open is not removed');
is(type($first), $half, '... and stays');
control('remove VF/vgpu_open');
is(put($first, 0), 'OK', 'it is removed');
is(types($second), '1201 1202 1203 1204 1205 1206 1207 1208', 'the GPU is idle');

is(put($first, $half), 'OK', 'one is created');
other_hand_binds($first, 'vfio-pci');
ok(!-e "$pci/$first/nvidia", 'another driver has no vGPUs');
is(types($second), '1201 1202 1203 1204 1205 1206 1207 1208', '... and it is lost');
other_hand_binds($first, '');
is(type($first), 0, 'also when the driver comes back');

control("set sys/bus/pci/devices/0000:13:00.0/vgpu_mixed 1");
is(put($first, $half), 'OK', 'with sizes mixed');
is(types($second), '1202 1203 1204 1205 1206 1207 1208', 'all that fit are listed');
is(put($second, $quarter), 'OK', '... and created');
is(types('0000:13:00.6'), '1203 1204 1205 1206 1207 1208', '... until the memory ends');

is(types($mig), '1221 1222', 'types on GPU instances');
is(put($mig, 1221), 'OK', 'take one of them');
is(types('0000:c3:00.5'), '1221 1222', 'there is another');
is(put('0000:c3:00.5', 1221), 'OK', '... which is taken');
is(types('0000:c3:00.6'), '1222', 'and no more of that size');

done_testing();
