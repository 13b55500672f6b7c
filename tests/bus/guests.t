#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Allocations that running domains use, as libvirt tells it. Its test driver reads from a file which domains run.
use strict;
use warnings;

use File::Temp;
use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

my $file;

BEGIN {
        if (!$ENV{NODE_ROOT}) {
                $file = File::Temp->new(UNLINK => 0);
                $ENV{NODE_LIBVIRT}        = "test://$file";
                $ENV{LIBVIRT_TEST_FILE}   = "$file";
        }
}

# The domain on these devices, or none.
sub running {
        my (@devices) = @_;
        my $list = join '', map {
                my ($domain, $bus, $slot, $function) = split /[:.]/;
                "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x$domain' bus='0x$bus' slot='0x$slot' function='0x$function'/></source></hostdev>"
        } @devices;
        my $domain = @devices ? <<"END" : '';
<domain type='test'><name>md-worker</name><memory>65536</memory><os><type>hvm</type></os>
<devices><controller type='pci' index='0' model='pcie-root'/>$list</devices></domain>
END
        spew($ENV{LIBVIRT_TEST_FILE}, "<node>$domain</node>");
        return;
}

running() if !$ENV{NODE_ROOT};
node('paper-testbed');
END { unlink $ENV{LIBVIRT_TEST_FILE} if $ENV{NODE_ROOT} }

my $gpu = '0000:82:00.0';
my $bus = Bus->new->listen;

# The process that asks libvirt.
sub asker {
        my $daemon = pid();
        my ($pid) = grep { slurp("/proc/$_/comm") eq "passthroughd-vm\n" } split ' ', slurp("/proc/$daemon/task/$daemon/children");
        return $pid;
}

# Another one begins by reading the file.
sub look_again {
        my $before = asker();
        kill 'KILL', $before;
        return wait_until(sub { my $now = asker(); $now && $now != $before });
}

ok(wait_until(\&asker), 'a process asks libvirt');
is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'a GPU is allocated');
is(allocation_state($bus, 'guest'), 'ready', 'no domain runs');
$bus->forget_signals();
running($gpu);
ok(look_again(), 'one that dies is replaced');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'in-use' }), 'a domain runs');
ok($bus->signals_until(sub { $_->{member} eq 'PropertiesChanged' && ($_->{body}[1]{State} // '') eq 'in-use' }), 'that is told');
like((ctl('allocations'))[1], qr/^guest +in-use /m, 'and shown');
is(describe($bus)->{allocations}[0]{state}, 'in-use', 'and described');
is_error($bus->call('Release', 'st', 'guest', allocation($bus, 'guest')->{generation}), 'Unavailable', qr/^The domain 'md-worker' runs with 'guest'/, 'a release');
restart();
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'in-use' }), 'the next daemon sees it too');
running('0000:05:00.0');
ok(look_again(), 'another look');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'the domain runs with something else: ready again');
is(release($bus, 'guest'), 'done', 'and can be released');

my $asker = asker();
daemon('stop');
ok(wait_until(sub { !kill 0, $asker }), 'who asks ends with the daemon');

done_testing();
