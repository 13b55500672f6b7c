# SPDX-License-Identifier: GPL-2.0-or-later
# Receives udev's events in this network namespace, in the order in which they arrive, as libudev would.
package Events;

use strict;
use warnings;

use Fcntl;
use Socket;
use Time::HiRes qw(time);

use constant { AF_NETLINK => 16, NETLINK_KOBJECT_UEVENT => 15, GROUP_UDEV => 2, DEADLINE => 90 };

# Receives all events from now on. Option buffer: size of the socket's buffer in the kernel's count.
sub new {
        my ($class, %options) = @_;
        socket my $socket, AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT or die "netlink: $!";
        setsockopt $socket, SOL_SOCKET, SO_RCVBUF, $options{buffer} or die "SO_RCVBUF: $!" if $options{buffer};
        bind $socket, pack 'S S L L', AF_NETLINK, 0, 0, GROUP_UDEV or die "netlink: $!";
        fcntl $socket, F_SETFL, O_NONBLOCK or die "fcntl: $!";
        return bless { socket => $socket }, $class;
}

# Returns one event as a hash of its properties, with HASH, the hash for filters; { lost => 1 } when events were lost; undef when the time is up.
sub next_event {
        my ($self, $seconds) = @_;
        my $end = time + ($seconds // DEADLINE);
        while (1) {
                my $from = recv $self->{socket}, my $message, 65_536, 0;
                return parse($message) if defined $from;
                return { lost => 1 }   if $!{ENOBUFS};
                die "netlink: $!" if !$!{EAGAIN};
                my $bits = '';
                vec($bits, fileno $self->{socket}, 1) = 1;
                my $left = $end - time;
                return if $left <= 0 || select($bits, undef, undef, $left) <= 0;
        }
}

sub parse {
        my ($message) = @_;
        my ($prefix, $magic, $header_size, $offset, $size, $hash) = unpack 'Z8 N L L L N', $message;
        die "not of udev: $prefix" if $prefix ne 'libudev' || $magic != 0xfeedcafe || $header_size != 40;
        return { map({ split /=/, $_, 2 } split /\0/, substr $message, $offset, $size), HASH => sprintf '%08x', $hash };
}

# Returns the events so far, as text(). The node sends events before the write that causes them returns.
sub heard {
        my ($self) = @_;
        my @events;
        while (my $event = $self->next_event(0)) { push @events, text($event) }
        return @events;
}

# Formats "bind 0000:82:00.0 vfio-pci" or "add vfio 7".
sub text {
        my ($event) = @_;
        return 'lost' if $event->{lost};
        my ($name) = $event->{DEVPATH} =~ m{([^/]*)$};
        return join ' ', $event->{ACTION}, $event->{SUBSYSTEM} eq 'pci' ? () : $event->{SUBSYSTEM}, $name, $event->{DRIVER} // ();
}

1;
