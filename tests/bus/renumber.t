#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Boots after which buses and IOMMU groups have other numbers, and cards are in other slots: a promise is about hardware, not addresses.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(EIO strerror);
use Test::More;

use Boot;
use Crash;
use Document;
use Node;

node('paper-testbed', configure => 1, root => 1);
configure("[Daemon]\nAfterRelease=restore\n[Pool gpu]\nMatch=vendor=10de class=0302\n[Pool ib-vf]\nMatch=vendor=15b3 type=vf\n");

my $bus = Bus->new->listen;

# ---- trees: the node with a second GPU behind a root port of its own, bus 85

my $root = 'sys/devices/pci0000:80';
my %port = (82 => '0000:80:02.0', 83 => '0000:80:03.0', 85 => '0000:80:05.0');

sub node_tree {
        my $text = slurp("$FindBin::Bin/../nodes/paper-testbed.tree");
        my $group = 30;
        for my $path ("$root/0000:80:02.0", "$root/0000:80:02.0/0000:82:00.0") {
                my ($section) = $text =~ m{^(\[\Q$path\E\]\n.*?)\n\n}ms or die "no $path";
                $text .= "\n" . ($section =~ s/0000:80:02\.0/0000:80:05.0/gr =~ s/0000:82:/0000:85:/gr =~ s{(iommu_groups)/\d+}{$1/$group}r) . "\n\n";
                $group++;
        }
        return $text;
}

# A serial number for the card on that bus.
sub card {
        my ($text, $number, $serial) = @_;
        return with_serial($text, "$root/$port{$number}/0000:$number:00.0", $serial, $number == 83 ? 0x100 : 0);
}

sub devices { my ($name) = @_; return [map { $_->{address} } @{ allocation($bus, $name)->{devices} }] }

sub state_of { my ($address) = @_; return device($bus, $address)->{state} }

sub in_order {
        my ($what, $name, @devices) = @_;
        is(allocation_state($bus, $name), 'ready', "$what: '$name' is ready");
        is(allocation($bus, $name)->{reason}, undef, "$what: without a reason");
        is_deeply(devices($name), \@devices, "$what: it has its devices");
        is(driver_of($_), 'vfio-pci', "$what: $_ is on vfio-pci") for @devices;
        is(state_of($_), 'allocated', "$what: $_ is allocated") for @devices;
        return;
}

sub released {
        my ($what, $tree, @names) = @_;
        is((release($bus, $_))[0], 'done', "$what: '$_' is released") for @names;
        same_tree($tree, "$what: the tree is as the boot left it");
        is_deeply([map { $_->{name} } @{ describe($bus)->{allocations} }], [], "$what: nobody has anything");
        return;
}

sub untouched {
        my ($what, $address) = @_;
        is_deeply([grep { /\Q$address\E/ } write_log()], [], "$what: nothing is written to $address");
        return;
}

my $plain = node_tree();
my %cards = (82 => '1122334455667788', 83 => '0002c90300123456', 85 => '99aabbccddeeff00');
my $serials = $plain;
$serials = card($serials, $_, $cards{$_}) for sort keys %cards;

# ---- a card was added: the buses behind it have the next numbers, and the GPU the address that the PF had

my $moves = 0;
for my $case (['without serial numbers', $plain], ['with serial numbers', $serials]) {
        my ($how, $tree) = @$case;
        my $what = "the next numbers, $how";
        boot($bus, "$what, before", $tree);
        is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', "$what: there is an allocation");
        is_deeply(devices('guest'), ['0000:82:00.0', '0000:83:00.1'], "$what: it has the one and the other");
        my $xml     = document('guest', "$what, before");
        my $offset  = log_since();
        my $renamed = boot($bus, $what, renumbered($tree, 82 => 83, 83 => 84));
        in_order($what, 'guest', '0000:83:00.0', '0000:84:00.1');
        isnt(document('guest', $what), $xml, "$what: the document is another one");
        like(document('guest', $what), qr/bus=['"]0x84['"]/, "$what: with the new address");
        like(log_since($offset), names('0000:83:00.0', '0000:82:00.0', 'guest'),
                "$what: the journal says so");
        $moves++;
        history_shows('0000:84:00.1', sub { $moves == grep { $_ eq 'moved' } @_ }, "$what: and the history, once");
        my $file = JSON::XS->new->decode(slurp(ledger_file('guest')));
        is_deeply([map { $_->{address} } @{ $file->{devices} }], ['0000:83:00.0', '0000:84:00.1'], "$what: it is on disk");
        is($file->{devices}[1]{physical_function}, '0000:84:00.0', "$what: the PF too");
        is_deeply([map { $_->{serial} } @{ $file->{devices} }], $tree eq $plain ? [undef, undef] : ['11-22-33-44-55-66-77-88', '00-02-c9-03-00-12-34-56'],
                "$what: with serial numbers where there are some");
        is((allocate($bus, 'other', gpu => 1))[0], 'done', "$what: the other GPU can be had");
        is_deeply(devices('other'), ['0000:85:00.0'], "$what: and no other");
        released($what, $renamed, qw(guest other));
}

# ---- two allocations whose GPUs change places: the buses swap their numbers, or the cards their slots

sub two_allocations {
        my ($what, $tree) = @_;
        boot($bus, "$what, before", $tree);
        is(allocate($bus, 'one', gpu => 1, cpus => 2, memory => 2**30), 'done', "$what: one GPU");
        is(allocate($bus, 'two', gpu => 1), 'done', "$what: and the other");
        is_deeply([devices('one'), devices('two')], [['0000:82:00.0'], ['0000:85:00.0']], "$what: they are where they are");
        return;
}

sub with_swapped_cards {
        my $tree = card($plain, 82, $cards{85});
        return card($tree, 85, $cards{82});
}

for my $case (
        ['numbers swapped, without serial numbers', $plain,   renumbered($plain,   82 => 85, 85 => 82)],
        ['numbers swapped, with serial numbers',    $serials, renumbered($serials, 82 => 85, 85 => 82)],
        ['cards swapped',                           $serials, with_swapped_cards()],
) {
        my ($what, $tree, $next) = @$case;
        two_allocations($what, $tree);
        my $after = boot($bus, $what, $next);
        in_order($what, 'one', '0000:85:00.0');
        in_order($what, 'two', '0000:82:00.0');
        # As if the power had gone while the ledger was written: one has left its place, the other has taken it.
        is(daemon('stop'), 0, "$what: the daemon stops");
        my $file = slurp(ledger_file('one'));
        $file =~ s/"address":\s*"0000:85:00\.0"/"address":"0000:82:00.0","lost":true/ or die $file;
        spew(ledger_file('one'), $file);
        start_again($bus, "$what, cut short");
        in_order("$what, cut short", 'one', '0000:85:00.0');
        in_order("$what, cut short", 'two', '0000:82:00.0');
        nothing_written("$what, cut short: nothing is left to do");
        released($what, $after, qw(one two));
}

# ---- the same when the new addresses cannot be written: nobody gets what is not free, and the next start knows each card

preload_dying();

# The daemon's first start on TREE, in which the call WHEN to change the state directory fails, or each from then on.
sub boot_unwritable {
        my ($what, $tree, $when) = @_;
        spew("$ENV{NODE_TMP}/fail-at", $when);
        my $after = boot($bus, $what, $tree);
        like(describe($bus)->{read_only}, names(strerror(EIO)), "$what: the ledger is read-only");
        is((allocate($bus, 'other', gpu => 1))[0], 'org.passthroughd1.Error.ReadOnly', "$what: nothing is allocated");
        nothing_written("$what: nothing is done");
        unlink "$ENV{NODE_TMP}/fail-at";
        restart();
        $bus->forget_signals();
        return $after;
}

for my $case (['no write', "00000001 @{[EIO]} ever"], ['the first write fails', "00000001 @{[EIO]}"], ['the second', "00000004 @{[EIO]}"]) {
        my ($how, $when) = @$case;
        my $what = "cards swapped, $how";
        two_allocations($what, $serials);
        my $after = boot_unwritable($what, with_swapped_cards(), $when);
        in_order($what, 'one', '0000:85:00.0');
        in_order($what, 'two', '0000:82:00.0');
        released($what, $after, qw(one two));

        # Likewise in quarantine.
        for my $moved ([', in quarantine', with_swapped_cards(), 85, 82], [', other numbers, in quarantine', renumbered($serials, 82 => 86, 85 => 87), 86, 87]) {
                my ($where, $next, @now) = @$moved;
                my $what  = $what . $where;
                my $cards = sub { return { map { $_->{allocation} => $_->{address} } @{ describe($bus)->{quarantine} } } };
                two_allocations($what, $serials);
                for my $name (qw(one two)) {
                        fault('reset', 'fail 1 EIO');
                        is((release($bus, $name))[0], 'done', "$what: '$name' is released");
                }
                fault('reset');
                is_deeply($cards->(), { one => '0000:82:00.0', two => '0000:85:00.0' }, "$what: to quarantine");
                spew("$ENV{NODE_TMP}/fail-at", $when);
                boot($bus, $what, $next);
                unlink "$ENV{NODE_TMP}/fail-at";
                for my $start ('at once', 'and after a restart') {
                        is_deeply($cards->(), { one => "0000:$now[0]:00.0", two => "0000:$now[1]:00.0" }, "$what: each card stays there, $start");
                        restart();
                }
                is($bus->call('ClearQuarantine', 's', "0000:$_:00.0")->{error}, undef, "$what: 0000:$_:00.0 is cleared") for @now;
        }
}

# ---- two cards of the same model and serial number, in slots that trade places with each other's numbers

my $clones = card(card($plain, 82, '0000000000001234'), 85, '0000000000001234');
two_allocations('the same serial number', $clones);
my $cloned = boot($bus, 'the same serial number', renumbered($clones, 82 => 85, 85 => 82));
in_order('the same serial number', 'one', '0000:85:00.0');
in_order('the same serial number', 'two', '0000:82:00.0');
released('the same serial number', $cloned, qw(one two));

# ---- one card is taken out, and the other is in its slot

two_allocations('taken out', $serials);
my $one_left = card($plain, 82, $cards{85}) =~ s{^\[\Q$root/0000:80:05.0/0000:85:00.0\E\]\n.*?\n\n}{}msr;
my $out = boot($bus, 'taken out', $one_left);
in_order('taken out', 'two', '0000:82:00.0');
like(allocation($bus, 'one')->{reason}, names('0000:82:00.0'), 'taken out: the other one lacks its card');
is_error($bus->call('GetDomainXML', 'sa{sv}', 'one', []), 'Unavailable', ['missing', '0000:82:00.0'], 'taken out: no document names what is not its own');
is_error($bus->call('Accept', 'st', 'one', allocation($bus, 'one')->{generation}), 'Unavailable', ['missing', '0000:82:00.0'], 'taken out: and there is nothing to accept');
restart();
$bus->forget_signals();
in_order('taken out, once more', 'two', '0000:82:00.0');
fault('reset');
is((release($bus, 'one'))[0], 'done', 'taken out: it can be released');
untouched('taken out: its release', '0000:82:00.0');
in_order('taken out, released', 'two', '0000:82:00.0');
released('taken out', $out, 'two');

two_allocations('taken out and back', $serials);
boot($bus, 'taken out and back, out', $one_left);
my $back = boot($bus, 'taken out and back', $serials);
in_order('taken out and back', 'one', '0000:82:00.0');
in_order('taken out and back', 'two', '0000:85:00.0');
released('taken out and back', $back, qw(one two));

# ---- another card of the same model in the slot

my $swapped_tree = card($plain, 82, '0000000000007777');

sub swapped {
        my ($what, $more) = @_;
        boot($bus, "$what, before", $serials);
        is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1), 'done', "$what: there is an allocation");
        my $after = boot($bus, $what, card($swapped_tree, 83, $cards{83}) . ($more // ''));
        untouched($what, '0000:82:00.0');
        is(allocation_state($bus, 'guest'), 'failed', "$what: it has failed");
        like(allocation($bus, 'guest')->{reason}, names('0000:82:00.0'), "$what: and says why");
        my $device = device($bus, '0000:82:00.0');
        is($device->{state}, 'hardware-changed', "$what: the device says so too");
        like($device->{remedy} // '', names('passthroughctl accept guest'), "$what: and what can be done");
        is((allocate($bus, 'other', gpu => 2))[0], 'org.passthroughd1.Error.Insufficient', "$what: nobody gets it");
        return $after;
}

my $after = swapped('another card, released');
is((release($bus, 'guest'))[0], 'done', 'another card, released: that can be done');
untouched('another card, released', '0000:82:00.0');
is(state_of('0000:82:00.0'), 'available', 'another card, released: then anybody may have it');
is((allocate($bus, 'guest', gpu => 2))[0], 'done', 'another card, released: and has it');
is((release($bus, 'guest'))[0], 'done', 'another card, released: and gives it back');

$after = swapped('another card, accepted');
my $generation = allocation($bus, 'guest')->{generation};
my $state      = snapshot();
fault('reset');
for my $wrong (0, $generation - 1, $generation + 1) {
        is_error($bus->call('Accept', 'st', 'guest', $wrong), 'Stale', ['stale-generation', 'guest', $generation], "another card: accepting it for generation $wrong is stale");
}
is_error($bus->call('Accept', 'st', 'nobody', 1), 'NoSuchAllocation', ['no-such-allocation', 'nobody'], 'another card: or for nobody');
nothing_written('another card: and changes nothing');
same_state($state, 'another card: nor the ledger');
my ($status, $stdout, $stderr) = ctl('accept', 'guest');
is($status, 0, 'another card, accepted: that can be said') or diag($stderr);
like($stdout, names('guest'), 'another card, accepted: and is waited for');
in_order('another card, accepted', 'guest', '0000:82:00.0', '0000:83:00.1');
history_shows('0000:82:00.0', sub { 1 == grep { $_ eq 'accepted' } @_ }, 'another card, accepted: the history knows');
is(allocation($bus, 'guest')->{generation}, $generation, 'another card, accepted: it is the same allocation');
($status, undef, $stderr) = ctl('accept', 'guest');
is($status, 1, 'another card, accepted: there is no other one');
like($stderr, names('guest'), 'another card, accepted: and it says so');
restart();
$bus->forget_signals();
in_order('another card, after a restart', 'guest', '0000:82:00.0', '0000:83:00.1');
is((release($bus, 'guest'))[0], 'done', 'another card, accepted: it is released');
same_tree($after, 'another card, accepted: to the driver that it came with');

# ---- the same while the daemon runs: known when it is plugged in, whatever its driver does

sub write_config {
        my ($address, $offset, $bytes) = @_;
        open my $f, '+<:raw', "$ENV{NODE_ROOT}/sys/bus/pci/devices/$address/config" or die "$address: $!";
        sysseek $f, $offset, 0 or die $!;
        syswrite($f, $bytes) == length $bytes or die $!;
        close $f;
        return;
}

$after = boot($bus, 'under way', $serials);
is((allocate($bus, 'guest', gpu => 1))[0], 'done', 'under way: there is an allocation');
my $path = "$root/$port{82}/0000:82:00.0";
fault("remove $path", 'write sys/bus/pci/rescan 1');
ok(!$bus->call('Rescan')->{error}, 'under way: it is plugged in again');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' && driver_of('0000:82:00.0') eq 'vfio-pci' }), 'under way: it is the same, and prepared');
write_config('0000:82:00.0', 0x104, "\x77\x77");
fault("remove $path", 'write sys/bus/pci/rescan 1', 'reset');
ok(!$bus->call('Rescan')->{error}, 'under way: another one is plugged in');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'failed' }), 'under way: the allocation has failed');
is(state_of('0000:82:00.0'), 'hardware-changed', 'under way: and says why');
untouched('under way', '0000:82:00.0');
is((ctl('accept', 'guest'))[0], 0, 'under way: it is accepted');
in_order('under way', 'guest', '0000:82:00.0');
is((release($bus, 'guest'))[0], 'done', 'under way: it is released');
is(driver_of('0000:82:00.0'), 'nvidia', 'under way: to its driver');

# ---- what cannot take the place

sub refused {
        my ($what, $error, $facts, $more, @faults) = @_;
        swapped($what, $more);
        fault(@faults, 'reset');
        my $kept = snapshot();
        ok(!$bus->call('Rescan')->{error}, "$what: a rescan");
        is_error($bus->call('Accept', 'st', 'guest', allocation($bus, 'guest')->{generation}), $error, $facts, "$what: it is refused");
        nothing_written("$what: and nothing is written");
        same_state($kept, "$what: nor promised");
        is((release($bus, 'guest'))[0], 'done', "$what: it can be released");
        untouched($what, '0000:82:00.0');
        return;
}

my $gpu = "$root/$port{82}/0000:82:00.0";
refused('not in the pool', 'Unavailable', ['not-in-pool'], undef, "set $gpu/class 0x010802");
refused('in use', 'Unavailable', ['busy', 4242], undef, 'link proc/4242/fd/7 /dev/nvidia0', 'set proc/4242/comm python3',
        "set proc/driver/nvidia/gpus/0000:82:00.0/information Device Minor: \\t 0");
refused('gone', 'Unavailable', ['missing', '0000:82:00.0'], undef, "remove $gpu");
my ($audio) = node_tree() =~ m{^(\[\Q$gpu\E\]\n.*?)\n\n}ms or die;
$audio =~ s/0000:82:00\.0/0000:82:00.1/;
$audio =~ s/^class=.*/class=0x040300/m;
$audio =~ s/^(?:driver |resource|config).*\n//mg;
refused('a card with one function more', 'Unavailable', ['group-not-viable', '0000:82:00.1', '0000:82:00.0', 'guest'], "\n$audio\n");

# ---- work that was cut short by the boot goes on where the hardware is

for my $state ('preparing', 'releasing') {
        my $what = "cut short while $state";
        boot($bus, "$what, before", $serials);
        is((allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1))[0], 'done', "$what: there is an allocation");
        is(daemon('stop'), 0, "$what: the daemon stops");
        my $file = slurp(ledger_file('guest'));
        $file =~ s/"ready"/"$state"/ or die $file;
        spew(ledger_file('guest'), $file);
        my $renamed = boot($bus, $what, renumbered($serials, 82 => 83, 83 => 84));
        if ($state eq 'preparing') {
                in_order($what, 'guest', '0000:83:00.0', '0000:84:00.1');
                is((release($bus, 'guest'))[0], 'done', "$what: it is released");
        }
        is(allocation_state($bus, 'guest'), 'gone', "$what: it is gone");
        same_tree($renamed, "$what: the tree is as the boot left it");
}

# ---- an allocation of devices that are in quarantine would be of others, were that by address

configure("[Pool gpu]\nMatch=vendor=10de class=0302\nOneTimeUse=yes\n");
sub quarantined {
        opendir my $d, "$ENV{STATE_DIRECTORY}/quarantine" or die $!;
        return [sort grep { !/^\./ } readdir $d];
}

for my $case (['one of two', 1], ['both', 2]) {
        my ($how, $count) = @$case;
        my $what = "quarantine, $how";
        boot($bus, "$what, before", $serials);
        is((allocate($bus, 'guest', gpu => $count))[0], 'done', "$what: there is an allocation");
        is((release($bus, 'guest'))[0], 'done', "$what: which is released");
        my %before = map { $_ => state_of($_) } qw(0000:82:00.0 0000:85:00.0);
        is_deeply(\%before, { '0000:82:00.0' => 'quarantined', '0000:85:00.0' => $count == 2 ? 'quarantined' : 'available' }, "$what: to the quarantine");
        boot($bus, $what, renumbered($serials, 82 => 85, 85 => 82));
        is(state_of('0000:85:00.0'), 'quarantined', "$what: the card is there that it was about");
        is(state_of('0000:82:00.0'), $before{'0000:85:00.0'}, "$what: and the other one is what it was");
        is_deeply(quarantined(), [map { "$_.json" } grep { state_of($_) eq 'quarantined' } sort keys %before], "$what: on disk too");
        for my $file (@{ quarantined() }) {
                my $serial = $file =~ /:85:/ ? '11-22-33-44-55-66-77-88' : '99-aa-bb-cc-dd-ee-ff-00';
                like(slurp("$ENV{STATE_DIRECTORY}/quarantine/$file"), qr/\Q$serial\E/, "$what: $file is about its card");
        }
        is((ctl('quarantine', '--clear', $_))[0], 0, "$what: $_ is cleared") for map { s/\.json$//r } @{ quarantined() };
}

done_testing();
