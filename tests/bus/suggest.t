#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl suggest: what it prints for recorded nodes is accepted and of use there; plans on recorded nodes use VFs that a daemon
# would create.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/..";

use Cwd ();
use File::Temp qw(tempdir);
use JSON::XS;
use Suggestion;
use Test::More;

use Node qw(names slurp spew ctl);

my $source = Cwd::abs_path("$FindBin::Bin/../..");
my $build  = Cwd::abs_path($ENV{BUILD} // "$source/build");
plan skip_all => "$build is not built" if !-x "$build/passthroughctl";
$ENV{PATH} = "$build:$ENV{PATH}";
# In memory: a disk is slow to make again what it just removed.
my $tmp = $ENV{NODE_TMP} = $ENV{TMPDIR} = tempdir(CLEANUP => 1, -w '/dev/shm' ? (DIR => '/dev/shm') : ());
$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/nonexistent/bus';

for my $node (sort glob "$build/nodes/*.tree") {
        my ($name) = $node =~ m{([^/]+)\.tree$};
        chomp(my $root = qx($build/tests/tree-tool unpack $node));
        is_deeply([Suggestion::problems('passthroughctl', $root, "$tmp/$name.conf")], [], "$name: a configuration that fits");
        system("$build/tests/tree-tool", 'remove', $root);
}
is_deeply([glob "$tmp/passthrough-*"], [], 'no unpacked files are left');

# An FPGA is no GPU, and AMD's GPUs of the same class are some.
my $accelerators = slurp("$source/tests/nodes/accelerators.tree") =~ s/^%include (?=[^\n]+)/%include $source\/tests\/nodes\//mr;
for my $case ([$accelerators, [qw(accelerator accelerator gpu gpu)], 2], [$accelerators =~ s/^vendor=0x10ee\ndevice=0x500./vendor=0x1002\ndevice=0x74a1/mgr, [qw(gpu gpu gpu)], 4]) {
        my ($text, $kinds, $gpus) = @$case;
        spew("$tmp/source.tree", $text);
        is(system("$build/tests/print-node $tmp/source.tree >$tmp/accelerators.tree"), 0, 'a node with accelerators');
        my @node = ('--node', "$tmp/accelerators.tree");
        my $suggested = (ctl('suggest', @node))[1];
        is_deeply([sort map { s/-.*//r } grep { !/^nic/ } $suggested =~ /^\[Pool (.*)\]$/mg], $kinds, 'the names of its pools say what they have');
        spew("$tmp/accelerators.conf", $suggested);
        my @labels = sort { $a cmp $b } (ctl(qw(topology --matrix), @node, '--config', "$tmp/accelerators.conf"))[1] =~ /^([A-Z]+\d) +0000:9/mg;
        is(scalar(grep { /^GPU/ } @labels), $gpus - 1, 'as its matrix does') or diag("@labels");
}

# Where everything is well, a GPU and a VF that does not exist yet.
my $hgx = "$build/nodes/hgx-h100.tree";
is_deeply([grep { length > 80 } split /\n/, (ctl('suggest', '--node', $hgx))[1]], [], 'hgx-h100: a terminal of 80 columns wraps no comment');
my ($status, $out, $err) = ctl('plan', 'gpu=1', 'nic=1', '--node', $hgx, '--config', "$tmp/hgx-h100.conf");
is($status, 0, 'hgx-h100: a GPU and a NIC') or diag($err);
my ($vf) = $out =~ /^nic0 +(\S+)/m;
like($out, qr/^Assumed: +\Q$vf\E /m, 'the plan says what it assumes');
like((ctl('explain', $vf, '--node', $hgx, '--config', "$tmp/hgx-h100.conf"))[1], names('VirtualFunctions='), 'and so does explain');

# The daemon's plan, which has VFs that exist.
my @request = qw(gpu=2 rdma=2 --cpus 32 --memory 200G --proximity switch --json);
($status, $out) = ctl('plan', @request, '--node', $hgx, '--config', "$source/tests/nodes/hgx-h100.conf");
my $plan = JSON::XS->new->decode($out);
my @got  = map { "$_->{slot} $_->{role} $_->{pool} $_->{address} -> $_->{guest_address}" } @{ $plan->{devices} };
is_deeply(\@got, [slurp("$source/tests/nodes/golden/hgx-h100-switch.plan") =~ /^ +"(\w+ assigned .*)",?$/mg], 'the devices that a daemon would choose');
is(scalar @{ $plan->{assumptions} }, 2, 'two of which do not exist');

# This machine, whatever it is like.
($status, $out, $err) = ctl('suggest');
is_deeply([$status, $err], [0, ''], 'this machine');
like($out, qr/^\[Daemon\]$/m, 'has a suggestion too');
like((ctl(qw(suggest --node /nonexistent)))[2], names('/nonexistent'), 'no such node is named');
is((ctl(qw(suggest --json)))[0], 2, 'a configuration is no JSON');
like((ctl(qw(suggest x.conf)))[2], qr/> x\.conf/, 'where to write it');

done_testing();
