#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that is promised is not promised again: guests that do not run yet will take theirs from what is free now.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('paper-testbed', configure => 1);

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
configure("[Pool gpu]\nMatch=address=$gpu\n[Pool vf]\nMatch=address=$vf\n");
my $bus    = Bus->new->listen;
my $nodes  = 'sys/devices/system/node';
my $pool   = "$nodes/node1/hugepages/hugepages-1048576kB";

# The domain that runs with the GPU.
sub runs { my ($state) = @_; return libvirt_reports($bus, running_domain('guest', UUID, $gpu) =~ s/running/$state/r) }

sub rescan { return !$bus->call('Rescan')->{error} }

# Pages of node 1 that can be had, by Describe.
sub pages_left {
        my ($node) = grep { $_->{id} == 1 } @{ describe($bus)->{nodes} };
        return (grep { $_->{size} == 2**30 } @{ $node->{pages} })[0]{free};
}

sub refused {
        my ($what, $words, @request) = @_;
        my ($tree, $state) = (tree(), snapshot(times => 1));
        fault('reset');
        my ($error, $message) = allocate($bus, 'b', @request);
        is($error, 'org.passthroughd1.Error.Insufficient', "$what: refused");
        like($message // '', $words, "$what: the refusal has the numbers");
        ok(!plan_ok($bus, @request), "$what: Plan says the same");
        nothing_written("$what: nothing is written");
        same_tree($tree, "$what: the tree stays");
        same_state($state, "$what: and the ledger", times => 1);
        release_all($bus) if $error eq 'done';
        return;
}

sub given {
        my ($what, @request) = @_;
        is((allocate($bus, 'b', @request))[0], 'done', "$what: allocated");
        is((release($bus, 'b'))[0], 'done', "$what: and released");
        return;
}

# ---- hugepages: four on the node, two promised, two taken by another process

my @pages = (cpus => 2, memory => 2 * 2**30, 'page-size' => 2**30);
fault("set $pool/nr_hugepages 4", "set $pool/free_hugepages 4");
ok(rescan(), 'node 1 has four pages');
is((allocate($bus, 'a', gpu => 1, @pages))[0], 'done', 'two are promised to a');
is(pages_left(), 2, 'two can be had');
given('nobody else uses any', @pages);

fault("set $pool/free_hugepages 2");
refused('a process took the others', names(1, 4, 2, 'a'), @pages);
is(pages_left(), 0, 'and so says Describe');

runs('starting');
refused('the guest of a is starting', names(2, 'a'), @pages);
runs('running');
given('the guest of a runs and has its pages', @pages);
is(pages_left(), 2, 'and so says Describe');

write_raw("die\n");
kill 'KILL', libvirt_process();
ok(wait_until(sub { describe($bus)->{libvirt}{reason} }), 'libvirt is lost');
refused('which guests run is unknown', names(2, 'a'), @pages);
my $group = device($bus, $gpu)->{iommu_group};
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
given('which guests run is unknown, but a process has the GPU of a open', @pages);
fault('remove proc/4242');

libvirt_reports($bus);
refused('the guest of a ended', names(2, 'a'), @pages);
fault("set $pool/free_hugepages 4");
given('the other process is gone', @pages);
is((release($bus, 'a'))[0], 'done', 'a is released');

# ---- two guests that libvirt does not tell of

fault("set $pool/nr_hugepages 6", "set $pool/free_hugepages 6");
is((allocate($bus, 'a', gpu => 1, @pages))[0], 'done', 'two of six pages are promised to a');
is((allocate($bus, 'c', vf => 1, @pages))[0], 'done', 'and two to c');
fault("set $pool/free_hugepages 2");
refused('no guest is known to run', names(4, 'a', 'c'), @pages);
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
refused('a process has the GPU of a open', names(2, 'c'), @pages);
fault('set proc/4343/comm qemu-system-x86', "link proc/4343/fd/7 /dev/vfio/" . device($bus, $vf)->{iommu_group});
given('another one has the VF of c open', @pages);
fault('remove proc/4242', 'remove proc/4343');
is((release($bus, $_))[0], 'done', "$_ is released") for qw(a c);

fault("set $pool/nr_hugepages 0", "set $pool/free_hugepages 0");

# ---- ordinary memory: 24 GiB on each node, one of them reserved

sub meminfo {
        my ($node, %kib) = @_;
        $kib{MemTotal} //= 24 << 20;
        return "set $nodes/node$node/meminfo " . join '\\n', map { sprintf 'Node %d %-16s%8d kB', $node, "$_:", $kib{$_} } sort keys %kib;
}

my @memory = (cpus => 2, memory => 10 * 2**30, numa => 'required', gpu => 1);
my @plain  = (cpus => 2, memory => 10 * 2**30);
fault(meminfo(0, MemFree => 2 << 20), meminfo(1, MemFree => 2 << 20, 'Active(file)' => 4 << 20, 'Inactive(file)' => 12 << 20, SReclaimable => 3 << 20));
given('the page cache can be dropped', @plain);
is((allocate($bus, 'a', @memory))[0], 'done', 'ten GiB are promised to a');
fault(meminfo(1, MemFree => 2 << 20, 'Inactive(file)' => 10 << 20, SReclaimable => 1 << 20));
refused('other processes use more than the reserve', names(1, '24 GiB', '13 GiB', '10 GiB', 'a'), @plain);
runs('running');
given('the guest of a has its memory', @plain);
libvirt_reports($bus);
fault(meminfo(0), meminfo(1));
given('a recording does not say what is free', @plain);
is((release($bus, 'a'))[0], 'done', 'a is released');

done_testing();
