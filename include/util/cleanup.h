/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Automatic cleanup of local variables. A destructor of this project takes a pointer, which may be NULL. Most
 * destructors return a NULL pointer of the same type. DEFINE_CLEANUP() makes a cleanup function from a destructor, also
 * from one of a library. When the scope of a local variable marked _cleanup_(f) ends, the cleanup function f frees the
 * value of the variable, unless TAKE_PTR() has taken it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)    __attribute__((cleanup(f)))
#define _cleanup_free_  _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _printf_(a, b)  __attribute__((format(printf, a, b)))
#define _unused_        __attribute__((unused))

#define ELEMENTSOF(x)          (sizeof(x) / sizeof((x)[0]))
/* Return the larger and the smaller argument. Each argument is evaluated once. __COUNTER__ makes the variable names
 * unique, so that MAX() and MIN() can be nested. */
#define MAX(a, b)              PICK_ONE_(a, >, b, __COUNTER__)
#define MIN(a, b)              PICK_ONE_(a, <, b, __COUNTER__)
#define PICK_ONE_(a, op, b, n) PICK_ONE_NAMED_(a, op, b, n)
#define PICK_ONE_NAMED_(a, op, b, n)                                                                                   \
        ({                                                                                                             \
                __auto_type _left##n = (a);                                                                            \
                __auto_type _right##n = (b);                                                                           \
                _left##n op _right##n ? _left##n : _right##n;                                                          \
        })

/* Move ownership out of a variable: yield its value, and set the variable to NULL (TAKE_PTR) or -1 (TAKE_FD). */
#define TAKE_PTR(p)                                                                                                    \
        ({                                                                                                             \
                __typeof__(p) _taken = (p);                                                                            \
                (p) = NULL;                                                                                            \
                _taken;                                                                                                \
        })
#define TAKE_FD(fd)                                                                                                    \
        ({                                                                                                             \
                int _taken = (fd);                                                                                     \
                (fd) = -1;                                                                                             \
                _taken;                                                                                                \
        })

/* Defines cleanup_DESTRUCTOR() for use in _cleanup_(). It calls the destructor unless the variable is NULL. */
#define DEFINE_CLEANUP(type, destructor)                                                                               \
        static inline void cleanup_##destructor(type *p) {                                                             \
                if (*p)                                                                                                \
                        destructor(*p);                                                                                \
        }

static inline void cleanup_free(void *p) {
        free(*(void **) p);
}

static inline void cleanup_close(const int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

static inline bool streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* As streq(), but either string may be NULL. NULL equals only NULL. */
static inline bool streq_ptr(const char *a, const char *b) {
        return a && b ? streq(a, b) : a == b;
}
