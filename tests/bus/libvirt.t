#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughd-libvirt reports the domains of a libvirt: of its test driver, which is in the library.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed', configure => 1);

my $gpu   = '0000:82:00.0';
my $uuid  = '4b20d080-1b54-4048-85b3-a6a62d165c01';
my $xml   = "$ENV{NODE_TMP}/node.xml";
my $pools = "[Pool gpu]\nMatch=address=$gpu\n";
my $bus;

sub libvirt { return describe($bus)->{libvirt} }

# The processes that ask the libvirt of this test.
sub clients { return grep { (eval { slurp("/proc/$_/cmdline") } // '') =~ /^passthroughd-libvirt\0test:\Q\/\/$xml\E\0/ } map { m{(\d+)$} } glob '/proc/[0-9]*' }

sub with_libvirt {
        my ($uri) = @_;
        configure("[Daemon]\nLibvirt=$uri\n$pools");
        $bus = Bus->new->listen;
        return;
}

spew($xml, <<"DOMAIN");
<node><domain type='test'><name>md-worker</name><uuid>$uuid</uuid><memory>8192</memory><os><type>hvm</type></os><devices>
<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='0x82' slot='0x00' function='0x0'/></source></hostdev>
</devices></domain></node>
DOMAIN

with_libvirt('');
is(libvirt(), undef, 'without Libvirt= there is nothing to know');
is(allocate($bus, 'guest', gpu => 1), 'done', 'a GPU is allocated');

with_libvirt("test://$xml");
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'in-use' }), 'the domain runs with it');
is(allocation($bus, 'guest')->{domain}, 'md-worker', 'it is named');
is_deeply([@{ libvirt() }{qw(unknown_since reason)}], [undef, undef], 'the domains are known');
like(libvirt()->{version}, qr/^\d+\.\d+\.\d+$/, 'and so is the version');
is_deeply([grep { $_ eq 'maxphysaddr' } @{ libvirt()->{features} }], ['maxphysaddr'], 'and what it can do');
my @client = clients();
is(scalar @client, 1, 'one process asks');
like(slurp("/proc/$client[0]/maps"), qr/libvirt[.]so/, 'which maps the library');
unlike(slurp('/proc/' . pid() . '/maps'), qr/libvirt[.]so/, 'the daemon does not');

# ---- the process is killed

my $offset = log_since();
kill 'KILL', @client;
ok(wait_until(sub { libvirt()->{reason} }), 'killed: the domains are unknown');
is(allocation_state($bus, 'guest'), 'in-use', 'killed: still in use');
ok(wait_until(sub { !libvirt()->{reason} }), 'killed: it is started again');
is(allocation_state($bus, 'guest'), 'in-use', 'killed: in use');
isnt((clients())[0], $client[0], 'killed: by another process');
is(() = log_since($offset) =~ /\bunknown\b/g, 1, 'killed: told once');

# ---- the domain is gone when libvirt answers again

spew($xml, "<node></node>");
kill 'KILL', clients();
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'the domain has ended: ready');
is(release($bus, 'guest'), 'done', 'and released');

# ---- it ends with the daemon, and a libvirt that cannot be asked

with_libvirt('nonsense:///system');
ok(wait_until(sub { !clients() }), 'the process ends with the daemon');
ok(wait_until(sub { (libvirt()->{reason} // q{}) =~ names("asked") }), 'another libvirt: why it cannot be asked');
is($bus->ping()->{error}, undef, 'the daemon answers');

done_testing();
