#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A card with two functions comes to a guest and leaves it as one. Cards whose slots have similar names are not confused.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('domains', configure => 1);
configure("[Daemon]\nSparePorts=3\n" . slurp("$FindBin::Bin/../nodes/domains.conf") =~ s/\[Pool gaming\]/[Pool gpu0-gaming]/r);

my $bus = Bus->new->listen;

sub devices_of { return map { "$_->{slot} $_->{phase}" } grep { $_->{slot} } @{ allocation($bus, 'vm')->{devices} } }
sub attach { return hotplug($bus, 'Attach', 'vm', request(@_)) }
sub detach { return hotplug($bus, 'Detach', 'vm', 's', @_) }

# The functions of the card that the domain has.
sub functions {
        my ($which) = @_;
        my @functions = slurp("$ENV{BUILD}/domain/$which") =~ m{<source>\s*<address domain="0x0000" bus="0x81" slot="0x00" function="0x(\d)"/>}g;
        return join ' ', sort @functions;
}

is(allocate($bus, 'vm', nic => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
guest_runs($bus, 'vm');

is(attach('gpu0-gaming' => 1), 'done', 'attach a card');
is_deeply([devices_of()], ['nic0 settled', 'gpu0-gaming0 settled', 'gpu0-gaming0-1 settled'], 'it has two functions');
is(functions($_), '0 1', "which the domain has: $_") for qw(live config);
is(detach('gpu0-gaming0'), 'done', 'detach it');
is_deeply([devices_of()], ['nic0 settled'], 'both are gone');
is(functions($_), '', "from the domain too: $_") for qw(live config);

is(attach('gpu0-gaming' => 1, gpu => 1), 'done', 'two cards');
is(detach('gpu0'), 'done', 'detach one of them');
is_deeply([devices_of()], ['nic0 settled', 'gpu0-gaming0 settled', 'gpu0-gaming0-1 settled'], 'the other one stays whole');
is(functions($_), '0 1', "also in the domain: $_") for qw(live config);

done_testing();
