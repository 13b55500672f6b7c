# SPDX-License-Identifier: GPL-2.0-or-later
# What a test does as the user nobody.
package Nobody;

use strict;
use warnings;

use Exporter qw(import);
use JSON::PP;
use POSIX ();
use Test::More;

our @EXPORT = qw(need_nobody as_nobody as_user);

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

# What the function returns, as a list, when it is run as the user; by way of JSON. A sentence if it died.
sub as_user {
        my ($user, $function) = @_;
        my ($uid, $gid) = (getpwnam $user)[2, 3];
        pipe my $in, my $out or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                $) = "$gid $gid";
                POSIX::setgid($gid) or POSIX::_exit(1);
                POSIX::setuid($uid) or POSIX::_exit(1);
                my $result = eval { [$function->()] } // ["died: $@"];
                syswrite $out, JSON::PP->new->ascii->encode($result);
                POSIX::_exit(0);
        }
        close $out;
        my $text = do { local $/ = undef; <$in> };
        waitpid $pid, 0;
        return @{ JSON::PP->new->decode($text) };
}

sub as_nobody { my ($function) = @_; return as_user('nobody', $function) }

1;
