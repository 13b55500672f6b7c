#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A pool with Scheduler=kubernetes gives devices only to a request that names its claim and each device; other schedulers do not count them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my $claim = '22222222-0000-4000-8000-000000000001';
configure(<<"END");
[Pool gpu]
Match=vendor=10de class=0302 address=0000:[1-3]*
Scheduler=kubernetes
[Pool plain]
Match=vendor=10de class=0302 address=0000:[9a-c]*
[Service remote-gpu]
Kind=lupine
Endpoint=gpu1.example.org:9999 slots=1
Via=gpu
END
my $bus = Bus->new->listen;

sub refusal { my (@request) = @_; return ctl_json('plan', @request)->{verdict} }

is_deeply({ map { $_->{name} => $_->{scheduler} } @{ describe($bus)->{pools} } }, { gpu => 'kubernetes', plain => 'none', 'remote-gpu' => 'none' }, 'the pools and their schedulers');
is(refusal('gpu=1'), 'scheduled', 'no device without a claim');
is(refusal('gpu=1', '--at=gpu=0000:13:00.0'), 'scheduled', 'nor with an address alone');
is(refusal('gpu=1', "--consumer=$claim"), 'scheduled', 'nor with a claim alone');
is(refusal('gpu=2', '--at=gpu=0000:13:00.0', "--consumer=$claim"), 'scheduled', 'nor with one of two addresses');
is(refusal('gpu=1', '--at=gpu=0000:13:00.0', '--consumer=Claim'), 'invalid-request', 'a claim is a UUID');
my (undef, undef, $message) = ctl('plan', 'gpu=1');
like($message, qr/\bKubernetes\b.*'gpu'/s, 'the sentence names the scheduler and the pool');
like($message, qr/\bResourceClaim\b/,      'and the way to a device');

is((ctl('allocate', 'c1', 'gpu=2', '--at=gpu=0000:13:00.0', '--at=gpu=0000:33:00.0', "--consumer=$claim"))[0], 0, 'the devices of a claim');
is_deeply([map { $_->{address} } @{ allocation($bus, 'c1')->{devices} }], [qw(0000:13:00.0 0000:33:00.0)], 'exactly these');
is(allocation($bus, 'c1')->{consumer}, $claim, 'and its claim');
is(ctl_json('attach', 'c1', 'gpu=1')->{verdict}, 'scheduled', 'no device that Kubernetes gives out is attached by itself');
is((ctl('attach', 'c1', 'plain=1'))[0], 0, 'a device of a pool without a scheduler is');
is((ctl('allocate', 'vm1', 'plain=1'))[0], 0, 'which others get too');
is(ctl_json('attach', 'vm1', 'gpu=1', '--at=gpu=0000:23:00.0')->{verdict}, 'scheduled', 'an allocation without a claim gets no such device');
is(refusal('remote-gpu=1'), 'scheduled', 'nor does Via= of a service');

my ($status, $gres) = ctl('gres');
is($status, 0, 'gres.conf');
like($gres, qr{^Name=vmgpu Count=0 }m, 'Slurm does not count them');

done_testing();
