#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl topology: what is drawn is what the daemon says, its trees fit the terminal, and are plain where there is none.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Encode qw(decode);
use Test::More;

use Bus;
use Node;

use constant LONG => 'a-training-run-with-a-name-much-longer-than-its-column';

node('hgx-h100');

my $bus = Bus->new->listen;

delete $ENV{COLUMNS};

# Lines of passthroughctl topology ARGUMENTS as characters, without a terminal.
sub drawn {
        my ($locale, @arguments) = @_;
        local $ENV{LC_ALL} = $locale;
        my ($status, $out, $err) = ctl('topology', @arguments);
        is($status, 0, "topology @arguments, $locale") or diag($err);
        return split /\n/, decode('UTF-8', $out);
}

# The same on a terminal of so many columns.
sub on_terminal {
        my ($columns, $environment, @arguments) = @_;
        my $out = qx(script -qec "stty cols $columns; $environment LC_ALL=C.UTF-8 passthroughctl topology @arguments" /dev/null </dev/null);
        return split /\r?\n/, decode('UTF-8', $out);
}

sub plain { my (@lines) = @_; return map { s/\033\[[\d;]*m//gr } @lines }
sub widest { my (@lines) = @_; my ($most) = sort { $b <=> $a } map { length } plain(@lines); return $most }

# The line of a device, its branches taken off.
sub line_of { my ($address, @lines) = @_; my ($line) = grep { /\b\Q$address\E\b/ } plain(@lines); return ($line // '') =~ s/^\W*//r }

is(allocate($bus, 'vm7', gpu => 2, rdma => 2, cpus => 32, memory => 200 * 2**30, proximity => 'switch'), 'done', 'an allocation');
is(allocate($bus, LONG, gpu => 1, rdma => 3, cpus => 8, memory => 64 * 2**30, 'page-size' => 2**30), 'done', 'one with a long name');

my $node   = describe($bus);
my %device = map { $_->{address} => $_ } @{ $node->{devices} };
my @lines  = drawn('C.UTF-8');

# What it says of devices.
for my $gpu (grep { ($_->{pool} // '') eq 'gpu' } @{ $node->{devices} }) {
        my ($address, $pool, $state, $holder) = split ' ', line_of($gpu->{address}, @lines);
        is($state, $gpu->{state}, "$gpu->{address}: state");
        is($holder, $gpu->{allocation} // '-', "$gpu->{address}: holder");
}
for my $pf (grep { @{ $_->{virtual_functions} // [] } } @{ $node->{devices} }) {
        my @vfs   = map { $device{$_} } @{ $pf->{virtual_functions} };
        my $free  = grep { $_->{state} eq 'available' } @vfs;
        my $taken = grep { defined $_->{allocation} } @vfs;
        my ($at)  = grep { $lines[$_] =~ /$pf->{address}/ } 0 .. $#lines;
        like($lines[$at + 1], qr/\b16 VFs +rdma +$free available/, "$pf->{address}: its VFs in one line");
        like($lines[$at + 1], $taken ? qr/ $taken in \S/ : qr/ - *$/, "$pf->{address}: and who has them");
}
ok(!(grep { /0000:00:1f\.0|0000:10:01\.0|0000:12:00\.0/ } @lines), 'no parts of the platform, no ports that lead to one thing');
ok((grep { /^pci0000:10 +switch 0000:11:00\.0$/ } @lines), 'a switch is named with its root complex');

# Which node they are under, and what is left there.
my $section;
my %under;
for (@lines) {
        $section = $1 if /^NUMA node (\w+)/;
        $under{$1} = $section if /(0000:..:..\..) /;
}
is($under{$_}, $device{$_}{numa_node}, "$_ is drawn under its node") for grep { ($device{$_}{pool} // '') eq 'gpu' } sort keys %device;
for my $numa (@{ $node->{nodes} }) {
        my ($at) = grep { $lines[$_] =~ /^NUMA node $numa->{id}\b/ } 0 .. $#lines;
        my $text = join "\n", @lines[$at .. $at + 5];
        my $gib  = int $numa->{memory_free} / 2**30;
        like($text, qr/memory +\d+ GiB: $gib free/, "node $numa->{id}: free memory as in Describe");
        my ($huge) = grep { $_->{size} == 2**30 } @{ $numa->{pages} };
        like($text, qr/hugepages $huge->{total} of 1 GiB: $huge->{free} free/, "node $numa->{id}: free hugepages");
        my %pool;
        for (grep { defined $_->{pool} && ($_->{numa_node} // -1) == $numa->{id} } @{ $node->{devices} }) {
                $pool{ $_->{pool} }[0] += $_->{state} eq 'available';
                $pool{ $_->{pool} }[1]++;
        }
        like($text, qr/available .*\b${\$pool{$_}[0]} of ${\$pool{$_}[1]} $_\b/, "node $numa->{id}: what is left of pool $_") for sort keys %pool;
}
like((join "\n", @lines), qr/cores +56: 35 free, 20 allocated, 1 housekeeping/, 'cores, not threads, are counted');

# --all has every device, on a line of its own.
my @all = map { /(0000:..:..\..)/ ? $1 : () } drawn('C.UTF-8', '--all');
is_deeply([sort @all], [sort keys %device], '--all draws every device once');

# As wide as the terminal. The lines above a tree are as long as they are.
my $row = qr/0000:\w\w:|\bVFs? /;
cmp_ok(widest(drawn('C', '--matrix', '--all')), '>', 80, 'without a terminal nothing is cut');
ok((grep { index($_, LONG) >= 0 } @lines), 'not even a long name');
ok(!(grep { /[^\x20-\x7e]/ } drawn('C')), 'only ASCII where the locale has nothing else');
for my $columns (60, 80, 190) {
        my @terminal = on_terminal($columns, '');
        cmp_ok(widest(grep { $_ =~ $row } @terminal), '<=', $columns, "a terminal of $columns columns");
        is_deeply([map { /(0000:..:..\..) / } plain(@terminal)], [map { /(0000:..:..\..) / } @lines], '... has all devices');
}
ok((grep { index($_, LONG) >= 0 } on_terminal(190, '')), 'a wide one is made use of');
cmp_ok(widest(grep { $_ =~ $row } on_terminal(150, 'COLUMNS=70')), '<=', 70, 'COLUMNS is obeyed on a terminal');
{
        local $ENV{COLUMNS} = 60;
        ok((grep { index($_, LONG) >= 0 } drawn('C.UTF-8')), 'it cuts nothing without one');
}

# Colours.
ok(!(grep { /\033/ } @lines), 'no colours without a terminal');
ok((grep { /\033\[32m/ } on_terminal(80, '')), 'colours on a terminal');
ok((grep { /\033\[32m/ } on_terminal(80, 'NO_COLOR=')), 'and with an empty NO_COLOR');
ok(!(grep { /\033/ } on_terminal(80, 'NO_COLOR=1')), 'but not with NO_COLOR');
is_deeply([map { s/ +$//r } plain(on_terminal(200, ''))], [map { s/ +$//r } @lines], 'apart from that it is the same');

# JSON is the daemon's.
my ($status, $json) = ctl('topology', '--json');
is($json, $bus->call('DescribeTopology')->{body}[0] . "\n", '--json prints what DescribeTopology returns');
my $topology = ctl_json('topology');
is(scalar @{ $topology->{devices} }, scalar keys %device, 'with all devices');

# The matrix: as drawn, as in JSON, and as the planner has it.
my $matrix = $topology->{matrix};
my (%distance, %label, %affinity, @columns);
for my $i (0 .. $#{ $matrix->{devices} }) {
        $distance{ $matrix->{devices}[$i] }{ $matrix->{devices}[$_] } = $matrix->{distances}[$i][$_] for 0 .. $#{ $matrix->{devices} };
}
my @drawn = drawn('C', '--matrix');
for (@drawn) { $label{$1} = $2 if /^((?:GPU|NIC)\d+) +(0000:\S+) / }
is(scalar keys %label, 16, 'eight GPUs and eight NICs, the others are in no pool');
my ($wrong, $cells) = (0, 0);
for (@drawn) {
        if (/^ +(?:GPU|NIC)/) { @columns = split; next }
        next if !/^(?:GPU|NIC)\d+ +(?:X|PIX|PXB|PHB|NODE|SYS)\b/;
        my ($row, @words) = split;
        my ($cpus) = grep { $columns[$_] eq 'CPU' } 0 .. $#columns;
        $affinity{$row} = join ' ', splice @words, $cpus, 2 if defined $cpus;
        for my $i (0 .. $#words) {
                $cells++;
                $wrong++ if $words[$i] ne $distance{ $label{$row} }{ $label{ $columns[$i] } };
        }
}
is($cells, 256, 'each with each');
is($wrong, 0,   'the words are those of the document');
is_deeply([@affinity{qw(GPU0 NIC3 GPU4 NIC7)}], ['0-55,112-167 0', '0-55,112-167 0', '56-111,168-223 1', '56-111,168-223 1'], 'CPU and NUMA affinity');
is(scalar keys %affinity, 16, '... of each device, once');
release_all($bus);
my $plan = ctl_json('plan', 'gpu=8', 'rdma=8');
is(scalar @{ $plan->{pairs} }, 8, 'a plan with pairs');
for my $pair (@{ $plan->{pairs} }) {
        my $pf = $device{ $pair->{nic} }{physical_function};
        is($distance{ $pair->{gpu} }{$pf}, $pair->{distance}, "$pair->{gpu} and $pair->{nic}: the planner's distance");
}
like((join "\n", @drawn), qr/^GPU0-NIC0: redirected by ACS at 0000:12:01\.0, 0000:12:00\.0; ATS of 0000:14:00\.0\n  off$/m, 'as below the matrix');
is_deeply([map { $_->{path}{peer_to_peer} } @{ $matrix->{pairs} }], [('redirected') x 8], 'of pairs below one root port');
is(scalar(grep { /^(?:X|PIX|PXB|PHB|NODE|SYS) +\S/ } @drawn), 6, 'with a legend');
like($drawn[-1], names(qr/^\d+\b/, '--all'), 'and how many are left out');
my @both = drawn('C', '--matrix', '--all');
is(scalar(grep { /^(?:GPU|NIC)\d+ +0000:\S+ / } @both), scalar @{ $matrix->{devices} }, '--matrix --all has them too');

# Many devices come in blocks as wide as the page, which has no end to be cut.
is(system("$FindBin::Bin/../nodes/generate 1024 >$ENV{NODE_TMP}/1024.tree && print-node $ENV{NODE_TMP}/1024.tree >$ENV{NODE_TMP}/many.tree"), 0, 'a node of 1024 functions');
for my $columns (undef, 10, 60, 400) {
        local $ENV{COLUMNS} = $columns // 'none';
        my @many = drawn('C', '--matrix', '--node', "$ENV{NODE_TMP}/many.tree");
        my ($end) = grep { $many[$_] =~ /DEVICE/ } 0 .. $#many;
        my $widest = widest(@many[0 .. $end - 1], grep { /^ *(?:GPU|NIC)\d+-/ } @many);
        my ($heads, $words) = (0, 0);
        for (@many[0 .. $end - 1]) {
                $heads += () = /(?:GPU|NIC)\d+/g if /^ /;
                $words += () = /\b(?:X|PIX|PXB|PHB|NODE|SYS)\b/g;
        }
        is("$heads $words", '64 4096', ($columns // 'no') . ' columns: 64 devices, each with each');
        cmp_ok($widest, '<=', $columns // 80, '... and no line is longer') if ($columns // 80) >= 60;
}

# CPUs that alternate between the NUMA nodes.
my $alternate = "[proc]\ncmdline=ro\n";
for my $numa (0, 1) {
        $alternate .= "[sys/devices/system/node/node$numa]\ncpulist=" . join(',', map { 2 * $_ + $numa } 0 .. 9, 20) . "\n";
        $alternate .= "[sys/devices/pci0000:0$numa/0000:0$numa:01.0]\nvendor=0x10de\ndevice=0x2330\nclass=0x030200\nnuma_node=$numa\n";
}
spew("$ENV{NODE_TMP}/hand-written.tree", $alternate);
is(system("print-node $ENV{NODE_TMP}/hand-written.tree >$ENV{NODE_TMP}/alternate.tree"), 0, 'a node with alternating CPUs');
is_deeply([map { /^GPU\d +(?:X|SYS) +(?:X|SYS) +(\S+ \S+)$/ ? $1 : () } map { s/ +/ /gr } drawn('C', '--matrix', '--node', "$ENV{NODE_TMP}/alternate.tree")],
        ['0-18:2,40 0', '1-19:2,41 1'], 'a step stands for their gaps');

# A device that is gone is still drawn, with its holder.
is(allocate($bus, 'gone', gpu => 1), 'done', 'an allocation of one GPU');
my $lost = allocation($bus, 'gone')->{devices}[0]{address};
fault("remove sys/bus/pci/devices/$lost");
is(($bus->call('Rescan')->{error}) // '', '', 'which is taken out');
@lines = drawn('C');
my ($missing) = grep { $lines[$_] =~ /^Missing: / } 0 .. $#lines;
ok(defined $missing, 'there is a section for it');
like($lines[-1], qr/\Q$lost\E +gpu +missing +gone +- +10de:2330$/, 'that says who has it');

# No arguments.
is((ctl('topology', 'x'))[0],            2, 'an argument is none of its business');
is((ctl('list', '--matrix'))[0],         2, '--matrix is no option of others');

done_testing();
