#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# json-c 0.18, which Debian 13 has, refuses each string with a byte above 0x7f when it parses with JSON_TOKENER_STRICT: it compares a
# char, which is signed on amd64, with the last control character. 0.16 (Debian 12) and 0.19 accept such strings; 0.16 accepts control characters as well, which
# the other two refuse. None of them refuses a key that is there twice. So a program that keeps files as JSON and reads them in strict mode
# loses them by an upgrade from Debian 12 to 13.
# https://github.com/json-c/json-c/issues/875, https://github.com/json-c/json-c/issues/892
#
# Runs the three libraries of Debian with the C library of Debian 13, which the newer two need. Needs gcc, curl, xz, dpkg-deb and the
# network, on amd64. Exit status 0: all is as the table says.

set -eu

debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# fetch DIRECTORY PATH [SHA256]
fetch() {
    curl -fsS -o "$tmp/package.deb" "$debian/$2"
    [ -z "${3:-}" ] || echo "$3  $tmp/package.deb" | sha256sum --check --quiet
    dpkg-deb -x "$tmp/package.deb" "$tmp/$1"
}

fetch 0.16 pool/main/j/json-c/libjson-c5_0.16-2_amd64.deb d0e1ed8637d1c26b9720f6057d6355f18378bba5cc2553e459d1632783c00d70
fetch 0.18 pool/main/j/json-c/libjson-c5_0.18+ds-1_amd64.deb 4fbd5fb4d54c626f05d68abf38a31533fbf1bf4a87068696abe041ee9c974fe0
fetch 0.19 pool/main/j/json-c/libjson-c5_0.19+ds-1_amd64.deb 22a29043cacb0972466c2b978031f37a2c9fe47a3986c87bb2a6755be08844f8
# Its version is that of the last point release.
curl -fsS "$debian/dists/trixie/main/binary-amd64/Packages.xz" | xz -dc >"$tmp/packages"
fetch libc "$(awk '/^Package: / { name = $2 } /^Filename: / && name == "libc6" { print $2 }' "$tmp/packages")"

# The declarations are those of <json-c/json_tokener.h> and have not changed.
cat >"$tmp/strict.c" <<'END'
#include <stdio.h>
#include <string.h>

struct json_tokener *json_tokener_new(void);
void json_tokener_set_flags(struct json_tokener *tokener, int flags);
struct json_object *json_tokener_parse_ex(struct json_tokener *tokener, const char *text, int size);
int json_tokener_get_error(struct json_tokener *tokener);
const char *json_c_version(void);
#define JSON_TOKENER_STRICT 1

int main(void) {
        static const struct {
                const char *name, *text;
        } cases[] = {
                { "ASCII", "{\"a\":\"Juergen\"}" },
                { "UTF-8", "{\"a\":\"J\xc3\xbcrgen\"}" },
                { "escape", "{\"a\":\"J\\u00fcrgen\"}" },
                { "control", "{\"a\":\"a\x01z\"}" },
                { "twice", "{\"a\":1,\"a\":2}" },
        };

        for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct json_tokener *t = json_tokener_new();

                json_tokener_set_flags(t, JSON_TOKENER_STRICT);
                (void) json_tokener_parse_ex(t, cases[i].text, (int) strlen(cases[i].text));
                printf("%s %s %s\n", json_c_version(), cases[i].name,
                       json_tokener_get_error(t) == 0 ? "accepted" : "refused");
        }
        return 0;
}
END

for version in 0.16 0.18 0.19; do
    library=$(find "$tmp/$version" -name 'libjson-c.so.5.*')
    gcc -o "$tmp/strict" "$tmp/strict.c" -Wl,--unresolved-symbols=ignore-all "$library"
    loader=$(find "$tmp/libc" -name 'ld-linux-x86-64.so.2' | head -n 1)
    "$loader" --library-path "$(dirname "$library"):$(dirname "$(find "$tmp/libc" -name libc.so.6 | head -n 1)")" "$tmp/strict"
done >"$tmp/output"

cat "$tmp/output"
diff - "$tmp/output" <<'END'
0.16 ASCII accepted
0.16 UTF-8 accepted
0.16 escape accepted
0.16 control accepted
0.16 twice accepted
0.18 ASCII accepted
0.18 UTF-8 refused
0.18 escape accepted
0.18 control refused
0.18 twice accepted
0.19 ASCII accepted
0.19 UTF-8 accepted
0.19 escape accepted
0.19 control refused
0.19 twice accepted
END
