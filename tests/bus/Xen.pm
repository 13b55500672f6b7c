# SPDX-License-Identifier: GPL-2.0-or-later
# Guests of Xen, as dom0 sees them: entries in a xenstore, which listens at XENSTORED_PATH, and backends in sysfs.
package Xen;

use strict;
use warnings;

use Exporter qw(import);
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOCK_STREAM);

use Node;

our @EXPORT = qw(guest_gets guest_has guest_had no_guests start_xenstore stop_xenstore xenstore transactions);

use constant { DIRECTORY => 1, READ => 2, TRANSACTION_START => 6, TRANSACTION_END => 7, ERROR => 16, PCI => '/local/domain/0/backend/pci' };

my %guests; # domain => [name, addresses]
my ($process, $server);

# The file that defines the xenstore's behaviour, read for each request: words, then "PATH=VALUE" lines.
sub file  { return "$ENV{NODE_TMP}/xenstore" }
sub count { return "$ENV{NODE_TMP}/xenstore.count" }

# Notes that libxl begins to give these devices to a guest. Without a name the guest has ended.
my %notes;
sub guest_gets { my ($domain, $name, @devices) = @_; %notes = map { $_ => [$domain, $name] } @devices; return xenstore() }

# Returns the number of transactions since the last xenstore().
sub transactions { return length(slurp_existing(count()) // '') }

# Options: hang => 1: no answers. slow => N: answers only the Nth transaction, after 3 seconds. again => N: refuses the first N transactions with
# EAGAIN. late => N: the first N transactions see no guest.
sub xenstore {
        my (%options) = @_;
        my @lines = join ' ', 'options', map { "$_=$options{$_}" } sort keys %options;
        for my $domain (sort keys %guests) {
                my ($name, @devices) = @{ $guests{$domain} };
                push @lines, "/local/domain/$domain/name=$name", PCI . "/$domain/0/num_devs=" . @devices, PCI . "/$domain/0/domain=$name";
                push @lines, map { (PCI . "/$domain/0/key-$_=$devices[$_]", PCI . "/$domain/0/dev-$_=$devices[$_]", PCI . "/$domain/0/state-$_=3") } 0 .. $#devices;
        }
        for my $device (sort keys %notes) {
                my ($domain, $name) = @{ $notes{$device} };
                push @lines, '/libxl/pci/' . ($device =~ tr/:./-/r) . "/domid=$domain", defined $name ? "/local/domain/$domain/name=$name" : ();
        }
        spew(count(), '');
        spew(file() . '.new', join '', map { "$_\n" } @lines);
        rename file() . '.new', file() or die file() . ": $!";
        return;
}

# Gives a guest exactly these devices, in xenstore and in the kernel's sysfs.
sub guest_has {
        my ($domain, $name, @devices) = @_;
        $guests{$domain} = [$name, @devices];
        xenstore();
        fault("set sys/bus/xen-backend/devices/pci-$domain-0/nodename backend/pci/$domain/0");
        return;
}

sub guest_had {
        my ($domain) = @_;
        delete $guests{$domain};
        xenstore();
        fault("remove sys/bus/xen-backend/devices/pci-$domain-0");
        return;
}

sub no_guests { guest_had($_) for keys %guests; return }

sub read_store {
        my %store;
        my ($options, @lines) = split /\n/, slurp(file());
        my %options = map { split /=/, $_, 2 } (split ' ', $options)[1 .. ($options =~ tr/ //)];
        %store = map { split /=/, $_, 2 } @lines;
        return (\%options, \%store);
}

sub entries {
        my ($store, $path) = @_;
        my %names = map { m{^\Q$path\E/([^/]+)} ? ($1 => 1) : () } keys %$store;
        return sort keys %names;
}

# Returns type and payload of the answer.
sub answer {
        my ($type, $argument) = @_;
        my ($options, $store) = read_store();
        if ($options->{hang}) { sleep 1 while getppid() == $server }
        if ($type == TRANSACTION_START) {
                open my $f, '>>', count() or die count() . ": $!";
                syswrite $f, '.';
                my $before = ($options->{slow} // 0) - transactions();
                if ($before > 0) { sleep 1 while getppid() == $server }
                sleep 3 if $before == 0 && $options->{slow};
                return ($type, "7\0");
        }
        my $n = transactions();
        return $n <= ($options->{again} // 0) ? (ERROR, "EAGAIN\0") : ($type, "OK\0") if $type == TRANSACTION_END;
        $store = {} if $n <= ($options->{late} // 0);
        return defined $store->{$argument} ? ($type, $store->{$argument}) : (ERROR, "ENOENT\0") if $type == READ;
        my @entries = entries($store, $argument);
        return @entries ? ($type, join '', map { "$_\0" } @entries) : (ERROR, "ENOENT\0") if $type == DIRECTORY;
        return (ERROR, "EINVAL\0");
}

sub serve {
        my ($connection) = @_;
        while ((sysread($connection, my $header, 16) // 0) == 16) {
                my ($type, $request, $transaction, $length) = unpack 'L4', $header;
                sysread($connection, my $argument, $length);
                my ($kind, $payload) = answer($type, $argument =~ s/\0$//r);
                syswrite $connection, pack('L4', $kind, $request, $transaction, length $payload) . $payload;
        }
        return;
}

sub start_xenstore {
        my $socket = IO::Socket::UNIX->new(Type => SOCK_STREAM, Local => $ENV{XENSTORED_PATH}, Listen => 64) or die "$ENV{XENSTORED_PATH}: $!";
        xenstore() if !-e file();
        my $test = $$;
        $process = fork // die "fork: $!";
        return if $process;
        $server    = $$;
        $SIG{CHLD} = 'IGNORE';
        open STDOUT, '>>', "$ENV{NODE_TMP}/xenstore.log" or die $!;
        open STDERR, '>&', \*STDOUT or die $!;
        my $select = IO::Select->new($socket);
        while (getppid() == $test) { # a test that is killed leaves nothing behind
                my $connection = $select->can_read(1) ? $socket->accept : undef;
                next if !$connection || fork;
                serve($connection);
                POSIX::_exit(0);
        }
        POSIX::_exit(0);
}

sub stop_xenstore {
        return if !$process;
        kill 'KILL', $process;
        waitpid $process, 0;
        $process = undef;
        unlink $ENV{XENSTORED_PATH};
        return;
}

END {
        my $status = $?;
        stop_xenstore();
        $? = $status;
}

1;
