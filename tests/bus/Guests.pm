# SPDX-License-Identifier: GPL-2.0-or-later
# A node whose libvirt reports the domains that a test defines: tests/fake-libvirt replaces passthroughd-libvirt. Hot-plug changes the domain in the
# directory "domain" of BUILD, which Hypervisor.pm describes.
package Guests;

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Copy qw(cp);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use Test::More;

use lib dirname(__FILE__);

use Hypervisor;
use Node;

our @EXPORT = qw(node_with_guests running_domain write_guests write_raw libvirt_reports libvirt_process guest_runs domain_reports domain_places value_of domain_has begin_hotplug hotplug UUID);

use constant {
        UUID   => '4b20d080-1b54-4048-85b3-a6a62d165c01',
        SOCKET => 'run/libvirt/virtqemud-sock-ro',
};

my $DIR = abs_path(dirname(__FILE__));

# As node(), with libvirt running and without domains. All programs but passthroughd-libvirt are those of BUILD.
sub node_with_guests {
        my (@arguments) = @_;
        if (!$ENV{NODE_ROOT}) {
                my $build = abs_path($ENV{BUILD} // "$DIR/../../build");
                my $dir   = $ENV{BUILD} = tempdir('guests.XXXXXX', TMPDIR => 1);
                symlink "$build/$_", "$dir/$_" or die "$dir/$_: $!" for qw(tests passthroughctl passthroughd-holders passthroughd-endpoints passthroughd-slurm passthrough-placement passthrough.so);
                for (qw(passthroughd passthroughd-root)) { cp("$build/$_", "$dir/$_") or die "$dir/$_: $!" }
                my $preload = hypervisor_preload();
                spew("$dir/passthroughd-libvirt", <<"END");
#!/bin/sh
case \$# in
0) exec $build/passthroughd-libvirt ;;
1) exec $DIR/../fake-libvirt $dir ;;
*) shift && echo \$\$ >$dir/pid && LD_PRELOAD=$preload exec $build/passthroughd-libvirt $dir/domain "\$@" ;;
esac
END
                chmod 0755, map { "$dir/$_" } qw(passthroughd passthroughd-root passthroughd-libvirt);
                write_guests();
        }
        node(@arguments);
        fault('set ' . SOCKET . ' socket');
        libvirt_reports(Bus->new);
        return;
}

END { remove_tree($ENV{BUILD}) if $ENV{NODE_ROOT} && $ENV{BUILD} =~ m{/guests\.\w+$} }

# Returns the record of a running domain.
sub running_domain {
        my ($name, $uuid, @devices) = @_;
        return join '|', 'domain', $uuid, 'running', $name, @devices;
}

# Sets the domains that libvirt reports from its next report on.
sub write_guests {
        my (@records) = @_;
        return write_raw(join '', map { "$_\n" } 'features|maxphysaddr|driver-model', 'list', @records, 'complete');
}

# As write_guests(), with any lines of tests/fake-libvirt. Returns the number of the file, which is new each time.
sub write_raw {
        my ($text) = @_;
        my $file   = "$ENV{BUILD}/guests";
        my $number = 1 + (split ' ', slurp_existing($file) // '0')[0];
        spew("$file.new", "$number\n$text");
        rename "$file.new", $file or die "$file: $!";
        return $number;
}

# Returns the process id of tests/fake-libvirt after its first report, or 0.
sub libvirt_process {
        my ($pid) = split ' ', slurp_existing("$ENV{BUILD}/sent") // return 0;
        return kill(0, $pid) ? $pid : 0;
}

# Makes libvirt report exactly these domains. Returns when the daemon has read the report.
sub libvirt_reports {
        my ($bus, @records) = @_;
        my $number = write_guests(@records);
        my ($told, $asked) = (0, 0);
        $bus->call('Rescan') if !libvirt_process();
        # A new process may replace one that ends, and a process that is about to report may miss the signal.
        wait_until(sub {
                my $process = libvirt_process();
                if ($process && ($process != $told || time >= $asked + 2)) {
                        kill 'HUP', $told = $process;
                        $asked = time;
                }
                return (slurp_existing("$ENV{BUILD}/sent") // '') =~ / $number$/;
        }) or die 'libvirt does not report';
        $bus->ping() for 1 .. 2;
        return;
}

# Starts an allocation's guest: its running and its persistent domain are the allocation's document.
sub guest_runs {
        my ($bus, $name) = @_;
        my $xml   = (ctl('xml', $name))[1];
        hypervisor("$ENV{BUILD}/domain", live => $xml, config => $xml);
        return domain_reports($bus, $name);
}

# Makes libvirt report the running domain of an allocation with its present devices.
sub domain_reports {
        my ($bus, $name) = @_;
        my %places = domain_places();
        return libvirt_reports($bus, running_domain($name, allocation($bus, $name)->{id}, map { "$_ $places{$_}{text}" } sort keys %places));
}

sub value_of { my ($text, $attribute) = @_; return ($text =~ /\b$attribute=["']([^"']*)/)[0] }
sub number_of { my $value = value_of(@_); return defined $value ? $value =~ /^0/ ? oct $value : $value : undef }
sub elements { my ($xml, $name) = @_; return $xml =~ m{(<$name\b(?:[^>]*/>|.*?</$name>))}gs }

# Returns bus, slot and function of an <address type='pci'>.
sub pci_of {
        my ($element) = @_;
        my ($address) = $element =~ /(<address [^>]*type=["']pci[^>]*>)/;
        return defined $address ? map { number_of($address, $_) } qw(bus slot function) : ();
}

# Returns the places of host devices in the running domain. guest: the address in the document. seen: the address in the guest, or undef on the root
# bus. text: both with the path, as passthroughd-libvirt reports them.
sub domain_places {
        my $xml = slurp("$ENV{BUILD}/domain/live");
        my (%expander, %children, %at);
        for my $controller (grep { value_of($_, 'type') eq 'pci' } elements($xml, 'controller')) {
                my ($index, $number) = (number_of($controller, 'index'), number_of($controller, 'busNr'));
                $expander{$index} = $number if defined $number;
                next                        if defined $number || !(my ($bus, @place) = pci_of($controller));
                $children{$bus}{ $place[0] * 8 + $place[1] } = $index;
        }
        my $walk;
        $walk = sub {
                my ($above, $number, $path) = @_;
                my ($own,   $next)          = ($number, $number + 1);
                $at{$above} = { path => $path, number => $own };
                for my $place (sort { $a <=> $b } keys %{ $children{$above} }) {
                        $next = $walk->($children{$above}{$place}, $next, sprintf '%s/0000:%02x:%02x.%x', $path, $own, $place >> 3, $place & 7);
                }
                return $next;
        };
        $walk->($_, $expander{$_}, sprintf 'pci0000:%02x', $expander{$_}) for keys %expander;
        my %places;
        for my $device (elements($xml, 'hostdev')) {
                my ($source) = elements($device, 'source');
                my ($bus, @place) = pci_of($device) or next;
                my $name  = value_of($source, 'uuid') // sprintf '%04x:%02x:%02x.%x', map { number_of($source, $_) } qw(domain bus slot function);
                my $guest = sprintf '0000:%02x:%02x.%x',                              $bus, @place;
                my $seen  = $at{$bus} ? sprintf('0000:%02x:%02x.%x', $at{$bus}{number}, @place) : undef;
                $places{$name} = { guest => $guest, seen => $seen, text => $seen ? "$guest $at{$bus}{path}/$seen" : $guest };
        }
        return %places;
}

# Returns "yes no" if the pattern matches the running domain, but not its persistent definition.
sub domain_has {
        my ($pattern) = @_;
        return join ' ', map { slurp("$ENV{BUILD}/domain/$_") =~ $pattern ? 'yes' : 'no' } qw(live config);
}

# Returns the job of Attach or Detach. Dies without one.
sub begin_hotplug {
        my ($bus, $method, $name, $signature, @values) = @_;
        my $reply = $bus->call($method, "st$signature", $name, Node::generation($bus, $name), @values);
        return $reply->{error} ? die "$reply->{error}: $reply->{body}[0]" : $reply->{body}[0];
}

sub hotplug { my ($bus, @call) = @_; return $bus->result(begin_hotplug($bus, @call)) }

1;
