#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# While a guest runs, each device is said to be where this guest has it, whatever comes and goes: tests/hypervisor has the document.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Guests;
use Hypervisor;
use Node;

node_with_guests('hgx-h100', configure => 1);
configure(slurp("$FindBin::Bin/../nodes/hgx-h100.conf") =~ s/^\[Daemon\]\n/[Daemon]\nSparePorts=2\n/mr);

my $bus = Bus->new->listen;

sub vm        { return allocation($bus, 'vm') }
sub attach    { return hotplug($bus, 'Attach', 'vm', request(@_)) }
sub detach    { return hotplug($bus, 'Detach', 'vm', 's', @_) }
sub nccl      { return $bus->call('GetNcclTopology', 'sa{sv}', 'vm', [])->{body}[0] }
sub addresses { my ($key) = @_; return { map { $_->{address} => $_->{$key} } grep { $_->{slot} } @{ vm()->{devices} } } }
# The document of a running guest, and one whose root ports have room for the BARs of one more H100 each.
sub with_id   { my ($xml) = @_; return $xml =~ s{<domain (?!id)}{<domain id="1" }r }
sub with_room { my ($xml) = @_; return with_id($xml) =~ s{(?=</domain>)}{<qemu:commandline xmlns:qemu="http://libvirt.org/schemas/domain/qemu/1.0"><qemu:arg value="-global"/><qemu:arg value="pcie-root-port.pref64-reserve=256G"/></qemu:commandline>}r }

sub both { return [map { addresses($_) } qw(guest_address seen_address)] }

# What the document of the running domain has.
sub domain_both {
        my %places = domain_places();
        return [map { my $key = $_; +{ map { $_ => $places{$_}{$key} } keys %places } } qw(guest seen)];
}

# The addresses in the topology, and for each device the one of the switch or "cpu" above it.
sub above {
        my ($topology) = @_;
        my (@open, %above);
        for ($topology =~ /<[^>]+>/g) {
                my ($busid) = /busid="(\S+)"/;
                if ($busid && m{/>}) { $above{$busid} = $open[-1] }
                elsif ($busid || /^<cpu/) { push @open, $busid // 'cpu' if !m{/>} }
                elsif (m{^</(?:pci|cpu)}) { pop @open }
        }
        return \%above;
}

# All answers agree with the document of the running domain.
sub is_as_in_domain {
        my ($what) = @_;
        my $places = domain_both();
        is_deeply(both(), $places, "$what: the addresses are those of the guest") or diag(explain([both(), $places]));
        is_deeply([sort keys %{ above(nccl()) }], [sort grep { defined } values %{ $places->[1] }], "$what: and so are those of the topology");
        return;
}

is(allocate($bus, 'vm', gpu => 2, rdma => 2, cpus => 4, memory => 2**32, numa => 'required'), 'done', 'an allocation');
my ($computed, $topology) = (both(), nccl());
guest_runs($bus, 'vm');
is(allocation_state($bus, 'vm'), 'in-use', 'its guest runs');
is_as_in_domain('at the start');
is_deeply(both(), $computed, 'they are those that were computed');
is(nccl(), $topology, 'and so is the topology');
my $switches = above($topology);

# ---- the BARs of a GPU need room

my $live = with_id((ctl('xml', 'vm'))[1]);
hypervisor("$ENV{BUILD}/domain", live => $live, config => $live);
domain_reports($bus, 'vm');
my $offset = log_since();
fault('reset');
is(attach(gpu => 1), 'failed', 'a port behind an expander has no room for a GPU: failed');
is(writes(), 0, '... before anything is written');
like(log_since($offset), names('vm', '128.1 GiB', '128 GiB'), '... the log has both sizes');
is_deeply([map { $_->{slot} } grep { $_->{slot} && $_->{pool} eq 'gpu' } @{ vm()->{devices} }], ['gpu0', 'gpu1'], '... and the allocation is as before');
$live = with_room($live);
hypervisor("$ENV{BUILD}/domain", live => $live, config => $live);
domain_reports($bus, 'vm');

# ---- devices come and go

for my $slot ('gpu2', 'gpu3') {
        my $before = both();
        is(attach(gpu => 1), 'done', "attach $slot");
        is_as_in_domain("$slot is attached");
        for my $i (0, 1) {
                my $now = both()->[$i];
                is_deeply({ map { $_ => $now->{$_} } keys %{ $before->[$i] } }, $before->[$i], 'what was there stays where it is');
                is(scalar(keys %{ { reverse %$now } }), scalar(keys %$now), 'and nothing else is said to be there');
        }
        my $now = above(nccl());
        is_deeply({ map { $_ => $now->{$_} } keys %$switches }, $switches, 'also in the topology, below the same switches');
        domain_reports($bus, 'vm');
        is_as_in_domain("$slot is attached, and libvirt reports it");
}
is(detach('gpu0'), 'done', 'detach the first');
is_as_in_domain('gpu0 is detached');
domain_reports($bus, 'vm');
is_as_in_domain('gpu0 is detached, and libvirt reports it');
is(attach(rdma => 1), 'done', 'attach a VF');
is_as_in_domain('a VF is attached');
domain_reports($bus, 'vm');

my $document = (ctl('xml', 'vm'))[1];
my %in = map { value_of($_, 'slot') => value_of($_, 'guest') } $document =~ /<passthroughd:device [^>]*>/g;
my %of = map { my ($slot) = /alias name="ua-(\S+?)"/; my ($n, $s, $f) = /<address type="pci" domain="0x0000" bus="0x(\w+)" slot="0x(\w+)" function="0x(\w)"/; $slot => "0000:$n:$s.$f" } $document =~ m{<hostdev .*?</hostdev>}gs;
is_deeply(\%in, \%of, 'a document for the next start agrees with itself');
my ($number) = device_in($bus, 'vm', 'gpu1')->{guest_address} =~ /:(\w+):/;
like((ctl('xml', 'vm', '--device', 'gpu1'))[1], qr/<address type="pci" domain="0x0000" bus="0x$number"/, 'the <hostdev> of a device has the address in the guest');

# ---- a template with controllers and devices of its own moves everything

is(detach($_), 'done', "detach $_") for qw(gpu2 gpu3);
hypervisor("$ENV{BUILD}/domain");
libvirt_reports($bus);
my @before = (both(), nccl());
my $template = <<'END';
<domain type='kvm'><name>t</name><memory>1</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='q35'>hvm</type></os><devices>
<controller type='pci' index='0' model='pcie-root'/>
<controller type='pci' index='1' model='pcie-expander-bus'><target busNr='240'/></controller>
<controller type='pci' index='2' model='pcie-root-port'><address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x0'/></controller>
<controller type='pci' index='3' model='pcie-root-port'/>
</devices></domain>
END
my $options = [['template', ['s', $template]]];
my $started = $bus->call('GetDomainXML', 'sa{sv}', 'vm', $options)->{body}[0] // die 'no document';
my $with    = $bus->call('GetNcclTopology', 'sa{sv}', 'vm', $options)->{body}[0];
$started = with_room($started);
hypervisor("$ENV{BUILD}/domain", live => $started, config => $started);
domain_reports($bus, 'vm');
is_as_in_domain('a template');
is_deeply([map { $_->{guest_address} ne $before[0][0]{ $_->{address} } ? () : $_->{slot} } @{ vm()->{devices} }], [], 'a template: no device is where it would be without');
is(nccl(), $with, 'a template: the topology is the one of the template, which need not be given again');
is(attach(gpu => 1), 'done', 'a template: attach');
is_as_in_domain('a template: one more is attached');
domain_reports($bus, 'vm');

# ---- another daemon, without libvirt

my ($known, $tree) = (both(), nccl());

sub without_libvirt {
        write_raw("die\n");
        daemon('stop');
        kill 'KILL', libvirt_process() || ();
        return;
}

without_libvirt();
is(daemon('start'), 0, 'the next daemon starts, and libvirt does not answer');
is_deeply(both(), $known, 'it knows where the devices are');
is(nccl(), $tree, 'and the topology');
domain_reports($bus, 'vm');
is_as_in_domain('libvirt is back');

# ---- a boot, after which libvirt does not run

# What a document for the next start has.
sub document_has { return { map { value_of($_, 'address') => value_of($_, 'guest') } (ctl('xml', 'vm'))[1] =~ /<passthroughd:device [^>]*>/g } }

without_libvirt();
fault('remove ' . Guests::SOCKET);
other_hand_binds($_, '') for keys %{ $known->[0] };
is(daemon('start'), 0, 'a boot, and libvirt does not run');
is_deeply(addresses('guest_address'), document_has(), 'no guest has outlived it: the addresses are those that the next document has');
unlike(slurp(ledger_file('vm')), qr/"guest"/, 'the record has no place');
fault('set ' . Guests::SOCKET . ' socket');
domain_reports($bus, 'vm');
is_as_in_domain('a guest runs again');

# ---- a guest that was started before an upgrade: the record of its devices has no place

without_libvirt();
my $file   = ledger_file('vm');
my $record = slurp($file);
like($record, qr/"guest": "0000:/, 'the record has the places');
spew($file, $record =~ s/, "guest": "[^"]*"//gr);
is(daemon('start'), 0, 'an upgrade, and libvirt does not answer');
is_deeply([map { values %$_ } @{ both() }], [map { (undef) x keys %$_ } @{ both() }], 'the addresses are unknown');
is_error($bus->call('GetNcclTopology', 'sa{sv}', 'vm', []), 'Unavailable', ['busy', 'vm'], 'and so is the topology');
domain_reports($bus, 'vm');
is_as_in_domain('libvirt reports it');

# ---- what the guest does not have is at no address

my %places = domain_places();
my ($first, @rest) = sort keys %places;
libvirt_reports($bus, running_domain('vm', vm()->{id}, map { "$_ $places{$_}{text}" } @rest));
is(addresses('guest_address')->{$first}, undef, 'unplugged by another hand');
is_deeply([map { $_ // () } @{ addresses('guest_address') }{@rest}], [map { $places{$_}{guest} } @rest], 'the others stay');
my ($slot) = map { $_->{slot} } grep { $_->{address} eq $first } @{ vm()->{devices} };
unlike((ctl('xml', 'vm', '--device', $slot))[1], qr/<address type="pci"/, 'its <hostdev> has no address, which could be taken');

# ---- the guest ends

libvirt_reports($bus);
unlike(slurp($file), qr/"guest"/, 'a guest that ended: the record has no place');
is_deeply(addresses('guest_address'), document_has(), 'the addresses are those that the next document has');
is(release($bus, 'vm'), 'done', 'a release');

# ---- devices alone, in a domain that passthroughd did not write

is(allocate($bus, 'vm', gpu => 1), 'done', 'an allocation without CPUs');
is_deeply([values %{ addresses('seen_address') }], [undef], 'its device has no address in a guest');
my ($n) = vm()->{devices}[0]{address} =~ /:(\w+):/;
$started = "<domain type='kvm'><devices><controller type='pci' index='5' model='pcie-root-port'/><hostdev><source><address domain='0x0000' bus='0x$n' slot='0x00' function='0x0'/></source>"
        . "<address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/></hostdev></devices></domain>";
hypervisor("$ENV{BUILD}/domain", live => $started, config => $started);
domain_reports($bus, 'vm');
is_deeply(both(), [map { my $value = $_; +{ map { $_->{address} => $value } @{ vm()->{devices} } } } '0000:05:00.0', undef], 'it is where the domain has it, below the root bus');
my $before = both();
is(attach(rdma => 1), 'done', 'attach a VF, for which libvirt chooses the place');
for my $i (0, 1) {
        my $now = both()->[$i];
        is_deeply({ map { $_ => $now->{$_} } keys %{ $before->[$i] } }, $before->[$i], 'what was there stays where it is');
}
libvirt_reports($bus);
is(release($bus, 'vm'), 'done', 'a release');

done_testing();
