#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The journal names whose calls are refused for what they ask: each uid once in a minute.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;
use Nobody;

need_nobody();
node('paper-testbed', root => 1);

my $uid    = getpwnam 'nobody';
my $bus    = Bus->new;
my $offset = log_since();

# What the daemon logged of refused calls: uids and processes.
sub reported {
        $bus->ping;
        return map { [/ uid (\d+), process (\d+)\b/] } grep { / uid \d+, / } split /\n/, log_since($offset);
}

# Makes the calls as nobody, one after the other. The pid of the caller, and names of the errors.
sub call_as_nobody {
        my (@calls) = @_;
        return as_nobody(sub { my $client = Bus->new; return $$, map { ($client->call(@$_)->{error} // 'none') =~ s/.*\.//r } @calls });
}

my @release = ('Release', 'st', 'none', 1);
my ($pid, @errors) = call_as_nobody(['ListDevices'], ['GetAllocation', 's', 'none']);
is_deeply(\@errors, ['none', 'NoSuchAllocation'], 'calls that anybody in the group may make');
is_deeply([reported()], [], '... are not reported');

($pid, @errors) = call_as_nobody((\@release) x 50);
is_deeply(\@errors, [('AccessDenied') x 50], 'calls that only root may make');
ok(wait_until(sub { reported() }), '... are reported');
is_deeply([reported()], [[$uid, $pid]], '... once, with uid and process');

# A second later the bus may be asked again who calls.
sub later { my $end = time + 2; return wait_until(sub { time >= $end }) }
later();
call_as_nobody(\@release);
is_deeply([reported()], [[$uid, $pid]], 'the same uid is not reported again within the minute');

is($bus->call(@release)->{error}, 'org.passthroughd1.Error.NoSuchAllocation', 'a call of root');
is_deeply([reported()], [[$uid, $pid]], '... is not reported');

done_testing();
