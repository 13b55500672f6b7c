#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Memory that guests of one owner share: made on its node, given to nobody else, wiped and gone with the last of them. What is below
# dev/shm of the simulated node is a tmpfs of this machine's kernel.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Fcntl qw(O_RDWR);
use JSON::XS;
use POSIX ();
use Test::More;

use Document;
use Guests;
use Node;

node_with_guests('paper-testbed', configure => 1, root => 1);

use constant { MIB => 2**20, SOMEBODY => 1000 };

my $shm = "$ENV{NODE_ROOT}/dev/shm";
my ($group) = (getgrgid 0)[0];
my $mounted;

sub mount_shm {
        fault('set dev/shm/.nodesim x') if !-d $shm;
        system('mount', '-t', 'tmpfs', '-o', 'size=64m', 'shm', $shm) == 0 or plan skip_all => 'a tmpfs cannot be mounted on the simulated node';
        $mounted = 1;
        return;
}

sub umount_shm { return if !$mounted; $mounted = 0; return system('umount', $shm) == 0 }
END { local $?; umount_shm() }

# A boot: nothing is left of the tmpfs.
sub boot_shm { umount_shm() or die "umount $shm"; mount_shm(); return }

sub file   { my ($name) = @_; return "$shm/passthroughd-$name" }
sub exists_as { my ($name, $size) = @_; return -f file($name) && -s _ == $size }
sub spew_into { my ($path, $text) = @_; sysopen my $f, $path, O_RDWR or die "$path: $!"; syswrite $f, $text or die $!; return }
sub blocks { my ($name) = @_; return (stat file($name))[12] * 512 }
sub region { my ($name, $size, $page) = @_; return [$name, $size, $page // 0] }
sub guest  { my (@pairs) = @_; return (cpus => 1, memory => 256 * MIB, @pairs) }
sub mpi    { return guest('shared-memory' => [region('mpi', 4 * MIB)], @_) }
sub shared { my ($bus, $name) = @_; return (allocation($bus, $name) // {})->{shared_memory} }

sub free_memory {
        my ($bus, $node) = @_;
        return (grep { $_->{id} == $node } @{ describe($bus)->{nodes} })[0]{memory_free};
}

sub refused {
        my ($bus, $error, $facts, $what, @pairs) = @_;
        my ($signature, $entries) = request(@pairs);
        return is_error($bus->call('Allocate', "s$signature", 'refused', $entries), $error, $facts, $what);
}

# This kernel may have no node but 0, the GPU is on another, and guests are kept away from there.
my $pools = "HousekeepingCpus=8-15\n[Pool gpu]\nMatch=vendor=10de class=0302\n";

mount_shm();
configure("[Daemon]\nSharedMemoryGroup=$group\n");
my $bus   = Bus->new->listen;
my $state = snapshot();
my $free  = free_memory($bus, 0);

# ---- one guest, then another, share

my $plan = ctl_json('plan', '--cpus', 1, '--memory', '256M', '--shared-memory', 'mpi=4M');
is_deeply([map { @$_{qw(name size numa_node members)} } @{ $plan->{shared_memory} }], ['mpi', 4 * MIB, 0, undef], 'a plan has it on the node of the guest');
like($plan->{steps}[0], names('4 MiB', 'mpi', 0), '... and says that it is made');
ok(!-e file('mpi'), '... and makes nothing');
is_deeply(ctl_json('plan', '--cpus', 1, '--memory', '256M', '--shared-memory', 'mpi=4M:4K'), $plan, 'pages of 4 KiB are ordinary ones');
$plan = ctl_json('plan', '--cpus', 1, '--memory', '256M', '--shared-memory', 'a=1M,b=2M:2M', '--shared-memory', 'c=4M');
like($plan->{message} // '', names('a', '1 MiB', 'b', '2 MiB', 'c', '4 MiB'), 'where there are no hugepages it is refused');
$plan = ctl_json('plan', '--cpus', 1, '--memory', '256M', '--shared-memory', 'a=1M,b=2M', '--shared-memory', 'c=4M');
is_deeply([map { $_->{name} } @{ $plan->{shared_memory} }], [qw(a b c)], 'several, in one option or more');
is((allocate($bus, 'vm1', mpi()))[0], 'done', 'one guest with shared memory');
ok(exists_as('mpi', 4 * MIB), 'it is there');
is(blocks('mpi'), 4 * MIB, '... all of it');
my @stat = stat file('mpi');
is(sprintf('%o %u %u', @stat[2, 4, 5]), sprintf('100660 %u %u', $>, (getgrnam $group)[2]), '... for the group to open, and nobody else');
is(free_memory($bus, 0), $free - 260 * MIB, 'the node has less memory, for the guest and what it shares');
is((allocate($bus, 'vm2', mpi()))[0], 'done', 'another of the same owner');
is(free_memory($bus, 0), $free - 516 * MIB, 'what they share counts once');
is_deeply([map { $_->{members} } map { @{ shared($bus, $_) } } qw(vm1 vm2)], [([qw(vm1 vm2)]) x 2], 'who shares it is told of both');
is_deeply(shared($bus, 'vm1'), [{ name => 'mpi', size => 4 * MIB, page_size => undef, numa_node => 0, path => '/dev/shm/passthroughd-mpi', members => [qw(vm1 vm2)] }], '... with all about it');
is_deeply($bus->properties('/org/passthroughd1/allocation/vm2', 'org.passthroughd1.Allocation')->{SharedMemory}, [['mpi', 4 * MIB, 0, [qw(vm1 vm2)]]], '... as a property');
like((ctl('show', 'vm1'))[1], names('4 MiB', 0, 'vm1', 'vm2'), '... and shown');
my $xml = document('vm1', 'the document');
like($xml, qr{<shmem name="passthroughd-mpi" role="peer">\s*<model type="ivshmem-plain"/>\s*<size unit="MiB">4</size>}, 'the document has it');
like($xml, qr{<passthroughd:shared-memory name="mpi" size="4194304" node="0">\s*<passthroughd:member name="vm1"/>\s*<passthroughd:member name="vm2"/>}, '... and who shares it');

# How often it fits is found out with a ledger of its own, and what is allocated is not drawn into that.
is((ctl('plan', '--repeat', '--owner', 0, '--cpus', 1, '--memory', '1G', '--shared-memory', 'mpi=4M'))[0], 0, 'how often a request that shares it fits');
is_deeply([map { $_->{members} } map { @{ shared($bus, $_) } } qw(vm1 vm2)], [([qw(vm1 vm2)]) x 2], '... and asking changes nothing about who does');

# ---- nobody else

refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 'mpi', 1000], 'another owner is refused', mpi(owner => SOMEBODY));
is((ctl('allocate', 'refused', '--owner', SOMEBODY, '--cpus', 1, '--memory', '256M', '--shared-memory', 'mpi=4M'))[0], 1, '... on the command line too');
refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 'mpi', '4 MiB', '8 MiB'], 'another size', guest('shared-memory' => [region('mpi', 8 * MIB)]));
refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 'mpi', '4 MiB', '2 MiB'], 'other pages', guest('shared-memory' => [region('mpi', 4 * MIB, 2 * MIB)]));
refused($bus, 'InvalidRequest', ['invalid-request', '3 MiB'], 'a size that is no power of two', guest('shared-memory' => [region('x', 3 * MIB)]));
refused($bus, 'InvalidRequest', ['invalid-request', '512 KiB', '1 MiB', '64 GiB'], 'too small a size', guest('shared-memory' => [region('x', MIB / 2)]));
refused($bus, 'InvalidRequest', ['invalid-request', '128 GiB'], 'too large a size', guest('shared-memory' => [region('x', 2**37)]));
refused($bus, 'InvalidRequest', ['invalid-request', "$_->[1]"], "the name '$_->[1]'", guest('shared-memory' => [region($_->[0], MIB)]))
        for map { [$_, $_] } '../mpi', 'a/b', '.', '..', '', '-x', 'a b';
refused($bus, 'InvalidRequest', ['invalid-request'], 'a name that is too long', guest('shared-memory' => [region('a' x 64, MIB)]));
refused($bus, 'InvalidRequest', ['invalid-request', 'x'], 'a name twice', guest('shared-memory' => [(region('x', MIB)) x 2]));
refused($bus, 'InvalidRequest', ['invalid-request', 4], 'too many', guest('shared-memory' => [map { region("x$_", MIB) } 1 .. 5]));
refused($bus, 'InvalidRequest', ['invalid-request', '3 MiB'], 'pages of no size', guest('shared-memory' => [region('x', 4 * MIB, 3 * MIB)]));
refused($bus, 'InvalidRequest', ['invalid-request', 4294967295], 'no owner', mpi(owner => 2**32 - 1));
refused($bus, 'Insufficient', ['insufficient-memory', 'big', '64 GiB'], 'more than the node has', guest('shared-memory' => [region('big', 2**36)]));
is((ctl('plan', '--cpus', 1, '--memory', '1G', '--shared-memory', $_))[0], 2, "the argument '$_' is none") for 'mpi', 'mpi=', '=4M', 'mpi=4M:', 'mpi=4M,';
is(free_memory($bus, 0), $free - 516 * MIB, 'nothing is held for those that were refused');

is((ctl('plan', '--owner', SOMEBODY, '--cpus', 1, '--memory', '256M', '--shared-memory', 'mpi=4M'))[0], 1, 'a plan for another owner says so too');
is((ctl('plan', '--owner', 0, '--cpus', 1, '--memory', '256M', '--shared-memory', 'mpi=4M'))[0], 0, '... and one for the same does not');

# A file that nobody knows of is left alone, whatever it is.
for my $what (['a file', sub { spew($_[0], 'mine') }], ['a link', sub { symlink '/etc/passwd', $_[0] }], ['a FIFO', sub { system('mkfifo', $_[0]) == 0 }],
        ['a directory', sub { mkdir $_[0] }], ["another user's file of that size", sub { spew($_[0], "\0" x MIB); chown 1000, -1, $_[0] }])
{
        my $there = file('other');
        $what->[1]->($there);
        my @before = lstat $there;
        refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 'other', '/dev/shm/passthroughd-other'], "$what->[0] is in the way", guest('shared-memory' => [region('other', MIB)]));
        is_deeply([(lstat $there)[0 .. 7]], [@before[0 .. 7]], '... and stays as it was');
        -d $there ? rmdir $there : unlink $there;
}

# ---- released: by one, and by the last

sysopen my $mapped, file('mpi'), O_RDWR or die file('mpi') . ": $!";
syswrite $mapped, 'a secret' or die $!;
is((release($bus, 'vm1'))[0], 'done', 'one is released');
ok(exists_as('mpi', 4 * MIB), 'the other still has it');
sysseek $mapped, 0, 0;
sysread $mapped, my $text, 8;
is($text, 'a secret', '... and what is in it');
is_deeply(shared($bus, 'vm2')->[0]{members}, ['vm2'], '... alone');
is((allocate($bus, 'vm3', mpi()))[0], 'done', 'a third joins');
sysseek $mapped, 0, 0;
sysread $mapped, $text, 8;
is($text, 'a secret', '... and finds what is in it');
is((release($bus, $_))[0], 'done', "$_ is released") for qw(vm2 vm3);
ok(!-e file('mpi'), 'with the last it is gone');
sysseek $mapped, 0, 0;
sysread $mapped, $text, 4 * MIB;
is($text, "\0" x (4 * MIB), '... and wiped for who still has it');
is((stat $mapped)[12], 0, '... and its memory given back');
close $mapped;
is(free_memory($bus, 0), $free, 'the memory is free again');
same_state($state, 'nothing is on disk');
is((allocate($bus, 'vm1', mpi(owner => SOMEBODY)))[0], 'done', 'now another owner may have that name');
is(allocation($bus, 'vm1')->{owner}, SOMEBODY, '... whose it is');
refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 1000], '... and root may not', mpi());
is_error($bus->call('Plan', request(mpi())), 'SharedMemoryTaken', ['shared-memory-taken', 1000], '... nor does a plan say so');
is((release($bus, 'vm1'))[0], 'done', 'released');

# Root removes it: the guests that share it cannot be started with it.
is((allocate($bus, $_, mpi()))[0], 'done', "$_ shares what is removed") for qw(vm1 vm2);
sub all_become { my ($state) = @_; return wait_until(sub { !grep { allocation_state($bus, $_) ne $state } qw(vm1 vm2) }) }
sub signalled { my ($state) = @_; return sub { $_->{member} eq 'PropertiesChanged' && $_->{path} =~ m{/vm2$} && ($_->{body}[1]{State} // '') eq $state } }
my $removed = names('/dev/shm/passthroughd-mpi', 'mpi', qr/\bvm[12]\b/);
within_a_second($bus, 'removed', sub { rename file('mpi'), "$shm/aside" or die $! }, signalled('failed'));
ok(all_become('failed'), '... the state says so');
like(allocation($bus, $_)->{reason} // '', $removed, "... and the reason of $_") for qw(vm1 vm2);
is_error($bus->call('GetDomainXML', 'sa{sv}', 'vm1', []), 'Insufficient', ['insufficient-memory', $removed], '... and there is no document');
within_a_second($bus, 'put back', sub { rename "$shm/aside", file('mpi') or die $! }, signalled('ready'));
ok(all_become('ready'), '... the promise holds again');
is(allocation($bus, 'vm1')->{reason}, undef, '... without a reason');
unlink file('mpi') or die $!;
ok(all_become('failed'), 'removed for good');
is((release($bus, $_))[0], 'done', "... $_ is released") for qw(vm1 vm2);
is((allocate($bus, 'vm1', mpi()))[0], 'done', '... and it is made anew');
ok(exists_as('mpi', 4 * MIB) && allocation_state($bus, 'vm1') eq 'ready', '... for whom allocates again');
is((release($bus, 'vm1'))[0], 'done', '... released');

# What a member of the group can do to it keeps nothing of it.
for my $what (['another name', sub { link $_[0], "$shm/kept" or die $! }], ['a larger size', sub { truncate $_[0], 5 * MIB or die $! }], ['a smaller size', sub { truncate $_[0], 3 * MIB or die $! }]) {
        is((allocate($bus, 'vm1', mpi()))[0], 'done', "one whose file gets $what->[0]");
        spew_into(file('mpi'), 'a secret');
        $what->[1]->(file('mpi'));
        restart('KILL');
        $bus = Bus->new->listen;
        is(allocation_state($bus, 'vm1'), 'ready', '... is ready all the same after a restart');
        sysopen my $held, file('mpi'), O_RDWR or die file('mpi') . ": $!";
        is((release($bus, 'vm1'))[0], 'done', '... is released');
        ok(!-e file('mpi'), '... and the file gone');
        sysread $held, my $rest, 8;
        is($rest, "\0" x 8, '... wiped');
        is((stat $held)[12], 0, '... and its memory given back');
        unlink "$shm/kept";
}

# A member that changes the size of the file stops neither a release nor the job of another member: it runs the function with the file.
sub hostile {
        my ($path, $does) = @_;
        sysopen my $file, $path, O_RDWR or die "$path: $!";
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        $does->($file);
        POSIX::_exit(0);
}

sub resize_always { my ($file) = @_; while (1) { truncate $file, $_ * MIB for 0, 32, 64 } return }

# As soon as the memory is cleared.
sub resize_when_cleared {
        my ($file) = @_;
        my $first;
        sysseek $file, 0, 0;
        syswrite $file, 'a secret' or die $!;
        do { sysseek $file, 0, 0; sysread $file, $first, 1 } while $first eq 'a';
        return resize_always($file);
}

my @large = guest('shared-memory' => [region('mpi', 32 * MIB)]);
my $before = log_since();
for my $n (1 .. 12) {
        is((allocate($bus, 'vm1', @large))[0], 'done', "region $n of a member that changes its size");
        my $hostile = hostile(file('mpi'), \&resize_when_cleared);
        wait_until(sub { sysopen my $f, file('mpi'), O_RDWR or die $!; sysread $f, my $text, 1; $text eq 'a' });
        is((release($bus, 'vm1'))[0], 'done', '... is released');
        kill 'KILL', $hostile;
        waitpid $hostile, 0;
}
is((allocate($bus, 'vm1', @large))[0], 'done', 'a region that others join meanwhile');
my $hostile = hostile(file('mpi'), \&resize_always);
for (1 .. 100) {
        my ($joined) = allocate($bus, 'vm2', @large); # or is refused, or fails
        release($bus, 'vm2') if $joined eq 'done';
}
is((release($bus, 'vm1'))[0], 'done', '... is released');
kill 'KILL', $hostile;
waitpid $hostile, 0;
unlike(log_since($before), qr/\bSIG[A-Z]+\b|\bdied\b/, 'no job died of it');
ok(!-e file('mpi'), 'the file is gone');
is((split ' ', (split /\n/, qx(df --output=used $shm))[1])[0], 0, '... with its memory');

# All at once: they wait for each other.
my @names = map { "gang$_" } 1 .. 4;
my @jobs  = map { my ($signature, $entries) = request(mpi()); $bus->call('Allocate', "s$signature", $_, $entries)->{body}[1] } @names;
is_deeply([map { $bus->result($_) } @jobs], [('done') x @names], 'four that begin at once');
@jobs = map { $bus->call('Release', 'st', $_, allocation($bus, $_)->{generation})->{body}[0] } @names;
is_deeply([map { $bus->result($_) } @jobs], [('done') x @names], '... and end at once');
ok(!-e file('mpi'), '... leave nothing');

# The last two at once: who is the last is known only when the other has ended. One hangs in the kernel meanwhile.
configure("[Daemon]\nSharedMemoryGroup=$group\n$pools");
$bus = Bus->new->listen;
is((allocate($bus, @$_))[0], 'done', "$_->[0] shares") for ['vm1', mpi(gpu => 1, numa => 'preferred')], ['vm2', mpi()];
fault('reset', 'hang 1');
my ($first, $second) = map { $bus->call('Release', 'st', $_, allocation($bus, $_)->{generation})->{body}[0] } qw(vm1 vm2);
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'the release of the first hangs');
is_deeply([map { my (undef, @at) = split /\n/, slurp($_); @at } glob "$ENV{STATE_DIRECTORY}/jobs/*"], ['0000:82:00.0 1'], '... and is known to be at that device, and at no other');
is(($bus->properties($second, 'org.passthroughd1.Job') // {})->{StepsDone}, 0, '... and that of the second waits');
is(allocation_state($bus, 'vm2'), 'releasing', '... still');
ok(-e file('mpi'), '... and nothing is taken from the first');
fault('release');
is($bus->result($_), 'done', 'both end') for $first, $second;
ok(!-e file('mpi'), '... and it is gone');
fault('reset');

# What a job is about may be in use when its turn comes, though it was not when the job was asked for.
my $vf = '0000:83:00.1';
configure("[Daemon]\nSharedMemoryGroup=$group\n${pools}[Pool vf]\nMatch=address=$vf\n");
$bus = Bus->new->listen;
other_hand_binds($vf, 'vfio-pci');
ok(!$bus->call('Rescan')->{error}, 'a VF that is on vfio-pci');
for my $verb ('Allocate', 'Release') {
        my ($signature, $entries) = request(mpi(vf => 1, numa => 'preferred'));
        is((allocate($bus, @$_))[0], 'done', "$verb: $_->[0] shares") for ['vm1', mpi(gpu => 1, numa => 'preferred')], $verb eq 'Release' ? ['vm2', mpi(vf => 1, numa => 'preferred')] : ();
        my $node = '/dev/vfio/' . device($bus, $vf)->{iommu_group};
        fault('reset', 'hang 1');
        my $first = $bus->call('Release', 'st', 'vm1', allocation($bus, 'vm1')->{generation})->{body}[0];
        ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), "$verb: a job hangs");
        my $reply = $verb eq 'Allocate' ? $bus->call('Allocate', "s$signature", 'vm2', $entries) : $bus->call('Release', 'st', 'vm2', allocation($bus, 'vm2')->{generation});
        my $second = $reply->{body}[-1];
        fault('set proc/4242/comm qemu-system-x86', "link proc/4242/fd/7 $node", 'release');
        is($bus->result($first), 'done', "$verb: it ends");
        is($bus->result($second), 'failed', "$verb: the job that waited fails");
        is((grep { m{/\Q$vf\E/} } write_log()), 0, "$verb: and did nothing to the VF") or diag(join "\n", write_log());
        is(allocation_state($bus, 'vm2'), $verb eq 'Allocate' ? 'gone' : 'ready', "$verb: its allocation is as it was");
        fault('remove proc/4242', 'reset');
}
is((release($bus, 'vm2'))[0], 'done', 'when it is not in use any more it is released');
fault("write sys/bus/pci/devices/$vf/driver/unbind $vf");
configure("[Daemon]\nSharedMemoryGroup=$group\n$pools");
$bus = Bus->new->listen;

# Only while it makes memory the job is the first that the kernel would end.
my ($signature, $entries) = request(mpi(gpu => 1, numa => 'preferred'));
fault('reset', 'hang 1');
my $job = $bus->call('Allocate', "s$signature", 'vm1', $entries)->{body}[1];
ok(wait_until(sub { grep { /^1 .*PENDING/ } write_log() }), 'a job hangs at its device');
ok(exists_as('mpi', 4 * MIB), '... after the memory was made');
is_deeply([map { slurp("/proc/$_/oom_score_adj") } daemon_children('passthroughd-jo')], [slurp('/proc/' . pid() . '/oom_score_adj')], '... and is as dear to the kernel as the daemon');
fault('release');
is($bus->result($job), 'done', '... and ends');
is((release($bus, 'vm1'))[0], 'done', 'released');
fault('reset');

# ---- it cannot be made

my ($result) = allocate($bus, 'vm1', guest('shared-memory' => [region('mpi', 4 * MIB), region('large', 128 * MIB)]));
is($result, 'failed', 'more than fits into /dev/shm');
like(log_since(0), names('128 MiB', 'large', 0, '/dev/shm'), '... it says why');
ok(!-e file($_), "... and of '$_' nothing is left") for qw(mpi large);
same_state($state, '... nor a promise');
umount_shm();
is((allocate($bus, 'vm1', mpi()))[0], 'failed', 'no tmpfs');
like(log_since(0), names('4 MiB', 'mpi', 0, '/dev/shm'), '... it says why');
mount_shm();
configure("[Daemon]\nSharedMemoryGroup=no-such\n");
$bus = Bus->new->listen;
is((allocate($bus, 'vm1', mpi()))[0], 'failed', 'no such group');
like(log_since(0), names('SharedMemoryGroup='), '... it says why');
ok(!-e file('mpi'), '... and nothing is left');
configure("[Daemon]\nSharedMemoryGroup=$group\nSharedMemoryServer=/run/ivshmem/%n.sock\n$pools");
$bus = Bus->new->listen;

# A step after it fails: it is undone, but not what another has.
is((allocate($bus, 'vm1', mpi()))[0], 'done', 'one has it');
fault('reset', 'fail 2 EIO');
is((allocate($bus, 'vm2', mpi(gpu => 1, numa => 'preferred')))[0], 'failed', 'another fails at its device');
ok(exists_as('mpi', 4 * MIB), '... and takes nothing from the one');
fault('reset', 'fail 2 EIO');
my $offset = log_since();
is((allocate($bus, 'vm2', guest(gpu => 1, numa => 'preferred', 'shared-memory' => [region('own', MIB)])))[0], 'failed', 'another fails at its device');
like(log_since($offset), names('vm2', '0000:82:00.0', 'nvidia'), '... at its driver');
ok(!-e file('own'), '... and nothing is left of its own');
fault('reset');
my $with_one = snapshot();
$xml = document('vm1', 'with a server');
like($xml, qr{<shmem name="passthroughd-mpi" role="peer">\s*<model type="ivshmem-doorbell"/>\s*<server path="/run/ivshmem/mpi.sock"/>\s*<msi ioeventfd="on"/>\s*</shmem>}, 'its path is in the document');

# A server that is older than what it is to serve.
fault('set run/ivshmem/own.sock x');
refused($bus, 'SharedMemoryTaken', ['shared-memory-taken', 'own', '/run/ivshmem/own.sock'], 'a server from before it is made', guest('shared-memory' => [region('own', MIB)]));
same_state($with_one, '... of which nothing is left');
fault('set run/ivshmem/mpi.sock x');
is((allocate($bus, 'vm2', mpi()))[0], 'done', 'one from after that is in nobody\'s way');
is((release($bus, 'vm2'))[0], 'done', '... released');
fault('remove run/ivshmem');

# ---- removed by somebody else

rename file('mpi'), file('mpi') . '.old' or die $!;
refused($bus, 'WrongState', ['wrong-state', 'mpi', 'vm1'], 'nobody is given another one of the name', mpi());
rename file('mpi') . '.old', file('mpi') or die $!;
is((allocate($bus, 'vm2', mpi()))[0], 'done', '... and it is shared where it is there');
is((release($bus, 'vm2'))[0], 'done', '... and released');

# ---- a restart, a crash, a boot

my $inode = (stat file('mpi'))[1];
restart('KILL');
$bus = Bus->new->listen;
is((stat file('mpi'))[1], $inode, 'a crash changes nothing');
is_deeply(shared($bus, 'vm1')->[0]{members}, ['vm1'], '... who has it is known');
daemon('stop');
boot_shm();
daemon('start');
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm1'), 'ready', 'after a boot');
ok(exists_as('mpi', 4 * MIB), '... it is there again');
is(blocks('mpi'), 4 * MIB, '... all of it');
daemon('stop');
boot_shm();
spew(file('mpi'), "\0" x MIB);
chown 1000, -1, file('mpi');
my $foreign = (stat file('mpi'))[1];
daemon('start');
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm1'), 'ready', "where another user's file has the name after a boot, it is ready");
is(sprintf('%u %u', (stat file('mpi'))[4], blocks('mpi')), sprintf('%u %u', $>, 4 * MIB), '... with memory of its own');
is_deeply([map { (stat)[1, 4, 7] } glob "$shm/moved-passthroughd-mpi-*"], [$foreign, 1000, MIB], '... and that file has another name');
unlink glob "$shm/moved-*";
daemon('stop');
boot_shm();
spew(file('mpi'), "\0" x MIB);
daemon('start');
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm1'), 'failed', 'where another file of root has the name, it is out of order');
like(allocation($bus, 'vm1')->{reason}, names('/dev/shm'), '... with the reason');
is((release($bus, 'vm1'))[0], 'done', '... and can be released');
ok(-e file('mpi'), "... that file is still there");
unlink file('mpi');

# One of which the ledger knows nothing is told of.
spew(file('stray'), '');
$offset = log_since();
restart();
$bus = Bus->new->listen;
like(log_since($offset), names('/dev/shm/passthroughd-stray'), 'a file that nobody knows is in the journal');
ok(-e file('stray'), '... and still there');
unlink file('stray');

# However many there are, a few lines tell of them; what other users plant there is no left-over region.
spew(file("stray$_"), '') for 1 .. 1000;
$offset = log_since();
restart();
$bus = Bus->new->listen;
my @lines = grep { m{/dev/shm} } split /\n/, log_since($offset);
is(scalar @lines, 11, '... a thousand in 11 lines');
like($lines[-1], qr/\b990 more\b/, '... which say how many there are');
chown 1000, -1, map { file("stray$_") } 1 .. 1000;
$offset = log_since();
restart();
$bus = Bus->new->listen;
unlike(log_since($offset), qr{/dev/shm}, "... other users' in none");
unlink map { file("stray$_") } 1 .. 1000;

# What a crash left half made is made whole; what it left half removed is removed.
is((allocate($bus, 'vm1', mpi()))[0], 'done', 'one more');
daemon('stop');
my $json = JSON::XS->new->canonical;
my $ledger = $json->decode(slurp(ledger_file('vm1')));
$ledger->{state} = 'preparing';
spew(ledger_file('vm1'), $json->encode($ledger));
truncate file('mpi'), 0;
truncate file('mpi'), 4 * MIB;
chmod 0600, file('mpi');
daemon('start');
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm1'), 'ready', 'a crash while it is made');
is(sprintf('%o %u', (stat file('mpi'))[2], blocks('mpi')), sprintf('100660 %u', 4 * MIB), '... it is whole');
daemon('stop');
$ledger->{state} = 'releasing';
spew(ledger_file('vm1'), $json->encode($ledger));
daemon('start');
$bus = Bus->new->listen;
is(allocation_state($bus, 'vm1'), 'gone', 'a crash while it is released');
ok(!-e file('mpi'), '... it is gone');

# A guest without devices is known by its id.
is((allocate($bus, 'vm1', mpi()))[0], 'done', 'a guest without devices');
my $id = allocation($bus, 'vm1')->{id};
libvirt_reports($bus, running_domain('vm1', $id));
is_error($bus->call('Release', 'st', 'vm1', allocation($bus, 'vm1')->{generation}), 'Unavailable', ['busy', 'vm1'], 'its memory is not taken while it runs');
libvirt_reports($bus);
is((release($bus, 'vm1'))[0], 'done', 'released when it has ended');
is_deeply([glob "$shm/*"], [], 'nothing is left');

# A ledger whose files say different things of one region promises nothing.
is((allocate($bus, $_, mpi()))[0], 'done', "once more: $_") for qw(vm1 vm2);
daemon('stop');
$ledger = $json->decode(slurp(ledger_file('vm2')));
$ledger->{owner} = SOMEBODY;
spew(ledger_file('vm2'), $json->encode($ledger));
daemon('start');
$bus = Bus->new->listen;
like(describe($bus)->{read_only}, names('allocations/vm2.json', 'mpi', 1000), 'two owners in the ledger: nothing is changed any more');
ok(exists_as('mpi', 4 * MIB), '... nor what they have');

done_testing();
