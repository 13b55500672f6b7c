/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "report.h"
#include "util/strings.h"

/* Appends a word as every shell reads it. */
static int append_word(char **command, const char *word) {
        _cleanup_free_ char *quoted = NULL;
        const char *rest = word, *quote;
        int r = 0;

        while (r >= 0 && (quote = strchr(rest, '\''))) {
                r = string_append(&quoted, "", "%.*s'\\''", (int) (quote - rest), rest);
                rest = quote + 1;
        }
        if (r >= 0)
                r = string_append(&quoted, "", "%s", rest);
        return r < 0 ? r : string_append(command, " ", "'%s'", quoted);
}

static int make_command(const Args *args, char **ret) {
        const char *no_colour = getenv("NO_COLOR");
        _cleanup_free_ const char **words = NULL;
        _cleanup_free_ char *command = NULL;
        int r = args_words(args, &words);

        if (r >= 0)
                r = string_append(&command, "", "%spassthroughctl", no_colour && *no_colour ? "env NO_COLOR=1 " : "");
        for (size_t i = 0; r >= 0 && words[i]; i++)
                r = append_word(&command, words[i]);
        if (r >= 0)
                *ret = TAKE_PTR(command);
        return r;
}

/* Makes the file that an option names standard input or output, and lets the node use that. */
static int redirect(Args *args, Option option, int flags, int standard) {
        const char *file = args->text[option];
        _cleanup_close_ int fd = -1;

        if (!args_has(args, option) || streq(file, "-"))
                return 0;
        fd = open(file, flags | O_NOCTTY | O_CLOEXEC, 0666);
        if (fd < 0 || dup2(fd, standard) < 0) {
                int r = -errno;

                (void) report_failure(args, NULL, "Cannot open %s: %s.", file, strerror(-r));
                return r;
        }
        args->text[option] = "-";
        return 0;
}

int remote_run(const Args *args) {
        _cleanup_free_ char *command = NULL;
        Args remote = *args;
        int r;

        remote.given &= ~OPTION_BIT(OPTION_HOST);
        r = redirect(&remote, OPTION_TEMPLATE, O_RDONLY, STDIN_FILENO);
        if (r >= 0)
                r = redirect(&remote, OPTION_SVG, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
        if (r < 0)
                return r;
        r = make_command(&remote, &command);
        if (r < 0)
                return report_errno(args, r, "Cannot run ssh");
        /* A terminal on the node gives the verb the width and the colours of this one, and Ctrl-C. */
        if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
                (void) execlp("ssh", "ssh", "-t", "-o", "LogLevel=ERROR", "--", args->text[OPTION_HOST], command, NULL);
        else
                (void) execlp("ssh", "ssh", "--", args->text[OPTION_HOST], command, NULL);
        return report_errno(args, -errno, "Cannot run ssh");
}
