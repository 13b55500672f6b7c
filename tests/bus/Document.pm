# SPDX-License-Identifier: GPL-2.0-or-later
# Requests domain documents, and validates them with libvirt where it is installed.
package Document;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

use Node;

our @EXPORT = qw(document valid);

sub has { my ($program) = @_; return scalar grep { -x "$_/$program" } split /:/, $ENV{PATH} }

# Runs a check of the document. Shows the output on a failure.
sub checked {
        my ($name, @command) = @_;
        my $log = "$ENV{NODE_TMP}/check.log";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDOUT, '>',  $log      or die $!;
                open STDERR, '>&', \*STDOUT or die $!;
                exec @command or die "$command[0]: $!";
        }
        waitpid $pid, 0;
        return is($?, 0, $name) || diag(slurp($log));
}

sub valid {
        my ($xml, $name) = @_;
        my $file = "$ENV{NODE_TMP}/document.xml";
        spew($file, $xml);
        SKIP: {
                skip 'virt-xml-validate is not installed', 1 if !has('virt-xml-validate');
                checked("$name: valid by the schema of libvirt", 'virt-xml-validate', $file, 'domain');
        }
        SKIP: {
                skip 'virsh is not installed', 1 if !has('virsh');
                checked("$name: libvirt defines it", 'virsh', '-c', 'test:///default', 'define', '--validate', $file);
        }
        return;
}

# Returns the output of passthroughctl xml, after validation.
sub document {
        my ($allocation, $name, @options) = @_;
        my ($status, $xml, $err) = ctl('xml', $allocation, @options);
        is($status, 0, "$name: there is a document") or diag($err);
        valid($xml, $name);
        return $xml;
}

1;
