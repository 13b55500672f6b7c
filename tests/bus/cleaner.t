#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The command of a pool that cleans devices on their way back; what it could not clean nobody gets.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my @gpus = qw(0000:13:00.0 0000:23:00.0);
my $dir  = "$ENV{NODE_TMP}/units";

mkdir $dir or die "$dir: $!";
spew("$dir/log", '');
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
END { my $status = $?; if ($systemd) { kill 'TERM', $systemd; waitpid $systemd, 0 } $? = $status }

sub has_systemd { return Bus->new->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', 'org.freedesktop.systemd1')->{body}[0] }

ok(wait_until(sub { has_systemd() }), 'there is a systemd');

sub pool { return join '', "[Daemon]\nJobTimeoutSec=10\n[Pool gpu]\n", (map { "Match=address=$_\n" } @_), "CleanerCommand=/usr/bin/env  --all\n" }

configure(pool(@gpus));
my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();

sub calls { return split /\n/, slurp("$dir/log") }
sub quarantined { return sort map { $_->{address} } @{ describe($bus)->{quarantine} } }

# Two GPUs, released while the command ends so.
sub released {
        my ($what, $end, @faults) = @_;
        spew("$dir/log",           '');
        spew("$dir/command.state", "$end\n");
        is(allocate($bus, 'guest', gpu => 2), 'done', "$what: two GPUs");
        fault('reset', @faults);
        is(release($bus, 'guest'), 'done', "$what: released");
        return;
}

released('clean', 0);
is_deeply([calls()], ["run /usr/bin/env --all @gpus"], 'clean: the command is run once, for both');
is_deeply([quarantined()], [], 'clean: none is in quarantine');
same_tree($before, 'clean: all is back');
same_state($state, 'clean: the ledger too');

released('fails', 3);
is_deeply([quarantined()], [@gpus], 'fails: both are in quarantine');
like(device($bus, $gpus[0])->{reason}, names($gpus[0], '/usr/bin/env  --all', 'status 3'), 'fails: it says why');
is(driver_of($_), 'vfio-pci', 'fails: it stays where it was') for @gpus;
is(clear_quarantine($bus), 2, 'fails: somebody has looked');
same_tree($before, 'fails: all is back');

released('one is not worth it', 0, 'fail 1 EIO');
my ($bad) = quarantined();
my ($good) = grep { $_ ne $bad } @gpus;
is_deeply([calls()], ["run /usr/bin/env --all $good"], 'one is not worth it: only the other one is cleaned');
is(clear_quarantine($bus), 1, 'one is not worth it: somebody has looked');

for my $i (0, 1) {
        my $what = "$gpus[$i] has left the pool";
        spew("$dir/log",           '');
        spew("$dir/command.state", "0\n");
        is(allocate($bus, 'guest', gpu => 2), 'done', "$what: two GPUs");
        spew("$ENV{NODE_TMP}/passthroughd.conf", pool($gpus[1 - $i]));
        is(release($bus, 'guest'), 'done', "$what: released");
        is_deeply([calls()], ["run /usr/bin/env --all $gpus[1 - $i]"], "$what: the other one is cleaned");
        is_deeply([quarantined()], [$gpus[$i]], "$what: it is in quarantine");
        like(device($bus, $gpus[$i])->{reason}, names($gpus[$i], 'passthroughd-root'), "$what: it says why");
        spew("$ENV{NODE_TMP}/passthroughd.conf", pool(@gpus));
        is(clear_quarantine($bus), 1, "$what: somebody has looked");
        same_tree($before, "$what: all is back");
}

for my $end (qw(timeout hang)) {
        released($end, $end);
        is_deeply([quarantined()], [@gpus], "$end: both are in quarantine");
        like(device($bus, $gpus[1])->{reason}, names($gpus[1]), "$end: it says why");
        is(clear_quarantine($bus), 2, "$end: somebody has looked");
}

kill 'TERM', $systemd;
waitpid $systemd, 0;
$systemd = 0;
ok(wait_until(sub { !has_systemd() }), 'there is no systemd any more');
released('no systemd', 0);
is_deeply([quarantined()], [@gpus], 'no systemd: both are in quarantine');
like(device($bus, $gpus[1])->{reason}, names($gpus[1], 'systemd'), 'no systemd: it says why');
is(clear_quarantine($bus), 2, 'no systemd: somebody has looked');
same_tree($before, 'all is as before');

done_testing();
