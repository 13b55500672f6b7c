# SPDX-License-Identifier: GPL-2.0-or-later
# Guests on the lab's node: domains that the daemon wrote, and what their systems saw.
package Guest;

use strict;
use warnings;

use Exporter qw(import);

use Lab;

our @EXPORT = qw(domain start_guest guest_functions guest_state end_guest);

use constant BOOT_DEADLINE => 240;

sub console { my ($name) = @_; return "/var/log/libvirt/qemu/$name.console" }

# A guest that lists its devices, as a template.
sub template {
        my ($name, $devices) = @_;
        my $console = console($name);
        return <<"END";
<domain type='kvm'>
  <name>$name</name>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>/var/lib/libvirt/images/kernel</kernel>
    <initrd>/var/lib/libvirt/images/initramfs</initrd>
    <cmdline>console=ttyS0 lab.devices=$devices</cmdline>
  </os>
  <features><acpi/></features>
  <devices><serial type='file'><source path='$console'/></serial></devices>
</domain>
END
}

# The file with the domain of an allocation. What the daemon writes is taken as it is: the emulated CPUs have SVM, so that even
# the type "kvm" and the host's CPU model work.
sub domain {
        my ($name, $devices) = @_;
        my $file = "/tmp/$name.xml";
        spew("/tmp/$name.template", template($name, $devices));
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

# "VENDOR:DEVICE NODE" of what the guest listed, in its order; none when it never came to that.
sub guest_functions {
        my ($name) = @_;
        my $text = wait_until(sub { my $all = join '', lines(console($name)); $all =~ /guest: end of list/ ? $all : '' }, BOOT_DEADLINE);
        return map { "$_->[0]:$_->[1] $_->[3]" } grep { $_->[2] !~ /^0604/ && $_->[3] >= 0 }
                map { [/0x(\w+) 0x(\w+) 0x(\w+) numa=(-?\d+)/] } ($text =~ /^(guest: \S+:\S+ 0x.*)$/mg);
}

sub lines {
        my ($path) = @_;
        open my $file, '<', $path or return;
        return map { s/\r//gr } <$file>;
}

sub guest_state { my ($name) = @_; return (split /\n/, (command('virsh', 'domstate', $name))[1])[0] }

sub end_guest {
        my ($name) = @_;
        command('virsh', 'destroy', $name);
        return output('virsh', 'undefine', $name);
}

1;
