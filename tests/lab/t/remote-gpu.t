#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Two guests are told of a server of remote GPUs with two slots, and reach it by what they were told alone, both at once. A third is refused until
# one of them has returned its slot.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IO::Select;
use IO::Socket::INET;
use JSON::XS qw(decode_json);
use Test::More;

use Guest;
use Lab;

use constant { CONFIG => '/etc/passthroughd/passthroughd.conf.d/remote-gpu.conf', CONNECTED => 120 };

my @guests = qw(vm1 vm2);
my @third  = qw(allocate vm3 remote-gpu=1 --json);
END {
        my $status = $?;
        for (@guests) { command(qw(virsh destroy), $_) }
        unlink CONFIG;
        ctl('reload');
        $? = $status;
}

# Waits until as many clients are connected as there are guests. The first line of each to its connection.
sub connected {
        my ($server) = @_;
        my ($select, %client) = (IO::Select->new($server));
        wait_until(sub {
                for my $ready ($select->can_read(0)) {
                        if   ($ready == $server) { $select->add($server->accept) }
                        else                     { chomp(my $word = <$ready> // ''); $client{$word} = $ready; $select->remove($ready) }
                }
                return keys %client == @guests;
        }, CONNECTED);
        return \%client;
}

# Waits for what a connection has next; '' is its end.
sub end_of { my ($client) = @_; return wait_until(sub { IO::Select->new($client)->can_read(0) }) ? scalar <$client> // '' : undef }

# ---- a server on this host

ok(settled(), 'the node is settled');
my $before = drivers();
my ($host) = output(qw(ip -4 -oneline address show scope global)) =~ /\binet ([\d.]+)/;
my $server = IO::Socket::INET->new(Listen => 5, LocalAddr => $host) or die "listen: $!\n";
my $here   = "$host:" . $server->sockport;
spew(CONFIG, "[Service remote-gpu]\nKind=lupine\nVia=nic-vf\nEndpoint=$here slots=2\n");
is((ctl('reload'))[0], 0, 'a server with two slots is configured');

# ---- what the guests are told

my ($status, $out, $err, %domain);
for my $name (@guests) {
        ($status, $out, $err) = ctl('allocate', $name, qw(remote-gpu=1 --cpus 1 --memory 256M --page-size 2M));
        is($status, 0, "allocate $name") or die $err;
        $domain{$name} = domain($name, 1, Guest::NETWORK);
}
for my $name (@guests) {
        ($status, $err) = start_guest($name, $domain{$name});
        is($status, 0, "virsh start $name") or diag($err);
}
for my $name (@guests) {
        is(scalar(my @devices = guest_functions($name)), 1, "$name sees the VF by which the service goes");
        my ($told) = guest_told($name);
        is_deeply($told, daemon_tells($domain{$name}), '... and what it reads is to the byte what the daemon has');
        is_deeply(qemu_told($name), $told, '... and what QEMU was given');
        is_deeply([sort keys %$told], [qw(devices.json nccl-topology.xml services.env)], '... in three files');
        is($told->{'services.env'}, "LUPINE_SERVER=$here\n", '... one of which says where the server is');
        my $paths = guest_paths($name);
        is_deeply([map { !!$paths->{ $_->{seen_address} } } @{ decode_json($told->{'devices.json'})->{devices} }], [1], '... and one has the address at which it sees the VF');
}

# ---- both reach the server

my @consoles = map { guest_hears($_, "reach $_") } @guests;
my $client   = connected($server);
is_deeply([sort keys %$client], \@guests, 'both are connected');
for my $name (grep { $client->{$_} } @guests) {
        print { $client->{$name} } "served $name\n";
        ok(guest_says($name, "served $name"), "$name hears the server, while the other is connected");
}

# ---- there is no third slot

($status, $out, $err) = ctl(@third);
is($status, 1, 'a third is refused');
my $refusal = decode_json($out);
is($refusal->{verdict}, 'insufficient-slots', '... for want of a slot');
like($refusal->{message}, names('remote-gpu', $here, @guests), '... and told who has them');
end_guest('vm1');
is($client->{vm1} && end_of($client->{vm1}), '', 'vm1 ends, and its connection with it');
ok(wait_until(sub { ctl_json('show', 'vm1')->{state} eq 'ready' }), 'the daemon knows');
($status, $out) = ctl(@third);
is(decode_json($out)->{verdict}, 'insufficient-slots', '... and keeps its slot for it');
is((ctl('release', 'vm1'))[0], 0, 'vm1 is released');
is((ctl(@third))[0], 0, '... and the third gets its slot');
is_deeply(ctl_json('show', 'vm3')->{services}, [{ pool => 'remote-gpu', kind => 'lupine', endpoint => $here, slots => 1 }], '... of that server');
print { $client->{vm2} } "still served\n" if $client->{vm2};
ok(guest_says('vm2', 'still served'), 'vm2 is served all the while');

# ---- the end

end_guest('vm2');
ok(wait_until(sub { ctl_json('show', 'vm2')->{state} eq 'ready' }), 'vm2 is gone');
is((ctl('release', $_))[0], 0, "$_ is released") for qw(vm2 vm3);
ok(settled(), 'the node is settled');
is_deeply(drivers(), $before, '... and as it was');

done_testing();
