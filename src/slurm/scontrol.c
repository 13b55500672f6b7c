/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs scontrol. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

#include "cores.h"
#include "util/fileio.h"
#include "util/program.h"
#include "util/strings.h"

/* The longest accepted output of scontrol, which has about 150 bytes for each core of each node of the job. */
#define OUTPUT_MAX ((size_t) 64 << 20)

extern char **environ;

static int spawn_scontrol(const char *path, uint32_t id, int output, pid_t *ret) {
        char number[sizeof("4294967295")], program[] = "scontrol", show[] = "show", job[] = "job", json[] = "--json";
        char *arguments[] = { program, json, show, job, number, NULL };
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        sigset_t none, all;
        int r;

        (void) snprintf(number, sizeof(number), "%" PRIu32, id);
        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        r = posix_spawn_file_actions_init(&files);
        if (r != 0)
                return -r;
        r = posix_spawnattr_init(&attributes);
        if (r == 0) {
                r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
                if (r == 0)
                        r = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
                (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
                (void) posix_spawnattr_setsigmask(&attributes, &none);
                (void) posix_spawnattr_setsigdefault(&attributes, &all);
                if (r == 0)
                        r = posix_spawn(ret, path, &files, &attributes, arguments, environ);
                (void) posix_spawnattr_destroy(&attributes);
        }
        (void) posix_spawn_file_actions_destroy(&files);
        return -r;
}

int scontrol_show_job(uint32_t id, char **ret, size_t *ret_size) {
        _cleanup_close_ int input = -1, output = -1;
        _cleanup_free_ char *text = NULL;
        char path[PATH_MAX];
        int ends[2], status, r;
        pid_t pid;

        /* slurmstepd, which loads the plugin, is in sbin/; the scontrol of the same Slurm is in bin/ beside it. A
         * prolog has no PATH. */
        r = program_path("../bin/scontrol", path);
        if (r < 0)
                return r;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        input = ends[0];
        output = ends[1];
        r = spawn_scontrol(path, id, output, &pid);
        if (r < 0)
                return r;
        (void) close(TAKE_FD(output));
        r = read_all_fd(input, OUTPUT_MAX, &text, ret_size);
        /* If the output was too long, scontrol still writes: SIGPIPE ends it. */
        (void) close(TAKE_FD(input));
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (r < 0)
                return r;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return -EIO;
        *ret = TAKE_PTR(text);
        return 0;
}
