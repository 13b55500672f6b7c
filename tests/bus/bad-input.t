#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever is asked, a named error with a sentence is the answer, nothing is written, and the daemon lives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Golden;
use Node;

node('paper-testbed');

my $gpu = '0000:82:00.0';
my $bus = Bus->new->listen;
is(allocate($bus, 'guest', 'ib-vf' => 1, cpus => 2, memory => 2**30, owner => 1000), 'done', 'there is an allocation');
is(allocation($bus, 'guest')->{owner}, 1000, 'of the owner that root named');
my $generation = Node::generation($bus, 'guest');
my ($tree, $state, $daemon) = (tree(), snapshot(times => 1), pid());
fault('reset');
$bus->forget_signals();

sub devices { my (@pairs) = @_; return ['devices', ['a(su)', [@pairs]]] }

# ---- requests, by Plan and by Allocate

my @requests = (
        ['an unknown pool',          'NoSuchPool',     ['no-such-pool', 'nopool'],                   [devices(['nopool', 1])]],
        ['a pool with a slash',      'InvalidRequest', ['invalid-request'],  [devices(['a/b', 1])]],
        ['a pool name of 10 KiB',    'InvalidRequest', ['invalid-request'],  [devices(['a' x 10_240, 1])]],
        ['a pool without a name',    'InvalidRequest', ['invalid-request'],  [devices(['', 1])]],
        ['a pool twice',             'InvalidRequest', ['invalid-request', 'gpu'],     [devices(['gpu', 1], ['gpu', 1])]],
        ['count 0',                  'InvalidRequest', ['invalid-request', 0],          [devices(['gpu', 0])]],
        ['a count of 2^32-1',        'InvalidRequest', ['invalid-request', 4294967295], [devices(['gpu', 2**32 - 1])]],
        ['9 pools',                  'InvalidRequest', ['invalid-request', 8],          [devices(map { ["p$_", 1] } 1 .. 9)]],
        ['a thousand pools',         'InvalidRequest', ['invalid-request', 8],          [devices(map { ["p$_", 1] } 1 .. 1000)]],
        ['nothing',                  'InvalidRequest', ['invalid-request'], []],
        ['no devices',               'InvalidRequest', ['invalid-request'], [devices()]],
        ['2^32-1 CPUs',              'InvalidRequest', ['invalid-request', 4294967295, 'vCPUs'],   [['cpus', ['u', 2**32 - 1]], ['memory', ['t', 2**30]]]],
        ['CPUs without memory',      'InvalidRequest', ['invalid-request'],            [['cpus', ['u', 4]]]],
        ['memory without CPUs',      'InvalidRequest', ['invalid-request', 'vCPUs'],             [devices(['gpu', 1]), ['memory', ['t', 2**30]]]],
        ['2^64-1 bytes',             'InvalidRequest', ['invalid-request'],     [['cpus', ['u', 4]], ['memory', ['t', ~0]]]],
        ['20 bytes',                 'InvalidRequest', ['invalid-request', 20],    [['cpus', ['u', 4]], ['memory', ['t', 20]]]],
        ['memory that is no page',   'InvalidRequest', ['invalid-request'],    [['cpus', ['u', 4]], ['memory', ['t', 4097]]]],
        ['pages of 3 bytes',         'InvalidRequest', ['invalid-request'],                [['cpus', ['u', 4]], ['memory', ['t', 2**30]], ['page-size', ['t', 3]]]],
        ['pages that are not there', 'Insufficient',   ['insufficient-memory'],                        [['cpus', ['u', 4]], ['memory', ['t', 2**40]], ['page-size', ['t', 2**40]]]],
        ['9 cells',                  'InvalidRequest', ['invalid-request', 9],       [['cpus', ['u', 16]], ['memory', ['t', 2**30]], ['cells', ['u', 9]]]],
        ['more cells than CPUs',     'InvalidRequest', ['invalid-request', 4, 2], [['cpus', ['u', 2]], ['memory', ['t', 2**30]], ['cells', ['u', 4]]]],
        ['an unknown policy',        'InvalidRequest', ['invalid-request', 'maybe'],   [devices(['gpu', 1]), ['numa', ['s', 'maybe']]]],
        ['an unknown topology',      'InvalidRequest', ['invalid-request', 'ring'],       [devices(['gpu', 1]), ['topology', ['s', 'ring']]]],
        ['an unknown proximity',     'InvalidRequest', ['invalid-request', 'near'],      [devices(['gpu', 1]), ['proximity', ['s', 'near']]]],
        ['a proximity of one pool',  'InvalidRequest', ['invalid-request', 'gpu=node'],  [devices(['gpu', 1]), ['proximity', ['s', 'gpu=node']]]],
        ['a proximity too many',     'InvalidRequest', ['invalid-request'],  [devices(['gpu', 1]), ['proximity', ['s', 'node,any']]]],
        ['proximity of no pool',     'InvalidRequest', ['invalid-request', 'x'],      [devices(['gpu', 1]), ['proximity', ['s', 'gpu:x=node']]]],
        ['33 proximities',           'InvalidRequest', ['invalid-request', 32], [devices(['gpu', 1]), ['proximity', ['s', join ',', ('gpu:gpu=any') x 33]]]],
        ['an unknown key',           'InvalidRequest', ['invalid-request', 'colour'],  [devices(['gpu', 1]), ['colour', ['s', 'red']]]],
        ['a key of 10 KiB',          'InvalidRequest', ['invalid-request', qr/k+\.\.\./],      [['k' x 10_240, ['s', 'red']]]],
        ['a key twice',              'InvalidRequest', ['invalid-request', 'cpus'],    [['cpus', ['u', 1]], ['cpus', ['u', 1]], ['memory', ['t', 2**30]]]],
        ['CPUs as text',             'InvalidRequest', ['invalid-request', 'cpus', 's', 'u'], [['cpus', ['s', '4']]]],
        ['CPUs as t',                'InvalidRequest', ['invalid-request', 'cpus', 't'], [['cpus', ['t', 2**32]], ['memory', ['t', 2**30]]]],
        ['CPUs as a negative',       'InvalidRequest', ['invalid-request', 'cpus', 'i'], [['cpus', ['i', -1]], ['memory', ['t', 2**30]]]],
        ['memory as u',              'InvalidRequest', ['invalid-request', 'memory', 'u'], [['cpus', ['u', 4]], ['memory', ['u', 4096]]]],
        ['devices as strings',       'InvalidRequest', ['invalid-request', 'devices', 'as'], [['devices', ['as', ['gpu']]]]],
        ['devices as a dictionary',  'InvalidRequest', ['invalid-request', 'devices', 'a{su}'], [['devices', ['a{su}', [['gpu', 1]]]]]],
        ['devices the other way',    'InvalidRequest', ['invalid-request', 'devices', 'a(us)'], [['devices', ['a(us)', [[1, 'gpu']]]]]],
        ['a policy in a variant',    'InvalidRequest', ['invalid-request', 'numa', 'v'], [devices(['gpu', 1]), ['numa', ['v', ['s', 'required']]]]],
        ['an owner without a uid',   'InvalidRequest', ['invalid-request', 4294967295], [devices(['gpu', 1]), ['owner', ['u', 2**32 - 1]]]],
        ['more than there is',       'Insufficient',   ['insufficient-devices', 1, 2], [devices(['gpu', 2])]],
        ['more CPUs than there are', 'Insufficient',   ['insufficient-cpus'],               [['cpus', ['u', 17]], ['memory', ['t', 2**30]]]],
        ['more memory',              'Insufficient',   ['insufficient-memory'],               [['cpus', ['u', 4]], ['memory', ['t', 2**40]]]],
);
is_error($bus->call('Allocate', 'sa{sv}', 'new', [devices(['gpu', 1]), ['repeat', ['b', 1]]]), 'InvalidRequest', ['invalid-request'], 'Allocate, repeat');
for my $case (@requests) {
        my ($what, $error, $facts, $request) = @$case;
        my $reply = $bus->call('Plan', 'a{sv}', $request);
        is_error($reply, $error, $facts, "Plan, $what");
        record($what, $reply->{body}[0]);
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $request), $error, $facts, "Allocate, $what");
}

# ---- names

my @good = request('ib-vf' => 1);
for my $case (['with a slash', '../x'], ['of 10 KiB', 'n' x 10_240], ['of 64 letters', 'n' x 64], ['that is empty', ''], ['that is a dot', '.'],
        ['that is two', '..'], ['with a blank', 'a b'], ['with a line break', "a\nb"], ['that begins with a dot', '.x'], ['that begins like an option', '-x'],
        ['of accents, cut within one', 'a' . "\xc3\xa9" x 40]) {
        my ($what, $name) = @$case;
        is_error($bus->call('Allocate', 'sa{sv}', $name, $good[1]), 'InvalidRequest', ['invalid-request'], "Allocate, a name $what");
        is_error($bus->call('Release', 'st', $name, 1), 'NoSuchAllocation', ['no-such-allocation'], "Release, a name $what");
        is_error($bus->call('GetAllocation', 's', $name), 'NoSuchAllocation', ['no-such-allocation'], "GetAllocation, a name $what");
        is_error($bus->call('GetDomainXML', 'sa{sv}', $name, []), 'NoSuchAllocation', ['no-such-allocation'], "GetDomainXML, a name $what");
}
is_error($bus->call('Allocate', 'sa{sv}', 'guest', $good[1]), 'NameTaken', ['name-taken', 'guest'], 'a name that is taken');
is_error($bus->call('Release', 'st', 'nobody', 1), 'NoSuchAllocation', ['no-such-allocation', 'nobody'], 'Release of what is not there');
is_error($bus->call('Release', 'st', 'guest', $_), 'Stale', ['stale-generation', $generation], "Release with generation $_") for 0, $generation + 1, ~0;

# ---- devices

for my $case (['no address', 'gpu'], ['an empty one', ''], ['10 KiB', '0' x 10_240], ['a path', "../$gpu"], ['text after it', "$gpu "],
        ['accents, cut within one', 'a' . "\xc3\xa9" x 40]) {
        my ($what, $address) = @$case;
        is_error($bus->call($_, 's', $address), 'InvalidRequest', ['invalid-request'], "$_, $what") for 'Explain', 'GetDevice';
        is_error($bus->call('SetVirtualFunctions', 'su', $address, 4), 'InvalidRequest', ['invalid-request'], "SetVirtualFunctions, $what");
}
is_error($bus->call($_, 's', '0000:77:00.0'), 'NoSuchDevice', ['no-such-device', '0000:77:00.0'], "$_, a device that is not there")
        for 'Explain', 'GetDevice';

# ---- templates

my $domain = sub { my ($inside) = @_; return ['template', ['s', "<domain type='kvm'>$inside</domain>"]] };
my $bomb   = join '', map { "<!ENTITY a$_ '" . ('&a' . ($_ - 1) . ';') x 10 . "'>" } 1 .. 9;
my @templates = (
        ['is not XML',               'InvalidTemplate', ['template', ['s', 'hello']]],
        ['is empty',                 'InvalidTemplate', ['template', ['s', '']]],
        ['is cut off',               'InvalidTemplate', ['template', ['s', '<domain type="kvm"><name>x</na']]],
        ['is of something else',     'InvalidTemplate', ['template', ['s', '<network/>']]],
        ['is too large',             'InvalidTemplate', $domain->('<!--' . 'x' x 300_000 . '-->')],
        ['has a device of its own',  'InvalidTemplate', $domain->("<devices><hostdev mode='subsystem' type='pci'><source><address domain='0' bus='0x82'"
                        . " slot='0' function='0'/></source></hostdev></devices>")],
        ['expands without end',      'InvalidTemplate', ['template', ['s', "<!DOCTYPE d [<!ENTITY a0 'aaaaaaaaaa'>$bomb]>"
                        . '<domain type="kvm"><name>&a9;</name></domain>']]],
        ['reads a file',             'InvalidTemplate', ['template', ['s', '<!DOCTYPE d [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
                        . '<domain type="kvm"><title>&f;</title></domain>']]],
        ['is a number',              'InvalidRequest',  ['template', ['u', 1]]],
        ['is called something else', 'InvalidRequest',  ['form', ['s', '<domain/>']]],
);
for my $case (@templates) {
        my ($what, $error, $template) = @$case;
        my $reply = $bus->call('GetDomainXML', 'sa{sv}', 'guest', [$template]);
        is_error($reply, $error, [$error eq 'InvalidRequest' ? 'invalid-request' : 'invalid-template'], "a template that $what");
        record("a template that $what", $reply->{body}[0]);
}

# ---- calls of the wrong shape

for my $case (['Plan', 's', 'gpu=1'], ['Plan', 'as', ['gpu']], ['Plan', 'a{ss}', [['cpus', '1']]], ['Plan', 'a{sv}s', [], 'x'], ['Plan'],
        ['Allocate', 'a{sv}', []], ['Allocate', 's', 'new'], ['Release', 's', 'guest'], ['Release', 'su', 'guest', $generation],
        ['SetVirtualFunctions', 'st', '0000:83:00.0', 4], ['Explain', 'o', '/x'], ['Rescan', 's', 'now'], ['GetDomainXML', 's', 'guest']) {
        my ($member, $signature, @values) = @$case;
        is($bus->call($member, $signature // '', @values)->{error}, 'org.freedesktop.DBus.Error.InvalidArgs', "$member(" . ($signature // '') . ')');
}
is($bus->call('Destroy')->{error}, 'org.freedesktop.DBus.Error.UnknownMethod', 'a method that is not there');
is($bus->ask(Bus::NAME, Bus::PATH . $_, 'org.freedesktop.DBus.Properties', 'GetAll', 's', 'org.passthroughd1.Job')->{error},
        'org.freedesktop.DBus.Error.UnknownObject', "an object that is not there, $_")
        for '/job/4294967295', '/job/99999999999999', '/job/x', '/allocation/nobody', '/device/_30000_3a77_3a00_2e0', '/device/x';

# ---- the command line

my @usage = (
        [qw(plan gpu=0)], [qw(plan gpu=4294967296)], [qw(plan gpu)], [qw(plan =1)], [qw(plan gpu=-1)], [qw(plan gpu=1 --cpus 4294967296)],
        [qw(plan gpu=1 --cpus -1)], [qw(plan gpu=1 --cpus four)], [qw(plan gpu=1 --memory 20X)], [qw(plan gpu=1 --memory 99999999999T)], [qw(plan --frob)],
        [qw(allocate)], [qw(release)], [qw(release guest --generation x)], [qw(explain)], [qw(explain a b)],
        [qw(explain gpu)], [qw(show 0000:zz)], [qw(quarantine x)], [qw(quarantine --clear 82:00.8)], [qw(sriov 0)], [qw(history 0000:82:00)], [qw(frob)], [qw(--json)], ['explain', "a\nb"],
);
for my $arguments (@usage) {
        my ($status, $out, $err) = ctl(@$arguments);
        is($status, 2, "passthroughctl @$arguments: exit status 2");
        like($err, qr/\Apassthroughctl: [^\n]+; try 'passthroughctl [^\n]*--help'\n\z/, '... and a hint');
        is($out, '', '... and no output');
}
for my $arguments ([qw(plan nopool=1)], [qw(plan gpu=2)], [qw(allocate a/b gpu=1)], ['allocate', 'x' x 10_240, 'gpu=1'], [qw(release nobody)],
        [qw(release guest --generation 99999)], [qw(explain 0000:77:00.0)], [qw(show nobody)], [qw(xml nobody)],
        [qw(xml guest --template /dev/null)], [qw(xml guest --template /nonexistent)], [qw(list --pool nopool)]) {
        my ($status, $out, $err) = ctl(@$arguments);
        my $what = substr "@$arguments", 0, 60;
        is($status, 1, "passthroughctl $what: exit status 1");
        like($err, qr/\Apassthroughctl: [^\n]+\.\n\z/, '... and a sentence');
        is($out, '', '... and no output');
        my $json = ctl_json(@$arguments);
        like($json->{message} // '', qr/^\S.*\.$/, '... and the same as JSON') or diag(explain $json);
}

# ---- none of this did anything

nothing_written('nothing was written to the node');
same_tree($tree, 'which is as before');
same_state($state, 'nor to the state directory', times => 1);
is(pid(), $daemon, 'the daemon lives');
ok(!$bus->ping()->{error}, 'and answers');
is_deeply([$bus->signal_names()], [], 'and told nobody of a change');
is(release($bus, 'guest'), 'done', 'the allocation can be released');
is_deeply($bus->call('Release', 'st', 'guest', $generation)->{body}, ['/'], 'a second time there is nothing to do');
is_error($bus->call('Release', 'st', 'guest', $generation - 1), 'NoSuchAllocation', ['no-such-allocation', 'guest'], 'with another generation it is refused');

# Twice at once: the second one finds the first at work.
is(allocate($bus, 'guest', gpu => 1), 'done', 'another allocation');
$generation = Node::generation($bus, 'guest');
fault('reset', 'unkillable 1');
my @serials = map { $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', 'guest', $generation) } 1 .. 2;
my ($first, $second) = map { $bus->reply($_) } @serials;
is($first->{error}, undef, 'its release is begun');
is_deeply($second->{body}, $first->{body}, 'a second one at the same time is the same job');
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'while the first write of that one waits');
fault('release');
is($bus->result($first->{body}[0]), 'done', 'and the first one ends well');

# ---- bytes of the node that are not ASCII, or not UTF-8, for which the bus would disconnect the daemon

my ($path) = map { $_->{path} } grep { $_->{address} eq $gpu } @{ describe($bus)->{devices} };
for my $case (["D\xc3\xa9", 'D\u00e9'], ["D\xff", 'D\ufffd'], ['D0', 'D0']) {
        my ($text, $json) = @$case;
        my $shown = $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger;
        fault("set sys/devices/$path/power_state $text");
        ok(!$bus->call('Rescan')->{error}, "power_state $shown is read");
        my $reply = $bus->call('Describe');
        is($reply->{error}, undef, '... Describe');
        like($reply->{body}[0] // '', qr/"power_state":"\Q$json\E"/, "... has it as $json");
}
is(pid(), $daemon, 'the daemon lives');

is_golden('bad-input.txt');

done_testing();
