#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# org.freedesktop.LogControl1: what is logged, and where, while the daemon runs.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my $bus  = Bus->new->listen;
my $path = '/org/freedesktop/LogControl1';

sub set {
        my ($property, $value) = @_;
        return $bus->ask(Bus::NAME, $path, 'org.freedesktop.DBus.Properties', 'Set', 'ssv', $path =~ s{^/}{}r =~ tr{/}{.}r, $property, ['s', $value]);
}

sub get { my ($property) = @_; return $bus->properties($path, 'org.freedesktop.LogControl1')->{$property} }

sub log_of {
        my ($function) = @_;
        my $before = -s "$ENV{NODE_TMP}/daemon.log";
        $function->();
        return log_since($before);
}

is_deeply($bus->properties($path, 'org.freedesktop.LogControl1'),
        { LogLevel => 'info', LogTarget => 'auto', SyslogIdentifier => 'passthroughd' }, 'as it starts');

my $cycle = sub {
        is(allocate($bus, 'guest', gpu => 1), 'done', 'an allocation');
        is(release($bus, 'guest'), 'done', 'and its release');
};
my $writes = qr{driver_override};
unlike(log_of($cycle), $writes, 'writes to sysfs are not logged at info');
ok(!set('LogLevel', 'debug')->{error}, 'debug');
is(get('LogLevel'), 'debug', 'is set');
like(log_of($cycle), $writes, 'and shows them');
ok(!set('LogLevel', 'err')->{error}, 'err');
is(log_of($cycle), '', 'says nothing when all goes well');

ok(!set('LogLevel', 'info')->{error}, 'info');
ok(!set('LogTarget', 'null')->{error}, 'the target null');
is(log_of($cycle), '', 'takes everything');
ok(!set('LogTarget', 'console')->{error}, 'the target console');
like(log_of($cycle), names('guest'), 'gives it back');

for (['LogLevel', 'loud'], ['LogLevel', ''], ['LogTarget', 'printer'], ['LogTarget', "\x{1b}[31m"]) {
        my $reply = set(@$_);
        is($reply->{error}, 'org.freedesktop.DBus.Error.InvalidArgs', "$_->[0] $_->[1] is refused");
        like($reply->{body}[0], $_->[0] eq 'LogLevel' ? qr/\bwarning\b/ : qr/\bjournal\b/, 'with what there is');
}
is(get('LogLevel') . get('LogTarget'), 'infoconsole', 'and changes nothing');
for my $arguments (['asa{su}', [], []], ['ssv', 'org.freedesktop.LogControl1', 'LogLevel', ['u', 7]], []) {
        is($bus->ask(Bus::NAME, $path, 'org.freedesktop.DBus.Properties', 'Set', @$arguments)->{error},
                'org.freedesktop.DBus.Error.InvalidArgs', 'Set(' . ($arguments->[0] // '') . ') of ' . @$arguments . ' values is refused');
}
ok(set('SyslogIdentifier', 'x')->{error}, 'the identifier is fixed');
is($bus->ping()->{error}, undef, 'the daemon lives');

done_testing();
