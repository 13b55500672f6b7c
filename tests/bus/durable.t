#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The power is cut after a reply: the state directory then has what was synced (tests/dying/disk.h), and the ledger what was replied.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Crash qw(preload_dying);
use Node;

node('../long/machine');

my $state = $ENV{STATE_DIRECTORY};
my $disk  = "$ENV{NODE_TMP}/disk";
my $bus   = Bus->new->listen;

sub inode { my ($path) = @_; return (lstat $path)[1] // die "$path: $!" }
sub files_of { my ($path) = @_; opendir my $d, $path or die "$path: $!"; return sort grep { !/^[.]{1,2}$/ } readdir $d }

# All that is in a directory is on the disk.
sub settle {
        my ($directory) = @_;
        my @names = files_of($directory);
        spew("$disk/directories/" . inode($directory), join '', map { inode("$directory/$_") . " $_\n" } @names);
        for my $path (map { "$directory/$_" } @names) {
                if   (-d $path) { settle($path) }
                else            { link $path, "$disk/files/" . inode($path) or die $! }
        }
        return;
}

# Path to contents of what is on the disk of a path; a directory has none. A file that was not synced is empty, and so is a directory.
sub on_disk {
        my ($inode, $path) = @_;
        return ($path => -e "$disk/files/$inode" ? slurp("$disk/files/$inode") : '') if !-d $path;
        my $list = "$disk/directories/$inode";
        return ($path => undef, map { /^(\d+) (.+)$/ ? on_disk($1, "$path/$2") : () } grep { !/ [.]{1,2}$/ } -e $list ? split(/\n/, slurp($list)) : ());
}

# The machine comes up again with an empty record of its disk, and the daemon on it.
sub power_cut {
        my ($what) = @_;
        daemon('stop', 'KILL');
        my %left = on_disk(inode($state), $state);
        system('rm', '-rf', $state, $disk);
        for my $path (sort keys %left) {
                if   (defined $left{$path}) { spew($path, $left{$path}) }
                else                        { mkdir $path or die "$path: $!" }
        }
        mkdir $_ or die "$_: $!" for $disk, "$disk/files", "$disk/directories";
        settle($state);
        start_again($bus, $what);
        is(describe($bus)->{read_only}, undef, "$what: the ledger can be read");
        return;
}

sub promised { return { map { $_->{name} => [$_->{generation}, map { $_->{address} } @{ $_->{devices} }] } @{ describe($bus)->{allocations} } } }
sub becomes { my ($name, $expected, $what) = @_; wait_until(sub { allocation_state($bus, $name) eq $expected }); return is(allocation_state($bus, $name), $expected, $what) }
sub quarantine { return [map { $_->{address} } @{ describe($bus)->{quarantine} }] }

# Ends with the reply, whatever the job does.
sub replied {
        my ($what, @call) = @_;
        my $reply = $bus->call(@call);
        daemon('stop', 'KILL');
        return is($reply->{error}, undef, $what);
}

my @request = (gpu => 1, ethernet => 1, cpus => 2, memory => 2**30);
my ($signature, $entries) = request(@request);

preload_dying();
daemon('stop');
system 'rm', '-rf', $state;
mkdir $_ or die "$_: $!" for $state, $disk, "$disk/files", "$disk/directories";
start_again($bus, 'with a new state directory');

replied('a is allocated', 'Allocate', "s$signature", 'a', $entries);
power_cut('after the reply');
is_deeply([keys %{ promised() }], ['a'], '... a is in the ledger, and nothing else');
becomes('a', 'ready', '... and is made ready');

is(allocate($bus, 'b', @request), 'done', 'b is allocated');
my $promised = promised();
power_cut('after its job');
is_deeply(promised(), $promised, '... both are as they were');
becomes($_, 'ready', "... $_ is ready") for qw(a b);

replied('b is released', 'Release', 'st', 'b', $promised->{b}[0]);
power_cut('after the reply');
becomes('b', 'gone', '... b is released, as it was replied');
is_deeply(promised(), { a => $promised->{a} }, '... and a is as it was');

is(allocate($bus, 'c', @request), 'done', 'c is allocated');
my $last = promised()->{c}[0];
cmp_ok($last, '>', $promised->{b}[0], '... with a generation that was never given out');
is(release($bus, 'c'), 'done', '... and released');
power_cut('after its job');
is_deeply(promised(), { a => $promised->{a} }, '... it does not come back');
is(allocate($bus, 'd', @request), 'done', 'd is allocated');
cmp_ok(promised()->{d}[0], '>', $last, '... with a generation that was never given out');
is(release($bus, 'd'), 'done', '... and released');

my ($gpu) = map { $_->{address} } grep { $_->{slot} =~ /^gpu/ } @{ allocation($bus, 'a')->{devices} };
fault('reset', "fail reset\@$gpu EIO");
is(release($bus, 'a'), 'done', 'a is released, and a device is not reset');
fault('reset');
my $quarantine = quarantine();
is(@$quarantine, 1, '... which is quarantined');
power_cut('after the job');
is_deeply(promised(), {}, '... nothing is allocated');
is_deeply(quarantine(), $quarantine, '... and the device is still quarantined');
is(clear_quarantine($bus), 1, '... and comes out');
for my $name (map { "e$_" } 1 .. 8) {
        last if grep { $_ eq $quarantine->[0] } map { @$_ } values %{ promised() };
        is(allocate($bus, $name, gpu => 1), 'done', "$name is allocated");
}
$promised = promised();
is((grep { $_ eq $quarantine->[0] } map { @$_ } values %$promised), 1, '... and an allocation has it');
power_cut('after that');
is_deeply(quarantine(), [], '... it is not quarantined again');
nothing_written('... nor is anything done to it');
is_deeply(promised(), $promised, '... and allocated as before');
is_deeply([map { [@$_{qw(state reason)}] } @{ describe($bus)->{allocations} }], [map { ['ready', undef] } keys %$promised], '... and ready');

done_testing();
