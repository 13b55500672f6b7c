#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A domain whose start fails: libvirt sends no event then, and passthroughd-libvirt reports the end of the domain all the same. It looks at
# domains only while one is starting. tests/hypervisor simulates libvirt, and this test reads the reports
# as the daemon does.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Temp qw(tempdir);
use IO::Select;
use POSIX ();
use Socket qw(AF_UNIX PF_UNSPEC SOCK_SEQPACKET);
use Test::More;

use Hypervisor;
use Node;
use Wire;

use constant { UUID => '4b20d080-1b54-4048-85b3-a6a62d165c01', DEADLINE => 90 };

my $dir      = tempdir(CLEANUP => 1) . '/domain';
my $document = '<domain><uuid>' . UUID . '</uuid><devices/></domain>';
my $build    = $ENV{BUILD} // "$FindBin::Bin/../../build";
my ($socket, $reporter);

END { my $status = $?; if ($reporter) { kill 'KILL', $reporter; waitpid $reporter, 0 } $? = $status }

sub start_reporter {
        socketpair $socket, my $theirs, AF_UNIX, SOCK_SEQPACKET, PF_UNSPEC or die "socketpair: $!";
        my $preload = hypervisor_preload();
        $reporter = fork // die "fork: $!";
        return if $reporter;
        open STDIN, '<&', $theirs or die "stdin: $!";
        local $ENV{LD_PRELOAD} = $preload;
        exec "$build/passthroughd-libvirt", $dir or POSIX::_exit(127);
}

# The next record, its lines with spaces between; undef when none comes.
sub record {
        IO::Select->new($socket)->can_read(DEADLINE) or return;
        my ($kind, $text) = wire_receive($socket) or return;
        return join ' ', (GUEST_RECORDS)[$kind], split /\n/, $text;
}

# What it reports when it is asked: what libvirt can do now, and the domains.
sub listed {
        send $socket, wire_message(0, ''), 0 or die "send: $!";
        my @records;
        while (defined(my $record = record())) {
                push @records, $record =~ s/^features\K .*//r;
                last if $record eq 'complete';
        }
        return \@records;
}

# Whether its loop waits for a time. An answer shows that it has come back to its loop since the record before.
sub has_timer {
        return grep { (slurp_existing($_) // '') =~ /^it_value: \((?!0, 0\))/m } glob "/proc/$reporter/fdinfo/*";
}

my $starting = 'domain ' . UUID . ' starting guest';
my $running  = 'domain ' . UUID . ' running guest';
my $ended    = 'ended ' . UUID;

hypervisor($dir, config => $document, does => 'starting');
start_reporter();
like(record(), qr/^features /, 'it reports libvirt');
is_deeply([map { record() } 1 .. 2], [qw(list complete)], 'and that no domain runs');
is_deeply(listed(), [qw(features list complete)], 'it answers');
ok(!has_timer(), 'it waits for no time while no domain starts');

spew("$dir/live", $document);
is_deeply(listed(), ['features', 'list', $starting, 'complete'], 'a domain starts');
ok(wait_until(sub { has_timer() }), 'which it looks at again');
is_deeply(listed(), ['features', 'list', $starting, 'complete'], 'it still starts');
unlink "$dir/live" or die "$dir/live: $!";
is(record(), $ended, 'the start fails: the domain has ended');
is_deeply(listed(), [qw(features list complete)], 'which is told once');
ok(!has_timer(), 'and it waits for no time');

spew("$dir/live", $document);
is_deeply(listed(), ['features', 'list', $starting, 'complete'], 'it starts again');
unlink "$dir/does" or die "$dir/does: $!";
is(record(), $running, 'and runs');
is_deeply(listed(), ['features', 'list', $running, 'complete'], 'which is told once');
ok(!has_timer(), 'and it waits for no time');

done_testing();
