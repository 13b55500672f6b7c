/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "library.h"

#include <dlfcn.h>
#include <string.h>

void *library_open(const char *name, const LibrarySymbol *symbols, size_t n) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

        for (size_t i = 0; library && i < n; i++) {
                void *function = dlsym(library, symbols[i].name);

                if (!function && !symbols[i].optional) {
                        (void) dlclose(library);
                        return NULL;
                }
                if (function)
                        memcpy(symbols[i].function, &function, sizeof(function));
        }
        return library;
}
