#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The policy of the system bus: root and the group reach the daemon. The daemon: members of the group read; without a rule of polkit only root changes.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Lab;

use constant MANAGER => qw(org.passthroughd1 /org/passthroughd1 org.passthroughd1.Manager);

my %reads = map { $_ => 1 } qw(ListDevices GetDevice ListAllocations GetAllocation ListPools ListNodes Explain Plan GetDomainXML GetNcclTopology Describe DescribeTopology);

sub as_nobody   { my (@command) = @_; return command(qw(setpriv --reuid=nobody --regid=nogroup --groups=passthrough), @command) }
sub as_outsider { my (@command) = @_; return command(qw(setpriv --reuid=nobody --regid=nogroup --clear-groups), @command) }

my ($status, $out, $err) = as_outsider(qw(passthroughctl list));
is($status, 1, 'an outsider may not ask');
like($err, qr/\bpassthrough nobody\b/, '... and is told which group to join');
($status, $out, $err) = as_outsider(qw(busctl call org.passthroughd1 /org/passthroughd1 org.freedesktop.DBus.Peer Ping));
isnt($status, 0, 'nor anything else');
($status, $out, $err) = as_nobody(qw(passthroughctl list --all));
is($status, 0, 'nobody lists the devices');
is($out, (ctl(qw(list --all)))[1], '... and sees what root sees');
for my $words (['topology'], ['allocations'], [qw(explain 0000:00:05.0)], [qw(plan gpu=1)]) {
        is((as_nobody('passthroughctl', @$words))[0], 0, "nobody may ask: @$words");
}

my @methods = map { /^\.(\w+) +method\b/ ? $1 : () } split /\n/, output('busctl', '--no-pager', 'introspect', MANAGER);
ok(@methods > keys %reads, 'the daemon has methods that change something') or diag("@methods");
is_deeply([grep { $reads{$_} } sort @methods], [sort keys %reads], 'and those that read are all there');

# A call without the arguments of its method is refused too, with another error: what changes something is called as it has to be.
my %arguments = (
        Allocate            => [qw(sa{sv} mine 0)],
        SetVirtualFunctions => [qw(su 0000:00:05.0 1)],
        ClearQuarantine     => [qw(s 0000:00:05.0)],
        Attach              => [qw(sta{sv} mine 1 0)],
        Detach              => [qw(sts mine 1 gpu0)],
        Renew               => [qw(stu mine 1 5)],
        map { $_ => [qw(st mine 1)] } qw(Release Accept Prepare),
);
for my $method (sort @methods) {
        ($status, $out, $err) = as_nobody('busctl', 'call', MANAGER, $method, @{ $arguments{$method} // [] });
        if ($reads{$method}) {
                unlike($err, qr/polkit|denied/, "nobody may call $method");
        } else {
                like($err, qr/polkit|denied/, "nobody may not call $method");
        }
}
for my $words ([qw(allocate mine gpu=1)], [qw(release mine)], ['rescan'], ['reload']) {
        ($status, $out, $err) = as_nobody('passthroughctl', @$words);
        is($status, 1, "nobody may not: @$words");
        like($err, qr/\broot\b/, '... and is told so');
}
($status, $out, $err) = as_nobody(qw(busctl set-property org.passthroughd1 /org/freedesktop/LogControl1 org.freedesktop.LogControl1 LogLevel s debug));
like($err, qr/polkit|denied/, 'nor set a property');
is((command(qw(busctl call), MANAGER, 'Rescan'))[0], 0, 'root may');

done_testing();
