#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# The files for the images of guests, in a system that systemd runs: the machine is told by its QEMU what guests are told, see Machine.pm. What was
# sent is where the manual says, and services have the variables.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use MIME::Base64 qw(decode_base64);
use Test::More;

use Lab;

use constant { SOURCE => '/usr/share/passthroughd/guest/lib', SENT => '/sys/firmware/qemu_fw_cfg/by_name/opt/org.passthroughd1', FILES => '/run/passthroughd' };
use constant { UNIT => 'passthroughd-guest.service', PROBE => '/run/systemd/user/probe.service', USER => 'bin' };

my $uid     = getpwnam USER;
my $runtime = "/run/user/$uid";
my @files   = map { s{^\Q${\ SOURCE }\E}{/usr/lib}r } split /\n/, output('find', SOURCE, '-type', 'f');
END {
        my $status = $?;
        command('systemctl', 'stop', "user\@$uid.service", UNIT);
        command('systemctl', 'disable', UNIT);
        unlink @files, PROBE;
        command(qw(rm -rf /run/nvidia-topologyd /run/environment.d), FILES);
        command(qw(systemctl daemon-reload));
        command(qw(systemctl start passthroughd.service));
        $? = $status;
}

sub after { my ($unit) = @_; return { map { $_ => 1 } split ' ', output(qw(systemctl show --property=After --value), $unit) } }

# ---- an image as the manual makes one; the daemon has the directory of the files elsewhere

output(qw(systemctl stop passthroughd.service));
output(qw(modprobe --remove qemu_fw_cfg));
is_deeply([grep { -e } @files, SENT, FILES], [], 'there is nothing of a guest');
output('cp', '-r', SOURCE, '/usr/');
output('systemctl', 'enable', UNIT);
my ($status, $out, $err) = command(qw(systemd-analyze verify), UNIT);
is("$status$out$err", '0', 'systemd-analyze verify finds nothing wrong');
ok(after("user\@$uid.service")->{'systemd-user-sessions.service'} && after('systemd-user-sessions.service')->{ UNIT() }, 'managers of users start after the unit');
ok(after(UNIT)->{'sysinit.target'} && after('sysinit.target')->{'systemd-tmpfiles-setup.service'}, '... which starts after the lines of tmpfiles.d');

# ---- what was sent

output(qw(systemd-tmpfiles --create passthroughd-guest.conf));
($status, $out, $err) = command('systemctl', 'start', UNIT);
is($status, 0, 'the unit starts') or diag($err);
my %sent = map { m{([^/]+)/raw$} => decode_base64(slurp($_)) } glob SENT . '/*/raw';
is_deeply([sort keys %sent], [qw(devices.json nccl-topology.xml services.env)], '... and loads the module: three files were sent');
is_deeply({ map { s{.*/}{}r => slurp($_) } glob FILES . '/*' }, \%sent, '... which it decodes');
is(slurp('/run/nvidia-topologyd/virtualTopology.xml'), $sent{'nccl-topology.xml'}, 'one is where NCCL looks by default');

# ---- what services have

my %told = $sent{'services.env'} =~ /^(\w+)=(.*)$/mg;
is_deeply([keys %told], ['LUPINE_SERVER'], 'a variable was sent');
mkdir '/run/systemd/user';
spew(PROBE, "[Service]\nType=oneshot\nExecStart=sh -c 'env >%t/environment && cat \"\$\$NCCL_TOPO_FILE\" >%t/topology'\n");
output('systemctl', 'start', "user\@$uid.service");
output('setpriv', "--reuid=$uid", "--regid=$uid", '--clear-groups', 'env', "XDG_RUNTIME_DIR=$runtime", qw(systemctl --user start probe.service));
my %seen = slurp("$runtime/environment") =~ /^(\w+)=(.*)$/mg;
is($seen{NCCL_TOPO_FILE}, FILES . '/nccl-topology.xml', 'a service of the user manager is told where the topology is');
is(slurp("$runtime/topology"), $sent{'nccl-topology.xml'}, '... and can read it');
is($seen{$_}, $told{$_}, "... and has $_") for keys %told;
%seen = output(qw(systemd-run --quiet --wait --pipe), '--property=EnvironmentFile=-' . FILES . '/services.env', 'env') =~ /^(\w+)=(.*)$/mg;
is($seen{$_}, $told{$_}, "a service of the system that names the file has $_") for keys %told;

done_testing();
