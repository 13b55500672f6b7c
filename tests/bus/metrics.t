#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl metrics: another parser reads it, and its numbers are those of the daemon.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;

my $python = '/usr/bin/python3';
plan skip_all => 'no python3-prometheus-client' if system("$python -c 'import prometheus_client.openmetrics.parser' 2>/dev/null") != 0;
node('paper-testbed', configure => 1);

my $gpu  = '0000:82:00.0';
my $READ = <<'END';
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as families
print(json.dumps([[f.type, s.name, s.labels, s.value] for f in families(sys.stdin.read()) for s in f.samples]))
END

# Of the samples with that name: the labels, "key=value" sorted, to the value.
sub samples {
        my (%found, %type);
        open my $in, '-|', 'sh', '-c', 'passthroughctl metrics | "$0" -c "$1"', $python, $READ or die "sh: $!";
        my $read = JSON::XS->new->decode(do { local $/ = undef; <$in> // '[]' });
        close $in;
        is($?, 0, 'the text is OpenMetrics');
        for (@$read) {
                my ($type, $name, $labels, $value) = @$_;
                $found{ $name =~ s/^passthroughd_//r }{ join ',', map { "$_=$labels->{$_}" } sort keys %$labels } = $value;
        }
        return \%found;
}

my $config = slurp("$FindBin::Bin/../nodes/paper-testbed.conf");
configure($config);
my $bus = Bus->new->listen;
my $now = samples();
is_deeply($now->{devices}, { 'numa_node=1,pool=gpu,state=available' => 1, 'numa_node=1,pool=ib-vf,state=available' => 4 }, 'devices by pool, node and state');
is($now->{allocations}, undef, 'no allocations');
is($now->{epoch}{''}, $bus->properties(Bus::PATH, Bus::MANAGER)->{Epoch}, 'the epoch');

is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
fault('reset', 'fail 1 EIO');
is(allocate($bus, 'broken', 'ib-vf' => 1), 'failed', 'one that fails');
fault('reset');
$now = samples();
is_deeply($now->{devices}, {
        'numa_node=1,pool=gpu,state=allocated'   => 1,
        'numa_node=1,pool=ib-vf,state=allocated' => 1,
        'numa_node=1,pool=ib-vf,state=available' => 3,
}, 'devices') or diag(explain($now->{devices}));
is_deeply($now->{allocations}, { 'state=ready' => 1 }, 'allocations by state') or diag(explain($now->{allocations}));
is_deeply({ map { $_ => $now->{job_duration_seconds_count}{$_} } keys %{ $now->{job_duration_seconds_count} } },
        { 'result=done,verb=prepare' => 1, 'result=failed,verb=prepare' => 1 }, 'ended jobs');
cmp_ok($now->{job_duration_seconds_sum}{'result=done,verb=prepare'}, '>', 0, 'which took some time');
for my $node (@{ describe($bus)->{nodes} }) {
        my $label = "numa_node=$node->{id}";
        is_deeply([map { $now->{$_}{$label} } qw(memory_bytes memory_free_bytes)], [@{$node}{qw(memory memory_free)}], "memory of node $node->{id}");
        is_deeply({ map { /^\Q$label\E,page_size=(.*)/ ? ($1 => $now->{pages}{$_}) : () } keys %{ $now->{pages} } },
                { map { $_->{size} => $_->{total} } @{ $node->{pages} } }, "pages of node $node->{id}");
}
is_deeply($now->{cpus}, { 'numa_node=0' => 8, 'numa_node=1' => 8 }, 'CPUs');
is_deeply($now->{cpus_free}, { 'numa_node=0' => 8, 'numa_node=1' => 6 }, 'free CPUs');
is_deeply([map { $now->{$_}{''} } qw(read_only unhealthy_devices quarantined_devices)], [0, 0, 0], 'the health of the node');
is($now->{slots}, undef, 'no service has slots');
spew("$ENV{NODE_TMP}/passthroughd.conf", "$config\n[Service remote-gpu]\nKind=lupine\nEndpoint=a.example.org:1 slots=3\nEndpoint=b.example.org:1 slots=0\n");
is($bus->call('Reload')->{error}, undef, 'reloaded');
is(allocate($bus, 'remote', 'remote-gpu' => 2, cpus => 1, memory => 2**30), 'done', 'two slots are allocated');
is_deeply(samples()->{slots}, { map { ("pool=remote-gpu,state=$_->[0]" => $_->[1]) } ['available', 1], ['allocated', 2], ['reserved', 0], ['out_of_service', 0] }, 'slots by pool and state');
is((ctl('metrics', '--json'))[0], 2, 'there is no JSON');

done_testing();
