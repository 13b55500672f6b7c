# SPDX-License-Identifier: GPL-2.0-or-later
# Records the output of the daemon in one order: tests/recorder is preloaded into it. Each operation becomes a readable text:
#
#     > what the test does                        then the output, until the daemon is idle
#     save STATE-FILE, remove STATE-FILE          the members that differ from the earlier contents
#     journal LEVEL MESSAGE_ID: sentence          [the other fields]
#     signal OBJECT Signal: values                a property is Name=value; sorted by name within a signal
#     settles OBJECT: values                      final values of capacity and epoch
#     reply to METHOD: values
#     notify WORD ...                             to the service manager
#
# "again NAME" is a property that was sent with an unchanged value. Two changes of an object in one signal are one line with the properties of both.
# Values that differ between runs have names: uuid-1 is the first UUID in a text, uuid-2 the next. Generations and jobs, whose numbers depend on
# earlier operations, have names too.
package Recorder;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use JSON::XS;
use Test::More;

use Node;

our @EXPORT = qw(record_from operation ask act act_until comes_to_rest until_told left_over);

use constant { SOON => 2.5, CALL => 1, SIGNAL => 4 }; # seconds; types of messages

my $ROOT   = abs_path(dirname(__FILE__) . '/../..');
my $GOLDEN = "$ROOT/tests/golden/signals";
my $JSON   = JSON::XS->new->canonical->allow_nonref;
my @LEVELS = qw(emerg alert crit err warning notice info debug);
my %ID     = reverse slurp("$ROOT/include/util/messages.h") =~ /^#define MESSAGE_(\w+) +"(\w+)"/mg;

my $bus;

# Records the next daemon, whose log counts as its journal. $bus: the test's connection.
sub record_from {
        ($bus) = @_;
        my $file = "$ENV{NODE_TMP}/daemon.preload";
        my ($device, $inode) = stat "$ENV{NODE_TMP}/daemon.log" or die "daemon.log: $!";
        $ENV{JOURNAL_STREAM} = "$device:$inode";
        spew("$ENV{NODE_TMP}/record", '');
        return spew($file, slurp($file) =~ s{\n}{:$ENV{BUILD}/tests/recorder.so\n}r);
}

# ---- the record

my $offset = 0;
my %stream;  # PID FD => incomplete message that the daemon sent on its bus connection
my %saved;   # state file => its contents
my $lines;   # text of the operation
my %names;   # of the operation: kind => { value => number }
my %asked;   # serial of a call of this test => its method
my %found;   # golden files of the operations so far

sub name_for {
        my ($kind, $value) = @_;
        my $of = $names{$kind} //= {};
        my $n  = keys %$of;
        $of->{$value} //= $n + 1;
        return "$kind-$of->{$value}";
}

sub number { my ($kind, $value) = @_; return $value ? name_for($kind, $value) : 0 }

# Replaces values that differ between runs by names. An unset time stays 0.
sub in_words {
        my ($text) = @_;
        $text =~ s/\Q$ENV{NODE_TMP}\E/TMP/g;
        $text =~ s/\b([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b/name_for('uuid', $1)/ge;
        $text =~ s/\b([0-9a-f]{32})\b/name_for('boot', $1)/ge;
        $text =~ s/\b(02(?::[0-9a-f]{2}){7}|02(?::[0-9a-f]{2}){5})\b/name_for(length $1 > 17 ? 'guid' : 'mac', $1)/ge;
        $text =~ s{(\bgeneration(?:=|": ?|: ))(\d+)}{$1 . number('generation', $2)}gie;
        $text =~ s{(\b(?:lease_?end|deadline)(?:=|": ?|: ))(\d+)}{$1 . ($2 ? 'TIME' : 0)}gie;
        $text =~ s{\bJob (\d+),}{name_for('job', $1) . ','}ge;
        $text =~ s{\bEpoch=\d+}{Epoch grows};
        return $text;
}

sub add_line { my ($line, @more) = @_; $lines .= in_words("$line\n" . join '', map { "        $_\n" } @more); return }

# Shortens an object path: /org/passthroughd1/device/_30000_3a13_3a00_2e0 is device/0000:13:00.0, and jobs are numbered within the operation.
sub object {
        my ($path) = @_;
        my $name = $path =~ s{^/org/passthroughd1/?}{}r =~ s{_([0-9a-f]{2})}{chr hex $1}ger || 'manager';
        return $name =~ s{^job/(\d+)$}{name_for('job', $1)}er;
}

sub value { my ($value) = @_; return ref $value ? $JSON->encode($value) : $value =~ m{^/org/passthroughd1} ? object($value) : $value =~ /[ "]|^$/ ? $JSON->encode("$value") : $value }

my %told; # object => { property => the value that was told last }

# Returns Name=value of each changed property, and the names of the others.
sub properties {
        my ($object, $values) = @_;
        my (@new, @again);
        for my $name (sort keys %$values) {
                my $value = value($values->{$name});
                if (($told{$object}{$name} // '') eq $value) { push @again, $name }
                else                                         { push @new,   "$name=" . ($object =~ /^job-/ && $name eq 'Id' ? value(name_for('job', $value)) : $value) }
                $told{$object}{$name} = $value;
        }
        return (@new, @again ? "again @again" : ());
}

# Notes capacity and epoch, which the daemon sends once per turn of its loop. The number of turns, and the job's steps that are sent before the end of
# a turn, depend on the scheduler. Therefore only the values that differ at the end of an act are shown.
my %before;   # object => { property => value at the beginning of the act }
my %repeated; # object => { property => 1 }: sent with an unchanged value

sub note_capacity {
        my ($object, $values) = @_;
        for my $name (keys %$values) {
                my $value = value($values->{$name});
                $repeated{$object}{$name} = 1 if ($told{$object}{$name} // '') eq $value;
                $before{$object}{$name} //= $told{$object}{$name} // '';
                $told{$object}{$name} = $value;
        }
        return;
}

sub tell_capacity {
        for my $object (sort keys %before) {
                my @new = map { "$_=$told{$object}{$_}" } grep { $before{$object}{$_} ne ($told{$object}{$_} // '') } sort keys %{ $before{$object} };
                my @again = sort keys %{ $repeated{$object} // {} };
                add_line("settles $object: " . join ', ', @new, @again ? "again @again" : ()) if @new || @again;
        }
        %before = %repeated = ();
        return;
}

sub told_signal {
        my ($m) = @_;
        my @body = @{ $m->{body} };
        my $member = $m->{member};
        my $object = object($member =~ /^Interfaces/ ? $body[0] : $m->{path});
        if ($member eq 'PropertiesChanged') {
                return note_capacity($object, $body[1]) if $object =~ m{^(?:pool|node)/} || exists $body[1]{Epoch};
                return add_line("signal $object: " . join ', ', properties($object, $body[1]), map { "$_ invalidated" } sort @{ $body[2] });
        } elsif ($member eq 'InterfacesAdded') {
                delete $told{$object};
                return add_line("signal $object added:", map { properties($object, $body[1]{$_}) } grep { !/^org[.]freedesktop/ } sort keys %{ $body[1] });
        } elsif ($member eq 'InterfacesRemoved') {
                return add_line("signal $object removed: " . join ', ', map { s/.*[.]//r } grep { !/^org[.]freedesktop/ } sort @{ $body[1] });
        }
        shift @body if $member =~ /^Job/; # the number, which is in the path as well
        return add_line("signal $member: " . join ' ', map { value($_) } @body);
}

# Returns the method of the recorded call that a reply answers.
sub method_of { my ($m) = @_; return $m->{reply_serial} && $asked{ ($m->{destination} // '') . " $m->{reply_serial}" } }

sub is_told { my ($m) = @_; return $m->{type} == SIGNAL || method_of($m) || ($m->{member} // '') =~ /^(?:Request|Release)Name$/ }

sub told_message {
        my ($m) = @_;
        return told_signal($m) if $m->{type} == SIGNAL;
        if ($m->{type} == CALL) {
                %told = ();
                return add_line("call $m->{member}: $m->{body}[0]");
        }
        my $words = $m->{error} ? ($m->{error} =~ s/^org[.]passthroughd1[.]Error[.]//r) . ": $m->{body}[0]" : join ' ', map { $_ eq '/' ? 'no job' : value($_) } @{ $m->{body} };
        return add_line('reply to ' . method_of($m) . (length $words ? ": $words" : ''));
}

# Calls a method of the Manager, and records the reply.
sub ask {
        my ($method, @rest) = @_;
        my $serial = $bus->post(Bus::NAME, Bus::PATH, Bus::MANAGER, $method, @rest);
        $asked{"$bus->{name} $serial"} = $method;
        return $bus->reply($serial);
}

sub take_bus {
        my ($key, $bytes) = @_;
        $stream{$key} = bless { in => '', descriptors => [] }, 'Bus' if $bytes =~ /^\0AUTH/;
        my $stream = $stream{$key} // return;
        $stream->{in} .= $bytes;
        return if !$stream->{begun} && !($stream->{begun} = $stream->{in} =~ s/^.*?BEGIN\r\n//s);
        while (my $message = $stream->take_message(\&is_told)) { told_message($message) if is_told($message) }
        return;
}

sub take_journal {
        my ($bytes) = @_;
        my (%field, @device);
        while (length $bytes) {
                my ($key, $value);
                if ($bytes =~ s/\A(\w+)=(.*)\n//) { ($key, $value) = ($1, $2) }
                else { $bytes =~ s/\A(\w+)\n//; $key = $1; ($value, $bytes) = unpack 'Q</a x a*', $bytes }
                if ($key eq 'PASSTHROUGH_DEVICE') { push @device, $value }
                else                              { $field{$key} = $value }
        }
        my ($level, $text, $program, $id) = delete @field{qw(PRIORITY MESSAGE SYSLOG_IDENTIFIER MESSAGE_ID)};
        my @fields = ((map { lc(s/^PASSTHROUGH_//r) . "=$field{$_}" } sort keys %field), @device ? "device=@device" : ());
        utf8::decode($text);
        return add_line("journal $LEVELS[$level] " . ($id ? $ID{$id} // $id : '-') . ": $text", @fields ? '[' . join(' ', @fields) . ']' : ());
}

# Returns the differences of two documents, as PATH: value.
sub differences {
        my ($path, $before, $now) = @_;
        return if $JSON->encode($before) eq $JSON->encode($now);
        return "$path: no longer" if !defined $now;
        if (ref $now eq 'HASH' && ref $before eq 'HASH') {
                return map { differences(length $path ? "$path.$_" : $_, $before->{$_}, $now->{$_}) } sort keys %{ { %$before, %$now } };
        } elsif (ref $now eq 'ARRAY' && grep { ref eq 'HASH' } @$now) {
                $before = [] if ref $before ne 'ARRAY';
                return map { differences($path . "[$_]", $before->[$_], $now->[$_]) } 0 .. (@$before > @$now ? $#$before : $#$now);
        }
        return "$path: " . $JSON->encode($now);
}

sub take_save {
        my ($path, $text) = @_;
        return add_line("save $path: a number") if $path eq 'generation';
        my ($known, @differ) = (exists $saved{$path});
        if (my $document = eval { $JSON->decode($text) }) {
                @differ = differences('', $JSON->decode($saved{$path} // '{}'), $document);
        } else {
                my %before = map { $_ => 1 } split /\n/, $saved{$path} // '';
                @differ = map { $path eq 'released' ? s/ (\d+)$/' ' . name_for('generation', $1)/er : $_ } grep { !$before{$_} } split /\n/, $text;
        }
        $saved{$path} = $text;
        return add_line("save $path" . ($known ? @differ ? ', changed' : ', the same again' : ', new'), @differ);
}

my %take = (
        bus     => sub { my ($key, $bytes) = @_; return take_bus($key, $bytes) },
        journal => sub { return take_journal($_[1]) },
        notify  => sub { return add_line('notify ' . join ' ', split /\n/, $_[1]) },
        save    => sub { my ($path, $text) = split /\n/, $_[1], 2; return take_save($path =~ s{^[.]/}{}r, $text) },
        remove  => sub { my $path = $_[1] =~ s{^[.]/}{}r; delete $saved{$path}; return $path =~ m{^jobs/} ? () : add_line("remove $path") },
);

sub take_record {
        open my $file, '<:raw', "$ENV{NODE_TMP}/record" or die "record: $!";
        seek $file, $offset, 0;
        local $/ = "\n";
        while (defined(my $head = <$file>)) {
                # A record may be seen before all of it is written: it is taken the next time.
                last if $head !~ /\n\z/;
                my ($kind, $pid, $fd, $size) = $head =~ /^(\w+) (\d+) (-?\d+) (\d+)\n/ or die "record: $head";
                last if read($file, my $bytes, $size) != $size;
                $take{$kind}->("$pid $fd", $bytes);
                $offset = tell $file;
        }
        return;
}

# ---- waiting for the idle daemon

# Returns whether a timer of the daemon expires soon.
sub timer_is_due {
        my $pid = pid();
        for my $fd (glob "/proc/$pid/fd/*") {
                next if (readlink $fd // '') !~ /timerfd/;
                my ($seconds, $rest) = (slurp_existing($fd =~ s{/fd/}{/fdinfo/}r) // '') =~ /^it_value: \((\d+), (\d+)\)/m or next;
                return 1 if ($seconds || $rest) && $seconds + $rest / 1e9 < SOON;
        }
        return 0;
}

# Waits until the daemon is idle: no child, no timer that expires soon, no new output. $hangs: a hanging write keeps a child.
sub comes_to_rest {
        my ($hangs) = @_;
        my ($quiet, $told) = (0, '');
        return 1 if !-e $ENV{DAEMON_PID};
        return wait_until(sub {
                $bus->ping();
                take_record();
                my $rests = $lines eq $told && ($hangs || !timer_is_due() && !daemon_children());
                $told  = $lines;
                $quiet = $rests ? $quiet + 1 : 0;
                return $quiet == 3;
        });
}

# Waits until a line of this operation matches.
sub until_told {
        my ($wanted) = @_;
        return wait_until(sub { take_record(); return $lines =~ $wanted });
}

# ---- operations

# Records an operation: the function calls act() and act_until(). Compares the text with its golden file.
sub operation {
        my ($name, $function) = @_;
        ($lines, %names) = ('');
        $function->();
        my $path = "$GOLDEN/$name.txt";
        $found{"$name.txt"} = 1;
        utf8::encode($lines);
        $lines =~ s/\A\n//;
        if ($ENV{UPDATE_GOLDEN}) {
                make_path($GOLDEN);
                spew($path, $lines);
        }
        spew("$ENV{NODE_TMP}/found", $lines);
        my $difference = qx(diff -u --label before --label now '$path' $ENV{NODE_TMP}/found 2>&1);
        return is($?, 0, "$name: as tests/golden/signals/$name.txt says") || diag($difference, 'If this difference is meant: UPDATE_GOLDEN=1 tests/bus/signals.t');
}

# Returns the golden files without an operation.
sub left_over { return grep { !$found{$_} } map { s{.*/}{}r } glob "$GOLDEN/*.txt" }

# Records one action of the test until the daemon is idle.
sub act {
        my ($what, $function) = @_;
        return act_until($what, $function, \&comes_to_rest);
}

# Records an action after which the daemon does not become idle: $wait waits. Later output belongs to the next act.
sub act_until {
        my ($what, $function, $wait) = @_;
        take_record();
        add_line("\n> $what");
        $function->();
        my $waited = $wait->();
        if ($waited && -e $ENV{DAEMON_PID}) { $bus->ping() for 1 .. 2 }
        take_record();
        tell_capacity();
        return $waited || fail("$what: the daemon comes to rest");
}

1;
