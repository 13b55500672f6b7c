#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations that running guests use, as libvirt reports them, and what is known while libvirt is away.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Guests;
use Node;

node_with_guests('paper-testbed');

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my $bus = Bus->new->listen;

# A domain runs with these devices; no domain runs without devices.
sub runs { my (@devices) = @_; return libvirt_reports($bus, @devices ? running_domain('md-worker', UUID, @devices) : ()) }

sub state_becomes {
        my ($state, $what) = @_;
        wait_until(sub { allocation_state($bus, 'guest') eq $state });
        return is(allocation_state($bus, 'guest'), $state, $what);
}

sub release_refused {
        my ($words, $what) = @_;
        return is_error($bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation}), 'Unavailable', ['busy', $words], $what);
}

is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'a GPU is allocated');
is(allocation_state($bus, 'guest'), 'ready', 'no guest runs');
is_deeply([@{ describe($bus)->{libvirt} }{qw(unknown_since reason)}], [undef, undef], 'which is known');
$bus->forget_signals();

runs($gpu);
is(allocation_state($bus, 'guest'), 'in-use', 'one does: the allocation is in use');
ok($bus->signals_until(sub { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'in-use' }), 'that is told');
like((ctl('allocations'))[1], qr/^guest +in-use /m, 'and shown');
is(describe($bus)->{allocations}[0]{state}, 'in-use', 'and described');
release_refused(names('md-worker', 'guest'), 'a release');
restart();
state_becomes('in-use', 'the next daemon sees it too');

# ---- libvirt is away: what was known stays, and open files decide

my $offset = log_since();
my $group  = device($bus, $gpu)->{iommu_group};
write_raw("die\n");
kill 'KILL', libvirt_process();
ok(wait_until(sub { describe($bus)->{libvirt}{reason} }), 'lost: the guests are unknown');
like((ctl('show', 'guest'))[1], qr/^Domain: +unknown since \d{4}-/m, 'lost: show says so');
cmp_ok(abs(describe($bus)->{libvirt}{unknown_since} - time), '<', 60, 'lost: since now');
is(allocation_state($bus, 'guest'), 'in-use', 'lost: the allocation stays in use');
for (1 .. 3) { $bus->call('Rescan'); $bus->ping() }
is(() = log_since($offset) =~ /\bunknown\b/g, 1, 'lost: told once in the log');
fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 /dev/vfio/$group");
release_refused(names(4242, 'qemu-system-x86'), 'lost: a release while the device is open');
fault('remove proc/4242');
runs($gpu);
is(describe($bus)->{libvirt}{reason}, undef, 'back: the guests are known');
is(allocation_state($bus, 'guest'), 'in-use', 'back: in use');
release_refused(names('md-worker', 'guest'), 'back: a release');

# A record that no libvirt means.
write_raw("list\ncomplete\nnonsense\n");
kill 'HUP', libvirt_process();
ok(wait_until(sub { describe($bus)->{libvirt}{reason} }), 'nonsense: the guests are unknown');
runs($gpu);
is(allocation_state($bus, 'guest'), 'in-use', 'nonsense: and known again');

# ---- other devices

runs($vf);
is(allocation_state($bus, 'guest'), 'ready', 'a guest on something else is none of its business');
is(device($bus, $vf)->{state}, 'contested', 'but what it has is off the market');
like(device($bus, $vf)->{reason}, names("'md-worker'", $vf), 'and it says why');
my $other = ctl_json('plan', 'ib-vf=1')->{devices}[0]{address} // '';
ok($other ne '' && $other ne $vf, 'others are given out instead') or diag($other);
like((ctl('plan', 'ib-vf=4'))[2], names($vf, 'md-worker'), 'and it is told of where it is missed');
runs($vf, $gpu);
is(allocation_state($bus, 'guest'), 'in-use', 'it gets the GPU too: in use');
runs();
is(device($bus, $vf)->{state}, 'available', 'it ends, and the VF is on the market again');
is(release($bus, 'guest'), 'done', 'a release');

# ---- release-with-domain: it goes with the domain

for my $away (0, 1) {
        my $what = $away ? 'with its domain, while the daemon is away' : 'with its domain';
        is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1), 'done', "$what: a GPU");
        runs();
        is(allocation_state($bus, 'guest'), 'ready', "$what: nothing happens before there is one");
        runs($gpu);
        is(allocation_state($bus, 'guest'), 'in-use', "$what: in use");
        if ($away) {
                daemon('stop');
                write_guests();
                start_again($bus, $what);
        } else {
                runs();
        }
        ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), "$what: released");
        is(driver_of($gpu), 'nvidia', "$what: and back");
}

# ---- the event of libvirt is late, or libvirt hangs

is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'a late event: a GPU');
runs($gpu);
is(allocation_state($bus, 'guest'), 'in-use', 'a late event: in use');
release_refused(names('md-worker', 'guest'), 'a late event: a release while the domain runs');
write_guests();
is(release($bus, 'guest'), 'done', 'a late event: libvirt is asked whether the domain still runs');
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'libvirt hangs: a GPU');
runs($gpu);
kill 'STOP', libvirt_process();
my $asked = time;
release_refused(names('md-worker', 'guest'), 'libvirt hangs: a release');
cmp_ok(time - $asked, '<', 60, 'libvirt hangs: which is answered in time');
ok(!$bus->ping()->{error}, 'libvirt hangs: and others are');
my $hung = libvirt_process();
kill 'KILL', $hung;
ok(wait_until(sub { libvirt_process() != $hung && libvirt_process() && !describe($bus)->{libvirt}{reason} }), 'libvirt answers again');
runs();
is(release($bus, 'guest'), 'done', 'and the domain has ended');

# It answers the first of two requests, and hangs in the second.
my $process = libvirt_process();
kill 'STOP', $process;
$bus->call('Rescan') for 1 .. 2;
write_raw("features|maxphysaddr\nlist\ncomplete\nhang\n");
kill 'CONT', $process;
ok(wait_until(sub { !grep { $_ eq 'driver-model' } @{ describe($bus)->{libvirt}{features} } }), 'libvirt answers one request of two');
write_raw("die\n");
ok(wait_until(sub { describe($bus)->{libvirt}{reason} }), '... and the guests become unknown, as it does not answer the other');
write_guests();
ok(wait_until(sub { !describe($bus)->{libvirt}{reason} }), '... until another process answers');

# A libvirt that is lost says nothing of the end of a domain.
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30, 'release-with-domain' => 1), 'done', 'lost with its domain: a GPU');
runs($gpu);
is(allocation_state($bus, 'guest'), 'in-use', 'lost with its domain: in use');
write_raw("die\n");
daemon('stop');
start_again($bus, 'lost with its domain');
ok(wait_until(sub { describe($bus)->{libvirt}{reason} =~ /ended/ }), 'lost with its domain: nothing is known');
is(allocation_state($bus, 'guest'), 'ready', 'lost with its domain: it is not released');
runs($gpu);

# A ledger that cannot be trusted: nothing is released then.
daemon('stop');
my $broken = ledger_file('broken');
spew($broken, '{');
write_guests();
fault('reset');
my $state = snapshot(times => 1);
is(daemon('start'), 0, 'a broken ledger: the domain ended while the daemon was away');
ok(wait_until(sub { !describe($bus)->{libvirt}{reason} }), 'a broken ledger: which is known');
is(allocation_state($bus, 'guest'), 'ready', 'a broken ledger: it is not released');
nothing_written('a broken ledger: nothing is written to the node');
same_state($state, 'a broken ledger: nor to the ledger', times => 1);
daemon('stop');
unlink $broken;
start_again($bus, 'a mended ledger');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'gone' }), 'a mended ledger: it is released');

done_testing();
