#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl plan: fits a screen, and --paths and --steps add to it what its document has.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;

node('hgx-h100');
delete $ENV{COLUMNS};

# Standard output of passthroughctl plan ARGUMENTS.
sub planned {
        my (@arguments) = @_;
        my ($status, $out, $err) = ctl('plan', @arguments);
        is($status, 0, "plan @arguments") or diag($err);
        return $out;
}

# Each wrapped line in one.
sub unwrapped { my ($text) = @_; return $text =~ s/\n {18}(?!\d+\. |\w+-\w+: )/ /gr }

my @whole = qw(gpu=8 rdma=8 --cpus 64 --memory 400G --page-size 1G);
my $plan  = ctl_json('plan', @whole);
my $text  = planned(@whole);
my @lines = split /\n/, $text;
cmp_ok(scalar @lines, '<=', 24, 'a plan of the whole node fits a screen');
is_deeply([grep { length > 80 } @lines], [], '... and its lines fit 80 columns');
my %slot = map { $_->{address} => $_->{slot} } @{ $plan->{devices} };
for my $device (@{ $plan->{devices} }) {
        my ($row) = grep { /^$device->{slot} / } @lines;
        my @pairs = map { "$_->{distance} to $slot{ $_->{gpu} }" } grep { $_->{nic} eq $device->{address} } @{ $plan->{pairs} };
        is_deeply([(split ' ', $row)[1, 2, 3]], [$device->{address}, $device->{guest_address}, $device->{physical_function} // '-'], "$device->{slot}: where it is");
        like($row, @pairs ? qr/ \Q@pairs\E$/ : qr/ -$/, "$device->{slot}: its distance");
}
like(unwrapped($text), qr/^CPUs: +64 on nodes 0, 1: \Q$plan->{cpus}\E$/m, 'CPUs');
like(unwrapped(planned(qw(--cpus 4 --memory 1G --cells 2))), qr/^CPUs: +4 on nodes 0, 1: 1,57,113,169$/m, 'a core of each node');
like(unwrapped($text), qr/^Memory: +200 GiB on node 0, 200 GiB on node 1, pages of 1 GiB$/m, 'memory');
unlike($text, qr/config_acs|\bbind\b/, 'no setting and no step');

# The numbers of the cost, none of them by a key of the document.
for my $request ([@whole], [qw(gpu=2 rdma=3 --cpus 8 --memory 64G)], [qw(--cpus 8 --memory 64G)], [qw(gpu=1)], [qw(gpu=5 rdma=1)]) {
        my %score = %{ ctl_json('plan', @$request)->{score} };
        my ($cost) = unwrapped(planned(@$request)) =~ /^Cost: +(.*)$/m;
        unlike($cost, qr/[a-z]_[a-z]/, 'the cost is in words');
        is_deeply([sort $cost =~ /\b(\d+|PIX|PXB|PHB|NODE|SYS)\b/g], [sort grep { defined && $_ ne '0' } values %score], '... with every number that is not 0');
}

# What the cost counts, counted once more from the list of devices. A device is below DIRECTORY/PORT/SWITCH/PORT here, or below DIRECTORY/PORT without a
# switch. One of an unknown NUMA node is on that of its host bridge.
sub counted {
        my ($chosen, @node) = @_;
        my @devices = @{ ctl_json('list', @node)->{devices} };
        my %is_chosen = map { $_->{address} => 1 } grep { $_->{role} eq 'assigned' } @$chosen;
        my @taken = grep { $is_chosen{ $_->{address} } } @devices;
        my %count = (left_over => 0, vf_load => 0);
        my $switch = sub { my @path = split m{/}, $_[0]{path}; return join '/', @path[0 .. $#path - (@path > 4 ? 2 : 1)] };
        my $bridge = sub { return $_[0]{path} =~ s{/.*}{}r };
        my $is_near = sub { my ($x, $y) = @_; return defined $x->{numa_node} && defined $y->{numa_node} ? $x->{numa_node} == $y->{numa_node} : $bridge->($x) eq $bridge->($y) };
        for my $other (grep { $_->{type} ne 'vf' && $_->{state} eq 'available' && !$is_chosen{ $_->{address} } } @devices) {
                my @physical = grep { $_->{type} ne 'vf' } @taken;
                $count{left_over} += grep { $_ } (scalar grep { $switch->($_) eq $switch->($other) } @physical), (scalar grep { $is_near->($_, $other) } @physical);
        }
        for my $i (0 .. $#taken) {
                my $pf = $taken[$i]{physical_function} // next;
                $count{vf_load} += grep { ($_->{physical_function} // '') eq $pf && $_->{allocation} } @devices;
                $count{vf_load} += grep { ($_->{physical_function} // '') eq $pf } @taken[0 .. $i - 1];
        }
        return \%count;
}
my @guests = ([qw(gpu=1 rdma=4)], [qw(gpu=3 rdma=20)], [qw(rdma=30)], [qw(gpu=2 rdma=40 --cpus 4 --memory 4G)]);
for my $i (0 .. $#guests) {
        my $planned = ctl_json('plan', @{ $guests[$i] });
        is_deeply({ map { $_ => $planned->{score}{$_} } qw(left_over vf_load) }, counted($planned->{devices}), "@{ $guests[$i] }: the score counts right");
        is((ctl('allocate', "guest$i", @{ $guests[$i] }))[0], 0, '... beside it the next');
}
is((ctl('release', "guest$_"))[0], 0, "guest$_ is released") for 0 .. $#guests;

# Two devices of a group that is on two switches, both chosen: the score counts a pair from either side, but none is held.
my @edge = ('--node', "$ENV{BUILD}/nodes/edge.tree", '--config', "$FindBin::Bin/../nodes/edge.conf");
for ([[qw(--at gpu=0000:02:00.0)], 1], [[qw(nic=1 --at gpu=0000:02:00.0 --at nic=0000:0a:00.0)], 0]) {
        my ($more, $held) = @$_;
        my $edge = ctl_json('plan', 'gpu=1', @$more, @edge);
        is($edge->{score}{left_over}, (my $left = counted($edge->{devices}, @edge)->{left_over}), "@$more: the score counts right");
        my ($part) = grep { /\bswitches\b/ } split /, |\n/, unwrapped(planned('gpu=1', @$more, @edge));
        like($part, qr/\b$left\b.*\bheld\b/, '... and the cost says that held devices count');
        is((grep { $_->{role} eq 'held' } @{ $edge->{devices} }), $held, "held with @$more");
        like(unwrapped(planned('gpu=1', @$more, @edge)), $held ? qr/^Cost: .*, $held device\b.*\bheld only\b/m : qr/^Cost: (?!.*\bheld only\b)/m, '... and the cost says so');
}

my $second = ctl_json('plan', 'gpu=1')->{runner_up};
like(unwrapped(planned('gpu=1')), qr/^Runner-up: +on NUMA node $second->{numa_nodes}[0]\. \Q$second->{reason}\E$/m, 'the runner-up, and why');

# Two VFs of one PF have the same path, and a setting in common.
my @two  = qw(gpu=1 rdma=2 --proximity switch);
my $pair = ctl_json('plan', @two)->{pairs}[0];
$text = unwrapped(planned(@two, '--paths'));
is(scalar(() = $text =~ /gpu0-rdma[01]: .*0000:12:01\.0 \(SV RR CR UF\), 0000:12:00\.0 \(SV RR CR UF\); ATS of 0000:14:00\.0 off; ATS of 0000:13:00\.0 none$/mg), 2, '--paths has the path of each pair');
is(scalar(() = $text =~ /\Q$pair->{path}{setting}\E/g), 1, '... and each setting once');
unlike($text, qr/\bbind\b/, '... but no steps');

my @steps = @{ ctl_json('plan', @two)->{steps} };
$text = planned(@two, '--steps');
is_deeply([$text =~ /^(?:Steps: {12}| {18})(\d+\. .*)$/mg], [map { $_ + 1 . ". $steps[$_]" } 0 .. $#steps], '--steps has the steps in their order');
unlike($text, qr/config_acs/, '... but no settings');
is((ctl('plan', 'gpu=1', '--repeat', $_))[0], 2, "--repeat prints no plan to add to: $_") for '--paths', '--steps';

# VF attributes, and the width that is asked for.
like(planned(qw(gpu=1 rdma=1 rdma0:link=up)), qr/^Attributes: +rdma0: .*\blink=up\b/m, 'attributes of a VF');
$ENV{COLUMNS} = 60;
is_deeply([grep { length > 60 && !/^\S+ +0000:/ } split /\n/, planned(@whole)], [], 'COLUMNS is obeyed');

done_testing();
