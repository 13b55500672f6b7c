#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The Debian packages: which file is in which, what they depend on, and that they have what "make install" and its like install.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd ();
use File::Temp qw(tempdir);
use Test::More;

use Node qw(files_below slurp);

my $source = Cwd::abs_path("$FindBin::Bin/../..");
my $built  = Cwd::abs_path($ENV{BUILD} // "$source/build");
my $tmp    = tempdir(CLEANUP => 1);
for my $program (qw(make dpkg-deb dpkg-shlibdeps)) {
        plan skip_all => "no $program" if !grep { -x "$_/$program" } split /:/, $ENV{PATH};
}
plan skip_all => 'optional: a sanitized build makes no package' if slurp("$built/passthroughd") =~ /__asan_init|__ubsan_handle/;
delete @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES DESTDIR PREFIX)};

# A build directory of its own: the packages in the other one are of other tests. What is built counts as built with the flags it was built with.
mkdir "$tmp/build" or die $!;
symlink $_, "$tmp/build/" . s{.*/}{}r or die $! for grep { !m{/deb$|\.deb$|\.service$} } glob "$built/*";

sub make {
        my (@arguments) = @_;
        my $pid = fork // die $!;
        if (!$pid) {
                open STDOUT, '>', "$tmp/out" or die $!;
                open STDERR, '>&', \*STDOUT or die $!;
                exec 'make', '-C', $source, "BUILD=$tmp/build", 'FLAGS_NOW=' . slurp("$built/flags") =~ s/\n\z//r, @arguments or die $!;
        }
        waitpid $pid, 0;
        return $? >> 8;
}

is(make('deb'), 0, 'make deb') or diag(slurp("$tmp/out"));
my ($version) = slurp("$source/conf/debian/changelog") =~ /^passthroughd \((\S+)\) /;
chomp(my $architecture = `dpkg --print-architecture`);
my %deb = map { ($_ => "$tmp/build/${_}_${version}_$architecture.deb") } qw(passthroughd passthroughd-kubernetes passthroughd-placement passthroughd-slurm);
$deb{'cockpit-passthrough'} = "$tmp/build/cockpit-passthrough_${version}_all.deb";
is_deeply([sort glob "$tmp/build/*.deb"], [sort values %deb], 'there are five packages of the newest version');

my (%files, %field, %control);
for my $name (sort keys %deb) {
        is(system('dpkg-deb', '-x', $deb{$name}, "$tmp/$name"), 0, "$name is a package") or BAIL_OUT('no package');
        system 'dpkg-deb', '-e', $deb{$name}, "$tmp/$name.control";
        $files{$name}   = [files_below("$tmp/$name")];
        $control{$name} = { map { $_ => slurp("$tmp/$name.control/$_") } map { s{^/}{}r } files_below("$tmp/$name.control") };
        $field{$name}   = { $control{$name}{control} =~ /^([\w-]+): (.*)$/mg };
        is($field{$name}{Package}, $name,    "$name has its name");
        is($field{$name}{Version}, $version, "$name has the version");
        unlike(join('', $control{$name}{control} =~ /\$\{.*/g, map { $_ // '' } @{ $control{$name} }{qw(postinst prerm postrm)}), qr/^\$\{|\@UNIT\@/, "$name: nothing is left to fill in");
        is_deeply([grep { -x "$tmp/$name.control/$_" } qw(postinst prerm postrm)], $name =~ /^cockpit/ ? [] : [qw(postinst prerm postrm)], "$name has its scripts");
}

# ---- Each file

my %owner;
push @{ $owner{$_} }, 'x' for map { @$_ } values %files;
is_deeply([grep { @{ $owner{$_} } > 1 } sort keys %owner], [], 'each file is in one package');

sub own { my ($name) = @_; return [map { s{(/man/.*)\.gz$}{$1}r } grep { !m{^/usr/share/doc/} } @{ $files{$name} }] }

chomp(my $triplet = `dpkg-architecture -qDEB_HOST_MULTIARCH`);
is_deeply(own('passthroughd-placement'), [sort qw(
        /etc/passthroughd/passthrough-placement.conf
        /usr/lib/systemd/system/passthrough-placement.service
        /usr/lib/sysusers.d/passthrough-placement.conf
        /usr/libexec/passthrough-placement
        /usr/share/man/man8/passthrough-placement.8
)], 'passthroughd-placement has the agent');
is_deeply(own('passthroughd-slurm'), [sort "/usr/lib/$triplet/slurm-wlm/passthrough.so", qw(
        /usr/lib/systemd/system/passthroughd-slurm.service
        /usr/libexec/passthroughd-slurm
        /usr/share/man/man7/passthrough-slurm.7
)], 'passthroughd-slurm has the plugin and the service');
is_deeply(own('passthroughd-kubernetes'), [sort qw(
        /etc/passthroughd/passthrough-dra.conf
        /usr/lib/systemd/system/passthrough-dra.service
        /usr/libexec/passthrough-dra
        /usr/share/man/man8/passthrough-dra.8
)], 'passthroughd-kubernetes has the driver');
is_deeply([grep { !m{^/usr/share/cockpit/passthrough/[a-z]+\.(?:js|json|css|html)$} } @{ own('cockpit-passthrough') }], [], 'cockpit-passthrough has the page');
ok((grep { m{/manifest\.json$} } @{ own('cockpit-passthrough') }), 'with its manifest');
my %daemon = map { $_ => 1 } @{ own('passthroughd') };
is_deeply([grep { !$daemon{$_} } qw(
        /etc/passthroughd/passthroughd.conf
        /usr/bin/passthroughctl
        /usr/lib/systemd/system/passthroughd.service
        /usr/lib/sysusers.d/passthroughd.conf
        /usr/sbin/passthroughd
        /usr/share/bash-completion/completions/passthroughctl
        /usr/share/dbus-1/system.d/org.passthroughd1.conf
        /usr/share/man/man1/passthroughctl.1
        /usr/share/man/man7/passthroughd-kubernetes.7
        /usr/share/man/man7/passthroughd-schedulers.7
        /usr/share/man/man8/passthroughd.8
        /usr/share/polkit-1/actions/org.passthroughd1.policy
        /usr/share/zsh/vendor-completions/_passthroughctl
)], [], 'passthroughd has the daemon');
is_deeply([grep { /slurm|placement|-dra|cockpit/ } sort keys %daemon], [], 'and nothing of the others');
ok(-d "$tmp/passthroughd/etc/passthroughd/passthroughd.conf.d", 'there is a place for drop-ins');
for my $name (sort keys %deb) {
        is_deeply([split /\n/, $control{$name}{conffiles} // ''], [grep { m{^/etc/} } @{ $files{$name} }], "$name: files in /etc are the administrator's");
        is_deeply([map { "/$_" } sort map { (split)[1] } split /\n/, $control{$name}{md5sums}], [grep { m{^/usr/} } @{ $files{$name} }], "$name: the others have checksums");
        is_deeply([grep { !-e "$tmp/$name/usr/share/doc/$name/$_" } qw(copyright changelog.gz)], [], "$name has its documents");
}

# ---- The same as without packages

is(make("install$_", "DESTDIR=$tmp/installed", 'PREFIX=/usr'), 0, "make install$_") or diag(slurp("$tmp/out")) for '', '-placement', '-slurm', '-kubernetes', '-cockpit';
my @packaged = sort map { @{ own($_) } } keys %files;
is_deeply([files_below("$tmp/installed")], \@packaged, '"make install" and its like install the same files');
is_deeply([grep { my $file = $_; (grep { -e "$tmp/$_$file" && (stat "$tmp/$_$file")[2] != (stat "$tmp/installed$file")[2] } keys %deb) } @packaged], [], 'with the same rights');

# ---- What they need

sub needs { my ($name, $field) = @_; return { map { /^(\S+)(?: \((.*)\))?$/ } split /, /, $field{$name}{ $field // 'Depends' } // '' } }

unlike($field{passthroughd}{Depends}, qr/curl|slurm|nghttp2|yaml/, 'passthroughd needs nothing of OpenStack, Slurm or Kubernetes');
ok(exists needs('passthroughd')->{"lib$_"}, "passthroughd needs lib$_") for qw(c6 json-c5 pci3 systemd0 virt0);
my $agent = needs('passthroughd-placement');
is($agent->{passthroughd}, "= $version", 'passthroughd-placement needs passthroughd of its version');
ok((grep { /^libcurl/ } keys %$agent), 'and curl');
for my $field (qw(Breaks Replaces)) {
        is(needs('passthroughd-placement', $field)->{passthroughd}, '<< 0.3', "$field: an earlier passthroughd has its files");
}
my $kubernetes = needs('passthroughd-kubernetes');
is($kubernetes->{passthroughd}, "= $version", 'passthroughd-kubernetes needs passthroughd of its version');
for my $library (qw(curl nghttp2 yaml)) { ok((grep { /^lib$library/ } keys %$kubernetes), "and $library") }
is(needs('cockpit-passthrough')->{passthroughd}, ">= $version", 'cockpit-passthrough needs passthroughd');
my $slurm = $field{'passthroughd-slurm'};
ok((grep { /^libslurm\d/ } keys %{ needs('passthroughd-slurm') }), 'passthroughd-slurm needs the library of Slurm');
my ($release) = $slurm->{Depends} =~ /slurm-wlm-basic-plugins \(>= (\d+\.\d+)\), slurm-wlm-basic-plugins \(<< \1\.99\)/;
my @header    = slurp('/usr/include/slurm/slurm_version.h') =~ /SLURM_VERSION_NUMBER\s+0x(..)(..)/;
is($release, sprintf('%02d.%02d', map { hex } @header), 'and the release of Slurm whose plugins it is built for');
is(needs('passthroughd-slurm', 'Recommends')->{passthroughd}, "= $version", 'a host without devices needs the plugin alone');

# ---- Their scripts: each deals with its own service

my %service = (passthroughd => 'passthroughd', 'passthroughd-kubernetes' => 'passthrough-dra', 'passthroughd-placement' => 'passthrough-placement', 'passthroughd-slurm' => 'passthroughd-slurm');
for my $name (sort keys %service) {
        my $scripts = join '', @{ $control{$name} }{qw(postinst prerm postrm)};
        like($scripts, qr/\b\Q$service{$name}\E\.service\b/, "$name: its scripts know its service");
        unlike($scripts, qr/(?<![\w-])\Q$service{$_}\E\.service/, "$name: and not $_") for grep { $_ ne $name } sort keys %service;
}

done_testing();
