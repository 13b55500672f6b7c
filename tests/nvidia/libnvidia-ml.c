/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A libnvidia-ml.so.1 for tests. $NVFM_DIR/modules has a line "BUS-ID MODULE" for each GPU that has NVLink,
 * $NVFM_DIR/lost a line "BUS-ID" for each GPU that the driver has lost; while $NVFM_DIR/nvml-hangs exists, the library
 * does not return, and adds a line to it.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
        OK = 0,
        NOT_SUPPORTED = 3,
        NOT_FOUND = 6,
        GPU_IS_LOST = 15
};

static char asked[32];

static FILE *open_file(const char *name, const char *mode) {
        const char *dir = getenv("NVFM_DIR");
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/nonexistent", name);
        return fopen(path, mode);
}

/* The line of the GPU in the file: its second word goes to ret. */
static bool find_line(const char *file, const char *bus_id, unsigned *ret) {
        FILE *f = open_file(file, "re");
        char line[128], id[32];
        bool found = false;

        *ret = 0;
        while (f && !found && fgets(line, sizeof(line), f))
                found = sscanf(line, "%31s %u", id, ret) >= 1 && strcasecmp(id, bus_id) == 0;
        if (f)
                (void) fclose(f);
        return found;
}

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlInit_v2(void) {
        return OK;
}

EXPORTED int nvmlShutdown(void);
EXPORTED int nvmlShutdown(void) {
        return OK;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **ret);
EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **ret) {
        unsigned unused;

        if (strlen(bus_id) >= sizeof(asked))
                return NOT_FOUND;
        if (find_line("lost", bus_id, &unused))
                return GPU_IS_LOST;
        (void) strcpy(asked, bus_id);
        *ret = asked;
        return OK;
}

EXPORTED int nvmlDeviceGetModuleId(const void *device, unsigned *ret);
EXPORTED int nvmlDeviceGetModuleId(const void *device, unsigned *ret) {
        FILE *f = open_file("nvml-hangs", "r+e");

        if (f) {
                (void) fseek(f, 0, SEEK_END);
                (void) fputs("asked\n", f);
                (void) fflush(f);
        }
        while (f)
                (void) pause();
        return find_line("modules", device, ret) ? OK : NOT_SUPPORTED;
}
