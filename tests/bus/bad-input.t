#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Whatever is asked, a named error with a sentence is the answer, nothing is written, and the daemon lives.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $gpu = '0000:82:00.0';
my $bus = Bus->new->listen;
is(allocate($bus, 'guest', 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'there is an allocation');
my $generation = Node::generation($bus, 'guest');
my ($tree, $state, $daemon) = (tree(), snapshot(times => 1), pid());
fault('reset');
$bus->forget_signals();

sub devices { my (@pairs) = @_; return ['devices', ['a(su)', [@pairs]]] }

# ---- requests, by Plan and by Allocate

my @requests = (
        ['an unknown pool',          'NoSuchPool',     qr/nopool/,                   [devices(['nopool', 1])]],
        ['a pool with a slash',      'InvalidRequest', qr/a name that no pool can/,  [devices(['a/b', 1])]],
        ['a pool name of 10 KiB',    'InvalidRequest', qr/a name that no pool can/,  [devices(['a' x 10_240, 1])]],
        ['a pool without a name',    'InvalidRequest', qr/a name that no pool can/,  [devices(['', 1])]],
        ['a pool twice',             'InvalidRequest', qr/'gpu' is there twice/,     [devices(['gpu', 1], ['gpu', 1])]],
        ['count 0',                  'InvalidRequest', qr/wants 0 devices/,          [devices(['gpu', 0])]],
        ['a count of 2^32-1',        'InvalidRequest', qr/wants 4294967295 devices/, [devices(['gpu', 2**32 - 1])]],
        ['17 pools',                 'InvalidRequest', qr/at most 16 pools/,         [devices(map { ["p$_", 1] } 1 .. 17)]],
        ['a thousand pools',         'InvalidRequest', qr/at most 16 pools/,         [devices(map { ["p$_", 1] } 1 .. 1000)]],
        ['nothing',                  'InvalidRequest', qr/neither devices nor CPUs/, []],
        ['no devices',               'InvalidRequest', qr/neither devices nor CPUs/, [devices()]],
        ['2^32-1 CPUs',              'InvalidRequest', qr/wants 4294967295 vCPUs/,   [['cpus', ['u', 2**32 - 1]], ['memory', ['t', 2**30]]]],
        ['CPUs without memory',      'InvalidRequest', qr/but no memory/,            [['cpus', ['u', 4]]]],
        ['memory without CPUs',      'InvalidRequest', qr/but no vCPUs/,             [devices(['gpu', 1]), ['memory', ['t', 2**30]]]],
        ['2^64-1 bytes',             'InvalidRequest', qr/of memory; the limit/,     [['cpus', ['u', 4]], ['memory', ['t', ~0]]]],
        ['memory that is no page',   'InvalidRequest', qr/not a whole number of/,    [['cpus', ['u', 4]], ['memory', ['t', 4097]]]],
        ['pages of 3 bytes',         'InvalidRequest', qr/page size/,                [['cpus', ['u', 4]], ['memory', ['t', 2**30]], ['page-size', ['t', 3]]]],
        ['pages that are not there', 'Insufficient',   qr/./,                        [['cpus', ['u', 4]], ['memory', ['t', 2**40]], ['page-size', ['t', 2**40]]]],
        ['9 cells',                  'InvalidRequest', qr/9 guest NUMA cells/,       [['cpus', ['u', 16]], ['memory', ['t', 2**30]], ['cells', ['u', 9]]]],
        ['more cells than CPUs',     'InvalidRequest', qr/4 guest NUMA cells for 2/, [['cpus', ['u', 2]], ['memory', ['t', 2**30]], ['cells', ['u', 4]]]],
        ['an unknown policy',        'InvalidRequest', qr/no NUMA policy 'maybe'/,   [devices(['gpu', 1]), ['numa', ['s', 'maybe']]]],
        ['an unknown topology',      'InvalidRequest', qr/no topology 'ring'/,       [devices(['gpu', 1]), ['topology', ['s', 'ring']]]],
        ['an unknown proximity',     'InvalidRequest', qr/no proximity 'near'/,      [devices(['gpu', 1]), ['proximity', ['s', 'near']]]],
        ['a proximity of one pool',  'InvalidRequest', qr/no proximity 'gpu=node'/,  [devices(['gpu', 1]), ['proximity', ['s', 'gpu=node']]]],
        ['a proximity too many',     'InvalidRequest', qr/more than one proximity/,  [devices(['gpu', 1]), ['proximity', ['s', 'node,any']]]],
        ['proximity of no pool',     'InvalidRequest', qr/pool 'x' is limited/,      [devices(['gpu', 1]), ['proximity', ['s', 'gpu:x=node']]]],
        ['33 proximities',           'InvalidRequest', qr/at most 32 pairs of pools/, [devices(['gpu', 1]), ['proximity', ['s', join ',', ('gpu:gpu=any') x 33]]]],
        ['an unknown key',           'InvalidRequest', qr/no request key 'colour'/,  [devices(['gpu', 1]), ['colour', ['s', 'red']]]],
        ['a key of 10 KiB',          'InvalidRequest', qr/no request key 'k+\.\.\.'/,      [['k' x 10_240, ['s', 'red']]]],
        ['a key twice',              'InvalidRequest', qr/'cpus' is there twice/,    [['cpus', ['u', 1]], ['cpus', ['u', 1]], ['memory', ['t', 2**30]]]],
        ['CPUs as text',             'InvalidRequest', qr/'cpus' has the D-Bus type 's', wanted is 'u'/, [['cpus', ['s', '4']]]],
        ['CPUs as t',                'InvalidRequest', qr/'cpus' has the D-Bus type 't'/, [['cpus', ['t', 2**32]], ['memory', ['t', 2**30]]]],
        ['CPUs as a negative',       'InvalidRequest', qr/'cpus' has the D-Bus type 'i'/, [['cpus', ['i', -1]], ['memory', ['t', 2**30]]]],
        ['memory as u',              'InvalidRequest', qr/'memory' has the D-Bus type 'u'/, [['cpus', ['u', 4]], ['memory', ['u', 4096]]]],
        ['devices as strings',       'InvalidRequest', qr/'devices' has the D-Bus type 'as'/, [['devices', ['as', ['gpu']]]]],
        ['devices as a dictionary',  'InvalidRequest', qr/'devices' has the D-Bus type 'a\{su\}'/, [['devices', ['a{su}', [['gpu', 1]]]]]],
        ['devices the other way',    'InvalidRequest', qr/'devices' has the D-Bus type 'a\(us\)'/, [['devices', ['a(us)', [[1, 'gpu']]]]]],
        ['a policy in a variant',    'InvalidRequest', qr/'numa' has the D-Bus type 'v'/, [devices(['gpu', 1]), ['numa', ['v', ['s', 'required']]]]],
        ['more than there is',       'Insufficient',   qr/has 1 of its 1 device free, 2 wanted/, [devices(['gpu', 2])]],
        ['more CPUs than there are', 'Insufficient',   qr/CPUs|cores/,               [['cpus', ['u', 17]], ['memory', ['t', 2**30]]]],
        ['more memory',              'Insufficient',   qr/memory|GiB/,               [['cpus', ['u', 4]], ['memory', ['t', 2**40]]]],
);
is_error($bus->call('Allocate', 'sa{sv}', 'new', [devices(['gpu', 1]), ['repeat', ['b', 1]]]), 'InvalidRequest', qr/not for an allocation/, 'Allocate, repeat');
for my $case (@requests) {
        my ($what, $error, $sentence, $request) = @$case;
        is_error($bus->call('Plan', 'a{sv}', $request), $error, $sentence, "Plan, $what");
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $request), $error, $sentence, "Allocate, $what");
}

# ---- names

my @good = request('ib-vf' => 1);
for my $case (['with a slash', '../x'], ['of 10 KiB', 'n' x 10_240], ['of 64 letters', 'n' x 64], ['that is empty', ''], ['that is a dot', '.'],
        ['that is two', '..'], ['with a blank', 'a b'], ['with a line break', "a\nb"], ['that begins with a dot', '.x'], ['that begins like an option', '-x'],
        ['of accents, cut within one', 'a' . "\xc3\xa9" x 40]) {
        my ($what, $name) = @$case;
        is_error($bus->call('Allocate', 'sa{sv}', $name, $good[1]), 'InvalidRequest', qr/cannot be the name of an allocation/, "Allocate, a name $what");
        is_error($bus->call('Release', 'st', $name, 1), 'NoSuchAllocation', qr/There is no allocation/, "Release, a name $what");
        is_error($bus->call('GetAllocation', 's', $name), 'NoSuchAllocation', qr/There is no allocation/, "GetAllocation, a name $what");
        is_error($bus->call('GetDomainXML', 'sa{sv}', $name, []), 'NoSuchAllocation', qr/There is no allocation/, "GetDomainXML, a name $what");
}
is_error($bus->call('Allocate', 'sa{sv}', 'guest', $good[1]), 'NameTaken', qr/already an allocation 'guest'/, 'a name that is taken');
is_error($bus->call('Release', 'st', 'nobody', 1), 'NoSuchAllocation', qr/no allocation 'nobody'/, 'Release of what is not there');
is_error($bus->call('Release', 'st', 'guest', $_), 'Stale', qr/has generation $generation now, not $_/, "Release with generation $_") for 0, $generation + 1, ~0;

# ---- devices

for my $case (['no address', 'gpu', qr/'gpu' is not a PCI address/], ['an empty one', '', qr/'' is not a PCI address/],
        ['10 KiB', '0' x 10_240, qr/is not a PCI address/], ['a path', "../$gpu", qr/is not a PCI address/],
        ['text after it', "$gpu ", qr/is not a PCI address/], ['accents, cut within one', 'a' . "\xc3\xa9" x 40, qr/is not a PCI address/]) {
        my ($what, $address, $sentence) = @$case;
        is_error($bus->call($_, 's', $address), 'InvalidRequest', $sentence, "$_, $what") for 'Explain', 'GetDevice';
        is_error($bus->call('SetVirtualFunctions', 'su', $address, 4), 'InvalidRequest', $sentence, "SetVirtualFunctions, $what");
}
is_error($bus->call($_, 's', '0000:77:00.0'), 'NoSuchDevice', qr/0000:77:00\.0 is not on this node/, "$_, a device that is not there")
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
is_error($bus->call('GetDomainXML', 'sa{sv}', 'guest', [$_->[2]]), $_->[1], qr/./, "a template that $_->[0]") for @templates;

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
        [qw(explain gpu)], [qw(show 0000:zz)], [qw(quarantine x)], [qw(quarantine --clear 82:00.8)], [qw(sriov 0)], [qw(history 0000:82:00)], [qw(frob)], [], ['explain', "a\nb"],
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
is_error($bus->call('Release', 'st', 'guest', $generation), 'NoSuchAllocation', qr/no allocation 'guest'/, 'but not twice');

# Twice at once: the second one finds the first at work.
is(allocate($bus, 'guest', gpu => 1), 'done', 'another allocation');
$generation = Node::generation($bus, 'guest');
fault('reset', 'unkillable 1');
my @serials = map { $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', 'guest', $generation) } 1 .. 2;
my ($first, $second) = map { $bus->reply($_) } @serials;
is($first->{error}, undef, 'its release is begun');
is_error($second, 'WrongState', qr/^'guest' is releasing\./, 'a second one at the same time is refused');
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'while the first write of that one waits');
fault('release');
is($bus->result($first->{body}[0]), 'done', 'and the first one ends well');

done_testing();
