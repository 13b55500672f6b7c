#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Remote GPUs are counted slots of endpoints: never more than there are, whoever asks at once, whatever happens to the daemon.
# SLOT_ROUNDS=N makes the race longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::INET;
use MIME::Base64 qw(decode_base64);
use List::Util qw(shuffle);
use Test::More;

use Node;

node('paper-testbed', configure => 1);

use constant { ROUNDS => $ENV{SLOT_ROUNDS} // 25, SEED => 20261123 };
srand SEED;

# What stands for a server of GPUs: it says how many clients it has had.
system(qw(ip link set lo up)) == 0 or die 'ip';
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "listen: $!";
my $here   = '127.0.0.1:' . $server->sockport;
my $config = "$ENV{NODE_TMP}/passthroughd.conf";
my $pools  = "[Daemon]\nAfterRelease=restore\n[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\nVirtualFunctions=4\n";

sub services {
        my ($slots) = @_;
        return "$pools\[Service remote-gpu]\nKind=lupine\nEndpoint=$here slots=$slots\n[Service ib-gpu]\nKind=rcuda\nVia=ib-vf\nEndpoint=gpu2.example.org:8308 slots=3\n";
}

configure(services(2));
my $bus     = Bus->new->listen;
my %clients = map { $_ => Bus->new } qw(a b);
my $before  = tree();
my $state   = snapshot();

sub pool { my ($name) = @_; my ($found) = grep { $_->[0] eq $name } @{ $bus->call('ListPools')->{body}[0] }; return $found && "@$found[1 .. 5]" }
sub slots_of { my ($name) = @_; return join ' ', map { "$_->{pool} $_->{endpoint}=$_->{slots}" } @{ (allocation($bus, $name) // {})->{services} } }
sub reload { my ($text, $what) = @_; spew($config, $text); my $r = $bus->call('Reload'); is($r->{error}, undef, $what) or diag($r->{body}[0]); return }
sub endpoint { my ($pool) = grep { $_->{name} eq $_[0] } @{ describe($bus)->{pools} }; return $pool->{endpoints}[0] }

sub detach { my ($name, $slot) = @_; return $bus->call('Detach', 'sts', $name, Node::generation($bus, $name), $slot) }

sub refused {
        my ($what, $error, $facts, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        return is_error($bus->call('Allocate', "s$signature", 'refused', $entries), $error, $facts, $what);
}

# ---- two guests reach the server, and there is no third

is(pool('remote-gpu'), '2 2 0 0 0', 'the slots are a pool');
for my $name (qw(vm1 vm2)) {
        is(allocate($bus, $name, 'remote-gpu' => 1, cpus => 2, memory => 2**30), 'done', "$name gets a slot");
        my ($env) = (ctl('xml', $name))[1] =~ m{<entry name="opt/org[.]passthroughd1/services[.]env">([^<]*)</entry>};
        $env = decode_base64($env // '');
        is($env, "LUPINE_SERVER=$here\n", '... and is told where');
        my ($address) = $env =~ /^LUPINE_SERVER=(.*)$/m;
        my $client = IO::Socket::INET->new(PeerAddr => $address) or BAIL_OUT("$name cannot connect: $!");
        my $peer = $server->accept;
        print {$client} "$name\n";
        $client->flush;
        is(<$peer>, "$name\n", '... which it reaches');
}
is_deeply($bus->properties('/org/passthroughd1/allocation/vm1', 'org.passthroughd1.Allocation')->{Services}, [['remote-gpu', $here, 1]], 'the slots are a property');
refused('a third is refused', 'Insufficient', ['insufficient-slots', 'remote-gpu', 1, 0, 2, 'vm1', 'vm2', $here], 'remote-gpu' => 1);
is(pool('remote-gpu'), '2 0 2 0 0', '... and the pool is empty');
my ($status, $out) = ctl('pools');
like($out, qr/^remote-gpu +remote +2 +0 +2 +0 +0$/m, '... in passthroughctl pools');
($status, $out) = ctl('plan', 'ib-gpu=2', '--repeat');
like($out, qr/^ +1[.] .*, 2 of gpu2[.]example[.]org:8308$/m, 'plan --repeat shows the slots');
is((allocate($bus, 'vm1', 'remote-gpu' => 1))[0], 'org.passthroughd1.Error.NameTaken', 'a name is taken once');

# ---- what happens to the daemon

for my $signal (qw(TERM KILL)) {
        restart($signal);
        is(join('; ', map { slots_of($_) } qw(vm1 vm2)), "remote-gpu $here=1; remote-gpu $here=1", "SIG$signal: the allocations keep their slots");
        refused("SIG$signal: and there is no other", 'Insufficient', ['insufficient-slots', 'remote-gpu', $here], 'remote-gpu' => 1);
}

# ---- fewer slots than are taken, and an endpoint out of service

for my $slots (1, 0) {
        reload(services($slots), "a configuration with $slots");
        is(pool('remote-gpu'), '2 0 2 0 0', '... takes none away');
        like(endpoint('remote-gpu')->{reason}, names($slots ? (2, 1) : 0), '... and the endpoint says so');
        restart('KILL');
        is(pool('remote-gpu'), '2 0 2 0 0', '... after a restart too');
        refused('... and gives none', 'Insufficient', ['insufficient-slots', 'remote-gpu', $here, 0, $slots], 'remote-gpu' => 1);
}
reload(services(1), 'one slot is back');
is(release($bus, 'vm1'), 'done', 'vm1 is released');
refused('vm2 has the one', 'Insufficient', ['insufficient-slots', 'vm2', $here, 0, 1], 'remote-gpu' => 1);
reload($pools, 'the service is gone');
is(slots_of('vm2'), "remote-gpu $here=1", '... and vm2 keeps its slot');
is(pool('remote-gpu'), undef, '... of no pool');
refused('... which nobody else can ask for', 'NoSuchPool', ['no-such-pool', 'remote-gpu'], 'remote-gpu' => 1);
reload(services(1), 'and back');
refused('... with the slot of vm2 taken', 'Insufficient', ['insufficient-slots', 'vm2', $here], 'remote-gpu' => 1);
is(release($bus, 'vm2'), 'done', 'vm2 is released');
is(pool('remote-gpu'), '1 1 0 0 0', '... and its slot is free');

# ---- a VF for those that run over InfiniBand

is(allocate($bus, 'vm1', 'ib-gpu' => 2), 'done', 'slots by way of a pool');
is(slots_of('vm1'), 'ib-gpu gpu2.example.org:8308=2', '... are of the endpoint');
is_deeply([map { $_->{slot} } @{ allocation($bus, 'vm1')->{devices} }], ['ib-vf0'], '... with a VF');
is_error($bus->call('Attach', 'sta{sv}', 'vm1', Node::generation($bus, 'vm1'), (request('remote-gpu' => 1))[1]), 'NotSupported', ['not-supported', 'vm1', 'remote-gpu'], 'a guest is told once');
is(allocate($bus, 'vm3', 'ib-gpu' => 1, 'ib-vf' => 2, cpus => 1, memory => 2**30), 'done', 'slots and two VFs');
is($bus->result(detach('vm3', 'ib-vf0')->{body}[0]), 'done', 'one of them is detached');
is_error(detach('vm3', 'ib-vf1'), 'WrongState', ['wrong-state', 'vm3', 'ib-vf', 'ib-gpu'], '... and the last one stays with the slots');
is(scalar(@{ allocation($bus, 'vm3')->{devices} }), 1, '... untouched');
is(release($bus, 'vm3'), 'done', '... until the release');
is(allocate($bus, 'vm2', 'ib-vf' => 3), 'done', 'all VFs are taken');
refused('without a VF there is no slot', 'Insufficient', ['insufficient-devices', 'ib-vf'], 'ib-gpu' => 1);
is(pool('ib-gpu'), '3 1 2 0 0', '... and none is lost');
is(release($bus, $_), 'done', "$_ is released") for qw(vm1 vm2);

# ---- a service whose device no request can have

for my $case (['missing', 'NoSuchPool', 'no-such-pool', ''], ['nova', 'Unavailable', 'scheduled', "[Pool nova]\nMatch=class=0c03\nScheduler=nova\n"]) {
        my ($via, $error, $verdict, $more) = @$case;
        reload("$pools$more\[Service far]\nKind=lupine\nVia=$via\nEndpoint=$here slots=2\n", "Via=$via");
        is(pool('far'), '0 0 0 0 0', '... is no capacity');
        like(endpoint('far')->{reason}, names('Via=', $via), '... and the endpoint says why');
        is((grep { /far/ && /Via=/ } @{ describe($bus)->{config_problems} }), 1, '... and so does the configuration');
        refused('... and the refusal', $error, [$verdict, 'far', 'Via=', $via], 'far' => 1);
        ($status, $out) = ctl('gres');
        like($out, qr/far[^\n]*(?::|Count=)0\b|\A(?!.*far)/s, '... and Slurm gets none');
}
reload(services(1), 'the service is usable');

# ---- a lease

my ($signature, $entries) = request('remote-gpu' => 1, hold => 600);
is($bus->call('Allocate', "s$signature", 'leased', $entries)->{error}, undef, 'a slot is leased');
is(pool('remote-gpu'), '1 0 0 1 0', '... and reserved');
is(release($bus, 'leased'), 'done', '... and returned');

# ---- two clients for the last slot

my (%won, @bad);

sub round {
        my ($n) = @_;
        my ($signature, $entries) = request('remote-gpu' => 1);
        my (%serial, %reply);
        $serial{$_} = $clients{$_}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", "$_-$n", $entries) for shuffle keys %clients;
        $reply{$_} = $clients{$_}->reply($serial{$_}) for keys %clients;
        my ($winner, @others) = grep { !$reply{$_}{error} } sort keys %clients;
        my ($loser) = grep { $reply{$_}{error} } sort keys %clients;
        return 'nobody wins' if !$winner;
        return 'both win'    if @others;
        return "the loser gets $reply{$loser}{error}" if $reply{$loser}{error} ne 'org.passthroughd1.Error.Insufficient';
        return "the loser hears '$reply{$loser}{body}[0]'" if $reply{$loser}{body}[0] !~ names('remote-gpu', $here, "$winner-$n");
        my $result = $bus->result($reply{$winner}{body}[1]) // 'nothing';
        return "the job ends as $result" if $result ne 'done';
        $result = release($bus, "$winner-$n") // 'nothing';
        return "the release ends as $result" if $result ne 'done';
        $won{$winner}++;
        return;
}

for my $n (1 .. ROUNDS) {
        my $what = round($n);
        push @bad, "round $n: $what" if defined $what;
        last if @bad >= 5;
}
is_deeply(\@bad, [], ROUNDS . ' rounds: one winner, and the loser is told who') or diag(join "\n", @bad);
cmp_ok($won{$_} // 0, '>', ROUNDS / 20, "client $_ wins some of them") for sort keys %clients;
is(pool('remote-gpu'), '1 1 0 0 0', 'the slot is free');
same_tree($before, 'the node is as before');
same_state($state, 'and so is the ledger');

done_testing();
