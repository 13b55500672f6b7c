/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "virtprogram.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>

#include "guest/validation.h"
#include "util/program.h"
#include "util/strings.h"

int virt_program_start(const char *const arguments[], size_t n, int input, int output, pid_t *ret) {
        char *const environment[] = { NULL }, *argv[VIRT_ARGUMENTS_MAX + 2] = { (char *) VALIDATION_PROGRAM };
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;
        char program[PATH_MAX];
        sigset_t none, all;
        int r = program_find(VALIDATION_PROGRAM, program);

        assert(n <= VIRT_ARGUMENTS_MAX);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                argv[1 + i] = (char *) arguments[i];

        (void) sigemptyset(&none);
        (void) sigfillset(&all);
        (void) posix_spawn_file_actions_init(&files);
        (void) posix_spawnattr_init(&attributes);
        r = posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
        if (r == 0)
                r = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
        if (r == 0) {
                (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
                (void) posix_spawnattr_setsigmask(&attributes, &none);
                (void) posix_spawnattr_setsigdefault(&attributes, &all);
                r = posix_spawn(ret, program, &files, &attributes, argv, environment);
        }
        (void) posix_spawnattr_destroy(&attributes);
        (void) posix_spawn_file_actions_destroy(&files);
        return -r;
}

void virt_make_quotable(char *reason) {
        size_t n = strlen(reason);

        while (n > 0 && strchr(". \n", reason[n - 1]))
                reason[--n] = '\0';
        for (char *p = reason; *p; p++)
                if ((unsigned char) *p < ' ' || (unsigned char) *p >= 0x7f)
                        *p = '?';
}
