# SPDX-License-Identifier: GPL-2.0-or-later
# A polkitd on the bus of DBUS_SYSTEM_BUS_ADDRESS, with the daemon's actions and the test's rules.
package Polkit;

use strict;
use warnings;

use Exporter qw(import);
use File::Path qw(make_path);
use POSIX ();
use Time::HiRes qw(sleep time);

use Bus;

our @EXPORT = qw(start_polkitd end_polkitd);

use constant DEADLINE => 90;

my $tests = __FILE__ =~ s{/bus/[^/]*$}{}r;
my $pid;

sub has_owner {
        my $bus = Bus->new;
        return $bus->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', 'org.freedesktop.PolicyKit1')->{body}[0];
}

sub becomes { my ($fact) = @_; for (my $end = time + DEADLINE; time < $end; sleep 0.01) { return 1 if $fact->() } return 0 }

# Starts polkitd. Returns its pid when it serves, or undef. polkitd reads actions and rules at fixed places, where a mount puts the directory's.
sub start_polkitd {
        my ($dir, $rules) = @_;
        make_path(map { "$dir/$_" } qw(actions rules etc));
        for (['rules/50-test.rules', $rules], ['actions/org.passthroughd1.policy', do { local (@ARGV, $/) = "$tests/../conf/org.passthroughd1.policy"; <> }]) {
                open my $file, '>', "$dir/$_->[0]" or die "$_->[0]: $!";
                print $file $_->[1];
                close $file or die "$_->[0]: $!";
        }
        $pid = fork // die "fork: $!";
        if (!$pid) {
                my @mounts = map { "mount --bind $dir/$_->[0] $_->[1]" } ['actions', '/usr/share/polkit-1/actions'], ['rules', '/usr/share/polkit-1/rules.d'], ['etc', '/etc/polkit-1/rules.d'];
                exec "$tests/private-mounts", 'sh', '-c', join(' && ', "chmod -R a+rX $dir", @mounts, "exec /usr/lib/polkit-1/polkitd --no-debug >>$dir/log 2>&1") or POSIX::_exit(1);
        }
        return becomes(\&has_owner) ? $pid : undef;
}

# Kills polkitd. Returns whether it was still running, after the bus has noticed its end.
sub end_polkitd {
        return 1 if !$pid;
        kill 'KILL', $pid;
        waitpid $pid, 0;
        my $ran = $? == 9;
        $pid = undef;
        return becomes(sub { !has_owner() }) && $ran;
}
END { local $?; kill 'KILL', $pid if $pid }

1;
