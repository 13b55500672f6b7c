/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rights QUESTION...: what this process may do, one line for each question: "ok", or the name of an error. The
 * questions:
 *
 *   read PATH, write PATH   opens it
 *   take PATH               makes itself the owner, and opens it for writing; for a socket connects
 *   create PATH             creates a file
 *   connect PATH            connects to a UNIX socket
 *   ptrace PID              attaches to a process
 *   signal PID              may send it a signal
 *   namespace PATH          enters a namespace
 *   run COMMAND             runs it with a shell; the exit status, if not 0
 *   mount, module, bpf      calls that change the system
 *   status                  prints the lines of /proc/self/status about privileges
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static long try_open(const char *path, int flags) {
        int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK, 0600);

        return fd < 0 ? fd : close(fd);
}

static long try_connect(const char *path) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        r = connect(fd, (const struct sockaddr *) &address, sizeof(address));
        (void) close(fd);
        return r;
}

/* What is writable for its owner is opened then. */
static long try_take(const char *path) {
        struct stat s;

        if (fchownat(AT_FDCWD, path, geteuid(), (gid_t) -1, 0) < 0 || stat(path, &s) < 0)
                return -1;
        return S_ISSOCK(s.st_mode) ? try_connect(path) : try_open(path, S_ISDIR(s.st_mode) ? O_RDONLY : O_WRONLY);
}

static long try_ptrace(pid_t pid) {
        long r = ptrace(PTRACE_SEIZE, pid, NULL, NULL);

        if (r == 0)
                (void) ptrace(PTRACE_DETACH, pid, NULL, NULL);
        return r;
}

static long try_namespace(const char *path) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        return fd < 0 ? fd : setns(fd, 0);
}

static int print_status(void) {
        FILE *f = fopen("/proc/self/status", "re");
        char line[256];

        while (f && fgets(line, sizeof(line), f))
                if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Cap", 3) == 0 ||
                    strncmp(line, "NoNewPrivs:", 11) == 0 || strncmp(line, "Seccomp:", 8) == 0)
                        (void) fputs(line, stdout);
        return f ? fclose(f) : -1;
}

static void answer(const char *question, const char *object) {
        long r = -1;

        errno = EINVAL;
        if (strcmp(question, "read") == 0)
                r = try_open(object, O_RDONLY);
        else if (strcmp(question, "write") == 0)
                r = try_open(object, O_WRONLY);
        else if (strcmp(question, "take") == 0)
                r = try_take(object);
        else if (strcmp(question, "create") == 0)
                r = try_open(object, O_WRONLY | O_CREAT | O_EXCL);
        else if (strcmp(question, "connect") == 0)
                r = try_connect(object);
        else if (strcmp(question, "ptrace") == 0)
                r = try_ptrace(atoi(object));
        else if (strcmp(question, "signal") == 0)
                r = kill(atoi(object), 0);
        else if (strcmp(question, "namespace") == 0)
                r = try_namespace(object);
        else if (strcmp(question, "mount") == 0)
                r = mount("none", "/mnt", "tmpfs", 0, NULL);
        else if (strcmp(question, "module") == 0)
                r = syscall(SYS_init_module, "", 0, "");
        else if (strcmp(question, "bpf") == 0)
                r = syscall(SYS_bpf, 0, NULL, 0);
        else if (strcmp(question, "run") == 0) {
                int status = system(object);

                printf(status == 0 ? "ok\n" : "%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : status);
                return;
        }
        puts(r >= 0 ? "ok" : strerrorname_np(errno));
}

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++) {
                char *object = strchr(argv[i], ' ');

                if (object)
                        *object++ = '\0';
                (void) fflush(stdout);
                if (strcmp(argv[i], "status") == 0)
                        (void) print_status();
                else
                        answer(argv[i], object ?: "");
        }
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
