#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A page of Cockpit speaks D-Bus by cockpit-bridge: its channel "dbus-json3" tells the page all objects, answers each watch, and follows changes.
# cockpit.dbus().proxies() waits for that answer.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use IPC::Open2;
use JSON::XS;
use Test::More;

use Node;

node('../long/machine');
plan skip_all => 'no cockpit-bridge' if !grep { -x "$_/cockpit-bridge" } split /:/, $ENV{PATH};

my $JSON = JSON::XS->new->utf8->canonical;
my $bus  = Bus->new->listen;

# ---- the bridge: each message is its length, and the channel and a document in JSON on lines of their own; the channel "" is for control

$ENV{LC_ALL} = 'C.UTF-8';
my $pid = open2(my $from, my $to, 'cockpit-bridge');

sub tell_bridge {
        my ($channel, $message) = @_;
        my $text = "$channel\n" . $JSON->encode($message);
        print $to length($text), "\n$text" or die "cockpit-bridge: $!";
        return $to->flush;
}

my $page;    # the channel
my %known;   # object => { interface => { property => value } }: what the page knows
my %replied; # id of a watch or call => 1

# Takes one message of the bridge.
sub hear {
        local $/ = "\n";
        my $length = <$from> // die 'cockpit-bridge has ended';
        read($from, my $text, $length) == $length or die 'cockpit-bridge ends in a message';
        my ($channel, $payload) = split /\n/, $text, 2;
        my $message = $JSON->decode($payload);
        return if $channel ne '' && $channel ne $page;
        die "cockpit-bridge says $payload" if $channel eq '' && $message->{command} eq 'close' && $message->{channel} eq $page || $message->{error};
        $replied{ $message->{id} } = 1 if $message->{reply};
        my $told = $message->{notify} // {};
        for my $object (keys %$told) {
                while (my ($interface, $properties) = each %{ $told->{$object} }) {
                        if ($properties) { $known{$object}{$interface} = { %{ $known{$object}{$interface} // {} }, %$properties } }
                        else             { delete $known{$object}{$interface} }
                }
                delete $known{$object} if !grep { !/^org[.]freedesktop/ } keys %{ $known{$object} };
        }
        return;
}

# Takes messages until the function is true, which is asked after each. A test that waits for ever is ended by the alarm.
sub hear_until {
        my ($fact) = @_;
        local $SIG{ALRM} = sub { die "no such message of cockpit-bridge\n" };
        alarm 60;
        my $found = eval { until ($fact->()) { hear() } 1 };
        alarm 0;
        return $found || diag($@) && 0;
}

my $ids = 0;

sub watch {
        my (%what) = @_;
        my $id = 'watch-' . ++$ids;
        tell_bridge($page, { watch => \%what, id => $id });
        return hear_until(sub { $replied{$id} });
}

tell_bridge('', { command => 'init', version => 1, host => 'localhost' });

# Another page, that knows nothing yet.
sub open_page {
        tell_bridge('', { command => 'close', channel => $page }) if $page;
        $page  = 'page-' . ++$ids;
        %known = ();
        return tell_bridge('', { command => 'open', channel => $page, payload => 'dbus-json3', name => Bus::NAME, bus => 'system' });
}

# ---- what is there

# The own interfaces of all objects, and their properties as text.
sub in_words {
        my ($objects) = @_;
        my %words;
        for my $object (grep { $_ ne Bus::PATH } keys %$objects) {
                for my $interface (grep { /^org[.]passthroughd1/ } keys %{ $objects->{$object} }) {
                        my $properties = $objects->{$object}{$interface};
                        $words{"$object $interface"} = { map { $_ => $JSON->encode([$properties->{$_}]) =~ s/"(-?\d+)"/$1/gr } keys %$properties };
                }
        }
        return \%words;
}

sub objects { return scalar keys %{ in_words(\%known) } }

sub managed { return $bus->ask(Bus::NAME, Bus::PATH, 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects')->{body}[0] }

sub knows_all {
        my ($what) = @_;
        my $there;
        hear_until(sub { $there = in_words(managed()); return $JSON->encode(in_words(\%known)) eq $JSON->encode($there) });
        return is_deeply(in_words(\%known), $there, "$what: the page knows what is there");
}

# The manager before the objects below it: cockpit-bridge 287 tells nothing of an object manager itself once it has asked that for its objects.
open_page();
ok(watch(path => Bus::PATH, interface => Bus::MANAGER), 'a watch of the manager is answered');
is($known{ +Bus::PATH }{ +Bus::MANAGER }{Version}, $bus->properties(Bus::PATH, Bus::MANAGER)->{Version}, '... with its properties');
ok(watch(path_namespace => Bus::PATH, interface => "org.passthroughd1.$_"), "proxies() of $_ becomes ready") for qw(Pool Node Device Allocation Job);
knows_all('proxies()');

# A job waits meanwhile: cockpit-bridge 287 keeps an object for ever that goes before it has asked for the members of an interface that is new to it.
fault('reset', 'hang 1');
my $before = objects();
my ($signature, $entries) = request(gpu => 1, cpus => 2, memory => 2**30);
my $reply = $bus->call('Allocate', "s$signature", 'vm', $entries);
is($reply->{error}, undef, 'an allocation is begun') or diag($reply->{body}[0]);
open_page();
ok(watch(path_namespace => Bus::PATH), 'a watch of all is answered');
knows_all('an allocation that is prepared');
is(objects(), $before + 2, '... which is as before, the allocation and its job');

# ---- what comes and goes

fault('release', 'reset');
is($bus->result($reply->{body}[1]), 'done', 'it is ready');
knows_all('an allocation');
is(objects(), $before + 1, '... which is without the job');
is(release($bus, 'vm'), 'done', 'its release');
knows_all('its release');
is(objects(), $before, '... and nothing else is left of it');

close $to;
waitpid $pid, 0;
done_testing();
