/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Writes lines of a .tree file, and converts escapes. */

#include <errno.h>

#include "util/tree.h"

#define ROW       16U
#define CONFIG    "config"
#define PCI_SIZE  256U
#define ERRNO_MAX 4095

static int hex_digit(char c) {
        static const char digits[] = "0123456789abcdef";
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

        return at ? (int) (at - digits) : -EINVAL;
}

/* *p: the character after the backslash. */
static int unescape_one(const char **p, char *ret) {
        static const char letters[] = "nt\\", bytes[] = "\n\t\\";
        char c = *(*p)++;
        const char *at = c ? strchr(letters, c) : NULL;
        int high, low;

        if (at) {
                *ret = bytes[at - letters];
                return 0;
        }
        if (c != 'x')
                return -EINVAL;
        high = hex_digit((*p)[0]);
        low = high < 0 ? high : hex_digit((*p)[1]);
        if (low < 0)
                return -EINVAL;
        *ret = (char) (high << 4 | low);
        *p += 2;
        return 0;
}

int tree_unescape(const char *s, char **ret, size_t *ret_size) {
        _cleanup_free_ char *text = malloc(strlen(s) + 2);
        size_t n = 0;

        if (!text)
                return -ENOMEM;
        while (*s)
                if (*s != '\\')
                        text[n++] = *s++;
                else if (s++, unescape_one(&s, text + n++) < 0)
                        return -EINVAL;
        text[n] = '\0';
        *ret = TAKE_PTR(text);
        *ret_size = n;
        return 0;
}

/* Letters, digits and slashes, most of a tree, are never special. */
static bool is_plain(char c, const char *special) {
        if ((c >= '/' && c <= '9') || (c >= 'a' && c <= 'z'))
                return true;
        return c >= 0x20 && c < 0x7f && c != '\\' && (!*special || !strchr(special, c));
}

static void escape(FILE *f, const char *s, size_t size, const char *special) {
        for (size_t i = 0; i < size; i++) {
                size_t begin = i;

                while (i < size && is_plain(s[i], special))
                        i++;
                (void) fwrite(s + begin, 1, i - begin, f);
                if (i == size)
                        return;
                if (s[i] == '\n')
                        (void) fputs("\\n", f);
                else if (s[i] == '\t')
                        (void) fputs("\\t", f);
                else if (s[i] == '\\')
                        (void) fputs("\\\\", f);
                else
                        (void) fprintf(f, "\\x%02x", (unsigned char) s[i]);
        }
}

void tree_escape(FILE *f, const char *s, size_t size) {
        escape(f, s, size, "");
}

/*
 * Escapes characters with a meaning in .tree lines. At the end of the path that includes + and :, which would make +=
 * or := of the = that follows.
 */
static void write_path(FILE *f, const char *path) {
        size_t n = strlen(path), last = n > 0;

        escape(f, path, n - last, " =!{}[]#%@");
        escape(f, path + n - last, last, " =!{}[]#%@+:");
}

int tree_error_number(const char *name) {
        for (int e = 1; e <= ERRNO_MAX; e++) {
                const char *known = strerrorname_np(e);

                if (known && streq(known, name))
                        return e;
        }
        return streq(name, "EWOULDBLOCK") ? EAGAIN : streq(name, "ENOTSUP") ? EOPNOTSUPP : -EINVAL;
}

static void write_row(FILE *f, const char *data, size_t size) {
        static const char digits[] = "0123456789abcdef";
        char row[3 * ROW];

        for (size_t i = 0; i < size; i++) {
                unsigned char byte = (unsigned char) data[i];

                row[3 * i] = digits[byte >> 4];
                row[3 * i + 1] = digits[byte & 0xf];
                row[3 * i + 2] = i + 1 < size ? ' ' : '\n';
        }
        (void) fwrite(row, 1, 3 * size, f);
}

static void write_config(FILE *f, const char *path, const char *data, size_t size) {
        static const char zeros[ROW];
        bool shown = false;

        for (size_t at = 0; at < size; at += ROW) {
                /* Always writes the row at 256, which tells that the file has 4096 bytes. */
                if (memcmp(data + at, zeros, ROW) == 0 && at != PCI_SIZE)
                        continue;
                write_path(f, path);
                (void) fprintf(f, "@0x%zx=", at);
                write_row(f, data + at, memcmp(data + at, zeros, ROW) == 0 ? 1 : ROW);
                shown = true;
        }
        if (!shown) {
                write_path(f, path);
                (void) fputs("@0x0=00\n", f);
        }
}

void tree_write_file(FILE *f, const char *path, const char *data, size_t size) {
        const char *slash = strrchr(path, '/');
        bool newline = size > 0 && data[size - 1] == '\n';

        if (streq(slash ? slash + 1 : path, CONFIG) && (size == PCI_SIZE || size == TREE_CONFIG_MAX)) {
                write_config(f, path, data, size);
                return;
        }
        write_path(f, path);
        (void) fputs(newline ? "=" : ":=", f);
        tree_escape(f, data, size - newline);
        (void) fputc('\n', f);
}

void tree_write_link(FILE *f, const char *path, const char *target) {
        write_path(f, path);
        (void) fputs(" -> ", f);
        tree_escape(f, target, strlen(target));
        (void) fputc('\n', f);
}

void tree_write_directory(FILE *f, const char *path) {
        write_path(f, path);
        (void) fputs("/\n", f);
}

void tree_write_error(FILE *f, const char *path, int error) {
        const char *name = strerrorname_np(abs(error));

        write_path(f, path);
        (void) fprintf(f, "!%s\n", name ? name : "EIO");
}
