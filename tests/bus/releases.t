#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The state directories of earlier releases (tests/state): the same allocations, devices and tags, whatever the version of json-c, and what is
# written of them is ASCII.
use strict;
use warnings;
use utf8;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Node;

node('paper-testbed', configure => 1, root => 1);

binmode $_, ':encoding(UTF-8)' for Test::More->builder->output, Test::More->builder->failure_output;

my $json  = JSON::XS->new->utf8;
my $shm   = "$ENV{NODE_ROOT}/dev/shm";
my $state = $ENV{STATE_DIRECTORY};
my $bus   = Bus->new->listen;
fault('set dev/shm/.nodesim x');
system('mount', '-t', 'tmpfs', '-o', 'size=64m', 'shm', $shm) == 0 or plan skip_all => 'a tmpfs cannot be mounted on the simulated node';
END { local $?; system('umount', $shm) if $shm }
configure(slurp("$FindBin::Bin/../nodes/paper-testbed.conf") =~ s/^\[Daemon\]$/[Daemon]\nSharedMemoryGroup=root/mr);

# The files of a directory, parsed.
sub files { my ($directory) = @_; return map { $json->decode(slurp($_)) } sort glob "$directory/*.json" }

# What an allocation has, of its file and of Describe.
sub facts {
        my ($a) = @_;
        my %facts = map { $_ => $a->{$_} } qw(name id generation owner tag cpus state);
        $facts{devices} = [sort map { join ' ', $_->{address}, $_->{slot}, $_->{pool} } @{ $a->{devices} }];
        $facts{regions} = [map { "$_->{name} $_->{size}" } @{ $a->{shared_memory} // [] }];
        return \%facts;
}
sub by_name { my %all = map { $_->{name} => facts($_) } @_; return \%all }

for my $release (map { s{.*/}{}r } sort glob "$FindBin::Bin/../state/[0-9]*") {
        my $old = "$FindBin::Bin/../state/$release";
        is(daemon('stop', 'TERM'), 0, "$release: the daemon stops");
        system('rm', '-rf', map { "$state/$_" } qw(allocations quarantine generation released)) == 0 or die 'rm';
        system('cp', '-r', "$old/.", "$state/") == 0 or die 'cp';
        chmod 0700, $state, grep { -d } glob "$state/*";
        is(daemon('start'), 0, '... and starts with a state directory of that release');
        $bus->forget_signals();
        is($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, '', '... which it can use');

        my $expected = by_name(files("$old/allocations"));
        my $now      = sub { return by_name(@{ describe($bus)->{allocations} }) };
        ok(wait_until(sub { my $all = $now->(); return !grep { !$all->{$_} || $all->{$_}{state} ne $expected->{$_}{state} } keys %$expected }), '... the devices are prepared');
        is_deeply($now->(), $expected, '... it has the same allocations, devices and tags');
        is_deeply([sort map { $_->{address} } @{ describe($bus)->{quarantine} }], [sort map { $_->{devices}[0]{address} } files("$old/quarantine")], '... and devices in quarantine');
        my ($token) = grep { $_ } map { $_->{token} } files("$old/allocations");
        if ($token) {
                utf8::encode($token);
                is_deeply($bus->call('Allocate', 'sa{sv}', 'md-worker-0', (request(gpu => 1, token => $token))[1])->{body}[1], '/', '... the token is that of the allocation');
        }

        restart();
        is_deeply($now->(), $expected, '... all is the same after a restart');
        is_deeply([grep { slurp($_) =~ /[^ -~\n]/ } glob "$state/allocations/md-worker-*.json"], [], '... files written anew are ASCII');
        is(release($bus, $_), 'done', "... $_ is released") for sort keys %$expected;
        is((ctl('quarantine', '--clear', $_->{address}))[0], 0, "... $_->{address} leaves quarantine") for @{ describe($bus)->{quarantine} };
        is(slurp("$ENV{NODE_ROOT}/sys/bus/pci/devices/0000:83:00.2/driver_override"), do { my $text = "Prüfstand\n"; utf8::encode($text); $text }, '... the override of before is there again');
}

# ---- today's

my $tag = 'Jürgen 東京 😀';
utf8::encode(my $bytes = $tag);
is((ctl('allocate', 'guest', 'gpu=1', 'ib-vf=1', '--tag', $bytes))[0], 0, 'a tag with letters beyond ASCII');
like(slurp("$state/allocations/guest.json"), qr/"tag": "J\\u00fcrgen \\u6771\\u4eac \\ud83d\\ude00"/, 'is in the file as ASCII');
restart();
is($bus->properties(Bus::PATH, Bus::MANAGER)->{ReadOnly}, '', 'the daemon can use it after a restart');
is(allocation($bus, 'guest')->{tag}, $tag, 'the tag is the same');
my ($status, undef, $err) = ctl('release', 'guest');
is($status, 0, 'and the allocation is released') or diag($err);

done_testing();
