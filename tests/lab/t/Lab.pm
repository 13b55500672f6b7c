# SPDX-License-Identifier: GPL-2.0-or-later
# What the tests inside the lab share: commands, the facts of the kernel read without the daemon, and the machine's monitor.
package Lab;

use strict;
use warnings;

use Exporter qw(import);
use FindBin;
use JSON::XS;
use Test::More;
use Time::HiRes qw(sleep time);

use lib "$FindBin::Bin/../..";    # in the checkout; on the machine Names.pm is beside this file
use Names;

our @EXPORT = qw(
        command output ctl ctl_json devices functions link_name fact slurp spew drivers bind_by_hand give_back group_is_viable role wait_until is_at_work settled service monitor names
);

use constant { DEADLINE => 120, PCI => '/sys/bus/pci' };

# Text is wrapped at this width. Tests read sentences as one line.
$ENV{COLUMNS} //= 1000;

# Runs a command: its exit status, what it printed, and what it printed on standard error.
sub command {
        my (@command) = @_;
        my $errors = "/tmp/lab-errors.$$";
        my $pid    = open my $out, '-|';
        defined $pid or die "fork: $!\n";
        if (!$pid) {
                open STDERR, '>', $errors or die "$errors: $!\n";
                exec { $command[0] } @command or exit 127;
        }
        local $/;
        my $printed = <$out> // '';
        close $out;
        my $status = $? >> 8;
        open my $file, '<', $errors or die "$errors: $!\n";
        my $said = <$file> // '';
        unlink $errors;
        return ($status, $printed, $said);
}

# What a command that has to succeed printed.
sub output {
        my (@command) = @_;
        my ($status, $out, $err) = command(@command);
        die "@command: status $status: $err\n" if $status;
        return $out;
}

sub ctl { my (@words) = @_; return command('passthroughctl', @words) }

sub ctl_json { my (@words) = @_; return decode_json(output('passthroughctl', @words, '--json')) }

# Address to what the daemon says of it.
sub devices { return { map { $_->{address} => $_ } @{ ctl_json('list', '--all')->{devices} } } }

# A file of the kernel; undef when there is none.
sub fact {
        my ($path) = @_;
        open my $file, '<', $path or return;
        my $line = <$file>;
        chomp $line if defined $line;
        return $line;
}

# All of a file; undef when there is none.
sub slurp {
        my ($path) = @_;
        local $/ = undef;
        open my $file, '<', $path or return;
        return <$file>;
}

sub spew {
        my ($path, $text) = @_;
        open my $file, '>', $path or die "$path: $!\n";
        return (syswrite $file, $text) // die "$path: $!\n";
}

sub link_name {
        my ($path) = @_;
        my $target = readlink $path;
        return defined $target ? $target =~ s{.*/}{}r : undef;
}

# Address to what sysfs says of the function, in the daemon's words.
sub functions {
        my %functions;
        for my $dir (glob PCI . '/devices/*') {
                my $node  = fact("$dir/numa_node");
                my $group = link_name("$dir/iommu_group");
                $functions{ $dir =~ s{.*/}{}r } = {
                        (map { $_ => fact("$dir/$_") =~ s/^0x//r } qw(vendor device class)),
                        driver            => link_name("$dir/driver"),
                        iommu_group       => defined $group ? $group + 0 : undef,
                        numa_node         => $node < 0 ? undef : $node + 0,
                        physical_function => link_name("$dir/physfn"),
                };
        }
        return \%functions;
}

# Every function's driver and override: what must not change when nothing was done.
sub drivers {
        return { map { my $dir = $_; $dir =~ s{.*/}{}r => join ' ', link_name("$dir/driver") // '-', fact("$dir/driver_override") } glob PCI . '/devices/*' };
}

# As an admin does it. Returns the driver there was, for give_back().
sub bind_by_hand {
        my ($address, $driver) = @_;
        my $dir    = PCI . "/devices/$address";
        my $before = link_name("$dir/driver");
        spew("$dir/driver_override", "$driver\n");
        spew("$dir/driver/unbind",   $address) if defined $before;
        spew(PCI . '/drivers_probe', $address);
        is(link_name("$dir/driver"), $driver, "$address was bound to $driver by hand");
        return $before;
}

sub give_back {
        my ($address, $driver) = @_;
        my $dir = PCI . "/devices/$address";
        spew("$dir/driver/unbind",   $address);
        spew("$dir/driver_override", "\n");
        spew(PCI . '/drivers_probe', $address) if defined $driver;
        return;
}

# Whether the kernel would give the group to a guest: VFIO_GROUP_GET_STATUS, flag VIABLE.
sub group_is_viable {
        my ($group) = @_;
        open my $vfio, '+<', "/dev/vfio/$group" or die "/dev/vfio/$group: $!\n";
        my $status = pack 'L2', 8, 0;
        defined ioctl $vfio, 0x3b67, $status or die "VFIO_GROUP_GET_STATUS: $!\n";
        return (unpack 'L2', $status)[1] & 1;
}

# The functions of one kind, in the order of their addresses: role('1002:5046') are the two that stand for GPUs.
sub role {
        my ($id) = @_;
        my $all = functions();
        return grep { "$all->{$_}{vendor}:$all->{$_}{device}" eq $id } sort keys %$all;
}

# Waits for a fact: what the function returned when it was true, undef at the end of the time.
sub wait_until {
        my ($is_true, $seconds) = @_;
        my $end = time + ($seconds // DEADLINE);
        while (1) {
                my $value = $is_true->();
                return $value if $value || time > $end;
                sleep 0.1;
        }
}

# Whether the daemon has a job: the devices of one are refused to everybody else.
sub is_at_work { return output(qw(busctl call org.passthroughd1 /org/passthroughd1/job org.freedesktop.DBus.Introspectable Introspect)) =~ /<node name=/ }

# Waits until udev is done, the VFs that the configuration asks for are there, the daemon is done with them, and says what sysfs says.
sub settled {
        return wait_until(sub {
                my ($functions, $devices) = (functions(), devices());
                return !is_at_work()
                        && 6 == grep({ defined $_->{physical_function} } values %$functions)
                        && keys %$functions == keys %$devices
                        && !grep { !$devices->{$_} || ($devices->{$_}{driver} // '') ne ($functions->{$_}{driver} // '') } keys %$functions;
        });
}

# A property of the daemon's unit.
sub service {
        my ($property) = @_;
        chomp(my $value = output('systemctl', 'show', '--property', $property, '--value', 'passthroughd.service'));
        return $value;
}

my $monitor;

# Has the monitor of this very machine do something: monitor('device_del', id => 'gpu1'). Dies when it refuses.
sub monitor {
        my ($execute, %arguments) = @_;
        if (!$monitor) {
                open $monitor, '+<', '/dev/virtio-ports/lab.control' or die "no monitor: $!\n";
        }
        syswrite $monitor, encode_json({ execute => $execute, arguments => \%arguments }) . "\n";
        while (my $line = <$monitor>) {
                my $answer = decode_json($line);
                return $answer->{return} if exists $answer->{return};
                die "$execute: $answer->{error}{desc}\n" if $answer->{error};
        }
        die "the monitor hung up\n";
}

1;
