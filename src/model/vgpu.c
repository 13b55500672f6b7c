/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/vgpu.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/strings.h"

/* Parses a number and the spaces after it. Returns 0 if there is no number. */
static unsigned long take_number(const char **at) {
        char *end = NULL;
        unsigned long n = isdigit((unsigned char) **at) ? strtoul(*at, &end, 10) : 0;

        if (end)
                *at = end + strspn(end, " ");
        return n;
}

/* Parses one line of a list, "ID : NAME" or "ID AVAILABLE DIRECTORY : NAME". Returns false for another line. */
static bool parse_type(const char *line, const char *end, VgpuType *ret) {
        const char *at = line + strspn(line, " ");
        unsigned long id = take_number(&at), available = 1;

        *ret = (VgpuType) { 0 };
        if (isdigit((unsigned char) *at)) {
                available = take_number(&at);
                ret->directory = at;
                ret->directory_length = strcspn(at, " \n");
                at += ret->directory_length;
                at += strspn(at, " ");
        }
        if (id == 0 || id > UINT_MAX || available > UINT_MAX || *at != ':')
                return false;
        ret->id = (unsigned) id;
        ret->available = (unsigned) available;
        ret->name = at + 1 + strspn(at + 1, " ");
        ret->length = end > ret->name ? (size_t) (end - ret->name) : 0;
        return ret->length > 0 && ret->length <= VGPU_NAME_MAX;
}

static bool next_type(const char **rest, VgpuType *ret) {
        while (*rest && **rest) {
                const char *line = *rest, *end = line + strcspn(line, "\n");

                *rest = *end ? end + 1 : end;
                if (parse_type(line, end, ret))
                        return true;
        }
        return false;
}

bool vgpu_types_next(const char **rest, VgpuType *ret) {
        while (next_type(rest, ret))
                if (ret->available > 0)
                        return true;
        return false;
}

static bool find_name(const char *types, const char *name, VgpuType *ret) {
        while (vgpu_types_next(&types, ret))
                if (strlen(name) == ret->length && strncmp(name, ret->name, ret->length) == 0)
                        return true;
        return false;
}

unsigned vgpu_types_find(const char *types, const char *name) {
        VgpuType t;

        return find_name(types, name, &t) ? t.id : 0;
}

unsigned vgpu_types_available(const char *types, const char *name) {
        VgpuType t;

        return find_name(types, name, &t) ? t.available : 0;
}

bool vgpu_types_find_id(const char *types, unsigned id, VgpuType *ret) {
        while (next_type(&types, ret))
                if (ret->id == id)
                        return true;
        return false;
}

static bool is_number(const char *s, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isdigit((unsigned char) s[i]))
                        return false;
        return n > 0;
}

/*
 * Returns the size in GB in a type's name: 12 in "H100L-12C". 0 for "H200X-1-18C", which a GPU instance of MIG backs,
 * and for a name without a size.
 */
static unsigned type_size(const char *name, size_t length) {
        char text[VGPU_NAME_MAX + 1], *size, *slices;

        if (length > VGPU_NAME_MAX)
                return 0;
        memcpy(text, name, length);
        text[length] = '\0';
        size = strrchr(text, '-');
        if (!size)
                return 0;
        *size++ = '\0';
        slices = strrchr(text, '-');
        if (slices && is_number(slices + 1, strlen(slices + 1)))
                return 0;
        return (unsigned) strtoul(size, NULL, 10);
}

unsigned vgpu_types_capacity(const char *types, const char *name) {
        unsigned size = type_size(name, strlen(name)), largest = 0;
        VgpuType t;

        while (size > 0 && next_type(&types, &t))
                largest = MAX(largest, type_size(t.name, t.length));
        return size > 0 ? largest / size : 0;
}

bool vgpu_name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n > 0 && n <= VGPU_NAME_MAX && text_is_ascii(name, n) && text_is_clean(name);
}
