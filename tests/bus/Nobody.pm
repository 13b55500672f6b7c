# SPDX-License-Identifier: GPL-2.0-or-later
# Runs parts of a test as the user nobody.
package Nobody;

use strict;
use warnings;

use Exporter qw(import);
use FindBin;
use JSON::XS;
use POSIX ();
use Test::More;

our @EXPORT = qw(need_nobody as_nobody as_user become groups_of with_readers);

my $uid = getpwnam 'nobody';

# On a node, copies passthroughctl to a directory that other users can read: the build may be in a directory of root's.
sub need_nobody {
        plan skip_all => 'needs root'     if $> != 0;
        plan skip_all => 'no user nobody' if !defined $uid;
        return if !$ENV{NODE_TMP};
        system('cp', "$ENV{BUILD}/passthroughctl", $ENV{NODE_TMP}) == 0 or die 'cp';
        $ENV{PATH} = "$ENV{NODE_TMP}:$ENV{PATH}";
        return;
}

# The group of the daemon's readers; see tests/with-node.
use constant READERS => 64646;

# Returns the value of $) for a user in that group.
sub groups_of { my ($user) = @_; my $gid = (getpwnam $user)[3]; return "$gid $gid " . READERS }

# For a daemon that tests/with-node does not start: writes the file, and returns the words before the command that give it the readers' group.
sub with_readers {
        my ($file) = @_;
        open my $out, '>', $file or die "$file: $!";
        print $out 'passthrough:x:', READERS, ":\n";
        close $out or die "$file: $!";
        return ("$FindBin::Bin/../private-mounts", 'sh', '-c', 'mount --bind "$0" /etc/group && exec "$@"', $file);
}

# Makes this process run as the user, in the group of the daemon's readers.
sub become {
        my ($user) = @_;
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        $) = groups_of($user);
        POSIX::setgid($gid) or POSIX::_exit(1);
        POSIX::setuid($uid) or POSIX::_exit(1);
        return;
}

# Runs the function as the user, and returns its list by way of JSON, or a sentence if it died.
sub as_user {
        my ($user, $function) = @_;
        pipe my $in, my $out or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                become($user);
                my $result = eval { [$function->()] } // ["died: $@"];
                syswrite $out, JSON::XS->new->ascii->encode($result);
                POSIX::_exit(0);
        }
        close $out;
        my $text = do { local $/ = undef; <$in> };
        waitpid $pid, 0;
        return @{ JSON::XS->new->decode($text) };
}

sub as_nobody { my ($function) = @_; return as_user('nobody', $function) }

1;
