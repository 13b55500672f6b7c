#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# An attached device is as close to the devices of the allocation as one that is allocated with them; two attaches never get the same one.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100');

my $bus = Bus->new->listen;

sub post_attach {
        my ($name, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        return $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, 'Attach', "st$signature", $name, allocation($bus, $name)->{generation}, $entries);
}

sub attach {
        my $reply = $bus->reply(post_attach(@_));
        return $reply->{error} ? "$reply->{error} $reply->{body}[0]" : $bus->result($reply->{body}[0]);
}

sub addresses { my ($a) = @_; return sort map { $_->{address} } grep { $_->{role} eq 'assigned' } @{ $a->{devices} } }

# For each GPU: the NIC of a plan for both is the one that is attached to an allocation of the GPU.
for my $gpu (sort keys %{ devices_state($bus, 'gpu') }) {
        my $both = ctl_json('plan', 'gpu=1', 'rdma=1', '--at', "gpu=$gpu", '--cpus', 4, '--memory', '4G');
        is(allocate($bus, 'vm', gpu => 1, at => [['gpu', $gpu]], cpus => 4, memory => 2**32, 'host-nodes' => $both->{numa_nodes}), 'done', "$gpu: an allocation");
        is(attach('vm', rdma => 1), 'done', "$gpu: attach a NIC");
        is_deeply([addresses(allocation($bus, 'vm'))], [addresses($both)], "$gpu: the NIC that a plan for both has");
        is(release($bus, 'vm'), 'done', "$gpu: release");
}

# Exactly one of two gets the last one.
my $free = () = grep { $_ eq 'available' } values %{ devices_state($bus, 'gpu') };
is(allocate($bus, $_, gpu => 1), 'done', "allocation $_") for qw(a b);
is(allocate($bus, 'rest', gpu => $free - 3), 'done', 'all others but one');
my @posted  = map { post_attach($_, gpu => 1) } qw(a b);
my @replies = map { $bus->reply($_) } @posted;
is(scalar(grep { !$_->{error} } @replies), 1, 'two attaches race for the last one: one gets it');
is_error((grep { $_->{error} } @replies)[0], 'Insufficient', ['insufficient-devices', 'gpu'], 'and the other is refused');
is($bus->result((grep { !$_->{error} } @replies)[0]{body}[0]), 'done', 'its job is done');
my @held = map { addresses(allocation($bus, $_)) } qw(a b rest);
is(scalar(keys %{ { map { $_ => 1 } @held } }), $free, 'each device is in one allocation');
is(scalar(@held), $free, 'and only once');

done_testing();
