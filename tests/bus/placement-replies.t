#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthrough-placement and replies that Placement does not send: it fails with a sentence, and the next comparison succeeds. A name that another
# tree has costs one provider.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Socket::UNIX;
use Socket qw(MSG_DONTWAIT SOCK_DGRAM);
use Test::More;

use Node;
use Placement;
use PlacementProxy;

placement_needed();
node('paper-testbed');

my $bus = Bus->new->listen;
placement_start();

# The exit status and the messages of a comparison in which requests of this kind have this reply.
sub replied {
        my ($request, @reply) = @_;
        my ($status, $messages) = compare_through(sub {
                my ($method, $path, undef, undef, $reply) = @_;
                return !$reply && "$method $path" =~ $request ? \@reply : undef;
        });
        return ($status, $messages);
}

sub fails {
        my ($name, $want, @arguments) = @_;
        my ($status, $messages) = replied(@arguments);
        is($status, 1, "$name: the comparison fails");
        return like($messages, $want, "$name: and says why");
}

agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=n1');
my $read = qr{^GET /resource_providers\?name=};
fails('a long uuid', names('/resource_providers'), $read, 200, '', '{"resource_providers":[{"uuid":"' . 'x' x 99 . '"}]}');
fails('an error', qr/ 500/, $read, 500, '', '{}');

# Placement never replies so, but another server at a wrong Url= does.
my ($page, $location) = ('<!DOCTYPE html><html></html>', 'Location: ' . URL . "/\r\n");
my @requests = ($read, qr{^GET /resource_classes}, qr{^GET /traits}, qr{^GET /resource_providers\?in_tree}, qr{^PUT /(?:traits|resource_classes)});

sub names_address {
        my ($request, @reply) = @_;
        my ($exit, $messages) = replied($request, @reply);
        my $name = "status $reply[0] with '$reply[2]' to $request";
        is($exit, 1, "$name: the comparison fails");
        like($messages, names(PROXY, $reply[0], 'Url=', '[Placement]'), '... a sentence says what to correct');
        is(scalar(() = $messages =~ /\bUrl=.*?\[Placement\]/g), 1, '... once') or diag($messages);
        return;
}
for my $request (@requests) {
        names_address($request, @$_) for [404, '', $page], [409, '', $page], [405, '', '{}'], [302, $location, ''], [200, '', $page];
}
names_address($read, $_, $location, $page) for 300, 301, 303, 307, 308;
names_address($read, $_, '',        $page) for 400, 403, 406, 410, 418;
names_address($read, 204, '', '');
names_address($read, 200, '', $_) for '', '{}', '[]', 'null', '{"versions":[]}', '{"resource_providers":1}', '{"resource_providers":{}}', '{"resource_providers":null}', '{"resource_providers":[]}x';
names_address(qr{^GET /resource_providers/[^/]+/$_}, 200, '', $page) for qw(traits inventories);
names_address(qr{^GET /resource_providers/[^/]+/inventories}, 409, '', '{}');

# Placement replies so, or a proxy before it does.
for my $reply ([401, $page], [403, '{"errors":[]}'], [406, '{"errors":[]}'], [429, $page], [500, '{}'], [502, $page], [503, $page], [504, '']) {
        my ($exit, $messages) = replied($read, $reply->[0], '', $reply->[1]);
        is($exit, 1, "status $reply->[0]: the comparison fails");
        like($messages, names($reply->[0]), '... and says why');
        unlike($messages, qr/Url=/, '... but not by a wrong address');
}
fails('a provider that was removed', names('n1'), qr{^GET /resource_providers/[^/]+/traits}, 404, '', '{}');

# The service tells the same in its status.
unlink "$ENV{NODE_TMP}/notify";
my $notify = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$ENV{NODE_TMP}/notify") or die $!;
for my $reply ([302, $location, ''], [200, '', $page], [404, '', $page]) {
        agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=n1');
        my $proxy = serve(sub { return $reply });
        local $ENV{NOTIFY_SOCKET} = "$ENV{NODE_TMP}/notify";
        my ($pid, $told) = (agent_start(), '');
        ok(wait_until(sub { defined $notify->recv($told, 4096, MSG_DONTWAIT) && $told =~ /^STATUS=/m }), 'the agent tells its status');
        like($told, names('Url='), 'the status says what to correct');
        is(agent_stop($pid), 'signal 15', 'the agent goes on trying');
        kill 'KILL', $proxy;
        waitpid $proxy, 0;
}
agent_conf('[Placement]', "Url=@{[URL]}/wrong", 'Token=admin', 'Host=n1');
is((agent('--claim=69b83cfb-7825-434d-9fba-2abf2ccb153d'))[0], 1, 'a claim at a wrong address');
like(slurp("$ENV{NODE_TMP}/agent.err"), names('404', 'Url='), '... is not found, and why');
agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=n1');

fails('a long reply', qr/too long/, $read, 200, '', '[' . '1,' x (9 << 20) . '1]');
# Short of the limit of bytes, but not of memory; it is memory that bounds the agent. None of these is read to its end.
for my $value ('{}', '[]', '{"a":[{}]}', '[[]]') {
        my $n = (15 << 20) / (1 + length $value);
        fails("a reply of $value", qr/too long/, $read, 200, '', '{"resource_providers":[' . join(',', ($value) x $n) . ']}');
}
fails('a long refusal', qr/too long/, $read, 500, '', '{"errors":[' . join(',', ('{}') x (5 << 20)) . ']}');

fails('a list in place of an object', qr{/resource_classes}, qr{^GET /resource_classes}, 200, '', '[]');
fails('text behind the object', qr{/resource_classes}, qr{^GET /resource_classes}, 200, '', '{"resource_classes":[]} {}');
fails('a key twice', qr{/resource_classes}, qr{^GET /resource_classes}, 200, '', '{"resource_classes":[],"resource_classes":[]}');

is((agent('--once'))[0], 1, 'without the proxy nothing is reached');
agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n1');
is((agent('--once'))[0], 0, 'a comparison');
is(allocate($bus, 'vm1', gpu => 1, cpus => 2, memory => 1 << 30), 'done', 'an allocation');
my $id = allocation($bus, 'vm1')->{id};

# A refusal whose reason cannot be read
agent_conf('[Placement]', 'Url=' . PROXY, 'Token=admin', 'Host=n1');
for my $document ('', '[]', '{"errors":1}', '{"errors":[]}', '{"errors":[1]}') {
        my ($status, $messages) = replied(qr{^PUT /allocations}, 409, '', $document);
        is($status, 0, "a claim is refused: $document");
        like($messages, names($id), 'which is logged');
}
fails('a redirected claim', qr/ 302/, qr{^PUT /allocations}, 302, '', '');

# ---- Another tree has a provider of the name of a GPU

agent_conf('[Placement]', 'Url=' . URL, 'Token=admin', 'Host=n2');
my $gpu = 'n2_0000:82:00.0';
placement('POST', '/resource_providers', { name => $gpu });
my ($status, undef, $messages) = agent('--once');
is($status, 0, 'the comparison succeeds') or diag($messages);
is(scalar(() = $messages =~ /'\Q$gpu\E'/g), 1, 'and tells of the name once') or diag($messages);
my $now = placement_tree();
is_deeply([grep { /^n2/ } sort keys %$now], [qw(n2 n2_0000:82:00.0 n2_0000:83:00.0 n2_NUMA0 n2_NUMA1)], 'Placement has the other providers');
is_deeply($now->{$gpu}{resources}, {}, 'that of the other tree is left alone');
is_deeply(placement_claims($id), { n2_NUMA1 => { PCPU => 2, MEMORY_MB => 1024 } }, 'the claim has what is reported');
placement('DELETE', "/resource_providers/$now->{$gpu}{uuid}");
is((agent('--once'))[0], 0, 'when the name is free again, a comparison');
ok(placement_claims($id)->{$gpu}, 'adds the GPU to the claim');

# ---- Placement keeps the consumer of a claim that it refuses

is(allocate($bus, 'vm2', 'ib-vf' => 1), 'done', 'another allocation');
$id = allocation($bus, 'vm2')->{id};
is((placement('PUT', "/allocations/$id", { allocations => { $id => { resources => { PCPU => 1 } } }, project_id => 'p', user_id => 'u', consumer_generation => undef, consumer_type => 'PASSTHROUGHD' }))[0],
        400, 'a claim on a provider that was removed');
is((agent('--once'))[0], 0, 'a comparison');
ok(placement_claims($id), 'makes the claim');
is_deeply([agent('--dry-run')], [0, '', ''], 'nothing is left to change');

done_testing();
