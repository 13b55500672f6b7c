/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Operations that need root: stopping and starting the units of StopServices=, running a CleanerCommand=, writing the
 * options of mlx4_core, changing the devices of the domains of Libvirt=, asking the Fabric Manager of Manager=, asking
 * NVIDIA's driver and turning on its persistence mode, and under Xen reading xenstore. The daemon is not root, so it
 * asks a service, passthroughd-root. The service takes units and commands only from the configuration, which belongs to
 * root: a request names a unit, a pool or a domain, and never a command. Nor does it trust the daemon about a device,
 * an NVLink partition or an option: it compares these with the configuration, sysfs and the ledger on disk.
 *
 * systemd starts the service for each connection. A request is one message of util/wire.h, and so is its answer.
 */

#include "config/config.h"
#include "host/plug.h"
#include "host/xen.h"

/* The socket of passthroughd-root. */
#define ROOT_SOCKET "/run/passthroughd-root"

/* Most devices in one call of root_clean(). */
#define ROOT_DEVICES_MAX 4096U

/* Uses this socket instead of ROOT_SOCKET. path is borrowed. */
void root_service_use_socket(const char *path);

/*
 * Each of these functions may block until CLOCK_MONOTONIC has reached end (in microseconds; root_plug() computes its
 * own end), and some seconds longer when the service hangs. -EPERM: the configuration, sysfs or the ledger does not
 * allow the request; the service logs the cause. -EHOSTDOWN: the service does not answer, which is logged.
 */

/* Stops the unit and waits until it has stopped. 0: stopped. -ETIMEDOUT: not stopped in time. -EIO: systemd's stop job
 * failed. Otherwise a negative errno. */
int root_stop_unit(const char *name, uint64_t end);
/* Starts the unit. Returns as root_stop_unit(). *ret_asked is true when a retry is useless, because systemd has
 * accepted or refused the start job, or the configuration does not have the unit. */
int root_start_unit(const char *name, uint64_t end, bool *ret_asked);
/*
 * Runs the command of the pool with the addresses as further arguments. 0: the exit status was 0. 1: the exit status is
 * in *ret_status, 128 plus the signal's number when a signal killed the command. -ETIMEDOUT: the command was killed,
 * because it took too long. -ENOSYS: systemd is not on the bus. Otherwise a negative errno.
 */
int root_clean(const char *pool, const PciAddress *devices, size_t n, uint64_t end, int *ret_status);
/* Writes the options of mlx4_core; text NULL: removes them. Returns as modprobe_set(). */
int root_set_options(const char *text, uint64_t end);

/*
 * Makes the request to the libvirt of Libvirt=. *ret_text: as plug_make(). When the service does not answer, or its
 * configuration has no Libvirt=, the result is PLUG_UNKNOWN, and *ret_text is NULL. The result is PLUG_FAILED, with
 * NULL too, when the hostdev is too long.
 */
PlugResult root_plug(const PlugRequest *request, char **ret_text);

/*
 * Activates or deactivates an NVLink partition of the configuration, as fabric_manager_set() in host/fabricmanager.h.
 * -ETIMEDOUT: Fabric Manager hangs; the change may still follow.
 */
int root_set_partition(unsigned id, bool active, uint64_t end);
/*
 * Asks Fabric Manager for its report about the partitions in ids, as fabric_manager_follow() in host/fabricmanager.h.
 * active: bit i is set if the partition ids[i] is active. If Fabric Manager has restarted and waits for the list of
 * active partitions, sends that list instead.
 */
int root_follow_partitions(const unsigned *ids, size_t n, uint64_t active, uint64_t end, FabricReport *ret);

/* Reads the NVLink module id and confidential mode of a GPU that is bound to NVIDIA's driver. Returns what
 * nvml_read_module() in host/nvml.h returns, or -ETIMEDOUT when the driver does not answer. */
int root_read_module(PciAddress gpu, uint64_t end);
/*
 * Asks NVIDIA's driver about n GPUs, 1 to ROOT_GPUS_MAX, that are bound to this driver. The service asks about one GPU
 * after the other, and each answer may take an equal part of the time until end. Returns 0 or a negative errno.
 * -ETIMEDOUT: the driver does not answer about the GPU whose result is -ETIMEDOUT, and the GPUs after it were not
 * asked. The result of a GPU that the service refuses is -EPERM; the result of any other GPU that was not asked is 0.
 */
#define ROOT_GPUS_MAX 64U
/* Asks whether persistence mode is on: the result is 1 if so, otherwise as nvml_read_persistence() says. */
int root_read_persistence(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results);
/* Checks the health of GPUs that return to the host, as nvml_check_gpu() in host/nvml.h does. What the library cannot
 * tell counts as healthy. */
int root_check_health(const PciAddress *gpus, size_t n, uint64_t end, int32_t *results);
/* Makes systemd turn on persistence mode of a GPU that returns to the host. The service logs a failure. Returns 0, also
 * when the program that systemd ran has failed, or a negative errno. */
int root_set_persistence(PciAddress gpu, uint64_t end);

/* Reads from xenstore which PCI devices guests of Xen have. -ETIMEDOUT: xenstore does not answer. Otherwise as
 * xenstore_read_guests() in host/xenstore.h says. */
int root_read_xen_guests(uint64_t end, XenGuests *ret);

/* Where passthroughd-root reads and writes. */
typedef struct RootHost {
        const Config *config;
        const char *sysroot;            /* contains sys/ */
        const char *state_directory;    /* the daemon's state directory */
        const char *modprobe_directory; /* NULL: the default */
} RootHost;

/* For passthroughd-root: reads a request from the connection fd, carries it out if it is allowed, and sends the answer.
 * Returns 0 or a negative errno. */
int root_answer(int fd, const RootHost *h);
/* Turns on persistence mode of the GPU with the address `gpu`. For "passthroughd-root --persistence=", which systemd
 * runs as a unit of its own for root_set_persistence(): the process that answers requests lacks CAP_SYS_ADMIN. Returns
 * 0, or a negative errno, which is logged. */
int root_enable_persistence(const char *gpu);
