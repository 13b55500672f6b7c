#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two clients ask at once for three of four VFs, again and again: one gets them, the other one a refusal and no write.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use List::Util qw(shuffle);
use Test::More;

use Node;

use constant { ROUNDS => 200, SEED => 20160401 };

node('paper-testbed');
srand SEED;

my $listener = Bus->new->listen;
my %clients  = map { $_ => Bus->new } qw(a b);
my $before   = tree();
my $state    = snapshot();
my (%won, @bad);

# The addresses of all VFs that were written to since the last reset; of one the PF is told its GUID.
sub touched { my %seen = map { $_ => 1 } map { m{iov/ports/1/admin_guids/(\d)} ? "0000:83:00.$1" : /(0000:83:00\.\d)/g } write_log(); return sort keys %seen }

sub round {
        my ($n) = @_;
        my ($signature, $entries) = request('ib-vf' => 3);
        my (%serial, %reply);

        fault('reset');
        # Both have asked before either hears an answer.
        $serial{$_} = $clients{$_}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", "$_-$n", $entries)
                for shuffle keys %clients;
        $reply{$_} = $clients{$_}->reply($serial{$_}) for keys %clients;
        my @winners = grep { !$reply{$_}{error} } sort keys %clients;
        my @losers  = grep { $reply{$_}{error} } sort keys %clients;
        return scalar(@winners) . ' winners' if @winners != 1;
        return "the loser gets $reply{$losers[0]}{error}" if $reply{$losers[0]}{error} ne 'org.passthroughd1.Error.Insufficient';
        return "the loser hears '$reply{$losers[0]}{body}[0]'" if $reply{$losers[0]}{body}[0] !~ names('ib-vf', 1, 4, 3);
        my ($allocation, $job) = @{ $reply{$winners[0]}{body} };
        my $result = $listener->result($job) // 'nothing';
        return "the job ends as $result" if $result ne 'done';

        my @mine = map { $_->[1] } @{ $listener->properties($allocation, 'org.passthroughd1.Allocation')->{Devices} };
        return "the winner has @mine" if @mine != 3;
        return "its devices are @mine, written to were " . join ' ', touched() if "@{[sort @mine]}" ne "@{[touched()]}";
        return writes() . ' writes' if writes() != 9;
        $result = release($listener, "$winners[0]-$n") // 'nothing';
        return "the release ends as $result" if $result ne 'done';
        $won{$winners[0]}++;
        return;
}

for my $n (1 .. ROUNDS) {
        my $what = round($n);
        push @bad, "round $n: $what" if defined $what;
        last if @bad >= 5;
}
is_deeply(\@bad, [], ROUNDS . ' rounds: one winner; the loser gets Insufficient and causes no write') or diag(join "\n", @bad);
cmp_ok($won{$_} // 0, '>', ROUNDS / 10, "client $_ wins some of them") for sort keys %clients;
same_tree($before, 'the node is as before');
same_state($state, 'and so is the ledger');

# B4: two guests created at the same time, one VF each: both get one, not the same one.
my ($signature, $entries) = request('ib-vf' => 1);
my %serial = map { $_ => $clients{$_}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", "b4-$_", $entries) } sort keys %clients;
my @jobs   = map { $clients{$_}->reply($serial{$_})->{body} } sort keys %clients;
my %result;
for my $signal ($listener->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' && ++$result{ $_->{body}[1] } && keys %result == 2 })) {
        $result{ $signal->{body}[1] } = $signal->{body}[2] if $signal->{member} eq 'JobRemoved';
}
is($result{ $_->[1] }, 'done', 'B4: both are ready') for @jobs;
my %vfs = map { $listener->properties($_->[0], 'org.passthroughd1.Allocation')->{Devices}[0][1] => 1 } @jobs;
is(scalar keys %vfs, 2, 'B4: with different VFs');
is(scalar(grep { $_ eq 'available' } values %{ devices_state($listener, 'ib-vf') }), 2, 'B4: and two are left');
is(release($listener, "b4-$_"), 'done', "B4: b4-$_ is released") for sort keys %clients;

# D4: the same devices prepared twice, for the same name and for another one: refused, nothing changes.
is(allocate($listener, 'd4', 'ib-vf' => 4), 'done', 'D4: four VFs are allocated');
my ($tree, $ledger) = (tree(), snapshot(times => 1));
fault('reset');
is((allocate($listener, 'd4', 'ib-vf' => 4))[0], 'org.passthroughd1.Error.NameTaken', 'D4: a second time by the same name');
is((allocate($listener, 'd4-other', 'ib-vf' => 4))[0], 'org.passthroughd1.Error.Insufficient', 'D4: and by another one');
nothing_written('D4: nothing is written');
same_tree($tree, 'D4: nothing changes');
same_state($ledger, 'D4: nor the ledger', times => 1);
is(release($listener, 'd4'), 'done', 'D4: it is released');
same_tree($before, 'the node is as before');

done_testing();
