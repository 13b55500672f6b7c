# SPDX-License-Identifier: GPL-2.0-or-later
# Kubernetes for tests: tests/kube/kubelet.py and tests/kube/apiserver.py in the network namespace of the node, and passthrough-dra.
package Kube;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use HTTP::Tiny;
use IPC::Open2;
use JSON::XS;
use Test::More;

use Node;

our @EXPORT = qw(kube_needed kube_start kube_stop_api kube_start_api api control kubelet kubelet_restart prepare unprepare dra_start dra_stop dra_log claim claim_ref delete_claim slices slice_devices claim_files kube_conf cdi_of metadata_of device_named uid_of prepared_ok unprepared_ok NODE DRIVER TLS_PORT);

use constant { PORT => 6443, TLS_PORT => 6444, NODE => 'n1', DRIVER => 'passthroughd.org' };

my $DIR  = abs_path(dirname(__FILE__)) . '/../kube';
my $json = JSON::XS->new->canonical->utf8->allow_nonref;
my ($api, $kubelet, @pipe, $dra);

sub directory { return "$ENV{NODE_TMP}/kubelet" }

sub kube_needed {
        plan skip_all => 'passthrough-dra is not built'       if !-x "$ENV{BUILD}/passthrough-dra";
        plan skip_all => 'python3-grpcio is not installed'    if system('/usr/bin/python3 -c "import grpc, google.protobuf" 2>/dev/null') != 0;
        plan skip_all => 'needs root'                         if $> != 0;
        plan skip_all => 'no network namespace'               if $ENV{NODE_ROOT} && $ENV{NODE_EVENTS} ne 'yes';
        return;
}

sub kube_conf {
        my (@lines) = @_;
        spew("$ENV{NODE_TMP}/dra.conf", join "\n", '[Kubernetes]', "Kubeconfig=$ENV{NODE_TMP}/kubeconfig", 'Node=' . NODE, 'KubeletDirectory=' . directory(),
                "CdiDirectory=$ENV{NODE_TMP}/cdi", @lines, '');
        return;
}

sub kube_start_api {
        my (@arguments) = @_;
        $api = fork // die "fork: $!";
        if (!$api) {
                open STDERR, '>>', "$ENV{NODE_TMP}/api.log" or die $!;
                exec '/usr/bin/python3', "$DIR/apiserver.py", PORT, NODE, @arguments or die $!;
        }
        wait_until(sub { HTTP::Tiny->new(timeout => 5)->get('http://127.0.0.1:' . PORT . '/control')->{success} }) or die 'the API server does not start: ' . slurp("$ENV{NODE_TMP}/api.log");
        return;
}

sub kube_stop_api {
        return if !$api;
        kill 'KILL', $api;
        waitpid $api, 0;
        $api = undef;
        return;
}

# Starts the API server, with arguments of apiserver.py, and the kubelet.
sub kube_start {
        my (@arguments) = @_;
        mkdir $_ for directory(), directory() . '/plugins', directory() . '/plugins_registry';
        system 'ip', 'link', 'set', 'lo', 'up';
        spew("$ENV{NODE_TMP}/kubeconfig", <<"END");
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: "http://127.0.0.1:${\PORT}/"}
users:
- name: node
  user:
    token: node
contexts:
- name: test
  context:
    cluster: test
    user: node
current-context: test
END
        kube_conf();
        kube_start_api(@arguments);
        kubelet_restart();
        return;
}

# api(METHOD, PATH[, BODY]): sends a request as the administrator. Returns status and document.
sub api {
        my ($method, $path, $body) = @_;
        my $reply = HTTP::Tiny->new(timeout => 30)->request($method, 'http://127.0.0.1:' . PORT . $path,
                { headers => { Authorization => 'Bearer admin', 'Content-Type' => 'application/json' }, defined $body ? (content => $json->encode($body)) : () });
        return ($reply->{status}, eval { $json->decode($reply->{content}) });
}

sub control { my (%settings) = @_; return (api('POST', '/control', \%settings))[1] }

sub stop_kubelet {
        return if !$kubelet;
        close $pipe[1];
        kill 'KILL', $kubelet;
        waitpid $kubelet, 0;
        $kubelet = undef;
        return;
}

sub kubelet_restart {
        stop_kubelet();
        local $ENV{GRPC_VERBOSITY} = 'NONE';
        $kubelet = open2($pipe[0], $pipe[1], '/usr/bin/python3', "$DIR/kubelet.py", directory());
        return;
}

sub kubelet {
        my ($do, %arguments) = @_;
        print { $pipe[1] } $json->encode({ do => $do, %arguments }), "\n";
        $pipe[1]->flush;
        my $line = readline $pipe[0];
        die "the kubelet has ended at $do" if !defined $line;
        return $json->decode($line);
}

# claim(NAME, REQUEST => ADDRESS, ...): creates a claim with devices. Returns its reference.
my $next = 0;
sub uid_of { my ($n) = @_; return sprintf '33333333-0000-4000-8000-%012d', $n }
sub device_named { my ($address) = @_; return 'pci-' . $address =~ tr/:./--/r }

sub claim {
        my ($name, @devices) = @_;
        my $ref = { namespace => 'default', name => $name, uid => uid_of(++$next) };
        my @results;
        while (my ($request, $address) = splice @devices, 0, 2) {
                push @results, { request => $request, driver => DRIVER, pool => NODE, device => device_named($address) };
        }
        api('PUT', "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/$name",
                { metadata => { %$ref, annotations => { 'resource.kubernetes.io/pod-claim-name' => 'devices' } }, status => { allocation => { devices => { results => \@results } } } });
        return $ref;
}

sub delete_claim { my ($ref) = @_; return api('DELETE', "/apis/resource.k8s.io/v1/namespaces/$ref->{namespace}/resourceclaims/$ref->{name}") }

sub prepare   { my (@refs) = @_; return kubelet('prepare',   claims => \@refs) }
sub unprepare { my (@refs) = @_; return kubelet('unprepare', claims => \@refs) }

# Retries like the kubelet, which stops waiting for the plugin after 40 seconds.
sub prepared_ok {
        my ($ref, $name) = @_;
        my $answer;
        wait_until(sub { $answer = prepare($ref); return $answer->{ms} < 40_000 });
        return is($answer->{claims}{ $ref->{uid} }{error}, '', $name) || diag($json->encode($answer));
}

sub unprepared_ok {
        my ($ref, $name) = @_;
        my $answer = unprepare($ref);
        return is($answer->{claims}{ $ref->{uid} }{error}, '', $name) || diag($json->encode($answer));
}

sub slices { my (undef, $list) = api('GET', '/apis/resource.k8s.io/v1/resourceslices'); my @all = sort { $a->{metadata}{name} cmp $b->{metadata}{name} } @{ $list->{items} }; return @all }

# Returns the devices of all slices by name.
sub slice_devices { return { map { $_->{name} => $_ } map { @{ $_->{spec}{devices} // [] } } slices() } }

sub cdi_of { my ($ref) = @_; my $text = slurp_existing("$ENV{NODE_TMP}/cdi/" . DRIVER . "-claim_$ref->{uid}.json") // return; return $json->decode($text) }

# Returns the objects in the metadata file of a request.
sub metadata_of {
        my ($ref, $request) = @_;
        my $text = slurp_existing(directory() . '/plugins/' . DRIVER . "/dra-device-metadata/$ref->{uid}/$request/metadata.json") // return;
        return map { $json->decode($_) } split /\n/, $text;
}

# Returns the UIDs of claims that have files of any kind.
sub claim_files {
        my %uids = map { /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/ ? ($1 => 1) : () } map { -d ? files_below($_) : () } directory() . '/plugins/' . DRIVER, "$ENV{NODE_TMP}/cdi";
        return sort keys %uids;
}

sub dra_log { return slurp_existing("$ENV{NODE_TMP}/dra.log") // '' }

# Starts passthrough-dra and waits for its sockets. Returns the process. CLOCK_RATE speeds up its clocks; libasan must be first if the program uses
# it.
sub dra_start {
        unlink directory() . '/plugins_registry/' . DRIVER . '-reg.sock';
        $dra = fork // die "fork: $!";
        if (!$dra) {
                open STDOUT, '>>', "$ENV{NODE_TMP}/dra.log" or die $!;
                open STDERR, '>&', \*STDOUT                 or die $!;
                $ENV{LD_PRELOAD} = join ':', `ldd $ENV{BUILD}/passthrough-dra` =~ m{libasan.* => (/\S+)}, "$ENV{BUILD}/tests/clock.so" if $ENV{CLOCK_RATE};
                exec split(' ', $ENV{DRA_UNDER} // ''), "$ENV{BUILD}/passthrough-dra", "--config=$ENV{NODE_TMP}/dra.conf", '--debug' or die $!;
        }
        wait_until(sub { -S directory() . '/plugins_registry/' . DRIVER . '-reg.sock' }) or die 'passthrough-dra does not start: ' . dra_log();
        return $dra;
}

sub dra_stop {
        my ($signal) = @_;
        return if !$dra;
        kill $signal // 'TERM', $dra;
        waitpid $dra, 0;
        $dra = undef;
        return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

END { local $?; dra_stop('KILL'); stop_kubelet(); kube_stop_api() }

1;
