#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A user with many connections takes nothing away from another user, nor from root.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../bench";

use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use Bench;
use Bus;
use Nobody;

need_nobody();
plan skip_all => 'no user daemon' if !defined getpwnam 'daemon';

use constant { CONNECTIONS => 50, CALLS => 16, RUNNING_OF_ONE => 2, DEADLINE => 90 };

my $root   = machine(4096);
my $config = spew("$disk/fair.conf", "[Pool gpu]\nMatch=vendor=10de\n[Pool vf]\nMatch=vendor=15b3 type=vf\n");
local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = start_bus();
my ($daemon) = start_daemon($ENV{DBUS_SYSTEM_BUS_ADDRESS}, $root, $config, directory("$disk/state"), with_readers("$disk/group"));

local $Bus::HEADERS_ONLY = 1; # all that counts here is whether a call is answered or refused

my @OBJECTS = (Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects');

sub plan_of  { my (@more) = @_; return (Bus::NAME, Bus::PATH, Bus::MANAGER, 'Plan', 'a{sv}', [['devices', ['a(su)', [['gpu', 1]]]], @more]) }
sub error_of { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }
sub children { open my $file, '<', "/proc/$daemon/task/$daemon/children" or die $!; return split ' ', <$file> // '' }

# A process of the user, which keeps what the function returns. What the function prints, when it has returned.
sub begin {
        my ($user, $function) = @_;
        pipe my $in, my $out or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                close $in;
                become($user);
                my ($told, @kept) = eval { $function->() };
                syswrite $out, $told // "died: $@";
                close $out;
                sleep DEADLINE while 1;
        }
        close $out;
        my $told = do { local $/; <$in> };
        return ($pid, $told);
}

sub end { my ($pid) = @_; kill 'KILL', $pid; waitpid $pid, 0; return }

sub becomes_true { my ($fact) = @_; for (my $end = time + DEADLINE; time < $end; sleep 0.01) { return 1 if $fact->() } return 0 }

# What the user is answered: the errors of the calls, each made on its own connection, and on one more.
sub answers_of {
        my ($user, @calls) = @_;
        my ($pid, $told) = begin($user, sub {
                my $client = Bus->new;
                return join ' ', (map { error_of($client->ask(@$_)) } @calls), map { error_of(Bus->new->ask(@$_)) } @calls;
        });
        end($pid);
        return $told;
}

sub all_served {
        my ($what, @calls) = @_;
        my $none = join ' ', ('none') x (2 * @calls);
        is(answers_of('daemon', @calls), $none, "$what: another user is served");
        is(answers_of('root',   @calls), $none, "$what: root is served");
        return;
}

# ---- calls that wait, of which no process ends

# Two calls are being computed, and stopped, so that none ends while the others are made. A process that has ended before it is stopped does not
# count: two others are asked for.
my $first;
sub two_are_stopped {
        end($first) if $first;
        becomes_true(sub { !children() });
        ($first) = begin('nobody', sub {
                my $client = Bus->new;
                $client->post(plan_of(['repeat', ['b', 1]])) for 1 .. RUNNING_OF_ONE;
                return ('', $client);
        });
        for (my $end = time + 2; time < $end && children() < RUNNING_OF_ONE; sleep 0.001) { }
        my @two = children();
        kill 'STOP', @two;
        becomes_true(sub { !grep { Bench::process_state($_) !~ /^(?:T|Z|gone)$/ } @two });
        return RUNNING_OF_ONE == grep { Bench::process_state($_) eq 'T' } @two;
}
ok(becomes_true(\&two_are_stopped), 'one user has two processes at work');
my ($attacker, $told) = begin('nobody', sub {
        my @clients = map { Bus->new } 1 .. CONNECTIONS;
        my @calls;
        for my $client (@clients) { push @calls, [$client, $client->post(plan_of(['repeat', ['b', 1]]))] for 1 .. CALLS }
        $_->ping for @clients; # the daemon has read all calls
        return (scalar(grep { ($_->{error} // '') =~ /LimitExceeded/ } map { values %{ $_->{replies} } } @clients), @clients);
});
cmp_ok($told, '>=', CONNECTIONS * CALLS - CALLS, 'it has a bound for the calls of all its connections') or diag($told);
# A process that ended is a child until the daemon has read its status.
ok(becomes_true(sub { children() == RUNNING_OF_ONE }), '... and for the processes that compute its replies');
all_served('many calls of one user', [plan_of()], [Bus::NAME, Bus::PATH, Bus::MANAGER, 'Describe']);
end($_) for $first, $attacker;
ok(becomes_true(sub { !children() }), 'no process is left');

# ---- descriptors that are kept

($attacker, $told) = begin('nobody', sub {
        my @clients = map { Bus->new } 1 .. CONNECTIONS;
        my @kept    = map { $_->ask(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Describe') } @clients;
        return (scalar(grep { $_->{error} } @kept), @clients, @kept);
});
cmp_ok($told, '>', CONNECTIONS - 10, 'one user has a bound for descriptors') or diag($told);
all_served('many descriptors of one user', [Bus::NAME, Bus::PATH, Bus::MANAGER, 'Describe']);
end($attacker);

# ---- long replies

($attacker, $told) = begin('nobody', sub {
        my @errors = map { error_of($_->ask(@OBJECTS)) } (map { ($_) x 2 } map { Bus->new } 1 .. 10);
        return scalar grep { $_ ne 'none' } @errors;
});
cmp_ok($told, '>', 10, 'one user has a bound for long replies') or diag($told);
end($attacker);
is(answers_of('daemon', [@OBJECTS]), 'none none', '... which is not the bound of another');
is(answers_of('root',   [@OBJECTS]), 'none none', '... nor of root');
all_served('long replies of one user', [Bus::NAME, Bus::PATH, Bus::MANAGER, 'ListDevices']);

# ---- calls whose size no request has, on a connection whose uid is not known, and again

my $bus = Bus->new;
for my $what ('a new connection', 'a known connection') {
        is(error_of($bus->call('Release', 'st', 'x' x (1 << 20), 1)), 'LimitExceeded', "$what: a long call is refused");
        is(error_of($bus->call('Release', 'st', 'none', 1)), 'NoSuchAllocation', '... and another one is served');
}
is(error_of($bus->call('Plan', 'a{sv}', [['devices', ['a(su)', [(['', 1]) x 100_000]]]])), 'LimitExceeded', 'many short values count too');

done_testing();
