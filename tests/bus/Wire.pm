# SPDX-License-Identifier: GPL-2.0-or-later
# The messages of include/util/wire.h.
package Wire;

use strict;
use warnings;

use Exporter qw(import);
use IO::Socket::UNIX;

our @EXPORT = qw(wire_message wire_connect wire_receive wire_ask WIRE_VERSION GUEST_RECORDS);

use constant GUEST_RECORDS => qw(list domain ended features complete failed); # GuestRecord
use constant { WIRE_VERSION => 0x70740001, HEADER => 'L l Q', HEADER_SIZE => 16 };

sub wire_message { my ($code, $bytes) = @_; return pack(HEADER, WIRE_VERSION, $code, length $bytes) . $bytes }

sub wire_connect { my ($path) = @_; return IO::Socket::UNIX->new(Peer => $path) // die "$path: $!" }

# Receives a message. Returns code and bytes, or () when the peer has closed the connection.
sub wire_receive {
        my ($socket) = @_;
        my $buffer = '';
        while (length $buffer < HEADER_SIZE || length($buffer) - HEADER_SIZE < (unpack HEADER, $buffer)[2]) {
                $socket->sysread($buffer, 65_536, length $buffer) or return;
        }
        my ($version, $code) = unpack HEADER, $buffer;
        die "version $version" if $version != WIRE_VERSION;
        return ($code, substr $buffer, HEADER_SIZE);
}

# Returns the answer of a service to these bytes.
sub wire_ask {
        my ($path, $bytes) = @_;
        local $SIG{PIPE} = 'IGNORE';
        my $socket = wire_connect($path);
        $socket->send($bytes);
        $socket->shutdown(1);
        return wire_receive($socket);
}

1;
