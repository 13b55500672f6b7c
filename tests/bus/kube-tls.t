#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-dra and an API server with TLS: a kubeconfig as kubeadm writes it for the kubelet, with the kubelet's own certificate; CAs and names
# that are wrong; certificates, CAs and tokens that are renewed while it runs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use MIME::Base64 qw(encode_base64);
use Test::More;

use Kube;
use Node;

kube_needed();
plan skip_all => 'openssl is not installed' if !-x '/usr/bin/openssl';
node('hgx-h100', configure => 1);
configure("[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n");

# ---- Certificates

my $pki = "$ENV{NODE_TMP}/pki";
mkdir $pki;
chdir $pki or die $!;

sub openssl { my (@arguments) = @_; system('openssl', @arguments) == 0 or die "openssl @arguments"; return }
my @key = qw(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes);
sub make_ca { my ($name) = @_; openssl('req', '-x509', @key, '-subj', "/CN=$name", '-days', 2, '-keyout', "$name.key", '-out', "$name.crt"); return }

# NAME.crt and NAME.key, and NAME.pem with both.
my $serial = 1000;
sub make_certificate {
        my ($name, $ca, $subject, $names) = @_;
        openssl('req', @key, '-subj', $subject, '-keyout', "$name.key", '-out', "$name.csr");
        spew("$name.ext", "subjectAltName=$names\n");
        openssl('x509', '-req', '-in', "$name.csr", '-CA', "$ca.crt", '-CAkey', "$ca.key", '-set_serial', ++$serial, '-days', 2, '-out', "$name.crt", '-extfile', "$name.ext");
        spew("$name.pem", slurp("$name.crt") . slurp("$name.key"));
        return sprintf '%04X', $serial;
}

my @server = (TLS_PORT, "$pki/server.crt", "$pki/server.key", "$pki/clients.crt");

# Replaces a file as the kubelet does: a link to the newest.
sub renew { my ($link, $file) = @_; unlink "$link.new"; symlink $file, "$link.new" or die $!; rename "$link.new", $link or die $!; return }

open my $standard_error, '>&', \*STDERR or die $!;
open STDERR, '>', "$pki/log" or die $!;
make_ca($_) for qw(ca1 ca2 other clients);
make_certificate("server-$_", $_, '/CN=kube-apiserver', 'IP:127.0.0.1') for qw(ca1 ca2);
make_certificate('server-name', 'ca1', '/CN=kube-apiserver', 'DNS:elsewhere.example.org');
my $node = '/O=system:nodes/CN=system:node:' . NODE;
my @client = map { make_certificate("client-$_", 'clients', $node, 'DNS:n1') } 1, 2;
make_certificate('client-other', 'clients', '/O=system:nodes/CN=system:node:other', 'DNS:other');
make_certificate('client-wrong', 'other', $node, 'DNS:n1');
open STDERR, '>&', $standard_error or die $!;

renew('server.crt', 'server-ca1.crt');
renew('server.key', 'server-ca1.key');
renew('ca.crt', 'ca1.crt');
renew('kubelet-client-current.pem', 'client-1.pem');

# A server with another certificate has new connections.
sub serve { my ($what) = @_; renew("server.$_", "server-$what.$_") for qw(crt key); kube_stop_api(); kube_start_api(@server); return }

# The kubeconfig of the kubelet; a key with -data has the text of the file.
sub kubeconfig {
        my ($cluster, $user) = @_;
        spew("$ENV{NODE_TMP}/kubeconfig", <<"END");
apiVersion: v1
kind: Config
clusters:
- name: default-cluster
  cluster:
    $cluster
    server: https://127.0.0.1:${\TLS_PORT}
contexts:
- name: default-context
  context:
    cluster: default-cluster
    namespace: default
    user: default-auth
current-context: default-context
preferences: {}
users:
- name: default-auth
  user:
$user
END
        return;
}

my $ca_data = 'certificate-authority-data: ' . encode_base64(slurp('ca1.crt'), '');
my $current = "    client-certificate: $pki/kubelet-client-current.pem\n    client-key: $pki/kubelet-client-current.pem";
kube_start(@server);

# ---- The credential of the kubelet

kubeconfig($ca_data, $current);
dra_start();
my $bus = Bus->new->listen;
sub requests { return grep { $_->{certificate} || $_->{token} ne 'admin' } @{ control()->{log} } }
ok(wait_until(sub { keys %{ slice_devices() } == 8 }), 'with the kubeconfig of the kubelet the slices are published') or diag(dra_log());
is_deeply([keys %{ { map { $_->{certificate} => 1 } requests() } }], [$client[0]], '... with its certificate');
my $n = 0;
sub prepares { my ($name) = @_; my $ref = claim('c' . ++$n, gpu => '0000:13:00.0'); prepared_ok($ref, $name) or diag(dra_log()); unprepare($ref); return }
prepares('a claim is prepared');

# ---- While it runs: a new certificate of the client, of the server, and a new CA

# A connection that is in use lasts 10 minutes, and the files are read for each. Meanwhile the clocks go 50 times as fast (tests/clock).
dra_stop();
{
        local $ENV{CLOCK_RATE} = 50;
        dra_start();
}
control(log => []);
ok(wait_until(sub { requests() }), 'the slices are read');
renew('kubelet-client-current.pem', 'client-2.pem');
sub ask { return kubelet('prepare', claims => [{ namespace => 'default', name => 'none', uid => uid_of(999) }]) }
sub all_renewed { control(log => []); ask() for 1 .. 5; return !grep { ($_->{certificate} // '') ne $client[1] } requests() }
ok(wait_until(\&all_renewed), 'a renewed certificate of the kubelet is used');
control(revoked => [$client[0]], log => []);
ok(wait_until(sub { ask(); return requests() > 3 }), '... for further requests');
is_deeply([map { $_->{status} } grep { $_->{status} == 401 } requests()], [], '... which succeed without the former one');
dra_stop();

kubeconfig("certificate-authority: $pki/ca.crt", $current);
dra_start();
prepares('the CA is a file');
spew('both.crt', slurp('ca1.crt') . slurp('ca2.crt'));
renew('ca.crt', 'both.crt');
serve('ca2');
prepares('a file with both CAs, and a certificate of the new one');
renew('ca.crt', 'ca2.crt');
prepares('and the new one alone');
dra_stop();

# ---- What is wrong gets nothing: neither a token nor a request

sub refuses {
        my ($name, $cluster, $user, $why) = @_;
        kubeconfig($cluster, $user);
        control(log => []);
        my $before = length dra_log();
        dra_start();
        ok(wait_until(sub { substr(dra_log(), $before) =~ $why }), "$name: the journal says so") or diag(substr dra_log(), $before);
        my $ref = claim('refused', gpu => '0000:13:00.0');
        isnt(prepare($ref)->{claims}{ $ref->{uid} }{error}, '', '... and no claim is prepared');
        dra_stop();
        return scalar grep { ($_->{status} // 0) < 400 } requests();
}
my $token = '    token: node';
my $tls   = qr{^https://.* .*(?:certificate|SSL|TLS|tls)}m;
api('DELETE', "/apis/resource.k8s.io/v1/resourceslices/$_->{metadata}{name}") for slices();
is(refuses('another CA', "certificate-authority: $pki/other.crt", $token, $tls), 0, '... nor is anything sent');
is(refuses('the CA of the system', '', $token, $tls), 0, '... nor is anything sent');
serve('name');
is(refuses('a server of another name', $ca_data, $token, $tls), 0, '... nor is anything sent');
serve('ca1');
renew('kubelet-client-current.pem', 'client-wrong.pem');
is(refuses('a client of another CA', $ca_data, $current, $tls), 0, '... nor answered');
renew('kubelet-client-current.pem', 'client-1.pem');
control(revoked => [$client[0]]);
is(refuses('a certificate that is revoked', $ca_data, $current, qr/: 401$/m), 0, '... nor answered');
renew('kubelet-client-current.pem', 'client-other.pem');
refuses('the certificate of another node', $ca_data, $current, qr/: 403$/m);
is_deeply([slices()], [], 'nothing was published');

# ---- A token in a file

spew('token', "old\n");
control(tokens => { admin => undef, old => NODE });
kubeconfig($ca_data, "    tokenFile: $pki/token");
dra_start();
ok(wait_until(sub { keys %{ slice_devices() } == 8 }), 'a token in a file');
control(tokens => { admin => undef, new => NODE });
spew('token', "new\n");
prepares('a renewed token is used at once');

is(dra_stop(), 0, 'it ends');
chdir '/';
done_testing();
