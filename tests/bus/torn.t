#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Each file of the state directory cut short at each byte: the daemon lives, and gives nothing away that the file may have held.
# SWEEP_EVERY=1 tries every byte, which "make check-long" does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Crash;
use Node;

use constant FEW => 10; # bytes, of which all are tried always

node('../long/machine');

my $bus = Bus->new->listen;
my $state; # with the file that is cut
my $all = 0;

# A number is given out and taken back, so that the last one is in no allocation.
for my $name ('guest', 'spent') {
        is(allocate($bus, $name, gpu => 1, ethernet => 1, cpus => 2, memory => 2**30), 'done', "'$name' is allocated");
}
my $spent = Node::generation($bus, 'spent');
my ($gpu) = map { $_->{address} } grep { $_->{slot} =~ /^gpu/ } @{ allocation($bus, 'spent')->{devices} };
fault('reset', "fail reset\@$gpu EIO");
is(release($bus, 'spent'), 'done', 'the last one is released, and its GPU is quarantined');
fault('reset');
my ($quarantined) = map { $_->{address} } @{ describe($bus)->{quarantine} };
ok(defined $quarantined, 'it is');
is(daemon('stop'), 0, 'the daemon stops');
my $tree = tree();

# The promises, whatever else changes.
sub promises {
        my ($of) = @_;
        return JSON::XS->new->canonical->encode([[map { [@$_{qw(name generation)}, map { $_->{address} } @{ $_->{devices} }] } @{ $of->{allocations} }], $of->{quarantine}]);
}

# What is wrong with a daemon that found a file of the ledger cut short.
sub wrong_with {
        my ($file, $expected) = @_;
        my $of = describe($bus);
        my @wrong;
        push @wrong, 'it wrote to the node: ' . join ' ', write_log() if writes();
        if (!$of->{read_only}) {
                push @wrong, 'its promises are ' . promises($of) if promises($of) ne $expected;
                return @wrong;
        }
        push @wrong, "read-only because of '$of->{read_only}'" if $of->{read_only} !~ m{\b\Q$file\E\b};
        my $reply = $bus->call('Allocate', 'sa{sv}', 'new', (request(ethernet => 1))[1]);
        push @wrong, 'it gives something away' if ($reply->{error} // '') !~ /ReadOnly$/;
        push @wrong, 'the ledger is another one' if !Crash::is_same(snapshot(), $state);
        return @wrong;
}

# Cuts FILE at each byte, starts the daemon, and asks the function what is wrong.
sub cut {
        my ($file, $wrong) = @_;
        my $path  = "$ENV{STATE_DIRECTORY}/$file";
        my $whole = slurp($path);
        my $cuts  = 0;
        for my $n (0 .. length($whole) - 1) {
                next if !chosen() && length($whole) > FEW;
                spew($path, substr $whole, 0, $n);
                $state = snapshot();
                fault('reset');
                my $started = daemon('start') == 0;
                my @wrong   = $started ? $wrong->($n, substr $whole, 0, $n) : 'it does not start';
                ok(!@wrong, "$file of $n bytes of " . length $whole) or diag(map { "$_\n" } @wrong);
                daemon('stop', 'KILL');
                $cuts++;
                $all++;
        }
        spew($path, $whole);
        return ok(tree() eq $tree, "$file was cut at $cuts bytes, nothing changed");
}

my $promises = do {
        is(daemon('start'), 0, 'whole, all is read');
        my $text = promises(describe($bus));
        daemon('stop');
        $text;
};

cut('allocations/guest.json',        sub { wrong_with('allocations/guest.json',        $promises) });
cut("quarantine/$quarantined.json", sub { wrong_with("quarantine/$quarantined.json", $promises) });

# One that reads as a smaller number would hand out a generation again, and a late release would find it.
cut('generation', sub {
        my ($n, $text) = @_;
        my @wrong = wrong_with('generation', $promises);
        return @wrong if @wrong || describe($bus)->{read_only};
        $bus->forget_signals();
        my $result = allocate($bus, 'late', ethernet => 1);
        my $given  = Node::generation($bus, 'late');
        release($bus, 'late');
        return $given > $spent ? () : "'$text' was taken for a number: generation $given is given out again, $spent was before ($result)";
});

# ---- what a crash really leaves: temporaries

my $file = substr slurp(ledger_file('guest')), 0, 100; # nobody reads it, so the rest is no different
for my $name ('allocations/.new.json.tmp', 'allocations/.guest.json.tmp', "quarantine/.$quarantined.json.tmp", '.generation.tmp') {
        spew("$ENV{STATE_DIRECTORY}/$name", $file);
        cut($name, sub {
                my $of = describe($bus);
                return ($of->{read_only} ? "read-only: $of->{read_only}" : (), promises($of) ne $promises ? 'it was taken for a promise' : ());
        });
}
is(daemon('start'), 0, 'with all these left behind, the daemon starts');
$bus->forget_signals();
is(allocate($bus, 'new', ethernet => 1), 'done', 'and allocates by the name of one');
is(release($bus, $_), 'done', "$_ is released") for 'new', 'guest';
is(clear_quarantine($bus), 1, 'what is in quarantine comes out');

diag("$all cuts were tried, all were survived") if Test::More->builder->is_passing;
done_testing();
