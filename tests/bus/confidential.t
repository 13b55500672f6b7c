#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Confidential guests: what a host must have, which GPUs they get, documents, templates; confidential modes of GPUs as NVIDIA's driver tells them.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use JSON::XS;
use Test::More;

use Bus;
use Node;

node('hgx-h100', configure => 1);

my @gpus     = map { "0000:${_}3:00.0" } qw(1 2 3 4 9 a b c);
my $switches = () = slurp("$ENV{BUILD}/nodes/hgx-h100.tree") =~ m{/class=0x068000$}mg;
my $tmp      = $ENV{NODE_TMP};

sub config_of {
        my ($mode, %keys) = @_;
        my $line = $mode ? "ConfidentialMode=$mode\n" : '';
        return "[Daemon]\nHousekeepingCpus=0,112\n[Pool gpu]\nMatch=vendor=10de class=0302\n$line" . ($keys{gpu} // '') . "[Pool switch]\nMatch=vendor=10de class=0680\n$line"
            . "[Pool rdma]\nMatch=vendor=15b3 type=device\nMatch=vendor=15b3 type=pf\n";
}

# What passthroughctl says of the recorded node, whose kernel has these files.
sub recorded {
        my ($files, $conf, @arguments) = @_;
        spew("$tmp/node.tree", slurp("$ENV{BUILD}/nodes/hgx-h100.tree") . join '', map { "$_\n" } @$files);
        spew("$tmp/node.conf", $conf);
        my (undef, $out, $err) = ctl($arguments[0], '--node', "$tmp/node.tree", '--config', "$tmp/node.conf", @arguments[1 .. $#arguments]);
        return ($out . $err) =~ s/\s+/ /gr;
}

my $SNP   = ['sys/module/kvm_amd/parameters/sev_snp=Y', 'sys/fs/cgroup/misc.capacity=sev 410\nsev_es 99\n'];
my @GUEST = qw(--cpus 8 --memory 16G --confidential);

# ---- the host

like(recorded([], config_of('on'), 'plan', 'gpu=1', @GUEST, 'snp'), names('SEV-SNP', 'sev_snp of kvm_amd', 'sev_snp=1'), 'KVM without SEV-SNP');
like(recorded(['sys/module/kvm_amd/parameters/sev_snp=N'], config_of('on'), 'plan', 'gpu=1', @GUEST, 'snp'), names('SEV-SNP', 'iommu=pt'), 'it is off, and this kernel has iommu=pt');
like(recorded($SNP, config_of('on'), 'plan', 'gpu=1', @GUEST, 'tdx'), names('TDX', 'tdx of kvm_intel'), 'the other kind');
like(recorded($SNP, config_of('on'), 'plan', 'gpu=1', @GUEST, 'sev'), names("'sev'", 'snp or tdx'), 'a kind that only a template can ask for');
my $slots = ['sys/module/kvm_intel/parameters/tdx=Y', 'sys/fs/cgroup/misc.capacity=tdx 1\n'];
unlike(recorded($slots, config_of('on'), 'plan', 'gpu=1', @GUEST, 'tdx'), qr/slot|keys/, 'a slot is free');

# ---- GPUs by their mode

my $plan = recorded($SNP, config_of('on'), 'plan', 'gpu=1', 'rdma=1', @GUEST, 'snp');
like($plan, names('Confidential:', 'snp', 'GPUDirect', 'swiotlb', 'fw_cfg'), 'the plan says what the guest lacks');
my $json = JSON::XS->new->decode(recorded($SNP, config_of('on'), 'plan', '--json', 'gpu=1', @GUEST, 'snp'));
is($json->{confidential}, 'snp', '... also as JSON');
ok(@{ $json->{confidential_notes} } >= 3, '... with the sentences');
ok($json->{iommufd}{used}, '... and iommufd');
for (
        ['on',             'gpu=2',                       'one Hopper GPU'],
        ['devtools',       'gpu=2',                       'one Hopper GPU'],
        ['protected-pcie', 'gpu=8',                       'all NVSwitches'],
        ['protected-pcie', "gpu=7 switch=$switches",      'all GPUs'],
        ['',               'gpu=1',                       'in the clear'],
        ['on',             'gpu=1 --page-size 1G',        'hugepages'],
        ['on',             'gpu=1 --shared-memory x=1G',  'share memory'],
    )
{
        my ($mode, $wanted, $word) = @$_;
        like(recorded($SNP, config_of($mode), 'plan', split(' ', $wanted), @GUEST, 'snp'), names('SEV-SNP', $word), "mode '$mode', $wanted");
}
unlike(recorded($SNP, config_of('protected-pcie'), 'plan', 'gpu=8', "switch=$switches", @GUEST, 'snp'), qr/With SEV-SNP/, 'a whole board');
unlike(recorded($SNP, config_of(''), 'plan', 'rdma=1', @GUEST, 'snp'), qr/With SEV-SNP/, 'a NIC alone');
like(recorded($SNP, config_of('on'), 'plan', 'gpu=1', qw(--cpus 8 --memory 16G)), names('confidential guest', '--confidential'), 'a GPU in mode on for a plain guest');

# ---- documents

my $xml = recorded($SNP, config_of('on'), 'xml', 'vm', 'gpu=1', @GUEST, 'snp');
like($xml, qr/<launchSecurity type="sev-snp"> ?<policy>0x30000</, 'launchSecurity');
like($xml, qr/<loader stateless="yes"\/>/,                      'a firmware without flash');
like($xml, qr/<rom enabled="no"\/>/,                            'no iPXE');
unlike($xml, qr/immediate|hugepages|<memoryBacking/, 'memory is not allocated before');
like($xml, names('<passthroughd:confidential type="snp">', 'GPUDirect'), 'the metadata says what it lacks') or diag($xml);
spew("$tmp/sev.xml", "<domain type='kvm'><os firmware='efi'/><launchSecurity type='sev'><policy>0x1</policy></launchSecurity></domain>");
like(recorded(['sys/module/kvm_amd/parameters/sev=Y'], config_of(''), 'xml', 'vm', '--template', "$tmp/sev.xml", 'gpu=1', qw(--cpus 8 --memory 16G)), names('SEV', 'in the clear'), 'a template with SEV beside a GPU');

# ---- check

my $check = recorded([], config_of('on'), 'check');
like($check, names('warning confidential', "'gpu'", 'ConfidentialMode=on'), 'check: a host without such guests');
like(recorded($SNP, config_of('on'), 'check'), names('ok confidential', 'SEV-SNP'), 'one with');
like(recorded([], config_of(''), 'check'), names('ok confidential'), 'nobody asks');
like(recorded($SNP, config_of('on') =~ s/(?<=class=0680\n)ConfidentialMode=on/ConfidentialMode=devtools/r, 'check'), names("Pools 'gpu' and 'switch'", 'one mode'), 'two modes');

# ---- the modes that NVIDIA's driver tells

my $dir = $ENV{NVFM_DIR};
mkdir $dir or die "$dir: $!";
spew("$dir/confidential", "0 0 0\n");
for my $address (@gpus) {
        my $path   = readlink("$ENV{NODE_ROOT}/sys/bus/pci/devices/$address") =~ s{^(?:\.\./)+}{sys/}r;
        my $config = substr(slurp("$ENV{NODE_ROOT}/$path/config"), 0, 256) . pack 'V V V', 0x00010003, hex substr($address, 5, 2), 0x11223344;
        fault("write $path/config " . join '', map { sprintf '\x%02x', $_ } unpack 'C*', $config);
}
configure(config_of('on'));
my $bus = Bus->new->listen;
ok(wait_until(sub { !grep { !defined device($bus, $_)->{confidential_mode} } @gpus }), 'each GPU is asked for');
is(device($bus, $gpus[0])->{confidential_mode}, 'off',  'the driver tells the mode');
is(device($bus, $gpus[0])->{state},             'host', 'a GPU in another mode than that of its pool is not offered');
like(device($bus, $gpus[0])->{reason}, names('mode is off', 'ConfidentialMode=on'), '... and why');
other_hand_binds($gpus[0], 'vfio-pci');
restart();
$bus = Bus->new->listen;
is(device($bus, $gpus[0])->{confidential_mode}, 'off', 'its mode is kept by the serial number');
is((ctl('rescan'))[0], 0, 'rescan');
ok(wait_until(sub { !defined device($bus, $gpus[0])->{confidential_mode} }), 'forgets the mode of a GPU that the driver does not have');
is(device($bus, $gpus[1])->{confidential_mode}, 'off', '... and of no other');
spew("$dir/confidential", "1 1 0\n");
is((ctl('rescan'))[0], 0, 'rescan');
ok(wait_until(sub { (device($bus, $gpus[1])->{confidential_mode} // '') eq 'devtools' }), 'a changed mode');
spew("$dir/confidential", "0 0 1\n");
is((ctl('rescan'))[0], 0, 'rescan');
ok(wait_until(sub { (device($bus, $gpus[1])->{confidential_mode} // '') eq 'protected-pcie' }), 'protected PCIe');
spew("$dir/confidential", "1 0 0\n");
is((ctl('rescan'))[0], 0, 'rescan');
ok(wait_until(sub { device($bus, $gpus[1])->{state} eq 'available' }), 'a GPU in the mode of its pool is offered');
is_error($bus->call('Plan', request(gpu => 1, cpus => 2, memory => 2**32)), 'NotSupported', ['not-supported', 'confidential guest'], 'not to a plain guest');
ok(!$bus->call('Plan', request(gpu => 1))->{error}, '... but alone, for a guest of another program');

# ---- an allocation

fault("set sys/module/kvm_amd/parameters/sev_snp Y");
is((ctl('rescan'))[0], 0, 'rescan: KVM has SEV-SNP now');
my $mappings = 'sys/module/vfio_iommu_type1/parameters/dma_entry_limit';
my %guest = (gpu => 1, cpus => 8, memory => 2**34, confidential => 'snp');
is_error($bus->call('Plan', request(%guest)), 'NotSupported', ['not-supported', 'iommufd', 'dma_entry_limit='], 'VFIO of this kernel has no character devices for iommufd');
fault("set $mappings 4227071");
is((ctl('rescan'))[0], 0, 'rescan');
is_error($bus->call('Plan', request(%guest)), 'NotSupported', ['not-supported', 'iommufd'], '... and too few mappings');
fault("set $mappings 4227072");
is((ctl('rescan'))[0], 0, 'rescan');
is(allocate($bus, 'vm', %guest), 'done', 'a confidential guest with as many mappings as it needs');
is(allocation($bus, 'vm')->{confidential}, 'snp', 'the allocation says so');
like((ctl('show', 'vm'))[1], qr/^Confidential: +snp$/m, '... and so does show');
my ($signature, $entries) = request(rdma => 1);
is_error($bus->call('Attach', "st$signature", 'vm', Node::generation($bus, 'vm'), $entries), 'NotSupported', ['not-supported', "'vm'"], 'it gets no further device');
is_error($bus->call('Detach', 'sts', 'vm', Node::generation($bus, 'vm'), 'gpu0'), 'NotSupported', ['not-supported', "'vm'"], '... and keeps those that it has');
restart();
$bus = Bus->new->listen;
is(allocation($bus, 'vm')->{confidential}, 'snp', 'the next daemon knows');
like((ctl('xml', 'vm'))[1], qr/<launchSecurity type="sev-snp">/, 'its document');
is(release($bus, 'vm'), 'done', 'released');

done_testing;
