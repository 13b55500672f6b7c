#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# No caller stalls or fattens the daemon: while an outsider or a member of the group sends as much as it can, root is
# served, and afterwards the daemon has the memory and the descriptors that it had before.
#
# HOSTILE=full sends all, and has the limits of a quiet machine: `make check-long`. The attacker and the bus take CPU time that
# the daemon has no say in, so the worst Ping is compared with the worst beside processes that do nothing but take CPU time.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use List::Util qw(max sum);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use Node;
use Nobody;
use Polkit;

need_nobody();
for my $user (qw(daemon games)) { plan skip_all => "no user $user" if !defined getpwnam $user }
node('hgx-h100', root => 1);

use constant FULL => ($ENV{HOSTILE} // '') eq 'full';
use constant { PINGS => FULL ? 500 : 50, ALLOCATIONS => FULL ? 15 : 3, BUSY => 2 };
# Seconds of a Ping; how many times its quiet time an Allocate takes; bytes. A machine that runs other tests is slow.
# A sanitizer keeps freed memory on purpose.
my %LIMITS = (FULL ? (ping => 0.005, allocate => 2) : (ping => 1, allocate => 20), memory => $ENV{CHECK_SANITIZE} ? 1 << 30 : 32 << 20);

my $root = Bus->new("$ENV{RUNTIME_DIRECTORY}/private");
my $bus  = Bus->new->listen;
(my $policy = slurp("$ENV{NODE_TMP}/policy.conf")) =~ s{</busconfig>}{<policy user="games"><allow send_destination="org.passthroughd1"/></policy></busconfig>};
spew("$ENV{NODE_TMP}/policy.conf", $policy);
is($bus->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'ReloadConfig')->{error}, undef, 'another member of the group');
is(allocate($bus, 'vm', gpu => 1, cpus => 4, memory => 1 << 30, owner => scalar getpwnam 'nobody'), 'done', 'an allocation for documents, which nobody owns');

# ---- what is measured

# With the texts that clients have not closed.
sub texts       { return sum(0, map { (stat $_)[12] * 512 } grep { (readlink($_) // '') =~ m{^/memfd:} } glob '/proc/' . pid() . '/fd/*') }
sub memory      { return (slurp('/proc/' . pid() . '/status') =~ /^VmRSS:\s+(\d+) kB$/m && $1 << 10) + texts() }
sub descriptors { return scalar(my @all = glob '/proc/' . pid() . '/fd/*') }

sub seconds {
        my ($function) = @_;
        my $start = time;
        $function->();
        return time - $start;
}

sub ping { return seconds(sub { $root->ping()->{error} and die 'Ping fails' }) }

# The reply to an Allocate, which is undone.
sub allocate_once {
        my ($reply, $released);
        my $took = seconds(sub { $reply = $root->call('Allocate', 'sa{sv}', 'root', [['devices', ['a(su)', [['gpu', 1]]]], ['cpus', ['u', 2]], ['memory', ['t', 1 << 30]]]) });
        die "Allocate: $reply->{error}" if $reply->{error};
        die 'the job fails' if $root->result($reply->{body}[1]) ne 'done';
        is(release($root, 'root'), 'done', 'root releases') or die;
        return $took;
}

# Another member, on a new connection: a plan, and a reply from the event loop.
sub member_is_served {
        my @errors = as_user('games', sub {
                my $client = Bus->new;
                return map { $_->{error} // () } $client->call('Plan', request(gpu => 1)), $client->call('ListAllocations');
        });
        return !@errors;
}

# The worst Ping, the 98th of 100, and the median Allocate.
sub measure {
        my @pings = sort { $a <=> $b } map { ping() } 1 .. PINGS;
        my @allocations = sort { $a <=> $b } map { allocate_once() } 1 .. ALLOCATIONS;
        return { worst => $pings[-1], ping => $pings[@pings * 0.98], allocate => $allocations[@allocations / 2] };
}

sub figures { my ($m) = @_; return sprintf 'Ping %.1f ms, at worst %.1f ms, Allocate %.1f ms', map { 1e3 * $_ } @$m{qw(ping worst allocate)} }

# ---- who attacks

# Runs the function as the user, and keeps its connections until it is killed. Its pid when the function has returned or
# the bus has stopped reading from it, and why it failed.
sub begin {
        my ($user, $function) = @_;
        pipe my $in, my $out or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                close $in;
                become($user);
                my @kept = eval { $function->() };
                syswrite $out, $@;
                close $out;
                sleep 600;
                POSIX::_exit(0);
        }
        close $out;
        my $bits = '';
        vec($bits, fileno $in, 1) = 1;
        select($bits, undef, undef, FULL ? 60 : 3) > 0 or return ($pid, '');
        my $failure = <$in>;
        return ($pid, $failure // '');
}

# Takes CPU time until it is killed.
sub busy {
        my ($user) = @_;
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        become($user);
        1 while 1;
}

sub finish { my ($pid) = @_; kill 'KILL', $pid; waitpid $pid, 0; return }

# ---- what they send

my @MANAGER = (Bus::NAME, Bus::PATH, Bus::MANAGER);
my @OBJECTS = (Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects');
my $NO_REPLY = "\1"; # D-Bus Specification, Message Format: flags

sub plan_of { my (@devices) = @_; return (@MANAGER, 'Plan', 'a{sv}', [['devices', ['a(su)', \@devices]]]) }
sub document { my ($template) = @_; return (@MANAGER, 'GetDomainXML', 'sa{sv}', 'vm', [['template', ['s', $template]]]) }

# The call, n times, on one connection.
sub repeat {
        my ($n, @call) = @_;
        my $client = Bus->new;
        $client->post(@call) for 1 .. $n;
        return $client;
}

# A call of which the last byte is missing, so that its sender goes in the middle.
sub vanish {
        my (@call) = @_;
        my $client = Bus->new;
        $client->post(@call);
        my $bytes = Bus::message(99, @call);
        $client->send_bytes(substr $bytes, 0, -1);
        return;
}

sub match_rules {
        my $client = Bus->new;
        $client->post('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'AddMatch', 's', "type='signal',path='/org/passthroughd1/device/$_'") for 1 .. 512;
        return $client;
}

my $attributes = "<domain type='kvm'><name " . join(' ', map { "a$_='1'" } 1 .. 37_832) . '>x</name></domain>';
my $nested     = "<domain type='kvm'>" . '<a>' x 30_000 . '</a>' x 30_000 . '</domain>';
my $elements   = "<domain type='kvm'><devices>" . '<a/>' x 60_000 . '</devices></domain>';
my $entities   = '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">' . join('', map { my $c = chr(97 + $_); my $d = chr(98 + $_); "<!ENTITY $d '" . "&$c;" x 10 . "'>" } 0 .. 8) . "]><domain type='kvm'><name>&i;</name></domain>";
my @pools      = map { [$_, 1] } map { $_->{name} } @{ describe($bus)->{pools} };
splice @pools, 8 if @pools > 8;

my @attacks = (
        ['plans with a pool name of 1 MiB', sub { map { repeat(FULL ? 200 : 8, plan_of(['a' x (1 << 20), 1])) } 1 .. 8 }],
        ['an attribute text of 1 MiB', sub { map { repeat(FULL ? 200 : 8, @MANAGER, 'Plan', 'a{sv}', [['vf-attributes', ['a{ss}', [['a' x (1 << 20), 'b' x (1 << 20)]]]]]) } 1 .. 4 }],
        ['allocations of a name of 1 MiB', sub { map { repeat(FULL ? 200 : 8, @MANAGER, 'GetAllocation', 's', 'a' x (1 << 20)) } 1 .. 4 }],
        (map { my $member = $_; ["replies of $member that are not read", sub { map { repeat(128, @MANAGER, $member) } 1 .. 20 }] } qw(Describe DescribeTopology ListDevices)),
        ['all objects, not read', sub { map { repeat(128, @OBJECTS) } 1 .. 20 }],
        ['introspection, not read', sub { map { repeat(128, Bus::NAME, $_ % 2 ? '/' : Bus::PATH, 'org.freedesktop.DBus.Introspectable', 'Introspect') } 1 .. 20 }],
        ['plans that want no reply', sub { my $client = Bus->new; my $bytes = Bus::message(7, plan_of(@pools)); substr($bytes, 2, 1) = $NO_REPLY; $client->send_bytes($bytes x 1000) for 1 .. 10; return }],
        ['plans of all pools', sub { map { repeat(FULL ? 100 : 20, plan_of(@pools)) } 1 .. 8 }],
        ['a template of 37,832 attributes', sub { map { repeat(5, document($attributes)) } 1 .. 4 }],
        ['a template of nested elements', sub { map { repeat(5, document($nested)) } 1 .. 4 }],
        ['a template of many elements', sub { map { repeat(5, document($elements)) } 1 .. 4 }],
        ['a template of entities', sub { map { repeat(5, document($entities)) } 1 .. 4 }],
        ['connections that say nothing', sub { map { IO::Socket::UNIX->new(Peer => $ENV{DBUS_SYSTEM_BUS_ADDRESS} =~ s/^unix:path=([^,;]+).*/$1/r) // () } 1 .. (FULL ? 300 : 60) }],
        ['match rules', sub { map { match_rules() } 1 .. (FULL ? 240 : 16) }],
        ['callers that vanish in mid-call', sub { for (1 .. (FULL ? 1000 : 50)) { vanish(plan_of(@pools)); vanish(@MANAGER, 'Describe') } return }],
        ['calls with descriptors', sub { open my $null, '<', '/dev/null' or die $!; local @Bus::ATTACHED = ($null) x 16; map { repeat(FULL ? 1000 : 100, plan_of(@pools)) } 1 .. 8 }],
        ['many connections of one user', sub { map { my $client = repeat(16, plan_of(@pools)); $client->post(@MANAGER, $_) for (qw(Describe DescribeTopology ListDevices)) x 4; $client } 1 .. 50 }],
        ['long changes', sub { map { repeat(FULL ? 100 : 8, @MANAGER, 'Release', 'st', 'a' x (1 << 20), 1) } 1 .. 8 }],
        ['changes that are not permitted', sub { map { repeat(FULL ? 5000 : 500, @MANAGER, 'Release', 'st', 'vm', 1) } 1 .. 8 }],
);

# ---- before, while and after

allocate_once();
my $quiet = measure();
my ($memory, $descriptors) = (memory(), descriptors());
my $pid = pid();
note(sprintf 'quiet: %s, %.1f MiB, %d descriptors', figures($quiet), $memory / (1 << 20), $descriptors);
my @busy = map { busy('nobody') } 1 .. BUSY;
my $floor = measure();
kill 'KILL', @busy;
waitpid $_, 0 for @busy;
note('beside ' . BUSY . ' busy processes: ' . figures($floor));

sub attacked {
        my ($user, $what, $function) = @_;
        return subtest $what => sub {
                my ($attacker, $failure) = begin($user, $function);
                is($failure, '', 'all is sent');
                my $measured = measure();
                my $grown = memory() - $memory;
                note(sprintf '%s, %+.1f MiB', figures($measured), $grown / (1 << 20));
                ok(wait_until(\&member_is_served), 'another member is served');
                cmp_ok($measured->{ping}, '<', $LIMITS{ping}, "98 of 100 of root's Pings");
                cmp_ok($measured->{worst}, '<', $LIMITS{ping} + $floor->{worst}, "root's worst Ping");
                cmp_ok($measured->{allocate}, '<', $LIMITS{allocate} * max($quiet->{allocate}, $floor->{allocate}), "root's Allocate");
                cmp_ok($grown, '<', $LIMITS{memory}, 'memory');
                finish($attacker);
                # The daemon closes the text of a closed reply when it serves the next one.
                ok(wait_until(sub { $root->ask(plan_of(['gpu', 1])); descriptors() <= $descriptors }), 'descriptors') or diag(descriptors());
        };
}

attacked('nobody', @$_) for @attacks;

# ---- a user who may allocate, and whose calls polkit has to decide about

my $polkitd = start_polkitd("$ENV{NODE_TMP}/polkit", 'polkit.addRule(function(action) { if (action.id == "org.passthroughd1.allocate") return polkit.Result.YES; });');
ok($polkitd, 'polkitd runs');
my @checked = ([@MANAGER, 'Release', 'st', 'none', 1], [@MANAGER, 'Allocate', 'sa{sv}', 'more', [['devices', ['a(su)', [['gpu', 99]]]]]]);
for my $call (@checked) {
        attacked('nobody', "1,024 calls of $call->[3], which polkit decides about", sub { map { repeat(128, @$call) } 1 .. 8 });
        kill 'STOP', $polkitd;
        attacked('nobody', "1,024 calls of $call->[3], while polkit hangs", sub { map { repeat(128, @$call) } 1 .. 8 });
        kill 'CONT', $polkitd;
}
my %answers;
$answers{$_}++ for as_nobody(sub {
        my @clients = map { repeat(128, @{ $checked[0] }) } 1 .. 8;
        return map { my $client = $_; map { ($client->reply($_)->{error} // 'none') =~ s/.*\.//r } 2 .. 129 } @clients; # the first is Hello
});
is_deeply([sort keys %answers], [qw(LimitExceeded NoSuchAllocation)], 'each call is answered, or refused for the limit') or diag(explain(\%answers));
ok(end_polkitd(), 'polkitd ran until now');

# The bus refuses all calls of an outsider.
attacked('daemon', 'all of these, as an outsider', sub { map { $_->[1]->() } @attacks });
is(pid(), $pid, 'it is the same daemon');
ok(wait_until(sub { !Bus->new->ping()->{error} }), 'which serves clients of the bus');
cmp_ok(memory() - $memory, '<', $LIMITS{memory}, 'and has not grown');
is(allocation_state(Bus->new, 'vm'), 'ready', 'the allocation is as it was');

done_testing();
