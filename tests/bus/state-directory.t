#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A state directory that is not as the daemon left it: the daemon starts, and gives nothing away that it may have promised.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(mkfifo);
use Test::More;

use Node;

use constant MANY => 40_000;

node('paper-testbed');

my $bus   = Bus->new->listen;
my $state = $ENV{STATE_DIRECTORY};
my @vf    = request('ib-vf' => 1);

sub started {
        my ($what) = @_;
        is(daemon('start'), 0, "$what: the daemon starts");
        $bus->forget_signals();
        return;
}

# Read-only until the function has repaired it; that says why. shown: what is known of the allocation until then.
sub read_only {
        my ($what, $why, $repair, $shown) = @_;
        started($what);
        like($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, $why, "$what: the ledger is read-only");
        is_error($bus->call('Allocate', 'sa{sv}', 'new', $vf[1]), 'ReadOnly', ['read-only', $why], "$what: nothing can be allocated");
        is(allocation_state($bus, 'guest'), $shown // 'ready', "$what: what is allocated is shown as far as it is known");
        daemon('stop');
        $repair->();
        started("$what, repaired");
        is($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, '', "$what, repaired: the ledger is not read-only");
        is(allocation_state($bus, 'guest'), 'ready', "$what, repaired: the allocation is shown");
        daemon('stop');
        return;
}

is(allocate($bus, 'guest', 'ib-vf' => 1), 'done', 'there is an allocation');
daemon('stop');

my $services = "$state/stopped-services";
mkfifo($services, 0600) or die "$services: $!";
read_only('a FIFO in place of stopped-services', names('stopped-services'), sub { unlink $services });

for my $directory ($state, "$state/allocations", "$state/quarantine") {
        my $name = $directory =~ s{.*/}{}r;
        my $mode = $directory eq $state ? 0707 : 0770;
        chmod $mode, $directory or die "$directory: $!";
        read_only(sprintf('%s of mode %o', $name, $mode), names($directory, "@{[sprintf '%04o', $mode]}"), sub { chmod 0700, $directory });
}

# ---- no directories

my %instead = (
        'a file'                  => sub { spew($_[0], '') },
        'a FIFO'                  => sub { mkfifo($_[0], 0600) or die "$_[0]: $!" },
        'a link to the directory' => sub { symlink "$_[0].aside", $_[0] or die "$_[0]: $!" },
        'a link to nothing'       => sub { symlink 'nothing', $_[0] or die "$_[0]: $!" },
);
for my $name ('allocations', 'quarantine') {
        my $directory = "$state/$name";
        for my $what (sort keys %instead) {
                rename $directory, "$directory.aside" or die "$directory: $!";
                $instead{$what}->($directory);
                fault('reset');
                read_only("$what in place of $name", names($name), sub {
                        nothing_written("$what in place of $name: nothing is written to the node");
                        unlink $directory or die "$directory: $!";
                        rename "$directory.aside", $directory or die "$directory: $!";
                }, $name eq 'allocations' ? 'gone' : 'ready');
        }
}

SKIP: {
        skip 'only root has several users', 1 if $> != 0;
        chown 1000, -1, "$state/allocations" or die $!;
        read_only("another user's directory", names(1000), sub { chown 0, -1, "$state/allocations" });
}

# ---- temporaries of interrupted writes

for my $directory ($state, "$state/allocations", "$state/quarantine") {
        spew("$directory/.$_.json.tmp", '') for 1 .. ($directory =~ /allocations/ ? MANY : 1);
        spew("$directory/.other", '');
}
started('with many temporaries');
is($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, '', '... the ledger is not read-only');
is(scalar(() = glob "$state/.*.tmp $state/*/.*.tmp"), 0, '... and all are removed');
is(scalar(() = glob "$state/.other $state/*/.other"), 3, '... and no other file is');
is(release($bus, 'guest'), 'done', '... and what was allocated is released');

done_testing();
