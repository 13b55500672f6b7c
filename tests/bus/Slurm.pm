# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a Slurm for a test: munged, slurmctld and a slurmd for each node, in $NODE_TMP/slurm, all with the plugin.
package Slurm;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use POSIX ();
use Test::More;

use Node;

our @EXPORT = qw(need_slurm second_node start_slurm start_program kill_program submit slurm slurm_logs job node_state);

my $dir;
my %pid;      # of programs: "munged", "slurmctld", "slurmd-NODE"
my %command;
my %env;      # of programs that have one of their own
my $second;   # closed, the second node ends

sub need_slurm {
        plan skip_all => 'needs root' if $> != 0;
        plan skip_all => "no $_" for grep { !-x "/usr/sbin/$_" } qw(munged slurmctld slurmd);
        plan skip_all => "$ENV{BUILD}/passthrough.so is not built" if $ENV{BUILD} && !-e "$ENV{BUILD}/passthrough.so";
        return;
}

# Runs a program of Slurm. Returns exit status and output.
sub slurm {
        my (@command) = @_;
        my $pid = open(my $out, '-|') // die "fork: $!";
        if (!$pid) {
                open STDERR, '>&', \*STDOUT or die $!;
                open STDIN, '<', '/dev/null' or die $!;
                exec @command or POSIX::_exit(127);
        }
        my $text = do { local $/ = undef; <$out> // '' };
        close $out;
        return ($? >> 8, $text);
}

sub start_program {
        my ($name) = @_;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDIN,  '<',  '/dev/null'      or die $!;
                open STDOUT, '>>', "$dir/$name.log" or die $!;
                open STDERR, '>&', \*STDOUT         or die $!;
                local %ENV = (%ENV, %{ $env{$name} // {} });
                exec @{ $command{$name} } or POSIX::_exit(127);
        }
        $pid{$name} = $pid;
        return;
}

sub kill_program {
        my ($name, $signal) = @_;
        my $pid = delete $pid{$name} or return;
        kill $signal, $pid;
        waitpid $pid, 0;
        return;
}

# Returns all logs, for diag().
sub slurm_logs { return map { slurp($_) } glob "$dir/*.log" }

# Returns the KEY=VALUE words of "scontrol show".
sub show {
        my ($what, $name) = @_;
        my ($status, $text) = slurm('scontrol', '--oneliner', '--details', 'show', $what, $name);
        return $status ? {} : { map { /^(\w+)=(.*)/s ? ($1 => $2) : () } split ' ', $text };
}
sub job { my ($id) = @_; return show('job', $id) }
sub node_state { my ($name) = @_; return show('node', $name) }

# Runs sbatch. Returns the job's number.
sub submit {
        my (@arguments) = @_;
        my ($status, $text) = slurm('sbatch', '--parsable', @arguments);
        like($text, qr/^\d+$/, "sbatch @arguments") or die "$text\n";
        return int $text;
}

# Starts another simulated node in this network, until the end of the test. Returns its environment.
sub second_node {
        my ($name) = @_;
        my ($tests, $file) = (abs_path(dirname(__FILE__) . '/..'), "$ENV{NODE_TMP}/second.env");
        my $pid = open($second, '|-') // die "fork: $!";
        if (!$pid) {
                $ENV{WITH_NODE_BESIDE} = 1;
                exec "$tests/with-node", "$tests/nodes/$name.tree", '--', 'sh', '-c', "env -0 >$file.new && mv $file.new $file && exec cat >/dev/null" or POSIX::_exit(127);
        }
        ok(wait_until(sub { -e $file }), 'a second node') or die;
        return map { split /=/, $_, 2 } split /\0/, slurp($file);
}

# A node: name, line of slurm.conf, arguments of the plugin, and the environment of another node. $more: further lines of slurm.conf.
sub start_slurm {
        my ($more, @nodes) = @_;
        $dir = "$ENV{NODE_TMP}/slurm";
        # Slurm finds no address when only the loopback device has one.
        system('ip link set lo up && ip addr add 192.0.2.1/32 dev lo') == 0 or die 'ip';
        mkdir $_ or die "$_: $!" for $dir, "$dir/munge", "$dir/state";
        chmod 0755, $dir, "$dir/munge";
        system('cp', "$ENV{BUILD}/passthrough.so", $dir) == 0 or die 'cp';
        spew("$dir/munge/key", join '', map { chr int rand 256 } 1 .. 1024);
        chmod 0400, "$dir/munge/key";
        my @munge = map { "--$_-file=$dir/munge/$_" } qw(key pid log seed);
        $command{munged}    = ['munged', '--foreground', '--force', @munge, "--socket=$dir/munge/socket"];
        $command{slurmctld} = ['slurmctld', '-D', '-f', "$dir/$nodes[0]{name}.conf"];
        my $port = 16818;
        my @lines = map { "NodeName=$_->{name} NodeHostname=localhost NodeAddr=192.0.2.1 Port=" . $port++ . " State=UNKNOWN $_->{line}" } @nodes;
        for my $node (@nodes) {
                my $name = $node->{name};
                spew("$dir/$name.plugstack", "required $dir/passthrough.so @{ $node->{plugin} }\n");
                spew("$dir/$name.conf", <<"END" . join("\n", $more, @lines) . "\n");
ClusterName=test
SlurmctldHost=localhost(192.0.2.1)
SlurmctldPort=16817
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket,cred_expire=5
KillWait=5
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
PrologFlags=Alloc
PlugStackConfig=$dir/$name.plugstack
DebugFlags=NO_CONF_HASH
ReturnToService=2
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
PartitionName=all Nodes=ALL Default=YES State=UP
END
                $command{"agent-$name"}  = ['passthroughd-slurm', "--node=$name", map { /^directory=/ ? "--$_" : () } @{ $node->{plugin} }];
                $env{"agent-$name"}      = $node->{env};
                $command{"slurmd-$name"} = ['slurmd', '-D', '-f', "$dir/$name.conf", '-N', $name];
        }
        $ENV{SLURM_CONF} = "$dir/$nodes[0]{name}.conf";
        spew("$dir/gres.conf", join "\n", map { "NodeName=$_->{name} $_->{gres}" } @nodes) if $nodes[0]{gres};
        start_program($_) for qw(munged slurmctld), map { "slurmd-$_->{name}" } @nodes;
        for my $node (@nodes) {
                ok(wait_until(sub { (node_state($node->{name})->{State} // '') =~ /^IDLE$/ }), "$node->{name}: Slurm is ready")
                        or diag(slurm_logs());
        }
        return;
}

# Kills all programs of Slurm in this network namespace: steps survive slurmd.
sub stop_slurm {
        my $network = readlink '/proc/self/ns/net';
        kill_program($_, 'KILL') for keys %pid;
        for (1 .. 100) {
                my @left = grep { (readlink("/proc/$_/ns/net") // '') eq $network && (eval { slurp("/proc/$_/comm") } // '') =~ /^slurm/ } map { m{(\d+)$} } glob '/proc/[0-9]*';
                return if !@left;
                kill 'KILL', @left;
                select undef, undef, undef, 0.05;
        }
        return;
}

END {
        local $? = $?;
        stop_slurm() if $dir;
        close $second if $second;
}

1;
