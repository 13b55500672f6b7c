/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks that only root can change the files that a command names. passthroughd-root then runs the command as root. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootservice-internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/owner.h"
#include "util/strings.h"

/* How much of a script's first line the kernel reads (BINPRM_BUF_SIZE). */
#define SCRIPT_LINE_MAX 256U
/* The most scripts of one command: a script may name itself. */
#define SCRIPTS_MAX     64U
/* Characters that may precede a path, as in --file=/x and PATH=/x:/y. */
#define SEPARATORS      "=:,;@&|<>()"

typedef struct Command {
        const Pool *pool;
        unsigned n_scripts;
} Command;

/* Returns 1 and the first line when the file is a script, 0 when not, or -errno. Opens no device nodes. */
static int read_script_line(const char *path, char ret[static SCRIPT_LINE_MAX + 1]) {
        _cleanup_close_ int fd = -1;
        struct stat st;
        ssize_t n;

        if (stat(path, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return 0;
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, ret, SCRIPT_LINE_MAX);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        ret[strcspn(ret, "\n")] = '\0';
        return strncmp(ret, "#!", 2) == 0;
}

static int check_words(Command *c, char *words);

/* Checks a path. A relative path begins at "/", where systemd runs the command. */
static int check_path(Command *c, const char *text, bool is_program) {
        _cleanup_free_ char *path = NULL, *owner = NULL;
        char line[SCRIPT_LINE_MAX + 1];
        int r;

        if (*text == '-' && !is_program)
                text += strcspn(text, "/"); /* skip an option before the path, as in -f/x */
        if (!strchr(text, '/') && !is_program)
                return 0;
        path = string_format("/%s", text);
        if (!path)
                return -ENOMEM;
        r = path_check_owner(path, &owner);
        if (r == -EPERM)
                return log_denied("CleanerCommand= of pool '%s' names %s, which other users than root can "
                                  "change, as %s. Use chown root and chmod go-w.",
                                  c->pool->name, QUOTABLE(text), owner);
        if (r >= 0)
                r = read_script_line(path, line);
        if (r > 0)
                return c->n_scripts++ < SCRIPTS_MAX
                               ? check_words(c, line + 2)
                               : log_denied("CleanerCommand= of pool '%s' leads to more than %u scripts.",
                                            c->pool->name, SCRIPTS_MAX);
        if (r == 0 || (!is_program && (r == -ENOENT || r == -ENOTDIR)))
                return 0;
        return log_error_errno(r, "CleanerCommand= of pool '%s' names %s, which cannot be checked: %m", c->pool->name,
                               QUOTABLE(text));
}

/* Checks each part of a word, with and without the rest of the word: a path may contain separators. */
static int check_word(Command *c, char *word, bool is_program) {
        int r = check_path(c, word, is_program);

        if (r < 0)
                return r;
        for (char *part = word, *end; *part; part = end + strspn(end, SEPARATORS)) {
                char separator;

                end = part + strcspn(part, SEPARATORS);
                separator = *end;
                r = part == word ? 0 : check_path(c, part, false);
                *end = '\0';
                if (r >= 0 && separator)
                        r = check_path(c, part, false);
                *end = separator;
                if (r < 0)
                        return r;
        }
        return r;
}

/* Checks the words of a command, of which the first is a program. The kernel passes the further words of a script's
 * first line as one argument, which env -S splits. */
static int check_words(Command *c, char *words) {
        char *word = string_next_word(&words);
        int r = word ? check_word(c, word, true) : 0;

        while (r >= 0 && (word = string_next_word(&words)))
                r = check_word(c, word, false);
        return r;
}

int root_check_command(const Pool *pool) {
        _cleanup_free_ char *words = strdup(pool->cleaner);

        return words ? check_words(&(Command) { .pool = pool }, words) : -ENOMEM;
}
