/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "library.h"
#include "model/fabric.h"
#include "util/strings.h"

/* The functions return 0 when they succeed. */
typedef struct Nvml {
        int (*init)(void);
        int (*shutdown)(void);
        int (*find)(const char *bus_id, void **ret);
        int (*module)(void *device, unsigned *ret);
} Nvml;

static void *load(Nvml *ret) {
        const LibrarySymbol symbols[] = {
                { "nvmlInit_v2", &ret->init },
                { "nvmlShutdown", &ret->shutdown },
                { "nvmlDeviceGetHandleByPciBusId_v2", &ret->find },
                { "nvmlDeviceGetModuleId", &ret->module },
        };

        return library_open("libnvidia-ml.so.1", symbols, ELEMENTSOF(symbols));
}

/* The result of a call for a GPU that is inaccessible, usually because it fell off the bus. */
#define GPU_IS_LOST 15

static int read_module(const Nvml *nvml, PciAddress gpu) {
        char id[32];
        void *device;
        unsigned module = 0;
        int r;

        (void) snprintf(id, sizeof(id), "%08X:%02X:%02X.%X", gpu.domain, gpu.bus, gpu.slot, gpu.function);
        r = nvml->find(id, &device);
        if (r != 0)
                return r == GPU_IS_LOST ? -ENODEV : -ENODATA;
        r = nvml->module(device, &module);
        if (r == GPU_IS_LOST)
                return -ENODEV;
        return r == 0 && module <= FABRIC_MODULE_MAX ? (int) module : 0;
}

static int ask(const Nvml *nvml, PciAddress gpu) {
        int r;

        if (nvml->init() != 0)
                return -ENODATA;
        r = read_module(nvml, gpu);
        (void) nvml->shutdown();
        return r;
}

int nvml_read_module(PciAddress gpu) {
        Nvml nvml;
        void *library = load(&nvml);
        int r = library ? ask(&nvml, gpu) : -ELIBACC;

        if (library)
                (void) dlclose(library);
        return r;
}
