#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The policy of the bus: root and the members of one group reach the daemon and its activation, other users do not.
# In tests/with-node the group of nobody is that group.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Bus;
use Node;
use Nobody;

need_nobody();
plan skip_all => 'no user daemon' if !defined getpwnam 'daemon';
node('paper-testbed', root => 1);

use constant { THE_BUS => 'org.freedesktop.DBus', DENIED => 'org.freedesktop.DBus.Error.AccessDenied', NO_SUCH => 'org.passthroughd1.Error.NoSuchAllocation' };

# A connection of a user; the bus looks at who connects.
sub bus_of {
        my ($user) = @_;
        local $) = groups_of($user);
        local $> = getpwnam $user;
        return Bus->new;
}

my @manager = (Bus::NAME, Bus::PATH);
my %reads   = (
        ListDevices => [@manager, Bus::MANAGER, 'ListDevices'],
        Plan        => [@manager, Bus::MANAGER, 'Plan', request(gpu => 1)],
        Ping        => [@manager, 'org.freedesktop.DBus.Peer', 'Ping'],
        Introspect  => [@manager, 'org.freedesktop.DBus.Introspectable', 'Introspect'],
        GetAll      => [@manager, 'org.freedesktop.DBus.Properties', 'GetAll', 's', Bus::MANAGER],
        Objects     => [@manager, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects'],
);
my %changes = (
        Release => [@manager, Bus::MANAGER, 'Release', 'st', 'none', 1],
        LogLevel => [Bus::NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.DBus.Properties', 'Set', 'ssv', 'org.freedesktop.LogControl1', 'LogLevel', ['s', 'info']],
);

# Name of the call to error and who sent it: the bus, or the daemon.
sub answers {
        my ($bus, $calls) = @_;
        my %answers;
        for my $name (keys %$calls) {
                my $reply = $bus->ask(@{ $calls->{$name} });
                $answers{$name} = join ' of ', $reply->{error} // 'none', $reply->{sender} eq THE_BUS ? 'bus' : 'daemon';
        }
        return \%answers;
}

sub all { my ($calls, $answer) = @_; return { map { $_ => $answer } keys %$calls } }

my ($root, $member, $outsider) = map { bus_of($_) } qw(root nobody daemon);
is_deeply(answers($outsider, { %reads, %changes }), all({ %reads, %changes }, DENIED . ' of bus'), 'the bus lets no call of an outsider pass');
is_deeply(answers($member, \%reads), all(\%reads, 'none of daemon'), 'a member of the group may ask');
is_deeply(answers($member, \%changes), all(\%changes, DENIED . ' of daemon'), 'and change nothing');
is_deeply(answers($root, \%reads), all(\%reads, 'none of daemon'), 'root may ask');
is_deeply(answers($root, \%changes), { Release => NO_SUCH . ' of daemon', LogLevel => 'none of daemon' }, 'and change');

# By its unique name the daemon is the same.
my ($unique) = @{ $root->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'GetNameOwner', 's', Bus::NAME)->{body} };
is($outsider->ask($unique, Bus::PATH, Bus::MANAGER, 'ListDevices')->{error}, DENIED, 'nor by the unique name of the daemon');

$_->listen for $root, $member, $outsider;
is(allocate($root, 'told', gpu => 1), 'done', 'an allocation');
ok($member->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' }), 'a member gets the signals of it');
$outsider->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'GetId');
is_deeply([map { $_->{member} } grep { $_->{sender} ne THE_BUS } @{ $outsider->{signals} }], [], 'an outsider gets none');

# passthroughctl as a user: exit status, stdout and stderr.
sub ctl_as {
        my ($user, @words) = @_;
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        my $groups = $user eq 'nobody' ? '--groups=' . Nobody::READERS : '--clear-groups'; # nobody is a member
        my $text = `setpriv --reuid=$uid --regid=$gid $groups timeout 120 passthroughctl @words 2>&1`;
        return ($? >> 8, $text);
}
for my $words ('list', 'rescan', 'monitor') {
        my ($status, $text) = ctl_as('daemon', $words);
        is($status, 1, "an outsider's passthroughctl $words fails");
        like($text, qr/\bpassthrough daemon\b/, 'and names the group to join, and who');
}
is((ctl_as('nobody', 'list'))[0], 0, "a member's passthroughctl list does not");
my ($status, $text) = ctl_as('nobody', 'rescan');
is($status, 1, 'but rescan does');
unlike($text, qr/group/, 'for which no group is the remedy');

# A bus on which the daemon is not running, and would be started by a message.
my $dir = "$ENV{NODE_TMP}/activation";
mkdir $dir;
spew("$dir/start", "#!/bin/sh\n: >$dir/started\n");
chmod 0755, "$dir/start";
spew("$dir/org.passthroughd1.service", "[D-BUS Service]\nName=org.passthroughd1\nExec=$dir/start\n");
my $config = slurp("$ENV{NODE_TMP}/bus.conf");
$config =~ s{<type>system</type>}{<servicedir>$dir</servicedir>};
$config =~ s{unix:path=[^<]*}{unix:path=$dir/bus};
spew("$dir/bus.conf", $config);
chomp(my $pid = `dbus-daemon --config-file=$dir/bus.conf --fork --nopidfile --print-pid`);
{
        local $ENV{DBUS_SYSTEM_BUS_ADDRESS} = "unix:path=$dir/bus";
        is(bus_of('daemon')->ask(@{ $reads{Ping} })->{error}, DENIED, 'an outsider cannot have the daemon started by a call');
        ok(!-e "$dir/started", 'and nothing is');
        is((ctl_as('root', 'list'))[0], 1, 'passthroughctl fails without a daemon');
        like((ctl_as('root', 'list'))[1], names('systemctl start passthroughd'), 'and says how to start it');
        ok(!-e "$dir/started", 'but starts nothing');
        my $called = bus_of('nobody');
        $called->post(@{ $reads{Ping} });
        ok(wait_until(sub { -e "$dir/started" }), 'a call of a member starts it');
}
kill 'TERM', $pid;

done_testing();
