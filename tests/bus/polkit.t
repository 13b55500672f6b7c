#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Who may do what: a polkitd with the rules of a quota, of a user who manages allocations, and of one who configures the node.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Nobody;
use Node;
use Polkit;
use SystemBus;

plan skip_all => 'needs root' if $> != 0;
node('hgx-h100', root => 1, configure => 1);
configure(slurp("$FindBin::Bin/../nodes/hgx-h100.conf") . "[Daemon]\nSharedMemoryGroup=" . getgrgid(0) . "\n");

# As src/bus/authorization.h has them.
use constant { OF_ONE => 32, TIMEOUT => 25 };
use constant THE_BUS => 'org.freedesktop.DBus';

# All of them are members of the group. The user nobody may have two GPUs, and 8 MiB.
my @users = qw(nobody daemon bin sys);
my %uid   = map { $_ => scalar getpwnam $_ } @users;
# Not members of the group: the bus lets their calls pass, and polkit lets the first one read.
my ($reader, $stranger) = qw(games man);
my $rules = <<'END';
polkit.addRule(function(action, subject) {
    if (action.id == "org.passthroughd1.allocate" && subject.user == "nobody")
        return action.lookup("total.pool.gpu") > 2 || action.lookup("total.cpus") > 4 || action.lookup("total.memory") > 8388608 ? polkit.Result.NO : polkit.Result.YES;
    if (action.id == "org.passthroughd1.allocate" && subject.user == "daemon" && action.lookup("tag") == "Jürgen")
        return polkit.Result.YES;
    if (action.id == "org.passthroughd1.manage" && subject.user == "bin")
        return polkit.Result.YES;
    if (action.id == "org.passthroughd1.configure" && subject.user == "sys")
        return polkit.Result.YES;
    if (action.id == "org.passthroughd1.read" && subject.user == "games")
        return polkit.Result.YES;
});
END

spew("$ENV{NODE_TMP}/policy.conf", slurp("$ENV{NODE_TMP}/policy.conf")
        =~ s{(?=</busconfig>)}{join '', map { qq{<policy user="$_"><allow send_destination="org.passthroughd1"/><allow receive_sender="org.passthroughd1"/></policy>} } @users, $reader, $stranger}er);
my $root = Bus->new->listen;
is($root->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'ReloadConfig')->{error}, undef, 'the bus has a policy for all users');

# A connection of a user.
sub bus_of {
        my ($user, $groups) = @_;
        local $) = $groups // groups_of($user);
        local $> = getpwnam $user;
        return Bus->new;
}

# The end of the name of an error, or "none".
sub error_of { my ($reply) = @_; return ($reply->{error} // 'none') =~ s/.*\.//r }

sub post_allocate {
        my ($bus, $name, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        return $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Allocate', "s$signature", $name, $entries);
}

# The result of the job, or the end of the name of an error.
sub allocate_as {
        my ($bus, @arguments) = @_;
        my $reply = $bus->reply(post_allocate($bus, @arguments));
        return $reply->{error} ? error_of($reply) : $root->result($reply->{body}[1]);
}

sub generation_of { my ($name) = @_; return (allocation($root, $name) // { generation => 1 })->{generation} }

sub release_as {
        my ($bus, $name) = @_;
        my $reply = $bus->call('Release', 'st', $name, generation_of($name));
        return $reply->{error} ? error_of($reply) : $root->result($reply->{body}[0]);
}

my %bus = map { $_ => bus_of($_) } @users;
sub bus_of_other { my ($user) = @_; my $gid = (getpwnam $user)[3]; return bus_of($user, "$gid $gid") }

# What a new connection of somebody who is not a member is told, for each way to read.
my @reads = (
        [Bus::PATH, Bus::MANAGER, 'ListDevices'],
        [Bus::PATH, Bus::MANAGER, 'Plan', request(gpu => 1)],
        [Bus::PATH, 'org.freedesktop.DBus.Peer', 'Ping'],
        [Bus::PATH, 'org.freedesktop.DBus.Introspectable', 'Introspect'],
        [Bus::PATH, 'org.freedesktop.DBus.Properties', 'GetAll', 's', Bus::MANAGER],
        [Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects'],
);
sub reads_of { my ($user) = @_; return [map { error_of(bus_of_other($user)->ask(Bus::NAME, @$_)) } @reads] }

# ---- no polkitd

is_deeply([map { allocate_as($bus{$_}, 'vm', gpu => 1) } @users], [('AccessDenied') x 4], 'without polkitd nobody but root may allocate');
is(allocate($root, 'roots', gpu => 1), 'done', 'and root may');
is_deeply([map { error_of($bus{$_}->call('GetDomainXML', 'sa{sv}', 'roots', [])) } @users], [('AccessDenied') x 4], 'nor read the document of another');
is(release_as($root, 'roots'), 'done', 'and root may release');
is_deeply(reads_of($reader), [('AccessDenied') x @reads], 'without polkitd only members of the group may read');

# ---- polkitd

my $polkitd = start_polkitd("$ENV{NODE_TMP}/polkit", $rules);
ok($polkitd, 'polkitd runs');
my $refused = 'InteractiveAuthorizationRequired'; # what polkit says where no rule decides

is_deeply(reads_of($_->[0]), [($_->[1]) x @reads], "$_->[0], who is not a member, may read: $_->[1]") for [$reader, 'none'], [$stranger, 'AccessDenied'];
my %other = map { $_ => bus_of_other($_) } $reader, $stranger;
is(error_of($other{$reader}->call('Rescan')), $refused, 'who may read may not change');
is(error_of($other{$reader}->call('ListDevices')), 'none', '... and reads again');
is(error_of($other{$stranger}->call('Release', 'st', 'none', 1)), 'AccessDenied', 'who may not read may not change either');

# What each user is told about calls that change nothing else, in the order of @users.
sub table { my (@call) = @_; return [map { error_of($bus{$_}->call(@call)) } @users] }

is(allocate($root, 'roots', gpu => 1, cpus => 1, memory => 2**20), 'done', 'an allocation of root');
is(allocate_as($bus{nobody}, 'mine', gpu => 1, cpus => 1, memory => 2**20), 'done', 'an allocation of a user with a rule');
is(allocation($root, 'mine')->{owner}, $uid{nobody}, '... belongs to that user');
is_deeply([map { allocate_as($bus{$_}, 'other', gpu => 1) } qw(daemon bin sys)], [($refused) x 3], 'users without a rule may not allocate');
is_deeply([map { allocate_as($bus{daemon}, 'tagged', cpus => 1, memory => 2**20, tag => $_) } 'Juergen', 'Jürgen'], [$refused, 'done'], '... but where a rule wants a tag beyond ASCII');
is(release_as($root, 'tagged'), 'done', '... which root releases');
is(allocate_as($bus{nobody}, 'given', owner => 0, rdma => 1), $refused, 'nor may anybody for another owner');
is(allocate_as($bus{bin}, 'given', owner => $uid{nobody}, rdma => 1), 'done', '... but those who manage');
is(allocate_as($bus{nobody}, 'forced', force => 1, rdma => 1), $refused, 'force takes a right of its own');

is_deeply(table('GetDomainXML', 'sa{sv}', 'mine', []),  ['none', $refused, 'none', $refused], 'a document is for its owner, and for those who manage');
is_deeply(table('GetDomainXML', 'sa{sv}', 'roots', []), [$refused, $refused, 'none', $refused], '... that of root too');
is_deeply(table('GetNcclTopology', 'sa{sv}', 'mine', []), ['none', $refused, 'none', $refused], 'and so is its topology');
is_deeply(table('Release', 'st', 'roots', 10**9), [$refused, $refused, 'Stale', $refused], 'to release is for the same');
is_deeply(table('Release', 'st', 'mine', 10**9), ['Stale', $refused, 'Stale', $refused], '... for the owner');
is_deeply(table('Detach', 'sts', 'mine', 10**9, 'gpu0'), ['Stale', $refused, 'Stale', $refused], 'to detach is for the owner, and for those who manage');
is_deeply(table('Attach', 'sta{sv}', 'mine', 10**9, (request(gpu => 1))[1]), ['Stale', $refused, 'Stale', $refused], '... and so is to attach');
is_deeply(table('Attach', 'sta{sv}', 'mine', 10**9, (request(gpu => 2))[1]), ['AccessDenied', $refused, 'Stale', $refused], '... within the quota');
is_deeply(table('Accept', 'st', 'mine', 10**9), [($refused) x 3, 'Stale'], 'to accept is for those who configure');
is_deeply(table('Rescan'), [($refused) x 3, 'none'], 'and so is a rescan');
is_deeply(table('Reload'), [($refused) x 3, 'none'], '... a reload');
is_deeply(table('ClearQuarantine', 's', '0000:00:00.0'), [($refused) x 3, 'WrongState'], '... quarantine');
is_deeply(table('SetVirtualFunctions', 'su', '0000:ff:1f.7', 1), [($refused) x 3, 'NoSuchDevice'], '... VFs');
is_deeply([map { error_of($bus{$_}->ask(Bus::NAME, '/org/freedesktop/LogControl1', 'org.freedesktop.DBus.Properties', 'Set', 'ssv', 'org.freedesktop.LogControl1', 'LogLevel', ['s', 'info'])) } @users],
        [($refused) x 3, 'none'], '... and the log level');
is(error_of($bus{nobody}->call('Allocate', 'sa{sv}', 'bad', [['nonsense', ['u', 1]]])), 'InvalidRequest', 'a request that cannot be read is refused by its name');

sub attributes_of { my ($bus, $name) = @_; return scalar grep { $_->{attributes} } map { @{ $_->{devices} } } grep { $_->{name} eq $name } @{ describe($bus)->{allocations} } }
is_deeply([map { attributes_of($_, 'given') } $root, @bus{@users}], [1, 1, 0, 0, 0], 'the attributes of a VF are for root and the owner');

# ---- a quota, and calls that come together

is(allocate_as($bus{nobody}, 'cpus', cpus => 4, memory => 2**20), 'AccessDenied', 'the rule counts CPUs that the owner has');
SKIP: {
        my $shm    = "$ENV{NODE_ROOT}/dev/shm";
        my @shared = (cpus => 1, memory => 2**20);
        is(allocate_as($bus{nobody}, 'shared', @shared, 'shared-memory' => [['mpi', 2**23, 0]]), 'AccessDenied', '... and shared memory');
        fault('set dev/shm/.nodesim x') if !-d $shm;
        system('mount', '-t', 'tmpfs', '-o', 'size=64m', 'shm', $shm) == 0 or skip 'a tmpfs cannot be mounted on the simulated node', 5;
        is(allocate_as($bus{nobody}, $_, @shared, 'shared-memory' => [['mpi', 2**22, 0]]), 'done', "... once for all that share it: '$_'") for qw(shared sharing);
        is(allocate_as($bus{nobody}, 'more', cpus => 1, memory => 2**21), 'AccessDenied', '... and in allocations that are there');
        is(release_as($bus{nobody}, $_), 'done', "the owner releases '$_'") for qw(shared sharing);
        system 'umount', $shm;
}
is(release_as($bus{nobody}, 'mine'), 'done', 'the owner releases');
is(release_as($root, 'roots'), 'done', 'root releases');
kill 'STOP', $polkitd;
my @calls = map { post_allocate($bus{nobody}, "q$_", gpu => 1, rdma => 1) } 1 .. 3;
my $start = time;
is($root->ping()->{error}, undef, 'while polkit decides, the daemon answers');
cmp_ok(time - $start, '<', TIMEOUT - 5, '... at once, not when it gives polkit up');
kill 'CONT', $polkitd;
my %errors;
$errors{ error_of($bus{nobody}->reply($_)) }++ for @calls;
is_deeply(\%errors, { none => 2, AccessDenied => 1 }, 'three calls at once do not get more than the quota');
ok(wait_until(sub { !grep { allocation_state($root, "q$_") =~ /prepar/ } 1 .. 3 }), 'the jobs of the others end');
is(release_as($bus{bin}, $_), 'done', 'who manages releases those of others') for grep { allocation($root, $_) } qw(q1 q2 q3 given);

# ---- callers that leave, and too many of them

kill 'STOP', $polkitd;
my $leaves = bus_of('nobody');
post_allocate($leaves, 'left', gpu => 1);
$leaves->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'GetId');
# Then the daemon has asked the bus for the caller's uid, and has the answer.
$root->ping() for 1 .. 2;
my @many = map { $bus{nobody}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Release', 'st', 'none', 1) } 1 .. OF_ONE;
is(error_of($bus{nobody}->reply($many[-1])), 'LimitExceeded', 'one user has a limit of calls that wait');
is($root->ping()->{error}, undef, 'all of them arrived');
my $name = $leaves->{name};
$leaves = undef;
# Then the daemon has been told that the caller has left.
ok(wait_until(sub { !$root->ask(THE_BUS, '/org/freedesktop/DBus', THE_BUS, 'NameHasOwner', 's', $name)->{body}[0] }), 'a caller leaves');
$root->ping();
kill 'CONT', $polkitd;
is_deeply([map { error_of($bus{nobody}->reply($_)) } @many[0 .. OF_ONE - 2]], [('NoSuchAllocation') x (OF_ONE - 1)], 'the others are answered');
is(allocation($root, 'left'), undef, 'a caller that left has no allocation');

kill 'STOP', $polkitd;
$other{$reader} = bus_of_other($reader);
@many = map { $other{$reader}->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'ListDevices') } 0 .. OF_ONE;
is(error_of($other{$reader}->reply($many[-1])), 'LimitExceeded', 'so has one who asks polkit to read');
kill 'CONT', $polkitd;
is_deeply([map { error_of($other{$reader}->reply($_)) } @many[0 .. OF_ONE - 1]], [('none') x OF_ONE], 'the others are answered');

# The first calls of a connection wait until the daemon knows who calls.
for my $user ('nobody', $reader) {
        my $new  = $user eq $reader ? bus_of_other($user) : bus_of($user);
        my $post = sub { return map { $new->post(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.Peer', 'Ping') } 1 .. OF_ONE / 2 - 1 };
        my @ping = $post->();
        my (@order, %seen);
        while (@order < @ping && $new->turn(time + TIMEOUT)) {
                push @order, grep { !$seen{$_}++ } keys %{ $new->{replies} };
                push @ping, $post->() if @order == 1; # when the first one is answered, and the others are not
        }
        is_deeply(\@order, \@ping, "the calls of $user are answered in their order");
}

# ---- polkitd that hangs, dies, comes back

kill 'STOP', $polkitd;
my @hanging = map { post_allocate($bus{$_}, "hang-$_", gpu => 1) } @users;
is(error_of($bus{$users[$_]}->reply($hanging[$_])), 'AccessDenied', 'when polkit does not decide, the call is refused') for 0 .. $#users;
my $killed = post_allocate($bus{nobody}, 'killed', gpu => 1);
is($root->ping()->{error}, undef, 'a call waits');
ok(end_polkitd(), 'polkitd dies');
is(error_of($bus{nobody}->reply($killed)), 'AccessDenied', 'when polkitd dies, the call is refused');
is_deeply(describe($root)->{allocations}, [], 'nothing was allocated');
ok(start_polkitd("$ENV{NODE_TMP}/polkit", $rules), 'polkitd is back');
is(allocate_as($bus{nobody}, 'again', gpu => 1), 'done', 'and so is the right to allocate');
is(release_as($bus{nobody}, 'again'), 'done', '... and to release');

done_testing();
