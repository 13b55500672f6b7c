# SPDX-License-Identifier: GPL-2.0-or-later
# Guests on the lab's node: domains that the daemon wrote, and what their systems saw.
package Guest;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

use Lab;

use Fcntl qw(O_NOCTTY O_RDWR);
use MIME::Base64 qw(decode_base64);

our @EXPORT = qw(domain start_guest slot_order guest_functions guest_lists guest_paths promised_paths guest_memory guest_cpus guest_hears guest_says guest_told qemu_told daemon_tells says nodes_of qemu end_guest);

use constant BOOT_DEADLINE => 240;

sub console { my ($name) = @_; return "/var/log/libvirt/qemu/$name.console" }

# A NIC for a domain, in a network of QEMU's user mode: the guest reaches the addresses of the host. Its own address is in guest-init.
use constant NETWORK => q{<interface type='user'><ip family='ipv4' address='192.168.76.0' prefix='24'/><model type='virtio'/></interface>};

# A guest that lists its devices, as a template. Its kernel says only what is wrong: on the emulated console the rest took half of its boot.
sub template {
        my ($name, $devices, $more) = @_;
        my $console = console($name);
        return <<"END";
<domain type='kvm'>
  <name>$name</name>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>/var/lib/libvirt/images/kernel</kernel>
    <initrd>/var/lib/libvirt/images/initramfs</initrd>
    <cmdline>console=ttyS0 loglevel=4 lab.devices=$devices</cmdline>
  </os>
  <features><acpi/></features>
  <devices><serial type='pty'><log file='$console' append='off'/></serial>$more</devices>
</domain>
END
}

# The file with the domain of an allocation, with devices of its own. What the daemon writes is taken as it is: the emulated CPUs have SVM, so
# that even the type "kvm" and the host's CPU model work.
sub domain {
        my ($name, $devices, $more) = @_;
        my $file = "/tmp/$name.xml";
        spew("/tmp/$name.template", template($name, $devices, $more // ''));
        spew($file, output('passthroughctl', 'xml', $name, '--template', "/tmp/$name.template"));
        return $file;
}

# As an admin does it. Status and errors of "virsh start".
sub start_guest {
        my ($name, $file) = @_;
        output('virsh', 'define', '--validate', $file);
        my ($status, undef, $errors) = command('virsh', 'start', $name);
        return ($status, $errors);
}

# The devices that an allocation gives its guest, in the order of its slots: as the pools were asked for, "gpu0" before "gpu1", and the
# functions of a card in their order.
sub slot_order {
        my ($allocation, @pools) = @_;
        my %place = map { $pools[$_] => $_ } 0 .. $#pools;
        my @keyed;
        for my $device (grep { $_->{guest_address} } @{ $allocation->{devices} }) {
                my ($pool, $index) = $device->{slot} =~ /^(\D+)(\d+)/;
                my ($function)     = $device->{address} =~ /(\d)$/;
                push @keyed, [sprintf('%02d %03d %d', $place{$pool}, $index, $function), $device];
        }
        return map { $_->[1] } sort { $a->[0] cmp $b->[0] } @keyed;
}

# "VENDOR:DEVICE NODE" of what the guest listed, in its order; none when it never came to that.
sub guest_functions {
        my ($name) = @_;
        my $text = wait_until(sub { my $all = join '', lines(console($name)); index($all, 'guest: end of list') >= 0 ? $all : '' }, BOOT_DEADLINE);
        return map { "$_->[0]:$_->[1] $_->[3]" } grep { $_->[2] !~ /^0604/ && $_->[3] >= 0 }
                map { [/0x(\w+) 0x(\w+) 0x(\w+) numa=(-?\d+)/] } ($text =~ /^(guest: \S+:\S+ 0x.*)$/mg);
}

# What the guest has now, as guest_functions(), with the path of each: listed again after a word that no listing had before.
my $listings = 0;

sub guest_lists {
        my ($name)  = @_;
        my $word    = 'again' . ++$listings;
        my $console = guest_hears($name, "list $word");
        guest_says($name, "list $word") or return;
        return map { "$_->[0]:$_->[1] $_->[3] $_->[4]" } grep { $_->[2] !~ /^0604/ && $_->[3] >= 0 }
                map { [/0x(\w+) 0x(\w+) 0x(\w+) numa=(-?\d+) path=(\S+)/] } grep { /^guest: $word / } lines(console($name));
}

# Where it found each, below its root bus: "pci0000:f8/0000:f8:00.0/0000:f9:00.0".
sub guest_paths {
        my ($name) = @_;
        my %path = join('', lines(console($name))) =~ m{^guest: (\S+:\S+) 0x.* path=/sys/devices/(\S+)$}mg;
        return \%path;
}

# The controllers of a document, and what is behind each expander in the order in which firmware comes to it: where each device of an
# allocation has to be found, by its address on the host.
sub promised_paths {
        my ($file) = @_;
        my $xml  = join '', lines($file);
        my $at   = qr/<address type="pci" domain="0x\w+" bus="0x(\w+)" slot="0x(\w+)" function="0x(\w)"/;
        my (%path, %below, %bus, @expanders, %made);
        for ($xml =~ m{<controller type="pci" .*?(?:/>|</controller>)}gs) {
                my ($index) = /index="(\d+)"/;
                if (my ($number) = /busNr="(\d+)"/) { push @expanders, [$index, $number] }
                elsif (my @place = /$at/)          { push @{ $below{ hex $place[0] } }, [$index, hex $place[1], hex $place[2]] }
        }
        my $walk;
        $walk = sub {
                my ($index, $path, $number, $next) = @_;
                for my $port (sort { $a->[1] <=> $b->[1] || $a->[2] <=> $b->[2] } @{ $below{$index} // [] }) {
                        my $made = $$next++;
                        $made{ $port->[0] } = [sprintf('%s/0000:%02x:%02x.%x', $path, $number, @$port[1, 2]), $made];
                        $walk->($port->[0], @{ $made{ $port->[0] } }, $next);
                }
        };
        for (@expanders) {
                my $next = $_->[1] + 1;
                $walk->($_->[0], sprintf('pci0000:%02x', $_->[1]), $_->[1], \$next);
        }
        for ($xml =~ m{<hostdev .*?</hostdev>}gs) {
                my @host  = /<source>\s*<address domain="0x(\w+)" bus="0x(\w+)" slot="0x(\w+)" function="0x(\w)"/ or next;
                my @guest = map { hex } /$at/;
                my $port  = $made{ $guest[0] } // next;
                $path{ sprintf '%s:%s:%s.%s', @host } = sprintf '%s/0000:%02x:%02x.%x', @$port, @guest[1, 2];
        }
        return \%path;
}

sub lines {
        my ($path) = @_;
        open my $file, '<', $path or return;
        return map { s/\r//gr } <$file>;
}

# How many pages of a cell's memory are on which node, and the size of a page in KiB.
sub guest_memory {
        my ($name, $cell) = @_;
        my ($pid)  = split / /, qemu($name);
        my ($line) = grep { /ram-node$cell\b/ } split /\n/, output('cat', "/proc/$pid/numa_maps");
        return ({ ($line // '') =~ /\bN(\d+)=(\d+)/g }, ($line // '') =~ /kernelpagesize_kB=(\d+)/);
}

# For each of its CPUs, the CPUs of its socket; and "topoext" when the CPUs have it.
sub guest_cpus {
        my ($name) = @_;
        my $console = guest_hears($name, 'cpus');
        guest_says($name, 'end of CPUs') or return;
        my $text = join '', lines(console($name));
        my ($flag) = $text =~ /^guest: flags (\w+)/m;
        return ({ $text =~ m{cpu(\d+)/topology/package_cpus_list:(\S+)}g }, $flag);
}

# Types a line on the guest's serial console.
sub guest_hears {
        my ($name, $line) = @_;
        my ($path) = output('virsh', 'ttyconsole', $name) =~ m{^(/dev/pts/\d+)$}m or die "$name has no console\n";
        sysopen my $tty, $path, O_RDWR | O_NOCTTY or die "$path: $!\n";
        syswrite $tty, "$line\n";
        return $tty; # what was typed is lost when it is closed before QEMU has read it
}

sub guest_says {
        my ($name, $words) = @_;
        return wait_until(sub { grep { /^guest: \Q$words\E$/ } lines(console($name)) }, BOOT_DEADLINE);
}

# A line typed on the console of a guest is answered there.
sub says {
        my ($name, $line, $answer) = @_;
        my $console = guest_hears($name, $line);
        return ok(guest_says($name, $answer), "$name: $line: $answer");
}

# The files that the host sent, as the guest reads them, and the number of all in fw_cfg.
sub guest_told {
        my ($name) = @_;
        my $console = guest_hears($name, 'told');
        guest_says($name, 'end of files') or return ({}, undef);
        my $text = join '', lines(console($name));
        my %told = $text =~ /^guest: told (\S+) (\S+)$/mg;
        return ({ map { $_ => decode_base64($told{$_}) } keys %told }, $text =~ /^guest: files (\d+)$/m);
}

# The same, as the command line of its QEMU has it.
sub qemu_told {
        my ($name) = @_;
        my ($pid)  = split / /, qemu($name);
        my @words  = split /\0/, slurp("/proc/$pid/cmdline");
        my %told   = map { /^name=opt\/org\.passthroughd1\/([^,]+),string=(.*)/s } @words;
        return { map { $_ => decode_base64($told{$_}) } keys %told };
}

# The same, as the daemon wrote it into a domain.
sub daemon_tells {
        my ($file) = @_;
        my %told = slurp($file) =~ m{<entry name="opt/org[.]passthroughd1/([^"]+)">([^<]*)</entry>}g;
        return { map { $_ => decode_base64($told{$_}) } keys %told };
}

# Which nodes the pages of a file are on that QEMU has mapped.
sub nodes_of {
        my ($name, $file) = @_;
        my ($pid) = split / /, qemu($name);
        my %pages;
        for my $line (grep { m{ file=\Q$file\E } } split /\n/, output('cat', "/proc/$pid/numa_maps")) {
                while ($line =~ /\bN(\d+)=(\d+)/g) { $pages{$1} += $2 }
        }
        return \%pages;
}

# Its process: pid and time of start; undef when that has ended.
sub qemu {
        my ($name) = @_;
        my $pid    = fact("/run/libvirt/qemu/$name.pid") // return;
        my $stat   = fact("/proc/$pid/stat")             // return;
        return join ' ', $pid, (split ' ', $stat =~ s/.*\)//r)[19];
}

sub end_guest {
        my ($name) = @_;
        command('virsh', 'destroy', $name);
        return output('virsh', 'undefine', $name);
}

1;
