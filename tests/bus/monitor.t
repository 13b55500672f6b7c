#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl monitor: what happens is told, in order, once, at once, and by the daemon alone.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;
use Time::HiRes qw(time);

use Node;

# Whatever started this may ignore them, as a shell does for what runs in the background.
$SIG{$_} = 'DEFAULT' for qw(INT HUP TERM);

node('paper-testbed');

use constant DEADLINE => 90;

my $gpu   = '0000:82:00.0';
my $path  = "sys/devices/pci0000:80/0000:80:02.0/$gpu";
my $STAMP = qr/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}/;
my $bus   = Bus->new->listen;

sub monitor {
        my (@options) = @_;
        my $err = "$ENV{NODE_TMP}/monitor.err";
        pipe my $reader, my $writer or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                local $SIG{PIPE} = 'DEFAULT';
                open STDOUT, '>&', $writer or die $!;
                open STDERR, '>', $err     or die $!;
                exec 'passthroughctl', 'monitor', @options or die $!;
        }
        return { pid => $pid, out => $reader, in => '', err => $err };
}

# The next line; undef at the end of the output, dies at the end of the time.
sub next_line {
        my ($m) = @_;
        my $end = time + DEADLINE;
        until ($m->{in} =~ /\n/) {
                my $bits = '';
                vec($bits, fileno $m->{out}, 1) = 1;
                my $left = $end - time;
                die "no line after '$m->{in}'" if $left <= 0 || select($bits, undef, undef, $left) <= 0;
                sysread($m->{out}, $m->{in}, 65_536, length $m->{in}) or return;
        }
        (my $line, $m->{in}) = split /\n/, $m->{in}, 2;
        return $line;
}

# The lines up to and with the one that matches, without their times.
sub lines_until {
        my ($m, $wanted) = @_;
        my @lines;
        while (defined(my $line = next_line($m))) {
                $line =~ s/^$STAMP // or push @lines, 'no time:';
                push @lines, $line;
                return @lines if $line =~ $wanted;
        }
        return @lines, 'the end';
}

# The same of --json, as hashes without "time".
sub events_until {
        my ($m, $wanted) = @_;
        my @events;
        while (defined(my $line = next_line($m))) {
                my $event = JSON::XS->new->utf8->decode($line);
                (delete $event->{time} // '') =~ /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/ or push @events, 'no time:';
                push @events, $event;
                return @events if $event->{event} eq $wanted;
        }
        return @events, 'the end';
}

sub ended {
        my ($m) = @_;
        1 while defined next_line($m);
        waitpid $m->{pid}, 0;
        return ($? & 127 ? "signal " . ($? & 127) : $? >> 8, slurp($m->{err}));
}

# A GPU of an unknown NUMA node.
fault(map { "set $_/numa_node -1" } $path =~ s{/[^/]*$}{}r, $path);
$bus->call('Rescan');

like(qx(passthroughctl monitor --help), qr/^ +--json +\S/m, 'the help says what --json prints');
my ($text, $json) = (monitor(), monitor('--json'));
is_deeply([lines_until($text, qr/^daemon/)], ['daemon running'], 'the first line says that all from here on is told');
is_deeply([events_until($json, 'daemon-running')], [{ event => 'daemon-running' }], 'with --json too');

is(allocate($bus, 'guest', gpu => 1), 'done', 'an allocation is made');
is_deeply([lines_until($text, qr/removed/)], [
        'allocation guest new: state preparing',
        qq{device $gpu changed: state allocated, reason "$gpu is held by 'guest'.", remedy "Release that allocation first.", allocation guest},
        'job 1 new: verb prepare, subject guest',
        "job 1 step 1/3: reserve $gpu for driver vfio-pci",
        "job 1 step 2/3: unbind $gpu from nvidia",
        "job 1 step 3/3: bind $gpu to vfio-pci",
        'allocation guest changed: state ready',
        "device $gpu changed: driver vfio-pci",
        'job 1 removed: done',
], 'and told, line for line');
my ($new, @events) = events_until($json, 'job-removed');
my $id = delete $new->{properties}{id};
like($id, qr/^[0-9a-f-]{36}$/, 'the id of the allocation');
my @deadlines = map { delete $_->{properties}{deadline} } @events[1 .. 4];
is($deadlines[0], $deadlines[1], 'a job is new when it begins, with its deadline');
cmp_ok(abs($deadlines[1] / 1e6 - time - 3 * 60), '<', 30, 'that of JobTimeoutSec= for each step');
is_deeply([$new, @events[0 .. 2], @events[5 .. 7]], [
        { event => 'allocation-new', name => 'guest',
          properties => { name => 'guest', owner => $>, tag => undef, lease_end => 0, generation => 1, state => 'preparing', reason => undef, domain => undef, cpus => undef } },
        { event => 'device-changed', address => $gpu, properties => { state => 'allocated', reason => "$gpu is held by 'guest'.", remedy => 'Release that allocation first.', allocation => 'guest' } },
        { event => 'job-new', id => 1,
          properties => { id => 1, verb => 'prepare', subject => 'guest', step => undef, steps_done => 0, steps_total => 3, device_steps => {}, message => undef } },
        { event => 'job-step', id => 1, properties => { step => "reserve $gpu for driver vfio-pci", steps_done => 0, steps_total => 3, device_steps => { $gpu => "reserve $gpu for driver vfio-pci" } } },
        { event => 'allocation-changed', name => 'guest', properties => { state => 'ready' } },
        { event => 'device-changed', address => $gpu, properties => { driver => 'vfio-pci' } },
        { event => 'job-removed', id => 1, result => 'done' },
], 'and with --json, an object a line');

is(release($bus, 'guest'), 'done', 'it is released');
my @lines = lines_until($text, qr/removed: /);
is_deeply([sort(@lines[0, 1]), @lines[-3, -2, -1]], [
        'allocation guest changed: state releasing', 'job 2 new: verb release, subject guest',
        'allocation guest removed', "device $gpu changed: state available, reason -, remedy -, driver nvidia, allocation -", 'job 2 removed: done',
], 'and told');
@events = events_until($json, 'job-removed');
is_deeply([@events[-3, -2]], [
        { event => 'allocation-removed', name => 'guest' },
        { event => 'device-changed', address => $gpu, properties => { state => 'available', reason => undef, remedy => undef, driver => 'nvidia', allocation => undef } },
], 'with --json too');

my $information = "proc/driver/nvidia/gpus/$gpu/information";
fault("set $information Device Minor: \\t 3");
$bus->call('Rescan');
is_deeply([lines_until($text, qr/./)], ["device $gpu changed: kernel_names nvidia3"], 'a list');
is_deeply([events_until($json, 'device-changed')],
        [{ event => 'device-changed', address => $gpu, properties => { kernel_names => ['nvidia3'] } }], 'with --json too');
fault("remove $information");
$bus->call('Rescan');
is_deeply([lines_until($text, qr/./)], ["device $gpu changed: kernel_names -"], 'an empty list');
events_until($json, 'device-changed');

fault('reset', 'fail 2 EIO');
is(allocate($bus, 'guest', gpu => 1), 'failed', 'a job fails');
@lines = lines_until($text, qr/removed: /);
is(scalar(grep { $_ =~ names(3, '2/3', $gpu, 'Failed') } @lines), 1, 'why, once') or diag(map { "$_\n" } @lines);
is($lines[-1], 'job 3 removed: failed', 'and that it did');
events_until($json, 'job-removed');

fault('reset', 'events off') if $ENV{NODE_EVENTS} eq 'yes';
fault("remove $path");
$bus->call('Rescan');
is_deeply([lines_until($text, qr/./)], ["device $gpu removed"], 'a device goes');
is_deeply([events_until($json, 'device-removed')], [{ event => 'device-removed', address => $gpu }], 'with --json too');
fault('write sys/bus/pci/rescan 1');
$bus->call('Rescan');
is_deeply([lines_until($text, qr/./)],
        ["device $gpu added: pool gpu, state available, driver nvidia, name \"NVIDIA Corporation GK110GL [Tesla K20m]\""], 'and comes back');
is_deeply([events_until($json, 'device-added')], [{ event => 'device-added', address => $gpu, properties => {
        address => $gpu, name => 'NVIDIA Corporation GK110GL [Tesla K20m]', class => '030200', pool => 'gpu', state => 'available', reason => undef, remedy => undef,
        driver => 'nvidia', numa_node => undef, iommu_group => 7, physical_function => undef, allocation => undef,
        kernel_names => [], link_generation => 0, link_width => 0, max_link_generation => 0, max_link_width => 0,
} }], 'with --json all of it, in the words of the other verbs');
fault('events on') if $ENV{NODE_EVENTS} eq 'yes';

# Somebody else sends what only the daemon may say, to the monitor itself, which no match keeps out.
my @names = grep { /^:/ } @{ $bus->ask(('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus'), 'ListNames')->{body}[0] };
for my $name (@names) {
        system 'dbus-send', '--bus=' . $ENV{DBUS_SYSTEM_BUS_ADDRESS}, '--type=signal', "--dest=$name", @$_ for
                ['/org/passthroughd1', 'org.passthroughd1.Manager.JobRemoved', 'uint32:9', 'objpath:/org/passthroughd1/job/_39', 'string:forged'],
                ['/org/freedesktop/DBus', 'org.freedesktop.DBus.NameOwnerChanged', 'string:org.passthroughd1', 'string:x', 'string:'];
}
daemon('stop');
is_deeply([lines_until($text, qr/./)], ['daemon gone'], 'what others send is not told, that the daemon goes is');
daemon('start');
is_deeply([lines_until($text, qr/./)], ['daemon running'], 'and that it is back');
is_deeply([events_until($json, 'daemon-running')], [{ event => 'daemon-gone' }, { event => 'daemon-running' }], 'with --json too');
$bus = Bus->new->listen;
is(allocate($bus, 'guest', gpu => 1), 'done', 'the next daemon');
is((lines_until($text, qr/removed: /))[-1], 'job 1 removed: done', 'is heard too');
release($bus, 'guest');

kill 'INT', $text->{pid};
is_deeply([ended($text)], [130, ''], 'Ctrl-C ends it, with the status of all verbs');
close $json->{out};
fault("remove $path");
$bus->call('Rescan');
waitpid $json->{pid}, 0;
is($? & 127, 13, 'it ends when nobody reads it any more');
fault('write sys/bus/pci/rescan 1');
$bus->call('Rescan');

is_deeply([(ctl('monitor', 'x'))[0, 1]], [2, ''], 'it takes no argument');

daemon('stop');
$text = monitor();
is_deeply([lines_until($text, qr/./)], ['daemon gone'], 'without a daemon it waits for one');
daemon('start');
is_deeply([lines_until($text, qr/./)], ['daemon running'], 'and tells when it comes');
my $pid = $bus->ask(('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus'), 'GetConnectionUnixProcessID', 's', 'org.freedesktop.DBus')->{body}[0];
kill 'KILL', $pid;
my ($status, $said) = ended($text);
is($status, 1, 'it ends with the bus');
like($said, qr/^passthroughctl: .+\n\z/, 'and says so');

done_testing();
