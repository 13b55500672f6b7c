/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A libnvidia-ml.so.1 for tests. The files in $NVFM_DIR have a line "BUS-ID NUMBER" for each GPU that they are about:
 *
 * modules      the module id of a GPU that has NVLink
 * lost         a GPU that the driver has lost, without a number
 * unknown      a GPU that the library does not know, without a number
 * remapped     1: the remapping of a row has failed; 2: a row waits to be remapped; 3: both
 * sram         a GPU whose SRAM had too many errors, without a number
 * fabric       a GPU that is registered with Fabric Manager: the result
 * registering  a GPU whose registration has not ended: the result so far
 * persistent   a GPU in persistence mode, without a number
 * confidential one line without a GPU: ccFeature, devToolsMode and multiGpuMode of the machine
 *
 * While nvml-hangs exists, the library does not return, and adds a line to it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
        OK = 0,
        NOT_SUPPORTED = 3,
        NO_PERMISSION = 4,
        NOT_FOUND = 6,
        GPU_IS_LOST = 15,
        VERSION_MISMATCH = 25
};

static char asked[32];

static FILE *open_file(const char *name, const char *mode) {
        const char *dir = getenv("NVFM_DIR");
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/nonexistent", name);
        return fopen(path, mode);
}

/* Finds the GPU's line in the file. *ret: its second word. */
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
        if (find_line("unknown", bus_id, &unused))
                return NOT_FOUND;
        (void) strcpy(asked, bus_id);
        *ret = asked;
        return OK;
}

static void hang(void) {
        FILE *f = open_file("nvml-hangs", "r+e");

        if (f) {
                (void) fseek(f, 0, SEEK_END);
                (void) fputs("asked\n", f);
                (void) fflush(f);
        }
        while (f)
                (void) pause();
}

EXPORTED int nvmlDeviceGetModuleId(const void *device, unsigned *ret);
EXPORTED int nvmlDeviceGetModuleId(const void *device, unsigned *ret) {
        hang();
        return find_line("modules", device, ret) ? OK : NOT_SUPPORTED;
}

EXPORTED int nvmlDeviceGetRemappedRows(const void *device, unsigned *correctable, unsigned *uncorrectable,
                                       unsigned *pending, unsigned *failed);
EXPORTED int nvmlDeviceGetRemappedRows(const void *device, unsigned *correctable, unsigned *uncorrectable,
                                       unsigned *pending, unsigned *failed) {
        unsigned flags;

        hang();
        if (!find_line("remapped", device, &flags))
                flags = 0;
        *correctable = 0;
        *uncorrectable = 7;
        *failed = flags & 1;
        *pending = flags >> 1 & 1;
        return OK;
}

struct sram {
        uint32_t version;
        uint64_t counters[11];
        uint32_t exceeded;
};

EXPORTED int nvmlDeviceGetSramEccErrorStatus(const void *device, struct sram *ret);
EXPORTED int nvmlDeviceGetSramEccErrorStatus(const void *device, struct sram *ret) {
        unsigned unused;

        if (ret->version != 0x1000068)
                return VERSION_MISMATCH;
        ret->counters[0] = 1;
        ret->exceeded = find_line("sram", device, &unused);
        return OK;
}

struct fabric {
        uint8_t cluster[16];
        uint32_t status, clique;
        uint8_t state;
};

EXPORTED int nvmlDeviceGetGpuFabricInfo(const void *device, struct fabric *ret);
EXPORTED int nvmlDeviceGetGpuFabricInfo(const void *device, struct fabric *ret) {
        unsigned status;
        bool completed = find_line("fabric", device, &status);

        if (!completed && !find_line("registering", device, &status))
                return NOT_SUPPORTED;
        *ret = (struct fabric) { .status = status, .state = completed ? 3 : 2 };
        return OK;
}

EXPORTED int nvmlDeviceGetPersistenceMode(const void *device, unsigned *ret);
EXPORTED int nvmlDeviceGetPersistenceMode(const void *device, unsigned *ret) {
        unsigned unused;

        hang();
        *ret = find_line("persistent", device, &unused);
        return OK;
}

EXPORTED int nvmlDeviceSetPersistenceMode(const void *device, unsigned mode);
EXPORTED int nvmlDeviceSetPersistenceMode(const void *device, unsigned mode) {
        FILE *f = mode == 1 ? open_file("persistent", "ae") : NULL;

        if (!f)
                return NO_PERMISSION;
        (void) fprintf(f, "%s\n", (const char *) device);
        return fclose(f) == 0 ? OK : NO_PERMISSION;
}

struct settings {
        uint32_t version, environment, feature, devtools, multi_gpu;
};

EXPORTED int nvmlSystemGetConfComputeSettings(struct settings *ret);
EXPORTED int nvmlSystemGetConfComputeSettings(struct settings *ret) {
        FILE *f = open_file("confidential", "re");
        bool found = f && fscanf(f, "%u %u %u", &ret->feature, &ret->devtools, &ret->multi_gpu) == 3;

        if (f)
                (void) fclose(f);
        if (ret->version != 0x1000014)
                return VERSION_MISMATCH;
        return found ? OK : NOT_SUPPORTED;
}
