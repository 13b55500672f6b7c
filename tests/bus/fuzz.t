#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Calls every method of every object with random values, of its signature and of others, as nobody and as root. Each call has an answer that
# is documented, the daemon lives and does not grow, and nobody changes nothing.
#
# FUZZ_SEED=N repeats a run, FUZZ_CALLS=N makes it longer: calls of a round; there are at least seven.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use POSIX ();
use Test::More;

use Node;
use Nobody;

use constant { CALLS => 700, PROPERTIES => 'org.freedesktop.DBus.Properties', GROWTH_MAX => 64 * 1024 };

need_nobody();
node('edge');

$SIG{PIPE} = 'IGNORE';    # a bus that hangs up is an error to report
my $seed  = $ENV{FUZZ_SEED}  // int rand 2**31;
my $calls = $ENV{FUZZ_CALLS} // CALLS;
diag("FUZZ_SEED=$seed FUZZ_CALLS=$calls");

# What the man page documents is what names.h has (check-names); what the bus library and the bus itself say besides.
my %documented = map { ("org.passthroughd1.Error.$_" => 1) } slurp("$FindBin::Bin/../../include/bus/names.h") =~ /BUS_ERROR_PREFIX "(\w+)"/g;
$documented{"org.freedesktop.DBus.Error.$_"} = 1
        for qw(AccessDenied InvalidArgs InvalidSignature UnknownInterface UnknownMethod UnknownObject UnknownProperty PropertyReadOnly);

# ---- what there is

my (@objects, %methods, %properties);    # paths; [interface, member, in, out]; interface to name to type

sub introspect {
        my ($bus, $path) = @_;
        my $reply = $bus->ask(Bus::NAME, $path, 'org.freedesktop.DBus.Introspectable', 'Introspect');
        return if $reply->{error};
        my $xml = $reply->{body}[0];
        push @objects, $path;
        while ($xml =~ m{<interface name="([^"]+)">(.*?)</interface>}gs) {
                my ($interface, $body) = ($1, $2);
                while ($body =~ m{<method name="(\w+)"(?:/>|>(.*?)</method>)}gs) {
                        my ($member, $arguments, %signature) = ($1, $2 // '', in => '', out => '');
                        while ($arguments =~ m{<arg ([^>]*)>}g) {
                                my ($type, $direction) = map { $1 =~ /$_="([^"]+)"/ } 'type', 'direction';
                                $signature{ $direction // 'in' } .= $type;
                        }
                        $methods{"$interface.$member"} = [$interface, $member, $signature{in}, $signature{out}];
                }
                while ($body =~ m{<property name="(\w+)" type="([^"]+)" access="(\w+)"}g) { $properties{$interface}{$1} = $2 }
        }
        introspect($bus, ($path eq '/' ? '' : $path) . "/$_") for $xml =~ m{<node name="([^"/]+)"}g;
        return;
}

# ---- random values

my (@words, @numbers, @devices, @pfs, @allocations);
my @templates = ('<domain type="kvm"/>', '<domain type="kvm"><devices><hostdev type="pci"/></devices></domain>', '<domain', '<!DOCTYPE d []><domain/>');
my @boundaries = (0 .. 5, 8, 9, 15, 16, 17, 63, 64, 65, 255, 256, 4095, 4096, 4097, 2**15 - 1, 2**15, 2**16 - 1, 2**16, 2**21, 2**30, 2**31 - 1, 2**31, 2**32 - 1,
        2**32, 2**40, 2**50, 2**63 - 1, ~0);
my %BITS = (y => 8, n => 16, q => 16, i => 32, u => 32, x => 64, t => 64);

sub one_of { return $_[int rand @_] }

# The names that mean something now.
sub learn {
        my ($bus) = @_;
        @devices     = @{ $bus->call('ListDevices')->{body}[0] };
        @allocations = @{ $bus->call('ListAllocations')->{body}[0] };
        @pfs = map { $_->{address} } grep { $_->{total_vfs} } @{ describe($bus)->{devices} };
        @words = (
                (map { $_->[0] } @devices), (map { $_->[0] } @allocations) x 8, (map { $_->[1] } @devices), qw(gpu nic vf disk) x 4, (map { "vm$_" } 1 .. 9) x 4,
                qw(single required preferred socket legacy switch root-complex node any 0000:77:00.0), keys %properties, map { keys %$_ } values %properties,
        );
        @numbers = (@boundaries, map { $_->[2] } @allocations);
        return;
}

sub text {
        my $kind = rand;
        return one_of(@words) if $kind < 0.7;
        return one_of(@templates) if $kind < 0.75;
        return join '', map { chr 32 + rand 95 } 1 .. rand 20 if $kind < 0.8;
        return join '', map { my $c = chr 1 + rand 0x2fff; utf8::encode($c); $c } 1 .. rand 40 if $kind < 0.88;
        return one_of('', '%s%n%x', '../../etc/passwd', "a\nb", '/', '-x', "\e[31m", "\xc3\xa9" x 33, 'vm/1', 'vm_2e', '*') if $kind < 0.97;
        return one_of('n', "\xe2\x82\xac", '<a>', '0') x one_of(64, 256, 4096, 100_000);
}

sub number {
        my ($type) = @_;
        my $bits = $BITS{$type};
        my $n = rand() < 0.8 ? one_of(@numbers) : int rand 2**32;
        $n &= 2**$bits - 1 if $bits < 64;
        return $n if $type =~ /[yqut]/;
        return unpack { n => 's', i => 'l', x => 'q' }->{$type}, pack { n => 'S', i => 'L', x => 'Q' }->{$type}, $n;
}

sub path { return rand() < 0.7 ? one_of(@objects) : one_of('/', '/x', Bus::PATH . '/device/_30', Bus::PATH . '/job/0', Bus::PATH . '/allocation/_2e', '/a/' . 'b' x 300) }

my @some_types = (qw(y b n q i u x t d s o g v as au ay a{sv} a{ss} a(su) a(us) (su) a{su} aas av (sa{sv}) a{s(su)} a(ssu)), '((((s))))', 'aaaaas');

sub value {
        my ($type, $depth) = @_;
        my $kind = substr $type, 0, 1;
        return number($type) if $BITS{$type};
        return int rand 2 if $kind eq 'b';
        return one_of(0, -1, 1e308, -0.0, 9**9**9, rand) if $kind eq 'd';
        return text() if $kind eq 's';
        return path() if $kind eq 'o';
        return one_of('', 's', 'a{sv}', 'a' x 30 . 's', '(' x 20 . 'i' . ')' x 20) if $kind eq 'g';
        if ($kind eq 'v') {
                my $inside = $depth > 6 ? 's' : one_of(@some_types);
                return [$inside, value($inside, $depth + 1)];
        }
        return wish($depth) if $type eq 'a{sv}' && rand() < 0.8;
        if ($kind eq 'a') {
                my $n = $depth > 2 ? int rand 3 : $depth == 0 && rand() < 0.02 ? 2000 : int rand 6;
                return [map { value(substr($type, 1), $depth + 1) } 1 .. $n];
        }
        return [map { value($_, $depth + 1) } Bus::types(substr $type, 1, -1)];
}

# A request, or the options of GetDomainXML, mostly of the right types.
my %keys = (%Node::KEYS, devices => 'a(su)', template => 's');

sub wish {
        my ($depth) = @_;
        return [['template', ['s', one_of(@templates, text())]]] if rand() < 0.2;
        my @entries;
        push @entries, ['devices', ['a(su)', [map { [one_of(qw(gpu nic vf disk)), rand() < 0.9 ? 1 + int rand 2 : number('u')] } 1 .. 1 + rand 2]]] if rand() < 0.7;
        push @entries, ['cpus', ['u', 1 + int rand 4]], ['memory', ['t', 2**30]] if rand() < 0.4;
        for (1 .. rand 3) {
                my $key  = rand() < 0.9 ? one_of(keys_sorted()) : text();
                my $type = rand() < 0.8 ? $keys{$key} // 's' : one_of(@some_types);
                push @entries, [$key, [$type, value($type, $depth + 1)]];
        }
        return \@entries;
}
sub keys_sorted { return sort keys %keys }

# Arguments with which a method of the Manager may well do what it is for.
my @vms = map { "vm$_" } 1 .. 9;

sub modest {
        my @wanted = rand() < 0.7 ? ([one_of(qw(gpu nic vf vf vf disk)), 1]) : ();
        my @guest  = !@wanted || rand() < 0.6 ? (['cpus', ['u', 1 + int rand 2]], ['memory', ['t', 2**30]]) : ();
        return [(@wanted ? ['devices', ['a(su)', \@wanted]] : ()), @guest];
}

my %sensible = (
        GetDevice           => sub { return one_of(@devices)->[0] },
        Explain             => sub { return one_of(@devices)->[0] },
        GetAllocation       => sub { return @allocations ? one_of(@allocations)->[0] : 'vm1' },
        GetDomainXML        => sub { return (@allocations ? one_of(@allocations)->[0] : 'vm1', rand() < 0.5 ? [] : [['template', ['s', one_of(@templates)]]]) },
        GetNcclTopology     => sub { return (@allocations ? one_of(@allocations)->[0] : 'vm1', rand() < 0.5 ? [] : [['template', ['s', one_of(@templates)]]]) },
        Plan                => sub { return modest() },
        Allocate            => sub { return (one_of(@vms), modest()) },
        Release             => sub { return @allocations ? @{ one_of(@allocations) }[0, 2] : ('vm1', 1) },
        SetVirtualFunctions => sub { return (one_of(@pfs), int rand 4) },
);

my @sensible_names = sort keys %sensible;
my @method_names;

# [path, interface, member, signature, values...]
sub random_call {
        my $method = $methods{ one_of(@method_names) };
        $method = $methods{ Bus::MANAGER . '.' . one_of(@sensible_names) } if rand() < 0.6;
        my ($interface, $member, $in) = @$method;
        my $path = rand() < 0.9 && $interface =~ /Manager/ ? Bus::PATH : path();
        return [$path, $interface, $member, $in, $sensible{$member}->()] if $sensible{$member} && rand() < 0.5;
        my $signature = $in;
        $signature = one_of('', $in . 's', substr($in, 0, 1) eq 's' ? 'o' : 's', join '', map { one_of(@some_types) } 0 .. rand 3) if rand() < 0.15;
        my @values = map { value($_, 0) } Bus::types($signature);
        if ($interface eq PROPERTIES && $signature eq $in && rand() < 0.8) {
                my $owner = one_of(sort keys %properties);
                my $name  = one_of(sort keys %{ $properties{$owner} });
                @values = ($owner, $name, [$properties{$owner}{$name}, value($properties{$owner}{$name}, 1)])[0 .. $#values];
        }
        return [$path, $interface, rand() < 0.02 ? 'No' . $member : $member, $signature, @values];
}

# Of every property of every object, and every method of every interface of every object once.
sub every_call {
        my @all;
        for my $path (@objects, '/org/passthroughd1/nothing') {
                for my $key (sort keys %methods) {
                        my ($interface, $member, $in) = @{ $methods{$key} };
                        push @all, [$path, $interface, $member, $in, map { value($_, 0) } Bus::types($in)] if $interface ne PROPERTIES;
                }
                for my $interface (sort keys %properties) {
                        push @all, [$path, PROPERTIES, 'GetAll', 's', $interface];
                        for my $name (sort keys %{ $properties{$interface} }) {
                                my $type = $properties{$interface}{$name};
                                push @all, [$path, PROPERTIES, 'Get', 'ss', $interface, $name], [$path, PROPERTIES, 'Set', 'ssv', $interface, $name, [$type, value($type, 1)]];
                        }
                }
        }
        return @all;
}

# ---- answers

# Why the answer is not one that is documented; undef when it is.
my %answers;    # of this process, by method and error: shows how deep the calls go

sub wrong {
        my ($call, $reply) = @_;
        $answers{ $call->[2] . ' ' . ($reply->{error} // 'done') =~ s/.*\.//r }++;
        my ($path, $interface, $member, $signature) = @$call;
        my $method = $methods{"$interface.$member"};
        if (!defined $reply->{error}) {
                # The library answers its own methods whatever else they are given.
                return 'an answer to a call that is not there' if !$method || $method->[2] ne $signature && $interface =~ /^org\.passthroughd1/;
                return 'an answer of the type ' . ($reply->{signature} // '') . ", documented is $method->[3]" if ($reply->{signature} // '') ne $method->[3];
                return;
        }
        return "the error $reply->{error}: " . ($reply->{body}[0] // '') if !$documented{ $reply->{error} };
        return if $reply->{error} !~ /^org\.passthroughd1/;
        my ($sentence, $json) = @{ $reply->{body} };
        return "no sentence: $sentence" if $sentence !~ /^\S.*\.$/ || $sentence =~ /[\x00-\x1f\x7f]/ || !utf8::decode(my $copy = $sentence);
        my $refusal = eval { JSON::XS->new->utf8->decode($json) } // return "no JSON: $json";
        return "no verdict: $json" if ($refusal->{verdict} // 'none') eq 'none';
        return;
}

sub show { my ($call) = @_; return substr(JSON::XS->new->ascii->allow_nonref->encode($call), 0, 600) }

# Makes the calls, some at once; returns what was wrong.
sub make_calls {
        my ($bus, @queue) = @_;
        my @found;
        while (@queue && @found < 5) {
                my @batch   = splice @queue, 0, 1 + rand 12;
                my @replies = eval { my @serials = map { $bus->post(Bus::NAME, @$_) } @batch; map { $bus->reply($_) } @serials };
                return @found, "no answer to one of these: $@" . join '', map { "\n    " . show($_) } @batch if !@replies;
                for my $i (0 .. $#batch) {
                        my $wrong = wrong($batch[$i], $replies[$i]);
                        push @found, "$wrong\n    " . show($batch[$i]) if defined $wrong;
                }
        }
        return @found;
}

sub round_of {
        my ($bus, $number, $n) = @_;
        srand $seed + $number;
        learn($bus);
        my @found;
        for (my $left = $n; $left > 0 && @found < 5; $left -= 100) {
                push @found, make_calls($bus, map { random_call() } 1 .. ($left < 100 ? $left : 100));
                learn($bus);
        }
        return @found;
}

# Calls, and is gone before the answer.
sub hang_up {
        for (1 .. 20) {
                my $bus = Bus->new;
                $bus->post(Bus::NAME, @{ random_call() }) for 1 .. 5;
        }
        return;
}

# Bytes of memory that only the daemon has.
sub memory {
        my $pid = pid();
        my %size = slurp("/proc/$pid/smaps_rollup") =~ /^(Private_\w+): *(\d+) kB/mg;
        my $sum = 0;
        $sum += $_ * 1024 for values %size;
        return $sum;
}

# ---- a node with an allocation, and what is on it

my $bus = Bus->new;
introspect($bus, '/');
my $root = Bus->new->listen;
is(allocate($root, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'there is an allocation');
@objects = ();
introspect($bus, '/');
@method_names = sort keys %methods;
srand $seed;
learn($bus);
cmp_ok(scalar @objects, '>', 20, scalar(@objects) . ' objects') or diag("@objects");
cmp_ok(scalar(grep { /^org\.passthroughd1/ } keys %methods), '>', 10, scalar(keys %methods) . ' methods');
cmp_ok(scalar(keys %properties), '>', 2, 'and interfaces with properties');

sub none_wrong {
        my ($what, @found) = @_;
        return ok(!@found, "$what: every answer is documented") || diag("FUZZ_SEED=$seed FUZZ_CALLS=$calls\n", map { "  $_\n" } @found);
}

# ---- as nobody: changes nothing. First with the policy we ship, then on a bus that lets everything through to the daemon.

$root->forget_signals();
fault('reset');
my ($tree, $state, $daemon) = (tree(), snapshot(times => 1), pid());

sub nobody_changed_nothing {
        my ($what) = @_;
        nothing_written("$what: nothing was written to the node");
        same_tree($tree, '... which is as before');
        same_state($state, '... nor to the state directory', times => 1);
        is_deeply([$root->signal_names()], [], '... and there was no signal');
        is(pid(), $daemon, '... the daemon lives');
        return;
}

none_wrong('each once, as nobody', as_nobody(sub { srand $seed; return make_calls(Bus->new, every_call()) }));
none_wrong('as nobody', as_nobody(sub { return round_of(Bus->new, 1, $calls) }));
nobody_changed_nothing('nobody by our policy');

(my $lax = slurp("$ENV{NODE_TMP}/bus.conf")) =~ s{</busconfig>}{<policy context="mandatory"><allow send_destination="org.passthroughd1"/></policy></busconfig>};
spew("$ENV{NODE_TMP}/bus.conf", $lax);
is($bus->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'ReloadConfig')->{error}, undef, 'a bus without a policy');
none_wrong('each once, as nobody without the policy of the bus', as_nobody(sub { srand $seed; return make_calls(Bus->new, every_call()) }));
my @memory;
for my $round (2, 3, 3, 3, 3) {    # the same again needs no more memory than before
        none_wrong("as nobody without the policy of the bus, $round", as_nobody(sub { my @found = round_of(Bus->new, $round, $calls); hang_up(); return @found }));
        $root->ping();
        push @memory, memory();
}
note("memory of the daemon after each round: @memory");
nobody_changed_nothing('nobody by the rules of the daemon');

if (!$ENV{CHECK_SANITIZE}) {    # a sanitizer keeps freed memory on purpose, and looks for leaks when the daemon ends
        my ($growth) = sort { $a <=> $b } map { $memory[$_] - $memory[$_ - 1] } 2 .. $#memory;
        cmp_ok($growth, '<', GROWTH_MAX, "after the same $calls calls again the daemon is as large as before") or diag("@memory");
}

# ---- as root: may change everything, but promises nothing twice

none_wrong('each once, as root', make_calls($bus, every_call()));
my @deep = ('Allocate done', 'Release done', 'Plan done', 'GetDomainXML (?:done|InvalidTemplate)');
sub shallow { return grep { my $deep = $_; !grep { /^$deep$/ } keys %answers } @deep }
for my $round (5 .. 9) {    # chance may need another one
        none_wrong("as root, $round", round_of($bus, $round, $calls));
        last if $calls < CALLS || !shallow();
}
hang_up();
note("$_: $answers{$_}") for sort keys %answers;
if ($calls >= CALLS) {    # fewer may not get that far
        is_deeply([shallow()], [], 'some calls go deep');
}
is(pid(), $daemon, 'the daemon lives');
ok(!$bus->ping()->{error}, 'and answers');

my %holders;
for my $allocation (@{ describe($bus)->{allocations} }) {
        push @{ $holders{"device $_->{address}"} }, $allocation->{name} for @{ $allocation->{devices} };
        push @{ $holders{"CPU $_->{cpu}"} },        $allocation->{name} for @{ $allocation->{pins} };
}
is_deeply([grep { @{ $holders{$_} } > 1 } sort keys %holders], [], 'nothing is promised twice');

my $names = sub { return [sort map { $_->[0] } @{ $bus->call('ListAllocations')->{body}[0] }] };
my $quiet = sub { return !grep { $_->[1] =~ /^(?:preparing|releasing)$/ } @{ $bus->call('ListAllocations')->{body}[0] } };
ok(wait_until($quiet), 'all jobs end');
my $before = $names->();
is(daemon('stop'), 0, 'the daemon ends');
is(daemon('start'), 0, 'and starts');
is_deeply($names->(), $before, 'with the ' . @$before . ' allocations it had');
release_all($root);
is_deeply($names->(), [], 'which can all be released');
is(daemon('stop'), 0, 'and ends again');

done_testing();
