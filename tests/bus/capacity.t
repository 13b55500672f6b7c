#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Pools and NUMA nodes as objects. A client that reads them once and then only follows the signals knows what a new client reads, whatever
# happens to the node. CAPACITY_SEED=N repeats a run, CAPACITY_ROUNDS=N makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $seed   = $ENV{CAPACITY_SEED}   // int rand 2**31;
my $rounds = $ENV{CAPACITY_ROUNDS} // 60;
srand $seed;
diag("CAPACITY_SEED=$seed CAPACITY_ROUNDS=$rounds");

my ($gpu, $nic) = qw(0000:82:00.0 0000:83:00.0);
my $gpu_path = "sys/devices/pci0000:80/0000:80:02.0/$gpu";
my $config   = "$ENV{NODE_TMP}/passthroughd.conf";
my $pools    = "[Daemon]\nAfterRelease=restore\n[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf pf=$nic\n";
my $online   = slurp("$ENV{NODE_ROOT}/sys/devices/system/cpu/online") =~ s/\n//r;
configure($pools);
my ($root, $ear, $shown) = (Bus->new->listen, Bus->new->listen, {});

# ---- the client that listens

sub is_capacity { return $_[0] =~ m{^/org/passthroughd1/(?:pool|node)/} }

sub managed { return $_[0]->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects')->{body}[0] }

sub jobs { return grep { m{/job/} } keys %{ managed($_[0]) } }

sub objects {
        my $all = managed($_[0]);
        my %found;
        for my $path (grep { is_capacity($_) } keys %$all) {
                $found{$path} = { map { %{ $all->{$path}{$_} } } grep { /^org\.passthroughd1/ } keys %{ $all->{$path} } };
        }
        return \%found;
}

sub epoch { return $_[0]->properties(Bus::PATH, Bus::MANAGER)->{Epoch} }

my ($epoch, $told, %times, @twice) = (0, 0);

sub follow {
        my ($signal) = @_;
        my ($member, $path, @body) = ($signal->{member}, $signal->{path}, @{ $signal->{body} });
        if ($member eq 'InterfacesAdded' && is_capacity($body[0])) {
                $shown->{ $body[0] } = { map { %{ $body[1]{$_} } } grep { /^org\.passthroughd1/ } keys %{ $body[1] } };
        } elsif ($member eq 'InterfacesRemoved' && is_capacity($body[0])) {
                delete $shown->{ $body[0] };
        } elsif ($member eq 'PropertiesChanged' && is_capacity($path)) {
                $shown->{$path}{$_} = $body[1]{$_} for keys %{ $body[1] };
                push @twice, $path if $times{$path}++;
                $told++;
        } elsif ($member eq 'PropertiesChanged' && $path eq Bus::PATH && exists $body[1]{Epoch}) {
                push @twice, "epoch $body[1]{Epoch} after $epoch" if $body[1]{Epoch} <= $epoch;
                $epoch = $body[1]{Epoch};
                %times = ();
        }
        return;
}

sub listen_to_all {
        $ear->ping();
        follow($_) for splice @{ $ear->{signals} };
        return;
}

# ---- what a new client reads

# By pool and count, from the states of the devices.
sub counted {
        my ($devices) = @_;
        my %counts;
        for my $device (grep { defined $_->{pool} } @$devices) {
                $counts{ $device->{pool} }{$_}++ for 'Total', { available => 'Available', allocated => 'Allocated', reserved => 'Reserved' }->{ $device->{state} } // 'OutOfService';
        }
        return \%counts;
}

# What a client reads in several calls belongs together if the epoch is the same before and after.
sub read_all {
        my ($before, @read);
        for (1 .. 1000) {
                $before = epoch($root);
                @read   = ((map { $root->call($_)->{body}[0] } qw(ListPools ListNodes)), objects($root), describe($root));
                return ($before, @read) if epoch($root) == $before;
        }
        die 'the epoch never stands still';
}

sub check {
        my ($what) = @_;
        wait_until(sub { !jobs($root) });
        my ($now, $list, $nodes, $fresh, $node) = read_all();
        my $count = counted($node->{devices});
        listen_to_all();
        my @errors;
        my $compare = sub {
                my ($name, $have, $want) = @_;
                my @texts = map { JSON::XS->new->canonical->allow_nonref->encode($_) } $have, $want;
                push @errors, "$name: $texts[0] is not $texts[1]" if $texts[0] ne $texts[1];
        };
        $compare->('the signals and the objects', $shown, $fresh);
        $compare->('the epoch', $epoch, $now) if $epoch;
        for my $pool (@$list) {
                my ($name, @numbers) = @$pool;
                my $object = $fresh->{ pop @numbers } // {};
                my @keys   = qw(Total Available Allocated Reserved OutOfService);
                $compare->("ListPools and the object of $name", \@numbers, [@{$object}{@keys}]);
                $compare->("the devices of $name", [map { $_ + 0 } @numbers], [map { $count->{$name}{$_} // 0 } @keys]);
                my ($json) = grep { $_->{name} eq $name } @{ $node->{pools} };
                my $plan = $root->call('Plan', 'a{sv}', [['devices', ['a(su)', [[$name, 1]]]], ['repeat', ['b', 1]]]);
                $compare->("what the planner offers of $name", $plan->{error} // scalar @{ JSON::XS->new->decode($plan->{body}[0])->{fits} }, $numbers[1]);
                $compare->("Describe's $name", [@{$json}{qw(total available allocated reserved out_of_service)}], [map { $_ + 0 } @numbers]);
                for my $i (1 .. 5) {
                        my $sum = 0;
                        $sum += $_->[$i] for @{ $object->{NumaNodes} };
                        $compare->("the NUMA nodes of $name", $sum, $numbers[$i - 1]);
                }
        }
        $compare->('the pools', [map { $_->[0] } @$list], [map { $_->{name} } @{ $node->{pools} }]);
        for my $one (@$nodes) {
                my ($json) = grep { $_->{id} == $one->[0] } @{ $node->{nodes} };
                my $object = $fresh->{ $one->[5] } // {};
                $compare->("memory of node $one->[0]", [@$one[3, 4]], [@{$json}{qw(memory memory_free)}]);
                $compare->("node $one->[0]", [map { $_ + 0 } @$one[0 .. 4]], [@{$object}{qw(Id Cpus CpusFree Memory MemoryFree)}]);
                $compare->("CPUs of node $one->[0]", [@$one[1, 2]], [map { cpus($json->{$_}) } qw(cpus cpus_free)]);
                $compare->("pages of node $one->[0]", $object->{Pages}, [map { [@{$_}{qw(size total free)}] } @{ $json->{pages} }]);
        }
        is_deeply(\@errors, [], $what);
        return;
}

sub cpus {
        my ($text) = @_;
        my $n = 0;
        $n += /(\d+)-(\d+)/ ? $2 - $1 + 1 : 1 for split /,/, $text // '';
        return $n;
}

sub rescan { return $root->call('Rescan')->{error} }

# ---- what may happen

sub reload { spew($config, $_[0]); return $root->call('Reload')->{error} }

my %operations = (
        allocate => sub { my $n = int rand 3; return allocate($root, "guest$n", (rand() < 0.5 ? (gpu => 1) : ()), 'ib-vf' => 1 + int rand 2, cpus => 1 + int rand 3, memory => 2**28) },
        release  => sub { return release($root, 'guest' . int rand 3) },
        fail     => sub {
                fault('reset', 'fail 1 EIO');
                my $result = release($root, 'guest' . int rand 3);
                fault('reset');
                return $result;
        },
        clear   => sub { $root->call('ClearQuarantine', 's', $_->{address}) for @{ describe($root)->{quarantine} }; return 'asked' },
        unplug  => sub { fault("remove $gpu_path") if -e "$ENV{NODE_ROOT}/$gpu_path"; return rescan() },
        plug    => sub { fault('write sys/bus/pci/rescan 1'); return rescan() },
        accept  => sub { my $name = 'guest' . int rand 3; return $root->call('Accept', 'st', $name, Node::generation($root, $name))->{error} },
        exclude => sub { return reload("$pools\[Exclude]\nMatch=address=$gpu\n") },
        add     => sub { return reload("$pools\[Pool nic]\nMatch=id=8086:1521\n") },
        less    => sub { return reload($pools =~ s/\[Pool gpu\]\n.*\n//r) },
        reload  => sub { return reload($pools) },
        offline => sub { fault('set sys/devices/system/cpu/online 0-' . int rand 8); return rescan() },
        online  => sub { fault("set sys/devices/system/cpu/online $online"); return rescan() },
        unbind  => sub { fault("write sys/bus/pci/drivers/nvidia/unbind $gpu") if driver_of($gpu) eq 'nvidia'; return rescan() },
);

$shown = objects($ear);
check('at the start');
is_deeply([sort map { s{.*/}{}r } keys %$shown], [qw(_30 _31 gpu ib_2dvf)], 'a pool or NUMA node is an object');
is_deeply($shown->{'/org/passthroughd1/pool/gpu'}{Traits}, ['gpu'], 'what all devices of a pool have in common');
is_deeply([$shown->{'/org/passthroughd1/pool/ib_2dvf'}{Models}[0][2], scalar @{ $shown->{'/org/passthroughd1/pool/ib_2dvf'}{Models} }], [4, 1], 'the models of its devices');

is(allocate($root, 'guest0', gpu => 1, 'ib-vf' => 1), 'done', 'an allocation');
check('when it is ready');
cmp_ok($told, '>', 0, 'is told');
is_deeply([@{ $shown->{'/org/passthroughd1/pool/gpu'} }{qw(Total Available Allocated Reserved OutOfService)}], [1, 0, 1, 0, 0], 'its GPU is allocated');
is_deeply([map { { %$_{qw(name total available allocated reserved out_of_service)} } } grep { $_->{name} eq 'gpu' } @{ ctl_json('pools')->{pools} }],
        [{ name => 'gpu', total => 1, available => 0, allocated => 1, reserved => 0, out_of_service => 0 }], 'passthroughctl pools has the same numbers');
my ($status, $out) = ctl('pools');
is($status, 0, 'and prints them');
like($out, qr/^gpu +all +1 +0 +1 +0 +0$/m, 'for all NUMA nodes');
like($out, qr/^gpu +1 +1 +0 +1 +0 +0$/m, 'and for each');
fault("remove $gpu_path");
rescan();
check('a device is missing');
is_deeply([@{ $shown->{'/org/passthroughd1/pool/gpu'} }{qw(Total Available Allocated Reserved OutOfService)}], [1, 0, 0, 0, 1], 'it still counts, as out of service');
my $before = $epoch;
$operations{plug}->();
check('it is back');
cmp_ok($epoch, '>', $before, 'the epoch grew');
$before = $epoch;
rescan();
check('nothing changed');
is($epoch, $before, 'nor did the epoch');

my @names = (qw(allocate release plug reload) x 3, sort keys %operations);
for my $round (1 .. $rounds) {
        my $name = $names[rand @names];
        my ($result) = $operations{$name}->();
        $result //= 'done';
        check("$round: $name: $result");
}
is_deeply(\@twice, [], 'each object was told once for each change');

# A new daemon begins with another epoch.
restart();
isnt(epoch($root), $epoch, 'a restarted daemon has another epoch');

done_testing();
