# SPDX-License-Identifier: GPL-2.0-or-later
# What a test does as the user nobody.
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

# On a node, other users find a passthroughctl that they can run: the build may be in a directory of root's.
sub need_nobody {
        plan skip_all => 'needs root'     if $> != 0;
        plan skip_all => 'no user nobody' if !defined $uid;
        return if !$ENV{NODE_TMP};
        system('cp', "$ENV{BUILD}/passthroughctl", $ENV{NODE_TMP}) == 0 or die 'cp';
        $ENV{PATH} = "$ENV{NODE_TMP}:$ENV{PATH}";
        return;
}

# The id of the group of the daemon's readers, see tests/with-node.
use constant READERS => 64646;

# For $): the groups of a user who is a member.
sub groups_of { my ($user) = @_; my $gid = (getpwnam $user)[3]; return "$gid $gid " . READERS }

# For a daemon that tests/with-node does not start: words before its command, for the group of its readers; the file is written.
sub with_readers {
        my ($file) = @_;
        open my $out, '>', $file or die "$file: $!";
        print $out 'passthrough:x:', READERS, ":\n";
        close $out or die "$file: $!";
        return ("$FindBin::Bin/../private-mounts", 'sh', '-c', 'mount --bind "$0" /etc/group && exec "$@"', $file);
}

# Makes this process one of the user, who is a member of the daemon's group.
sub become {
        my ($user) = @_;
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        $) = groups_of($user);
        POSIX::setgid($gid) or POSIX::_exit(1);
        POSIX::setuid($uid) or POSIX::_exit(1);
        return;
}

# What the function returns, as a list, when it is run as the user; by way of JSON. A sentence if it died.
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
