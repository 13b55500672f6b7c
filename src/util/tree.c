/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Parses lines of a .tree file: items, escapes, config@OFFSET. */
#include <errno.h>
#include <fcntl.h>

#include "util/fileio.h"
#include "util/strings.h"
#include "util/tree.h"

typedef struct Parser {
        unsigned line;
        size_t items;    /* number of items so far, of at most TREE_ITEMS_MAX */
        TreeItem item;   /* type of the item on the current line */
        const char *end; /* appended to the value of the item: "\n" or "" */
        TreeFunction function;
        void *userdata;
        const char *complaint; /* the cause of -EINVAL or -E2BIG, for the message */
} Parser;

static int complain(Parser *p, int error, const char *sentence) {
        if (!p->complaint)
                p->complaint = sentence;
        return error;
}

/* Turns "a//b/" into "a/b" in place. Returns 0 or a negative errno: the path is not valid. */
static int path_normalize(Parser *p, char *path) {
        char *to = path;
        unsigned depth = 0;

        for (const char *from = path + strspn(path, "/"); *from; from += strspn(from, "/")) {
                size_t n = strcspn(from, "/");

                if ((n == 1 && from[0] == '.') || (n == 2 && from[0] == '.' && from[1] == '.'))
                        return complain(p, -EINVAL, "a path cannot have '.' or '..' in it");
                if (n > TREE_NAME_MAX || ++depth > TREE_DEPTH_MAX)
                        return complain(p, -E2BIG, "the path is too long");
                if (to > path)
                        *to++ = '/';
                memmove(to, from, n);
                to += n;
                from += n;
        }
        *to = '\0';
        return (size_t) (to - path) <= TREE_PATH_MAX ? 0 : complain(p, -E2BIG, "the path is too long");
}

static int emit(Parser *p, const TreeLine *line) {
        int r;

        if (++p->items > TREE_ITEMS_MAX)
                return complain(p, -E2BIG, "the tree is too large from here on");
        r = p->function(line, p->userdata);
        return MIN(r, 0);
}

/* Parses "@OFFSET" at the end of the path of a config file, and cuts it off. */
static int split_offset(Parser *p, char *path, unsigned *ret) {
        char *at = strrchr(path, '@');
        uint64_t offset;
        int r;

        if (!at || at == path)
                return complain(p, -EINVAL, "the offset is missing");
        r = strncmp(at + 1, "0x", 2) == 0 ? parse_hex(at + 1, TREE_CONFIG_MAX, &offset)
                                          : parse_unsigned(at + 1, TREE_CONFIG_MAX, &offset);
        if (r < 0)
                return complain(p, -EINVAL, "the offset is invalid");
        *at = '\0';
        *ret = (unsigned) offset;
        return 0;
}

static int emit_config(Parser *p, char *path, const char *hex) {
        char bytes[TREE_CONFIG_MAX + 1];
        TreeLine line = { .item = TREE_CONFIG, .path = path, .value = bytes };
        int r = split_offset(p, path, &line.offset);

        while (r >= 0 && *(hex += strspn(hex, " \t"))) {
                char pair[3] = { hex[0], hex[1], '\0' };
                uint64_t byte;

                if (!pair[1] || parse_hex(pair, UINT8_MAX, &byte) < 0 || strspn(pair, "xX") > 0)
                        return complain(p, -EINVAL, "bytes are two hex digits each");
                if (line.offset + line.size >= TREE_CONFIG_MAX)
                        return complain(p, -EINVAL, "config space ends at 0x1000");
                bytes[line.size++] = (char) byte;
                hex += 2;
        }
        bytes[line.size] = '\0';
        return r < 0 ? r : emit(p, &line);
}

static int emit_text(Parser *p, const char *path, const char *value) {
        _cleanup_free_ char *text = NULL;
        TreeLine line = { .item = p->item, .path = path };
        int r = tree_unescape(value, &text, &line.size);

        if (r < 0)
                return r == -EINVAL ? complain(p, r, "only \\n, \\t, \\\\ and \\xHH can follow a backslash") : r;
        if (p->item == TREE_LINK && (line.size == 0 || strlen(text) < line.size || line.size > TREE_TARGET_MAX))
                return complain(p, -EINVAL, "the target of the link is invalid");
        if (*p->end)
                text[line.size++] = *p->end;
        text[line.size] = '\0';
        line.value = text;
        return emit(p, &line);
}

static int emit_item(Parser *p, char *path, const char *value) {
        switch (p->item) {
        case TREE_CONFIG:
                return emit_config(p, path, value);
        case TREE_ERROR:
                if (tree_error_number(value) < 0)
                        return complain(p, -EINVAL, "the errno name is unknown");
                return emit(p, &(TreeLine) { TREE_ERROR, path, value, strlen(value), 0 });
        case TREE_DIRECTORY:
                return emit(p, &(TreeLine) { TREE_DIRECTORY, path, "", 0, 0 });
        default:
                return emit_text(p, path, value);
        }
}

#define EXPECTED "expected NAME=VALUE, NAME -> TARGET, NAME/ or NAME!ERRNO"
#define SHORTHAND                                                                                                      \
        "a line that begins with % is for the simulator; make writes the recording of tests/nodes/NODE.tree to "       \
        "build/nodes/NODE.tree"

static bool is_config(const char *name) {
        const char *slash = strrchr(name, '/');

        return strncmp(slash ? slash + 1 : name, "config@", strlen("config@")) == 0;
}

/* Splits the line into path and value, and sets the type of the item by the mark after the path: " -> ", "=", "/" or
 * "!". */
static int split(Parser *p, char *line, char **ret_value) {
        char *arrow = strstr(line, " -> "), *equals = strchr(line, '='), *bang = strrchr(line, '!');
        size_t n = strlen(line);

        p->end = "";
        if (*line == '%' || *line == '[')
                return complain(p, -EINVAL, *line == '%' ? SHORTHAND : EXPECTED);
        if (arrow && (!equals || arrow < equals)) {
                p->item = TREE_LINK;
                *arrow = '\0';
                *ret_value = arrow + strlen(" -> ");
        } else if (equals && equals > line) {
                char *end = equals - (equals[-1] == ':');

                p->end = *end == ':' ? "" : "\n";
                *end = '\0';
                p->item = is_config(line) ? TREE_CONFIG : TREE_FILE;
                *ret_value = equals + 1;
        } else if (n > 1 && line[n - 1] == '/') {
                p->item = TREE_DIRECTORY;
                *ret_value = line + n;
        } else if (bang && bang > line) {
                p->item = TREE_ERROR;
                *bang = '\0';
                *ret_value = bang + 1;
        } else
                return complain(p, -EINVAL, EXPECTED);
        return 0;
}

static int take_line(Parser *p, char *line) {
        _cleanup_free_ char *path = NULL;
        char *value;
        size_t size;
        int r;

        line += strspn(line, " \t");
        if (*line == '\0' || *line == '#')
                return 0;
        r = split(p, line, &value);
        if (r < 0)
                return r;
        r = tree_unescape(line, &path, &size);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || strlen(path) < size)
                return complain(p, -EINVAL, "the path has an invalid escape");
        r = path_normalize(p, path);
        if (r < 0)
                return r;
        return *path ? emit_item(p, path, value) : complain(p, -EINVAL, "the name is missing");
}

static int parse(Parser *p, const char *text, size_t size) {
        static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark of UTF-8, which some editors write */
        const char *end = text + size;
        int r = 0;

        if (size >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
                text += strlen(mark);
        while (text < end && r >= 0) {
                const char *newline = memchr(text, '\n', (size_t) (end - text));
                size_t n = (size_t) ((newline ? newline : end) - text);
                _cleanup_free_ char *line = strndup(text, n);

                p->line++;
                if (!line)
                        return -ENOMEM;
                r = strlen(line) < n ? complain(p, -EINVAL, "a NUL byte is in the line") : take_line(p, line);
                text += n + 1;
        }
        return r;
}

static char *format_problem(const Parser *p, const char *file, int error) {
        return string_format("%s:%u: %s.", file, p->line, p->complaint ?: strerror(-error));
}

int tree_parse(const char *file, const char *text, size_t size, TreeFunction f, void *userdata, char **ret_problem) {
        Parser p = { .function = f, .userdata = userdata };
        int r = parse(&p, text, size);

        if (r < 0)
                *ret_problem = format_problem(&p, file, r);
        return r;
}

int tree_read(const char *file, TreeFunction f, void *userdata, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = read_file_at(AT_FDCWD, file, TREE_TEXT_MAX, &text, &size);

        if (r >= 0)
                return tree_parse(file, text, size, f, userdata, ret_problem);
        *ret_problem = string_format("%s: %s.", file, r == -E2BIG ? "the file is too large" : strerror(-r));
        return r;
}

/* Writes lines of a .tree file, and converts escapes. */

#define ROW       16U
#define CONFIG    "config"
#define PCI_SIZE  256U
#define ERRNO_MAX 4095

static int hex_digit(char c) {
        static const char digits[] = "0123456789abcdef";
        const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + ('a' - 'A') : c) : NULL;

        return at ? (int) (at - digits) : -EINVAL;
}

/* Converts the escape at *p, which points after the backslash, to a byte, and advances *p behind the escape. */
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

/* Returns true for a character that needs no escape. special: printable characters that need one. Lower-case letters,
 * digits and slashes, of which a tree mostly consists, are recognised first. */
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

/* Writes a path, and escapes characters that have a meaning in lines of a .tree file. At the end of the path, "+" and
 * ":" are escaped too: with the "=" that follows the path they would be read as "+=" or ":=". */
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
                /* Always write the row at offset 256, even if it is zero: from it a reader knows that the file has 4096
                 * bytes. */
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
