#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# passthroughd-root does what the configuration, sysfs and the ledger on disk say and nothing else, whatever it is asked for.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Errno qw(EPERM EINVAL ENOENT EPROTONOSUPPORT);
use JSON::XS ();
use POSIX ();
use Test::More;

use Node;
use Wire;

use constant { STOP => 0, START => 1, CLEAN => 2, SET_OPTIONS => 3, REMOVE_OPTIONS => 4, PLUG => 5, ACTIVATE => 6, DEACTIVATE => 7, MODULE => 9, PERSISTENCE => 11, SET_PERSISTENCE => 12, CHECK_GPU => 13 };
use constant { ATTACH => 0, DETACH => 1, DONE => 0, FAILED => 2 };
use constant { MARK => "# Written by passthroughd\n", DEADLINE => 90 };

node('hgx-h100', configure => 1);

my $dir     = "$ENV{NODE_TMP}/systemd";
my $options = "$ENV{MODPROBE_DIRECTORY}/passthroughd.conf";
mkdir $dir or die "$dir: $!";
spew("$dir/log",                  '');
spew("$dir/command.state",        "0\n");
spew("$dir/$_.service.state", "active\n") for qw(configured other);
my $systemd = fork // die "fork: $!";
if (!$systemd) { exec 'fake-systemd', $dir or die "fake-systemd: $!" }
END { my $status = $?; kill 'TERM', $systemd if $systemd; $? = $status }
my $conf    = "$ENV{NODE_TMP}/passthroughd.conf";
my $command = "$ENV{NODE_TMP}/clean";
my $gpus    = "[Pool gpu]\nMatch=vendor=10de class=03\n";
my $nics    = "[Pool nic]\nMatch=vendor=15b3 type=pf\n";
my $pools   = "$gpus\nStopServices=configured.service\nCleanerCommand=$command --all\n$nics";
spew($command, "#!/bin/sh\n");
configure($pools);
ok(wait_until(sub { system('busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" status org.freedesktop.systemd1 >/dev/null 2>&1') == 0 }), 'there is a systemd');

# What the service answers to a message: its result, and the exit status of a command; () when it only hangs up.
sub answer {
        my ($result, $bytes) = wire_ask($ENV{ROOT_SOCKET}, @_);
        return defined $result ? ($result, unpack 'l', $bytes) : ();
}

# The results of a question about GPUs, which end the answer.
sub gpu_results {
        my ($action, @gpus) = @_;
        my ($result, $answer) = wire_ask($ENV{ROOT_SOCKET}, root_request($action, '', join '', @gpus));
        return (unpack 'l64', substr $answer, -256)[0 .. $#gpus];
}

sub root_request {
        my ($action, $name, $payload) = @_;
        my $end = POSIX::floor((Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) + DEADLINE) * 1e6);
        return wire_message($action, pack('Z256 Q', $name, $end) . ($payload // ''));
}

sub ask { return (answer(root_request(@_)))[0] }

sub address { my ($bus, $slot, $function, $instance, $domain) = @_; return pack 'L CCCC', $domain // 0, $bus, $slot // 0, $function // 0, $instance // 0 }
sub calls { return split /\n/, slurp("$dir/log") }

# ---- units

is(ask(STOP,  'configured.service'), 0, 'a unit of StopServices= is stopped');
is(ask(START, 'configured.service'), 0, '... and started');
is_deeply([calls()], ['stop configured.service', 'start configured.service'], '... by systemd');
spew("$dir/log", '');
for my $name ('other.service', 'configured', 'configured.service ', 'Configured.service', 'gpu', '', 'x' x 300) {
        is(ask(STOP,  $name), -EPERM, "unit '$name' is not stopped");
        is(ask(START, $name), -EPERM, "unit '$name' is not started");
}
is_deeply([calls()], [], 'systemd was not asked');

# ---- commands

# Two GPUs on their way back, a third that a guest has, and a NIC on its way back. The daemon stops, and only the files tell.
my $bus = Bus->new->listen;
is(allocate($bus, 'back',  gpu => 2), 'done', 'two GPUs are allocated');
is(allocate($bus, 'guest', gpu => 1), 'done', '... and one more');
is(allocate($bus, 'nic',   nic => 1), 'done', '... and a NIC');
daemon('stop');

sub record { my ($name) = @_; return "$ENV{STATE_DIRECTORY}/allocations/$name.json" }

# Rewrites the file of an allocation, or puts a device of it into another file.
sub rewrite {
        my ($name, $change, $file) = @_;
        my $json = JSON::XS->new->canonical;
        my $a    = $json->decode(slurp(record($name)));
        $change->($a);
        spew($file // record($name), $json->encode($a));
        return $a;
}
sub packed { my ($device) = @_; my @parts = map { hex } $device->{address} =~ /^0000:(..):(..)\.(.)$/; return address(@parts) }
sub state_of { my ($name, $state) = @_; return map { packed($_) } @{ rewrite($name, sub { $_[0]{state} = $state })->{devices} } }

my ($one, $two) = state_of('back', 'releasing');
my ($used) = state_of('guest', 'ready');
my ($nic)  = state_of('nic',   'releasing');

spew("$dir/log", '');
is(ask(CLEAN, 'gpu', $one . $two), 0, 'the command of a pool runs');
like((calls())[0], names($command, '--all'), '... as it is configured');
is(scalar(() = (calls())[0] =~ /0000:/g), 2, '... with the devices');
spew("$dir/log", '');
is(ask(CLEAN, $_, $one), -EPERM, "pool '$_' has no command") for 'nic', 'none', '', '/bin/sh';
is(ask(CLEAN, 'gpu', $_), -EINVAL, 'what is no device is refused') for '', 'x', $one . 'x', '--help' x 4 . 'x';
is(ask(CLEAN, 'gpu', $used), -EPERM, 'a device that a guest has is not cleaned');
is(ask(CLEAN, 'gpu', $one . $used), -EPERM, '... nor together with one on its way back');
is(ask(CLEAN, 'gpu', $nic), -EPERM, 'nor is a device of another pool');
is(ask(CLEAN, 'gpu', address(@$_)), -EPERM, 'nor is an address that no device has: ' . join '.', @$_) for [0xfe], [0x13, 40, 9], [0x13, 0, 0, 200], [255, 255, 255, 255], [(255) x 4, 2**32 - 1];
# The text of such an address is longer than that of any device.
is(ask($_, '', address((255) x 4, 2**32 - 1)), -EPERM, "action $_: nor one that no device can have") for MODULE, PERSISTENCE, SET_PERSISTENCE, CHECK_GPU;
spew($conf, $pools =~ s/Match=vendor=10de class=03/Match=address=0000:fe:00.0/r);
is(ask(CLEAN, 'gpu', $one), -EPERM, 'nor is a device that has left its pool');
spew($conf, $pools);

for my $state (qw(preparing ready failed)) {
        state_of('back', $state);
        is(ask(CLEAN, 'gpu', $one), -EPERM, "nor is one of an allocation that is $state");
}
rewrite('back', sub { $_[0]{devices}[0]{phase} = 'detaching'; $_[0]{state} = 'ready' });
is(ask(CLEAN, 'gpu', $one), 0, 'a device on its way out of its guest is cleaned');
is(ask(CLEAN, 'gpu', $two), -EPERM, '... and the other device of the guest is not');
chmod 0770, "$ENV{STATE_DIRECTORY}/allocations" or die $!;
is(ask(CLEAN, 'gpu', $one), -EPERM, 'a ledger that others can write to permits nothing');
chmod 0700, "$ENV{STATE_DIRECTORY}/allocations" or die $!;
state_of('back', 'ready');
my $quarantined = "$ENV{STATE_DIRECTORY}/quarantine/x.json";
rewrite('back', sub { $_[0]{state} = 'releasing'; $#{ $_[0]{devices} } = 0 }, $quarantined);
is(ask(CLEAN, 'gpu', $one), -EPERM, 'nor is one on its way out of quarantine that an allocation has');
rename record('back'), "$ENV{NODE_TMP}/back.json" or die $!;
is(ask(CLEAN, 'gpu', $one), 0, 'a device is cleaned that is on its way out of quarantine');
unlink $quarantined or die "$quarantined: $!";
rename "$ENV{NODE_TMP}/back.json", record('back') or die $!;

# ---- files that claim a device too

# Calls check() with a file of the ledger beside the others: the text, or what make() puts there.
sub beside {
        my ($check, $name, $make) = @_;
        for my $path ("$ENV{STATE_DIRECTORY}/allocations/$name.json", "$ENV{STATE_DIRECTORY}/quarantine/$name.json") {
                ref $make ? $make->($path) : spew($path, $make);
                $check->("$name in " . ($path =~ m{(\w+)/[^/]+$})[0]);
                unlink $path or rmdir $path or die "$path: $!";
        }
        return;
}
# A copy of a file with another name and this change.
sub copy { my ($of, $change) = @_; my $json = JSON::XS->new->canonical; my $a = $json->decode(slurp(record($of))); $a->{name} = 'aaa'; $change->($a); return $json->encode($a) }
my %unusable = (
        damaged => substr(slurp(record('nic')), 0, 100), empty => '', text => 'text', newer => slurp(record('nic')) =~ s/("version": ?)\d+/${1}99/r,
        large => ' ' x 300_000, pipe => sub { POSIX::mkfifo($_[0], 0600) or die $! }, directory => sub { mkdir $_[0] or die $! }, link => sub { symlink '/none', $_[0] or die $! },
);
state_of('back', 'releasing');
my $not_cleaned = sub { is(ask(CLEAN, 'gpu', $one), -EPERM, "no device is cleaned: $_[0]") };
for my $state (qw(preparing ready failed releasing)) {
        beside($not_cleaned, $_, copy('back', sub { $_[0]{state} = $state })) for 'aaa', 'zzz';
}
beside($not_cleaned, 'attached', copy('guest', sub { my $d = $_[0]{devices}[0]; $d->{address} = sprintf '0000:%02x:00.0', (unpack 'L CCC', $one)[1]; $d->{phase} = 'attaching' }));
beside($not_cleaned, 'part', copy('guest', sub { @{ $_[0]{devices}[0] }{qw(address physical_function)} = ('0000:fe:00.1', sprintf '0000:%02x:00.0', (unpack 'L CCC', $one)[1]) }));
beside($not_cleaned, $_, $unusable{$_}) for sort keys %unusable;
beside(sub { is(ask(CLEAN, 'gpu', $one . $two), 0, "devices are cleaned: $_[0]") }, @$_) for ['.temporary', 'x'], ['other', copy('guest', sub { })];
for my $directory (qw(allocations quarantine)) {
        chmod 0770, "$ENV{STATE_DIRECTORY}/$directory" or die $!;
        is(ask(CLEAN, 'gpu', $one), -EPERM, "nor when others can write to $directory");
        chmod 0700, "$ENV{STATE_DIRECTORY}/$directory" or die $!;
}
spew("$dir/log", '');

# ---- what only root can change

my $open = "$ENV{NODE_TMP}/open";
mkdir $open or die "$open: $!";
spew("$open/clean", "#!/bin/sh\n");
symlink "$open/clean", "$ENV{NODE_TMP}/link" or die $!;
chmod 0777, $open or die $!;
my $scripts = 0;
# A script of root with this first line.
sub script { my ($line) = @_; my $path = "$ENV{NODE_TMP}/script" . $scripts++; spew($path, "$line\n"); return $path }
my $nested = script("#!$open/sh");
for my $words (
        "$open/clean", "$ENV{NODE_TMP}/link --all", "$command/../open/clean", "$open/../clean", "$open/none", "/bin/sh $open/clean",
        (map { "/bin/sh $_" } "--script=$open/x", "PATH=$open", "PATH=/usr/bin:$open:/bin", "-f$open/x", "\@$open/x", "--data=\@$open/x", "--files=/bin/sh,$open/x", $open =~ s{^/}{}r . '/x'),
        $nested, "/bin/sh $nested", "/bin/sh --script=$nested",
        map { script($_) } "#!$open/sh -e", "#! \t $open/sh", "#!/usr/bin/env $open/python", "#!/usr/bin/env -S PATH=$open python", "#!$nested", "#!/usr/bin/env $nested",
        "#!/bin/sh " . ' ' x (254 - 11 - length "$open/x") . "$open/x", '#!' . $open =~ s{^/}{}r . '/sh',
) {
        spew($conf, "$gpus\nCleanerCommand=$words\n");
        my $r = ask(CLEAN, 'gpu', $one);
        ok($r == -EPERM || $r == -POSIX::ENOTDIR, "$words is not run") or diag($r);
        is_deeply([calls()], [], '... nor is systemd asked');
}
spew($conf, $pools);
my %writable = ($command => 0775, $conf => 0666, $ENV{NODE_TMP} => 0777);
for my $path (sort keys %writable) {
        my $mode = (stat $path)[2] & oct 7777;
        chmod $writable{$path}, $path or die "$path: $!";
        is(ask(CLEAN, 'gpu', $one), -EPERM, "nothing is run when others can write to $path");
        isnt(ask(STOP, 'configured.service'), 0, '... nor is a unit stopped') if $path ne $command;
        chmod $mode, $path or die "$path: $!";
}
mkdir "$conf.d" or die "$conf.d: $!";
spew("$conf.d/a.conf", "[Pool gpu]\nCleanerCommand=$command --other\n");
chmod 0777, "$conf.d" or die "$conf.d: $!";
is(ask(CLEAN, 'gpu', $one), 0, 'a drop-in in a directory that others can write to');
like((calls())[0], qr/ --all /, '... does not count');
unlink "$conf.d/a.conf" or die $!;
rmdir "$conf.d" or die $!;
SKIP: {
        skip 'only root has several users', 2 if $> != 0;
        for my $path ($command, $conf) {
                chown 1000, -1, $path or die $!;
                is(ask(CLEAN, 'gpu', $one), -EPERM, "nothing is run when another user has $path");
                chown 0, -1, $path or die $!;
        }
}
spew($conf, $pools =~ s{\Q$command}{$command-none}r);
is(ask(CLEAN, 'gpu', $one), -ENOENT, 'a command must exist');
spew($conf, $pools =~ s{\Q$command}{script("#!$command-none")}er);
is(ask(CLEAN, 'gpu', $one), -ENOENT, '... and its interpreter');
my $loop = "$ENV{NODE_TMP}/loop";
spew($loop, "#!$loop\n");
spew($conf, $pools =~ s{\Q$command}{$loop}r);
is(ask(CLEAN, 'gpu', $one), -EPERM, '... which is no circle of scripts');
for my $words ("/bin/sh --script=$command", "/bin/sh -f$command", '/bin/sh key=a/b a=b --of=/dev/null http://host/x =/:/, /bin/sh/x', script("#!$nested" =~ s{\Q$nested}{$command}r), script('# ' . "#!$open/sh"), script("#!/bin/sh\n#!$open/sh"), script('#!/bin/sh' . ' ' x 300 . "$open/x")) {
        spew($conf, $pools =~ s{\Q$command}{$words}r);
        is(ask(CLEAN, 'gpu', $one), 0, 'it is run: ' . substr $words, 0, 40);
}
spew("$dir/log", '');

# ---- the devices of a domain

# other: of a second <source>.
sub hostdev {
        my ($packed, $other) = @_;
        my ($bus, $slot, $function) = (unpack 'L CCC', $packed)[1 .. 3];
        my $second = $other ? hostdev($other) =~ s{</?hostdev[^>]*>}{}gr : '';
        return "<hostdev mode='subsystem' type='pci' managed='no'><source><address domain='0x0000' bus='$bus' slot='$slot' function='$function'/></source>$second</hostdev>";
}

# What the service says: a reason of libvirt, which is not there, or its own.
sub plugged {
        my ($action, @devices) = @_;
        my ($result, $answer) = wire_ask($ENV{ROOT_SOCKET}, root_request(PLUG, '5f7b7a9e-0000-4000-8000-000000000001', pack 'LL Z16385 x3', $action, 1, hostdev(@devices)));
        is((unpack 'l', $answer)[0], FAILED, 'nothing is plugged');
        my ($none, $fixed) = wire_ask($ENV{ROOT_SOCKET}, root_request(STOP, ''));
        return substr $answer, length $fixed;
}

sub phases { my ($phase) = @_; rewrite('guest', sub { $_->{phase} = $phase for @{ $_[0]{devices} } }); return }

my $refused = qr/^passthroughd-root refuses/;
like(plugged($_, $used),         $refused, "a device of a guest stays as it is ($_)") for ATTACH, DETACH;
like(plugged($_, address(0xfe)), $refused, "a device that does not exist is refused ($_)") for ATTACH, DETACH;
phases('attaching');
unlike(plugged($_, $used), $refused, "libvirt is asked for a device that is being attached ($_)") for ATTACH, DETACH;
like(plugged($_, $used, $one), $refused, "... but not with a second device ($_)") for ATTACH, DETACH;
like(plugged($_, $used, $used), $refused, "... nor for the same device twice ($_)") for ATTACH, DETACH;
spew($conf, $nics);
like(plugged(ATTACH, $used), $refused, '... but not when it has left its pool');
unlike(plugged(DETACH, $used), $refused, '... except to take it out again');
spew($conf, $pools);
beside(sub { like(plugged(ATTACH, $used), $refused, "a device is not attached: $_[0]") }, @$_)
    for ['claimed', copy('guest', sub { delete $_[0]{devices}[0]{phase} })], ['twice', copy('guest', sub { })], map { [$_, $unusable{$_}] } qw(damaged pipe);
beside(sub { unlike(plugged(DETACH, $used), $refused, "a device is detached: $_[0]") }, 'damaged', 'x');
phases('detaching');
like(plugged(ATTACH, $used), $refused, 'a device on its way out is not attached');
unlike(plugged(DETACH, $used), $refused, '... libvirt is asked to take it out');
rewrite('guest', sub { delete $_->{phase} for @{ $_[0]{devices} } });

# ---- the fabric

my $fabric = "[Fabric]\nManager=127.0.0.1:6666\nPartition=3=1,2\nPartition=4=3,4\n";
rewrite('guest', sub { $_[0]{partition} = 3 });
is(ask($_, '', pack 'L', 3), -EPERM, 'a partition without Manager= is left alone') for ACTIVATE, DEACTIVATE;
spew($conf, "$pools$fabric");
isnt(ask($_, '', pack 'L', 3), -EPERM, 'the partition of an allocation is changed') for ACTIVATE, DEACTIVATE;
is(ask($_, '', pack 'L', 4), -EPERM, '... that of none is not') for ACTIVATE, DEACTIVATE;
is(ask($_, '', pack 'L', 5), -EPERM, '... nor one that is not configured') for ACTIVATE, DEACTIVATE;
is(ask(MODULE, '', $one), -EPERM, 'no module id is read of a GPU outside the fabric');
spew($conf, $pools =~ s/(CleanerCommand)/Fabric=yes\n$1/r);
isnt(ask(MODULE, '', $one), -EPERM, '... that of one in it is');
is(ask(MODULE, '', $_), -EPERM, '... and none of another device') for $nic, address(0xfe), address(255, 255, 255, 255);

# ---- GPUs that are back on NVIDIA's driver

sub text { my ($packed) = @_; return sprintf '0000:%02x:%02x.%x', (unpack 'L CCC', $packed)[1 .. 3] }
spew($conf, $pools);
spew("$dir/log", '');
state_of('back', 'releasing');
is(ask($_, '', $one), -EPERM, "a GPU on its VFIO driver is left alone ($_)") for PERSISTENCE, SET_PERSISTENCE, CHECK_GPU;
other_hand_binds(text($_), 'nvidia') for $one, $used;
is(ask($_, '', $one), 0, "one that is back is asked ($_)") for PERSISTENCE, SET_PERSISTENCE, CHECK_GPU;
is_deeply([map { m{/passthroughd-root (.*)} } calls()], ['--persistence=' . text($one)], '... and systemd runs one command');
is(ask(PERSISTENCE, '', $used), 0, 'persistence mode is read of one that is not on its way back');
is(ask($_, '', $used), -EPERM, "... but it is left alone ($_)") for SET_PERSISTENCE, CHECK_GPU;
for my $action (PERSISTENCE, SET_PERSISTENCE, CHECK_GPU) {
        is(ask($action, '', $_), -EPERM, "another device is not asked ($action)") for $nic, address(0xfe), address(255, 255, 255, 255);
        is(ask($action, '', $_), -EINVAL, "what is no device is refused ($action)") for '', 'x', "${one}x", $action == SET_PERSISTENCE ? "$one$one" : $one x 65;
}
is_deeply([gpu_results(CHECK_GPU, $nic, $one, $used)], [-EPERM, 0, -EPERM], 'of three, the one that may be asked about is');
is(ask(CHECK_GPU, '', $one x 64), 0, 'as many as there may be');
rewrite('back', sub { $_[0]{state} = 'ready'; delete $_->{phase} for @{ $_[0]{devices} } });
is(ask($_, '', $one), -EPERM, "a guest may have it ($_)") for SET_PERSISTENCE, CHECK_GPU;
state_of('back', 'releasing');
beside(sub { is(ask(CHECK_GPU, '', $one), -EPERM, "a GPU is not checked: $_[0]") }, 'claimed', copy('back', sub { $_[0]{state} = 'ready' }));
spew($conf, $nics);
is(ask($_, '', $one), -EPERM, "it has left its pool ($_)") for PERSISTENCE, SET_PERSISTENCE, CHECK_GPU;
spew($conf, $pools);
is(scalar(() = calls()), 1, 'systemd ran no other command');

# ---- options

my $wanted = MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n";
is(ask(SET_OPTIONS, '', $wanted), -EPERM, 'options are not written that no pool wants');
spew($conf, "$pools\n[Pool old]\nMatch=type=vf vendor=15b3\nVirtualFunctions=8\nPortTypes=eth,eth\n");
is(ask(SET_OPTIONS, '', $wanted), 1, 'options of a pool are written');
is(slurp($options), MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n", '... as they are');
my @bad = (
        "install vfio-pci /bin/sh\n", "options vfio-pci ids=1\n", "options mlx4_core num_vfs=8\\\ninstall x y\n", " install x y\n", "\tinstall x y\n",
        "options mlx4_core num_vfs=8\rinstall x y\n", "options mlx4_core num_vfs=8", "include /tmp\n", "options mlx4_core num_vfs=9 probe_vf=0 port_type_array=2,2\n",
        "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2 debug_level=1\n",
);
is(ask(SET_OPTIONS, '', MARK . "options mlx4_core \0\n"), -EINVAL, 'text that ends early is no text');
is(ask(SET_OPTIONS, '', MARK . $_), -EPERM, 'no other line is written: ' . s{[^ -~]}{.}gr) for @bad;
is(slurp($options), MARK . "options mlx4_core num_vfs=8 probe_vf=0 port_type_array=2,2\n", 'the file is unchanged');
is(ask(REMOVE_OPTIONS, ''), 1, 'options are removed');
ok(!-e $options, '... with their file');
spew($options, "options mlx4_core num_vfs=1\n");
isnt(ask(SET_OPTIONS, '', MARK), 1, "the administrator's file is not replaced");
is(ask(REMOVE_OPTIONS, ''), 0, '... or removed');
is(slurp($options), "options mlx4_core num_vfs=1\n", '... it is unchanged');
unlink $options;

# ---- messages that are none

is(ask(99, 'configured.service'), -EINVAL, 'an unknown request is refused');
is_deeply([answer($_)], [], 'a message of ' . length($_) . ' bytes gets no answer') for 'x', substr(root_request(STOP, ''), 0, 200), wire_message(STOP, 'x'), wire_message(STOP, 'x' x 100_000);
is_deeply([answer($_)], [-EPROTONOSUPPORT], '... one of another version is told so') for 'x' x 200, pack('L Z256 x4 Q', STOP, 'configured.service', 0);
is(ask(STOP, 'configured.service'), 0, 'then it still answers');

# ---- random messages: each that is long enough has an answer, and sanitizers report nothing. ROOT_MESSAGES= and ROOT_SEED= for more and others.

my $seed = $ENV{ROOT_SEED} // int rand 2**31;
srand $seed;
sub any { return $_[rand @_] }
sub number { my ($bytes) = @_; return any(0, 1, 19, 32, 255, 2**31, 2**32 - 1, int rand 2**32) & 256**$bytes - 1 }

my @hostdevs = ("<hostdev mode='subsystem' type='pci'><source><address domain='0xffff' bus='0xff' slot='0x1f' function='0x7'/></source></hostdev>", '<hostdev/>', '<a>' x 500);
my @parts    = (
        sub { address((map { number(1) } 1 .. 4), number(4)) },
        sub { $one },
        sub { pack 'L', number(4) },
        sub { pack('L L', any(ATTACH, DETACH, 2, number(4)), 1) . any(@hostdevs) . "\0" x any(0, 4096) },
        sub { MARK . "options mlx4_core x\n" },
        sub { join '', map { chr int rand 256 } 1 .. rand 300 },
);
my @silent;
for my $n (1 .. $ENV{ROOT_MESSAGES} // 300) {
        my $message = root_request(any(STOP .. CHECK_GPU + 1, number(4)), any('configured.service', 'gpu', 'nic', '', 'x' x 255, "\xff"), join '', map { any(@parts)->() } 1 .. rand 4);
        my $header  = length root_request(STOP, '');
        substr $message, -8 + $header, 8, pack 'Q', POSIX::floor((Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) + any(-1, 1)) * 1e6);
        substr $message, 16 + rand $header - 24, 1, chr int rand 256 if rand() < 0.3;
        my @answer = answer($message);
        push @silent, $n if !@answer;
}
is_deeply(\@silent, [], "random messages with ROOT_SEED=$seed: each is answered");
is(ask(STOP, 'configured.service'), 0, 'then it still answers');

done_testing();
