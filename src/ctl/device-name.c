/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shortens the names of pci.ids. */
#include "device-name.h"

#include "util/strings.h"

/* Skips the vendor, with which names begin: "Advanced Micro Devices, Inc. [AMD] ". */
static const char *skip_vendor(const char *name) {
        static const char *const ends[] = {
                " Corporation ", " Technologies ", " Inc. ", " Ltd. ", " Ltd ", " and subsidiaries ",
        };
        const char *after;

        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                const char *at = strstr(name, ends[i]);

                /* Keep the last space of the match: the next one may begin with it. */
                if (at)
                        name = at + strlen(ends[i]) - 1;
        }
        name += *name == ' ';
        after = *name == '[' ? strstr(name, "] ") : NULL;
        return after ? after + 2 : name;
}

/* For a GPU or NIC the brackets have the product; for others a mode, for example. */
static bool has_product(json_object *device) {
        const char *class = reply_text(device, "class");

        return class && (strncmp(class, "02", 2) == 0 || strncmp(class, "03", 2) == 0 || strncmp(class, "12", 2) == 0);
}

/* Shortens the vendor to its brand: "AMD/ATI" of "Advanced Micro Devices, Inc. [AMD/ATI] ", or its first word. rest:
 * what follows the vendor. */
static char *shorten_vendor(const char *name, const char *rest) {
        const char *brand = memchr(name, '[', (size_t) (rest - name));

        brand = brand ? brand + 1 : name;
        return rest == name ? strdup(name) : string_format("%.*s %s", (int) strcspn(brand, " ,]"), brand, rest);
}

char *device_product(json_object *device) {
        _cleanup_free_ char *id = string_format("%s:%s", reply_cell(device, "vendor"), reply_cell(device, "device"));
        const char *name = reply_text(device, "name"), *rest, *brackets;
        size_t n;

        if (!name || !id)
                return TAKE_PTR(id);
        rest = skip_vendor(name);
        n = strlen(rest);
        brackets = n > 0 && rest[n - 1] == ']' ? strrchr(rest, '[') : NULL;
        if (brackets && strncmp(brackets + 1, id, strlen(id)) == 0)
                return shorten_vendor(name, rest);
        return brackets && has_product(device) ? strndup(brackets + 1, n - 2 - (size_t) (brackets - rest))
                                               : strdup(rest);
}
