/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parses the arguments of the plugin. */
#include <errno.h>

#include "settings.h"
#include "util/strings.h"

/* Returns VALUE if the argument is NAME=VALUE with this name, else NULL. */
static const char *value_of(const char *argument, const char *name) {
        size_t n = strlen(name);

        return strncmp(argument, name, n) == 0 && argument[n] == '=' ? argument + n + 1 : NULL;
}

static int take_argument(const char *argument, Settings *s) {
        const char *value;
        uint64_t seconds;

        if ((value = value_of(argument, "bus")))
                s->bus = value;
        else if ((value = value_of(argument, "root")))
                s->root = value;
        else if ((value = value_of(argument, "directory")))
                s->directory = value;
        else if ((value = value_of(argument, "numa")))
                s->numa = value;
        else if ((value = value_of(argument, "wait")) && parse_unsigned(value, 3600, &seconds) == 0)
                s->wait = (unsigned) seconds;
        else
                return -EINVAL;
        return 0;
}

int settings_parse(int argc, char **argv, Settings *ret, const char **ret_wrong) {
        Settings s = { .root = "", .directory = SETTINGS_DIRECTORY, .numa = SETTINGS_NUMA, .wait = SETTINGS_WAIT };

        for (int i = 0; i < argc; i++)
                if (take_argument(argv[i], &s) < 0) {
                        *ret_wrong = argv[i];
                        return -EINVAL;
                }
        *ret = s;
        return 0;
}
