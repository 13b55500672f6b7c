#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-placement is killed at each of its requests, before and after Placement has served it; other programs write between its
# requests; Keystone's tokens expire; certificates are wrong. The next comparison leaves what the daemon says.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;
use Placement;
use PlacementProxy;

placement_needed();
node('paper-testbed');

my $bus = Bus->new->listen;
placement_start();

sub through_proxy { agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=n1'); return }
sub repaired {
        my ($name) = @_;
        agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
        is((agent('--once'))[0], 0, "$name: the next comparison");
        is_deeply([agent('--dry-run')], [0, '', ''], "$name: nothing is left to change");
        return;
}

# The claims that the daemon's allocations have in Placement.
sub claimed { return map { placement_claims($_->{id}) ? $_->{name} : () } @{ describe($bus)->{allocations} } }

# ---- Killed

sub kill_agent { kill 'KILL', int slurp("$ENV{NODE_TMP}/agent.pid"); return }

is(allocate($bus, 'vm1', gpu => 1, cpus => 2, memory => 1 << 30), 'done', 'an allocation');
for my $after (0, 1) {
        my $number = 1 + $after;
        while (1) {
                my ($status) = compare_and_kill($number, $after);
                last if $status eq '0';
                is($status, 'signal 9', "killed at request $number") or last;
                $number++;
        }
        repaired("killed " . ($after ? 'after' : 'before') . ' requests');
        is_deeply([claimed()], ['vm1'], 'no claim was lost');
        remove_all();
}

# Each comparison goes on from what the killed one has left.
sub compare_and_kill {
        my ($number, $after) = @_;
        through_proxy();
        return compare_through(sub {
                my (undef, undef, $n, undef, $reply) = @_;
                kill_agent() if $n == $number && !!$reply == !!$after;
                return;
        });
}

# Empties Placement.
sub remove_all {
        placement('DELETE', "/allocations/$_->{id}") for @{ describe($bus)->{allocations} };
        for (1 .. 4) {
                placement('DELETE', "/resource_providers/$_->{uuid}") for @{ (placement('GET', '/resource_providers'))[1]{resource_providers} };
        }
        is_deeply((placement('GET', '/resource_providers'))[1]{resource_providers}, [], 'Placement is empty');
        return;
}

# ---- Others write between its requests

through_proxy();
is(scalar compare_through(sub {
        my ($method, $path, $number, undef, $reply) = @_;
        my ($uuid) = $path =~ m{^/resource_providers/([\w-]{36})/(?:inventories|traits)$};
        return if $reply || $method ne 'PUT' || !$uuid || $number % 3 == 0;
        # A new generation, and a trait that the operator wants
        my $now = (placement('GET', "/resource_providers/$uuid/traits"))[1];
        placement('PUT', "/resource_providers/$uuid/traits", { resource_provider_generation => $now->{resource_provider_generation}, traits => [@{ $now->{traits} }, 'HW_GPU_API_VULKAN'] })
                if !grep { $_ eq 'HW_GPU_API_VULKAN' } @{ $now->{traits} };
        return;
}), 0, 'others write at the same time');
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
is_deeply([agent('--dry-run')], [0, '', ''], 'conflicts are resolved in one comparison');
is_deeply([claimed()], ['vm1'], 'the claim');
cmp_ok(scalar(grep { grep { $_ eq 'HW_GPU_API_VULKAN' } @{ $_->{traits} } } values %{ placement_tree() }), '>', 0, 'traits of the operator stay');

# ---- Keystone

my $json = JSON::XS->new->utf8;
sub keystone_conf {
        my ($secret) = @_;
        spew("$ENV{NODE_TMP}/secret", "$secret\n");
        agent_conf('[Placement]', 'Host=n1', '[Keystone]', 'Url=' . PROXY . '/v3', 'Credential=c1', "SecretFile=$ENV{NODE_TMP}/secret", 'Region=R1', @_[1 .. $#_]);
        return;
}
my ($tokens, $endpoint, $served) = ("$ENV{NODE_TMP}/tokens", "$ENV{NODE_TMP}/endpoint", 0);
spew($tokens,   '0');
spew($endpoint, PROXY . '/');
# Each token is good for three requests.
sub keystone {
        my ($method, $path, undef, $token, $reply) = @_;
        return if $reply;
        if ($path eq '/v3/auth/tokens') {
                $served = 0;
                spew($tokens, slurp($tokens) + 1);
                my @endpoints = map { { interface => $_->[0], region_id => $_->[1], url => $_->[2] } } ['internal', 'R2', 'http://127.0.0.1:1'], ['internal', 'R1', slurp($endpoint)];
                return [201, 'X-Subject-Token: token-' . slurp($tokens) . "\r\n", $json->encode({ token => { catalog => [{ type => 'placement', endpoints => \@endpoints }] } })];
        }
        return [404, '', '{}'] if $path =~ m{^/wrong/};
        return [302, "Location: http://127.0.0.1:1/\r\n", ''] if $path =~ m{^/moved/};
        return [200, '', '<html></html>'] if $path =~ m{^/page/};
        return [401, '', '{}'] if ($token // '') ne 'token-' . slurp($tokens) || ++$served > 3;
        return;
}
keystone_conf('s3cret');
is(scalar compare_through(\&keystone), 0, 'a comparison with tokens of Keystone');
cmp_ok(slurp($tokens), '>', 3, 'tokens that expire are renewed');
keystone_conf('s3cret', 'Interface=admin');
is(scalar compare_through(\&keystone), 1, 'the catalog has no such interface');
keystone_conf('s3cret');
is(scalar compare_through(sub { return [401, '', '{}'] }), 1, 'the credential is refused');
# Keystone never replies so to the request for a token.
for my $reply ([200, '', '<html></html>'], [200, '', '{}'], [201, '', '{"token":{}}'], [300, '', '{"versions":{}}'], [301, "Location: http://127.0.0.1:1/\r\n", ''], [400, '', '<html></html>'], [404, '', '{}'], [405, '', '{}']) {
        keystone_conf('s3cret');
        my ($exit, $messages) = compare_through(sub { return $reply });
        is($exit, 1, "Keystone's status $reply->[0]: the comparison fails");
        like($messages, names($reply->[0], 'Url=', '[Keystone]'), '... a sentence says what to correct');
}
for my $reply ([400, '', '{"error":{}}'], [401, '', '{"error":{}}'], [403, '', '{"error":{}}'], [503, '', '<html></html>']) {
        keystone_conf('s3cret');
        my (undef, $messages) = compare_through(sub { return $reply });
        like($messages, names($reply->[0]), "Keystone's status $reply->[0] is named");
        unlike($messages, qr/Url=/, '... but no wrong address');
}
keystone_conf('s3cret', 'SecretFile=/nonexistent');
is((agent('--once'))[0], 78, 'the secret cannot be read');

# The agent runs on while an admin corrects the catalog.
keystone_conf('s3cret');
for my $wrong ((map { PROXY . "/$_/" } qw(wrong moved page)), 'http://127.0.0.1:1') {
        remove_all();
        spew($endpoint, $wrong);
        my ($proxy, $pid, $asked) = (serve(\&keystone), agent_start(), slurp($tokens));
        ok(wait_until(sub { slurp($tokens) >= $asked + 2 }), "$wrong: the agent reads the catalog again");
        spew($endpoint, PROXY);
        ok(wait_until(sub { (claimed())[0] }), '... and finds the corrected address');
        is(agent_stop($pid), 'signal 15', '... without a restart');
        kill 'KILL', $proxy;
        waitpid $proxy, 0;
}

# ---- TLS

my ($key, $cert) = map { "$ENV{NODE_TMP}/$_.pem" } qw(key cert);
SKIP: {
        skip 'openssl is not installed', 4
                if system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=cloud -addext subjectAltName=IP:127.0.0.1 -days 2 -keyout $key -out $cert >/dev/null 2>&1") != 0;
        my $tls = placement_start_tls($key, $cert);
        agent_conf('[Placement]', 'Url=https://127.0.0.1:8780', 'Token=admin', 'Host=n1');
        is((agent('--once'))[0], 1, 'a certificate of an unknown authority is refused');
        agent_conf('[Placement]', 'Url=https://127.0.0.1:8780', 'Token=admin', 'Host=n1', "CaFile=$cert");
        is_deeply([agent('--dry-run')], [0, '', ''], 'with the certificate of the authority Placement is read');
        agent_conf('[Placement]', 'Url=https://localhost:8780', 'Token=admin', 'Host=n1', "CaFile=$cert");
        is((agent('--once'))[0], 1, 'a certificate for another name is refused');
        agent_conf('[Placement]', 'Url=https://127.0.0.1:8780', 'Token=admin', 'Host=n1', 'CaFile=/nonexistent');
        is((agent('--once'))[0], 1, 'the file of the authorities cannot be read');
        kill 'KILL', $tls;
        waitpid $tls, 0;
}

done_testing();
