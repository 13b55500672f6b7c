#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# What the daemon writes, libvirt's QEMU driver takes as it is: the documents that tests/check-documents keeps of simulated nodes, and
# one of this node, with memory that is shared. The QEMU that it would start for them has the devices, buses and memory that the document
# says, each where it says. None is started: the devices of most are not here.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;
use Text::ParseWords;

use Lab;

use constant { DOCUMENTS => '/usr/lib/lab/documents', OWN => '/tmp/documents.xml', PINNED => '/tmp/pinned.xml', FIRMWARE => '/etc/qemu/firmware/documents.json' };

my %unit   = (KiB => 2**10, MiB => 2**20, GiB => 2**30);
my %driver = (
        'pcie-expander-bus'           => 'pxb-pcie',
        'pcie-root-port'              => 'pcie-root-port',
        'pcie-switch-upstream-port'   => 'x3130-upstream',
        'pcie-switch-downstream-port' => 'xio3130-downstream',
);

# ---- a UEFI, which libvirt has only to know of

sub provide {
        my %flash = map { $_ => { filename => "/usr/share/OVMF/$_.fd", format => 'raw' } } qw(CODE VARS);
        mkdir $_ for '/etc/qemu', '/etc/qemu/firmware';
        spew(FIRMWARE, encode_json({
                description       => 'of the test',
                features          => [],
                tags              => [],
                'interface-types' => ['uefi'],
                mapping           => { device => 'flash', executable => $flash{CODE}, 'nvram-template' => $flash{VARS} },
                targets           => [{ architecture => 'x86_64', machines => ['pc-q35-*'] }],
        }));
        return;
}

sub withdraw {
        local $?;
        ctl(qw(release documents));
        unlink FIRMWARE, OWN, PINNED;
        return map { rmdir } '/etc/qemu/firmware', '/etc/qemu'; # unless there is more in them
}
END { withdraw() }

# ---- a document, read by its text

sub text { my ($path) = @_; open my $file, '<', $path or die "$path: $!\n"; local $/; return scalar <$file> }

sub elements { my ($xml, $name) = @_; return $xml =~ m{<\Q$name\E(?=[\s/>])[^>]*?(?:/>|>.*?</\Q$name\E>)}gs }

sub attribute { my ($element, $name) = @_; return ($element =~ /^<[^>]*\s\Q$name\E="([^"]*)"/)[0] }

sub value { my ($xml, $name) = @_; return ((elements($xml, $name))[0] // '') =~ />([^<]*)</ ? $1 : undef }

sub bytes {
        my ($element, $attribute) = @_;
        my ($n) = $attribute ? attribute($element, $attribute) : $element =~ />(\d+)</;
        return $n * $unit{ attribute($element, 'unit') };
}

# "0-1,3" as a list.
sub numbers { my ($set) = @_; return [map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $set] }

sub host_address { my ($element) = @_; return sprintf '%s:%s:%s.%s', $element =~ /domain="0x(\w+)" bus="0x(\w+)" slot="0x(\w+)" function="0x(\w)"/ }

# Bus, slot and function in the guest; undef where the document leaves that to libvirt.
sub place {
        my ($element) = @_;
        my @at = map { hex } $element =~ /<address type="pci" domain="0x0000" bus="0x(\w+)" slot="0x(\w+)" function="0x(\w)"/ or return;
        return sprintf '%s %x.%x', bus_id($at[0]), @at[1, 2];
}

sub bus_id { my ($index) = @_; return $index ? "pci.$index" : 'pcie.0' }

sub promised_controllers {
        my ($xml) = @_;
        my %controller;
        for (grep { attribute($_, 'type') eq 'pci' && attribute($_, 'index') } elements($xml, 'controller')) {
                my ($number) = /busNr="(\d+)"/;
                my $driver = $driver{ attribute($_, 'model') };
                $controller{ bus_id(attribute($_, 'index')) } = { driver => $driver, number => $number, node => value($_, 'node'), at => scalar place($_) };
        }
        return \%controller;
}

sub promised_devices {
        my ($xml) = @_;
        return {
                map {
                        my ($source) = elements($_, 'source');
                        my ($alias)  = elements($_, 'alias');
                        attribute($alias, 'name') => { host => host_address($source), at => scalar place($_), rom => /<rom bar="off"/ ? 0 : 1 }
                } elements($xml, 'hostdev')
        };
}

sub promised_memory {
        my ($xml)    = @_;
        my ($memory) = elements($xml, 'memory');
        my ($pages)  = elements($xml, 'page');
        my %nodes    = map { attribute($_, 'cellid') => attribute($_, 'nodeset') } grep { attribute($_, 'mode') eq 'strict' } elements($xml, 'memnode');
        my %cells;
        for my $cell (elements($xml, 'cell')) {
                my $id = attribute($cell, 'id');
                $cells{$id} = {
                        cpus      => attribute($cell, 'cpus'),
                        size      => bytes($cell, 'memory'),
                        nodes     => numbers($nodes{$id}),
                        policy    => 'bind',
                        filled    => $xml =~ /<allocation mode="immediate"/ ? 1 : 0,
                        page      => $pages && grep({ $_ == $id } @{ numbers(attribute($pages, 'nodeset')) }) ? bytes($pages, 'size') : 0,
                        distances => { map { attribute($_, 'id') => attribute($_, 'value') } elements($cell, 'sibling') },
                };
        }
        return { size => bytes($memory), cells => \%cells };
}

sub promised_shares {
        my ($xml) = @_;
        return [map { { file => '/dev/shm/' . attribute($_, 'name'), size => bytes((elements($_, 'size'))[0]) } } elements($xml, 'shmem')];
}

# ---- the arguments of QEMU

# Option to its values.
sub arguments {
        my ($line) = @_;
        my @words  = shellwords($line);
        my %option;
        shift @words while $words[0] =~ /^\w+=/;
        shift @words;
        while (@words) {
                my $name = shift @words;
                push @{ $option{$name} }, @words && $words[0] !~ /^-/ ? shift @words : '';
        }
        return \%option;
}

sub decoded { my ($arguments, $option) = @_; return map { decode_json($_) } grep { /^\{/ } @{ $arguments->{$option} // [] } }

sub slot_and_function { my ($device) = @_; return map { hex($_ // 0) } $device->{addr} =~ /^0x(\w+)(?:\.0x(\w))?$/ }

sub given_place { my ($device) = @_; return sprintf '%s %x.%x', $device->{bus}, slot_and_function($device) }

sub is_bus { my ($device) = @_; return ($device->{id} // '') =~ /^pci\.\d+$/ }

# As promised_controllers(), and with a place only for those that were promised one.
sub given_controllers {
        my ($devices, $promised) = @_;
        return {
                map {
                        my $free = !defined(($promised->{ $_->{id} } // {})->{at});
                        $_->{id} => { driver => $_->{driver}, number => $_->{bus_nr}, node => $_->{numa_node}, at => $free ? undef : given_place($_) }
                } grep { is_bus($_) } @$devices
        };
}

sub given_devices {
        my ($devices) = @_;
        return { map { $_->{id} => { host => $_->{host}, at => given_place($_), rom => $_->{rombar} // 1 } } grep { $_->{driver} eq 'vfio-pci' } @$devices };
}

# The size of the pages of the hugetlbfs that a file is on.
sub page_size {
        my ($path) = @_;
        for (split /\n/, text('/proc/mounts')) {
                my (undef, $directory, $type, $options) = split / /;
                next if $type ne 'hugetlbfs' || $path !~ m{^\Q$directory\E/};
                return $1 * $unit{"$2iB"} if $options =~ /\bpagesize=(\d+)([KMG])/;
        }
        return;
}

sub given_memory {
        my ($arguments, $objects) = @_;
        my %cells;
        for (@{ $arguments->{'-numa'} }) {
                if (/^dist,src=(\d+),dst=(\d+),val=(\d+)$/) { $cells{$1}{distances}{$2} = $3; next }
                my ($id, $cpus, $memory) = /^node,nodeid=(\d+),cpus=(\S+),memdev=(\S+)$/ or die "-numa $_\n";
                my $object = $objects->{$memory};
                my $of_file = $object->{'qom-type'} eq 'memory-backend-file';
                $cells{$id} = {
                        cpus      => $cpus =~ s/cpus=//gr,
                        size      => $object->{size},
                        nodes     => $object->{'host-nodes'},
                        policy    => $object->{policy},
                        filled    => $object->{prealloc} ? 1 : 0,
                        page      => $of_file ? page_size($object->{'mem-path'}) : 0,
                        distances => $cells{$id}{distances} // {},
                };
        }
        # What QEMU takes for the distance when it is not told.
        for my $from (keys %cells > 1 ? keys %cells : ()) {
                $cells{$from}{distances}{$_} //= $from == $_ ? 10 : 20 for keys %cells;
        }
        # libvirt 9.0 prints MiB, 11.3 "size=1048576k".
        my ($size, $k) = $arguments->{'-m'}[0] =~ /^(?:size=)?(\d+)(k?)$/ or die "-m $arguments->{'-m'}[0]\n";
        return { size => $size * ($k ? 2**10 : 2**20), cells => \%cells };
}

sub given_shares {
        my ($devices, $objects) = @_;
        my @memory = map { $objects->{ $_->{memdev} } } grep { $_->{driver} eq 'ivshmem-plain' } @$devices;
        return [map { { file => $_->{'mem-path'}, size => $_->{size} } } grep { $_->{share} && $_->{'qom-type'} eq 'memory-backend-file' } @memory];
}

# ---- what firmware makes of them

# Gives each bus behind the bus of that id and number the next number, devices in the order of their slots and functions. The number of
# each is in %$numbers.
sub number_buses {
        my ($devices, $id, $number, $next, $numbers) = @_;
        my %order;
        push @{ $numbers->{$number} }, $id;
        for my $port (grep { is_bus($_) && $_->{driver} ne 'pxb-pcie' && $_->{bus} eq $id } @$devices) {
                $order{ sprintf '%02x.%x', slot_and_function($port) } = $port->{id};
        }
        number_buses($devices, $order{$_}, $$next++, $next, $numbers) for sort keys %order;
        return;
}

sub bus_numbers {
        my ($devices) = @_;
        my %numbers;
        for (['pcie.0', 0], map { [@$_{qw(id bus_nr)}] } grep { $_->{driver} eq 'pxb-pcie' } @$devices) {
                my $next = $_->[1] + 1;
                number_buses($devices, @$_, \$next, \%numbers);
        }
        return \%numbers;
}

# ----

# libvirt 11.3 refuses CPUs that this host does not have. The arguments do not depend on them.
sub native {
        my ($xml, $name) = @_;
        spew(PINNED, $xml =~ s/(<(?:vcpu|emulator|iothread)pin [^>]*cpuset=")[^"]*/${1}0-3/gr);
        my ($status, $out, $err) = command('virsh', 'domxml-to-native', 'qemu-argv', PINNED);
        is($status, 0, "$name: QEMU's arguments") or diag($err);
        return $status ? undef : arguments($out);
}

# What libvirt keeps of the document when it takes it: it drops some things without a word.
sub is_defined {
        my ($file, $name, $xml) = @_;
        my ($status, undef, $err) = command('virsh', 'define', '--validate', $file);
        is($status, 0, "$name: defined") or diag($err);
        return if $status;
        my $kept = output('virsh', 'dumpxml', '--inactive', $name) =~ tr/'/"/r;
        my $pins = sub { [sort $_[0] =~ /<(?:vcpu|emulator|iothread)pin [^>]*>/g] };
        is_deeply($pins->($kept), $pins->($xml), '... with every pinned CPU');
        return output('virsh', 'undefine', '--nvram', $name);
}

sub is_given {
        my ($xml, $arguments) = @_;
        my @devices  = decoded($arguments, '-device');
        my %objects  = map { $_->{id} => $_ } decoded($arguments, '-object');
        my $promised = promised_controllers($xml);
        my $given    = given_controllers(\@devices, $promised);
        my $shares   = promised_shares($xml);
        my @added    = map { (delete $given->{$_})->{driver} } grep { !$promised->{$_} } sort keys %$given;
        is_deeply($given, $promised, '... every expander on its node, and every port');
        # Shared memory is a device of conventional PCI.
        is_deeply([sort @added], [@$shares ? qw(pcie-pci-bridge pcie-root-port) : ()], '... and no more than libvirt needs');
        is_deeply(given_devices(\@devices), promised_devices($xml), '... every device of the host behind its port');
        is_deeply(given_memory($arguments, \%objects), promised_memory($xml), '... every cell on its nodes, of its pages');
        is_deeply(given_shares(\@devices, \%objects), $shares, '... the memory that is shared');

        my $numbers = bus_numbers(\@devices);
        is_deeply([grep { @{ $numbers->{$_} } > 1 || $_ > 255 } keys %$numbers], [], '... every bus gets a number of its own');
        my %number = map { $numbers->{$_}[0] => $_ } keys %$numbers;
        my %told   = map { attribute($_, 'address') => attribute($_, 'seen') } elements($xml, 'passthroughd:device');
        my %seen;
        for my $device (grep { $_->{driver} eq 'vfio-pci' } @devices) {
                $seen{ $device->{host} } = sprintf '0000:%02x:%02x.%x', $number{ $device->{bus} }, slot_and_function($device);
        }
        is_deeply(\%seen, \%told, '... by which the guest sees each device where its owner was told');
        return;
}

sub has_options {
        my ($xml, $arguments) = @_;
        my ($hole)     = elements($xml, 'pcihole64');
        my ($topology) = elements($xml, 'topology');
        my @globals    = @{ $arguments->{'-global'} // [] };
        is_deeply([map { /q35-pcihost\.pci-hole64-size=(\d+)K/ } @globals], [map { bytes($_) / 2**10 } $hole // ()], '... the window for large BARs');
        # libvirt 9.0 does not name clusters.
        is($arguments->{'-smp'}[0] =~ s/,clusters=1\b//r, join(',', value($xml, 'vcpu'), map { "$_=" . attribute($topology, $_) } qw(sockets dies cores threads)), '... the CPUs');
        like($arguments->{'-cpu'}[0],     qr/^host,migratable=off,.*\bhost-phys-bits=on\b/, '... as the host has them');
        my %state = (require => 'on', disable => 'off');
        my @wanted = map { attribute($_, 'name') . '=' . $state{ attribute($_, 'policy') } } elements($xml, 'feature');
        push @wanted, 'kvm-hint-dedicated=on' if elements($xml, 'hint-dedicated');
        push @wanted, $xml =~ /<cache mode="emulate"/ ? ('l3-cache=on', 'host-cache-info=off') : ('host-cache-info=on', 'l3-cache=off');
        my %given = map { $_ => 1 } split /,/, $arguments->{'-cpu'}[0];
        is_deeply([grep { !$given{$_} } @wanted], [], '... with their features and caches') or diag($arguments->{'-cpu'}[0]);
        like($arguments->{'-machine'}[0], qr/\bmem-merge=off\b/,                            '... no pages are merged');
        for my $own (grep { !/^-/ } map { attribute($_, 'value') } elements($xml, 'qemu:arg')) {
                ok(scalar(grep { $_ eq $own } @globals), "... what the site adds, $own");
        }
        return;
}

sub check {
        my ($file) = @_;
        my $xml    = text($file);
        my $name   = value($xml, 'name');
        is_defined($file, $name, $xml);
        my $arguments = native($xml, $name) // return;
        is_given($xml, $arguments);
        has_options($xml, $arguments);
        return;
}

ok(settled(), 'the node is settled');
my $before = drivers();
provide();
# It asks QEMU, once there is KVM.
ok(wait_until(sub { !(command(qw(virsh domcapabilities --virttype kvm --machine q35)))[0] }), 'libvirt knows what QEMU can do');
my @documents = glob DOCUMENTS . '/*.xml';
ok(scalar @documents, 'there are documents');
check($_) for @documents;

my @devices = qw(nic-vf=3 gpu=1 accelerator=4);
my @memory  = (qw(--memory 256M --page-size 2M --shared-memory), 'mpi=32M,halo=4M:2M');
my ($status, $out, $err) = ctl('allocate', 'documents', @devices, qw(--cpus 2 --cells 2), @memory);
is($status, 0, 'allocate') or die $err;
spew(OWN, output(qw(passthroughctl xml documents)));
check(OWN);
is((ctl(qw(release documents)))[0], 0, 'release');
is_deeply(drivers(), $before, 'all drivers are what they were');

done_testing();
