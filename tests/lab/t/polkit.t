#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Who may do what on the system bus, with the polkit that Debian has: each method, for root, an owner by rule, another user, one who manages
# and one who configures; and with polkit hanging, killed and missing.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../../bus"; # in the checkout; on the machine Bus.pm is beside this file

use Test::More;

use Bus;
use Lab;

use constant RULES => '/etc/polkit-1/rules.d/50-lab.rules';

my $root;
my $stopped;
END {
        my $status = $?;
        kill 'CONT', $stopped if $stopped;
        unlink RULES;
        command(qw(systemctl unmask --runtime polkit.service));
        ctl('release', $_) for 'mine';
        $? = $status;
}

# All are members of the group. The owner may have one GPU.
my @users = qw(nobody games bin sys);
my ($owner, $other, $manager, $configurer) = @users;
my $group = getgrnam 'passthrough';

# A connection of a user.
sub bus_of {
        my ($user) = @_;
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        local $) = "$gid $gid $group";
        local $> = $uid;
        return Bus->new;
}

# The end of the name of an error, or "none".
sub error_of { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }

sub polkit { return (output(qw(systemctl show --property MainPID --value polkit.service)) =~ /([1-9]\d*)/)[0] }

my @cpu = (['cpus', ['u', 1]], ['memory', ['t', 2**26]]);
sub gpus { my ($count) = @_; return ('sa{sv}', 'mine', [['devices', ['a(su)', [['gpu', $count]]]], @cpu]) }

sub allocation { my ($name) = @_; return (grep { $_->{name} eq $name } @{ ctl_json('allocations')->{allocations} })[0] }

# Waits for a job that a reply names.
sub has_ended { my ($reply) = @_; return ok(!$reply->{error} && wait_until(sub { !is_at_work() }), 'the job ends') }

ok(settled(), 'the node is settled');
my $before = drivers();
$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/run/dbus/system_bus_socket';
$root = Bus->new;
my %bus = map { $_ => bus_of($_) } @users;

# ---- no rule

my $asks = 'InteractiveAuthorizationRequired'; # what polkit says where no rule decides
is_deeply([map { error_of($bus{$_}->call('Allocate', gpus(1))) } @users], [($asks) x 4], 'without a rule nobody but root may allocate');

# ---- rules

spew(RULES, <<"END");
polkit.addRule(function(action, subject) {
    if (action.id == "org.passthroughd1.allocate" && subject.user == "$owner")
        return action.lookup("total.pool.gpu") > 1 ? polkit.Result.NO : polkit.Result.YES;
    if (action.id == "org.passthroughd1.manage" && subject.user == "$manager")
        return polkit.Result.YES;
    if (action.id == "org.passthroughd1.configure" && subject.user == "$configurer")
        return polkit.Result.YES;
});
END
chmod 0644, RULES;
ok(wait_until(sub { error_of($bus{$configurer}->call('Rescan')) eq 'none' }), 'polkit reads the rules');
is(error_of($bus{$owner}->call('Allocate', gpus(2))), 'AccessDenied', 'two GPUs are over the quota');
has_ended($bus{$owner}->call('Allocate', gpus(1)));
is(allocation('mine')->{owner}, scalar getpwnam $owner, 'the allocation belongs to the user');

# The method and its arguments; then the answers to the owner, another user, who manages, and who configures; last the one to root.
my @never = ('mine', 10**9);
for my $row (
        [Allocate => ['sa{sv}', 'mine', \@cpu], 'NameTaken', $asks, $asks, $asks, 'NameTaken'],
        [Prepare  => ['st', @never], 'Stale', $asks, 'Stale', $asks, 'Stale'],
        [Renew    => ['stu', @never, 5], 'Stale', $asks, 'Stale', $asks, 'Stale'],
        [Release  => ['st', @never], 'Stale', $asks, 'Stale', $asks, 'Stale'],
        [Detach   => ['sts', @never, 'gpu0'], 'Stale', $asks, 'Stale', $asks, 'Stale'],
        [Attach   => ['sta{sv}', @never, (gpus(1))[2]], 'AccessDenied', $asks, 'Stale', $asks, 'Stale'],
        [GetDomainXML        => ['sa{sv}', 'mine', []], 'none', $asks, 'none', $asks, 'none'],
        [Accept              => ['st', @never], $asks, $asks, $asks, 'Stale', 'Stale'],
        [SetVirtualFunctions => ['su', '0000:ff:1f.7', 1], $asks, $asks, $asks, 'NoSuchDevice', 'NoSuchDevice'],
        [ClearQuarantine     => ['s', '0000:ff:1f.7'], $asks, $asks, $asks, 'WrongState', 'WrongState'],
        [Rescan => [], $asks, $asks, $asks, 'none', 'none'],
        [Reload => [], $asks, $asks, $asks, 'none', 'none'],
        [(map { $_ => [], ('none') x 5 } 'ListDevices')],
        [(map { $_ => [], ('none') x 5 } 'Describe')],
        [Plan => ['a{sv}', \@cpu], ('none') x 5],
) {
        my ($method, $arguments, @expected) = @$row;
        is_deeply([map { error_of($_->call($method, @$arguments)) } @bus{@users}, $root], \@expected, $method);
}

# ---- polkit hangs, is killed, is missing

$stopped = polkit();
kill 'STOP', $stopped;
my $hanging = $bus{$owner}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', @never);
is(error_of($root->call('Release', 'st', @never)), 'Stale', 'polkit hangs: root is answered');
is(error_of($bus{$other}->call('ListDevices')), 'none', 'polkit hangs: readers are answered');
is(error_of($bus{$owner}->reply($hanging)), 'AccessDenied', 'polkit hangs: the call is refused in the end');
my $killed = $bus{$owner}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', @never);
$root->ping() for 1 .. 2;
output(qw(systemctl mask --runtime polkit.service));
kill 'KILL', $stopped;
is(error_of($bus{$owner}->reply($killed)), 'AccessDenied', 'polkit is killed: the call is refused');
$stopped = undef;
ok(wait_until(sub { !polkit() }), 'polkit is gone');
is_deeply([map { error_of($_->call('Release', 'st', @never)) } @bus{@users}, $root], [('AccessDenied') x 4, 'Stale'], 'polkit is missing: only root may');
output(qw(systemctl unmask --runtime polkit.service));
is(error_of($bus{$owner}->call('Release', 'st', @never)), 'Stale', 'polkit is back: the rule counts');

# ---- the end

has_ended($bus{$owner}->call('Release', 'st', 'mine', allocation('mine')->{generation}));
is(allocation('mine'), undef, 'the owner releases');
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, 'and as it was');

done_testing();
