# SPDX-License-Identifier: GPL-2.0-or-later
# Runs passthroughd-libvirt with tests/hypervisor instead of libvirt, for a program that starts it.
package Hypervisor;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use File::Copy qw(cp);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);

use lib dirname(__FILE__);

use Node;

our @EXPORT = qw(beside_hypervisor hypervisor hypervisor_preload);

my $BUILD = abs_path($ENV{BUILD} // dirname(__FILE__) . '/../../build');

# Returns LD_PRELOAD for passthroughd-libvirt. libasan must be first if the program uses it.
sub hypervisor_preload {
        my ($asan) = `ldd $BUILD/passthroughd-libvirt` =~ m{libasan.* => (/\S+)};
        return join ':', grep { defined } $asan, "$BUILD/tests/hypervisor.so";
}

# Makes a directory with a copy of a program, and with a passthroughd-libvirt for it, which writes its process id into "pid".
sub beside_hypervisor {
        my ($program) = @_;
        my $dir       = tempdir(CLEANUP => 1);
        my $copy      = "$dir/" . basename($program);
        my $preload   = hypervisor_preload();
        cp("$BUILD/$program", $copy) or die "$copy: $!";
        spew("$dir/passthroughd-libvirt", "#!/bin/sh\necho \$\$ >$dir/pid\nLD_PRELOAD=$preload exec $BUILD/passthroughd-libvirt \"\$@\"\n");
        chmod 0755, $copy, "$dir/passthroughd-libvirt";
        return $dir;
}

# Sets the domain files and the behaviour of the libvirt in this directory.
sub hypervisor {
        my ($dir, %files) = @_;
        remove_tree($dir);
        mkdir $dir or die "$dir: $!";
        spew("$dir/$_", $files{$_}) for keys %files;
        return;
}

1;
