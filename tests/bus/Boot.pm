# SPDX-License-Identifier: GPL-2.0-or-later
# Reboots a simulated node with other hardware: other bus numbers, other cards.
package Boot;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

use Node;

our @EXPORT = qw(boot with_serial renumbered);

# Stops the daemon, passthroughd-holders and the node, and starts the node of TEXT with both. Returns the tree before the start of the daemon.
sub boot {
        my ($bus, $what, $text) = @_;
        is(daemon('stop'), 0, "$what: the daemon stops");
        kill 'KILL', -holders_pid();
        ok(wait_until(sub { system("umount $ENV{NODE_ROOT} 2>/dev/null") == 0 }), "$what: the machine goes off") or BAIL_OUT('no boot');
        spew("$ENV{NODE_TMP}/next.tree", $text);
        my @events = $ENV{NODE_EVENTS} eq 'yes' ? '--events' : ();
        is(system('nodesim', '--allow-other', @events, "$ENV{NODE_TMP}/next.tree", $ENV{NODE_ROOT}), 0, "$what: and on again");
        my $before = tree();
        is(system("$ENV{NODE_TMP}/start-holders"), 0, "$what: passthroughd-holders starts");
        start_again($bus, $what);
        return $before;
}

# Returns TEXT with a serial number, 16 hex digits, for the device at PATH. The capability is the only extended one, or at 0x200 after the one at
# AFTER.
sub with_serial {
        my ($text, $path, $serial, $after) = @_;
        my @bytes = reverse unpack '(A2)8', $serial;
        $text .= "\n[$path]\n";
        $text .= sprintf "config\@0x%x=20\n", $after + 3 if $after;
        return $text . sprintf "config\@0x%x=03 00 01 00 %s\n", $after ? 0x200 : 0x100, "@bytes";
}

# Returns TEXT with other bus numbers, old => new, and other numbers for all IOMMU groups.
sub renumbered {
        my ($text, %numbers) = @_;
        my $old = join '|', keys %numbers;
        return $text =~ s/\b0000:($old):(?=\d\d\.)/0000:$numbers{$1}:/gr =~ s{iommu_groups/(\d+)}{'iommu_groups/' . ($1 + 300)}ger
                =~ s{iommu_groups/\{\+(\d+)\}}{'iommu_groups/{+' . ($1 + 300) . '}'}ger;
}

1;
