/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughd-root runs a command only if root alone can change the files that the command names. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootservice-internal.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/owner.h"
#include "util/strings.h"

/* The kernel reads this many bytes of a script to find its interpreter (BINPRM_BUF_SIZE). */
#define SCRIPT_LINE_MAX 256U
/* Scripts that are read for one command. A script may name itself. */
#define SCRIPTS_MAX     64U
/* A path may follow one of these, as in --file=/x and PATH=/x:/y. */
#define SEPARATORS      "=:,;@&|<>()"

typedef struct Command {
        const Pool *pool;
        unsigned n_scripts;
} Command;

/* Returns 1 when the file is a script, 0 when it is none, or a negative errno. Opens no device node. */
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

/* systemd runs the command in "/", where a relative path begins. */
static int check_path(Command *c, const char *text, bool is_program) {
        _cleanup_free_ char *path = NULL, *owner = NULL;
        char line[SCRIPT_LINE_MAX + 1];
        int r;

        if (*text == '-' && !is_program)
                text += strcspn(text, "/"); /* -f/x */
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

/* A path may contain a separator, so each part is checked with the rest of the word and without. */
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

/* The first word is a program. The kernel passes the further words of a script's line as one argument, which env -S
 * splits. */
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
