# SPDX-License-Identifier: GPL-2.0-or-later
# Stops, kills and restarts the bus of tests/with-node. The node ends the last bus.
package SystemBus;

use strict;
use warnings;

use Exporter qw(import);

use Bus;
use Node;

our @EXPORT = qw(bus_pid signal_bus end_bus start_bus wait_for_name);

sub bus_pid { return int slurp("$ENV{NODE_TMP}/bus.pid") }

sub signal_bus { my ($signal) = @_; return kill $signal, bus_pid() }

# Kills the bus. Its socket stays without a listener.
sub end_bus {
        my $pid = bus_pid();
        kill 'KILL', $pid;
        return wait_until(sub { !kill(0, $pid) || (slurp_existing("/proc/$pid/stat") // ') Z ') =~ /\) Z / });
}

# Starts the bus with these limits: name => value.
sub start_bus {
        my (%limits) = @_;
        my $lines = join '', map { "<limit name=\"$_\">$limits{$_}</limit>" } sort keys %limits;
        spew("$ENV{NODE_TMP}/bus-again.conf", slurp("$ENV{NODE_TMP}/bus.conf") =~ s{(?=</busconfig>)}{$lines}r);
        return system("dbus-daemon --config-file=$ENV{NODE_TMP}/bus-again.conf --fork --nopidfile --print-pid >$ENV{NODE_TMP}/bus.pid") == 0;
}

# Waits until the daemon owns its name on the bus.
sub wait_for_name {
        my $bus = Bus->new;
        return wait_until(sub { $bus->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'NameHasOwner', 's', Bus::NAME)->{body}[0] });
}

1;
