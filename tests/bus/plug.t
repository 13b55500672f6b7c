#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A device is attached to a domain and detached: passthroughd-libvirt with tests/hypervisor in the place of libvirt, and the part of
# the daemon that makes such a request.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;
use Time::HiRes qw(time);

use Hypervisor;
use Node;

use constant { LIVE => 1, CONFIG => 2 };

my $uuid   = '4b20d080-1b54-4048-85b3-a6a62d165c01';
my $dir    = beside_hypervisor('tests/plug-device');
my $domain = "$dir/domain";

sub hostdev {
        my ($bus) = @_;
        return "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='$bus' slot='0x00' function='0x0'/>"
          . "</source><alias name='ua-x0'/></hostdev>";
}
my $device = hostdev('0x83');

sub document { my (@hostdevs) = @_; return "<domain><uuid>$uuid</uuid><devices>@hostdevs</devices></domain>" }

# The domain of the next requests: what its files have, and what the hypervisor does.
sub domain { return hypervisor($domain, @_) }

# Result and text of a request.
sub ask {
        my ($action, %with) = @_;
        open my $out, '-|', "$dir/plug-device", $with{uri} // $domain, $action, $with{uuid} // $uuid, $with{seconds} // 30, $with{hostdev} // $device or die "plug-device: $!";
        $with{meanwhile}->() if $with{meanwhile};
        my $answer = do { local $/ = undef; <$out> };
        close $out;
        chomp $answer;
        return split / /, $answer, 2;
}

sub result { return (ask(@_))[0] }
sub has { my ($file) = @_; return slurp("$domain/$file") =~ /bus='0x83'/ ? 1 : 0 }
sub calls { return (slurp_existing("$domain/calls") // q{}) =~ s/\n/;/gr }

my $other = hostdev('0x82');

# ---- attach

domain(live => document($other), config => document($other));
is(result('attach'), 'done', 'attach: done');
is(has($_), 1, "attach: the $_ document has the device") for qw(live config);
is(calls(), 'attach ' . (LIVE | CONFIG) . ';', 'attach: in one call');
is(result('attach'), 'done', 'attach again: done');
is(calls(), 'attach ' . (LIVE | CONFIG) . ';', 'attach again: libvirt is not asked to');

domain(live => document());
is(result('attach'), 'done', 'attach to a transient domain: done');
is(calls(), 'attach ' . LIVE . ';', 'attach to a transient domain: only to the running one');
domain(config => document());
is(result('attach'), 'done', 'attach to a domain that does not run: done');
is(calls(), 'attach ' . CONFIG . ';', 'attach to a domain that does not run: only to its definition');
domain(live => document($device), config => document());
is(result('attach'), 'done', 'half attached: done');
is(calls(), 'attach ' . CONFIG . ';', 'half attached: the other half');

domain();
is(result('attach'), 'no-domain', 'no domain');
is(result('attach', uri => "$dir/none"), 'failed', 'no libvirt');
domain(live => document(), does => 'refuse-request');
is_deeply([ask('attach')], ['failed', 'internal error: no room'], 'refused: with the reason, as part of a sentence');
domain(live => document(), config => document(), does => 'break');
is(result('attach'), 'unknown', 'half attached by libvirt: unknown');
domain(live => document(), does => 'break');
is(result('attach'), 'done', 'attached by libvirt with an error: done');
domain(live => document());
is(result('attach', hostdev => '<hostdev/>'), 'failed', 'no device');
is(result('attach', hostdev => 'x' x 20_000), 'failed', 'a text that is too long');
is(calls(), '', 'libvirt is not asked');

# ---- detach

domain(live => document($other, $device), config => document($other, $device));
is(result('detach'), 'done', 'detach: done');
is(has($_), 0, "detach: the $_ document has it no more") for qw(live config);
is(calls(), 'detach ' . LIVE . ';detach ' . CONFIG . ';', 'detach: the definition after the guest');
like(slurp("$domain/live"), qr/bus='0x82'/, 'detach: the other device stays');
is(result('detach'), 'done', 'detach again: done');

domain(live => document($device), config => document($device), does => 'guest-is-late');
is(result('detach'), 'done', 'the guest releases it later: done');
is(has($_), 0, "the guest releases it later: the $_ document has it no more") for qw(live config);

domain(live => document($device), config => document($device), does => 'guest-refuses');
is(result('detach'), 'kept', 'the guest refuses: kept');
is(has($_), 1, "the guest refuses: the $_ document has it") for qw(live config);
domain(live => document($device), config => document($device), does => 'guest-keeps');
is(result('detach', seconds => 1), 'kept', 'the guest does nothing: kept');
is(has($_), 1, "the guest does nothing: the $_ document has it") for qw(live config);

domain(config => document($device));
is(result('detach'), 'done', 'detach from a domain that does not run: done');
is(calls(), 'detach ' . CONFIG . ';', 'detach from a domain that does not run: from its definition');
domain(live => document($device), does => 'refuse-request');
is(result('detach'), 'failed', 'detach is refused');

# ---- describe

domain(live => document($device), config => document());
is_deeply([ask('describe')], ['done', document($device)], 'describe: the running domain');
domain(config => document());
is_deeply([ask('describe')], ['done', document()], 'describe: the definition of one that does not run');
domain(live => document('<!--' . 'x' x 60_000 . '-->'));
is(length((ask('describe'))[1]), length(document('<!--' . 'x' x 60_000 . '-->')), 'describe: a long document');

# ---- the process hangs or dies

domain(live => document(), does => 'hang');
my $start = time;
is(result('attach', seconds => 0), 'unknown', 'libvirt hangs: unknown');
cmp_ok(time - $start, '<', 60, 'libvirt hangs: by the deadline');
domain(live => document(), does => 'hang');
is(
        result(
                'attach',
                meanwhile => sub {
                        wait_until(sub { calls() ne '' }) or die 'libvirt is not asked';
                        kill 'KILL', slurp("$dir/pid") + 0;
                }
        ),
        'unknown',
        'the process is killed: unknown'
);

done_testing();
