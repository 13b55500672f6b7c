#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughctl topology --svg: a well-formed picture that has each device once, boxes that stand in or beside each other, and no end
# to what can be drawn but the limit.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Encode qw(decode);
use File::Copy qw(copy);
use Test::More;

use Bus;
use Node;

use constant LONG => 'a-training-run-with-a-name-much-longer-than-its-column';

node('hgx-h100');

my $bus    = Bus->new->listen;
my $nodes  = "$FindBin::Bin/../nodes";
my $xml    = grep { -x "$_/xmllint" } split /:/, $ENV{PATH};

sub picture {
        my (@arguments) = @_;
        my ($status, $out, $err) = ctl('topology', '--svg', '-', @arguments);
        is($status, 0, "topology --svg @arguments") or diag($err);
        return decode('UTF-8', $out);
}

sub unescaped { my ($s) = @_; return $s =~ s/&lt;/</gr =~ s/&gt;/>/gr =~ s/&quot;/"/gr =~ s/&amp;/&/gr }
sub texts     { my ($svg) = @_; return map { unescaped($_) } $svg =~ m{<text [^>]*>([^<]*)</text>}g }
sub numbers   { my ($attributes, @names) = @_; my %value = $attributes =~ / (\w+)="(-?\d+)"/g; return [@value{@names}] }
sub boxes     { my ($svg) = @_; return map { numbers($_, qw(x y width height)) } $svg =~ m{<rect( [^>]*)/>}g }

sub well_formed {
        my ($svg, $what) = @_;
        SKIP: {
                skip 'no xmllint', 1 if !$xml;
                spew("$ENV{NODE_TMP}/picture.svg", Encode::encode('UTF-8', $svg));
                is(system("xmllint --noout $ENV{NODE_TMP}/picture.svg >$ENV{NODE_TMP}/xmllint 2>&1"), 0, "$what: well-formed") or diag(slurp("$ENV{NODE_TMP}/xmllint"));
        }
        return;
}

# Two boxes have nothing in common, or one is in the other.
sub are_apart { my ($p, $q) = @_; return $p->[0] + $p->[2] <= $q->[0] || $q->[0] + $q->[2] <= $p->[0] || $p->[1] + $p->[3] <= $q->[1] || $q->[1] + $q->[3] <= $p->[1] }
sub is_in     { my ($p, $q) = @_; return $p->[0] >= $q->[0] && $p->[1] >= $q->[1] && $p->[0] + $p->[2] <= $q->[0] + $q->[2] && $p->[1] + $p->[3] <= $q->[1] + $q->[3] }

sub in_order {
        my ($svg, $what) = @_;
        my ($page, @boxes) = boxes($svg);
        my ($width, $height) = $svg =~ m{<svg [^>]*width="(\d+)" height="(\d+)"};
        is_deeply($page, [0, 0, $width, $height], "$what: the page");
        my @wrong;
        for my $i (0 .. $#boxes) {
                push @wrong, "@{$boxes[$i]} is not on the page" if !is_in($boxes[$i], $page);
                push @wrong, map { "@{$boxes[$i]} and @{$boxes[$_]}" } grep { !are_apart($boxes[$i], $boxes[$_]) && !is_in($boxes[$_], $boxes[$i]) } $i + 1 .. $#boxes;
        }
        ok(!@wrong, "$what: boxes are in or beside each other") or diag(join "\n", @wrong[0 .. ($#wrong < 9 ? $#wrong : 9)]);
        cmp_ok(scalar @boxes, '>', 5, "$what: there are some");
        my @outside = grep { $_->[0] < 0 || $_->[0] > $width || $_->[1] < 0 || $_->[1] > $height } map { numbers($_, qw(x y)) } $svg =~ m{<text( [^>]*)>}g;
        ok(!@outside, "$what: text is on the page");
        return;
}

# Each section ends below the last box in it, whatever the one beside it has.
sub as_high_as_content {
        my ($svg, $what) = @_;
        my @boxes    = boxes($svg);
        my @sections = map { numbers($_, qw(x y width height)) } $svg =~ m{<rect( [^>]*fill="#ffffff" stroke="#57606a"[^>]*)/>}g;
        my @slack;
        for my $section (@sections) {
                my ($last) = sort { $b <=> $a } map { $_->[1] + $_->[3] } grep { "@$_" ne "@$section" && is_in($_, $section) } @boxes;
                push @slack, $section->[1] + $section->[3] - $last;
        }
        ok(@sections && !(grep { $_ < 8 || $_ > 32 } @slack), "$what: sections are as high as their content") or diag("@slack");
        return;
}

# Devices and bridges, each as often as it is drawn.
sub drawn { my ($svg) = @_; return sort map { /^(?:[a-z][a-z ]* )?([[:xdigit:]]{4}:\S+\.[0-7])$/ ? $1 : () } texts($svg) }

sub check {
        my ($svg, $what) = @_;
        well_formed($svg, $what);
        in_order($svg, $what);
        as_high_as_content($svg, $what);
        my %seen;
        is(scalar(grep { /^[[:xdigit:]]{4}:\S+\.[0-7]$/ && $seen{$_}++ } texts($svg)), 0, "$what: no device is there twice");
        return;
}

is(allocate($bus, 'vm7', gpu => 2, rdma => 2, cpus => 32, memory => 200 * 2**30, proximity => 'switch'), 'done', 'an allocation');
is(allocate($bus, LONG, gpu => 1, rdma => 3, cpus => 8, memory => 64 * 2**30, 'page-size' => 2**30), 'done', 'one with a long name');
my $node = describe($bus);
my @all  = map { $_->{address} } grep { $_->{type} ne 'vf' } @{ $node->{devices} };

my $svg = picture();
check($svg, 'eight GPUs');
my ($status, $tree) = ctl('topology');
is_deeply([drawn($svg)], [sort $tree =~ /([[:xdigit:]]{4}:[[:xdigit:]]{2}:\S+\.[0-7])/g], 'the same as on a terminal');
my @texts = texts($svg);
my $text  = join "\n", @texts;
like($text, qr/^NUMA node $_, socket $_$/m, "node $_") for 0, 1;
like($text, qr/^root complex pci0000:10\nswitch 0000:11:00\.0$/m, 'root complex and switch');
like($text, qr/^0000:13:00\.0\n.*\ngpu \x{b7} allocated\nvm7\nGPU0$/m, 'a GPU with state, holder and its name in the matrix');
like($text, qr/^16 VFs \x{b7} rdma \x{b7} 15 available\n1 in vm7$/m, 'VFs of a PF share one box');
is_deeply([grep { /\x{2026}$/ && !/a-training/ } @texts], [], 'long names of devices are wrapped, not cut');
like($text, qr/^0000:33:00\.0\n.*\ngpu \x{b7} allocated\na-training\S*\x{2026}$/m, 'a long name is cut');
like($svg, qr/<title>0000:33:00\.0 .*, in allocation ${\LONG},/, 'and whole where the pointer is');
like($text, qr/^56 cores\n35 free, 20 allocated, 1 housekeeping$/m, 'cores');
like($text, qr/^1024 GiB\n423 free, 200 allocated, 1 for the host, 400 in hugepages$/m, 'memory');
like($text, qr/^400 of 1 GiB\n336 free, 64 allocated$/m, 'hugepages');
like($text, qr/^Available: 1 of 4 gpu, 59 of 64 rdma$/m, 'what is left');
like($text, qr/^distance 21 to node 1$/m, 'how far nodes are');
is(scalar(grep { $_ eq 'PIX*' } @texts), 16, 'pairs below one switch, redirected');
like($text, qr/^\* GPU0-NIC0: .*\bredirected by ACS at 0000:12:01\.0/m, 'by which ports');
is(picture(), $svg, 'always the same');

$svg = picture('--all');
check($svg, 'all');
is_deeply([drawn($svg)], [sort @all], 'every device but VFs, once');

# As on a terminal, a device that is reserved has the colour of one that is allocated; only the key has that of unusable ones.
is((ctl('allocate', 'later', 'gpu=1', '--hold=600'))[0], 0, 'a reservation');
$svg = picture();
like($svg, qr/ fill="#7d4e00"[^>]*>gpu \x{b7} reserved</, 'is told');
is(scalar(() = $svg =~ / fill="#ffebe9"/g), 1, 'and drawn as usable');

# To a file.
my $file = "$ENV{NODE_TMP}/node.svg";
spew($file, 'x' x 2**20);
is((ctl('topology', '--svg', $file))[0], 0, 'to a file');
is(decode('UTF-8', slurp($file)), picture(), 'which has the same, and nothing else');
my ($failed, $out, $err) = ctl('topology', '--svg', "$ENV{NODE_TMP}/no/such.svg");
is($failed, 1, 'a file that cannot be made');
like($err, names(qr{/no/such\.svg\b}), 'is named, with the reason');
SKIP: {
        skip 'no /dev/full', 3 if !-w '/dev/full';
        ($failed, $out, $err) = ctl('topology', '--svg', '/dev/full');
        is($failed, 1, 'a full disk');
        like($err, names('/dev/full'), 'is told');
        is(qx(passthroughctl topology --svg - 2>&1 >/dev/full), "passthroughctl: Cannot write: No space left on device\n", 'once');
}
symlink 'node.svg', "$ENV{NODE_TMP}/link.svg" or die $!;
is((ctl('topology', '--svg', "$ENV{NODE_TMP}/link.svg"))[0], 0, 'a link is followed');
is(readlink "$ENV{NODE_TMP}/link.svg", 'node.svg', 'and is one still');
is((ctl('topology', '--svg', '/dev/stdout'))[1], slurp($file), 'a device is written to');
is((ctl('topology', '--svg'))[0], 2, '--svg needs a file');
is((ctl('topology', '--svg', '-', $_))[0], 2, "--svg does not go with $_") for '--json', '--matrix';
is((ctl('list', '--svg', '-'))[0], 2, '--svg is no option of others');

# A device that is gone.
my $lost = allocation($bus, 'vm7')->{devices}[0]{address};
fault("remove sys/bus/pci/devices/$lost");
is(($bus->call('Rescan')->{error}) // '', '', 'a GPU is taken out');
$svg = picture();
check($svg, 'with a device that is gone');
like((join "\n", texts($svg)), qr/^Missing: .*\n(?:.*\n)*?\Q$lost\E\n10de:2330\ngpu \x{b7} missing\nvm7$/m, 'its section says who has it');

# Recorded nodes; the name of one is text like any other.
my $odd = "$ENV{NODE_TMP}/a<b>&\"c'.tree";
copy("$ENV{BUILD}/nodes/domains.tree", $odd) or die $!;
$svg = picture('--node', $odd);
check($svg, 'an odd name');
is((texts($svg))[0], "Topology of a<b>&\"c'.tree", 'is the heading');
for my $name ("\xff.tree", "\xef\xbf\xbf.tree") {
        rename $odd, "$ENV{NODE_TMP}/$name" or die $!;
        $odd = "$ENV{NODE_TMP}/$name";
        is((texts(picture('--node', $odd)))[0], 'Topology', 'and none where it is no text of XML');
}
for my $name (qw(paper-testbed edge connectx gh200)) {
        my @recorded = ('--node', "$ENV{BUILD}/nodes/$name.tree", '--config', "$nodes/$name.conf");
        $svg = picture(@recorded);
        check($svg, $name);
        my @shares = map { /^  (?:cores|memory|hugepages) +\d.*?: ([^;]+)/ ? $1 : () } split /\n/, (ctl('topology', @recorded))[1];
        is_deeply([grep { /^[\d.]+ (?:free|allocated)\b/ } texts($svg)], \@shares, "$name: CPUs and memory are as on a terminal");
        check(picture('--all', @recorded), "$name, all");
}

# Deep below: the boxes do not get too narrow, and nothing is lost.
my ($path, $deep) = ('pci0000:00', "[proc]\ncmdline=ro\n");
for my $bus_number (0 .. 30) {
        $path .= sprintf '/0000:%02x:00.0', $bus_number;
        $deep .= "[sys/devices/$path]\nvendor=0x8086\ndevice=0x1234\nclass=0x060400\nnuma_node=0\nconfig\@0x0e=01\n";
        my $end = $bus_number % 3 ? '' : "$path/" . sprintf '0000:%02x:01.0', $bus_number + 1;
        $deep .= "[sys/devices/$end]\nvendor=0x10de\ndevice=0x2330\nclass=0x030200\nnuma_node=0\n" if $end;
}
spew("$ENV{NODE_TMP}/hand-written.tree", $deep);
is(system("print-node $ENV{NODE_TMP}/hand-written.tree >$ENV{NODE_TMP}/deep.tree"), 0, 'a deep node');
for my $all (0, 1) {
        $svg = picture('--node', "$ENV{NODE_TMP}/deep.tree", $all ? '--all' : ());
        check($svg, 'deep');
        is(scalar(grep { /:01\.0$/ } drawn($svg)), 11, 'each of its GPUs');
}
is(scalar(my @both = drawn($svg)), 42, 'and bridges');

# Where it cannot be written.
like((ctl('topology', '--svg', $_->[0]))[2], names($_->[0]), "$_->[0]: says why")
        for ['/dev/full', 'No space left on device'], [$ENV{NODE_TMP}, 'Is a directory'], ["$ENV{NODE_TMP}/none/x.svg", 'No such file or directory'];

# Many.
is(system("$nodes/generate 1024 >$ENV{NODE_TMP}/generated.tree && print-node $ENV{NODE_TMP}/generated.tree >$ENV{NODE_TMP}/many.tree"), 0, 'a node of 1024 functions');
$svg = picture('--node', "$ENV{NODE_TMP}/many.tree");
well_formed($svg, '1024 functions');
my ($page) = boxes($svg);
ok(!(grep { !is_in($_, $page) } boxes($svg)), 'all boxes are on the page');
is(scalar(grep { /^(?:PIX|PXB|PHB|NODE|SYS)\*?$/ } texts($svg)), 64 * 63 + 5, 'a table of 64 devices, and its legend');
is(scalar(grep { /^\d+-\d+$/ } texts($svg)), 64, 'and the CPUs near each');
is(system("$nodes/generate 4096 >$ENV{NODE_TMP}/generated.tree && print-node $ENV{NODE_TMP}/generated.tree >$ENV{NODE_TMP}/many.tree"), 0, 'a node of 4096 functions');
$svg = picture('--node', "$ENV{NODE_TMP}/many.tree");
well_formed($svg, '4096 functions');
is(scalar(grep { /^\d+ VFs \x{b7} / } texts($svg)), 128, 'VFs of each PF in one box');
cmp_ok(length $svg, '<', 512 * 1024, 'bounded');
like((join "\n", texts($svg)), names(256, 'passthroughctl topology --matrix'), 'no table of 256');

done_testing();
