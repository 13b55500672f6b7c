#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The main job on the node of the paper, from the list of devices to a node as it was.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

node('paper-testbed');

my ($gpu, $vf) = qw(0000:82:00.0 0000:83:00.1);
my @request = qw(gpu=1 ib-vf=1 --cpus 8 --memory 20G --numa required);
my $before  = tree();
my $bus     = Bus->new->listen;

# ---- list, explain, plan

my ($status, $out, $err) = ctl('list');
is($status, 0, 'list');
like($out, qr/^\Q$gpu\E +gpu +available +1 +7 +nvidia +- /m, 'shows the GPU with pool, state, node, group and driver');
is(() = (ctl('list', 'ib-vf', '--all'))[1] =~ /^0000:83:00\.[1-4] +ib-vf +available/mg, 4, 'and four VFs');
unlike($out, qr/^0000:(?:08:03\.0|00:1f\.2)/m, 'but not what no pool offers');
is_deeply(devices_state($bus, 'gpu'), { $gpu => 'available' }, 'ListDevices says the same');

for my $case (['0000:08:03.0', qr/\bBMC\b/], ['0000:00:1f.2', qr/\S/], ['0000:02:00.0', qr/\S/]) {
        my ($address, $why) = @$case;
        like((ctl('explain', $address))[1], qr/^\Q$address\E .*\n.*$why/m, "explain says why $address is not on offer");
        is(device($bus, $address)->{state}, 'host', '... and its state');
}
like((ctl('explain', $gpu))[1], names('gpu'), 'explain says that the GPU is on offer');

sub guid_as_mlx4 { my ($text) = @_; return $text =~ s/.*port-guid=//r =~ s/://gr =~ s/^0+//r }

my $plan = ctl_json('plan', @request);
is($plan->{state}, 'planned', 'plan');
is_deeply([map { $_->{address} } @{ $plan->{devices} }], [$gpu, $vf], 'chooses GPU and VF');
is($plan->{cpus}, '8-15', 'and the CPUs beside them');
is_deeply($plan->{memory}, { 1 => 20 * 2**30 }, 'and their memory');
is(scalar @{ $plan->{steps} }, 5, 'in five steps');
nothing_written('so far nothing was written');

# ---- allocate

($status, $out, $err) = ctl('allocate', 'md-worker-0', @request);
is($status, 0, 'allocate') or diag($err);
like($out, names('md-worker-0', $gpu, $vf, '8-15', '20 GiB', 1), 'ends with what it is');
my @steps = $out =~ /^\[(\d+\/\d+) *\]/mg;
is_deeply(\@steps, [map { "$_/6" } 1 .. 6], 'and numbers each step as it happens');
my ($identity) = $out =~ /^\[.*?\] (give VF 0 of 0000:83:00.0 port-guid=02:\S+)$/m;
my @expected = ((@{ $plan->{steps} })[0 .. 2], $identity, (@{ $plan->{steps} })[3, 4]);
is_deeply([sort $out =~ /^\[.*?\] (.*)$/mg], [sort @expected], 'which are the steps of the plan, and the GUID that was made up');
is_deeply([sort map { s/^\d+ //r } write_log()],
        [sort(
                "sys/devices/pci0000:80/0000:80:02.0/$gpu/driver_override vfio-pci -> OK",
                "sys/devices/pci0000:80/0000:80:03.0/$vf/driver_override vfio-pci -> OK",
                "sys/bus/pci/drivers/nvidia/unbind $gpu -> OK",
                "sys/devices/pci0000:80/0000:80:03.0/0000:83:00.0/infiniband/mlx4_0/iov/ports/1/admin_guids/1 " . guid_as_mlx4($identity) . ' -> OK',
                "sys/bus/pci/drivers_probe $gpu -> OK",
                "sys/bus/pci/drivers_probe $vf -> OK",
        )],
        'what was written, and nothing else');
is(readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$_/driver") =~ s{.*/}{}r, 'vfio-pci', "$_ is on vfio-pci") for $gpu, $vf;

# The signals of it, in the order that a client can rely on.
my @signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' });
my @order   = grep { !/^Interfaces/ } map { $_->{member} } @signals;
is($signals[-1]{body}[2], 'done', 'JobRemoved says done');
is((grep { /^(?:AllocationNew|JobNew)$/ } @order)[0], 'AllocationNew', 'AllocationNew comes before JobNew');
my ($allocation) = map { $_->{body}[1] } grep { $_->{member} eq 'AllocationNew' } @signals;
my @job_steps = map { $_->{body}[1] }
        grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[0] eq 'org.passthroughd1.Job' && $_->{body}[1]{Step} } @signals;
my @names;
for (@job_steps) { push @names, $_->{Step} if !@names || $names[-1] ne $_->{Step} }
is_deeply([sort @names], [sort @expected], 'PropertiesChanged of the job tells each step');
is_deeply([map { $_->{StepsDone} } @job_steps], [sort { $a <=> $b } map { $_->{StepsDone} } @job_steps], 'StepsDone only goes up');
is($job_steps[-1]{StepsDone}, 6, 'to the last');
my ($ready, $removed) = map { my $wanted = $_; (grep { $wanted->($signals[$_]) } 0 .. $#signals)[0] } (
        sub { $_[0]{member} eq 'PropertiesChanged' && $_[0]{path} eq $allocation && ($_[0]{body}[1]{State} // '') eq 'ready' },
        sub { $_[0]{member} eq 'JobRemoved' }
);
ok(defined $ready && $ready < $removed, 'the allocation says ready before its job says done');
ok((grep { $_->{member} eq 'PropertiesChanged' && $_->{body}[0] eq 'org.passthroughd1.Device' && ($_->{body}[1]{State} // '') eq 'allocated' }
                @signals), 'and the devices that they are allocated');

my $properties = $bus->properties($allocation, 'org.passthroughd1.Allocation');
is_deeply([@$properties{qw(Name State Cpus Owner)}], ['md-worker-0', 'ready', '8-15', $>], 'the object of the allocation');
is_deeply($properties->{Devices}, [['gpu0', $gpu], ['ib-vf0', $vf]], 'its devices');
is_deeply($properties->{Memory}, [[1, 20 * 2**30]], 'its memory');
is(device($bus, $gpu)->{allocation}, 'md-worker-0', 'explain says who has the GPU');
ok(-f ledger_file('md-worker-0'), 'it has a file in the ledger');

# ---- xml

($status, my $xml) = ctl('xml', 'md-worker-0');
is($status, 0, 'xml');
like($xml, qr/<vcpupin vcpu="$_" cpuset="@{[$_ + 8]}"\/>/, "vCPU $_ is pinned to CPU " . ($_ + 8)) for 0 .. 7;
like($xml, qr/<memnode cellid="0" mode="strict" nodeset="1"\/>/, 'its memory is on node 1');
is(() = $xml =~ /<hostdev [^>]*managed="no"/g, 2, 'two host devices');

# ---- a second one

fault('reset');
my ($state, $tree) = (snapshot(times => 1), tree());
($status, $out, $err) = ctl('allocate', 'md-worker-1', @request);
is($status, 1, 'a second request is refused');
like($err, names('gpu', 0, 1, $gpu, 'md-worker-0'), 'with the sentence why');
is_error($bus->call('Allocate', 's' . (request(gpu => 1))[0], 'md-worker-1', (request(gpu => 1))[1]),
        'Insufficient', ['insufficient-devices', 'gpu', 0, 1], 'and over D-Bus');
is_error($bus->call('Allocate', 's' . (request('ib-vf' => 1))[0], 'md-worker-0', (request('ib-vf' => 1))[1]),
        'NameTaken', ['name-taken', 'md-worker-0'], 'the name is taken');
nothing_written('a refusal writes nothing');
same_tree($tree, 'changes nothing');
same_state($state, 'and leaves the state directory alone', times => 1);

# ---- release

($status, $out, $err) = ctl('release', 'md-worker-0');
is($status, 0, 'release') or diag($err);
like($out, names('md-worker-0'), 'says so');
is_deeply([$out =~ /^\[(\d+\/\d+) *\]/mg], [map { "$_/12" } 1 .. 12], 'and numbers its steps');
@signals = $bus->signals_until(sub { $_->{member} eq 'JobRemoved' });
is($signals[-1]{body}[2], 'done', 'JobRemoved says done');
is_deeply([grep { /^(?:AllocationRemoved|JobNew|JobRemoved)$/ } map { $_->{member} } @signals], [qw(JobNew AllocationRemoved JobRemoved)],
        'the allocation is gone before its job says done');
same_tree($before, 'the node is as it was');
is_deeply([grep { m{/allocations/} } keys %{ snapshot() }], [], 'the ledger holds no file');
is_deeply($bus->call('ListAllocations')->{body}[0], [], 'and no allocation');
is(device($bus, $gpu)->{state}, 'available', 'the GPU is on offer again');

done_testing();
