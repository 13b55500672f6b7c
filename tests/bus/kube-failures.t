#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-dra while something fails: the daemon, the API server, a guest that still runs, a person beside Kubernetes, kill -9, a boot,
# claims that vanish, credentials that are renewed.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use POSIX qw(ENOTEMPTY strerror);
use Test::More;

use Kube;
use Node;

kube_needed();
node('hgx-h100', configure => 1);

my $pools = "[Pool gpu]\nMatch=vendor=10de class=0302\nScheduler=kubernetes\n[Pool own]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=1\n";
configure($pools);
kube_start();
dra_start();
my $bus = Bus->new->listen;

sub error_of { my ($do, $ref) = @_; my $answer = kubelet($do, claims => [$ref]); return $answer->{claims}{ $ref->{uid} }{error} // $answer->{code} // 'no answer' }
sub ledger { return join ' ', sort map { $_->{name} } @{ describe($bus)->{allocations} } }

# ---- What cannot be prepared

my $one = claim('one', gpu => '0000:13:00.0');
is(allocate($bus, 'human', gpu => 1, at => [['gpu', '0000:13:00.0']], consumer => uid_of(99)), 'done', 'a person has the GPU');
like(error_of(prepare => $one), names('0000:13:00.0', 'human'), 'the kubelet gets the sentence of the daemon');
release($bus, 'human');
prepared_ok($one, 'released, the next try prepares it');
like(error_of(prepare => { %$one, uid => uid_of(98) }), qr/another claim/, 'a claim of another UID');
like(error_of(prepare => { %$one, name => 'none', uid => uid_of(97) }), qr/not found/, 'a claim that the API server does not have');
my $foreign = claim('foreign', gpu => '0000:14:00.1');
like(error_of(prepare => $foreign), names('pci-0000-14-00-1', 'Kubernetes'), 'a device of a pool that Kubernetes does not have');
is(kubelet('prepare', claims => [{ namespace => '../x', uid => uid_of(96), name => 'x' }])->{code}, 'INVALID_ARGUMENT', 'names that are no names');
my $two = claim('two', gpu => '0000:23:00.0');
my $both = prepare($two, $foreign);
is_deeply([map { $both->{claims}{ $_->{uid} }{error} ? 'error' : 'done' } $two, $foreign], ['done', 'error'], 'of two claims in a call, each has its answer');
is(ledger(), "claim-$one->{uid} claim-$two->{uid}", 'the ledger has what was prepared');
unprepared_ok($two, 'unprepared');

# ---- The daemon is away

daemon('stop', 'KILL');
like(error_of(prepare => $two), names('passthroughd'), 'without the daemon a claim is not prepared');
like(error_of(unprepare => $one), names('passthroughd'), '... nor unprepared');
daemon('start');
$bus = Bus->new->listen;
ok(wait_until(sub { error_of(prepare => $two) eq '' }), 'when it is back the kubelet\'s next try is');
is(error_of(prepare => $one), '', 'and a prepared claim is still prepared');
unprepared_ok($two, 'unprepared');

# ---- A guest runs

my ($group) = map { $_->{iommu_group} } grep { $_->{address} eq '0000:13:00.0' } @{ describe($bus)->{devices} };
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
like(error_of(unprepare => $one), qr/claim-|in use|uses|open/, 'a claim is not released under a guest');
is(ledger(), "claim-$one->{uid}", '... and stays in the ledger');
ok(cdi_of($one), '... with its files');
fault('remove proc/4242');
unprepared_ok($one, 'when the guest has ended it is');

# ---- Metadata that cannot be removed

my $directory = "$ENV{NODE_TMP}/kubelet/plugins/" . DRIVER . "/dra-device-metadata/$one->{uid}";
prepared_ok($one, 'prepared');
mkdir "$directory/gpu/other" or die "$directory/gpu/other: $!";
like(error_of(unprepare => $one), qr/\Q@{[strerror(ENOTEMPTY)]}\E/, 'another file beside the metadata: the claim is not unprepared');
is_deeply([claim_files()], [$one->{uid}], '... and keeps its record');
rmdir "$directory/gpu/other" or die "$directory/gpu/other: $!";
spew("$directory/gpu/.metadata.json.tmp", '{');
unprepared_ok($one, 'the next try removes the metadata, and the temporary file that a crash left');
ok(!-e $directory, '... so nothing of it is left');

# ---- A write of the ledger that fails

my $in_the_way = "$ENV{STATE_DIRECTORY}/allocations/blocked.json";
mkdir $in_the_way or die "$in_the_way: $!";
is((allocate($bus, 'blocked', gpu => 1, at => [['gpu', '0000:13:00.0']], consumer => uid_of(99)))[0], 'org.passthroughd1.Error.ReadOnly', 'an allocation cannot be written');
unprepared_ok($one, '... but no allocation is missing: a claim without one is unprepared');
rmdir $in_the_way or die "$in_the_way: $!";

# ---- A job that fails: its devices are not lost

my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/0000:33:00.0") =~ s{^(?:\.\./)+}{sys/}r;
my $three = claim('three', gpu => '0000:33:00.0');
fault('fail ' . (writes() + 1) . ' EIO');
my $error = error_of(prepare => $three);
isnt($error, '', 'a write to sysfs fails: so does the claim') or diag($error);
fault('reset');
ok(wait_until(sub { error_of(prepare => $three) eq '' }), '... and a later try prepares it');
unprepared_ok($three, 'unprepared');

# ---- kill -9 at each point

for my $delay (0, 1, 3, 8, 20, 50, 100, 200) {
        my $ref = claim("kill-$delay", gpu => '0000:43:00.0');
        for my $do (qw(prepare unprepare)) {
                my $pid = fork // die "fork: $!";
                if (!$pid) { select undef, undef, undef, $delay / 1000; dra_stop('KILL'); require POSIX; POSIX::_exit(0) }
                kubelet($do, claims => [$ref], timeout => 1);
                waitpid $pid, 0;
                dra_stop('KILL');
                dra_start();
                is(error_of($do => $ref), '', "killed after $delay ms of $do: again") or diag(dra_log());
                is_deeply([ledger(), claim_files()], $do eq 'prepare' ? ["claim-$ref->{uid}", $ref->{uid}] : [''], '... the ledger and the files agree');
        }
}

# ---- The daemon is killed below it

my $four = claim('four', gpu => '0000:43:00.0');
for my $delay (1, 10, 40) {
        my $pid = fork // die "fork: $!";
        if (!$pid) { select undef, undef, undef, $delay / 1000; restart('KILL'); require POSIX; POSIX::_exit(0) }
        error_of(prepare => $four);
        waitpid $pid, 0;
        ok(wait_until(sub { error_of(prepare => $four) eq '' }), "the daemon killed after $delay ms: prepared in the end");
        ok(wait_until(sub { error_of(unprepare => $four) eq '' }), '... and unprepared');
}
$bus = Bus->new->listen;
is(ledger(), '', 'nothing is left');

# ---- A release that ends while the daemon computes an answer that still has it

prepared_ok($four, 'prepared');
fault('reset', 'hang 1');
my $unprepare = fork // die "fork: $!";
if (!$unprepare) { POSIX::_exit(error_of(unprepare => $four) ne '') }
my $answer;
# Processes of the daemon that compute an answer.
sub answering { return grep { (eval { slurp("/proc/$_/comm") } // '') eq "passthrough-txt\n" } split ' ', slurp(sprintf '/proc/%d/task/%1$d/children', pid()) }

# passthrough-dra does not look at an answer that it asked for before the reply of Release.
ok(wait_until(sub { (grep { /^1 .*PENDING/ } write_log()) && !answering() }), 'a release waits for the kernel, and no answer is older');
# After each change passthrough-dra asks for the document, which a process computes within milliseconds.
for (my $end = time + 30; !$answer && time < $end;) {
        if (allocation_state($bus, 'other') eq 'gone') { allocate($bus, 'other', cpus => 1, memory => 1 << 30) }
        else                                           { release($bus, 'other') }
        for (my $next = time + 2; !$answer && time < $next;) {
                my ($child) = answering();
                $answer = $child if defined $child && kill 'STOP', $child;
        }
}
ok($answer, '... and a process computes an answer');
fault('release');
ok(wait_until(sub { allocation_state($bus, "claim-$four->{uid}") eq 'gone' }), '... which comes when the release has ended');
sleep 2; # passthrough-dra collects changes for half a second, and nothing shows when it has
kill 'CONT', $answer // ();
my $begin = time;
waitpid $unprepare, 0;
is($?, 0, 'the claim is unprepared');
cmp_ok(time - $begin, '<', 30, '... before the time is up');
release($bus, 'other') if allocation_state($bus, 'other') ne 'gone';

# ---- A boot

prepared_ok($four, 'prepared');
my $before = cdi_of($four);
my $id = allocation($bus, "claim-$four->{uid}")->{id};
dra_stop('KILL');
daemon('stop', 'KILL');
system('rm', '-rf', "$ENV{NODE_TMP}/cdi") == 0 or die 'rm';
other_hand_binds('0000:43:00.0', '');
isnt(driver_of('0000:43:00.0'), 'vfio-pci', 'after a boot the host has the device');
dra_start();
isnt(error_of(prepare => $four), '', '... and the kubelet asks for the claim before the daemon runs');
daemon('start');
$bus = Bus->new->listen;
ok(wait_until(sub { cdi_of($four) }), '... then the CDI document is written again, without a call of the kubelet');
is_deeply(cdi_of($four), $before, '... as it was');
is(driver_of('0000:43:00.0'), 'vfio-pci', '... and the device is bound');
is(error_of(prepare => $four), '', '... and the next try of the kubelet finds it');
is(allocation($bus, "claim-$four->{uid}")->{id}, $id, '... with the same allocation');
my $record = "$ENV{NODE_TMP}/kubelet/plugins/" . DRIVER . "/claims/$four->{uid}.json";
my $kept   = slurp($record);
spew($record, '{');
dra_stop('KILL');
dra_start();
ok(wait_until(sub { dra_log() =~ /Cannot read \Q$record\E: .* Remove it/ }), 'a record that cannot be read is named');
spew($record, $kept);

# ---- What is no word of the API server about a claim: the page of a proxy

for my $status (404, 200) {
        control(faults => { page => $status }, log => []);
        dra_stop('KILL');
        dra_start();
        ok(wait_until(sub { grep { $_->{path} =~ m{/resourceclaims/four$} } @{ control()->{log} } }), "a page with $status: the claim is asked for");
        isnt(error_of(prepare => $four), '', '... which is no answer');
        is(ledger(), "claim-$four->{uid}", '... and the claim keeps its devices');
}
control(faults => {});
is(error_of(prepare => $four), '', 'the API server answers again');

# ---- The daemon cannot read the allocation

my $file = ledger_file("claim-$four->{uid}");
my $text = slurp($file);
daemon('stop');
spew($file, substr $text, 0, 40);
daemon('start');
dra_stop('KILL');
dra_start();
isnt(error_of(unprepare => $four), '', 'a damaged ledger: the claim is not unprepared');
ok(cdi_of($four), '... and keeps its files');
daemon('stop');
spew($file, $text);
daemon('start');
$bus = Bus->new->listen;
ok(wait_until(sub { error_of(prepare => $four) eq '' }), 'repaired, the claim is prepared');

# ---- The claim is allocated anew, with another device

sub allocate_anew {
        my (@addresses) = @_;
        my @results = map { { request => 'gpu', driver => DRIVER, pool => NODE, device => device_named($_) } } @addresses;
        return api('PUT', '/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/four', { metadata => $four, status => @results ? { allocation => { devices => { results => \@results } } } : {} });
}
allocate_anew('0000:93:00.0');
isnt(error_of(prepare => $four), '', 'another device: the former one is released first');
ok(wait_until(sub { error_of(prepare => $four) eq '' }), '... and a later try prepares the other');
is((allocation($bus, "claim-$four->{uid}")->{devices}[0] // {})->{address}, '0000:93:00.0', '... which the claim has now');
dra_stop('KILL');
allocate_anew();
dra_start();
ok(wait_until(sub { ledger() eq '' }), 'a claim without devices: they are released');
allocate_anew('0000:43:00.0');
prepared_ok($four, 'prepared');

# ---- Claims that vanished while it was down

control(faults => { missing => 403 });
dra_stop('KILL');
delete_claim($four);
dra_start();
ok(wait_until(sub { dra_log() =~ /claim default\/four has gone|default\/four has gone/ }), 'a claim that may not be read: the journal says so');
is(ledger(), "claim-$four->{uid}", '... and it stays');
control(faults => {});
dra_stop('KILL');
dra_start();
ok(wait_until(sub { ledger() eq '' }), 'a claim that has gone is released');
ok(wait_until(sub { !claim_files() }), '... and its files are removed');

# ---- The token is renewed, and the API server does not know taints

dra_stop();
spew("$ENV{NODE_TMP}/token", "wrong\n");
spew("$ENV{NODE_TMP}/kubeconfig", slurp("$ENV{NODE_TMP}/kubeconfig") =~ s/token: node/tokenFile: token/r);
control(drop => ['taints']);
dra_start();
my $five = claim('five', gpu => '0000:43:00.0');
like(error_of(prepare => $five), qr/Unauthorized/, 'a token that has expired');
spew("$ENV{NODE_TMP}/token", "node\n");
prepared_ok($five, 'a new token in the file is used');
sub n_puts { return scalar grep { $_->{method} eq 'PUT' } @{ control()->{log} } }
is(allocate($bus, 'human', gpu => 1, at => [['gpu', '0000:13:00.0']], consumer => uid_of(99)), 'done', 'a taint that the API server leaves out');
sub sent { return grep { $_->{method} eq 'PUT' && $_->{taints} } @{ control()->{log} } }
ok(wait_until(\&sent), '... is sent');
my $writes = n_puts();
# An answer to the kubelet needs a further document of the node, of which the slices are made again.
is(error_of(prepare => $five), '', '... and with a further document of the node');
is(error_of(prepare => $five), '', '... and one more');
is(n_puts(), $writes, '... not again');


# All is read again when the kubelet starts, and sent once more; the next full comparison finds what the API server keeps.
sub n_lists { return scalar grep { $_->{method} eq 'GET' && $_->{path} =~ /resourceslices/ } @{ control()->{log} } }
kubelet('status');
ok(wait_until(sub { n_puts() > $writes }), 'after a start of the kubelet, it is sent again');
$writes = n_puts();
my $lists = n_lists();
ok(wait_until(sub { n_lists() > $lists }), 'a further full comparison');
is(error_of(prepare => $five), '', '...');
is(n_puts(), $writes, '... writes nothing');
is(scalar(() = dra_log() =~ /leaves 'taints' out/g), 1, 'the journal says once what is left out');
is(dra_stop(), 0, 'it ends');

# ---- Kubeconfigs with several clusters

my $several = slurp("$ENV{NODE_TMP}/kubeconfig") =~ s/clusters:\n/clusters:\n- name: other\n  cluster: {server: "http:\/\/127.0.0.1:1\/"}\n/r =~ s/users:\n/users:\n- name: other\n  user: {token: other}\n/r
        =~ s/contexts:\n/contexts:\n- name: other\n  context: {cluster: other, user: other}\n/r;
spew("$ENV{NODE_TMP}/kubeconfig", $several);
dra_start();
is(error_of(prepare => $five), '', 'the cluster and the user of the current context');
dra_stop();
for my $case (['current-context: test', 'current-context: none', 'current-context', 'none', 'contexts'], ['current-context: test', '', 'current-context'], ['cluster: test', 'cluster: gone', 'gone', 'clusters'],
        ['user: node', 'user: nobody', 'nobody', 'users'], ['http://127.0.0.1:6443/', '', 'test', 'server']) {
        my ($from, $to, @names) = @$case;
        spew("$ENV{NODE_TMP}/kubeconfig", $several =~ s/\Q$from\E/$to/r);
        my $said = qx(timeout 20 $ENV{BUILD}/passthrough-dra --config=$ENV{NODE_TMP}/dra.conf 2>&1);
        is($? >> 8, 1, "'$to' instead of '$from'");
        like($said, names("$ENV{NODE_TMP}/kubeconfig", @names), '... is named');
}
done_testing();
