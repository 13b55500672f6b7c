#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A lease: an allocation that touches no device until it is prepared, and is gone at its end, whatever happens to daemon, clock and node.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(clock_gettime time);

use Node;

node('paper-testbed');

use constant CLOCK_BOOTTIME => 7;
use constant LONG           => 3600;

my $bus = Bus->new->listen;

sub post_allocate { my ($name, @pairs) = @_; my ($signature, $entries) = request(@pairs); return $bus->call('Allocate', "s$signature", $name, $entries) }
sub error_of      { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }
sub generation_of { my ($name) = @_; return (allocation($bus, $name) // { generation => 0 })->{generation} }
sub prepare       { my ($name) = @_; return $bus->call('Prepare', 'st', $name, generation_of($name)) }
sub renew         { my ($name, $seconds) = @_; return $bus->call('Renew', 'stu', $name, generation_of($name), $seconds) }
sub state_of      { my ($name) = @_; return allocation_state($bus, $name) }
sub left          { my ($name) = @_; return (allocation($bus, $name) // { lease_end => 0 })->{lease_end} / 1e6 - clock_gettime(CLOCK_BOOTTIME) }

my @request = (gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30);
my $before  = tree();

# ---- no device is touched

fault('reset');
is_deeply(post_allocate('vm', @request, hold => LONG)->{body}[1], '/', 'a lease has no job');
is(state_of('vm'), 'reserved', 'it is reserved');
nothing_written('no device is changed');
my ($gpu) = map { $_->{address} } grep { $_->{slot} eq 'gpu0' } @{ allocation($bus, 'vm')->{devices} };
is(device($bus, $gpu)->{state}, 'reserved', 'its device too');
is_error(post_allocate('other', gpu => 1), 'Insufficient', ['insufficient-devices', 'gpu'], 'nobody else gets the device');
my ($pool) = grep { $_->{name} eq 'gpu' } @{ ctl_json('pools')->{pools} };
is_deeply([@$pool{qw(total available allocated reserved out_of_service)}], [1, 0, 0, 1, 0], 'the pool counts it');
cmp_ok(abs(left('vm') - LONG), '<', 60, 'the end is told');
is(error_of($bus->call('Accept', 'st', 'vm', generation_of('vm'))), 'WrongState', 'what has not been prepared is not accepted');
my ($signature, $entries) = request('ib-vf' => 1);
my @changes = (['Attach', "st$signature", $entries], ['Detach', 'sts', 'gpu0']);
is_error($bus->call($_->[0], $_->[1], 'vm', generation_of('vm'), $_->[2]), 'WrongState', ['wrong-state', 'vm', 'prepare'], "$_->[0]: it is to be prepared first") for @changes;
is(error_of(post_allocate('none', gpu => 1, hold => 0)), 'InvalidRequest', 'a lease of no time');
is(error_of(post_allocate('none', gpu => 1, hold => 86_401)), 'InvalidRequest', 'a lease of more than a day');

# ---- renewed, prepared, released

is(renew('vm', 2 * LONG)->{error}, undef, 'renew');
cmp_ok(abs(left('vm') - 2 * LONG), '<', 60, 'the end is later');
is_deeply([ctl('renew', 'vm', 2 * LONG, '--json')], [0, qq({"result":"done"}\n), ''], 'passthroughctl says so in JSON');
is(error_of(renew('vm', 0)), 'InvalidRequest', 'not for no time');
is(error_of($bus->call('Renew', 'stu', 'vm', generation_of('vm') - 1, 5)), 'Stale', 'not with another generation');
my $reply = prepare('vm');
is($bus->result($reply->{body}[0]), 'done', 'prepare');
is(state_of('vm'), 'ready', 'it is ready');
is(driver_of($gpu), 'vfio-pci', 'on its VFIO driver');
is(allocation($bus, 'vm')->{lease_end}, undef, 'without a lease');
is_deeply(prepare('vm')->{body}, ['/'], 'prepare again');
is(error_of(renew('vm', 5)), 'WrongState', 'there is nothing to renew');
is(release($bus, 'vm'), 'done', 'a release');

is(error_of(post_allocate('vm', @request, hold => LONG)), 'none', 'another lease');
my $generation = generation_of('vm');
is_deeply($bus->call('Release', 'st', 'vm', $generation)->{body}, ['/'], 'a lease is released at once');
is(state_of('vm'), 'gone', 'it is gone');
is_deeply($bus->call('Release', 'st', 'vm', $generation)->{body}, ['/'], 'and again');
is((ctl('allocate', 'vm', 'gpu=1', '--hold', 600))[0], 0, 'passthroughctl allocate --hold');
is((ctl('renew', 'vm', 700))[0], 0, 'passthroughctl renew');
is((ctl('prepare', 'vm'))[0], 0, 'passthroughctl prepare');
is(release($bus, 'vm'), 'done', 'a release');
same_tree($before, 'the node is as before');

# ---- the host needs a device meanwhile

is(error_of(post_allocate('vm', @request, hold => LONG)), 'none', 'a lease');
fault('set proc/4242/comm python', 'link proc/4242/fd/7 /dev/nvidia0');
is(error_of(prepare('vm')), 'Unavailable', 'a device in use is not prepared');
is(state_of('vm'), 'reserved', 'the lease stays');
fault('remove proc/4242');
is($bus->result(prepare('vm')->{body}[0]), 'done', 'then it is');
is(release($bus, 'vm'), 'done', 'a release');

# ---- the end

$bus->forget_signals();
my $start = time;
is(error_of(post_allocate('vm', @request, hold => 1)), 'none', 'a lease of a second');
ok($bus->signals_until(sub { $_->{member} eq 'AllocationRemoved' }), 'its end is told');
cmp_ok(time - $start, '>=', 1, 'not too early');
is(state_of('vm'), 'gone', 'it is gone');
is(device($bus, $gpu)->{state}, 'available', 'and its device is available');
history_shows($gpu, sub { grep { $_ eq 'expired' } @_ }, 'the journal tells it');
same_tree($before, 'the node is as before');

for my $signal (qw(TERM KILL)) {
        is(error_of(post_allocate('short', gpu => 1, hold => 1)), 'none', "SIG$signal: a lease of a second");
        is(error_of(post_allocate('long', 'ib-vf' => 1, hold => LONG)), 'none', "SIG$signal: a long one");
        my $end = allocation($bus, 'long')->{lease_end};
        daemon('stop', $signal);
        wait_until(sub { clock_gettime(CLOCK_BOOTTIME) * 1e6 > $end - LONG * 1e6 + 2e6 });
        start_again($bus, "SIG$signal");
        ok(wait_until(sub { state_of('short') eq 'gone' }), "SIG$signal: what has ended meanwhile is gone");
        is(allocation($bus, 'long')->{lease_end}, $end, "SIG$signal: the other one has its end");
        is_deeply($bus->call('Release', 'st', 'long', generation_of('long'))->{body}, ['/'], "SIG$signal: and is released");
}

# After a boot, the time that has passed is unknown.
is(error_of(post_allocate('vm', gpu => 1, hold => LONG)), 'none', 'a boot: a lease');
daemon('stop');
my $text = slurp(ledger_file('vm'));
$text =~ s/"lease_end": \d+/"lease_end": 5/ or die $text;
$text =~ s/"lease_boot": "\w+"/"lease_boot": "0123456789abcdef0123456789abcdef"/ or die $text;
spew(ledger_file('vm'), $text);
start_again($bus, 'a boot');
cmp_ok(abs(left('vm') - LONG), '<', 60, 'a boot: it has its full length again');
is_deeply($bus->call('Release', 'st', 'vm', generation_of('vm'))->{body}, ['/'], 'a boot: it is released');

# ---- the file of a lease cannot be removed

is(error_of(post_allocate('vm', gpu => 1, hold => LONG)), 'none', 'a file that stays: a lease');
my $kept = ledger_file('vm');
rename $kept, "$ENV{NODE_TMP}/kept" or die $!;
mkdir $kept or die $!; # which unlink() does not remove
is($bus->call('Release', 'st', 'vm', generation_of('vm'))->{error}, undef, 'a file that stays: a release');
is(state_of('vm'), 'failed', 'a file that stays: it has failed');
is(device($bus, $gpu)->{state}, 'allocated', 'a file that stays: its device is not reserved any more');
is(allocation($bus, 'vm')->{lease_end}, undef, 'a file that stays: it has no end');
like(allocation($bus, 'vm')->{reason}, names('file', 'ledger', 'Release'), 'a file that stays: it says why, and what to do');
unlike(allocation($bus, 'vm')->{reason}, qr/returned/, 'a file that stays: the device was never taken');
rmdir $kept or die $!;
rename "$ENV{NODE_TMP}/kept", $kept or die $!;
is(release($bus, 'vm'), 'done', 'a file that stays: it is released again');
same_tree($before, 'a file that stays: the node is as before');

# ---- two schedulers that reserve, die and come back

srand($ENV{LEASE_SEED} //= time);
diag("LEASE_SEED=$ENV{LEASE_SEED}");
my $latest = 0;
for my $round (1 .. $ENV{LEASE_ROUNDS} // 10) {
        for my $scheduler (qw(a b)) {
                my $client = Bus->new;
                my $what   = rand;
                if ($what < 0.6) {
                        my $hold = 1 + int rand 2;
                        my ($signature, $entries) = request('ib-vf' => 1 + int rand 2, hold => $hold, token => "$scheduler$round");
                        $client->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", "$scheduler$round", $entries);
                        $latest = time + $hold;
                } elsif ($what < 0.8) {
                        my ($mine) = grep { $_->{name} =~ /^$scheduler/ && $_->{state} eq 'reserved' } @{ describe($bus)->{allocations} };
                        $client->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Prepare', 'st', @$mine{qw(name generation)}) if $mine;
                }
        }
        restart('KILL') if rand() < 0.2;
        $bus->forget_signals();
}
ok(wait_until(sub { !grep { $_->{state} =~ /reserved|preparing/ } @{ describe($bus)->{allocations} } }), 'no lease is left');
cmp_ok(time - $latest, '<', 60, 'none is held beyond its end');
is(release($bus, $_->{name}), 'done', "$_->{name} was prepared, and is released") for @{ describe($bus)->{allocations} };
same_tree($before, 'no device is lost');

done_testing();
