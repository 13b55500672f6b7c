#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A card with two functions comes to a guest and leaves it as one. Cards whose slots have similar names are not confused.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Hypervisor;
use Node;

node_with_guests('domains', configure => 1);
configure("[Daemon]\nSparePorts=3\n" . slurp("$FindBin::Bin/../nodes/domains.conf") =~ s/\[Pool gaming\]/[Pool gpu0-gaming]/r);

my $bus    = Bus->new->listen;
my $domain = "$ENV{BUILD}/domain";

sub vm         { return allocation($bus, 'vm') }
sub devices_of { return map { "$_->{slot} $_->{phase}" } grep { $_->{slot} } @{ vm()->{devices} } }

sub attach {
        my ($signature, $entries) = request(@_);
        return $bus->result($bus->call('Attach', "st$signature", 'vm', vm()->{generation}, $entries)->{body}[0]);
}
sub detach { my ($slot) = @_; return $bus->result($bus->call('Detach', 'sts', 'vm', vm()->{generation}, $slot)->{body}[0]) }

# The functions of the card that the domain has.
sub functions {
        my ($which) = @_;
        my @functions = slurp("$domain/$which") =~ m{<source>\s*<address domain="0x0000" bus="0x81" slot="0x00" function="0x(\d)"/>}g;
        return join ' ', sort @functions;
}

is(allocate($bus, 'vm', nic => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
my $xml = (ctl('xml', 'vm'))[1];
hypervisor($domain, live => $xml, config => $xml);
libvirt_reports($bus, running_domain('vm', vm()->{id}, map { $_->{address} } @{ vm()->{devices} }));

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
