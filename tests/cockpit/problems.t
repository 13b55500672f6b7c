#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What others named is shown as text, on a node where something of each kind is wrong; actions that need libvirt or another card; contrast; and
# an upgrade of the daemon while the page is open.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus", $FindBin::Bin;

use Cwd qw(abs_path);
use File::Copy qw(cp);
use Test::More;

use Browser;
use Guests;
use Hypervisor;
use Node;

plan skip_all => Browser::missing() if Browser::missing();
node_with_guests('hgx-h100', configure => 1);
plan skip_all => 'the node has no mount namespace' if $ENV{NODE_EVENTS} ne 'yes';

# A name of the kernel has no slash.
my ($markup, $name) = (q{<s>x</s>&"'}, q{<s>&"'});
my $pools  = "[Pool constructor]\nMatch=vendor=10de class=0302\n[Pool valueof]\nMatch=vendor=15b3 type=vf id=15b3:101e\nVirtualFunctions=2\n";
my $config = "[Daemon]\nHousekeepingCpus=0,112,56,168\n";

spew("$ENV{NODE_TMP}/pci.ids", "10de  $markup\n\t2330  GPU [$markup]\n15b3  Mellanox\n\t1021  ConnectX-7\nC 03  Display\n\t02  3D\n");
system('mount', '--bind', "$ENV{NODE_TMP}/pci.ids", abs_path('/usr/share/misc/pci.ids')) == 0 or die 'mount';
fault("set sys/bus/pci/devices/0000:14:00.0/net/$name/ifindex 77");
configure("${config}Nonsense$name=1\n$pools\[Service remote]\nKind=lupine\nEndpoint=127.0.0.1:1 slots=2\nHealth=tcp\n");

my $bus     = Bus->new->listen;
my $libvirt = "$ENV{BUILD}/domain";
hypervisor($libvirt);
# passthroughctl finds the passthroughd-libvirt beside it.
cp(abs_path("$ENV{BUILD}/passthroughctl"), "$ENV{BUILD}/ctl") && chmod 0755, "$ENV{BUILD}/ctl" or die 'cp';
rename "$ENV{BUILD}/ctl", "$ENV{BUILD}/passthroughctl" or die "rename: $!";
my $browser = Browser->new(height => 2000);

sub device_shows { my ($address, $text) = @_; return $browser->shows(qq{.device[data-address="$address"]}, $text) }
sub act { my ($of, $action) = @_; return $browser->click(qq{[data-allocation="$of"] [data-action="$action"]}) }
sub state_is { my ($of, $state) = @_; return wait_until(sub { allocation_state($bus, $of) eq $state }) }
sub manager { my ($property) = @_; return $bus->properties(Bus::PATH, Bus::MANAGER)->{$property} }

# ---- Names

is(allocate($bus, 'constructor', constructor => 1, valueof => 1, cpus => 4, memory => 2**30, tag => $markup), 'done', 'an allocation');
my ($signature, $entries) = request(valueof => 1, hold => 600);
is($bus->call('Allocate', "s$signature", 'lease', $entries)->{error}, undef, 'and a lease');
my ($gpu, $other) = (device_in($bus, 'constructor', 'constructor0')->{address}, '0000:93:00.0');
libvirt_reports($bus, running_domain("guest$name", UUID, $other));
ok(device_shows($gpu, $markup), 'the name of a device is text');
ok(device_shows('0000:14:00.0', $name), 'so is that of a network interface');
ok($browser->shows('[data-allocation=constructor]', $markup), 'a tag');
ok($browser->shows('.problem', "guest$name"), 'the name of a guest');
ok($browser->shows('.problem', "Nonsense$name"), 'a line of the configuration');
ok($browser->shows('.bar-row', 'constructor'), 'a pool has the name of a property of objects');
$browser->click(qq{.device[data-address="$gpu"]});
ok($browser->shows('.facts', "$markup GPU [$markup]"), 'the details have the name');
$browser->click('[data-action="Show as a table"]');
ok($browser->shows('table', $markup), 'so has the table');
$browser->click('[data-action="Show as a table"]');
$browser->click('[data-action="Allocate"]');
$browser->fill('[data-pool=constructor]', 2);
ok($browser->shows('.plan-good', 'constructor1'), 'a plan');
is($browser->script('return document.querySelectorAll("s").length'), 0, 'none of them is an element');

# ---- What passthroughctl finds is on the page; what the daemon reports is worded otherwise there

my @findings = map { $_->{message} } grep { $_->{check} ne 'daemon' && $_->{result} =~ /warning|failure/ } @{ ctl_json('check')->{findings} };
cmp_ok(scalar @findings, '>', 1, 'passthroughctl check finds something');
is_deeply([grep { !$browser->becomes('return document.querySelector("main").textContent.includes(arguments[0])', $_) } @findings], [], 'all of it is on the page');

# ---- Contrast: devices of each state are there, and a plan

$browser->script('document.adoptedStyleSheets = [new CSSStyleSheet()]; document.adoptedStyleSheets[0].insertRule("* { transition: none !important }")');

# The lowest contrasts of what is visible, in both themes.
sub has_contrast {
        my ($what) = @_;
        for my $style (qw(light dark)) {
                $browser->script('window.dispatchEvent(new CustomEvent("cockpit-style", { detail: { style: arguments[0] } }))', $style);
                my $found = $browser->script(slurp("$FindBin::Bin/contrast.js"));
                for (['text', 4.5], ['edge', 3]) {
                        my ($kind, $least) = @$_;
                        my @of  = grep { $_->{kind} eq $kind } @$found;
                        my @low = grep { $_->{ratio} < $least } @of;
                        ok(@of > 10 && !@low, "$what, $style: each $kind has a contrast of $least") or diag(map { "$_->{what}: $_->{colours}, $_->{ratio}\n" } @low);
                        note(sprintf '%d colours, the lowest %.2f: %s', scalar @of, @{ $of[0] }{qw(ratio what)});
                }
        }
        return;
}
has_contrast('picture and plan');
$browser->click('form [data-action=Cancel]');

# ---- libvirt

act('constructor', 'Document');
$browser->click('dialog [data-action="Define in libvirt"]');
ok($browser->shows('.alert', q{libvirt has the domain 'constructor'}), 'a document is defined');
is(slurp("$libvirt/config"), (ctl('xml', 'constructor'))[1], 'libvirt has it');
guest_runs($bus, 'constructor');
ok($browser->shows('[data-allocation=constructor]', 'in-use'), 'the guest runs');
ok($browser->shows('[data-allocation=constructor]', 'The guest constructor runs'), 'and is named');
act('constructor', 'Release');
ok($browser->shows('dialog', q{The guest 'constructor' runs with it}), 'the question before a release names it');
$browser->click('dialog [data-action="Release constructor"]');
ok($browser->shows('.alert', q{'constructor'}) && $browser->shows('.alert-danger, .pf-m-danger', 'constructor'), 'the release is refused');
is(allocation_state($bus, 'constructor'), 'in-use', 'by the daemon');
act('constructor', 'Detach');
has_contrast('dialog and alerts');
$browser->click('dialog [data-action=Close]');
libvirt_reports($bus);
ok(state_is('constructor', 'ready'), 'the guest ends');

write_raw("die\n");
kill 'HUP', libvirt_process();
ok($browser->shows('.problem', 'It is unknown which guests run'), 'libvirt is lost');
libvirt_reports($bus);
ok($browser->gone('.problem', 'which guests run'), 'and is there again');

# ---- A ledger that cannot be written: a file cannot replace a directory

mkdir "$ENV{STATE_DIRECTORY}/allocations/blocked.json" or die "mkdir: $!";
$browser->allocate('blocked', constructor => 1);
ok($browser->shows('.problem', 'The daemon changes nothing'), 'the daemon is read-only');
rmdir "$ENV{STATE_DIRECTORY}/allocations/blocked.json" or die "rmdir: $!";
$browser->click('form [type=submit]');
ok(state_is('blocked', 'ready'), 'the next attempt is written');
ok($browser->gone('.problem', 'changes nothing'), 'and the problem is gone');
is(release($bus, 'blocked'), 'done', 'it is released');

# ---- Another card

my $path = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$gpu") =~ s{.*/devices/}{sys/devices/}r;
fault('events off', "remove $path", 'write sys/bus/pci/rescan 1', "set $path/device 0x2331", 'events on', "event remove $gpu", "event add $gpu");
ok($browser->shows('.problem', "$gpu: hardware-changed"), 'another card is in the slot');
ok($browser->shows('.problem .note', 'passthroughctl accept constructor'), 'the remedy is there');
$browser->click('.problem [data-action=Accept]');
ok(state_is('constructor', 'ready'), 'the button accepts it') or diag($browser->text('.alerts'));
ok($browser->gone('.problem', 'hardware-changed'), 'and it is no problem any more');

# ---- The configuration

ok($browser->shows('.problem', 'Endpoint 127.0.0.1:1'), 'a service that does not answer is a problem');
is(scalar @{ manager('EndpointProblems') }, 1, 'of the daemon');
spew("$ENV{NODE_TMP}/passthroughd.conf", $config . $pools =~ s/class=0302/class=nonsense/r);
is($bus->call('Reload')->{error}, undef, 'the configuration loses a pool');
ok($browser->shows('.problem', 'no longer offered'), 'its devices are a problem') or diag($browser->text('.problems'));
ok($browser->gone('.problem', 'Endpoint'), 'the service is gone');
spew("$ENV{NODE_TMP}/passthroughd.conf", $config . $pools);
$browser->click('.problem [data-action="Reload the configuration"]');
ok($browser->gone('.problem', 'offered') && $browser->gone('.problem', 'configuration'), 'the mended one is reloaded by a button');
is_deeply([map { @{ manager($_) } } qw(ConfigProblems Withdrawn)], [], 'by the daemon');

# ---- Another daemon takes over: one with another version, without a property that the page knows, and with one that it does not know

$browser->script('window.loaded = 1');
$browser->click('[data-action="Allocate"]');
$browser->fill('form [name=tag]', $markup);
$browser->fill('[data-pool=constructor]', 1);
my ($daemon, $version) = (slurp("$ENV{BUILD}/passthroughd"), manager('Version'));
my $new = $version =~ tr/0-9/9/r;
ok($daemon =~ s/\Q$version\E\0/$new\0/g && $daemon =~ s/LibvirtProblem\0/LibvirtTrouble\0/g, 'another build');
spew("$ENV{BUILD}/passthroughd.new", $daemon);
chmod 0755, "$ENV{BUILD}/passthroughd.new";
rename "$ENV{BUILD}/passthroughd.new", "$ENV{BUILD}/passthroughd" or die "rename: $!";
restart('TERM');
is(manager('Version'), $new, 'it runs');
ok($browser->shows('.page-header', "passthroughd $new"), 'the page says so');
ok($browser->shows('[data-allocation=constructor]', 'ready'), 'it has the allocation');
ok($browser->shows('.job', 'prepare constructor'), 'and the jobs of before');
is($browser->script('return document.querySelector("form [name=tag]").value'), $markup, 'what was typed is there');
$browser->fill('form [name=name]', 'after');
$browser->click('form [type=submit]');
ok(state_is('after', 'ready'), 'and is allocated by the new one');
is(allocation($bus, 'after')->{tag}, $markup, 'with the tag');
is($browser->script('return window.loaded'), 1, 'the page was not loaded again');
is_deeply([grep { !/favicon/ } $browser->errors], [], 'and had no error');
$browser->quit;
done_testing;
