# SPDX-License-Identifier: GPL-2.0-or-later
# What 'passthroughctl suggest' prints for a recorded machine, tried on that machine.
package Suggestion;
use strict;
use warnings;

use JSON::XS qw(decode_json);

# The exit status, and standard output with standard error.
sub run {
        my ($ctl, @words) = @_;
        my $text = join ' ', map { quotemeta } $ctl, @words;
        my $said = qx($text 2>&1);
        return ($? >> 8, $said);
}

# The checks whose findings tell why a device cannot be allocated.
my %TELLS = map { $_ => 1 } qw(iommu vfio facts pools groups sriov);

# Sentences on what is wrong with the suggestion for a node, which is kept in a file: a configuration that is not accepted as it is, or
# a GPU and a NIC that cannot be planned and 'check' does not say why.
sub problems {
        my ($ctl, $node, $file) = @_;
        my ($status, $text) = run($ctl, 'suggest', '--node', $node);
        return "suggest: status $status: $text" if $status != 0;
        open my $out, '>', $file or die "$file: $!";
        print $out $text;
        close $out or die "$file: $!";

        my @on = ('--node', $node, '--config', $file);
        my (undef, $checked) = run($ctl, 'check', '--json', @on);
        my @findings = @{ (eval { decode_json($checked) } // return "check: $checked")->{findings} };
        my @broken   = map { "configuration: $_->{message}" } grep { $_->{check} eq 'configuration' && $_->{result} ne 'ok' } @findings;
        return @broken if @broken;

        my ($failed, $listed) = run($ctl, 'list', '--all', '--json', @on);
        my $described = eval { decode_json($listed =~ s/^[^{].*\n//mgr) };
        return "list: status $failed: $listed" if $failed || !$described;
        my @pools = map { $_->{name} } @{ $described->{pools} };
        my @gpus = grep { /^gpu/ } @pools;
        my @nics = grep { /^nic/ } @pools;
        my @why  = grep { $TELLS{ $_->{check} } && ($_->{result} ne 'ok' || $_->{message} =~ /^No NIC/) } @findings;
        for my $gpu (@gpus) {
                for my $nic (@nics) {
                        return () if (run($ctl, 'plan', "$gpu=1", "$nic=1", @on))[0] == 0;
                }
        }
        return () if @why || (!@gpus && !grep { $_->{class} =~ /^(?:0x)?(?:03|12)/ && $_->{type} ne 'vf' } @{ $described->{devices} });
        return "no plan of a GPU (@gpus) and a NIC (@nics), and check says nothing";
}

1;
