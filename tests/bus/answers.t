#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Long replies are computed in processes: how many run, in which order, how they end, and how the text is sent.
use strict;
use warnings;

use Fcntl qw(:flock);
use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../bench";

use JSON::XS;
use List::Util qw(sum);
use Test::More;
use Time::HiRes qw(sleep time);

use Bench;
use Bus;

# As src/bus/answers.h and src/bus/handouts.h have it.
use constant { RUNNING_OF_ONE => 2, OF_ONE => 16, ANSWER_TIMEOUT => 60, HANDOUTS_OF_ONE => 8, HANDOUTS_BYTES => 12 << 20 };
use constant { F_GET_SEALS => 1034, ALL_SEALS => 0xf };
use constant DEADLINE => 90;

my $root   = machine(4096);
my $config = spew("$disk/answers.conf", "[Pool gpu]\nMatch=vendor=10de\n[Pool vf]\nMatch=vendor=15b3 type=vf\n");
local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = start_bus();
my ($daemon) = start_daemon($ENV{DBUS_SYSTEM_BUS_ADDRESS}, $root, $config, directory("$disk/state"));
my $bus = Bus->new;

sub plan_of  { my (@more) = @_; return ('Plan', 'a{sv}', [['devices', ['a(su)', [['gpu', 1]]]], @more]) }
sub long     { return plan_of(['repeat', ['b', 1]]) } # takes a tenth of a second
sub post     { my ($from, @call) = @_; return $from->post(Bus::NAME, Bus::PATH, Bus::MANAGER, @call) }
sub children { open my $file, '<', "/proc/$daemon/task/$daemon/children" or die $!; return split ' ', <$file> // '' }
sub opened   { return scalar(() = glob "/proc/$daemon/fd/*") }

sub wait_until {
        my ($true) = @_;
        for (my $end = time + DEADLINE; time < $end; sleep 0.01) { return 1 if $true->() }
        return 0;
}

# Calls that take long, whose processes do not go on. Where one was answered before that, there are others.
sub hang {
        my ($from, $n) = @_;
        my $all = $n < RUNNING_OF_ONE ? $n : RUNNING_OF_ONE;
        for (1 .. 100) {
                my @calls = map { post($from, long()) } 1 .. $n;
                wait_until(sub { my @children = children(); kill 'STOP', @children; @children == $all && !grep { Bench::process_state($_) ne 'T' } @children }) or die 'no process';
                $from->ping;
                return @calls if !grep { exists $from->{replies}{$_} } @calls;
                kill 'CONT', children();
                $from->reply($_) for @calls;
        }
        die 'the calls do not take long';
}

sub error_of { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }

# ---- what is sent

my $reply = $bus->call(plan_of());
is(scalar @{ $reply->{descriptors} }, 0, 'a short text is a string');
like($reply->{body}[0], qr/^\{.*\}$/s, '... of JSON');
$reply = $bus->call('Describe');
is(scalar @{ $reply->{descriptors} },                              1,         'a long text is a descriptor');
is(fcntl($reply->{descriptors}[0], F_GET_SEALS, 0),                ALL_SEALS, '... of a sealed memfd');
is(scalar @{ JSON::XS->new->decode($reply->{body}[0])->{devices} }, 4096,      '... with all of the text');
undef $reply;
$bus->call(plan_of());
$bus->ping;
my $quiet = opened();

# ---- a client that keeps what it is sent

my ($reason, @kept) = ('none');
for (1 .. HANDOUTS_OF_ONE + 1) {
        my $described = $bus->call('Describe');
        last if ($reason = error_of($described)) ne 'none';
        push @kept, $described;
}
is($reason, 'LimitExceeded', 'a client may keep some descriptors, and one more is refused');
cmp_ok(sum(map { -s $_->{descriptors}[0] } @kept), '<=', HANDOUTS_BYTES, '... of so many bytes');
cmp_ok(scalar @kept, '>=', 2, '... and more than one');
flock($_->{descriptors}[0], LOCK_SH) && flock($_->{descriptors}[0], LOCK_UN) or die "flock: $!" for @kept;
is(error_of($bus->call('Describe')), 'LimitExceeded', '... whatever locks the client takes');
is(error_of($bus->call(plan_of())),  'none',          '... but not a short text');
is(error_of(Bus->new->call('Describe')), 'none',      '... nor another client');
pop @kept;
is(error_of($bus->call('Describe')), 'none', 'when one is closed, the client gets another');
@kept = ();
$bus->call(plan_of());
ok(wait_until(sub { opened() <= $quiet }), 'the daemon keeps none of them');

# ---- strings that no request needs

for my $case (['devices', ['a(su)', [['x' x 256, 1]]]], ['proximity', ['s', 'gpu' x 4096]], ['vf-attributes', ['a{ss}', [['x' x 256, 'vlan=1']]]], ['vf-attributes', ['a{ss}', [['vf0', 'vlan=1,' x 256]]]]) {
        my $refused = $bus->call('Plan', 'a{sv}', [$case]);
        is(error_of($refused), 'InvalidRequest', "a long string in $case->[0] is refused");
        like($refused->{body}[0], qr/ \d+ bytes/, '... for its size');
}

# ---- typed replies about thousands of devices

my $greedy = Bus->new;
for my $member ('ListDevices', 'ListAllocations') { is(error_of($greedy->call($member)), 'none', "$member is answered") }
# All at once: what is counted is what was sent in a minute.
my @asked = map { $greedy->post(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects') } 1 .. 10;
cmp_ok(scalar(grep { $greedy->reply($_)->{error} } @asked), '>', 0, 'GetManagedObjects is refused when it is called too often');
is(error_of($greedy->call('ListAllocations')), 'none', '... and a short list is not');
is(error_of($bus->call('ListDevices')),        'none', '... nor another client');

# ---- a document that waits while another owner allocates by the same name

{
        my ($reader, $other) = (Bus->new, Bus->new);
        my $allocate = sub { my ($owner) = @_; return error_of($other->call('Allocate', 'sa{sv}', 'vm', [['cpus', ['u', 1]], ['memory', ['t', 1 << 20]], ['owner', ['u', $owner]]])) };
        my $find     = sub { return grep { $_->[0] eq 'vm' } @{ $other->call('ListAllocations')->{body}[0] } };
        my $is_ready = sub { return grep { $_->[1] eq 'ready' } $find->() };
        is($allocate->(1), 'none', 'an allocation');
        ok(wait_until($is_ready), '... is ready');
        my @calls = hang($reader, RUNNING_OF_ONE);
        my @documents = map { post($reader, $_, 'sa{sv}', 'vm', []) } 'GetDomainXML', 'GetNcclTopology';
        $reader->ping;
        is(error_of($other->call('Release', 'st', 'vm', ($find->())[0][2])), 'none', '... is released while its documents wait');
        ok(wait_until(sub { !$find->() }), '... and gone');
        is($allocate->(2), 'none', 'another owner allocates by its name');
        ok(wait_until($is_ready), '... and is ready');
        kill 'KILL', children();
        $reader->reply($_) for @calls;
        is(error_of($reader->reply($_)), 'NoSuchAllocation', 'the documents are not those of the other owner') for @documents;
        $other->call('Release', 'st', 'vm', ($find->())[0][2]);
        ok(wait_until(sub { !$find->() }), 'the other allocation is released');
}

# ---- descriptors that come in

{
        open my $null, '<', '/dev/null' or die $!;
        local @Bus::ATTACHED = ($null) x 4;
        my @calls = map { post($bus, plan_of()) } 1 .. 200;
        $bus->reply($_) for @calls;
}
$bus->ping;
ok(wait_until(sub { opened() <= $quiet }), 'descriptors of calls are closed');

# ---- one sender has many calls

my @calls = hang($bus, OF_ONE);
my $over  = post($bus, plan_of());
is(error_of($bus->reply($over)), 'LimitExceeded', 'a call more than may wait is refused');
ok(wait_until(sub { children() == RUNNING_OF_ONE }), 'no more processes than one sender may have');
is($bus->ping->{error}, undef, 'the daemon answers');
my $other = Bus->new;
is(error_of($other->call(plan_of())), 'none', '... and plans for another sender');
my $start = time;
is(error_of($bus->reply($calls[$_])), 'NotAnswered', 'a process that does not end is killed') for 0 .. RUNNING_OF_ONE - 1;
cmp_ok(time - $start, '<', ANSWER_TIMEOUT + 30, '... in time');
my ($next, $last) = @calls[RUNNING_OF_ONE, -1];
is(error_of($bus->reply($next)), 'none', 'the next call in order is answered');
ok(!exists $bus->{replies}{$last}, '... before the last');

# ---- a sender that vanishes

undef $bus;
ok(wait_until(sub { !children() }), 'calls of a sender that has gone are dropped');
is(error_of($other->call(plan_of())), 'none', '... and other senders are served');
my $gone = Bus->new;
hang($gone, OF_ONE);
undef $gone;
ok(wait_until(sub { !children() }), 'a process that does not end is killed when its sender goes');
$other->call(plan_of());
ok(wait_until(sub { opened() <= $quiet }), 'no descriptor is left') or diag(map { readlink($_) . "\n" } glob "/proc/$daemon/fd/*");

done_testing();
