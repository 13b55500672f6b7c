/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plug-device URI ACTION UUID SECONDS [HOSTDEV]: makes one request of guest/plug.h to libvirt as passthroughd-root
 * does, and prints the result and its text. HOSTDEV is the text of a <hostdev>. */

#include <stdio.h>
#include <stdlib.h>

#include "host/plug.h"

int main(int argc, char *argv[]) {
        static const char *const names[] = {
                [PLUG_DONE] = "done", [PLUG_NO_DOMAIN] = "no-domain", [PLUG_FAILED] = "failed",
                [PLUG_KEPT] = "kept", [PLUG_UNKNOWN] = "unknown",
        };
        PlugRequest request;
        PlugResult result;
        char *text;

        if (argc < 5)
                return EXIT_FAILURE;
        request = (PlugRequest) { plug_action_from_string(argv[2]), argv[3], argv[5] ? argv[5] : "",
                                  (unsigned) atoi(argv[4]) };
        result = plug_make(argv[1], &request, &text);
        if (!text)
                return EXIT_FAILURE;
        printf("%s %s\n", names[result], text);
        free(text);
        return EXIT_SUCCESS;
}
