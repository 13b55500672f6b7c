/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a request to libvirt, about the devices of a domain, in a process of its own. */

#include "host/plug.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "guest/validation.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "virtprogram.h"

/* Waits for the process, and kills it when the time is over. Returns true if it ended by itself in time. */
static bool wait_for_process(pid_t pid, unsigned seconds, siginfo_t *ret) {
        _cleanup_close_ int process = pidfd_open(pid, 0);
        struct pollfd p = { .fd = process, .events = POLLIN };
        bool ended = process >= 0 && poll(&p, 1, (int) seconds * 1000) > 0;

        if (!ended)
                (void) kill(pid, SIGKILL);
        return waitid(P_PID, (id_t) pid, ret, WEXITED) >= 0 && ended;
}

static PlugResult plug_failed(char **ret_text, PlugResult result, const char *text) {
        (void) string_copy(ret_text, text);
        return result;
}

PlugResult plug_make(const char *uri, const PlugRequest *q, char **ret_text) {
        _cleanup_close_ int input = memfd_create("hostdev", MFD_CLOEXEC), output = memfd_create("answer", MFD_CLOEXEC);
        char seconds[24];
        const char *arguments[] = { uri, plug_action_to_string(q->action), q->uuid, seconds };
        siginfo_t end = { 0 };
        pid_t pid;

        *ret_text = NULL;
        (void) snprintf(seconds, sizeof(seconds), "%u", q->timeout_sec);
        if (input < 0 || output < 0 || write_all_fd(input, q->hostdev, strlen(q->hostdev)) < 0 ||
            lseek(input, 0, SEEK_SET) < 0 ||
            virt_program_start(arguments, ELEMENTSOF(arguments), input, output, &pid) < 0)
                return plug_failed(ret_text, PLUG_FAILED, VALIDATION_PROGRAM " cannot be started");
        if (!wait_for_process(pid, q->timeout_sec + PLUG_GRACE_SEC, &end))
                return plug_failed(ret_text, PLUG_UNKNOWN, "libvirt does not answer");
        if (end.si_code != CLD_EXITED || end.si_status < 0 || end.si_status >= _PLUG_RESULT_MAX)
                return plug_failed(ret_text, PLUG_UNKNOWN, VALIDATION_PROGRAM " was killed");
        if (lseek(output, 0, SEEK_SET) < 0 || read_all_fd(output, PLUG_DOCUMENT_MAX, ret_text, NULL) < 0)
                return PLUG_UNKNOWN;
        if (q->action != PLUG_DESCRIBE || end.si_status != PLUG_DONE)
                virt_make_quotable(*ret_text);
        return (PlugResult) end.si_status;
}
