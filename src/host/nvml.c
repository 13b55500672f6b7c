/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "host/nvidia.h"
#include "library.h"
#include "model/fabric.h"
#include "util/strings.h"

/* Results of the library. */
#define NVML_SUCCESS       0
#define NVML_NO_PERMISSION 4
#define NVML_GPU_IS_LOST   15 /* the GPU is inaccessible, usually because it fell off the bus */

#define FEATURE_ENABLED  1U
#define FABRIC_COMPLETED 3U

typedef struct SramErrors {
        uint32_t version;
        uint64_t counters[11];
        uint32_t threshold_exceeded;
} SramErrors;

#define SRAM_ERRORS_VERSION ((uint32_t) sizeof(SramErrors) | 1U << 24)

typedef struct FabricInfo {
        uint8_t cluster[16];
        uint32_t status, clique;
        uint8_t state;
} FabricInfo;

_Static_assert(sizeof(SramErrors) == 104, "the library's size");
_Static_assert(sizeof(FabricInfo) == 28, "the library's size");

/* nvmlSystemConfComputeSettings_v1_t, for all GPUs of the driver. */
typedef struct ConfidentialSettings {
        uint32_t version, environment, feature, devtools, multi_gpu;
} ConfidentialSettings;

#define CONFIDENTIAL_SETTINGS_VERSION ((uint32_t) sizeof(ConfidentialSettings) | 1U << 24)
#define MULTI_GPU_PROTECTED_PCIE      1U
#define MULTI_GPU_NVLE                2U /* encrypted NVLink of Blackwell */

typedef struct Nvml {
        int (*init)(void);
        int (*shutdown)(void);
        int (*find)(const char *bus_id, void **ret);
        /* each of these is NULL if the library lacks it */
        int (*module)(void *device, unsigned *ret);
        int (*persistence)(void *device, unsigned *ret);
        int (*set_persistence)(void *device, unsigned mode);
        int (*rows)(void *device, unsigned *correctable, unsigned *uncorrectable, unsigned *pending, unsigned *failed);
        int (*sram)(void *device, SramErrors *ret);
        int (*fabric)(void *device, FabricInfo *ret);
        int (*confidential)(ConfidentialSettings *ret);
} Nvml;

static void *load_nvml(Nvml *ret) {
        const LibrarySymbol symbols[] = {
                { "nvmlInit_v2", &ret->init },
                { "nvmlShutdown", &ret->shutdown },
                { "nvmlDeviceGetHandleByPciBusId_v2", &ret->find },
                { "nvmlDeviceGetModuleId", &ret->module, true },
                { "nvmlDeviceGetPersistenceMode", &ret->persistence, true },
                { "nvmlDeviceSetPersistenceMode", &ret->set_persistence, true },
                { "nvmlDeviceGetRemappedRows", &ret->rows, true },
                { "nvmlDeviceGetSramEccErrorStatus", &ret->sram, true },
                { "nvmlDeviceGetGpuFabricInfo", &ret->fabric, true },
                { "nvmlSystemGetConfComputeSettings", &ret->confidential, true },
        };

        return library_open("libnvidia-ml.so.1", symbols, ELEMENTSOF(symbols));
}

static int nvml_errno(int result) {
        return result == NVML_SUCCESS         ? 0
               : result == NVML_GPU_IS_LOST   ? -ENODEV
               : result == NVML_NO_PERMISSION ? -EPERM
                                              : -ENODATA;
}

typedef int (*Query)(const Nvml *nvml, void *device);

static int ask_gpu(PciAddress gpu, Query query) {
        Nvml nvml = { 0 };
        void *library = load_nvml(&nvml), *device;
        char id[32];
        int r = -ENODATA;

        if (!library)
                return -ELIBACC;
        if (nvml.init() == NVML_SUCCESS) {
                (void) snprintf(id, sizeof(id), "%08X:%02X:%02X.%X", gpu.domain, gpu.bus, gpu.slot, gpu.function);
                r = nvml.find(id, &device);
                r = r == NVML_SUCCESS ? query(&nvml, device) : r == NVML_GPU_IS_LOST ? -ENODEV : -ENODATA;
                (void) nvml.shutdown();
        }
        (void) dlclose(library);
        return r;
}

/* Returns the confidential mode. Unknown if the library or the driver does not say. */
static ConfidentialMode query_mode(const Nvml *nvml) {
        ConfidentialSettings s = { .version = CONFIDENTIAL_SETTINGS_VERSION };

        if (!nvml->confidential || nvml->confidential(&s) != NVML_SUCCESS)
                return CONFIDENTIAL_MODE_UNKNOWN;
        if (s.multi_gpu == MULTI_GPU_PROTECTED_PCIE)
                return CONFIDENTIAL_MODE_PROTECTED_PCIE;
        if (s.feature != FEATURE_ENABLED && s.multi_gpu != MULTI_GPU_NVLE)
                return CONFIDENTIAL_MODE_OFF;
        return s.devtools == FEATURE_ENABLED ? CONFIDENTIAL_MODE_DEVTOOLS : CONFIDENTIAL_MODE_ON;
}

static int query_module(const Nvml *nvml, void *device) {
        unsigned module = 0;
        int r = nvml->module ? nvml->module(device, &module) : NVML_SUCCESS;

        if (!nvml->module || r == NVML_GPU_IS_LOST)
                return nvml->module ? -ENODEV : -ELIBACC;
        if (r != NVML_SUCCESS || module > FABRIC_MODULE_MAX)
                module = 0;
        return (int) module + (int) query_mode(nvml) * GPU_MODE_UNIT;
}

int nvml_read_module(PciAddress gpu) {
        return ask_gpu(gpu, query_module);
}

static int query_persistence(const Nvml *nvml, void *device) {
        unsigned mode = 0;
        int r = nvml->persistence ? nvml_errno(nvml->persistence(device, &mode)) : -ELIBACC;

        return r < 0 ? r : mode == FEATURE_ENABLED;
}

int nvml_read_persistence(PciAddress gpu) {
        return ask_gpu(gpu, query_persistence);
}

static int enable_persistence(const Nvml *nvml, void *device) {
        int r = query_persistence(nvml, device);

        if (r > 0)
                return 0;
        return nvml->set_persistence ? nvml_errno(nvml->set_persistence(device, FEATURE_ENABLED)) : -ELIBACC;
}

int nvml_set_persistence(PciAddress gpu) {
        return ask_gpu(gpu, enable_persistence);
}

/* Checks the memory of the GPU as nvml_check_gpu() says. Skips what the library or the GPU does not support. */
static int query_memory(const Nvml *nvml, void *device) {
        SramErrors sram = { .version = SRAM_ERRORS_VERSION };
        unsigned correctable, uncorrectable, pending = 0, failed = 0;
        int r = nvml->rows ? nvml->rows(device, &correctable, &uncorrectable, &pending, &failed) : NVML_SUCCESS;

        if (r == NVML_GPU_IS_LOST)
                return -ENODEV;
        if (r == NVML_SUCCESS && failed)
                return -ENOTRECOVERABLE;
        if (nvml->sram && nvml->sram(device, &sram) == NVML_SUCCESS && sram.threshold_exceeded)
                return -EBADE;
        return r == NVML_SUCCESS && pending ? -EUCLEAN : 0;
}

static int query_all(const Nvml *nvml, void *device) {
        FabricInfo fabric = { 0 };
        int r = query_memory(nvml, device);

        if (r < 0)
                return r;
        return nvml->fabric && nvml->fabric(device, &fabric) == NVML_SUCCESS && fabric.state == FABRIC_COMPLETED &&
                               fabric.status != NVML_SUCCESS
                       ? -ENOLINK
                       : 0;
}

int nvml_check_gpu(PciAddress gpu, bool fabric) {
        return ask_gpu(gpu, fabric ? query_all : query_memory);
}
