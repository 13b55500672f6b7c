# SPDX-License-Identifier: GPL-2.0-or-later
# The machine that the lab's node is: the arguments of its QEMU. tests/lab/README.md draws it.
package Machine;

use strict;
use warnings;

use Exporter qw(import);
use MIME::Base64 qw(encode_base64);

our @EXPORT = qw(interrupt_mode machine_command qemu_command);

use constant { CPUS_PER_NODE => 2, NODE_MEMORY => '2G', HUGEPAGES_PER_NODE => 192, MAC => '52:54:00:00:00' };

my $chassis;

# A root port, or the like, and what is plugged into it.
sub plug {
        my ($bus, $device, @more) = @_;
        $chassis++;
        return (device("pcie-root-port,id=port$chassis,bus=$bus,chassis=$chassis,slot=$chassis"), map { device("$_,bus=port$chassis") } $device, @more);
}

sub device { my ($what) = @_; return ('-device', $what) }

sub switch_port {
        my ($n, $where) = @_;
        return (device("xio3130-downstream,id=down$n,bus=switch,addr=$where,chassis=10$n,slot=10$n"), device("edu,id=switched$n,bus=down$n"));
}

# What CPUs and memory a node has, and a host bridge that is on it.
sub node {
        my ($n, $bus_number) = @_;
        my ($first, $last) = ($n * CPUS_PER_NODE, ($n + 1) * CPUS_PER_NODE - 1);
        return (
                '-object', "memory-backend-ram,id=memory$n,size=" . NODE_MEMORY,
                '-numa',   "node,nodeid=$n,cpus=$first-$last,memdev=memory$n",
                device("pxb-pcie,id=node$n,bus=pcie.0,bus_nr=$bus_number,numa_node=$n"),
        );
}

# What the host stands on: each shares its slot, and so its group, with a function that a pool asks for.
sub host_devices {
        my ($disk) = @_;
        return (
                '-drive', "if=none,id=disk,format=raw,snapshot=on,file=$disk",
                device('virtio-blk-pci,drive=disk,bus=pcie.0,addr=05.0,multifunction=on'),
                device('edu,bus=pcie.0,addr=05.1'),
                '-netdev', 'user,id=uplink,restrict=on',
                device('virtio-net-pci,netdev=uplink,bus=pcie.0,addr=06.0,multifunction=on,romfile=,mac=' . MAC . ':01'),
                device('edu,bus=pcie.0,addr=06.1'),
        );
}

sub node0_devices {
        return (
                plug('node0', 'ati-vga,id=gpu0'),
                plug('node0', 'igb,id=nic0,mac=' . MAC . ':10'),
                plug('node0', 'nvme,id=nvme0,serial=lab0,subsys=nvme-subsys0,sriov_max_vfs=4,sriov_vq_flexible=8,sriov_vi_flexible=4'),
                # A switch whose ports have no ACS, with an endpoint behind each: two ports in one slot, and one in a slot of its own.
                plug('node0', 'x3130-upstream,id=switch'),
                switch_port(0, '00.0,multifunction=on'), switch_port(1, '00.1'), switch_port(2, '01.0'),
        );
}

sub node1_devices {
        return (
                plug('node1', 'ati-vga,id=gpu1'),
                plug('node1', 'igb,id=nic1,mac=' . MAC . ':11'),
                # One card with two functions and no ACS between them.
                plug('node1', 'edu,id=card0,addr=00.0,multifunction=on', 'edu,id=card1,addr=00.1'),
                # A bridge to conventional PCI: behind it there is one requester.
                plug('node1', 'pcie-pci-bridge,id=bridge'),
                device('edu,id=bridged,bus=bridge,addr=01.0'),
                # For the tests to plug into.
                device('pcie-root-port,id=empty,bus=node1,chassis=200,slot=200'),
        );
}

# What a host with passthroughd would tell the machine as its guest, for t/guest-image.t.
sub guest_info {
        my %file = (
                'nccl-topology.xml' => qq{<system version="1">\n  <cpu numaid="0" affinity="00000003" arch="x86_64"/>\n</system>\n},
                'devices.json'      => qq{{"devices":[\n]}\n},
                'services.env'      => "LUPINE_SERVER=gpu1.example.org:14833\n",
        );
        return map { ('-fw_cfg', "name=opt/org.passthroughd1/$_,string=" . encode_base64($file{$_}, '')) } sort keys %file;
}

sub channel {
        my ($name, $backend) = @_;
        return ('-chardev', "$backend,id=$name", device("virtserialport,chardev=$name,name=lab.$name"));
}

sub kernel_command_line {
        my ($extra) = @_;
        my $hugepages = join ',', map { "$_:" . HUGEPAGES_PER_NODE } 0 .. 1;
        # An emulated timer that is late is no reason to panic.
        return join ' ', 'console=ttyS0 panic=-1 no_timer_check net.ifnames=0 intel_iommu=on hugepagesz=2M', "hugepages=$hugepages", $extra;
}

# With extended interrupt mode the kernel uses x2APIC, whose registers are not memory. Without it the end of a timer's interrupt can get lost
# while the kernel boots or moves BARs: on some hosts most machines hung. The QEMU of Debian 12 emulates no x2APIC.
sub interrupt_mode {
        my ($root) = @_;
        open my $file, '<', "$root/etc/debian_version" or die "$root/etc/debian_version: $!\n";
        return <$file> =~ /^12[.]/ ? '' : ',eim=on';
}

# The lab's own QEMU with its own libraries: the system's may be too old.
sub qemu_command {
        my ($root) = @_;
        return ("$root/lib64/ld-linux-x86-64.so.2", '--library-path', "$root/usr/lib/x86_64-linux-gnu", "$root/usr/bin/qemu-system-x86_64",
                map { ('-L', "$root/usr/$_") } qw(share/qemu share/seabios lib/ipxe/qemu));
}

# base: the directory of the base. options: initramfs, the kernel's extra words, sockets for the channels "tap", "control" and "heartbeat",
# for the terminal that echoes and for QMP, a file for the node's journal, and the backend of the console.
sub machine_command {
        my ($base, %options) = @_;
        my $root = "$base/root";
        $chassis = 0;
        return (
                qemu_command($root),
                qw(-nodefaults -nographic -vga none -no-reboot -cpu max -m 4G), '-machine', 'q35,accel=tcg,kernel-irqchip=split',
                '-smp', join(',', 2 * CPUS_PER_NODE, 'sockets=2', 'cores=' . CPUS_PER_NODE, 'threads=1'),
                device('intel-iommu,intremap=on,caching-mode=on,device-iotlb=on' . interrupt_mode($root)),
                '-device', 'nvme-subsys,id=nvme-subsys0',
                node(0, 0x20), node(1, 0x80),
                guest_info(),
                host_devices("$base/disk.img"), node0_devices(), node1_devices(),
                device('virtio-serial-pci,bus=pcie.0,addr=07.0'),
                channel('tap',     "socket,path=$options{tap}"),
                channel('control', "socket,path=$options{control}"),
                channel('journal', "file,path=$options{journal}"),
                channel('heartbeat', "socket,path=$options{heartbeat}"),
                '-chardev', "socket,id=echo,path=$options{echo}", device('virtconsole,chardev=echo'),
                '-chardev', "socket,id=qmp,path=$options{qmp}", '-mon', 'chardev=qmp,mode=control',
                '-chardev', "$options{console},id=console", '-serial', 'chardev:console',
                '-kernel', "$base/kernel", '-initrd', $options{initramfs}, '-append', kernel_command_line($options{words}),
        );
}

1;
