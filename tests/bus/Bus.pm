# SPDX-License-Identifier: GPL-2.0-or-later
# A small D-Bus client. busctl prints no error names, refuses to send malformed messages, and starts too slowly for a thousand calls.
#
# Values: a struct or array is an array reference. To send: a variant is [SIGNATURE, VALUE], a dictionary an array of [KEY, VALUE], which may repeat
# keys. Received: variants are unpacked, dictionaries are hashes, and a descriptor is the text of its file; "descriptors" of the message has its
# handle.
package Bus;

use strict;
use warnings;

use IO::Socket::UNIX;
use Socket qw(SOL_SOCKET SCM_RIGHTS);
use Socket::MsgHdr;
use Time::HiRes qw(time);

use constant { NAME => 'org.passthroughd1', PATH => '/org/passthroughd1', MANAGER => 'org.passthroughd1.Manager', DEADLINE => 240 };
use constant { CALL => 1, RETURN => 2, ERROR => 3, SIGNAL => 4 };

my %ALIGN  = (y => 1, b => 4, n => 2, q => 2, i => 4, u => 4, x => 8, t => 8, d => 8, s => 4, o => 4, h => 4, g => 1, v => 1, a => 4, '(' => 8, '{' => 8);
my %PACK   = (y => 'C', b => 'V', n => 's<', q => 'S<', i => 'l<', u => 'V', x => 'q<', t => 'Q<', d => 'd<', h => 'V');
my @FIELDS = (undef, qw(path interface member error reply_serial destination sender signature n_descriptors));
my @descriptors; # of the message being unpacked

# Cuts off and returns the first complete type of a signature.
sub take_type {
        my ($signature) = @_;
        $$signature =~ s/^(a*(?:[^a({]|(\((?:[^()]|(?2))*\))|(\{(?:[^{}]|(?3))*\})))// or die "signature '$$signature'";
        return $1;
}

# A cache of the types of signatures: the header of each message has the same few structs.
my %types;

sub types {
        my ($signature) = @_;
        my $types = $types{$signature};
        if (!$types) {
                my $rest = $signature;
                my @found;
                push @found, take_type(\$rest) while length $rest;
                $types = $types{$signature} = \@found;
        }
        return @$types;
}

sub pad { my ($buffer, $n) = @_; $$buffer .= "\0" x (-length($$buffer) % $n); return }

sub put {
        my ($buffer, $type, $value) = @_;
        my $kind = substr $type, 0, 1;
        $$buffer .= "\0" x (-length($$buffer) % $ALIGN{$kind});
        if ($PACK{$kind}) {
                $$buffer .= pack $PACK{$kind}, $value;
        } elsif ($kind eq 's' || $kind eq 'o') {
                $$buffer .= pack 'V/a* x', $value;
        } elsif ($kind eq 'g') {
                $$buffer .= pack 'C/a* x', $value;
        } elsif ($kind eq 'v') {
                put($buffer, 'g', $value->[0]);
                put($buffer, $value->[0], $value->[1]);
        } elsif ($kind eq 'a') {
                my $element = substr $type, 1;
                my $at      = length $$buffer;
                $$buffer .= "\0" x 4;
                pad($buffer, $ALIGN{ substr $element, 0, 1 });
                my $start = length $$buffer;
                put($buffer, $element, $_) for @$value;
                substr($$buffer, $at, 4) = pack 'V', length($$buffer) - $start;
        } else {
                my @members = types(substr $type, 1, -1);
                put($buffer, $members[$_], $value->[$_]) for 0 .. $#members;
        }
        return;
}

sub text_of {
        my ($descriptor) = @_;
        local $/;
        seek $descriptor, 0, 0;
        return scalar <$descriptor>;
}

sub get {
        my ($data, $at, $type) = @_;
        my $kind = substr $type, 0, 1;
        $$at += -$$at % $ALIGN{$kind};
        if ($PACK{$kind}) {
                my $value = unpack $PACK{$kind}, substr $$data, $$at, $ALIGN{$kind};
                $$at += $ALIGN{$kind};
                return $kind eq 'h' ? text_of($descriptors[$value]) : $value;
        }
        if ($kind eq 's' || $kind eq 'o' || $kind eq 'g') {
                my $wide  = $kind eq 'g' ? 1 : 4;
                my $size  = unpack $wide == 1 ? 'C' : 'V', substr $$data, $$at, $wide;
                my $value = substr $$data, $$at + $wide, $size;
                $$at += $wide + $size + 1;
                return $value;
        }
        return get($data, $at, get($data, $at, 'g')) if $kind eq 'v';
        if ($kind eq 'a') {
                my $element = substr $type, 1;
                my $size    = get($data, $at, 'u');
                $$at += -$$at % $ALIGN{ substr $element, 0, 1 };
                my $end = $$at + $size;
                my @items;
                push @items, get($data, $at, $element) while $$at < $end;
                return $element =~ /^\{/ ? { map { @$_ } @items } : \@items;
        }
        return [map { get($data, $at, $_) } types(substr $type, 1, -1)];
}

# A connection to the bus, or to the socket of a peer.
sub new {
        my ($class, $peer) = @_;
        my ($path) = $peer // ($ENV{DBUS_SYSTEM_BUS_ADDRESS} // '') =~ /^unix:path=([^,;]+)/ or die 'no bus';
        my $socket = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!";
        my $self   = bless { socket => $socket, in => '', descriptors => [], serial => 0, replies => {}, signals => [] }, $class;
        $socket->blocking(1);
        syswrite $socket, "\0AUTH EXTERNAL " . unpack('H*', $>) . "\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
        for my $wanted (qr/^OK /, qr/^AGREE_UNIX_FD/) {
                my $answer = <$socket>;
                die "the bus says $answer" if $answer !~ $wanted;
        }
        $self->{name} = $peer ? '' : $self->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'Hello')->{body}[0];
        return $self;
}

# Handles to send with each call.
our @ATTACHED;

# Adds a field to the fields of a header, as put() would, but in one step.
sub put_field {
        my ($fields, $code, $type, $value) = @_;
        my $pack = $type eq 'u' ? 'V' : $type eq 'g' ? 'C/a* x' : 'V/a* x';
        $$fields .= "\0" x (-length($$fields) % 8) . pack "C C a x $pack", $code, 1, $type, $value;
        return;
}

# Returns the bytes of a call.
sub message {
        my ($serial, $destination, $path, $interface, $member, $signature, @values) = @_;
        my $body = '';
        my @types = types($signature //= '');
        put(\$body, $types[$_], $values[$_]) for 0 .. $#types;
        my $fields = '';
        put_field(\$fields, @$_) for [1, 'o', $path], [2, 's', $interface], [3, 's', $member], [6, 's', $destination];
        put_field(\$fields, 8, 'g', $signature) if length $signature;
        put_field(\$fields, 9, 'u', scalar @ATTACHED) if @ATTACHED;
        my $header = pack 'a C C C V V V/a*', 'l', CALL, 0, 1, length $body, $serial, $fields;
        pad(\$header, 8);
        return $header . $body;
}

sub send_bytes {
        my ($self, $bytes) = @_;
        if (@ATTACHED) {
                my $first = Socket::MsgHdr->new(buf => substr $bytes, 0, 1, '');
                $first->cmsghdr(SOL_SOCKET, SCM_RIGHTS, pack 'i*', map { fileno $_ } @ATTACHED);
                sendmsg($self->{socket}, $first) or die "send to the bus: $!";
        }
        while (length $bytes) {
                my $n = syswrite($self->{socket}, $bytes) // die "write to the bus: $!";
                substr $bytes, 0, $n, '';
        }
        return;
}

# Sends a call. Returns its serial, for reply().
sub post {
        my ($self, @call) = @_;
        $self->send_bytes(message(++$self->{serial}, @call));
        return $self->{serial};
}

# Receives one message. False: the time is up.
sub turn {
        my ($self, $end) = @_;
        until ($self->take()) {
                my $left = $end - time;
                my $bits = '';
                vec($bits, fileno $self->{socket}, 1) = 1;
                return 0 if $left <= 0 || select($bits, undef, undef, $left) <= 0;
                $self->receive();
        }
        return 1;
}

sub receive {
        my ($self) = @_;
        my $message = Socket::MsgHdr->new(buflen => 262_144, controllen => 1024);
        recvmsg($self->{socket}, $message) or die 'the bus hung up';
        $self->{in} .= $message->buf;
        my @control = $message->cmsghdr;
        while (my ($level, $type, $data) = splice @control, 0, 3) {
                next if $level != SOL_SOCKET || $type != SCM_RIGHTS;
                push @{ $self->{descriptors} }, map { IO::Handle->new_from_fd($_, 'r') } unpack 'i*', $data;
        }
        return;
}

# Returns names and values of the fields of a header that ends at that offset.
sub fields {
        my ($data, $end) = @_;
        my @found;
        for (my $at = 16; $at < $end; $at += -$at % 8) {
                my ($code, $type) = unpack 'C x a', substr $$data, $at, 3;
                $at += 4;
                my $value = get($data, \$at, $type);
                push @found, $FIELDS[$code] => $value if defined $FIELDS[$code];
        }
        return @found;
}

# Unpack only the headers of messages: unpacking a reply of a megabyte takes a second.
our $HEADERS_ONLY;

# Removes and returns the first received message, or undef if it is incomplete. Unpacks its body if the function is true for the message.
sub take_message {
        my ($self, $is_wanted) = @_;
        return if length $self->{in} < 16;
        my ($type, $body_size, $serial, $fields_size) = unpack 'x C x2 V V V', $self->{in};
        my $head = 16 + $fields_size + -$fields_size % 8;
        return if length $self->{in} < $head + $body_size;
        my $data = substr $self->{in}, 0, $head + $body_size, '';
        my %message = (type => $type, body => [], fields(\$data, 16 + $fields_size));
        my $body = substr $data, $head;
        $message{descriptors} = [@descriptors = splice @{ $self->{descriptors} }, 0, $message{n_descriptors} // 0];
        my $at = 0;
        $message{body} = [map { get(\$body, \$at, $_) } types($message{signature} // '')] if $is_wanted->(\%message);
        @descriptors = ();
        return \%message;
}

sub take {
        my ($self) = @_;
        my $message = $self->take_message(sub { !$HEADERS_ONLY }) // return 0;
        if ($message->{type} == SIGNAL) {
                push @{ $self->{signals} }, $message;
        } elsif (defined $message->{reply_serial}) {
                $self->{replies}{ $message->{reply_serial} } = $message;
        }
        return 1;
}

sub proc_file {
        my ($path) = @_;
        local $/ = undef;
        open my $file, '<', $path or return '';
        return <$file> // '';
}

# Prints what the daemon and its children do in the kernel: whether they run, or on what they wait.
sub tell_whereabouts {
        my ($daemon) = proc_file($ENV{DAEMON_PID} // '') =~ /(\d+)/ or return;
        for my $process (glob '/proc/[0-9]*') {
                my ($pid, $name, $state, $parent) = proc_file("$process/stat") =~ /^(\d+) \((.*)\) (\S) (\d+)/s or next;
                print STDERR "# process $pid ($name), state $state\n", map { "#   $_\n" } proc_file("$process/stack") =~ /^\S+ (.*)/gm if $pid == $daemon || $parent == $daemon;
        }
        return;
}

# Returns the answer to post(): { error => NAME or undef, body => [...] }. Dies without an answer.
sub reply {
        my ($self, $serial) = @_;
        my $end = time + DEADLINE;
        until ($self->{replies}{$serial}) {
                next if $self->turn($end);
                tell_whereabouts();
                die 'no answer from the bus';
        }
        return delete $self->{replies}{$serial};
}

sub ask { my ($self, @call) = @_; return $self->reply($self->post(@call)) }

# Calls a method of the Manager.
sub call { my ($self, $member, @rest) = @_; return $self->ask(NAME, PATH, MANAGER, $member, @rest) }

sub properties {
        my ($self, $path, $interface) = @_;
        return $self->ask(NAME, $path, 'org.freedesktop.DBus.Properties', 'GetAll', 's', $interface)->{body}[0];
}

# Subscribes to all signals of the daemon.
sub listen {
        my ($self) = @_;
        my $reply = $self->ask('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'AddMatch',
                's', "type='signal',path_namespace='" . PATH . "'");
        die "$reply->{error}: $reply->{body}[0]" if $reply->{error};
        $self->{signals} = [];
        return $self;
}

sub ping { my ($self) = @_; return $self->ask(NAME, PATH, 'org.freedesktop.DBus.Peer', 'Ping') }

# Drops all signals that the daemon has sent so far.
sub forget_signals {
        my ($self) = @_;
        $self->ping();
        $self->{signals} = [];
        return;
}

# Returns the names of the signals since then.
sub signal_names {
        my ($self) = @_;
        $self->ping();
        return map { $_->{member} } @{ $self->{signals} };
}

# Removes and returns the signals up to the first for which the function is true, or none when the time is up.
sub signals_until {
        my ($self, $wanted, $seconds) = @_;
        my $end  = time + ($seconds // DEADLINE);
        my $seen = 0;
        while (1) {
                for (; $seen < @{ $self->{signals} }; $seen++) {
                        local $_ = $self->{signals}[$seen];
                        return splice @{ $self->{signals} }, 0, $seen + 1 if $wanted->();
                }
                $self->turn($end) or return;
        }
}

# Returns the result of the job with this object path, or undef when the time is up.
sub result {
        my ($self, $job, $seconds) = @_;
        my @signals = $self->signals_until(sub { ($_->{member} // '') eq 'JobRemoved' && $_->{body}[1] eq $job }, $seconds) or return;
        return $signals[-1]{body}[2];
}

1;
