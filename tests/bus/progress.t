#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# A job tells what it does with each device. A terminal shows that, with a time and an end when a step takes long. Ctrl-C says what continues.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;

use Test::More;

use Node;

plan skip_all => 'no script' if !-x '/usr/bin/script';
node('hgx-h100', configure => 1);

my $pools = "[Pool gpu]\nMatch=vendor=10de class=0302\n";
configure($pools);

my $bus  = Bus->new->listen;
my @gpus = map { $_->{address} } grep { ($_->{pool} // '') eq 'gpu' } @{ describe($bus)->{devices} };
is(scalar @gpus, 8, 'the node has eight GPUs');

my $file = "$ENV{NODE_TMP}/terminal";
local $ENV{TERM} = 'xterm';

sub start {
        my ($command) = @_;
        unlink $file;
        my $pid = fork // die "fork: $!";
        return $pid if $pid;
        open STDIN,  '<', '/dev/null' or die $!;
        open STDOUT, '>', '/dev/null' or die $!;
        exec 'script', '-qefc', $command, $file or die $!;
}

# Tests that run beside this one have such a process too, with a node of their own.
sub client {
        my $is_ours = sub {
                my ($process) = @_;
                return (slurp_existing("$process/cmdline") // '') =~ /^passthroughctl\0allocate\0/ && (slurp_existing("$process/environ") // '') =~ /(?:^|\0)NODE_TMP=\Q$ENV{NODE_TMP}\E\0/;
        };
        return (map { m{(\d+)$} } grep { $is_ours->($_) } glob '/proc/[0-9]*')[0];
}

sub ended { my ($pid) = @_; waitpid $pid, 0; return $? >> 8 }

# The lines that are on the terminal. It wraps none, and knows no other sequences than those of progress.
sub screen {
        my $text = slurp_existing($file) // '';
        $text =~ s/^Script (?:started|done) .*\n//mg;
        my @lines = ('');
        my ($row, $column) = (0, 0);
        while ($text =~ /\G(?:(\r)|(\n)|\e\[(?:(\d+)A|([KJ]))|([^\r\n\e]+)|(.))/gs) {
                if    (defined $1) { $column = 0 }
                elsif (defined $2) { $lines[++$row] //= '' }
                elsif (defined $3) { $row -= $3 }
                elsif (defined $4) {
                        $lines[$row] = substr $lines[$row], 0, $column;
                        $#lines = $row if $4 eq 'J';
                } elsif (defined $5) {
                        $lines[$row] .= ' ' x ($column - length $lines[$row]) if length $lines[$row] < $column;
                        substr($lines[$row], $column, length $5) = $5;
                        $column += length $5;
                } else {
                        return "unknown sequence after '" . substr($text, 0, pos $text) . q(');
                }
        }
        pop @lines if $lines[-1] eq '';
        return @lines;
}

# Until the terminal has as many lines as there are expressions, each of which matches its line.
sub shows {
        my ($what, @wanted) = @_;
        my $is_shown = sub {
                my @lines = screen();
                return @lines == @wanted && !grep { $lines[$_] !~ /^$wanted[$_]$/ } 0 .. $#wanted;
        };
        return ok(wait_until($is_shown), $what) || diag(join "\n", screen());
}

my $UNTIL = qr/, until \d\d:\d\d:\d\d at most/;

# The values of DeviceSteps that the signals of jobs have told.
sub told { return map { $_->{body}[1]{DeviceSteps} // () } grep { $_->{member} eq 'PropertiesChanged' } @_ }

# ---- a step takes long

fault('reset', 'hang 2');
my $pid = start('exec passthroughctl allocate guest gpu=1');
shows('the step, with its time', qr/unbind \Q$gpus[0]\E from nvidia  \d+ s/, qr{\[2/3\]$UNTIL});
my @seconds;
ok(wait_until(sub { @seconds = slurp($file) =~ /from nvidia  (\d+) s/g; $seconds[0] < $seconds[-1] }), 'time passes');
cmp_ok($seconds[0], '>=', 2, 'which is said after two seconds');
fault('release');
is(ended($pid), 0, 'the job ends well');
my @lines = screen();
is(scalar(grep { /unbind|\[\d/ } @lines), 0, '... and its lines are gone');
like("@lines", names('guest', $gpus[0]), '... for the result') or diag("@lines");
is(release($bus, 'guest'), 'done', 'released');

# ---- devices at different steps

fault('reset', "hang driver_override\@$gpus[0]", "hang unbind\@$gpus[1]", "hang drivers_probe\@$gpus[2]");
$bus->forget_signals();
$pid = start('exec passthroughctl allocate guest gpu=8');
my ($new) = grep { $_->{member} eq 'JobNew' } $bus->signals_until(sub { $_->{member} eq 'JobNew' });
my %steps = ($gpus[0] => "reserve $gpus[0] for driver vfio-pci", $gpus[1] => "unbind $gpus[1] from nvidia", $gpus[2] => "bind $gpus[2] to vfio-pci");
my $is_told = sub {
        my $steps = $bus->properties($new->{body}[1], 'org.passthroughd1.Job')->{DeviceSteps};
        return join(' ', map { "$_=$steps->{$_}" } sort keys %$steps) eq join(' ', map { "$_=$steps{$_}" } sort keys %steps);
};
ok(wait_until($is_told), 'three devices are at three steps, and the others at none') or diag(explain($bus->properties($new->{body}[1], 'org.passthroughd1.Job')));
is_deeply((told(@{ $bus->{signals} }))[-1], \%steps, '... as the signals told');
shows('the terminal shows these', (map { qr/\Q$steps{$_}\E(?:  \d+ s)?/ } sort keys %steps), qr{\[\d+/24\](?:$UNTIL)?});
fault('release');
is(ended($pid), 0, 'the job ends well');
is_deeply((told($bus->signals_until(sub { $_->{member} eq 'JobRemoved' })))[-1], {}, '... with no device at a step');
is(release($bus, 'guest'), 'done', 'released');

# ---- a small terminal, that grows

fault('reset', map { "hang unbind\@$_" } @gpus);
$pid = start('stty rows 4 cols 30; exec passthroughctl allocate guest gpu=8');
shows('four rows', qr/unbind \Q$gpus[0]\E .*  \d+ s/, qr/unbind \Q$gpus[1]\E .*  \d+ s/, qr/and 6 more/, qr{\[\d+/24\].*});
is_deeply([grep { length > 29 } screen()], [], '... of thirty columns, the last of which stays empty');
is(system('stty', '-F', readlink('/proc/' . client() . '/fd/1'), 'rows', 24, 'cols', 80), 0, 'the terminal is resized');
shows('it shows all', (map { qr/unbind \Q$_\E from nvidia  \d+ s/ } @gpus), qr{\[\d+/24\]$UNTIL});

# ---- Ctrl-C

kill 'INT', client();
is(ended($pid), 130, 'interrupted');
@lines = screen();
is(scalar(grep { /^unbind|^\[\d/ } @lines), 0, '... the lines are gone');
my ($said) = map { /^passthroughctl: (.*)/ } join ' ', @lines;
like($said, names('guest', 'monitor', 'show'), 'it says what goes on, and how to follow it');
like($said, qr/\b\d\d:\d\d:\d\d\b/, 'and until when');
fault('release');
ok(wait_until(sub { allocation_state($bus, 'guest') eq 'ready' }), 'it does');
is(release($bus, 'guest'), 'done', 'released');

# ---- a terminal that cannot write over lines

fault('reset');
is(ended(start('TERM=dumb exec passthroughctl allocate guest gpu=1')), 0, 'a dumb terminal');
@lines = screen();
is_deeply([map { m{^(\[\d/3\])} } @lines], ['[1/3]', '[2/3]', '[3/3]'], '... shows each step') or diag("@lines");
unlike(slurp($file), qr/\e/, '... without escape sequences');
is(release($bus, 'guest'), 'done', 'released');

# ---- a device that is stuck

configure("[Daemon]\nJobTimeoutSec=4\n$pools");
fault('reset', "unkillable drivers_probe\@$gpus[3]");
$bus->forget_signals();
my ($signature, $entries) = request(gpu => 8);
my $reply = $bus->call('Allocate', "s$signature", 'guest', $entries);
my @told  = told($bus->signals_until(sub { $_->{member} eq 'JobRemoved' && $_->{body}[1] eq $reply->{body}[1] }));
ok((grep { ($_->{ $gpus[3] } // '') eq "bind $gpus[3] to vfio-pci" } @told), 'a device is bound');
is_deeply($told[-1], { $gpus[3] => "stuck: bind $gpus[3] to vfio-pci" }, '... and stuck at the end');
for my $gpu (@gpus[0 .. 2, 4 .. 7]) {
        ok((grep { ($_->{$gpu} // '') eq "undo: bind $gpu to vfio-pci" && $_->{ $gpus[3] } =~ /^stuck: / } @told), "$gpu is returned meanwhile");
}
fault('release', 'reset');

done_testing();
