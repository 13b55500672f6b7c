/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request to libvirt that changes the devices of a domain, in a process of its own. */

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "guest/validation.h"
#include "host/childwatch.h"
#include "host/guestclient.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "virtprogram.h"

struct GuestPlug {
        PlugAction action;
        GuestPlugEnded ended;
        void *userdata;
        bool late;  /* the process was killed by the timeout */
        int output; /* the memfd that the process writes to */
        ChildWatch child;
};

static PlugResult read_result(const GuestPlug *p, const siginfo_t *end, char **ret) {
        PlugResult result = end->si_code == CLD_EXITED && end->si_status >= 0 && end->si_status < _PLUG_RESULT_MAX
                                    ? (PlugResult) end->si_status
                                    : PLUG_UNKNOWN;
        size_t size;

        if (p->late)
                *ret = strdup("libvirt does not answer");
        else if (end->si_code != CLD_EXITED || (PlugResult) end->si_status != result)
                *ret = strdup(VALIDATION_PROGRAM " was killed");
        else if (lseek(p->output, 0, SEEK_SET) < 0 || read_all_fd(p->output, PLUG_DOCUMENT_MAX, ret, &size) < 0)
                return PLUG_UNKNOWN;
        if (*ret && (p->action != PLUG_DESCRIBE || result != PLUG_DONE))
                virt_make_quotable(*ret);
        return *ret ? result : PLUG_UNKNOWN;
}

static int on_exit_of_child(sd_event_source *source, const siginfo_t *end, void *userdata) {
        GuestPlug *p = userdata;
        _cleanup_free_ char *text = NULL;
        PlugResult result = read_result(p, end, &text);
        GuestPlugEnded ended = p->ended;
        void *owner = p->userdata;

        guest_plug_free(p);
        ended(result, text ?: "The answer of " VALIDATION_PROGRAM " cannot be read", owner);
        return 0;
}

static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        GuestPlug *p = userdata;

        p->late = true;
        child_watch_kill(&p->child);
        return 0;
}

GuestPlug *guest_plug_free(GuestPlug *p) {
        if (!p)
                return NULL;
        child_watch_done(&p->child);
        cleanup_close(&p->output);
        free(p);
        return NULL;
}
DEFINE_CLEANUP(GuestPlug *, guest_plug_free)

/* A file with the text, read from its start. Negative errno on failure. */
static int make_input(const char *text) {
        _cleanup_close_ int fd = memfd_create("hostdev", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : write_all_fd(fd, text, strlen(text));

        if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

static int spawn(GuestPlug *p, const char *uri, const GuestPlugRequest *request, pid_t *ret) {
        char seconds[24];
        const char *arguments[] = { uri, plug_action_to_string(request->action), request->uuid, seconds };
        _cleanup_close_ int input = make_input(request->hostdev ?: "");

        if (input < 0)
                return input;
        p->output = memfd_create("answer", MFD_CLOEXEC);
        if (p->output < 0)
                return -errno;
        (void) snprintf(seconds, sizeof(seconds), "%u", request->timeout_sec);
        return virt_program_start(arguments, ELEMENTSOF(arguments), input, p->output, ret);
}

int guest_plug_start(sd_event *event, const char *uri, const GuestPlugRequest *request, GuestPlugEnded ended,
                     void *userdata, GuestPlug **ret) {
        _cleanup_(cleanup_guest_plug_free) GuestPlug *p = calloc(1, sizeof(*p));
        pid_t pid;
        int r;

        if (!p)
                return -ENOMEM;
        *p = (GuestPlug){ .action = request->action, .ended = ended, .userdata = userdata, .output = -1 };
        r = spawn(p, uri, request, &pid);
        if (r >= 0)
                r = child_watch(&p->child, event, pid,
                                (request->timeout_sec + (uint64_t) PLUG_GRACE_SEC) * UINT64_C(1000000),
                                on_exit_of_child, on_timeout, p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}
