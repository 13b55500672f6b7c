/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plug-device URI ACTION UUID SECONDS [HOSTDEV]: makes one request of guest/plug.h to libvirt as the daemon does, and
 * prints the result and its text. HOSTDEV is the text of a <hostdev>. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/guestclient.h"

static void on_end(PlugResult result, const char *text, void *userdata) {
        static const char *const names[] = {
                [PLUG_DONE] = "done", [PLUG_NO_DOMAIN] = "no-domain", [PLUG_FAILED] = "failed",
                [PLUG_KEPT] = "kept", [PLUG_UNKNOWN] = "unknown",
        };

        printf("%s %s\n", names[result], text);
        (void) sd_event_exit(userdata, 0);
}

int main(int argc, char *argv[]) {
        sd_event *event;
        GuestPlug *plug;
        sigset_t set;
        int r;

        if (argc < 5)
                return EXIT_FAILURE;
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        if (sd_event_new(&event) < 0 || guest_plug_start(event, argv[1],
                                                         &(GuestPlugRequest){ plug_action_from_string(argv[2]), argv[3],
                                                                              argv[5], (unsigned) atoi(argv[4]) },
                                                         on_end, event, &plug) < 0)
                return EXIT_FAILURE;
        r = sd_event_loop(event);
        sd_event_unref(event);
        return r;
}
