# SPDX-License-Identifier: GPL-2.0-or-later
# A proxy between passthrough-placement and Placement, which can replace replies.
package PlacementProxy;

use strict;
use warnings;

use Exporter qw(import);
use HTTP::Tiny;
use IO::Socket::INET;
use POSIX ();

use Placement;

our @EXPORT = qw(compare_through serve PROXY);

use constant PROXY => 'http://127.0.0.1:8779';

my $server;

sub forward {
        my ($method, $path, $body) = @_;
        my $reply = HTTP::Tiny->new(timeout => 30)->request($method, URL . $path,
                { headers => { 'X-Auth-Token' => 'admin', 'OpenStack-API-Version' => 'placement 1.38', 'Content-Type' => 'application/json' }, content => $body });
        return [$reply->{status}, '', $reply->{content} // ''];
}

sub answer {
        my ($connection, $when, $number) = @_;
        my ($line, %headers, $body) = (scalar <$connection>);
        my ($method, $path) = ($line // '') =~ m{^(\w+) (\S+) HTTP} or return;
        while (defined(my $header = <$connection>)) {
                last if $header =~ /^\r?\n/;
                $headers{ lc $1 } = $2 if $header =~ /^([\w-]+): *(.*?)\r?\n/;
        }
        read $connection, $body, $headers{'content-length'} // 0;
        my $reply = $when->($method, $path, $number, $headers{'x-auth-token'}, undef);
        if (!$reply) {
                $reply = forward($method, $path, $body);
                $when->($method, $path, $number, $headers{'x-auth-token'}, $reply);
        }
        printf {$connection} "HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n%s\r\n%s", $reply->[0], length $reply->[2], $reply->[1], $reply->[2];
        return;
}

# Starts the proxy. Returns its process. WHEN: as for compare_through().
sub serve {
        my ($when) = @_;
        $server //= IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 8779, Listen => 16, ReuseAddr => 1) or die "proxy: $!";
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        local $SIG{PIPE} = 'IGNORE';
        my $number = 0;
        while (my $connection = $server->accept) {
                answer($connection, $when, ++$number);
                close $connection;
        }
        POSIX::_exit(0);
}

# Runs a comparison through the proxy, in a process of its own. Calls WHEN->(METHOD, PATH, NUMBER, TOKEN) before each request and WHEN->(..., REPLY)
# after it. WHEN may return a reply to send instead: [STATUS, HEADERS, DOCUMENT]. Returns exit status and messages of the agent.
sub compare_through {
        my ($when) = @_;
        my $pid = serve($when);
        my ($status, undef, $messages) = agent('--once');
        kill 'KILL', $pid;
        waitpid $pid, 0;
        return wantarray ? ($status, $messages) : $status;
}

1;
