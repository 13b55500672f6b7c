#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# make install and make uninstall, and those for Placement and Slurm, touch what is theirs, wherever they are told to put it. The programs have the changelog's newest version.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use MIME::Base64 qw(encode_base64);
use Test::More;

use Node qw(files_below names slurp spew);

my $source = Cwd::abs_path("$FindBin::Bin/../..");
my $tmp    = tempdir(CLEANUP => 1);
plan skip_all => 'no make' if system('make --version >/dev/null 2>&1') != 0;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR PREFIX)};

# Nothing is built: what is installed need not be programs.
make_path("$tmp/build", "$tmp/cwd");
spew("$tmp/build/$_", "$_\n") for qw(passthroughd passthroughctl passthroughd-holders passthroughd-root passthroughd-endpoints passthroughd-libvirt passthrough-placement passthrough-dra passthroughd-slurm passthrough.so);
my @install   = qw(install install-placement install-slurm install-kubernetes install-cockpit);
my @uninstall = qw(uninstall uninstall-placement uninstall-slurm uninstall-kubernetes uninstall-cockpit);

sub make {
        my (@arguments) = @_;
        my $pid = fork // die $!;
        if (!$pid) {
                open STDOUT, '>', "$tmp/out" or die $!;
                open STDERR, '>&', \*STDOUT or die $!;
                exec 'make', '-C', $source, (map { ('-o', $_) } 'all', map { "$tmp/build/$_" } qw(passthroughd-slurm passthrough.so passthrough-dra)), "BUILD=$tmp/build", @arguments or die $!;
        }
        waitpid $pid, 0;
        return $? >> 8;
}

for my $name ('plain', 'x y', q{it's "quoted"; a&b *}) {
        my $dest = "$tmp/dest/$name";
        make_path($dest, "$tmp/dest/x");
        spew("$dest/mine", "mine\n");
        is(make(@install, "DESTDIR=$dest"), 0, "$name: install") or diag(slurp("$tmp/out"));
        my @files = files_below($dest);
        cmp_ok(scalar @files, ">", 10, "$name: files are there");
        is(slurp("$dest/usr/bin/passthroughctl"), "passthroughctl\n", "$name: a program");
        ok(-e "$dest/etc/passthroughd/passthroughd.conf", "$name: the configuration");
        spew("$dest/etc/passthroughd/passthroughd.conf", "mine too\n");
        is(make(@install, "DESTDIR=$dest"), 0, "$name: once more");
        is(slurp("$dest/etc/passthroughd/passthroughd.conf"), "mine too\n", "$name: the configuration stays");
        is(make(@uninstall, "DESTDIR=$dest"), 0, "$name: uninstall");
        is_deeply([files_below($dest)], ['/etc/passthroughd/passthrough-dra.conf', '/etc/passthroughd/passthrough-placement.conf', '/etc/passthroughd/passthroughd.conf', '/mine'], "$name: what is not ours is left");
}
is_deeply([grep { !m{^/(?:plain|x y|it's)} } files_below("$tmp/dest")], [], 'nothing is anywhere else');

# ---- the files for guests, in an image whose kernel has what the host sends

SKIP: {
        skip 'no systemd-tmpfiles', 6 if system('systemd-tmpfiles --version >/dev/null 2>&1') != 0;
        my ($dest, $image) = ("$tmp/guest", "$tmp/image");
        is(make('install', "DESTDIR=$dest"), 0, 'install') or diag(slurp("$tmp/out"));
        make_path("$image/usr", "$image/etc");
        system('cp', '-r', "$dest/usr/share/passthroughd/guest/lib", "$image/usr/");
        spew("$image/etc/passwd", "root:x:0:0::/root:/bin/sh\n");
        spew("$image/etc/group",  "root:x:0:\n");
        is(system('systemd-tmpfiles', "--root=$image", '--create', 'passthroughd-guest.conf'), 0, 'systemd takes the lines');
        my %sent = ('nccl-topology.xml' => qq{<system version="1">\n</system>\n}, 'devices.json' => qq{{"devices":[\n]}\n});
        for my $file (keys %sent) {
                my $dir = "$image/sys/firmware/qemu_fw_cfg/by_name/opt/org.passthroughd1/$file";
                make_path($dir);
                spew("$dir/raw", encode_base64($sent{$file}, ''));
        }
        # The command of the unit, with the paths of the image, and $ as systemd passes it on.
        my ($script) = slurp("$image/usr/lib/systemd/system/passthroughd-guest.service") =~ /^ExecStart=sh -c '(.*)'$/m;
        is(system('sh', '-c', $script =~ s{\$\$}{\$}gr =~ s{(?<=[ "])/(?=sys/|run/)}{$image/}gr), 0, 'the unit decodes the files');
        is_deeply({ map { s{.*/}{}r => slurp($_) } glob "$image/run/passthroughd/*" }, \%sent, 'which are as they were sent');
        my ($variable) = slurp("$image/usr/lib/environment.d/50-passthroughd.conf") =~ /^NCCL_TOPO_FILE=(.*)/m;
        is(readlink "$image/run/nvidia-topologyd/virtualTopology.xml", $variable, 'NCCL finds it without the variable, too');
        ok(-e "$image$variable", 'at its place');
}

# A part of the name that is a file of somebody's.
make_path("$tmp/u/keep x");
spew("$tmp/u/keep", "mine\n") if !-e "$tmp/u/keep";
is(make(@uninstall, "DESTDIR=$tmp/u/keep x"), 0, 'uninstall from a directory with a blank');
is(slurp("$tmp/u/keep"), "mine\n", 'removes no file that is called like its first word');
for my $variable (qw(PREFIX SYSCONFDIR UNITDIR)) {
        isnt(make('install', "DESTDIR=$tmp/dest", "$variable=/usr/x y"), 0, "a blank in $variable is refused");
        like(slurp("$tmp/out"), qr/\bPREFIX\b/, 'with a sentence');
}

my ($version) = slurp("$source/conf/debian/changelog") =~ /^passthroughd \((\S+)\) / or die 'no version';
my $build = Cwd::abs_path($ENV{BUILD} // "$source/build");
is(scalar `$build/$_ --version`, "$_ $version\n", "$_ has the version of the changelog") for qw(passthroughctl passthroughd);

done_testing();
