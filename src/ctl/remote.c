/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Appends a word to the command, in single quotes for the shell of the node. Returns 0 or -ENOMEM. */
static int append_word(char **command, const char *word) {
        _cleanup_free_ char *quoted = NULL;
        const char *rest = word, *quote;
        int r = 0;

        while ((quote = strchr(rest, '\''))) {
                r = string_append(&quoted, "", "%.*s'\\''", (int) (quote - rest), rest);
                rest = quote + 1;
                if (r < 0)
                        return r;
        }
        r = string_append(&quoted, "", "%s", rest);
        return r < 0 ? r : string_append(command, " ", "'%s'", quoted);
}

static int make_command(const Args *args, char **ret) {
        const char *no_colour = getenv("NO_COLOR");
        _cleanup_free_ const char **words = NULL;
        _cleanup_free_ char *command = NULL;
        int r = args_words(args, &words);

        if (r < 0)
                return r;
        r = string_append(&command, "", "%spassthroughctl", no_colour && *no_colour ? "env NO_COLOR=1 " : "");
        for (size_t i = 0; r >= 0 && words[i]; i++)
                r = append_word(&command, words[i]);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(command);
        return r;
}

static int report_file(const Args *args, const char *file, int r) {
        (void) report_failure(args, NULL, "Cannot open %s: %s.", file, strerror(-r));
        return r;
}

/* Opens the file of --template as standard input, and changes the option to "-", so that the verb on the node reads its
 * standard input. */
static int redirect_template(Args *args) {
        const char *file = args->text[OPTION_TEMPLATE];
        _cleanup_close_ int fd = -1;

        if (!args_has(args, OPTION_TEMPLATE) || streq(file, "-"))
                return 0;
        fd = open(file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
                return report_file(args, file, -errno);
        args->text[OPTION_TEMPLATE] = "-";
        return 0;
}

/* Replaces this process by ssh. Returns only on a failure. */
static int become_ssh(const Args *args, const char *command) {
        /* At a terminal, give the verb a terminal on the node too: with the width and the colours of this one, and with
         * Ctrl-C. */
        if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO))
                (void) execlp("ssh", "ssh", "-t", "-o", "LogLevel=ERROR", "--", args->text[OPTION_HOST], command, NULL);
        else
                (void) execlp("ssh", "ssh", "--", args->text[OPTION_HOST], command, NULL);
        return report_errno(args, -errno, "Cannot run ssh");
}

/* Runs ssh, with `output` as its standard output. Returns the exit status, or a negative errno, reported. */
static int run_ssh(const Args *args, const char *command, int output) {
        pid_t pid = fork();
        int status;

        if (pid < 0)
                return report_errno(args, -errno, "Cannot run ssh");
        if (pid == 0) {
                if (dup2(output, STDOUT_FILENO) >= 0)
                        (void) become_ssh(args, command);
                _exit(EXIT_FAILURE);
        }
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return report_errno(args, -errno, "Cannot run ssh");
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

/* Replaces the content of the file by the output of the node. Call it when the output is complete. */
static int write_output(const Args *args, const char *file, int output) {
        _cleanup_close_ int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, 0666);
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        if (fd < 0)
                return report_file(args, file, -errno);
        r = lseek(output, 0, SEEK_SET) < 0 ? -errno : read_all_fd(output, SIZE_MAX - 1, &text, &size);
        if (r >= 0)
                r = write_all_fd(fd, text, size);
        return r < 0 ? report_errno(args, r, "Cannot write the file") : 0;
}

/* Runs topology --svg on the node. Writes the file only when the node has made the whole picture. */
static int run_svg(Args *args) {
        _cleanup_close_ int output = memfd_create("ssh", MFD_CLOEXEC);
        const char *file = args->text[OPTION_SVG];
        _cleanup_free_ char *command = NULL;
        int r;

        args->text[OPTION_SVG] = "-";
        r = output < 0 ? -errno : make_command(args, &command);
        if (r < 0)
                return report_errno(args, r, "Cannot run ssh");
        r = run_ssh(args, command, output);
        return r == 0 ? write_output(args, file, output) : r;
}

int remote_run(const Args *args) {
        _cleanup_free_ char *command = NULL;
        Args remote = *args;
        int r;

        remote.given &= ~OPTION_BIT(OPTION_HOST);
        r = redirect_template(&remote);
        if (r < 0)
                return r;
        if (args_has(args, OPTION_SVG) && !streq(args->text[OPTION_SVG], "-"))
                return run_svg(&remote);
        r = make_command(&remote, &command);
        return r < 0 ? report_errno(args, r, "Cannot run ssh") : become_ssh(args, command);
}
