#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl define: with tests/hypervisor in the place of libvirt, and with libvirt's test driver.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS qw(decode_json);
use Test::More;

use Hypervisor;
use Node;

node('paper-testbed');

my $dir     = beside_hypervisor('passthroughctl');
my $libvirt = "$dir/libvirt";
my $bus     = Bus->new->listen;

sub define {
        my (@arguments) = @_;
        local $ENV{PATH} = "$dir:$ENV{PATH}";
        return ctl('define', @arguments);
}
sub calls { return slurp_existing("$libvirt/calls") // '' }

is(allocate($bus, 'guest', gpu => 1, cpus => 2, memory => 2**30), 'done', 'an allocation');
my $xml = (ctl('xml', 'guest'))[1];
like($xml, qr/<hostdev /, 'with a document');

# ---- defined, and started

hypervisor($libvirt);
my ($status, $out, $err) = define('guest', '-c', $libvirt);
is($status, 0, 'defined') or diag($err);
is(slurp("$libvirt/config"), $xml, 'the document of the allocation');
is(calls(), "define 1\n", 'with validation');
ok(!-e "$libvirt/live", 'not started');
like($out, names("'guest'"), 'that is told');

hypervisor($libvirt);
($status, $out) = define('guest', '-c', $libvirt, '--start', '--json');
is($status, 0, 'started');
is(slurp("$libvirt/live"), slurp("$libvirt/config"), 'the domain runs');
is_deeply(decode_json($out), { name => 'guest', started => JSON::XS::true }, 'as JSON');

my $template = "$ENV{NODE_TMP}/template.xml";
spew($template, "<domain type='kvm'><title>mine</title><os><type arch='x86_64' machine='q35'>hvm</type></os><devices/></domain>\n");
hypervisor($libvirt);
is((define('guest', '-c', $libvirt, '--template', $template))[0], 0, 'with a template');
like(slurp("$libvirt/config"), qr/<title>mine/, 'which is filled in');
hypervisor($libvirt);
is((define('guest', '-c', $libvirt, '--allow-qemu-commandline'))[0], 2, 'an option that needs one');

# ---- which libvirt

hypervisor($libvirt);
{
        local $ENV{LIBVIRT_DEFAULT_URI} = $libvirt;
        is((define('guest'))[0],                      0, q(virsh's variable));
        is((define('guest', '-c', "$dir/none"))[0], 1, 'the option before the variable');
}
is(calls(), "define 1\n", 'each is asked once');

# ---- refusals are sentences

($status, undef, $err) = define('guest', '--connect', "$dir/none");
is($status, 1, 'no libvirt');
like($err, qr/\Apassthroughctl: [^\n]*\Q$dir\E\/none[^\n]*: nowhere\.\n\z/, 'no libvirt: one line with the URI and the reason');
hypervisor($libvirt, does => 'refuse-request');
($status, undef, $err) = define('guest', '-c', $libvirt);
is($status, 1, 'libvirt refuses the document');
like($err, qr/\Apassthroughctl: [^\n]*'guest': [^\n]*: nonsense\.\n\z/, 'one line with the reason, and one full stop');
($status, $out) = define('guest', '-c', $libvirt, '--json');
like(decode_json($out)->{message}, names("nonsense"), 'as JSON too');
is($status, 1, 'with the same status');
hypervisor($libvirt, does => 'refuse-start');
($status, undef, $err) = define('guest', '-c', $libvirt, '--start');
is($status, 1, 'libvirt does not start it');
like($err, names("unlucky"), 'with the reason');
ok(-e "$libvirt/config", 'but it is defined');

hypervisor($libvirt);
is((define('nobody', '-c', $libvirt))[0], 1, 'no such allocation');
is(calls(), '', 'libvirt is not asked');
like(qx($dir/passthroughd-libvirt $libvirt define </), qr/\A[^\n]+\z/, 'a document that cannot be read: one line with the reason');
is($? >> 8, 2, '... and the status of a refusal');
rename "$dir/passthroughd-libvirt", "$dir/away" or die $!;
is((define('guest', '-c', $libvirt))[0], 1, 'passthroughd-libvirt is not installed');
spew("$dir/passthroughd-libvirt", "#!/bin/sh\nexit 127\n");
chmod 0755, "$dir/passthroughd-libvirt";
($status, undef, $err) = define('guest', '-c', $libvirt);
is($status, 1, 'passthroughd-libvirt cannot run');
like($err, names('passthroughd-libvirt'), '... as the message says');

# ---- with libvirt

is((ctl('define', 'guest', '-c', 'test:///default', '--start'))[0], 0, q(libvirt's test driver defines and starts it));
($status, undef, $err) = ctl('define', 'guest', '-c', 'nonsense:///system');
is($status, 1, 'a libvirt that there is not');
like($err, qr/\Apassthroughctl: [^\n]+[^.]\.\n\z/, 'one line says so');
unlike(scalar `ldd \$(command -v passthroughctl)`, qr/libvirt/, 'passthroughctl does not link libvirt');

done_testing();
