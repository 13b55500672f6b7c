# SPDX-License-Identifier: GPL-2.0-or-later
# A real OpenStack Placement (placement-api, SQLite, no Keystone) in the network namespace of the node, and passthrough-placement.
package Placement;

use strict;
use warnings;

use Exporter qw(import);
use HTTP::Tiny;
use JSON::XS;
use Test::More;

use Node;

our @EXPORT = qw(placement_needed placement_start placement_start_tls placement_stop placement placement_tree placement_provider placement_claims agent agent_start agent_stop agent_conf URL);

use constant URL => 'http://127.0.0.1:8778';

# Placement needs a second of CPU time to start. A busy machine may take a minute for that.
use constant START_SEC => 300;

my $json = JSON::XS->new->canonical->utf8->allow_nonref;
my $api;
my $directory = defined $ENV{NODE_TMP} ? "$ENV{NODE_TMP}/placement" : undef;

sub placement_needed {
        my ($program) = grep { -x } map { "$_/placement-api" } qw(/usr/bin /usr/local/bin);
        plan skip_all => 'python3-placement is not installed' if !$program;
        plan skip_all => 'needs root' if $> != 0;
        plan skip_all => 'no network namespace' if $ENV{NODE_ROOT} && $ENV{NODE_EVENTS} ne 'yes';
        return;
}

# Starts Placement on the database of the last start.
sub placement_start {
        mkdir $directory;
        system 'ip', 'link', 'set', 'lo', 'up';
        spew("$directory/placement.conf", <<"END");
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///$directory/placement.sqlite
sync_on_startup = true
END
        $api = fork // die "fork: $!";
        if (!$api) {
                open STDOUT, '>>', "$directory/log" or die $!;
                open STDERR, '>&', \*STDOUT         or die $!;
                $ENV{OS_PLACEMENT_CONFIG_DIR} = $directory;
                # More agents may wait than this server's default of 5.
                exec '/usr/bin/python3', '-c', <<'END', qw(--host 127.0.0.1 --port 8778) or die $!;
import runpy, wsgiref.simple_server
wsgiref.simple_server.WSGIServer.request_queue_size = 256
runpy.run_path('/usr/bin/placement-api', run_name='__main__')
END
        }
        wait_until(sub { HTTP::Tiny->new(timeout => 5)->get(URL . '/')->{success} }, START_SEC) or die 'placement-api does not start: ' . slurp("$directory/log");
        return;
}

# Starts Placement on port 8780 with TLS and the same database. $config: another directory with a placement.conf. Returns the process.
sub placement_start_tls {
        my ($key, $cert, $config) = @_;
        my $code = <<"END";
import ssl
from wsgiref.simple_server import make_server
from placement.wsgi import init_application
server = make_server('127.0.0.1', 8780, init_application())
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('$cert', '$key')
server.socket = context.wrap_socket(server.socket, server_side=True)
open('$directory/tls', 'w').close()
while True:
    try:
        server.handle_request()
    except OSError:  # a client that refuses the certificate
        pass
END
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDOUT, '>>', "$directory/log" or die $!;
                open STDERR, '>&', \*STDOUT         or die $!;
                $ENV{OS_PLACEMENT_CONFIG_DIR} = $config // $directory;
                exec '/usr/bin/python3', '-c', $code or die $!;
        }
        wait_until(sub { -e "$directory/tls" }, START_SEC) or die 'Placement with TLS does not start: ' . slurp("$directory/log");
        return $pid;
}

sub placement_stop {
        return if !$api;
        kill 'KILL', $api;
        waitpid $api, 0;
        $api = undef;
        return;
}

# placement(METHOD, PATH[, BODY]): returns status and document.
sub placement {
        my ($method, $path, $body) = @_;
        my $reply = HTTP::Tiny->new(timeout => 30)->request(
                $method,
                URL . $path,
                {
                        headers => { 'X-Auth-Token' => 'admin', 'OpenStack-API-Version' => 'placement 1.38', 'Content-Type' => 'application/json' },
                        defined $body ? (content => $json->encode($body)) : (),
                });
        return ($reply->{status}, eval { $json->decode($reply->{content}) });
}

# Returns some providers of Placement by name: uuid, parent (a uuid), resources (CLASS => [TOTAL, RESERVED, USED]) and traits.
# A provider's generation changes with its inventories and traits, so these are read again only then. It does not always change with its usages.
my %read;
sub read_providers {
        my ($query) = @_;
        my (undef, $list) = placement('GET', "/resource_providers$query");
        my %found;
        for my $p (@{ $list->{resource_providers} }) {
                my $of    = sub { (placement('GET', "/resource_providers/$p->{uuid}/$_[0]"))[1]{ $_[0] } };
                my $known = $read{"$p->{uuid} $p->{generation}"} //= { map { $_ => $of->($_) } qw(inventories traits) };
                my ($inventories, $traits, $usages) = (@$known{qw(inventories traits)}, $of->('usages'));
                next if !$inventories || !$usages || !$traits;    # the provider was removed meanwhile
                $found{ $p->{name} } = {
                        uuid      => $p->{uuid},
                        parent    => $p->{parent_provider_uuid},
                        resources => { map { $_ => [$inventories->{$_}{total}, $inventories->{$_}{reserved}, $usages->{$_} // 0] } keys %$inventories },
                        traits    => [sort @$traits],
                };
        }
        return \%found;
}

sub placement_tree     { return read_providers('') }
sub placement_provider { my ($name) = @_; return read_providers("?name=$name")->{$name} }

# Returns the claim of a consumer, resources by the provider's name, or undef.
sub placement_claims {
        my ($consumer) = @_;
        my (undef, $claim) = placement('GET', "/allocations/$consumer");
        my (undef, $list)  = placement('GET', '/resource_providers');
        my %name = map { $_->{uuid} => $_->{name} } @{ $list->{resource_providers} };
        return if !%{ $claim->{allocations} };
        return { map { $name{$_} => $claim->{allocations}{$_}{resources} } keys %{ $claim->{allocations} } };
}

sub agent_conf {
        my (@lines) = @_;
        spew("$ENV{NODE_TMP}/placement.conf", join "\n", @lines, '');
        return;
}

# Runs passthrough-placement ARGUMENTS. Returns exit status, stdout, stderr.
sub agent {
        my (@arguments) = @_;
        my @files = map { "$ENV{NODE_TMP}/agent.$_" } qw(out err);
        my $pid   = fork // die "fork: $!";
        if (!$pid) {
                spew("$ENV{NODE_TMP}/agent.pid", "$$\n");
                open STDOUT, '>', $files[0] or die $!;
                open STDERR, '>', $files[1] or die $!;
                exec "$ENV{BUILD}/passthrough-placement", "--config=$ENV{NODE_TMP}/placement.conf", @arguments or die $!;
        }
        waitpid $pid, 0;
        return ($? & 127 ? 'signal ' . ($? & 127) : $? >> 8, map { slurp($_) } @files);
}

sub agent_start {
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDOUT, '>>', "$ENV{NODE_TMP}/agent.log" or die $!;
                open STDERR, '>&', \*STDOUT                   or die $!;
                exec "$ENV{BUILD}/passthrough-placement", "--config=$ENV{NODE_TMP}/placement.conf", '--debug' or die $!;
        }
        return $pid;
}

sub agent_stop {
        my ($pid, $signal) = @_;
        kill $signal // 'TERM', $pid;
        waitpid $pid, 0;
        return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

END { local $?; placement_stop() }

1;
