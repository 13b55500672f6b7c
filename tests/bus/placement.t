#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-placement against a real OpenStack Placement: what Placement has is what the daemon says, whatever happens to either, and
# what other programs have there stays.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::INET;
use Test::More;

use Node;
use Nobody;
use Placement;

placement_needed();
node('hgx-h100', configure => 1);
need_nobody();

my ($gpu, $vf) = qw(CUSTOM_PCI_10DE_2330 CUSTOM_PCI_15B3_101E);
my $pools = "[Daemon]\nAfterRelease=restore\n[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool rdma]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=4\n";
my $consumer = '22222222-0000-4000-8000-000000000001';
configure($pools);
my $bus = Bus->new->listen;

sub id { my ($name) = @_; return allocation($bus, $name)->{id} }

# A claim of another program: of a resource of a provider, by name.
sub claim {
        my ($name, $class) = @_;
        return (placement('PUT', "/allocations/$consumer",
                { allocations => { placement_provider($name)->{uuid} => { resources => { $class => 1 } } }, project_id => 'p', user_id => 'u', consumer_generation => undef, consumer_type => 'INSTANCE' }))[0];
}

# ---- Placement does not answer

agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
is((agent('--once'))[0], 1, 'without Placement a comparison fails');

placement_start();

# ---- The first report

my ($status, $out) = agent('--dry-run');
is($status, 0, 'a dry run succeeds');
is_deeply([(sort keys %{ placement_tree() })], [], 'a dry run changes nothing');
is(scalar(() = $out =~ /^add provider /mg), 27, 'a dry run tells each provider: 1 root, 2 nodes, 8 switches, 8 GPUs, 8 PFs');
is((agent('--once'))[0], 0, 'the first report');
my $first = placement_tree();
is(scalar keys %$first, 27, 'Placement has the providers');
is_deeply([map { $first->{"n1_0000:$_:00.0"}{resources} } qw(13 14)], [{ $gpu => [1, 0, 0] }, { $vf => [4, 0, 0] }], 'a GPU, and the VFs of a PF');
is_deeply($first->{n1_NUMA0}{traits}, [qw(CUSTOM_PASSTHROUGHD HW_NUMA_ROOT)], 'a NUMA node');
is_deeply([agent('--dry-run')], [0, '', ''], 'then nothing is left to change');

system("cp $ENV{BUILD}/passthrough-placement $ENV{NODE_TMP}") == 0 or die 'cp';
is((as_nobody(sub { return system("$ENV{NODE_TMP}/passthrough-placement", '--once', "--config=$ENV{NODE_TMP}/placement.conf") }))[0], 0,
        'a user who may only call the daemon compares as well');

# ---- Candidates

my (undef, $found) = placement('GET', "/allocation_candidates?required_S=CUSTOM_PASSTHROUGHD_SWITCH&resources_G=$gpu:1&resources_N=$vf:1&same_subtree=_S,_G,_N&group_policy=none&limit=1000");
my %name = map { $first->{$_}{uuid} => $_ } keys %$first;
is_deeply(
        [sort map { join ' ', sort map { $name{$_} } keys %{ $_->{allocations} } } @{ $found->{allocation_requests} }],
        [map { "n1_0000:${_}3:00.0 n1_0000:${_}4:00.0" } qw(1 2 3 4 9 A B C)],
        'one GPU and one VF below the same switch');

# ---- The agent runs

my $agent = agent_start();
my $log   = "$ENV{NODE_TMP}/agent.log";
sub requests { return scalar(() = (slurp_existing($log) // q{}) =~ m{^\w+ \Q@{[URL]}\E/.*: \d+$}mg) }
sub is_claimed { my ($id) = @_; return wait_until(sub { placement_claims($id) }) }

ok(wait_until(sub { requests() >= 4 + 2 * 27 + 18 }), 'a full comparison at start');
my $before = requests();
is(allocate($bus, 'vm1', gpu => 1, rdma => 2, cpus => 4, memory => 8 << 30, proximity => 'switch'), 'done', 'a guest is prepared');
my $id = id('vm1');
is_deeply(is_claimed($id), { n1_NUMA0 => { PCPU => 4, MEMORY_MB => 8192 }, 'n1_0000:13:00.0' => { $gpu => 1 }, 'n1_0000:14:00.0' => { $vf => 2 } }, 'its claim');
is((placement('GET', "/allocations/$id"))[1]{consumer_type}, 'PASSTHROUGHD', 'and its type');
is_deeply([release($bus, 'vm1')], ['done'], 'it is released');
ok(wait_until(sub { !placement_claims($id) }), 'the claim is gone');
cmp_ok(requests() - $before, '<=', 4, 'two requests for a change at most');
is_deeply(placement_tree(), $first, 'Placement has the tree as at first');

# ---- Another program writes: the next full comparison finds it

my $altered = $first->{'n1_0000:33:00.0'}{uuid};
placement('PUT', "/resource_providers/$altered/traits",
        { resource_provider_generation => (placement('GET', "/resource_providers/$altered"))[1]{generation}, traits => [] });
$before = requests();
kill 'HUP', $agent;
ok(wait_until(sub { @{ placement_provider('n1_0000:33:00.0')->{traits} } }), 'the traits are back');
cmp_ok(requests() - $before, '<=', 4 + 18 + 3, 'only what was altered is read again');
is_deeply(placement_tree(), $first, 'Placement has the tree as at first');

# ---- A GPU is pulled, and comes back

my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/0000:23:00.0") =~ s{^(?:\.\./)+}{sys/}r;
is(allocate($bus, 'vm2', gpu => 1, at => [['gpu', '0000:23:00.0']]), 'done', 'a guest has a GPU');
my $id2 = id('vm2');
is_claimed($id2);
fault("remove $path");
ctl('rescan');
ok(wait_until(sub { placement_provider('n1_0000:23:00.0')->{resources}{$gpu}[1] }), 'a GPU that is gone is reserved');
is_deeply(placement_claims($id2), { 'n1_0000:23:00.0' => { $gpu => 1 } }, 'its claim stays');
is(placement_provider('n1_0000:23:00.0')->{parent}, $first->{'n1_SWITCH_0000:21:00.0'}{uuid}, 'and its place');
release($bus, 'vm2');
ok(wait_until(sub { !placement_provider('n1_0000:23:00.0') }), 'released, it is gone from Placement');

# ---- Placement is down while the node goes on

placement_stop();
is(allocate($bus, 'vm3', gpu => 1), 'done', 'the node goes on without Placement');
my $id3 = id('vm3');
$before = requests();
placement_start();
ok(is_claimed($id3), 'the agent catches up');
cmp_ok(requests() - $before, '<=', 4 + 18 + 3, 'and does not read again what has not changed');
is(agent_stop($agent), 'signal 15', 'the agent ends when it is told to');

# ---- Other programs

my ($used) = grep { /^n1_0000/ } keys %{ placement_claims($id3) };
is(claim($used, $gpu), 409, 'no other program gets a device of an allocation');
my $rival = 'n1_0000:93:00.0';
is(claim($rival, $gpu), 204, 'another program has claimed a GPU');
is((placement('PUT', "/resource_providers/$first->{$rival}{uuid}/traits", { resource_provider_generation => (placement('GET', "/resource_providers/$first->{$rival}{uuid}"))[1]{generation}, traits => ['HW_GPU_API_VULKAN'] }))[0],
        200, 'and the operator changed the traits');
is((agent('--once'))[0], 0, 'a comparison');
is_deeply(placement_provider($rival)->{traits}, [sort @{ $first->{$rival}{traits} }, 'HW_GPU_API_VULKAN'], 'traits of the agent are back, that of the operator stays');
is(allocate($bus, 'vm4', gpu => 1, at => [['gpu', '0000:93:00.0']]), 'done', 'the daemon gives that GPU out');
is((agent('--once'))[0], 0, 'Placement refuses that claim, and the rest goes on');
is_deeply([scalar placement_claims(id('vm4')), scalar placement_claims($consumer)], [undef, { $rival => { $gpu => 1 } }], 'no claim is changed');
release($bus, 'vm4');
configure($pools =~ s{^Match=vendor=10de.*}{Match=address=0000:13:00.0}mr);
is((agent('--once'))[0], 0, 'the pool has one GPU left');
my $now = placement_tree();
is_deeply([grep { $now->{$_}{resources}{$gpu} } sort keys %$now], ['n1_0000:13:00.0', $rival], 'GPUs of no pool are gone, but for the one that another program has');
is_deeply($now->{$rival}{resources}{$gpu}, [1, 1, 1], 'which nobody else gets');
placement('DELETE', "/allocations/$consumer");
is((agent('--once'))[0], 0, 'that program is done with it');
ok(!placement_provider($rival), 'then it is gone too');

# ---- Slots of services

my $slots    = 'CUSTOM_PASSTHROUGHD_SLOTS_REMOTE_GPU';
my @endpoint = ((map { "gpu$_.example.org:9999" } 1, 2), '127.0.0.1:1'); # nothing listens at the last one

sub reload     { my ($text) = @_; spew("$ENV{NODE_TMP}/passthroughd.conf", $text); $bus->call('Reload'); return }
sub with_slots { my (@n) = @_; reload($pools . "[Service remote-gpu]\nKind=lupine\n" . join q{}, map { "Endpoint=$endpoint[$_] slots=$n[$_]\n" } 0 .. $#n); return }
sub has        { my ($i, @counts) = @_; return wait_until(sub { my $p = placement_provider("n1_$endpoint[$i]"); return $p && "@{ $p->{resources}{$slots} // [] }" eq "@counts" }) }

configure($pools);
$agent = agent_start();
with_slots(2, 3);
ok(has(0, 2, 0, 0) && has(1, 3, 0, 0), 'Placement has the slots of each endpoint');
my $remote;
ok(wait_until(sub { $remote = placement_provider("n1_$endpoint[0]"); return @{ $remote->{traits} } }), 'with traits'); # after the inventory
is_deeply($remote->{traits}, [qw(CUSTOM_PASSTHROUGHD CUSTOM_PASSTHROUGHD_POOL_REMOTE_GPU)], '... which name the service as a pool');
is($remote->{parent}, placement_provider('n1')->{uuid}, 'below the root');
is(allocate($bus, 'vm5', gpu => 1, 'remote-gpu' => 5, at => [['gpu', '0000:33:00.0']]), 'done', 'a guest has all slots');
my $id5 = id('vm5');
my %claimed = ('n1_0000:33:00.0' => { $gpu => 1 }, "n1_$endpoint[0]" => { $slots => 2 }, "n1_$endpoint[1]" => { $slots => 3 });
is_deeply(is_claimed($id5), \%claimed, 'and claims them of each endpoint');
is(claim("n1_$endpoint[0]", $slots), 409, 'no other program gets one');
with_slots(1, 0);
kill 'HUP', $agent;    # no count of the service has changed, so the daemon signals nothing
ok(has(0, 2, 2, 2) && has(1, 3, 3, 3), 'slots beyond those of an endpoint are reserved');
placement('DELETE', "/allocations/$id5");
kill 'HUP', $agent;
is_deeply(is_claimed($id5), { 'n1_0000:33:00.0' => { $gpu => 1 } }, 'a new claim has what is in service');
is(claim("n1_$endpoint[1]", $slots), 409, 'still no other program gets one');
with_slots(2, 3);
kill 'HUP', $agent;
ok(wait_until(sub { keys %{ placement_claims($id5) } == 3 }), 'the slots are back');
is_deeply(placement_claims($id5), \%claimed, 'and are claimed again');
is(release($bus, 'vm5'), 'done', 'it is released');
ok(has(0, 2, 0, 0) && has(1, 3, 0, 0), 'all slots are free');
is(claim("n1_$endpoint[1]", $slots), 204, 'another program has claimed a slot');
with_slots(2, 0);
ok(has(1, 3, 3, 1), 'an endpoint that is out of service is reserved while it is used');
placement('DELETE', "/allocations/$consumer");
kill 'HUP', $agent;
ok(has(1), 'and has no inventory then');
reload($pools . "[Service remote-gpu]\nKind=lupine\nEndpoint=$endpoint[2] slots=2\nHealth=tcp\n");
ok(has(2, 2, 2, 0), 'all slots of an endpoint that is down are reserved');
is(claim("n1_$endpoint[2]", $slots), 409, 'no other program gets one');
reload($pools);
ok(wait_until(sub { !grep { placement_provider("n1_$_") } @endpoint }), 'without the service the endpoints are gone');
agent_stop($agent);

# ---- Below the root of Nova

my $nova = '33333333-0000-4000-8000-000000000001';
placement('POST', '/resource_providers', { name => 'nova1', uuid => $nova });
placement('PUT', "/resource_providers/$nova/inventories", { resource_provider_generation => 0, inventories => { VCPU => { total => 8 } } });
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=nova2', 'AddRoot=no');
is((agent('--once'))[0], 1, 'a root that is to come is waited for');
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=nova1', 'AddRoot=no');
is((agent('--once'))[0], 0, 'a root that is there is joined');
$now = placement_tree();
is_deeply([$now->{nova1}{uuid}, keys %{ $now->{nova1}{resources} }, @{ $now->{nova1}{traits} }], [$nova, 'VCPU'], 'and left alone');
is_deeply([$now->{nova1_NUMA0}{parent}, $now->{nova1_NUMA0}{resources}], [$nova, {}], 'CPUs and memory are Nova\'s');

# ---- Wrong settings

for my $wrong (['[Placement]'], ['[Keystone]', 'Url=http://127.0.0.1:1'], ['[Placement]', 'Url=' . URL, 'Wrong=1'], ['[Placement]', 'Url=' . URL, 'AddRoot=perhaps'], ['no line']) {
        agent_conf(@$wrong);
        is((agent('--once'))[0], 78, "refused: @$wrong");
}
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n9', 'AddRoot=no', 'AddRoot=', 'Project=');
is((agent('--dry-run'))[0], 0, 'empty values are the defaults');
agent_conf('[Placement]', '# ' . 'x' x 300, 'Url=' . URL . '#' . 'x' x 300, 'Wrong=1', 'no line');
my (undef, undef, $said) = agent('--once');
like($said, qr/:$_/, "each broken line is named: $_") for '3: .*too long', '5: .*neither';
like($said, qr/:4: .*Wrong/, '... and a key that is unknown');
agent_conf('[Placement]', 'Url=' . URL, '  Token=admin', "\tHost=n9", '  Wrong=1');
(undef, undef, $said) = agent('--once');
like($said, qr/:5: .*Wrong/, 'an indented line is a line of its own');
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n9', "\0", 'Wrong=1');
is((agent('--once'))[0], 78, 'a file with a NUL byte is not cut');
agent_conf('[Placement]', '# ' . 'x' x 300 . ' ä', 'Url=' . URL, 'Token=admin', 'Host=n9');
is((agent('--dry-run'))[0], 0, 'a comment may be long');
agent_conf('[Placement]', 'Url=' . URL, 'Token=nobody');
is((agent('--once'))[0], 1, 'a token without the role is refused');
for ('', 'x', '../resource_providers', 'y' x 80) {
        my ($wrong, undef, $sentence) = agent("--claim=$_");
        is($wrong, 2, "no consumer: $_");
        like($sentence, qr/UUID/, 'which is said');
}

# ---- Stopped while Placement does not reply

my $silent = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 8779, Listen => 1, ReuseAddr => 1) or die $!;
agent_conf('[Placement]', 'Url=http://127.0.0.1:8779', 'Token=admin');
$agent = agent_start();
my $connection = $silent->accept;
my $begin = time;
agent_stop($agent);
cmp_ok(time - $begin, '<', 25, 'the agent does not wait for the reply');

done_testing();
