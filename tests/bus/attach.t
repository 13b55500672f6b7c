#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Devices come to an allocation and leave it, without a guest.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);
my $conf = slurp("$FindBin::Bin/../nodes/paper-testbed.conf");
configure($conf);

my $bus = Bus->new->listen;

sub generation_of { my ($name) = @_; return (allocation($bus, $name) // { generation => 0 })->{generation} }
sub devices_of { return map { "$_->{slot} $_->{address} $_->{phase}" } grep { $_->{slot} } @{ (allocation($bus, 'vm') // { devices => [] })->{devices} } }
sub address_of { my ($slot) = @_; return (grep { $_->{slot} eq $slot } @{ allocation($bus, 'vm')->{devices} })[0]{address} }

# The result of the job, or the reply with an error.
sub attach {
        my (@pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        my $reply = $bus->call('Attach', "st$signature", 'vm', generation_of('vm'), $entries);
        return $reply->{error} ? $reply : $bus->result($reply->{body}[0]);
}

sub detach {
        my ($slot) = @_;
        my $reply = $bus->call('Detach', 'sts', 'vm', generation_of('vm'), $slot);
        return $reply->{error} ? $reply : $bus->result($reply->{body}[0]);
}

my $before = tree_without_identities();
is(allocate($bus, 'vm', gpu => 1, 'ib-vf' => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
my $home = driver_of(ctl_json('plan', 'ib-vf=1')->{devices}[0]{address});
my ($generation, @devices) = (generation_of('vm'), devices_of());

is(attach('ib-vf' => 1), 'done', 'attach a VF');
is_deeply([(devices_of())[0 .. 1]], \@devices, 'the devices before it stay');
like((devices_of())[2] // '', qr/^ib-vf1 \S+ settled$/, 'it has the next slot');
my $vf = address_of('ib-vf1');
is(driver_of($vf), 'vfio-pci', 'it is bound');
is(device($bus, $vf)->{allocation}, 'vm', 'it is allocated');
cmp_ok(generation_of('vm'), '>', $generation, 'the generation counts up');
like((ctl('xml', 'vm'))[1], qr/ua-ib-vf1/, 'the document has it');
$generation = generation_of('vm');
is_error($bus->call('Attach', 'sta{sv}', 'vm', $generation - 1, []), 'Stale', ['stale-generation', 'vm'], 'an old generation');
restart();
is((devices_of())[2] // '', "ib-vf1 $vf settled", 'the next daemon knows it');

is(detach('ib-vf0'), 'done', 'detach the first VF');
is_deeply([map { (split)[0] } devices_of()], ['gpu0', 'ib-vf1'], 'it is gone from the allocation');
is(driver_of((split ' ', $devices[1])[1]), $home, 'and back with its driver');
unlike((ctl('xml', 'vm'))[1], qr/ua-ib-vf0/, 'the document does not have it');
is(attach('ib-vf' => 1), 'done', 'attach another');
is_deeply([sort map { (split)[0] } devices_of()], ['gpu0', 'ib-vf0', 'ib-vf1'], 'it gets the free slot');
my ($status, $out) = ctl('attach', 'vm', 'ib-vf=1');
is($status, 0, 'passthroughctl attach');
my $last = (split /\n/, $out)[-1];
like($last, names('ib-vf2', address_of('ib-vf2')), 'says what it gave');
unlike($last, names('ib-vf1'), 'and nothing else');
is((ctl('detach', 'vm', 'ib-vf1'))[0], 0, 'passthroughctl detach');
is_deeply(ctl_json('attach', 'vm', 'ib-vf=1')->{devices}, [{ slot => 'ib-vf1', address => address_of('ib-vf1') }], 'attach --json has the same');
my $third = { slot => 'ib-vf2', address => address_of('ib-vf2') };
is_deeply(ctl_json('detach', 'vm', 'ib-vf2')->{devices}, [$third], 'detach --json has what went');
is(ctl_json('detach', 'vm', 'ib-vf2')->{devices}, undef, 'nothing when it is refused');

# ---- refused, without any effect

my @now = devices_of();
is_error(attach(gpu => 1), 'Insufficient', ['insufficient-devices', '1 wanted', '0 of 1 free', 'vm'], 'a pool without a free device: numbers of what was asked for');
is_error(attach(gpu => 64), 'InvalidRequest', ['invalid-request'], 'more than there are');
is_error(attach(cpus => 2, memory => 2**30), 'InvalidRequest', ['invalid-request', 'vm'], 'CPUs');
is_error(attach(nothing => 1), 'NoSuchPool', ['no-such-pool', 'nothing'], 'no such pool');
is_error(attach('ib-vf' => 1, 'vf-attributes' => [['ib-vf0', 'vlan=5']]), 'InvalidRequest', ['invalid-request', 'ib-vf0'], 'attributes of a device that is there');
is_error(detach('ib-vf9'), 'NoSuchDevice', ['no-such-device', 'ib-vf9'], 'no such slot');
is_error($bus->call('Detach', 'sts', 'nobody', 1, 'gpu0'), 'NoSuchAllocation', ['no-such-allocation', 'nobody'], 'no such allocation');
is_deeply([devices_of()], \@now, 'nothing changed');

# ---- a job that fails

my $free = ctl_json('plan', 'ib-vf=1')->{devices}[0]{address};
fault('fail ' . (writes() + 2) . ' EIO');
is(attach('ib-vf' => 1), 'failed', 'a bind that fails');
is_deeply([devices_of()], \@now, 'the device is not part of the allocation');
is(driver_of($free), $home, 'and back with its driver');
is(allocation_state($bus, 'vm'), 'ready', 'which is ready');

# ---- every write fails once, in every way a write can

my %failures = ('fails' => 'fail %d EIO', 'fails after its effect' => 'fail-after %d EIO', 'silently has no effect' => 'silent %d');

# Tries the change with each failure of each write, until it succeeds because there is no such write.
sub sweep_change {
        my ($what, $change, $back) = @_;
        for my $failure (sort keys %failures) {
                my @devices = devices_of();
                my $tree    = tree_without_identities();
                my $n       = 1;
                my $result  = 'failed';
                for (; $n < 40; $n++) {
                        fault('reset', sprintf $failures{$failure}, $n);
                        $result = $change->();
                        if ($result eq 'done') {
                                last if !clear_quarantine($bus) && $n > 1;
                                # The reset of a device: it was not reset, or nobody noticed.
                                fault('reset');
                                $back->();
                                @devices = devices_of();
                                next;
                        }
                        is_deeply([devices_of()], \@devices, "$what, write $n $failure: the devices are those from before");
                        is(tree_without_identities(), $tree, "$what, write $n $failure: and so is the node");
                }
                is($result, 'done', "$what: is done when no write $failure");
                cmp_ok($n, '>', 2, "$what: and before it some failed");
                fault('reset');
                $back->();
        }
        return;
}

sweep_change('attach', sub { attach('ib-vf' => 1) }, sub { is(detach('ib-vf2'), 'done', 'and back') });
is(attach('ib-vf' => 1), 'done', 'a VF to detach');
sweep_change('detach', sub { detach('ib-vf2') }, sub { is(attach('ib-vf' => 1), 'done', 'and back') });

is(release($bus, 'vm'), 'done', 'a release');
is(tree_without_identities(), $before, 'the node is as before');
is(allocate($bus, 'vm', gpu => 1), 'done', 'a device alone');
is_error(detach('gpu0'), 'WrongState', ['wrong-state', 'vm'], 'the last device is not detached');
is(attach('ib-vf' => 1), 'done', 'attach to it');
is(detach('gpu0'), 'done', 'and detach the other');
is(release($bus, 'vm'), 'done', 'a release');
is(tree_without_identities(), $before, 'the node is as before');

# ---- a device that is in another pool now

is(allocate($bus, 'vm', gpu => 1, 'ib-vf' => 1), 'done', 'an allocation');
@now = devices_of();
configure($conf =~ s/\[Pool ib-vf\]/[Pool fast]/r);
is(attach(fast => 1), 'done', 'the pool of a VF has another name: attach a VF of the pool');
is_deeply([(devices_of())[0, 1]], \@now, 'the devices before it stay');
is(detach('ib-vf0'), 'done', 'detach the VF with the former name');
is_deeply([map { (split)[0] } devices_of()], ['gpu0', 'fast0'], 'the other one stays');
is(release($bus, 'vm'), 'done', 'a release');
configure($conf);

# ---- a device that is gone

is(allocate($bus, 'vm', gpu => 1, 'ib-vf' => 2), 'done', 'an allocation');
my $lost = address_of('ib-vf1');
fault('remove sys/' . readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$lost") =~ s{^[./]+}{}r);
$bus->call('Rescan');
is(allocation_state($bus, 'vm'), 'failed', 'a device disappears');
is_error(attach('ib-vf' => 1), 'WrongState', ['wrong-state', $lost], 'an attach is refused');
is(detach('ib-vf1'), 'done', 'a detach forgets the device');
is(allocation_state($bus, 'vm'), 'ready', 'the allocation is ready again');
is(attach('ib-vf' => 1), 'done', 'and gets another device');

done_testing();
