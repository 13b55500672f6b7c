/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "util/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/cleanup.h"

int program_path(const char *relative, char ret[static PATH_MAX]) {
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
        char *slash;
        size_t size;

        if (n < 0)
                return -errno;
        ret[n] = '\0';
        slash = strrchr(ret, '/');
        if (!slash)
                return -ENOENT;
        size = (size_t) (ret + PATH_MAX - (slash + 1));
        return (size_t) snprintf(slash + 1, size, "%s", relative) < size ? 0 : -ENAMETOOLONG;
}

int program_find(const char *name, char ret[static PATH_MAX]) {
        static const char *const places[] = { "", "../libexec/" };

        for (size_t i = 0; i < ELEMENTSOF(places); i++) {
                char relative[PATH_MAX];
                int r;

                if (snprintf(relative, sizeof(relative), "%s%s", places[i], name) >= PATH_MAX)
                        return -ENAMETOOLONG;
                r = program_path(relative, ret);
                if (r < 0)
                        return r;
                if (access(ret, X_OK) >= 0)
                        return 0;
        }
        return -errno;
}

/* Prints the text. Returns the exit status: EXIT_FAILURE when standard output cannot be written. */
static int print(const char *text) {
        return puts(text) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int misused(const char *name) {
        (void) fprintf(stderr, "Try '%s --help'.\n", name);
        return 2;
}

int program_read_arguments(int argc, char *argv[], const char *name, const char *help, const ProgramOption *options,
                           size_t n) {
        /* The elements that are not set are zero, and the first of them ends the list. */
        struct option list[PROGRAM_OPTIONS_MAX + 3] = { { "help", no_argument, NULL, 'h' },
                                                        { "version", no_argument, NULL, 'v' } };
        int c, at;

        for (size_t i = 0; i < n; i++)
                list[i + 2] = (struct option) { options[i].name, options[i].value ? required_argument : no_argument,
                                                NULL, 'o' };
        while ((c = getopt_long(argc, argv, "h", list, &at)) >= 0)
                switch (c) {
                case 'h':
                        return print(help);
                case 'v':
                        return printf("%s ", name) < 0 ? EXIT_FAILURE : print(VERSION);
                case 'o':
                        if (optarg)
                                *options[at - 2].value = optarg;
                        else
                                *options[at - 2].flag = true;
                        break;
                default:
                        return misused(name);
                }
        return optind == argc ? -1 : misused(name);
}
