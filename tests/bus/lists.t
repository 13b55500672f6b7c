#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A list that names only the first of many says how many more there are.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100');

my $bus = Bus->new->listen;
my $ADDRESS = qr/0000:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]/;

sub refusal {
        my (@words) = @_;
        my ($status, undef, $text) = ctl(@words);
        is($status, 1, "@words: refused");
        return $text;
}

sub count { my ($pattern, $text) = @_; return scalar(() = $text =~ /$pattern/g) }

# ---- free devices, by pool

my $text = refusal('plan', 'gpu=5', 'rdma=2', '--cpus', 2, '--memory', '1G', '--numa', 'single');
is(count($ADDRESS, $text), 3 + 3, 'three devices of each pool') or diag($text);
like($text, names(qr/\b5 more.*'gpu'.*\b125 more.*'rdma'/), 'and how many more each has');

# ---- devices that are not free

is((ctl('allocate', "vm$_", 'gpu=1', '--cpus', 2, '--memory', '1G'))[0], 0, "vm$_") for 1 .. 5;
$text = refusal('plan', 'gpu=4');
is(count($ADDRESS, $text), 3, 'three reasons') or diag($text);
like($text, qr/\b2 more\b/, 'and how many more there are');
is((ctl('release', 'vm5'))[0], 0, 'one is released');
like(refusal('plan', 'gpu=5'), qr/\b1 more\b/, 'one more');
is((ctl('release', 'vm4'))[0], 0, 'another is released');
unlike(refusal('plan', 'gpu=6'), qr/ more /, 'three are all that is named');

# ---- allocations with memory that is not in use yet

is((ctl('allocate', "idle$_", '--cpus', 2, '--memory', '1G', '--page-size', '1G'))[0], 0, "idle$_") for 1 .. 5;
$text = refusal('plan', '--cpus', 2, '--memory', '900G', '--page-size', '1G');
like($text, qr/'\w+', '\w+', '\w+' and 2 more\b/, 'three allocations, and how many more') or diag($text);

# ---- endpoints of a service, types of a vGPU: on recorded nodes

sub refusal_of {
        my ($pool, $node, $conf) = @_;
        spew("$ENV{NODE_TMP}/lists.conf", $conf);
        return refusal('plan', "$pool=1", '--node', "$ENV{BUILD}/nodes/$node.tree", '--config', "$ENV{NODE_TMP}/lists.conf");
}

$text = refusal_of('far', 'hgx-h100', "[Service far]\nKind=lupine\n" . join '', map { "Endpoint=gpu$_:9999 slots=0\n" } 1 .. 5);
is(count(qr/gpu\d:9999/, $text), 3, 'three endpoints') or diag($text);
like($text, qr/\b2 more\b/, 'and how many more');
$text = refusal_of('vgpu', 'vgpu-h100', "[Pool vgpu]\nMatch=vendor=10de type=vf pf=0000:13:00.0\nVgpuType=Nothing\n");
like($text, qr/(?:NVIDIA H100XM-\d+C, ){7}NVIDIA H100XM-\d+C\./, 'all eight types');
like($text, qr/\b13 more\b/, 'and how many VFs more');

# ---- check, overview

my ($pf) = map { $_->{message} } grep { $_->{check} eq 'sriov' } @{ ctl_json('check')->{findings} };
like($pf, qr/^NIC $ADDRESS and 1 more: /, 'check: the first NIC, and how many more');
like((ctl())[1], qr/^Allocations: +(?:\w+ ready, ){5}\w+ ready and 2 more$/m, 'the overview: the first six allocations');

done_testing();
