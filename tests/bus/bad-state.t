#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A ledger file that cannot be read: the daemon lives, tells, changes nothing. In particular it gives nothing away that the file may hold.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Golden;
use Node;

node('paper-testbed');

my $bus = Bus->new->listen;
is(allocate($bus, 'guest', gpu => 1, 'ib-vf' => 1, cpus => 8, memory => 20 * 2**30, numa => 'required'), 'done', 'there is an allocation');
is(allocate($bus, 'other', 'ib-vf' => 1), 'done', 'and another one');
my $tree = tree();
my $good = slurp(ledger_file('guest'));
my $file = ledger_file('guest');
my @vf   = request('ib-vf' => 1);

my $others = JSON::XS->new->decode(slurp(ledger_file('other')))->{devices}[0]{address};

sub edited {
        my ($edit) = @_;
        local $_ = JSON::XS->new->decode($good);
        $edit->();
        return JSON::XS->new->canonical->encode($_);
}

my %broken = (
        'truncated'                       => substr($good, 0, length($good) / 2),
        'one byte short'                  => $good =~ s/\}\s*\z//r,
        'empty'                           => '',
        'of zeros'                        => "\0" x 4096,
        'two documents'                   => $good . $good,
        'too large'                       => $good . ' ' x 300_000,
        'newer'                           => edited(sub { $_->{version} = 1000; $_->{extra} = 1 }),
        'without a version'               => edited(sub { delete $_->{version} }),
        'without a state'                 => edited(sub { delete $_->{state} }),
        'with an unknown state'           => edited(sub { $_->{state} = 'fine' }),
        'with a negative generation'      => edited(sub { $_->{generation} = -1 }),
        'with text for a number'          => edited(sub { $_->{owner} = '0' }),
        'with a device that is none'      => edited(sub { $_->{devices}[0]{address} = '../etc' }),
        'with a pin outside of its CPUs'  => edited(sub { $_->{pins}[0][1] = 3 }),
        'with a name that is a path'      => edited(sub { $_->{name} = '../guest' }),
        "with another's name"             => edited(sub { $_->{name} = 'someone' }),
        "with another's device"           => edited(sub { $_->{devices}[1]{address} = $others }),
);

for my $what (sort keys %broken) {
        my $text = $broken{$what};
        is(daemon('stop', 'TERM'), 0, "$what: the daemon stops");
        spew($file, $text);
        my $state  = snapshot(times => 1);
        my $offset = log_since();
        fault('reset');
        is(daemon('start'), 0, "$what: the daemon starts") or next;
        $bus->forget_signals();

        # With two files that contradict each other either may be called the bad one.
        my $name   = $what eq "with another's device" ? qr/guest|other/ : qr/guest/;
        my $notice = names(qr{allocations/$name\.json});
        like(log_since($offset), $notice, "$what: the log names the file");
        like($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, $notice, "$what: so does the property ReadOnly");
        like(describe($bus)->{read_only} // '', $notice, "$what: and Describe");
        record($what, describe($bus)->{read_only}) if $what ne "with another's device";

        ok(!$bus->call('ListDevices')->{error}, "$what: devices can be listed");
        is((ctl($_))[0], 0, "$what: passthroughctl $_") for 'list', 'allocations';
        ok(!$bus->call('Explain', 's', '0000:82:00.0')->{error}, "$what: and explained");
        like((ctl('explain', '0000:82:00.0'))[2], $notice, "$what: with the warning that nothing can be allocated");
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $vf[1]), 'ReadOnly', ['read-only', $notice], "$what: nothing can be allocated");
        is_error($bus->call('Release', 'st', 'other', 2), 'ReadOnly', ['read-only', $notice], "$what: nor released");
        is_error($bus->call('SetVirtualFunctions', 'su', '0000:83:00.0', 4), 'ReadOnly', ['read-only', $notice], "$what: nor VFs made");
        my ($status, undef, $err) = ctl('allocate', 'new', 'ib-vf=1');
        is($status, 1, "$what: not by the command line either");
        like($err, $notice, "$what: which says the same");
        nothing_written("$what: nothing is written to the node");
        same_state($state, "$what: nor to the ledger, byte for byte", times => 1);
        same_tree($tree, "$what: the tree is as before");
}

# A number of the last generation that cannot be read must not begin anew: nothing is given out.
is(daemon('stop', 'TERM'), 0, 'the daemon stops');
spew($file, $good);
my $number = slurp("$ENV{STATE_DIRECTORY}/generation");
spew("$ENV{STATE_DIRECTORY}/generation", "many\n");
my ($state, $offset) = (snapshot(times => 1), log_since());
is(daemon('start'), 0, 'a broken generation: the daemon lives');
like(log_since($offset), names('generation'), 'and says why');
$bus->forget_signals();
like($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, names('generation'), 'and is read-only');
same_state($state, 'and repairs nothing', times => 1);
is(daemon('stop', 'TERM'), 0, 'the daemon stops');
spew("$ENV{STATE_DIRECTORY}/generation", $number);

# What a write that was cut short leaves behind is not an allocation.
spew("$ENV{STATE_DIRECTORY}/allocations/.guest.json.abcdef", substr $good, 0, 100);
is(daemon('start'), 0, 'with all repaired, and a temporary file left by a crash, it starts');
$bus->forget_signals();
is($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, '', 'and is not read-only');
is(release($bus, $_), 'done', "$_ is released") for 'guest', 'other';
is(device($bus, '0000:82:00.0')->{driver}, 'nvidia', 'the GPU is back on its driver');
is_deeply($bus->call('ListAllocations')->{body}[0], [], 'nothing is allocated');

is_golden('ledger-refusals.txt');

done_testing();
