/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Replays a corpus without libFuzzer, as TAP: each file of tests/fuzz/corpus/NAME, where NAME is the program's, or the
 * named files and directories. An input with a finding ends the program after the line with its name.
 */

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>

#include "util/fileio.h"

#define INPUT_MAX  (16U * 1024U * 1024U)
#define INPUTS_MAX 65536U

static size_t n_done;

static int replay_file(const char *path) {
        _cleanup_free_ char *data = NULL;
        size_t size;
        int r = read_file_at(AT_FDCWD, path, INPUT_MAX, &data, &size);

        if (r < 0) {
                printf("Bail out! %s: %s\n", path, strerror(-r));
                return r;
        }
        printf("# %s\n", path);
        (void) LLVMFuzzerTestOneInput((const uint8_t *) data, size);
        printf("ok %zu - %s\n", ++n_done, strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
        return 0;
}

static int replay(const char *path) {
        char **names = NULL;
        size_t n = 0;
        int r = list_dir_at(AT_FDCWD, path, INPUTS_MAX, &names, &n);

        if (r == -ENOTDIR)
                return replay_file(path);
        if (r < 0)
                printf("Bail out! %s: %s\n", path, strerror(-r));
        for (size_t i = 0; r >= 0 && i < n; i++) {
                _cleanup_free_ char *file = NULL;

                r = string_replace(&file, "%s/%s", path, names[i]);
                r = r < 0 ? r : replay_file(file);
        }
        free_names(names, n);
        return r;
}

/* The program is called fuzz-NAME. */
static int replay_own_corpus(const char *program) {
        _cleanup_free_ char *corpus = NULL;
        const char *name = strstr(program, "/fuzz-") ?: "/fuzz-";

        for (const char *next; (next = strstr(name + 1, "/fuzz-"));)
                name = next;
        if (string_replace(&corpus, "%s/tests/fuzz/corpus/%s", SRCDIR, name + strlen("/fuzz-")) < 0)
                return -ENOMEM;
        return replay(corpus);
}

int main(int argc, char *argv[]) {
        int r = 0;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 2)
                r = replay_own_corpus(argv[0]);
        for (int i = 1; r >= 0 && i < argc; i++)
                r = replay(argv[i]);
        printf("1..%zu\n", n_done);
        return r < 0 || n_done == 0;
}
