#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Without --config= the configuration is searched for, as systemd does it. The daemon sees directories of ours instead of the machine's.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Path qw(make_path);
use Test::More;

use Node;

node('paper-testbed', configure => 1, root => 1);

my $namespace = "$FindBin::Bin/../private-mounts";
system($namespace, 'true') == 0 or plan skip_all => 'no mount namespaces here';

my %real = (run => '/run', local => '/usr/local/lib', (map { -d "$_->[1]/passthroughd" ? ($_->[0], "$_->[1]/passthroughd") : () } ['etc', '/etc'], ['lib', '/usr/lib']));
my $ours = "$ENV{NODE_TMP}/search";
my @gpu  = ('[Pool gpu]', 'Match=vendor=10de class=0302');
make_path(map { "$ours/$_/passthroughd/passthroughd.conf.d" } qw(run local));
make_path(map { "$ours/$_" } keys %real);

sub put { my ($path, @lines) = @_; spew("$ours/$path", join '', map { "$_\n" } @lines); return }

# The arguments of the daemon, as with-node wrote them, but for --config=, in a mount namespace of its own.
my @args = grep { !/^--config=/ } split /\0/, slurp("$ENV{NODE_TMP}/daemon.args");
my $mounts = join ' && ', map { "mount --bind $ours/$_ $real{$_}" } sort keys %real;
spew("$ENV{NODE_TMP}/daemon.args", join '', map { "$_\0" } $namespace, 'sh', '-c', "$mounts && exec \"\$0\" \"\$@\"", @args);
my $bus = Bus->new->listen;

my $offset = log_since();
is(daemon('restart'), 0, 'without any file the daemon starts');
like(log_since($offset), names('passthroughd.conf'), 'and says that there is none');
is_deeply(describe($bus)->{pools}, [], 'there are no pools');

put('local/passthroughd/passthroughd.conf', @gpu);
put('local/passthroughd/passthroughd.conf.d/10-vf.conf', '[Pool vf]', 'Match=vendor=15b3 type=vf', 'Oops=1');
is($bus->call('Reload')->{error}, undef, 'a main file and a drop-in in /usr/local/lib');
is_deeply([map { $_->{name} } @{ describe($bus)->{pools} }], [qw(gpu vf)], 'are read');
my $problem = '/usr/local/lib/passthroughd/passthroughd.conf.d/10-vf.conf:3: Unknown key';
like(describe($bus)->{config_problems}[0] // '', qr/^\Q$problem/, 'and a line is told by its full name');

put('run/passthroughd/passthroughd.conf', '[Pool run]', 'Match=vendor=10de');
put('run/passthroughd/passthroughd.conf.d/10-vf.conf');
put('run/passthroughd/passthroughd.conf.d/05-more.conf', '[Pool more]', 'Match=vendor=15b3 type=vf');
is($bus->call('Reload')->{error}, undef, 'files in /run go before them');
is_deeply([map { $_->{name} } @{ describe($bus)->{pools} }], [qw(run more)], 'the main file, and a drop-in that is masked');
is_deeply(describe($bus)->{config_problems}, [], 'of which nothing is left');

done_testing();
