#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Attributes that VFs are asked for: by the configuration, over the bus and on the command line; what is refused, and what a plan says.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Golden;
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
        return { map { $_->{slot} => $_->{attributes} } @{ JSON::XS->new->decode($reply->{body}[0])->{devices} } };
}

# ---- what a plan says

my ($on, $off) = (JSON::XS::true, JSON::XS::false);
my $default = { vlan => 7, qos => 3, trust => $on };
my @wanted  = (gpu => 1, 'ib-vf' => 2);
is_deeply(planned(\@wanted, {}), { gpu0 => undef, 'ib-vf0' => $default, 'ib-vf1' => $default }, 'VFs have what their pool gives, other devices nothing');
is_deeply(planned(\@wanted, { 'ib-vf1' => 'trust=off max-rate=1000' }),
        { gpu0 => undef, 'ib-vf0' => $default, 'ib-vf1' => { vlan => 7, qos => 3, trust => $off, max_rate => 1000 } }, 'or what the request says of a slot');
is_deeply(planned(\@wanted, { 'ib-vf' => 'trust=off', 'ib-vf0' => 'vlan=9,spoof-check=on' }),
        { gpu0 => undef, 'ib-vf0' => { vlan => 9, trust => $off, spoof_check => $on }, 'ib-vf1' => { vlan => 7, qos => 3, trust => $off } },
        'and of a pool, which counts for less; a VLAN brings its own priority');
is_deeply(planned(['ib-vf' => 1], { 'ib-vf' => sprintf '%-511s', 'vlan=9' }), { 'ib-vf0' => { vlan => 9, trust => $on } }, 'in up to 511 bytes');
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
        ['a slot that is not there',   'InvalidRequest', ['invalid-request', 'ib-vf2', 'gpu0', 'ib-vf0', 'ib-vf1'], { 'ib-vf2' => 'vlan=1' }],
        ['a slot with a leading zero', 'InvalidRequest', ['invalid-request', 'ib-vf01'],                     { 'ib-vf01' => 'vlan=1' }],
        ['a pool of others',           'InvalidRequest', ['invalid-request', 'nic'],                         { nic => 'vlan=1' }],
        ['no name',                    'InvalidRequest', ['invalid-request'],                            { '' => 'vlan=1' }],
        ['a name of 10 KiB',           'InvalidRequest', ['invalid-request', qr/x+\.\.\./],                    { 'x' x 10_240 => 'vlan=1' }],
        ['a slot twice',               'InvalidRequest', ['invalid-request', 'ib-vf0'], [['ib-vf0', 'vlan=1'], ['ib-vf0', 'trust=on']]],
        ['65 slots',                   'InvalidRequest', ['invalid-request', 64],                   [map { ["vf$_", 'vlan=1'] } 1 .. 65]],
        ['a word that is unknown',     'InvalidRequest', ['invalid-request', 'ib-vf0', 'colour'], { 'ib-vf0' => 'colour=red' }],
        ['no value',                   'InvalidRequest', ['invalid-request', 'ib-vf0', 'vlan', 'ATTRIBUTE=VALUE'], { 'ib-vf0' => 'vlan' }],
        ['a VLAN that is none',        'InvalidRequest', ['invalid-request', 'vlan=4095'],            { 'ib-vf0' => 'vlan=4095' }],
        ['an address of a group',      'InvalidRequest', ['invalid-request'],             { 'ib-vf0' => 'mac=01:00:00:00:00:01' }],
        ['a GUID of zeros',            'InvalidRequest', ['invalid-request'],         { 'ib-vf0' => 'node-guid=00:00:00:00:00:00:00:00' }],
        ['a priority alone',           'InvalidRequest', ['invalid-request', 'vlan='],                          { 'ib-vf0' => 'qos=1' }],
        ['text of 10 KiB',             'InvalidRequest', ['invalid-request'],                  { 'ib-vf0' => 'vlan=1 ' x 1500 }],
        ['text of 512 bytes',          'InvalidRequest', ['invalid-request', 511],             { 'ib-vf' => sprintf '%-512s', 'vlan=9' }],
        ['one address for a pool',     'InvalidRequest', ['invalid-request', 2, 'ib-vf', 'mac='], { 'ib-vf' => $mac }],
        ['one address for two slots',  'InvalidRequest', ['invalid-request', 'ib-vf0', 'ib-vf1'],  { 'ib-vf0' => $mac, 'ib-vf1' => $mac }],
        ['a GPU',                      'NotSupported',   ['not-supported', 'gpu0', '0000:82:00.0'],       { gpu0 => 'vlan=1' }],
        ['a pool of GPUs',             'NotSupported',   ['not-supported'],                         { gpu => 'vlan=1' }],
);
for my $case (@refused) {
        my ($what, $error, $facts, $slots) = @$case;
        my $entries = ref $slots eq 'HASH' ? entries(%$slots) : $slots;
        my (undef, $request) = request(@wanted, 'vf-attributes' => $entries);
        my $reply = $bus->call('Plan', 'a{sv}', $request);
        is_error($reply, $error, $facts, "Plan, $what");
        record($what, $reply->{body}[0]);
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $request), $error, $facts, "Allocate, $what");
}
is_error($bus->call('Plan', 'a{sv}', [['vf-attributes', ['a{sv}', [['ib-vf0', ['s', 'vlan=1']]]]]]), 'InvalidRequest',
        ['invalid-request', 'vf-attributes', 'a{sv}', 'a{ss}'], 'another type');
nothing_written('none of this writes');
same_tree($tree, 'or changes anything');
same_state($state, 'nor is it on disk');

# ---- on the command line

my @command = (qw(plan --steps gpu=1 ib-vf=2), 'ib-vf0:mac=02:00:00:00:00:01,link=up', 'ib-vf1:trust=off');
my ($status, $out) = ctl(@command);
is($status, 0, 'operands of both kinds');
like($out, qr/\bib-vf0: mac=02:00:00:00:00:01 vlan=7 qos=3 trust=on link=up\n +ib-vf1: vlan=7 qos=3 trust=off\n/, 'each VF with what it gets');
like($out, qr/^.* \d+\. .*vlan=7/m, 'and a step gives it');
for my $where (['a directory', $ENV{NODE_ROOT}], ['a tree', "$ENV{BUILD}/nodes/paper-testbed.tree"]) {
        is_deeply([ctl(@command, '--node', $where->[1], '--config', $file)], [0, $out, ''], "the same of $where->[0], without a daemon");
}
for my $case (
        ['ib-vf0:vlan',         2, names('ib-vf0:vlan', 'ATTRIBUTE=VALUE')],
        [':vlan=1',             2, names(':vlan=1', 'ATTRIBUTE=VALUE')],
        ['ib-vf0',              2, names('ib-vf0', 'POOL=COUNT', 'gpu=1', 'ATTRIBUTE=VALUE')],
        ['ib-vf0:vlan=x',       1, names('ib-vf0', 'vlan=x')],
        ['ib-vf7:vlan=1',       1, names('gpu0', 'ib-vf0')],
        ['ib-vf=ib-vf0:vlan=1', 2, names('ib-vf=ib-vf0:vlan=1')],
) {
        my ($operand, $expected, $sentence) = @$case;
        my ($got, undef, $err) = ctl('plan', 'gpu=1', 'ib-vf=1', $operand);
        is($got, $expected, "'$operand' is refused");
        like($err, $sentence, 'with a sentence');
        record($operand, $err);
}
for my $verb (qw(plan allocate xml)) {
        (undef, $out) = ctl($verb, '--help');
        like($out, qr/\[SLOT:ATTRIBUTES\.\.\.\]\n.*eth-vf0:vlan=100,trust=on\n/s, "$verb --help tells of them");
}

# ---- the configuration

sub problems { return join "\n", @{ describe($bus)->{config_problems} } }

is(problems(), '', 'it is a configuration without problems');
configure("${conf}VfAttributes=$mac\nVfIdentity=new\n");
like(problems(), names('passthroughd.conf', 'VfAttributes=', 'mac='), 'an address for a pool is a problem');
like(problems(), names('passthroughd.conf', 'VfIdentity=new'), 'and so is an identity that there is not');
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
is_error($bus->call('Plan', request(@vf)), 'Unavailable', ['allocated', $guid, 'ib-vf0', 'first'], 'nobody else can plan with it');
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

is_golden('vf-requests.txt');

done_testing();
