#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A standard client that follows the signals has what GetManagedObjects answers, through random operations and restarts of the daemon; no signal
# tells what was told already.
# MIRROR_OPERATIONS=N makes it longer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IPC::Open2;
use JSON::XS;
use Test::More;

use Node;

use constant { OPERATIONS => $ENV{MIRROR_OPERATIONS} // 150, EACH => 10, SEED => 20261129 };

node('../long/machine');

# A tmpfs of this machine's kernel, for regions of shared memory.
my $shm = "$ENV{NODE_ROOT}/dev/shm";
fault('set dev/shm/.nodesim x') if !-d $shm;
my $mounted = system('mount', '-t', 'tmpfs', '-o', 'size=64m', 'shm', $shm) == 0;
END { local $?; system('umount', $shm) if $mounted }

my $bus = Bus->new->listen;
my $ear = Bus->new->listen;
my $pid = open2(my $from, my $to, "$FindBin::Bin/glib-mirror");

# What the client knows and is not so, or does not know.
sub differences {
        print $to "\n" or die "glib-mirror: $!";
        $to->flush;
        my @found;
        while (defined(my $line = <$from>)) {
                chomp $line;
                return @found if $line eq '';
                push @found, $line;
        }
        return 'glib-mirror has ended';
}

sub is_mirrored { my ($what) = @_; my @found = differences(); return ok(!@found, "$what: the client knows what is there") || diag(map { "$_\n" } @found) }

is_mirrored('at first');

# ---- what each operation tells

my %told;     # object and property => the value that was told last
my @repeated; # what was told again without a difference

# Takes the signals that have come.
sub heard {
        $ear->ping();
        my @signals = splice @{ $ear->{signals} };
        for my $signal (grep { $_->{member} =~ /^(?:InterfacesAdded|PropertiesChanged)$/ } @signals) {
                my ($object, %values) = $signal->{member} eq 'InterfacesAdded' ? ($signal->{body}[0], map { %$_ } values %{ $signal->{body}[1] }) : ($signal->{path}, %{ $signal->{body}[1] });
                for my $name (sort keys %values) {
                        my $value = JSON::XS->new->canonical->allow_nonref->encode($values{$name});
                        next if $object =~ m{/job/} && $name =~ /^(?:Step|Deadline)/; # come together
                        push @repeated, "$object $name $value" if ($told{$object}{$name} // '') eq $value && $signal->{member} eq 'PropertiesChanged';
                        $told{$object}{$name} = $value;
                }
        }
        return @signals;
}

sub of_objects { return [map { $_->{member} } grep { $_->{member} =~ /^(?:InterfacesAdded|InterfacesRemoved|AllocationNew|AllocationRemoved)$/ && "@{ $_->{body} }" =~ m{/allocation/} } @_] }

sub tells {
        my ($what, $expected, $operation) = @_;
        heard();
        is($operation->(), 'done', $what);
        is_mirrored($what);
        my @signals = heard();
        is_deeply(of_objects(@signals), $expected, "$what: told of once");
        return @signals;
}

sub result_of {
        my (@call) = @_;
        my $reply = $bus->call(@call);
        my $job   = $reply->{body}[-1] // '/';
        return $reply->{error} // ($job !~ m{/job/} ? 'done' : $bus->result($job) // 'no result');
}

sub on_guest { my ($method, $name, $signature, @values) = @_; return result_of($method, "st$signature", $name, Node::generation($bus, $name), @values) }

sub to_allocate {
        my ($name, @request) = @_;
        my ($signature, $entries) = request(@request);
        return result_of('Allocate', "s$signature", $name, $entries);
}

my @lease = (gpu => 1, cpus => 2, memory => 2**30, hold => 3600);
tells('a lease', [qw(InterfacesAdded AllocationNew)], sub { to_allocate('vm', @lease) });
my @renewal = tells('its renewal', [], sub { on_guest('Renew', 'vm', 'u', 7200) });
ok(grep({ $_->{member} eq 'PropertiesChanged' && exists $_->{body}[1]{Epoch} } @renewal), 'its renewal: the epoch is told');
tells('its preparation', [], sub { on_guest('Prepare', 'vm', '') });
tells('a further device', [], sub { on_guest('Attach', 'vm', request(ethernet => 1)) });
tells('one device less', [], sub { on_guest('Detach', 'vm', 's', 'ethernet0') });
tells('its release', [qw(InterfacesRemoved AllocationRemoved)], sub { on_guest('Release', 'vm', '') });

my $gpu = '0000:13:00.0';
my ($width, $speed) = map { "sys/bus/pci/devices/$gpu/current_link_$_" } qw(width speed);
fault("set $width 4", "set $speed 2.5 GT/s PCIe");
is($bus->call('Rescan')->{error}, undef, 'a rescan after a link is trained again');
ok(grep({ $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{LinkWidth} // 0) == 4 } heard()), '... tells the lanes');
is_mirrored('a link that is trained again');

# ---- random operations

srand SEED;
my %made; # name => 'lease' or 'ready'
my %done; # operation, and what was asked for => how often

sub any { return $_[rand @_] }
sub new_name { return (grep { !$made{$_} } map { "vm$_" } 1 .. 9)[0] }

# Where the simulated card sits. A card that was taken away comes back with a rescan of the bus.
my $slot = "sys/devices/pci0000:10/0000:10:05.0/$gpu";

# What allocations there are, when the daemon was restarted.
sub note_made {
        %made = map { $_->[0] => $_->[1] eq 'reserved' ? 'lease' : 'ready' } @{ $bus->call('ListAllocations')->{body}[0] };
        return 'done';
}

my %operations = (
        unplug => sub {
                my $there = -d "$ENV{NODE_ROOT}/$slot";
                fault($there ? "remove $slot" : 'write sys/bus/pci/rescan 1');
                return result_of('Rescan');
        },
        # Values that change meanwhile are not told, so what was told before is no measure for what is told after.
        restart => sub {
                my ($signature, $entries) = request(gpu => 1);
                $bus->call('Allocate', "s$signature", new_name(), $entries) if rand() < 0.5 && new_name();
                restart(any('TERM', 'KILL'));
                heard(); # what the earlier daemon told
                %told = ();
                return note_made();
        },
        allocate => sub {
                my $name = new_name() // return 'none';
                my @request = any([gpu => 1, cpus => 2, memory => 2**28], [ethernet => 1], [infiniband => 1, cpus => 1, memory => 2**28], [ofed => 2], [cpus => 1, memory => 2**27, 'remote-gpu' => 1],
                        [cpus => 1, memory => 2**27, 'shared-memory' => [['mpi', 2**22, 0]]])->@*;
                my @hold   = rand() < 0.3 ? (hold => 3600) : ();
                my $result = to_allocate($name, @request, @hold);
                $made{$name} = @hold ? 'lease' : 'ready' if $result eq 'done';
                $done{ $request[-2] }++ if $result eq 'done';
                return $result;
        },
        release => sub {
                my $name   = any(sort keys %made) // return 'none';
                my $result = on_guest('Release', $name, '');
                delete $made{$name} if $result eq 'done';
                return $result;
        },
        prepare => sub {
                my $name   = any(grep { $made{$_} eq 'lease' } sort keys %made) // return 'none';
                my $result = on_guest('Prepare', $name, '');
                $made{$name} = 'ready' if $result eq 'done';
                delete $made{$name} if !allocation($bus, $name);
                return $result;
        },
        renew  => sub { my $name = any(grep { $made{$_} eq 'lease' } sort keys %made) // return 'none'; return on_guest('Renew', $name, 'u', 3600) },
        attach => sub { my $name = any(grep { $made{$_} eq 'ready' } sort keys %made) // return 'none'; return on_guest('Attach', $name, request(any('ethernet', 'infiniband', 'ofed') => 1)) },
        detach => sub {
                my $name = any(grep { $made{$_} eq 'ready' } sort keys %made) // return 'none';
                my $slot = any(map { $_->{slot} // () } @{ allocation($bus, $name)->{devices} }) // return 'none';
                return on_guest('Detach', $name, 's', $slot);
        },
        vfs    => sub { return result_of('SetVirtualFunctions', 'su', '0000:82:00.0', any(0, 2, 4)) },
        rescan => sub { return result_of('Rescan') },
        reload => sub { return result_of('Reload') },
        bind   => sub { my $gpu = any(grep { -d "$ENV{NODE_ROOT}/sys/bus/pci/devices/$_" } $gpu, '0000:84:00.0'); other_hand_binds($gpu, any('', 'nvidia', 'vfio-pci')); return 'done' },
        fail   => sub { fault('reset', 'fail ' . (1 + int rand 8) . ' EIO'); return 'done' },
        clear  => sub { my $device = any(map { $_->{address} } @{ describe($bus)->{quarantine} }) // return 'none'; return result_of('ClearQuarantine', 's', $device) },
);

my $objects = sub { return join "\n", sort keys %{ $bus->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects')->{body}[0] } };
my $before  = $objects->();
for my $n (1 .. OPERATIONS) {
        my $name = any(sort keys %operations, qw(allocate allocate release));
        my $result = $operations{$name}->();
        $done{$name}++ if $result eq 'done';
        heard();
        next if $n % EACH;
        is_mirrored("after $n operations") or last;
}
is_deeply(\@repeated, [], 'nothing is told again without a difference');
ok($done{$_}, "there was $_") for sort(keys %operations), $mounted ? 'shared-memory' : ();
note(join ', ', map { "$done{$_} $_" } sort keys %done);

# Each device comes back, so that as many objects are there as before, and the client knows of no others.
fault('reset');
$operations{unplug}->() if !-d "$ENV{NODE_ROOT}/$slot";
release_all($bus);
clear_quarantine($bus);
is(result_of('SetVirtualFunctions', 'su', '0000:82:00.0', 4), 'done', 'the VFs are made again');
is_mirrored('after the release of all');
is($objects->(), $before, '... there are the objects that were there before the operations');
close $to;
waitpid $pid, 0;
is($?, 0, 'the client lives');

done_testing();
