#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What libvirt does with <cputune> for vCPUs and iothreads that the domain does not have depends on the element, and "define --validate"
# does not change it: <vcpupin>, <cachetune> and <memorytune> are dropped without an error; a <cachetune> for some that it has and some that
# it has not is cut to those that it has; <vcpusched>, <iothreadpin> and <iothreadsched> refuse the document. So a template that was made for
# more vCPUs loses its share of the cache in a smaller domain, and nobody is told; who changes the number of vCPUs has to look for it.
# Seen with libvirt 9.0.0 (Debian 12) and 11.3.0 (Debian 13).
#
# Runs virsh of the two Debians with libvirt's test driver, which starts nothing. Needs root, mmdebstrap and the network. Exit status 0: all
# is as the tables say.

set -eu

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/ask" <<'END'
try() {
    echo "<domain type='test'><name>x</name><memory>1048576</memory><vcpu>4</vcpu><os><type>hvm</type></os><cputune>$2</cputune></domain>" >/tmp/domain.xml
    if virsh -q -c test:///default "define --validate /tmp/domain.xml; dumpxml x" >/tmp/is 2>/tmp/error; then
        echo "$1: $(grep -o "<$1 [^>]*" /tmp/is || echo dropped)"
    else
        echo "$1: refused"
    fi
}

cache="<cache id='0' level='3' type='both' size='3' unit='MiB'/>"
virsh --version
try vcpupin "<vcpupin vcpu='8' cpuset='0'/>"
try cachetune "<cachetune vcpus='8'>$cache</cachetune>"
try cachetune "<cachetune vcpus='2-8'>$cache</cachetune>"
try memorytune "<memorytune vcpus='8'><node id='0' bandwidth='60'/></memorytune>"
try vcpusched "<vcpusched vcpus='8' scheduler='fifo' priority='1'/>"
try iothreadpin "<iothreadpin iothread='3' cpuset='0'/>"
try iothreadsched "<iothreadsched iothreads='3' scheduler='fifo' priority='1'/>"
END

for suite in bookworm trixie; do
    mmdebstrap --quiet --variant=essential --include=libvirt-clients "$suite" "$tmp/$suite" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >&2
    cp "$tmp/ask" "$tmp/$suite/tmp/ask"
    chroot "$tmp/$suite" sh /tmp/ask
done >"$tmp/output"

cat "$tmp/output"
for version in 9.0.0 11.3.0; do
    cat <<END
$version
vcpupin: dropped
cachetune: dropped
cachetune: <cachetune vcpus='2-3'
memorytune: dropped
vcpusched: refused
iothreadpin: refused
iothreadsched: refused
END
done | diff - "$tmp/output"
