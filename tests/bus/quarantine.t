#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A device is reset and looked at before anybody else meets it; one that fails is nobody's until an admin has looked.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('hgx-h100', configure => 1);

my $pools = slurp("$FindBin::Bin/../nodes/hgx-h100.conf");
configure($pools);
my $bus    = Bus->new->listen;
my $before = tree();
my $state  = snapshot();

sub clear {
        my ($device) = @_;
        my $reply = $bus->call('ClearQuarantine', 's', $device);
        return $reply->{error} ? $reply->{error} : $bus->result($reply->{body}[0]);
}

sub quarantined { return map { $_->{address} } @{ describe($bus)->{quarantine} } }

is(allocate($bus, 'guest', gpu => 2), 'done', 'two GPUs');
my ($bad, $good) = map { $_->{address} } grep { ($_->{slot} // '') =~ /^gpu/ } @{ allocation($bus, 'guest')->{devices} };
fault('reset');
is(release($bus, 'guest'), 'done', 'released');
my @log = write_log();
is(scalar(grep { m{/$bad/reset 1 -> OK$} } @log), 1, 'a GPU is reset');
my ($reset, $unbind) = map { my $what = $_; (grep { $log[$_] =~ $what } 0 .. $#log)[0] } qr{/$bad/reset 1}, qr{unbind $bad};
cmp_ok($reset, '<', $unbind, 'while it is still with VFIO');
same_tree($before, 'all is as before');
is_deeply([quarantined()], [], 'nothing is in quarantine');
is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU');
fault('reset', 'fail 1 ENOTTY');
is(release($bus, 'guest'), 'done', 'that no method resets, or that does not come back in time');
is_deeply([quarantined()], [$bad], 'is in quarantine');
like(device($bus, $bad)->{reason}, names($bad, 'AllowNoReset='), 'which says what allows it');
is(clear($bad), 'done', 'it leaves');
same_tree($before, 'and all is as before');

# ---- it has no reset method

my %methods = (reset => '', reset_method => 'flr bus');
fault(map { "remove sys/bus/pci/devices/$bad/$_" } keys %methods);
ctl('rescan');
like((ctl('explain', $bad))[1], names('AllowNoReset='), 'no method: explain tells before what to set');
my ($found) = grep { $_->{check} eq 'reset' } @{ ctl_json('check')->{findings} };
is($found->{result}, 'warning', 'no method: so does a check');
like($found->{message}, names($bad, 'gpu'), 'no method: and names it');
like((ctl('suggest'))[1], qr/^# .*\Q$bad\E has/m, 'no method: a suggestion too');
is(allocate($bus, 'guest', gpu => 1), 'done', 'no method: it can be allocated');
is(release($bus, 'guest'), 'done', 'no method: released');
is_deeply([quarantined()], [$bad], 'no method: it is in quarantine');
like(device($bus, $bad)->{reason}, names($bad, 'AllowNoReset='), 'no method: which says what to set');
is(clear($bad), 'done', 'no method: it leaves');

configure($pools =~ s/(\[Pool gpu\]\n)/$1AllowNoReset=yes\n/r);
$bus = Bus->new->listen;
is((grep { $_->{check} eq 'reset' } @{ ctl_json('check')->{findings} })[0]{result}, 'ok', 'allowed: the check finds nothing');
is(allocate($bus, 'guest', gpu => 1), 'done', 'allowed: allocated');
is(release($bus, 'guest'), 'done', 'allowed: released');
is_deeply([quarantined()], [], 'allowed: nothing is in quarantine');
fault(map { "set sys/bus/pci/devices/$bad/$_ $methods{$_}" } sort keys %methods);
ctl('rescan');
$before = tree();
is(allocate($bus, 'guest', gpu => 1), 'done', 'allowed: one with methods');
fault('reset', 'fail 1 ENOTTY');
is(release($bus, 'guest'), 'done', 'allowed: none works');
is_deeply([quarantined()], [], 'allowed: nothing is in quarantine');
is(allocate($bus, 'guest', gpu => 1), 'done', 'allowed: again');
fault('reset', 'fail 1 EIO');
is(release($bus, 'guest'), 'done', 'allowed: a reset fails otherwise');
is_deeply([quarantined()], [$bad], 'allowed: then it is in quarantine');
is(clear($bad), 'done', 'allowed: it leaves');
fault('reset');
same_tree($before, 'allowed: all is as before');

# ---- its pool names a method

my $method = "$ENV{NODE_ROOT}/sys/bus/pci/devices/$bad/reset_method";
configure($pools =~ s/(\[Pool gpu\]\n)/$1ResetMethod=bus\n/r);
$bus = Bus->new->listen;
is((grep { $_->{check} eq 'reset' } @{ ctl_json('check')->{findings} })[0]{result}, 'ok', 'by bus: the check finds nothing');
fault("write sys/bus/pci/devices/$bad/reset_method bus flr");
is(allocate($bus, 'guest', gpu => 1), 'done', 'by bus: allocated');
fault('reset');
is(release($bus, 'guest'), 'done', 'by bus: released');
is_deeply([map { m{/$bad/(reset\w*) (.*) -> OK$} ? "$1=$2" : () } write_log()], ['reset_method=bus', 'reset=1', 'reset_method=bus flr'], 'by bus: and then as it was');
for my $n (1 .. 3) {
        for my $kind ("fail $n EIO", "silent $n", "kill $n before", "kill $n after") {
                is(allocate($bus, 'guest', gpu => 1), 'done', "by bus, $kind: allocated");
                fault('reset', $kind);
                release($bus, 'guest');
                fault('reset');
                release($bus, 'guest') if allocation_state($bus, 'guest') ne 'gone';
                is(allocation_state($bus, 'guest'), 'gone', "by bus, $kind: released in the end");
                is(slurp($method), "bus flr\n", "by bus, $kind: the methods are as they were") if !quarantined();
                clear_quarantine($bus);
                fault("write sys/bus/pci/devices/$bad/reset_method bus flr");
        }
}
fault("write sys/bus/pci/devices/$bad/reset_method default");
same_tree($before, 'by bus: all is as before');

configure($pools =~ s/(\[Pool gpu\]\n)/$1ResetMethod=pm\n/r);
$bus = Bus->new->listen;
($found) = grep { $_->{check} eq 'reset' } @{ ctl_json('check')->{findings} };
is($found->{result}, 'warning', 'by a method that it lacks: a check finds it');
like((ctl('explain', $bad))[1], names($bad, 'pm'), 'by a method that it lacks: explain tells it');
is(allocate($bus, 'guest', gpu => 1), 'done', 'by a method that it lacks: allocated');
fault('reset');
is(release($bus, 'guest'), 'done', 'by a method that it lacks: released');
is_deeply([grep { m{/reset 1} } write_log()], [], 'by a method that it lacks: no other one is taken');
is_deeply([quarantined()], [$bad], 'by a method that it lacks: it is in quarantine');
is(clear($bad), 'done', 'by a method that it lacks: it leaves');
configure($pools);
$bus = Bus->new->listen;
same_tree($before, 'all is as before');

# ---- it cannot be reset

is(allocate($bus, 'guest', gpu => 2), 'done', 'two GPUs again');
fault('reset', "fail reset\@$bad EIO");
is(release($bus, 'guest'), 'done', 'one that cannot be reset does not hold up the release');
is(allocation_state($bus, 'guest'), 'gone', 'which is at its end');
is_deeply([quarantined()], [$bad], 'it is in quarantine');
my $device = device($bus, $bad);
is($device->{state}, 'quarantined', 'its state says so');
like($device->{reason}, names($bad), 'and why');
is(driver_of($bad), 'vfio-pci', 'it stays where it was');
is(driver_of($good), 'nvidia', 'the other one is back');
my @gpus = grep { ($_->{pool} // '') eq 'gpu' } @{ describe($bus)->{devices} };
like((ctl('plan', 'gpu=' . @gpus))[2], qr/\Q$bad\E/, 'nobody gets it');
like((ctl('quarantine'))[1], qr/^\Q$bad\E +root +guest +\S/m, 'passthroughctl lists it');
is(ctl_json('quarantine')->[0]{address}, $bad, 'also as JSON');
is_deeply([ctl('quarantine', $good)], [0, '', "$good is not in quarantine.\n"], 'of another one it says that that is not');
like((ctl('explain', $bad))[1], names('--clear'), 'explain says what to do');
restart();
$bus = Bus->new->listen;
is_deeply([quarantined()], [$bad], 'a restart forgets nothing');
is(device($bus, $bad)->{state}, 'quarantined', 'nor its state');
fault('reset');
my ($status, $out, $err) = ctl('quarantine', '--clear', $bad);
is($status, 0, 'somebody has looked') or diag($err);
like($out, names($bad), 'passthroughctl says so');
same_tree($before, 'it is back');
same_state($state, 'on disk too');
is(device($bus, $bad)->{state}, 'available', 'and on offer');
history_shows($bad, sub { "@_" =~ /\bquarantined\b.*\bcleared\b/ }, 'its history tells of both');

# ---- it does not answer

is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU');
($bad) = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
my $config = (glob "$ENV{NODE_ROOT}/sys/bus/pci/devices/$bad")[0];
my $path = readlink($config) =~ s{^(?:\.\./)+}{sys/}r;
my $alive = join '', map { sprintf '\x%02x', $_ } unpack 'C64', slurp("$ENV{NODE_ROOT}/$path/config");
fault('reset', "set $path/config " . ("\xff" x 64));
is(release($bus, 'guest'), 'done', 'it fell off the bus');
is_deeply([quarantined()], [$bad], 'and is in quarantine');
like(device($bus, $bad)->{reason}, names($bad), 'with the evidence');
is_deeply([grep { m{/\Q$bad\E/reset } } write_log()], [], 'without a reset, for which the kernel would wait');

# ---- it cannot be reset, and then the release fails

fault("write $path/config $alive");
is(clear($bad), 'done', 'two faults: none is in quarantine');
is(allocate($bus, 'guest', gpu => 2), 'done', 'two faults: two GPUs');
my @two = map { $_->{address} } @{ allocation($bus, 'guest')->{devices} };
fault('reset', "fail reset\@$two[0] EIO", "fail unbind\@$two[1] EIO");
is(release($bus, 'guest'), 'failed', 'two faults: the release fails');
fault('reset');
is_deeply([quarantined()], [$two[0]], 'two faults: one is in quarantine');
is(clear($two[0]), 'org.passthroughd1.Error.Unavailable', 'two faults: it cannot be cleared before it is released');
is(release($bus, 'guest'), 'done', 'two faults: and it can be released');
is(clear($_), 'done', 'two faults: cleared') for quarantined();
is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU that stops to answer');
fault("set $path/config " . ("\xff" x 64));
is(release($bus, 'guest'), 'done', 'is released');
is_deeply([quarantined()], [$bad], 'and in quarantine');

# ---- refusals

is(clear('0000:00:00.0'), 'org.passthroughd1.Error.WrongState', 'what is not in quarantine cannot leave it');
is(clear('nonsense'), 'org.passthroughd1.Error.InvalidRequest', 'nor what is no address');
is((ctl('quarantine', '--clear'))[0], 2, 'passthroughctl wants an address');
is((ctl('quarantine', '--no-wait'))[0], 2, 'and --clear for --no-wait');
is(clear($bad), 'done', 'it leaves');
is_deeply([quarantined()], [], 'none is left');
fault("write $path/config $alive");
ctl('rescan');
ok(wait_until(sub { device($bus, $bad)->{state} eq 'available' }), 'and the GPU answers again');

# ---- killed in between

is(allocate($bus, 'guest', gpu => 2), 'done', 'two GPUs');
($bad, $good) = map { $_->{address} } grep { ($_->{slot} // '') =~ /^gpu/ } @{ allocation($bus, 'guest')->{devices} };
fault('reset', "fail reset\@$bad EIO");
my $reply = $bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation});
ok(wait_until(sub { (quarantined())[0] }), 'killed: when it is in quarantine');
daemon('stop', 'KILL');
fault('reset');
is(daemon('start'), 0, 'killed: the daemon is back');
$bus = Bus->new->listen;
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), 'killed: the release is done');
ok((grep { $_ eq $bad } quarantined()), 'killed: it is in quarantine still');
is(clear($bad), 'done', 'killed: cleared') for quarantined();

# ---- each one after use

configure($pools =~ s/(\[Pool gpu\]\n)/$1OneTimeUse=yes\n/r);
$bus = Bus->new->listen;
is(allocate($bus, 'guest', gpu => 2), 'done', 'one time: two GPUs');
($bad, $good) = map { $_->{address} } grep { ($_->{slot} // '') =~ /^gpu/ } @{ allocation($bus, 'guest')->{devices} };
is(release($bus, 'guest'), 'done', 'one time: released');
is_deeply([sort(quarantined())], [$bad, $good], 'B11: a device of such a pool is looked at before it is given away again');
like(device($bus, $good)->{reason}, names('guest', 'gpu'), 'B11: it says why');
is(clear($good), 'done', 'one time: cleared');
is(device($bus, $good)->{state}, 'available', 'one time: on offer again');

done_testing();
