#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The page in Cockpit shows what the daemon knows, as it changes, and does what the user asks for. PICTURES= is a directory for screenshots.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus", $FindBin::Bin;

use Test::More;
use Time::HiRes qw(sleep);

use Browser;
use Node;

plan skip_all => Browser::missing() if Browser::missing();
node('hgx-h100');

my $bus     = Bus->new->listen;
my $browser = Browser->new;

sub state_is { my ($name, $state) = @_; return wait_until(sub { allocation_state($bus, $name) eq $state }) }
sub picture { my ($name) = @_; $browser->screenshot("$ENV{PICTURES}/$name.png") if $ENV{PICTURES}; return }
sub device_shows { my ($address, $text) = @_; return $browser->shows(qq{.device[data-address="$address"]}, $text) }
sub is_gone { my ($name) = @_; return wait_until(sub { !grep { $_->[0] eq $name } @{ $bus->call('ListAllocations')->{body}[0] } }) }
sub confirm { my ($text) = @_; return $browser->click(qq{dialog [data-action="$text"]}) }

# ---- What there is

ok($browser->shows('.numa', 'NUMA node 1'), 'the picture has the NUMA nodes');
is($browser->script('return document.querySelectorAll(".slot > .device").length'), 18, 'the GPUs and NICs');
is($browser->script('return document.querySelectorAll(".cell.look-available").length'), 129, 'a cell for each of 128 VFs, and one of the legend');
ok($browser->shows('.bar-row', 'pool, 128 devices'), 'the bars have the pools');
ok($browser->shows('.bar-row', '400 pages of 1 GiB'), 'and the hugepages');
is($browser->text('.problem'), '', 'there is no problem');
ok($browser->shows('summary', 'with 2 warnings'), 'but what a check of the node finds');
$browser->click('summary');
ok($browser->shows('.warning', 'there is no SR-IOV capability'), 'which unfolds');
$browser->script(<<'END');
const proxies = cockpit.dbus("org.passthroughd1", { bus: "system" }).proxies("org.passthroughd1.Pool", "/org/passthroughd1");
proxies.wait().then(() => { window.pools = Object.values(proxies).map(pool => `${pool.Name} ${pool.Total}`).sort().join(", "); });
END
is($browser->becomes('return window.pools'), 'gpu 8, rdma 128', 'proxies() of a standard client becomes ready');

# ---- What happens elsewhere

is(allocate($bus, 'guest', gpu => 2, rdma => 2), 'done', 'a client allocates');
ok($browser->shows('[data-allocation=guest]', 'ready'), 'the page shows the allocation');
my @gpus = map { $_->{address} } grep { ($_->{slot} // '') =~ /^gpu/ } @{ allocation($bus, 'guest')->{devices} };
ok(device_shows($gpus[0], 'guest'), 'its device has its name');
ok($browser->shows('.job', 'prepare guest'), 'the job is there');
$browser->click('.job summary');
ok($browser->shows('.job li', "bind $gpus[1] to vfio-pci"), 'with its steps');
is(release($bus, 'guest'), 'done', 'it is released');
ok($browser->gone('[data-allocation=guest]'), 'and gone from the page');
ok(device_shows($gpus[0], 'available'), 'its device is available');

is(allocate($bus, 'many', rdma => 9), 'done', 'nine devices');
ok($browser->shows('[data-allocation=many] summary', '9 devices'), 'are folded');
is($browser->script('return document.querySelector("[data-allocation=many] li").checkVisibility()'), JSON::XS::false, 'out of sight');
$browser->click('[data-allocation=many] summary');
ok($browser->shows('[data-allocation=many] li', 'rdma8'), 'until a click');
is(release($bus, 'many'), 'done', 'and released');

# ---- Allocate: planned while typing

my $hostile = qq{<img src=x onerror="document.title='hit'"><b>\x{fc}</b>};
$browser->click('[data-action="Allocate"]');
$browser->fill('[data-pool=gpu]', 9);
ok($browser->shows('.plan-bad', q{Pool 'gpu': 9 wanted, 8 of 8 free.}), 'a refusal while typing');
ok($browser->shows('.plan', q{It would fit with 8 of pool 'gpu'.}), 'with the nearest request');
$browser->fill('[data-pool=gpu]', 8);
ok($browser->shows('.plan', 'gpu7') && $browser->shows('.plan', ' steps, from "'), 'a plan of eight GPUs');
is($browser->becomes('return document.querySelectorAll(".device.planned").length === 8'), 1, 'eight boxes are marked');
$browser->fill('[data-pool=gpu]', 1);
$browser->fill('[data-pool=rdma]', 1);
$browser->fill('[name=cpus]', 8);
$browser->fill('[name=memory]', 20);
ok($browser->shows('.plan', 'PIX to gpu0'), 'the plan says how near they are');
ok($browser->shows('.plan', 'Runner-up:'), 'and what the runner-up is');
is($browser->becomes('return document.querySelectorAll(".device.planned").length === 1'), 1, 'the picture shows it');
picture('plan');
$browser->fill('[name=name]', 'vm1');
$browser->fill('[name=tag]', $hostile);
$browser->click('form [type=submit]');
ok(state_is('vm1', 'ready'), 'the daemon has allocated');
is(allocation($bus, 'vm1')->{tag}, $hostile, 'with the tag');
ok($browser->shows('[data-allocation=vm1]', $hostile), 'which is shown as text');
is($browser->script('return document.querySelectorAll("main img, td b").length + document.title'), '0Devices for guests', 'and is no element');

# ---- An allocation's actions

sub act { my ($name, $action) = @_; return $browser->click(qq{[data-allocation="$name"] [data-action="$action"]}) }

act('vm1', 'Document');
is($browser->becomes('return document.querySelector("dialog textarea")?.value.includes("<name>vm1</name>")'), 1, 'the domain document');
$browser->click('dialog [data-action=Copy]');
ok($browser->shows('.alert', 'Copied.'), 'is copied');
$browser->click('dialog [data-action=Close]');
act('vm1', 'Attach');
$browser->fill('dialog select', 'rdma');
confirm('Attach');
ok($browser->shows('[data-allocation=vm1]', 'rdma1'), 'one more VF is attached');
is(scalar(grep { ($_->{slot} // '') =~ /^rdma/ } @{ allocation($bus, 'vm1')->{devices} }), 2, 'by the daemon');
ok(state_is('vm1', 'ready'), 'it is ready');
act('vm1', 'Detach');
$browser->fill('dialog select', 'rdma1');
confirm('Detach');
ok(wait_until(sub { 1 == grep { ($_->{slot} // '') =~ /^rdma/ } @{ allocation($bus, 'vm1')->{devices} } }), 'and detached');

# ---- Events

$browser->click('[data-allocation=vm1] .pf-m-link');
SKIP: {
        skip 'no journal for the node here', 2 if $ENV{NODE_JOURNAL} ne 'yes';
        ok($browser->shows('.events', q{Reserved 'vm1' for uid 0}), 'the journal tells of its reservation');
        ok($browser->shows('.events', 'ready'), 'and that it was ready');
}

# ---- A problem: the GPU of vm1 is not reset when it comes back

my ($gpu) = map { $_->{address} } grep { ($_->{slot} // '') eq 'gpu0' } @{ allocation($bus, 'vm1')->{devices} };
fault('reset', "fail reset\@$gpu ENOTTY");
ok($browser->becomes('return !document.querySelector("[data-allocation=vm1] [data-action=Release]")?.disabled'), 'it can be released');
act('vm1', 'Release');
ok($browser->shows('dialog', q{No guest runs with 'vm1'}), 'a release asks first');
confirm('Release vm1');
ok(is_gone('vm1'), 'the daemon has released');
fault('reset');
ok($browser->shows('.problem', "$gpu: quarantined"), 'a GPU in quarantine is a problem');
ok($browser->shows('.problem', 'AllowNoReset='), 'with the sentence');
isnt($browser->becomes('return document.querySelector(".problem .note").textContent'), undef, 'and the remedy');
picture('problem');
$browser->click('.problem [data-action="Clear quarantine"]');
ok($browser->gone('.problem'), 'the button clears it');
is(device($bus, $gpu)->{state}, 'available', 'in the daemon');

# ---- A lease

$browser->allocate('later', gpu => 1, hold => 600);
ok($browser->shows('[data-allocation=later]', 'The lease ends at'), 'a reservation, with the end of its lease');
my $end = allocation($bus, 'later')->{lease_end};
act('later', 'Renew for an hour');
ok(wait_until(sub { allocation($bus, 'later')->{lease_end} > $end + 2400e6 }), 'is renewed');
act('later', 'Prepare');
ok(state_is('later', 'ready'), 'is prepared');
$browser->allocate('later', gpu => 1);
ok($browser->shows('.alert', q{'later'}), 'a refusal of the daemon is told') or diag($browser->text('.alerts'));
$browser->click('form [data-action=Cancel]');

# ---- A rescan: the link of the GPU is trained again, of which the kernel tells nothing

my $link = "sys/bus/pci/devices/$gpu/current_link";
fault("set ${link}_width 4", "set ${link}_speed 2.5 GT/s PCIe");
$browser->click('[data-action="Rescan"]');
ok(device_shows($gpu, "PCIe\x{a0}1x4\x{a0}of\x{a0}5x16"), 'the picture shows the link after a rescan');
is(device($bus, $gpu)->{link}{width}, 4, 'which the daemon has read');

# ---- A device and the table

$browser->click(qq{.device[data-address="$gpu"]});
ok($browser->shows('.facts', 'NVIDIA Corporation'), 'a click on a device shows its facts');
$browser->click('[aria-label=Larger]');
is($browser->script('return document.querySelector(".picture").style.fontSize'), '125%', 'a button zooms');
$browser->click('[aria-label=Smaller]');
$browser->click('.vfs');
is($browser->becomes('return document.querySelectorAll(".vfs-rows .device").length'), 16, 'VFs unfold');
$browser->click('[data-action="Show as a table"]');
my $devices = grep { $_->{class} !~ /^060[04]/ } @{ describe($bus)->{devices} };
is($browser->becomes('return document.querySelectorAll("table [data-device]").length'), $devices, 'the table has all devices');
ok($browser->shows('table', 'VF of 0000:14:00.0'), 'the VFs too');
$browser->click('[data-action="Show as a table"]');

# ---- By keyboard alone: an allocation is made and released

sub tab_to {
        my ($test) = @_;
        for (1 .. 200) {
                return 1 if $browser->script("const e = document.activeElement; return Boolean($test)");
                $browser->keys('Tab');
        }
        return 0;
}
$browser->script('document.activeElement.blur()');
ok(tab_to('e.dataset.action === "Allocate"'), 'Tab reaches the button');
$browser->keys('Enter');
ok($browser->becomes('return document.activeElement.name === "name"'), 'Enter opens the form, with the focus on the name');
$browser->keys('keys');
ok(tab_to('e.dataset.pool === "gpu"'), 'Tab reaches the pools');
$browser->keys('1', 'Enter');
ok(state_is('keys', 'ready'), 'Enter allocates');
ok($browser->shows('[data-allocation=keys]', 'ready'), 'the page has it');
ok(tab_to('e.closest("[data-allocation=keys]") && e.dataset.action === "Release" && !e.disabled'), 'Tab reaches its release');
$browser->keys('Enter');
ok($browser->shows('dialog', 'Release keys?'), 'Enter asks');
ok(tab_to('e.dataset.action === "Release keys"'), 'Tab reaches the answer');
$browser->keys('Enter');
ok(is_gone('keys'), 'Enter releases');
ok(tab_to('e.matches(".picture .device")'), 'Tab reaches the picture');
my $first = $browser->script('return document.activeElement.dataset.address');
$browser->keys('Right', 'Enter');
ok($browser->becomes('return document.querySelector("[aria-pressed=true]")?.dataset.address > arguments[0]', $first), 'an arrow goes to the next device, and Enter selects it');

# ---- No more than that

my ($own, $all) = @{ $browser->script(<<'END') };
const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
const sum = entries => entries.reduce((bytes, entry) => bytes + entry.decodedBodySize, 0);
return [sum(loaded.filter(({ name }) => /\/passthrough\//.test(name))), sum(loaded)];
END
note(sprintf 'bytes of the page: %d, with those of Cockpit %d', $own, $all);
cmp_ok($own, '<', 200_000, 'the page is small');

is_deeply([grep { !m{^(?:http|ws)://127\.0\.0\.1:|^(?:data|chrome|about):} } $browser->requests], [], 'nothing is asked of another host');
is_deeply([$browser->errors], [], 'no error is on the console');
$browser->quit;
done_testing;
