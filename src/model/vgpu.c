/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/vgpu.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

#include "util/strings.h"

bool vgpu_types_next(const char **rest, VgpuType *ret) {
        while (*rest && **rest) {
                const char *line = *rest, *end = line + strcspn(line, "\n");
                char *colon;
                unsigned long id = strtoul(line, &colon, 10);

                *rest = *end ? end + 1 : end;
                colon += strspn(colon, " ");
                if (id == 0 || id > UINT_MAX || !isdigit((unsigned char) *(line + strspn(line, " "))) || *colon != ':')
                        continue;
                ret->id = (unsigned) id;
                ret->name = colon + 1 + strspn(colon + 1, " ");
                ret->length = end > ret->name ? (size_t) (end - ret->name) : 0;
                if (ret->length > 0 && ret->length <= VGPU_NAME_MAX)
                        return true;
        }
        return false;
}

unsigned vgpu_types_find(const char *types, const char *name) {
        VgpuType t;

        while (vgpu_types_next(&types, &t))
                if (strlen(name) == t.length && strncmp(name, t.name, t.length) == 0)
                        return t.id;
        return 0;
}

static bool is_number(const char *s, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isdigit((unsigned char) s[i]))
                        return false;
        return n > 0;
}

/* "H100L-12C" has 12 GB; "H200X-1-18C" is backed by a GPU instance of MIG: 0. */
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

        while (size > 0 && vgpu_types_next(&types, &t))
                largest = MAX(largest, type_size(t.name, t.length));
        return size > 0 ? largest / size : 0;
}

bool vgpu_name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n > 0 && n <= VGPU_NAME_MAX && text_is_ascii(name, n) && text_is_clean(name);
}
