#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Attributes that VFs are asked for: by the configuration, over the bus and on the command line; what is refused, and what a plan says.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::PP;
use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $conf = slurp("$FindBin::Bin/../nodes/paper-testbed.conf");
my $file = "$ENV{NODE_TMP}/passthroughd.conf";
configure("${conf}VfAttributes=vlan=7 qos=3, trust=on\n");
my $bus    = Bus->new->listen;
my $daemon = pid();
fault('reset');
my ($tree, $state) = (tree(), snapshot());

sub entries { my (%slots) = @_; return [map { [$_, $slots{$_}] } sort keys %slots] }

# Slot to its attributes in a plan, or the error and its sentence.
sub planned {
        my ($devices, $slots) = @_;
        my $reply = $bus->call('Plan', request(@$devices, 'vf-attributes' => ref $slots eq 'HASH' ? entries(%$slots) : $slots));
        return [@$reply{qw(error body)}] if $reply->{error};
        return { map { $_->{slot} => $_->{attributes} } @{ JSON::PP->new->decode($reply->{body}[0])->{devices} } };
}

# ---- what a plan says

my ($on, $off) = (JSON::PP::true, JSON::PP::false);
my $default = { vlan => 7, qos => 3, trust => $on };
my @wanted  = (gpu => 1, 'ib-vf' => 2);
is_deeply(planned(\@wanted, {}), { gpu0 => undef, 'ib-vf0' => $default, 'ib-vf1' => $default }, 'VFs have what their pool gives, other devices nothing');
is_deeply(planned(\@wanted, { 'ib-vf1' => 'trust=off max-rate=1000' }),
        { gpu0 => undef, 'ib-vf0' => $default, 'ib-vf1' => { vlan => 7, qos => 3, trust => $off, max_rate => 1000 } }, 'or what the request says of a slot');
is_deeply(planned(\@wanted, { 'ib-vf' => 'trust=off', 'ib-vf0' => 'vlan=9,spoof-check=on' }),
        { gpu0 => undef, 'ib-vf0' => { vlan => 9, trust => $off, spoof_check => $on }, 'ib-vf1' => { vlan => 7, qos => 3, trust => $off } },
        'and of a pool, which counts for less; a VLAN brings its own priority');
is_deeply(planned(['ib-vf' => 1], { 'ib-vf' => 'mac=02:AB:00:00:00:01 link=up node-guid=02:00:00:00:00:00:00:0a port-guid=02:00:00:00:00:00:00:0b '
                        . 'pkey=8001 min-rate=5 protocol=802.1ad vlan=4094 qos=0' }),
        {
                'ib-vf0' => {
                        mac => '02:ab:00:00:00:01', link => 'up', node_guid => '02:00:00:00:00:00:00:0a', port_guid => '02:00:00:00:00:00:00:0b',
                        pkey => '0x8001', min_rate => 5, protocol => '802.1ad', vlan => 4094, qos => 0, trust => $on,
                },
        },
        'every attribute, by the name of a pool with one slot');

# ---- what is refused, by Plan and by Allocate

my $mac = 'mac=02:00:00:00:00:01';
my @refused = (
        ['a slot that is not there',   'InvalidRequest', qr/for 'ib-vf2', but the slots of the request are: gpu0, ib-vf0, ib-vf1\./, { 'ib-vf2' => 'vlan=1' }],
        ['a slot with a leading zero', 'InvalidRequest', qr/for 'ib-vf01', but/,                     { 'ib-vf01' => 'vlan=1' }],
        ['a pool of others',           'InvalidRequest', qr/for 'nic', but/,                         { nic => 'vlan=1' }],
        ['no name',                    'InvalidRequest', qr/for '', but/,                            { '' => 'vlan=1' }],
        ['a name of 10 KiB',           'InvalidRequest', qr/for 'x+\.\.\.', but/,                    { 'x' x 10_240 => 'vlan=1' }],
        ['a slot twice',               'InvalidRequest', qr/attributes of 'ib-vf0' are there twice/, [['ib-vf0', 'vlan=1'], ['ib-vf0', 'trust=on']]],
        ['65 slots',                   'InvalidRequest', qr/for at most 64 slots/,                   [map { ["vf$_", 'vlan=1'] } 1 .. 65]],
        ['a word that is unknown',     'InvalidRequest', qr/'ib-vf0': There is no VF attribute 'colour'/, { 'ib-vf0' => 'colour=red' }],
        ['no value',                   'InvalidRequest', qr/'ib-vf0': 'vlan' is no ATTRIBUTE=VALUE/, { 'ib-vf0' => 'vlan' }],
        ['a VLAN that is none',        'InvalidRequest', qr/vlan=4095 is not understood/,            { 'ib-vf0' => 'vlan=4095' }],
        ['an address of a group',      'InvalidRequest', qr/neither zero nor a group's/,             { 'ib-vf0' => 'mac=01:00:00:00:00:01' }],
        ['a GUID of zeros',            'InvalidRequest', qr/neither all zeros nor all ones/,         { 'ib-vf0' => 'node-guid=00:00:00:00:00:00:00:00' }],
        ['a priority alone',           'InvalidRequest', qr/say vlan= too/,                          { 'ib-vf0' => 'qos=1' }],
        ['text of 10 KiB',             'InvalidRequest', qr/longer than \d+ bytes/,                  { 'ib-vf0' => 'vlan=1 ' x 1500 }],
        ['one address for a pool',     'InvalidRequest', qr/2 VFs of pool 'ib-vf' cannot all have the same mac=/, { 'ib-vf' => $mac }],
        ['one address for two slots',  'InvalidRequest', qr/'ib-vf0' and 'ib-vf1' cannot both have the mac 02:/,  { 'ib-vf0' => $mac, 'ib-vf1' => $mac }],
        ['a GPU',                      'NotSupported',   qr/'gpu0' would be 0000:82:00\.0, which is no VF/,       { gpu0 => 'vlan=1' }],
        ['a pool of GPUs',             'NotSupported',   qr/which is no VF/,                         { gpu => 'vlan=1' }],
);
for my $case (@refused) {
        my ($what, $error, $sentence, $slots) = @$case;
        my $entries = ref $slots eq 'HASH' ? entries(%$slots) : $slots;
        my (undef, $request) = request(@wanted, 'vf-attributes' => $entries);
        is_error($bus->call('Plan', 'a{sv}', $request), $error, $sentence, "Plan, $what");
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $request), $error, $sentence, "Allocate, $what");
}
is_error($bus->call('Plan', 'a{sv}', [['vf-attributes', ['a{sv}', [['ib-vf0', ['s', 'vlan=1']]]]]]), 'InvalidRequest',
        qr/'vf-attributes' has the D-Bus type 'a\{sv\}', wanted is 'a\{ss\}'/, 'another type');
nothing_written('none of this writes');
same_tree($tree, 'or changes anything');
same_state($state, 'nor is it on disk');

# ---- on the command line

my @command = (qw(plan gpu=1 ib-vf=2), 'ib-vf0:mac=02:00:00:00:00:01,link=up', 'ib-vf1:trust=off');
my ($status, $out) = ctl(@command);
is($status, 0, 'operands of both kinds');
like($out, qr/ib-vf0 .*\n +mac=02:00:00:00:00:01 vlan=7 qos=3 trust=on link=up\n.*ib-vf1 .*\n +vlan=7 qos=3 trust=off\n/, 'below a VF is what it gets');
like($out, qr/^ .*\d+\. .*vlan=7/m, 'and a step gives it');
for my $where (['a directory', $ENV{NODE_ROOT}], ['a tree', "$FindBin::Bin/../nodes/paper-testbed.tree"]) {
        is_deeply([ctl(@command, '--node', $where->[1], '--config', $file)], [0, $out, ''], "the same of $where->[0], without a daemon");
}
for my $case (
        ['ib-vf0:vlan',         2, qr/'ib-vf0:vlan' is not SLOT:ATTRIBUTE=VALUE/],
        [':vlan=1',             2, qr/':vlan=1' is not SLOT:ATTRIBUTE=VALUE/],
        ['ib-vf0',              2, qr/'ib-vf0' is neither POOL=COUNT, such as gpu=1, nor SLOT:ATTRIBUTE=VALUE/],
        ['ib-vf0:vlan=x',       1, qr/'ib-vf0': vlan=x is not understood/],
        ['ib-vf7:vlan=1',       1, qr/the slots of the request are: gpu0, ib-vf0\./],
        ['ib-vf=ib-vf0:vlan=1', 2, qr/the count in 'ib-vf=ib-vf0:vlan=1' is not a whole number/],
) {
        my ($operand, $expected, $sentence) = @$case;
        my ($got, undef, $err) = ctl('plan', 'gpu=1', 'ib-vf=1', $operand);
        is($got, $expected, "'$operand' is refused");
        like($err, $sentence, 'with a sentence');
}
for my $verb (qw(plan allocate xml)) {
        (undef, $out) = ctl($verb, '--help');
        like($out, qr/\[SLOT:ATTRIBUTES\.\.\.\]\n.*eth-vf0:vlan=100,trust=on\n/s, "$verb --help tells of them");
}

# ---- the configuration

sub problems { return join "\n", @{ describe($bus)->{config_problems} } }

is(problems(), '', 'it is a configuration without problems');
configure("${conf}VfAttributes=$mac\nVfIdentity=new\n");
like(problems(), qr/passthroughd\.conf:\d+: VfAttributes= is for all VFs of the pool.*mac=.*\n.*VfIdentity=new is not understood: expected fresh or stable\./,
        'an address for a pool is a problem, and so is an identity that there is not');
is_deeply(planned(\@wanted, {}), { gpu0 => undef, 'ib-vf0' => undef, 'ib-vf1' => undef }, 'and both count for nothing');
isnt(pid(), $daemon, 'it was started anew only for that');

# ---- what is allocated

configure($conf);
$bus->forget_signals();
my $guid   = '02:00:00:00:00:00:00:0a';
my @vf     = ('ib-vf' => 1, 'vf-attributes' => [['ib-vf0', "port-guid=$guid"]]);
my $before = tree();
is(allocate($bus, 'first', @vf), 'done', 'a VF with a GUID that was asked for');
is(allocation($bus, 'first')->{devices}[0]{attributes}{port_guid}, $guid, 'which Describe tells');
like(slurp(ledger_file('first')), qr/"attributes": *"[^"]*port-guid=$guid/, 'the ledger keeps');
(undef, $out) = ctl('show', 'first');
like($out, qr/ib-vf0 .*\n +.*port-guid=$guid/, 'and show has below it');
is_error($bus->call('Plan', request(@vf)), 'Unavailable', qr/port-guid $guid that is wanted for 'ib-vf0' is that of a VF that 'first' holds\./, 'nobody else can plan with it');
is((allocate($bus, 'second', @vf))[0], 'org.passthroughd1.Error.Unavailable', 'nor have it');
is(allocate($bus, 'second', 'ib-vf' => 1), 'done', 'another VF gets its own');
my $made = allocation($bus, 'second')->{devices}[0]{attributes}{port_guid};
like($made, qr/^02(?::[0-9a-f]{2}){7}$/, 'locally administered');
isnt($made, $guid, 'and not the same');
restart();
$bus->forget_signals();
is(allocation($bus, 'second')->{devices}[0]{attributes}{port_guid}, $made, 'which the next daemon knows');
is(release($bus, $_), 'done', "'$_' is released") for qw(first second);
same_tree($before, 'and the VFs have what they had');

done_testing();
