#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Every command of the README and every example of the manual pages, as they stand there, on the simulated node.
#
# In a page a command may have a comment of roff in the line before it:
#   .\" test: status N           it ends with that status
#   .\" test: until interrupted  it runs beside the rest of the page, and ends when it is interrupted
#   .\" test: not run, REASON    counted at the end
# What a page shows of the output has to be in the output, line by line; "..." stands for any lines.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Cwd qw(abs_path);
use JSON::XS;
use POSIX ();
use Test::More;

use Node;

delete $ENV{COLUMNS}; # what the pages show has 80 columns

# Whatever started this may ignore them, as a shell does for what runs in the background.
$SIG{$_} = 'DEFAULT' for qw(INT HUP TERM);
use Pages;

my $SOURCE = abs_path("$FindBin::Bin/../..");

sub real { my ($program) = @_; my ($dir) = grep { -x "$_/$program" } split /:/, $ENV{PATH}; return $dir && "$dir/$program" }

for my $program (qw(virsh busctl journalctl jq make dpkg-deb)) {
        plan skip_all => "no $program" if !real($program);
}
node('paper-testbed', configure => 1);

my $BUILT     = abs_path($ENV{BUILD});
my $sanitized = slurp("$BUILT/passthroughd") =~ /__asan_init|__ubsan_handle/;
my $HERE      = "$ENV{NODE_TMP}/examples";                                      # where the reader stands
my $SHIMS     = "$ENV{NODE_TMP}/shims";
my $INSTALLED = "$ENV{NODE_TMP}/installed";
my $DOMAINS   = "$ENV{NODE_TMP}/domains";
my $CONFIG    = "$ENV{NODE_TMP}/passthroughd.conf";
my $POOLS     = slurp("$SOURCE/tests/nodes/paper-testbed.conf");
my $MAKE      = "exec %make% -C $SOURCE BUILD=$BUILT FLAGS_NOW=\"\$(cat $BUILT/flags)\"";

mkdir $_ or die "$_: $!" for $HERE, $SHIMS, $INSTALLED, $DOMAINS, "$ENV{NODE_TMP}/journal";
symlink "$SOURCE/tests", "$HERE/tests" or die $!;
symlink $BUILT, "$HERE/build" or die $!;

# Programs that stand before the real ones, where the real one would reach out of the test.
my %shims = (
        sudo => 'exec "$@"',

        # For the daemon, what the unit says.
        systemctl => <<"END",
case "\$*" in
daemon-reload | 'reload dbus') ;;
'reload passthroughd') eval "\$(sed -n 's,^ExecReload=/usr/bin/,,p' $SOURCE/systemd/passthroughd.service)" ;;
'restart passthroughd') $ENV{NODE_TMP}/restart-daemon ;;
'enable --now passthroughd') passthroughctl list --all >/dev/null ;;
'service-log-level passthroughd '*)
        exec busctl set-property org.passthroughd1 /org/freedesktop/LogControl1 org.freedesktop.LogControl1 LogLevel s "\$3" ;;
*) echo "systemctl \$*: the test does not know this" >&2; exit 64 ;;
esac
END

        # The journal of nobody: what is asked for has to make sense.
        journalctl => <<"END",
case "\$*" in
--update-catalog) exec %journalctl% --root=$INSTALLED "\$@" ;;
*) exec %journalctl% -D $ENV{NODE_TMP}/journal --no-pager "\$@" ;;
esac
END
        # The group is made in what was installed, from what was installed.
        'systemd-sysusers' => <<"END",
mkdir -p $INSTALLED/etc
%systemd-sysusers% --root=$INSTALLED "\$@" && grep -q '^passthrough:' $INSTALLED/etc/group
END
        usermod => <<'END',
[ $# = 3 ] && [ "$1 $2" = '-aG passthrough' ] || { echo "usermod $*: the test does not know this" >&2; exit 64; }
END
        apt => <<'END',
[ "$1" = install ] || { echo "apt $*: the test does not know this" >&2; exit 64; }
shift
for package; do dpkg-deb --info "$package" && dpkg-deb --contents "$package" || exit; done
END

        # What is built counts as built with the flags it was built with; the tests run already.
        make => <<"END",
unset MAKELEVEL
PATH=\${PATH#*:} # what it calls is no command of the README
MAKEFLAGS=\$(echo "\$MAKEFLAGS" | sed 's/ *--jobserver[^ ]*//g; s/ *-j[0-9]*//g')
case "\$*" in
install)
        mkdir -p $INSTALLED/var/lib/systemd/catalog
        $MAKE DESTDIR=$INSTALLED "\$@" ;;
deb) $MAKE "\$@" ;;
*) $MAKE -n "\$@" ;;
esac
END

        # libvirt's test driver forgets when virsh ends: what was defined is defined again in the same process.
        virsh => <<"END",
name() { sed -n 's,.*<name>\\(.*\\)</name>.*,\\1,p' "\$1" | head -n 1; }
for file; do :; done
case \$1 in
define | create) %virsh% -c test:///default "\$@" && cp "\$file" "$DOMAINS/\$(name "\$file")" ;;
start) %virsh% -c test:///default "define $DOMAINS/\$2; start \$2" ;;
destroy) %virsh% -c test:///default "define $DOMAINS/\$2; start \$2; destroy \$2" ;;
undefine) %virsh% -c test:///default "define $DOMAINS/\$2; undefine \$2" && rm "$DOMAINS/\$2" ;;
*) echo "virsh \$*: the test does not know this" >&2; exit 64 ;;
esac
END

        # What it defines is defined for virsh too. Its libvirt is the test driver.
        passthroughctl => <<"END",
[ "\$1" = define ] && %passthroughctl% xml "\$2" >"$DOMAINS/\$2"
LIBVIRT_DEFAULT_URI=test:///default exec %passthroughctl% "\$@"
END

        # Every other host is this one.
        ssh => 'while [ "$1" != -- ]; do shift; done; shift 2; exec sh -c "$*"',
);

for my $name (sort keys %shims) {
        my $text = $shims{$name} =~ s/%([\w-]+)%/real($1)/gre;
        spew("$SHIMS/$name", "#!/bin/sh\n$text\n");
        chmod 0755, "$SHIMS/$name" or die $!;
}
$ENV{PATH}   = "$SHIMS:$ENV{PATH}";
$ENV{LC_ALL} = 'C.UTF-8';
$ENV{BUILD}  = $BUILT;
chdir $HERE or die "$HERE: $!";

my ($run, $not_run) = (0, 0);

# In bash, in a process group of its own.
sub begin {
        my ($command, $out, $err, @limit) = @_;
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        POSIX::setsid();
        open STDIN,  '<', '/dev/null' or die $!;
        open STDOUT, '>', $out        or die $!;
        open STDERR, '>', $err        or die $!;
        exec @limit, 'bash', '-c', $command or die $!;
}

sub status { return $? & 127 ? 128 + ($? & 127) : $? >> 8 }

# What differs each time is not compared: times, UUIDs, the widths of columns, the order of steps of different devices.
sub even {
        my ($text) = @_;
        my @steps = sort $text =~ m{^\[\d+/\d+\] (.*)$}mg;
        $text =~ s{^\[\d+/\d+\] \K.*$}{shift @steps}gem;
        $text =~ s{^(.* step )\d+(/\d+: )}{$1N$2}gm;
        $text =~ s/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d\.\d+Z?/TIME/g;
        $text =~ s/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g;
        $text =~ s/[ \t]+/ /g;
        return $text =~ s/ $//gmr;
}

# Does the output have these lines in this order? A line may end in "..." too.
sub shows {
        my ($output, @shown) = @_;
        my $pattern = join '', map { /^\s*\.\.\.$/ ? '(?:.*\n)*?' : quotemeta =~ s/\\\.\\\.\\\.$/.*/r . '\n' } split /\n/, even(join "\n", @shown);
        return even($output) =~ /^$pattern/m;
}

sub is_shown {
        my ($output, @shown) = @_;
        return !@shown || ok(shows($output, @shown), '... prints what is shown') || diag("shown:\n", map({ "$_\n" } @shown), "printed:\n$output");
}

# One command: its status, and that it prints what is shown.
sub try {
        my ($where, $c) = @_;
        my $want = $c->{test} =~ /^status (\S+)$/ ? $1 : 0;
        waitpid begin($c->{command}, "$HERE/.out", "$HERE/.err", qw(timeout 600)), 0;
        my ($status, $output) = (status(), slurp("$HERE/.out") . slurp("$HERE/.err"));
        $run++;
        like($status, qr/^$want$/, "$where: $c->{command}") or diag($output);
        is_shown($output, @{ $c->{shown} });
        return;
}

sub unique { my (@list) = @_; my %seen; return grep { !$seen{$_}++ } @list }

# A configuration as it stands there: the daemon takes it and has nothing to say.
sub try_config {
        my ($where, $text) = @_;
        spew($CONFIG, $text);
        my ($status, undef, $err) = ctl('reload');
        $run++;
        is("$status $err", '0 ', "$where: a configuration is read without a problem") or diag($text);
        is_deeply([map { $_->{name} } @{ describe(Bus->new)->{pools} }], [unique($text =~ /^\[Pool (\S+)\]/mg)], '... and makes its pools');
        return;
}

# The README is a story: the daemon has no configuration until the first one is written.
sub try_readme {
        my $before  = tree();
        my $written = 0;
        for (readme_blocks("$SOURCE/README.md")) {
                my ($kind, $text) = @$_;
                if ($kind eq 'ini') {
                        try_config('README', $text) if $written;
                        spew($CONFIG, $text) if !$written++;
                }
                next if $kind ne 'sh';
                for my $line (grep { /\S/ } map { s/(?:^|\s)#.*//r } split /\n/, $text) {
                        if ($sanitized && $line =~ /^make deb$|_\*\.deb$/) {
                                $not_run++;
                                note("not run, a sanitized build makes no package: $line");
                                next;
                        }
                        # Of this machine, which need not be ready.
                        try('README', { command => $line, shown => [], test => $line =~ / check$/ ? 'status [012]' : '' });
                }
        }
        ok(-s 'node.tree', 'this machine was recorded');
        is_deeply(describe(Bus->new)->{config_problems}, [], 'the configuration of the README has no problem');
        same_tree($before, 'at its end the node is as it was');
        return;
}

# What the pages take for given: a node with pools, the recording of another one, a template.
sub set_the_scene {
        spew($CONFIG, $POOLS);
        restart();
        release_all(Bus->new->listen);
        system('rm', '-rf', glob "$HERE/*") == 0 or die 'rm';
        spew("$HERE/node7.tree", slurp("$ENV{BUILD}/nodes/paper-testbed.tree"));
        spew("$HERE/new.conf",   $POOLS);
        spew("$HERE/worker.xml", "<domain type='kvm'>\n  <name>worker</name>\n  <memory>1</memory>\n  <os><type>hvm</type></os>\n</domain>\n");
        return;
}

# What runs beside the page is let run until it has printed what is shown.
sub end_beside {
        my ($page, $c) = @_;
        wait_until(sub { shows(slurp($c->{out}), @{ $c->{shown} }) }) if @{ $c->{shown} };
        kill 'INT', -$c->{pid};
        waitpid $c->{pid}, 0;
        $run++;
        like(status(), qr/^(?:0|130)$/, "$page: until it is interrupted: $c->{command}") or diag(slurp("$c->{out}.err"));
        is_shown(slurp($c->{out}), @{ $c->{shown} });
        return;
}

sub try_commands {
        my ($page, $text, $beside) = @_;
        for my $c (commands($text)) {
                if ($c->{test} =~ /^not run, /) {
                        $not_run++;
                        note("$page: $c->{test}: $c->{command}");
                } elsif ($c->{test} eq 'until interrupted') {
                        $c->{out} = "$ENV{NODE_TMP}/beside" . @$beside;
                        $c->{pid} = begin($c->{command}, $c->{out}, "$c->{out}.err");
                        push @$beside, $c;
                        wait_until(sub { -s $c->{out} }) if @{ $c->{shown} };
                } else {
                        try($page, $c);
                }
        }
        return;
}

sub try_page {
        my ($page, @blocks) = @_;
        my @beside;
        ok(@blocks > 0, "$page has examples");
        set_the_scene();
        for (@blocks) {
                my ($kind, $text) = @$_;
                if ($kind eq 'sh') {
                        try_commands($page, $text, \@beside);
                } elsif ($kind eq 'ini') {
                        try_config($page, $text);
                } elsif ($kind eq 'json') {
                        $run++;
                        ok(eval { JSON::XS->new->utf8->decode($text) }, "$page: a JSON document") or diag($@, $text);
                } else {
                        fail("$page: an example is commands after '\$ ' or '# ', configuration or JSON") or diag($text);
                }
        }
        end_beside($page, $_) for @beside;
        ok(wait_until(sub { !@{ describe(Bus->new)->{allocations} } }), "$page: what it allocates it releases");
        return;
}

restart();
try_readme();
try_page(m{([^/]+)$}, page_blocks($_)) for sort glob "$SOURCE/man/*.[1-8]";
diag("$run examples ran, $not_run did not");
done_testing();
