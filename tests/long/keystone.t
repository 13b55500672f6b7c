#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-placement with a real Keystone: an application credential, the catalog, tokens that expire and tokens that are revoked, all with
# TLS.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus";

use HTTP::Tiny;
use JSON::XS;
use POSIX ();
use Test::More;

use Node;
use Placement;

placement_needed();
plan skip_all => 'python3-keystone is not installed' if !-x '/usr/bin/keystone-manage';
plan skip_all => 'openssl is not installed'          if !-x '/usr/bin/openssl';
node('paper-testbed');

my $dir      = "$ENV{NODE_TMP}/keystone";
my $identity = 'http://127.0.0.1:5000/v3';     # for this test and for Placement
my $secure   = 'https://127.0.0.1:5001/v3';    # for the agent
my ($key, $cert) = map { "$dir/$_.pem" } qw(key cert);
my $json = JSON::XS->new->utf8;
my ($keystone, $tls);
mkdir $_ or die "$_: $!" for $dir, "$dir/fernet", "$dir/credential", "$dir/placement";

# ---- Keystone

sub in_background {
        my (@command) = @_;
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        open STDOUT, '>>', "$dir/log" or die $!;
        open STDERR, '>&', \*STDOUT   or die $!;
        $ENV{OS_KEYSTONE_CONFIG_FILES} = "$dir/keystone.conf";
        exec @command or POSIX::_exit(127);
}

sub finish {
        my ($pid) = @_;
        kill 'KILL', $pid;
        waitpid $pid, 0;
        return;
}
END { local $?; finish($_) for grep { defined } $keystone, $tls }

sub manage {
        my (@arguments) = @_;
        waitpid in_background('keystone-manage', '--config-file', "$dir/keystone.conf", @arguments), 0;
        return $? == 0 || die "keystone-manage @arguments: " . slurp("$dir/log");
}

# Its tokens are valid for so many seconds.
sub configure_keystone {
        my ($lifetime) = @_;
        spew("$dir/keystone.conf", <<"END");
[database]
connection = sqlite:///$dir/keystone.sqlite
[token]
expiration = $lifetime
[fernet_tokens]
key_repository = $dir/fernet
[credential]
key_repository = $dir/credential
[identity]
password_hash_rounds = 4
END
        return;
}

# On one port without TLS and on one with it, in one thread: SQLite locks the database to others.
sub start_keystone {
        $keystone = in_background('/usr/bin/python3', '-c', <<"END");
import select, ssl
from wsgiref.simple_server import make_server
from keystone.server.wsgi import initialize_public_application
application = initialize_public_application()
servers = [make_server('127.0.0.1', port, application) for port in (5000, 5001)]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('$cert', '$key')
servers[1].socket = context.wrap_socket(servers[1].socket, server_side=True)
while True:
    for server in select.select(servers, [], [])[0]:
        server.handle_request()
END
        wait_until(sub { HTTP::Tiny->new(timeout => 5)->get($identity)->{success} }, 60) or die 'Keystone does not start: ' . slurp("$dir/log");
        return;
}

# The reply to a request, with a token.
sub ask {
        my ($method, $path, $token, $body) = @_;
        my $reply = HTTP::Tiny->new(timeout => 30)->request($method, "$identity$path",
                { headers => { 'Content-Type' => 'application/json', defined $token ? ('X-Auth-Token' => $token) : () }, defined $body ? (content => $json->encode($body)) : () });
        $reply->{success} or die "$method $path: $reply->{status} $reply->{content}\n", slurp("$dir/log");
        return ($reply->{content} ? $json->decode($reply->{content}) : undef, $reply->{headers}{'x-subject-token'});
}

# A user's token and id, for a project.
sub token_of {
        my ($user, $project) = @_;
        my %default = (domain => { id => 'default' });
        my ($reply, $token) = ask('POST', '/auth/tokens', undef, {
                auth => {
                        identity => { methods => ['password'], password => { user => { name => $user, password => 'secret', %default } } },
                        scope    => { project => { name => $project, %default } },
                } });
        return ($token, $reply->{token}{user}{id});
}
sub admin { return (token_of('admin', 'admin'))[0] }

configure_keystone(3600);
system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=cloud -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout $key -out $cert >/dev/null 2>&1") == 0 or die 'openssl';
manage('db_sync');
manage($_, '--keystone-user', 'root', '--keystone-group', 'root') for qw(fernet_setup credential_setup);
manage('bootstrap', '--bootstrap-password', 'secret', '--bootstrap-region-id', 'R1', map { ("--bootstrap-$_-url", "$identity/") } qw(public internal admin));
placement_start();
start_keystone();

# The user of the agent has a project of its own.
my $admin   = admin();
my ($role)  = @{ (ask('GET', '/roles?name=admin', $admin))[0]{roles} };
my $project = (ask('POST', '/projects', $admin, { project => { name => 'nodes', domain_id => 'default' } }))[0]{project}{id};
my $user    = (ask('POST', '/users', $admin, { user => { name => 'node', password => 'secret', domain_id => 'default' } }))[0]{user}{id};
ask('PUT', "/projects/$project/users/$user/roles/$role->{id}", $admin);
my $service = (ask('POST', '/services', $admin, { service => { type => 'placement', name => 'placement' } }))[0]{service}{id};
ask('POST', '/endpoints', $admin, { endpoint => { service_id => $service, interface => 'internal', region_id => 'R1', url => 'https://127.0.0.1:8780' } });

my ($token)    = token_of('node', 'nodes');
my $credential = (ask('POST', "/users/$user/application_credentials", $token, { application_credential => { name => 'agent', secret => 's3cret' } }))[0]{application_credential}{id};

# ---- Placement, which asks Keystone about each token

spew("$dir/placement/placement.conf", <<"END");
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = $identity
auth_url = $identity
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = admin
username = admin
password = secret
token_cache_time = -1
[placement_database]
connection = sqlite:///$ENV{NODE_TMP}/placement/placement.sqlite
END
$tls = placement_start_tls($key, $cert, "$dir/placement");

sub conf {
        my ($secret, @more) = @_;
        spew("$dir/secret", "$secret\n");
        agent_conf('[Placement]', 'Host=n1', @more, '[Keystone]', "Url=$secure", "Credential=$credential", "SecretFile=$dir/secret", 'Region=R1');
        return;
}
my $bus = Bus->new->listen;

conf('s3cret');
my ($status, undef, $error) = agent('--once');
is($status, 1, 'without its authority the certificate of Keystone is refused');
like($error, names($secure), 'and the agent says whose');
conf('wrong', "CaFile=$cert");
($status, undef, $error) = agent('--once');
is($status, 1, 'a wrong secret is refused');
like($error, names($credential), 'and the agent names the credential');
is_deeply(placement_tree(), {}, 'Placement has nothing');

conf('s3cret', "CaFile=$cert");
my $agent = agent_start();
sub replies { my ($pattern) = @_; return scalar(() = (slurp_existing("$ENV{NODE_TMP}/agent.log") // '') =~ /$pattern/mg) }
sub tokens { return replies(qr{^POST \Q$secure\E/auth/tokens: 201$}m) }
sub is_claimed { my ($name) = @_; my $id = allocation($bus, $name)->{id}; return wait_until(sub { placement_claims($id) }, 60) }

ok(wait_until(sub { replies(qr/^Placement: \d+ changes of/m) }, 60), 'the first report') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
is(tokens(), 1, 'with one token');
cmp_ok(scalar keys %{ placement_tree() }, '>=', 5, 'Placement has the node');

# ---- a token is revoked

# Keystone revokes the tokens of a user who is disabled.
sub enable { my ($value) = @_; return ask('PATCH', "/users/$user", admin(), { user => { enabled => $value } }) }
enable($_) for JSON::XS::false, JSON::XS::true;
is(allocate($bus, 'vm1', gpu => 1), 'done', 'an allocation after the token was revoked');
ok(is_claimed('vm1'), 'its claim is in Placement') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
cmp_ok(replies(qr{: 401$}m), '>=', 1, 'Placement has refused the token');
cmp_ok(tokens(), '>=', 2, 'and the agent has asked for another one');

# ---- the credential is not valid for a while

enable(JSON::XS::false);
my ($released, $failures) = (allocation($bus, 'vm1')->{id}, replies(qr/\Q$credential\E/m));
is_deeply([release($bus, 'vm1')], ['done'], 'a release while the credential is not valid');
ok(wait_until(sub { replies(qr/\Q$credential\E/m) > $failures }, 60), 'the agent names the credential');
enable(JSON::XS::true);
ok(wait_until(sub { !placement_claims($released) }, 120), 'the agent catches up when it is valid again') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
is(agent_stop($agent), 'signal 15', 'it ends when it is told to');

# ---- a token expires. Placement keeps its own, which is valid for longer.

my $lifetime = 5;
finish($keystone);
configure_keystone($lifetime);
start_keystone();
spew("$ENV{NODE_TMP}/agent.log", '');
$agent = agent_start();
is(allocate($bus, 'vm2', gpu => 1), 'done', 'an allocation');
ok(is_claimed('vm2'), 'the next agent claims it') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
my ($known, $refused, $since) = (tokens(), replies(qr{: 401$}m), time);
$released = allocation($bus, 'vm2')->{id};
wait_until(sub { time > $since + $lifetime }, 2 * $lifetime);
is_deeply([release($bus, 'vm2')], ['done'], 'a release after the token has expired');
ok(wait_until(sub { !placement_claims($released) }, 60), 'the claim is gone') or diag(slurp("$ENV{NODE_TMP}/agent.log"));
cmp_ok(replies(qr{: 401$}m), '>', $refused, 'Placement has refused the token');
cmp_ok(tokens(), '>', $known, 'and the agent has asked for another one');
is(agent_stop($agent), 'signal 15', 'the agent ends');

# ---- all that is in Placement is right

agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
is_deeply([agent('--dry-run')], [0, '', ''], 'nothing is left to change');

done_testing();
