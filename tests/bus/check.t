#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl check: what it finds on recorded nodes, without a daemon and without a bus, as text and as JSON.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Temp qw(tempdir);
use JSON::XS;
use Test::More;

use Node qw(names slurp spew ctl);

my $source = Cwd::abs_path("$FindBin::Bin/../..");
my $build  = Cwd::abs_path($ENV{BUILD} // "$source/build");
plan skip_all => "$build is not built" if !-x "$build/passthroughctl";
$ENV{PATH} = "$build:$ENV{PATH}";
my $tmp = $ENV{NODE_TMP} = $ENV{TMPDIR} = tempdir(CLEANUP => 1);
$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/nonexistent/bus';
delete $ENV{COLUMNS};

# The exit status, the worst result, and the results of each check as "warning failure".
sub check {
        my ($node, $conf) = @_;
        my @words = ('check', '--node', $node, $conf ? ('--config', $conf) : ());
        my ($status, $out, $err) = ctl(@words, '--json');
        my $report = eval { JSON::XS->new->decode($out) } // {};
        my %results;
        push @{ $results{ $_->{check} } }, $_->{result} for @{ $report->{findings} };
        my ($text_status, $text) = ctl(@words);
        is($text_status, $status, "$node: the same status without --json");
        is_deeply([$text =~ /^(ok|unknown|warning|failure) +(\w+) /mg], [map { @$_{qw(result check)} } @{ $report->{findings} }], 'and the same findings');
        my @lines = split /\n/, $text;
        is_deeply([grep { length > 80 && /^.{24}.* / } @lines], [], '... in lines of 80 columns');
        is_deeply([split ' ', $text], [map { split } map { ("@$_{qw(result check message)}", $_->{remedy} // ()) } @{ $report->{findings} }], '... which lose no word');
        return ($status, $report->{result}, { map { $_ => "@{ $results{$_} }" } keys %results }, $report->{findings});
}

my $READY = "[Daemon]\nHousekeepingCpus=0\n[Pool gpu]\nMatch=vendor=10de class=0302\n";
my $pages = join '', map { "sys/devices/system/node/node$_/hugepages/hugepages-1048576kB/nr_hugepages=4\n" . "sys/devices/system/node/node$_/hugepages/hugepages-1048576kB/free_hugepages=4\n" } 0, 1;
spew("$tmp/ready.conf", $READY);
my $recorded = "$build/nodes/paper-testbed.tree";
spew("$tmp/ready.tree", slurp($recorded) . $pages);

my ($status, $result, $of, $findings) = check("$tmp/ready.tree", "$tmp/ready.conf");
is_deeply([$status, $result], [0, 'ok'], 'a ready node') or diag(map { "$_->{check}: $_->{message}\n" } grep { $_->{result} ne 'ok' } @$findings);

spew("$tmp/off.tree", slurp("$tmp/ready.tree") =~ s/^(proc\/cmdline=.*)$/$1 intremap=off/mr);
($status, $result, $of) = check("$tmp/off.tree", "$tmp/ready.conf");
is_deeply([$status, $result, $of->{interrupts}], [2, 'failure', 'failure'], 'interrupt remapping is off');

($status, $result, $of) = check("$build/nodes/hgx-h100.tree", "$source/tests/nodes/hgx-h100.conf");
is_deeply([$status, $result], [1, 'warning'], 'a node with warnings');
like($of->{sriov}, qr/^warning/, 'VFs that do not exist yet');

($status, $result, $of, $findings) = check("$build/nodes/edge-noiommu.tree", "$source/tests/nodes/edge-noiommu.conf");
is_deeply([$status, $result, $of->{iommu}], [2, 'failure', 'failure'], 'a node without an IOMMU');
ok(!(grep { $_->{result} eq 'ok' && defined $_->{remedy} } @$findings), 'what is well needs no remedy');
ok((grep { $_->{check} eq 'iommu' && $_->{remedy} } @$findings), 'the IOMMU does');

spew("$tmp/twice.conf", "${READY}[Pool pf]\nMatch=address=0000:83:00.0\n[Pool vf]\nMatch=vendor=15b3 type=vf\n");
($status, $result, $of) = check($recorded, "$tmp/twice.conf");
is_deeply([$status, $of->{configuration}], [2, 'failure'], 'a configuration that a daemon refuses is a finding');

my ($no_status, $out, $err) = ctl(qw(check --node /nonexistent));
is_deeply([$no_status, $out], [2, ''], 'no such node');
like($err, names('/nonexistent'), 'is named');
is_deeply([glob "$tmp/passthrough-*"], [], 'no unpacked files are left');

# This machine, whatever it is like: each check says something.
my ($here, $json) = ctl(qw(check --json));
my $report = JSON::XS->new->decode($json);
is({ ok => 0, warning => 1, failure => 2 }->{ $report->{result} }, $here, 'this machine: the status is the result');
is((grep { $_->{check} eq 'iommu' } @{ $report->{findings} }) > 0, 1, 'and the IOMMU is checked');

done_testing();
