/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls NVIDIA's libnvfm.so.1: its structures and functions. */

#include "fabricmanager.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "library.h"
#include "util/strings.h"

#define CONNECT_MSEC       5000U
#define MANAGER_PARTITIONS 64U
#define PARTITION_GPUS     16U
#define FAILED_SWITCHES    12U
#define FAILED_PORTS       64U

/* Value of a structure's version member: its size and, in the highest byte, the version 1. */
#define STRUCT_VERSION(type) ((uint32_t) sizeof(type) | 1U << 24)

typedef struct ConnectParams {
        uint32_t version;
        char address[256];
        uint32_t timeout_msec, is_unix_socket;
} ConnectParams;

typedef struct ManagerGpu {
        uint32_t module;
        char uuid[80], bus_id[32]; /* empty on H100 and later */
        uint32_t links, max_links, mbps;
} ManagerGpu;

typedef struct ManagerPartition {
        uint32_t id, is_active, n_gpus;
        ManagerGpu gpus[PARTITION_GPUS];
} ManagerPartition;

typedef struct PartitionList {
        uint32_t version, n, max;
        ManagerPartition partitions[MANAGER_PARTITIONS];
} PartitionList;

typedef struct ActiveList {
        uint32_t version, n, ids[MANAGER_PARTITIONS];
} ActiveList;

typedef struct FailedDevice {
        char uuid[80], bus_id[32];
        uint32_t n_ports, ports[FAILED_PORTS];
} FailedDevice;

typedef struct FailedList {
        uint32_t version, n_gpus, n_switches;
        FailedDevice gpus[FABRIC_FAILED_MAX], switches[FAILED_SWITCHES];
} FailedList;

_Static_assert(sizeof(ConnectParams) == 268, "the library's size");
_Static_assert(sizeof(ManagerPartition) == 2060, "the library's size");
_Static_assert(sizeof(PartitionList) == 131852, "the library's size");
_Static_assert(sizeof(ActiveList) == 264, "the library's size");
_Static_assert(sizeof(FailedList) == 10428, "the library's size");
_Static_assert(FABRIC_PARTITIONS_MAX == MANAGER_PARTITIONS, "an ActiveList holds the ids, and a FabricTable the list");

struct FabricManager {
        void *library, *handle;
        bool is_initialized;
        int (*init)(void);
        int (*shutdown)(void);
        int (*connect)(ConnectParams *params, void **handle);
        int (*disconnect)(void *handle);
        int (*list)(void *handle, PartitionList *list);
        int (*activate)(void *handle, uint32_t id);
        int (*deactivate)(void *handle, uint32_t id);
        int (*restore)(void *handle, ActiveList *list);
        int (*list_failed)(void *handle, FailedList *list);
        PartitionList partitions;
        FailedList failed;
};

/* Converts a result of the library to 0 or one of these errnos, negated. */
static int fabric_errno(int result) {
        static const int errors[] = {
                [1] = EINVAL,     [2] = EREMOTEIO, /* [2]: unspecified */
                [3] = EOPNOTSUPP,                  /* not supported in this mode of Fabric Manager */
                [4] = EUNATCH,                     /* the library is not initialized */
                [5] = ETIMEDOUT,  [6] = EPROTO,    /* [6]: wrong version of a structure */
                [7] = EBUSY,                       /* in use */
                [8] = EAGAIN,                      /* Fabric Manager has no data yet */
                [9] = ENOTCONN,   [10] = EIO,      /* [10]: NVLinks failed */
        };

        return result <= 0 && -result < (int) ELEMENTSOF(errors) ? -errors[-result] : -EREMOTEIO;
}

static bool load_fabric_library(FabricManager *f) {
        const LibrarySymbol symbols[] = {
                { "fmLibInit", &f->init },
                { "fmLibShutdown", &f->shutdown },
                { "fmConnect", &f->connect },
                { "fmDisconnect", &f->disconnect },
                { "fmGetSupportedFabricPartitions", &f->list },
                { "fmActivateFabricPartition", &f->activate },
                { "fmDeactivateFabricPartition", &f->deactivate },
                { "fmSetActivatedFabricPartitions", &f->restore },
                { "fmGetNvlinkFailedDevices", &f->list_failed },
        };

        f->library = library_open("libnvfm.so.1", symbols, ELEMENTSOF(symbols));
        return f->library;
}

FabricManager *fabric_manager_close(FabricManager *f) {
        if (!f)
                return NULL;
        if (f->handle)
                (void) f->disconnect(f->handle);
        if (f->is_initialized)
                (void) f->shutdown();
        if (f->library)
                (void) dlclose(f->library);
        free(f);
        return NULL;
}

/* Returns 0, -EPROTO, or -ENOTCONN for any other error: when Fabric Manager does not answer, the library reports an
 * invalid connection or a timeout. */
static int connect_to(FabricManager *f, const char *address) {
        ConnectParams params = { .version = STRUCT_VERSION(ConnectParams),
                                 .timeout_msec = CONNECT_MSEC,
                                 .is_unix_socket = address[0] == '/' };
        int r;

        (void) snprintf(params.address, sizeof(params.address), "%s", address);
        r = fabric_errno(f->connect(&params, &f->handle));
        return r == 0 || r == -EPROTO ? r : -ENOTCONN;
}

int fabric_manager_open(const char *address, FabricManager **ret) {
        _cleanup_(cleanup_fabric_manager_close) FabricManager *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        if (!load_fabric_library(f))
                return -ELIBACC;
        r = fabric_errno(f->init());
        if (r < 0)
                return r;
        f->is_initialized = true;
        r = connect_to(f, address);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

static int read_partitions(FabricManager *f) {
        f->partitions.version = STRUCT_VERSION(PartitionList);
        return fabric_errno(f->list(f->handle, &f->partitions));
}

/* Returns the partition with this id, as read last; NULL: there is none. */
static const ManagerPartition *find_partition(const FabricManager *f, unsigned id) {
        for (size_t i = 0; i < MIN(f->partitions.n, MANAGER_PARTITIONS); i++)
                if (f->partitions.partitions[i].id == id)
                        return &f->partitions.partitions[i];
        return NULL;
}

static uint64_t modules_of(const ManagerPartition *m) {
        uint64_t modules = 0;

        for (size_t i = 0; i < MIN(m->n_gpus, PARTITION_GPUS); i++)
                modules |= m->gpus[i].module <= FABRIC_MODULE_MAX ? fabric_bit(m->gpus[i].module) : 0;
        return modules;
}

/* Returns 1 if the partition is active, 0 if not, or a negative errno. */
static int is_active(FabricManager *f, const FabricPartition *p) {
        int r = read_partitions(f);
        const ManagerPartition *m = r == 0 ? find_partition(f, p->id) : NULL;

        if (!m)
                return r < 0 ? r : -ENOENT;
        return modules_of(m) == p->modules ? m->is_active != 0 : -EXDEV;
}

int fabric_manager_set(FabricManager *f, const FabricPartition *p, bool active) {
        int r = is_active(f, p);

        if (r < 0 || r == active)
                return r < 0 ? r : 0;
        r = fabric_errno(active ? f->activate(f->handle, p->id) : f->deactivate(f->handle, p->id));
        if (r < 0)
                return r;
        r = is_active(f, p);
        return r < 0 ? r : r == active ? 1 : -ESTALE;
}

/* Reads the failed devices. The library formats a GPU's address as 00000000:1B:00.0. A manager that restarts with
 * resiliency does not support this call. */
static int read_failed(FabricManager *f, FabricReport *ret) {
        int r;

        f->failed.version = STRUCT_VERSION(FailedList);
        r = fabric_errno(f->list_failed(f->handle, &f->failed));
        for (size_t i = 0; r == 0 && i < MIN(f->failed.n_gpus, FABRIC_FAILED_MAX); i++) {
                FailedDevice *gpu = &f->failed.gpus[i];
                PciAddress address = { 0 };

                gpu->bus_id[sizeof(gpu->bus_id) - 1] = '\0';
                if (sscanf(gpu->bus_id, "%" SCNx32 ":%" SCNx8 ":%" SCNx8 ".%" SCNx8, &address.domain, &address.bus,
                           &address.slot, &address.function) == 4)
                        ret->failed[ret->n_failed++] = address;
        }
        return r == -EOPNOTSUPP ? 0 : r;
}

int fabric_manager_follow(FabricManager *f, const unsigned *ids, size_t n, uint64_t active, FabricReport *ret) {
        ActiveList list = { .version = STRUCT_VERSION(ActiveList) };
        int r = read_partitions(f);

        assert(n <= ELEMENTSOF(list.ids));
        *ret = (FabricReport) { 0 };
        for (size_t i = 0; r == 0 && i < MIN(f->partitions.n, MANAGER_PARTITIONS); i++)
                (void) fabric_table_add(&ret->table, f->partitions.partitions[i].id,
                                        modules_of(&f->partitions.partitions[i]));
        for (size_t i = 0; i < ret->table.n; i++)
                ret->active |= (uint64_t) (find_partition(f, ret->table.partitions[i].id)->is_active != 0) << i;
        for (size_t i = 0; r == 0 && i < n; i++) {
                const ManagerPartition *m = find_partition(f, ids[i]);

                if (m && !m->is_active)
                        ret->inactive |= UINT64_C(1) << i;
        }
        if (r == 0)
                return read_failed(f, ret);
        if (r != -EAGAIN)
                return r;
        for (size_t i = 0; i < n; i++)
                if (active >> i & 1)
                        list.ids[list.n++] = ids[i];
        r = fabric_errno(f->restore(f->handle, &list));
        return r < 0 ? r : 1;
}
