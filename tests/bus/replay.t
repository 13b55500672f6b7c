#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded nodes: passthroughctl --node without a daemon says what it says beside one, and leaves nothing behind.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use File::Copy qw(copy);
use File::Temp qw(tempdir);
use JSON::XS;
use POSIX ();
use Storable qw(retrieve store);
use Test::More;
use Time::HiRes qw(sleep time);

use Node qw(names slurp spew ctl wait_until);

# Whatever started this may ignore them, as a shell does for what runs in the background.
$SIG{$_} = 'DEFAULT' for qw(INT HUP TERM);

my $SOURCE = "$FindBin::Bin/../..";
my $JSON   = JSON::XS->new->canonical;

# ---- beside a daemon: replay.t inside NODE CONF FILE writes what each way of asking says

# The requests of tests/check-plans for a node.
sub requests {
        my ($node) = @_;
        my @requests = map { [split / /] } slurp("$SOURCE/tests/check-plans") =~ /^ {4}"\Q$node\E-\S+ (.*)"$/mg;
        push @requests, [qw(--cpus 2 --memory 1G)];
        push @requests, [qw(nic=1 --cpus 2 --memory 1G)], [qw(vf=2)], [qw(gpu=1 disk=1 --numa preferred)] if $node =~ /^edge/;
        return @requests;
}

# One device of each kind and standing that no node before this one had; the file has what they had.
sub sample {
        my ($file) = @_;
        my %seen    = -e $file ? %{ retrieve($file) } : ();
        my $devices = $JSON->decode((ctl(qw(list --all --json)))[1])->{devices};
        my @new     = grep { !$seen{ join ' ', map { $_ // '-' } substr($_->{class}, 0, 4), @$_{qw(state pool driver)} }++ } @$devices;
        store(\%seen, $file);
        return map { $_->{address} } @new;
}

# The UUID is another one each time, and so are the MAC and GUIDs of a VF, of which a daemon keeps what the PF offers.
sub same_document {
        my (@documents) = @_;
        s/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g, s{(<\w+:device [^>]*[^/])>\s*<\w+:attributes [^>]*/>\s*</\w+:device>}{$1/>}g for @documents;
        return @documents;
}

# In memory: a disk is slow to make again what it just removed.
sub space { my ($else) = @_; return tempdir(DIR => -w '/dev/shm' ? '/dev/shm' : $else, CLEANUP => 1) }

# Unpacking a tree takes most of the time of a command, so the trees are unpacked once for all commands.
sub unpacked {
        my (%ways) = @_;
        local $ENV{TMPDIR} = space($ENV{NODE_TMP});
        for my $tree (grep { -f } values %ways) {
                chomp($tree = qx{$ENV{BUILD}/tests/tree-tool unpack $tree});
                die 'tree-tool' if !-d "$tree/sys";
        }
        return %ways;
}

sub ask_all {
        my ($node, $conf, $file) = @_;
        # The daemon reads a copy, whose path is in its answers.
        $conf = (grep { -e } "$ENV{NODE_TMP}/" . $conf =~ s{.*/}{}r, $conf)[0];
        my %said;
        my $now = "$ENV{NODE_TMP}/now.tree";
        spew($now, slurp("$ENV{NODE_ROOT}/.nodesim/tree") =~ s/^%.*\n//mgr);
        my @plans = map { ['plan', @$_, '--json'] } requests($node);
        my @whole = (['list', '--all', '--json'], ['list'], ['topology', '--all'], ['topology', '--matrix'], ['plan', @{ (requests($node))[0] }]);
        my @parts = map { ['show', $_], ['explain', $_, '--json'] } sample("$file.seen"), '0000:ff:1f.7';
        push @parts, ['explain', 'no-such', '--json'];
        my %ways  = ('a directory' => $ENV{NODE_ROOT}, 'a tree of now' => $now);
        $ways{'the recorded tree'} = "$ENV{BUILD}/nodes/$node.tree" if $conf !~ /hgx-h100\.conf$/;
        my $turn  = 0;
        for my $command (@whole, @plans, @parts) {
                my $name = join ' ', @$command;
                $said{$name}{daemon} = [ctl(@$command)];
                my @wanted = $command->[0] =~ /^(?:list|plan|topology)$/ ? sort keys %ways : 'a tree of now';
                # The list has what each way reads of the node, so a plan is asked in one of them.
                @wanted = $wanted[$turn++ % @wanted] if grep { $_ == $command } @plans;
                $said{$name}{$_} = [ctl(@$command, '--node', $ways{$_}, '--config', $conf)] for @wanted;
                # The first command has read the trees themselves. The others read what is unpacked here.
                %ways = unpacked(%ways) if $command == $whole[0];
        }
        if ($node eq 'paper-testbed') {
                my @request = qw(gpu=1 ib-vf=2 --cpus 8 --memory 20G --numa required);
                spew("$ENV{NODE_TMP}/template.xml", "<domain type='kvm'><name>x</name><title>mine</title></domain>\n");
                my @template = ('--template', "$ENV{NODE_TMP}/template.xml");
                my ($failed, undef, $why) = ctl('allocate', 'vm', @request);
                die "allocate: $why" if $failed;
                for my $options ([], \@template) {
                        $said{"xml @$options"}{daemon} = [same_document(ctl('xml', 'vm', @$options))];
                        $said{"xml @$options"}{'a tree'} = [same_document(ctl('xml', 'vm', @request, @$options, '--node', $now, '--config', $conf))];
                }
        }
        store(\%said, $file);
        return;
}

if (@ARGV && $ARGV[0] eq 'inside') {
        ask_all(@ARGV[1 .. 3]);
        exit;
}

# ---- the same answers

$ENV{BUILD} //= "$SOURCE/build";
$ENV{BUILD} = Cwd::abs_path($ENV{BUILD});
plan skip_all => "$ENV{BUILD} is not built" if !-x "$ENV{BUILD}/passthroughctl";

my $TMP = tempdir(CLEANUP => 1);
chmod 0755, $TMP;
$ENV{NODE_TMP} = $TMP;
$ENV{PATH}     = "$ENV{BUILD}:$ENV{PATH}";

# VFs that only a daemon can make are in no recorded tree, and such a tree says that they do not exist: it is asked without VirtualFunctions=.
my %plain = map { $_ => "$TMP/" . s{.*/}{}r =~ s/\.conf$/-plain.conf/r } glob "$SOURCE/tests/nodes/*.conf";
spew($plain{$_}, slurp($_) =~ s/^(VirtualFunctions=)/#$1/mgr) for keys %plain;

# For a difference to be seen: a document as what it holds, text by lines.
sub readable {
        my ($said) = @_;
        my ($status, @texts) = @$said;
        # No file system of ours fails to read as a broken device does: what cannot be opened is in its place.
        s/ \((?:Input\/output error|No such device or address)\)//g for @texts;
        my @documents = map { /^[\[{]/ && eval { $JSON->decode($_) } || [split /\n/] } @texts;
        # No libvirt and no daemon runs on a recorded node.
        delete @{$_}{qw(libvirt sysroot config_file)} for grep { ref eq 'HASH' } @documents;
        return [$status, @documents];
}

sub compare {
        my ($node, $conf) = @_;
        my $file   = "$TMP/said";
        my $status = system("$SOURCE/tests/with-node", "$SOURCE/tests/nodes/$node.tree", '--conf', $conf, '--', $^X, $0, 'inside', $node, $conf, $file);
        return is($status, 0, "$node: with-node") if $status != 0;
        my $said = retrieve($file);
        unlink $file;
        for my $command (sort keys %$said) {
                my $daemon = readable(delete $said->{$command}{daemon});
                is_deeply(readable($said->{$command}{$_}), $daemon, "$command: $_") for sort keys %{ $said->{$command} };
        }
        return;
}

SKIP: {
        skip 'no /dev/fuse', 1 if !-w '/dev/fuse';
        for my $node (map { m{([^/]+)\.tree$} } sort glob "$SOURCE/tests/nodes/*.tree") {
                subtest "$node, as recorded" => sub { compare($node, $plain{"$SOURCE/tests/nodes/$node.conf"} // '/dev/null') };
        }
        subtest 'hgx-h100, with the VFs that the daemon made' => sub { compare('hgx-h100', "$SOURCE/tests/nodes/hgx-h100.conf") };
}

# ---- without any bus, from here on

$ENV{DBUS_SYSTEM_BUS_ADDRESS} = 'unix:path=/nonexistent/bus';
my $NODE = "$ENV{BUILD}/nodes/paper-testbed.tree";
my @NODE = ('--node', $NODE, '--config', "$SOURCE/tests/nodes/paper-testbed.conf");
my $SPACE = space($TMP);
chmod 01777, $SPACE;
$ENV{TMPDIR} = $SPACE;

sub leftovers { return grep { !m{/\.\.?$} } glob "$SPACE/* $SPACE/.*" }

# A failure with one sentence on stderr and nothing on stdout.
sub fails {
        my ($status, $sentence, $name, @command) = @_;
        my ($got, $out, $err) = ctl(@command);
        subtest $name => sub {
                is($got, $status, 'its exit status');
                is($out, '', 'nothing on stdout');
                like($err, $sentence, 'its sentence');
                is($err =~ tr/\n//, 1, 'which is one');
                is_deeply([leftovers()], [], 'nothing is left behind');
        };
        return;
}

my ($status, $out, $err) = ctl('list', @NODE);
is($status, 0, 'a list without a bus');
is($err, '', 'without a complaint');
like($out, qr/^0000:82:00\.0 +gpu +available/m, 'of what is in pools');
is_deeply([leftovers()], [], 'leaves nothing behind');

($status, $out) = ctl('explain', '83:00.0', @NODE);
is($status, 0, 'an explanation');
like($out, names('ib-vf'), 'of a PF says where its VFs are');
unlike($out, qr/Match=/, 'and advises no line that would be refused');

($status, $out, $err) = ctl('show', 'vm', @NODE, '--json');
is($JSON->decode($out)->{error}, 'org.passthroughd1.Error.NoSuchAllocation', 'no allocation is an error with a name');

($status, $out, $err) = ctl('plan', qw(gpu=64), @NODE, '--json');
is($status, 1, 'a refusal');
is($JSON->decode($out)->{verdict}, 'insufficient-devices', 'is a document as beside a daemon');

# ---- what it is asked with

fails(1, names('vm'), 'an allocation', 'show', 'vm', @NODE);
fails(1, names('/nonexistent'), 'no such node', qw(list --node /nonexistent));
fails(1, names('/dev/null'), 'a device', qw(list --node /dev/null));
fails(1, names("$SOURCE/tests", "sys/"), 'a directory of something else', 'list', '--node', "$SOURCE/tests");
spew("$TMP/broken.tree", "sys/bus/pci/devices/0000:00:00.0/vendor=0x8086\n\n# text\nwhat is this\n");
fails(1, qr{broken\.tree:4: }, 'a broken line, after some that were unpacked', 'list', '--node', "$TMP/broken.tree");
fails(1, qr{/nonexistent\.conf}, 'no such configuration', 'list', '--node', $NODE, qw(--config /nonexistent.conf));
spew("$TMP/twice.conf", "[Pool pf]\nMatch=address=0000:83:00.0\n[Pool vf]\nMatch=vendor=15b3 type=vf\n");
fails(1, qr/0000:83:00\.0/, 'a configuration that offers hardware twice', 'list', '--node', $NODE, '--config', "$TMP/twice.conf");

fails(2, names("$_->[0]"), "$_->[0] changes things", @$_, '--node', $NODE)
        for ['allocate', 'vm', 'gpu=1'], ['release', 'vm'], ['rescan'], ['reload'], ['allocations'];
fails(2, qr/--node .*--host/,         'a recorded node on another host', 'list', @NODE, '-H', 'root@elsewhere');
fails(2, names('--config', '--node'), 'a configuration without a node', 'list', '--config', "$TMP/twice.conf");
fails(2, names('gpu=1'),  'a request to xml without a node', qw(xml vm gpu=1));
fails(2, names('xml', '--cpus', '--node'), 'request options too', qw(xml vm --cpus 4));
fails(1, names('CPUs'), 'xml of nothing', 'xml', 'vm', @NODE);
fails(1, names($TMP), 'a directory as a template', 'xml', 'vm', 'gpu=1', '--template', $TMP, @NODE);
fails(2, names("$_"), "nothing as $_", 'xml', 'vm', 'gpu=1', $_, '') for qw(--host --node --config --template --numa);
is_deeply([ctl('plan', 'gpu=1', qw(--cpus 2 --memory 1G --page-size 4K), @NODE)], [ctl('plan', 'gpu=1', qw(--cpus 2 --memory 1G), @NODE)], 'pages of 4 KiB are ordinary ones');
fails(2, names("$_ 0"), "$_ 0", 'plan', 'gpu=1', $_, '0', @NODE) for qw(--cells --page-size --cpus --memory);
is(system("passthroughd $_ >/dev/full") >> 8, 1, "passthroughd $_ that nobody can read") for qw(--help --version);

# ---- configuration

spew("$TMP/recorded.tree", slurp($NODE) . "etc/passthroughd/passthroughd.conf=[Pool gpu]\\nMatch=vendor=10de class=0302\n"
        . "etc/passthroughd/passthroughd.conf.d/nic.conf=[Pool nic]\\nMatch=vendor=15b3 type=vf\\nColour=blue\n");
($status, $out, $err) = ctl('list', '--node', "$TMP/recorded.tree");
is($status, 0, 'the recorded configuration') or diag($err);
like($out, qr/ gpu .* nic /s, 'with its drop-in');
like($err, qr{\A\S*etc/passthroughd/passthroughd\.conf\.d/nic\.conf:3: \S.*\.\n\z}, 'a broken line of it is named, once');
($status, $out) = ctl('list', '--node', "$TMP/recorded.tree", '--config', $NODE[3]);
like($out, qr/ ib-vf /, 'another configuration instead of it');
unlike($out, qr/ nic /, 'hides it');

spew("$TMP/hostile.tree", slurp($NODE) . "etc/passthroughd/passthroughd.conf.d/\e[31m.conf=Colour=red\n");
(undef, undef, $err) = ctl('list', '--node', "$TMP/hostile.tree");
unlike($err, qr/\e/, 'nothing in a recording upsets a terminal');
spew("$TMP/hostile.tree", slurp("$ENV{BUILD}/nodes/edge.tree") =~ s{(/drivers/)}{$1\\x1b[31m}gr);
for my $words (['plan', 'nic=1'], ['plan', 'vf=9'], ['plan', 'vf=1', '--repeat'], ['topology', '--all'], ['list', '--all'], ['explain', '04:00.0'], ['show', '04:00.0']) {
        (undef, $out, $err) = ctl(@$words, '--node', "$TMP/hostile.tree", '--config', "$SOURCE/tests/nodes/edge.conf");
        like("$out$err", qr/\S/, "@$words: it is answered");
        unlike("$out$err", qr/\e/, "@$words: and harmless");
}
for my $words (["--\e[31m"], ['plan', '--cpus', "\xc2\x9b"], ['plan', '--memory', "\e[31m"], ["\e[31m"]) {
        (undef, undef, $err) = ctl(@$words);
        like($err, qr/help/, 'a wrong command line is told');
        unlike($err, qr/\e|\x9b/, '... without what upsets a terminal');
}
(undef, $out) = ctl('list', '--json', '--node', "/\xff");
ok(utf8::decode($out), 'a name that is no UTF-8 is none in JSON');

($status, $out, $err) = ctl('list', '--all', '--node', $NODE);
is($status, 0, 'no configuration at all');
like($out, qr/^0000:82:00\.0 +- /m, 'is no pools');
like($err, names('passthroughd.conf', $NODE), 'and one sentence on that');

spew("$TMP/old.tree", slurp("$ENV{BUILD}/nodes/hgx-h100.tree") =~ s{^.*/sriov_offset=.*\n}{}mgr);
($status, $out, $err) = ctl('plan', 'gpu=1', 'rdma=1', '--node', "$TMP/old.tree", '--config', "$SOURCE/tests/nodes/hgx-h100.conf");
is($status, 1, 'VFs that were not there are not made up when their addresses are unknown');
like($err, names('VirtualFunctions=', '0000:14:00.0'), 'which a warning says');

# ---- a pool of VFs that no pool creates

for (['of a PF, without VirtualFunctions=', "Match=type=vf pf=0000:11:00.0\n", 'VirtualFunctions='], ['of a PF that does not exist', "Match=type=vf pf=0000:99:00.0\nVirtualFunctions=4\n", 'Match=']) {
        my ($what, $lines, $remedy) = @$_;
        spew("$TMP/vfs.conf", "[Pool vf]\n$lines");
        (undef, undef, $err) = ctl('plan', 'vf=1', '--node', "$ENV{BUILD}/nodes/connectx.tree", '--config', "$TMP/vfs.conf");
        like($err, names("'vf'", '0 of 0', $remedy), "VFs $what: refused");
        unlike($err, qr/\breload\b/, '... and no VFs are promised');
}

# ---- anyone, several at once, and not in memory only

SKIP: {
        skip 'only root can be somebody else', 2 if $> != 0;
        copy("$ENV{BUILD}/passthroughctl", "$TMP/passthroughctl");
        copy($NODE, "$TMP/node.tree");
        copy($NODE[3], "$TMP/node.conf");
        chmod 0755, "$TMP/passthroughctl";
        for my $space ($SPACE, '') {
                my @space = $space ? "TMPDIR=$space" : ('-u', 'TMPDIR');
                my $as = 'setpriv --reuid=65534 --regid=65534 --clear-groups';
                my $said = qx{cd / && $as env @space $TMP/passthroughctl plan gpu=1 --node $TMP/node.tree --config $TMP/node.conf 2>&1};
                like($said, qr/0000:82:00\.0/, 'an ordinary user, ' . ($space ? 'on disk' : 'wherever there is room'));
        }
}
is_deeply([leftovers()], [], 'leaves nothing behind');

my @many = map {
        my $pid = fork // die $!;
        if (!$pid) { exec "passthroughctl list @NODE >$TMP/many.$_ 2>&1" or POSIX::_exit(1) }
        $pid;
} 1 .. 8;
my @ends = map { waitpid $_, 0; $? } @many;
is_deeply(\@ends, [(0) x 8], 'eight at once');
is_deeply([map { slurp("$TMP/many.$_") } 2 .. 8], [(slurp("$TMP/many.1")) x 7], 'say the same');
is_deeply([leftovers()], [], 'and leave nothing behind');

# ---- interrupted

qx{$SOURCE/tests/nodes/generate 1024 >$TMP/generated.tree && $ENV{BUILD}/tests/print-node $TMP/generated.tree >$TMP/large.tree};
# Ctrl-C is for all processes of a terminal.
my @ends_of = (['list', 'INT', -1], ['list', 'TERM', 1], ['list', 'HUP', 1], ['list', 'KILL', 1], map { ['snapshot', @$_] } ['INT', -1], ['TERM', 1], ['HUP', 1]);
for (@ends_of) {
        my ($verb, $signal, $whom) = @$_;
        my $name = "$verb, SIG$signal";
        my $pid  = fork // die $!;
        if (!$pid) {
                setpgrp;
                open STDERR, '>', "$TMP/interrupted" or POSIX::_exit(1);
                open STDOUT, '>&', \*STDERR;
                exec 'passthroughctl', $verb, '--node', "$TMP/large.tree" or POSIX::_exit(1);
        }
        ok(wait_until(sub { leftovers() }), "$name: it unpacks");
        kill $signal, $whom * $pid;
        waitpid $pid, 0;
        is($? & 127, POSIX->can("SIG$signal")->(), "$name: it is killed");
        ok(wait_until(sub { !kill 0, -$pid }), "$name: no process is left");
        is(slurp("$TMP/interrupted"), '', "$name: no word is said after it");
        is_deeply([leftovers()], [], "$name: and no file");
}

# Output that nobody takes: what was unpacked is gone before it is written.
{
        my $pid = open my $out, '-|', 'passthroughctl', 'snapshot', '--node', "$TMP/large.tree" or die $!;
        read $out, my $text, 1;
        is_deeply([leftovers()], [], 'snapshot into a pipe: nothing is left while it waits');
        kill 'TERM', $pid;
        ok(wait_until(sub { waitpid($pid, POSIX::WNOHANG()) == $pid }), 'and it can be ended');
        close $out;
}

done_testing();
