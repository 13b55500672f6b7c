#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# GPUs beside a Grace CPU: their VFIO driver, and what a guest lacks is said by each verb.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Guests;
use Hypervisor;
use Node;

use constant DRIVER => 'nvgrace_gpu_vfio_pci';

node_with_guests('gb200', configure => 1);

my $gpu = '0008:06:00.0';
my @vm  = (cpus => 8, memory => 2**33);
configure(slurp("$FindBin::Bin/../nodes/gb200.conf"));
my $bus = Bus->new->listen;

sub plan_of  { return JSON::XS->new->decode($bus->call('Plan', request(@_))->{body}[0]) }
sub warnings { return join "\n", @{ $_[0]{warnings} } }

# ---- its driver

fault('remove sys/bus/pci/drivers/' . DRIVER);
ok(wait_until(sub { warnings(plan_of(gpu => 1)) =~ DRIVER }), 'the driver is not loaded: the plan says so');
like((ctl('explain', $gpu))[1], names(DRIVER, 'modprobe@' . DRIVER . '.service'), 'and "explain", with what to do');
like((ctl('check'))[1], names('memory', DRIVER), 'and "check"');
is(allocate($bus, 'without', gpu => 1, @vm), 'done', 'an allocation');
is(driver_of($gpu), 'vfio-pci', 'has the GPU on the plain driver');
my ($status, $xml, $err) = ctl('xml', 'without');
is($status, 0, 'its document');
like($err,                    names(DRIVER), 'is printed with a warning');
like($xml,                    qr/<passthroughd:warning>[^<]*${\DRIVER}/, 'and has it too');
like((ctl('show', 'without'))[1], names(DRIVER), 'and so has "show"');
is(release($bus, 'without'), 'done', 'released');

fault('driver ' . DRIVER . ' vfio');
ok(wait_until(sub { warnings(plan_of(gpu => 1)) !~ DRIVER }), 'the driver is loaded: no warning');
unlike((ctl('explain', $gpu))[1], names(DRIVER), 'nor by "explain"');
is(allocate($bus, 'grace', gpu => 4, @vm), 'done', 'four GPUs');
is(driver_of($gpu), DRIVER, 'are on it');

# ---- cells for their memory, and the window

($status, $xml, $err) = ctl('xml', 'grace');
like($err,   names($_), "what takes $_ is said") for 'libvirt 11.8', 'QEMU 10.0', 'libvirt 12.7';
unlike($xml, qr/memory="0"|pcihole64/, 'and left out');
is(allocation($bus, 'grace')->{devices}[0]{memory_cells}, undef, 'no cells');

# What libvirt 12.8 reports, until the first GPU has these cells.
sub reports_until {
        my ($cells, @records) = @_;
        write_raw(join '', map { "$_\n" } 'features|maxphysaddr|driver-model|acpi-nodeset|fwcfg|libvirt 12008000|qemu 11000000', 'list', @records, 'complete');
        return wait_until(sub {
                my $process = libvirt_process();
                kill 'HUP', $process if $process;
                return (allocation($bus, 'grace')->{devices}[0]{memory_cells} // '') eq $cells;
        });
}

ok(reports_until('2-4'), 'libvirt 12.8: each GPU has three of 16 nodes');
($status, $xml, $err) = ctl('xml', 'grace');
is(() = $xml =~ /<acpi nodeset="/g, 4, 'as the document has it');
like($xml, qr{<pcihole64 unit="GiB">4096</pcihole64>}, 'and the window');
like($err, names('GuestNodes='), 'which says why there are not more');
like((ctl('show', 'grace'))[1], names('2-4', 'gpu0'), 'and "show" which they are');
spew("$ENV{NODE_TMP}/passthroughd.conf.d/nodes.conf", "[Daemon]\nGuestNodes=64\n") if mkdir "$ENV{NODE_TMP}/passthroughd.conf.d";
is($bus->call('Reload')->{error}, undef, 'GuestNodes=64');
is_deeply([map { $_->{memory_cells} } @{ allocation($bus, 'grace')->{devices} }], ['2-9', '10-17', '18-25', '26-33'], 'eight for each');

ok(reports_until('', running_domain('grace', allocation($bus, 'grace')->{id})), 'a guest runs, which may have started from another document: they are unknown');
ok(reports_until('2-9'), 'it ended: they are those of the next document');

# ---- an attached GPU has none

is(release($bus, 'grace'), 'done', 'released');
is(allocate($bus, 'one', gpu => 1, @vm), 'done', 'one GPU');
hypervisor("$ENV{BUILD}/domain", config => (ctl('xml', 'one'))[1]);
like(ctl_json('attach', 'one', 'gpu=1')->{message} // '', names('memory', 'xml'), 'an attach to its domain, which is shut down, says so');

# ---- the kernel may have pages of 64 KiB

is($bus->call('Plan', request(cpus => 8, memory => 2**33 + 4096))->{error}, 'org.passthroughd1.Error.InvalidRequest', 'memory is a whole number of pages of 64 KiB');
my @cells = @{ plan_of(cpus => 8, cells => 2, memory => 2**30 + 2**16)->{cells} };
is_deeply([map { $_->{memory} % 2**16 } @cells], [0, 0], 'and so is that of each cell') or diag(explain(\@cells));

done_testing();
