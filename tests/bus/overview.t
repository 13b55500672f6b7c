#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl without a verb: the node in a few lines, with a daemon, without one, and a recorded node.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);
configure(slurp("$FindBin::Bin/../nodes/paper-testbed.conf"));
$ENV{COLUMNS} = 120;

my $bus = Bus->new->listen;

# Its exit status, and what it says by key.
sub overview {
        my (@words) = @_;
        my ($status, $out, $err) = ctl(@words);
        my (%said, $key);
        for (split /\n/, $out) {
                /^(?:(\w[\w ]*):)? +(.*)$/ or fail("a line: $_"), next;
                $key = $1 // $key;
                push @{ $said{$key} }, $2;
        }
        cmp_ok(scalar(split /\n/, $out), '<=', 10, "ten lines: @words") or diag($out);
        return ($status, { map { $_ => join "\n", @{ $said{$_} } } keys %said }, $err);
}

my ($status, $said, $err) = overview();
is($status, 0, 'a node with a daemon') or diag($err);
is($said->{Pools}, 'gpu 1 of 1 free, ib-vf 4 of 4 free', 'pools, with what is free');
is($said->{Allocations}, 'none', 'no allocation yet');
is($said->{Problems}, 'none', 'and no problem');
like($said->{Free}, qr/^node 0 \d+ of \d+ CPUs and \d+ of \d+ GiB, node 1 /, 'CPUs and memory');
is(scalar(split /\n/, $said->{Next}), 2, 'two commands');

is(allocate($bus, 'guest', gpu => 1), 'done', 'an allocation');
($status, $said) = overview();
is($said->{Pools}, 'gpu 0 of 1 free, ib-vf 4 of 4 free', 'has the GPU');
is($said->{Allocations}, 'guest ready', 'is named');
like($said->{Next}, qr/^passthroughctl allocations/m, 'and suggested');

# What the daemon finds wrong, which check says too.
is(release($bus, 'guest'), 'done', 'released');
configure("[Pool gpu]\nMatch=class=0302\nColour=blue\n");
($status, $said) = overview();
like($said->{Problems}, names('Colour'), 'a problem of the configuration');
like((ctl('check'))[1], qr/^warning +configuration +.*Colour/m, 'is a finding of check');

# The machine is that of the daemon, with its configuration: this one has no Tesla.
unlike((ctl('check'))[1], qr/^failure/m, 'check reads the node of the daemon') or diag((ctl('check'))[1]);
like((ctl('suggest'))[1], names('Tesla', '0000:82:00.0'), 'so does suggest');
unlike($said->{Ready}, qr/\bno\b/, 'and the overview');

# A check that fails and warns is named once.
spew("$ENV{NODE_TMP}/both.conf", "[Pool pf]\nMatch=address=0000:83:00.0\n[Pool vf]\nMatch=pf=0000:83:00.0\nColour=blue\n");
my @both = ('--node', "$ENV{BUILD}/nodes/paper-testbed.tree", '--config', "$ENV{NODE_TMP}/both.conf");
is(() = (ctl('check', @both))[1] =~ /^(?:failure|warning) +configuration /mg, 2, 'a check fails and warns');
($status, $said) = overview(@both);
is(() = $said->{Ready} =~ /configuration/g, 1, 'the overview names it once') or diag($said->{Ready});

# Without pools, and without a daemon.
configure('');
($status, $said) = overview();
is($said->{Pools}, 'none', 'no pools');
like((ctl('list'))[2], qr/passthroughctl suggest/, 'list says how to get some');
{
        local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/nonexistent/bus';
        ($status, $said, $err) = overview();
        is_deeply([$status, $err], [1, ''], 'without a daemon');
        like($said->{Daemon}, names('bus'), 'it says so');
        like($said->{Next}, names('systemctl', 'passthroughd'), 'and how to start it');
        like((ctl('check'))[1], qr/^unknown +libvirt /m, 'check does not know about libvirt');
        like((ctl('check'))[1], qr/^warning +daemon /m, 'but that no daemon answers');
        like((ctl('check'))[1], qr/^ok +iommu /m,       'it looks at the node, not at this machine');
        like((ctl('suggest'))[1], names('Tesla', '0000:82:00.0'), 'so does suggest');

        ($status, $said, $err) = overview('--node', "$ENV{BUILD}/nodes/paper-testbed.tree");
        is($status, 0, 'a recorded node') or diag($err);
        is($said->{Pools}, 'none', 'without a configuration');
        like($said->{Next}, qr/^passthroughctl suggest/, 'the first command prints one');
}
is((ctl('--json'))[0], 2, 'it is no JSON');

done_testing();
