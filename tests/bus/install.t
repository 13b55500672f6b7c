#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# make install and make uninstall touch what is theirs, wherever they are told to put it. The programs have the changelog's newest version.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use Test::More;

use Node qw(names slurp spew);

my $source = Cwd::abs_path("$FindBin::Bin/../..");
my $tmp    = tempdir(CLEANUP => 1);
plan skip_all => 'no make' if system('make --version >/dev/null 2>&1') != 0;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR PREFIX)};

# Nothing is built: what is installed need not be programs.
make_path("$tmp/build", "$tmp/cwd");
spew("$tmp/build/$_", "$_\n") for qw(passthroughd passthroughctl passthroughd-holders passthroughd-root passthroughd-libvirt passthrough-placement);

sub make {
        my (@arguments) = @_;
        my $pid = fork // die $!;
        if (!$pid) {
                open STDOUT, '>', "$tmp/out" or die $!;
                open STDERR, '>&', \*STDOUT or die $!;
                exec 'make', '-C', $source, '-o', 'all', "BUILD=$tmp/build", @arguments or die $!;
        }
        waitpid $pid, 0;
        return $? >> 8;
}

sub files_below {
        my ($dir) = @_;
        my @files;
        find({ no_chdir => 1, wanted => sub { push @files, substr $_, length $dir if -f } }, $dir);
        return sort @files;
}

for my $name ('plain', 'x y', q{it's "quoted"; a&b *}) {
        my $dest = "$tmp/dest/$name";
        make_path($dest, "$tmp/dest/x");
        spew("$dest/mine", "mine\n");
        is(make('install', "DESTDIR=$dest"), 0, "$name: install") or diag(slurp("$tmp/out"));
        my @files = files_below($dest);
        cmp_ok(scalar @files, ">", 10, "$name: files are there");
        is(slurp("$dest/usr/bin/passthroughctl"), "passthroughctl\n", "$name: a program");
        ok(-e "$dest/etc/passthroughd/passthroughd.conf", "$name: the configuration");
        spew("$dest/etc/passthroughd/passthroughd.conf", "mine too\n");
        is(make('install', "DESTDIR=$dest"), 0, "$name: once more");
        is(slurp("$dest/etc/passthroughd/passthroughd.conf"), "mine too\n", "$name: the configuration stays");
        is(make('uninstall', "DESTDIR=$dest"), 0, "$name: uninstall");
        is_deeply([files_below($dest)], ['/etc/passthroughd/passthrough-placement.conf', '/etc/passthroughd/passthroughd.conf', '/mine'], "$name: what is not ours is left");
}
is_deeply([grep { !m{^/(?:plain|x y|it's)} } files_below("$tmp/dest")], [], 'nothing is anywhere else');

# A part of the name that is a file of somebody's.
make_path("$tmp/u/keep x");
spew("$tmp/u/keep", "mine\n") if !-e "$tmp/u/keep";
is(make('uninstall', "DESTDIR=$tmp/u/keep x"), 0, 'uninstall from a directory with a blank');
is(slurp("$tmp/u/keep"), "mine\n", 'removes no file that is called like its first word');
for my $variable (qw(PREFIX SYSCONFDIR UNITDIR)) {
        isnt(make('install', "DESTDIR=$tmp/dest", "$variable=/usr/x y"), 0, "a blank in $variable is refused");
        like(slurp("$tmp/out"), qr/\bPREFIX\b/, 'with a sentence');
}

my ($version) = slurp("$source/conf/debian/changelog") =~ /^passthroughd \((\S+)\) / or die 'no version';
my $build = Cwd::abs_path($ENV{BUILD} // "$source/build");
is(scalar `$build/$_ --version`, "$_ $version\n", "$_ has the version of the changelog") for qw(passthroughctl passthroughd);

done_testing();
