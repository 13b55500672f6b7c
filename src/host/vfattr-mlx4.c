/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attributes of a VF in the iov directory of mlx4's InfiniBand device (domain.md C23; the kernel's
 * drivers/infiniband/hw/mlx4/sysfs.c). An alias GUID of 0 leaves the choice to the subnet manager, all ones is none.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "vfattr-internal.h"

#define DEVICES_MAX   16U
#define PORTS_MAX     2U   /* of mlx4 */
#define PKEYS_MAX     256U /* the driver has an index in 8 bits */
#define ENTRIES_MAX   256U
#define MLX4_PATH_MAX 256

/* Of each port that is InfiniBand: what is read is restored, so no port is told by what another has. */
static const struct PortAttributes {
        VfAttribute guid, pkey;
} port_attributes[PORTS_MAX] = {
        { VF_PORT_GUID, VF_PKEY },
        { VF_SECOND_PORT_GUID, VF_SECOND_PORT_PKEY },
};

typedef struct Iov {
        const VfTarget *t;
        const char *device; /* the InfiniBand device, below the root */
        char vf[40];        /* the VF's entry in its iov */
        unsigned ports[PORTS_MAX];
        unsigned n_ports;
} Iov;

static int list(const VfTarget *t, const char *path, size_t max, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(t->fs, path, O_RDONLY | O_DIRECTORY);

        return fd < 0 ? fd : list_dir_at(fd, ".", max, ret, ret_n);
}

static bool is_directory(const VfTarget *t, const char *path) {
        _cleanup_close_ int fd = sysfs_open(t->fs, path, O_PATH | O_DIRECTORY);

        return fd >= 0;
}

/* None when the PF is no mlx4, or has no InfiniBand driver. */
static int find_device(const VfTarget *t) {
        PfView *view = t->view;
        char **names = NULL;
        size_t n = 0;
        int r = list(t, PCI_PATH(t->pf, "infiniband"), DEVICES_MAX, &names, &n);

        for (size_t i = 0; i < n && view->iov_device[0] == '\0'; i++) {
                char path[MLX4_PATH_MAX];

                (void) snprintf(path, sizeof(path), "%s/%s/iov/ports", PCI_PATH(t->pf, "infiniband"), names[i]);
                if (is_directory(t, path))
                        (void) snprintf(view->iov_device, sizeof(view->iov_device), "%s/%s",
                                        PCI_PATH(t->pf, "infiniband"), names[i]);
        }
        (void) free_names(names, n);
        view->iov_known = r >= 0 || r == -ENOENT;
        return view->iov_known ? 0 : r;
}

/*
 * The driver names a function's entry by its number, the PF being 0, as if that were the rest of the address: for the
 * tenth slot and later it writes a decimal number where the address of the VF has a hexadecimal one.
 */
static void name_vf(Iov *iov) {
        unsigned number = iov->t->vf + 1;

        (void) snprintf(iov->vf, sizeof(iov->vf), "%.8s%.2u.%u", PCI_ADDRESS_STR(iov->t->pf), number / 8, number % 8);
}

/* Those of Ethernet have no alias GUIDs that count, and pkeys that cannot be written. */
static bool is_infiniband(const Iov *iov, unsigned port) {
        char path[MLX4_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];

        (void) snprintf(path, sizeof(path), "%s/ports/%u/link_layer", iov->device, port);
        return sysfs_read(iov->t->fs, path, text, sizeof(text)) < 0 || !streq(text, "Ethernet");
}

/* The ports that the VF has. */
static int find_ports(Iov *iov) {
        char path[MLX4_PATH_MAX], **names = NULL;
        size_t n = 0;
        int r;

        (void) snprintf(path, sizeof(path), "%s/iov/%s/ports", iov->device, iov->vf);
        r = list(iov->t, path, ENTRIES_MAX, &names, &n);
        for (size_t i = 0; i < n && iov->n_ports < PORTS_MAX; i++) {
                uint64_t port;

                if (parse_unsigned(names[i], UINT8_MAX, &port) >= 0 && is_infiniband(iov, (unsigned) port))
                        iov->ports[iov->n_ports++] = (unsigned) port;
        }
        (void) free_names(names, n);
        return r == -ENOENT ? 0 : r;
}

/* n_ports is 0 when there is nothing of this way. */
static int find_iov(const VfTarget *t, Iov *iov) {
        int r = t->view->iov_known ? 0 : find_device(t);

        *iov = (Iov){ .t = t, .device = t->view->iov_device };
        if (r < 0 || t->view->iov_device[0] == '\0')
                return r;
        name_vf(iov);
        return find_ports(iov);
}

/* The file where the alias GUID of the VF at that port is set. */
static int guid_path(const Iov *iov, unsigned port, char path[static MLX4_PATH_MAX]) {
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t index;
        int r;

        (void) snprintf(path, MLX4_PATH_MAX, "%s/iov/%s/ports/%u/gid_idx/0", iov->device, iov->vf, port);
        r = sysfs_read(iov->t->fs, path, text, sizeof(text));
        if (r >= 0)
                r = parse_unsigned(text, UINT8_MAX, &index);
        if (r < 0)
                return r;
        (void) snprintf(path, MLX4_PATH_MAX, "%s/iov/ports/%u/admin_guids/%" PRIu64, iov->device, port, index);
        return 0;
}

static int read_hex(const Sysfs *fs, const char *path, uint64_t max, uint64_t *ret) {
        char text[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_read(fs, path, text, sizeof(text));

        return r < 0 ? r : parse_hex(text, max, ret);
}

static int read_guid(const Iov *iov, unsigned port, uint64_t *ret) {
        char path[MLX4_PATH_MAX];
        int r = guid_path(iov, port, path);

        return r < 0 ? r : read_hex(iov->t->fs, path, UINT64_MAX, ret);
}

static int read_physical_pkey(const Iov *iov, unsigned port, uint64_t index, uint64_t *ret) {
        char path[MLX4_PATH_MAX];

        (void) snprintf(path, sizeof(path), "%s/iov/ports/%u/pkeys/%" PRIu64, iov->device, port, index);
        return read_hex(iov->t->fs, path, UINT16_MAX, ret);
}

static const char *pkey_path(const Iov *iov, unsigned port, char path[static MLX4_PATH_MAX]) {
        (void) snprintf(path, MLX4_PATH_MAX, "%s/iov/%s/ports/%u/pkey_idx/0", iov->device, iov->vf, port);
        return path;
}

/* The key that index 0 of the VF stands for. "none" is 0, which is no valid key. */
static int read_pkey(const Iov *iov, unsigned port, uint64_t *ret) {
        char path[MLX4_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];
        uint64_t index;
        int r = sysfs_read(iov->t->fs, pkey_path(iov, port, path), text, sizeof(text));

        if (r < 0)
                return r;
        if (streq(text, "none")) {
                *ret = 0;
                return 0;
        }
        r = parse_unsigned(text, UINT8_MAX, &index);
        return r < 0 ? r : read_physical_pkey(iov, port, index, ret);
}

int vf_mlx4_read(const VfTarget *t, VfAttributes *ret) {
        Iov iov;
        int r = find_iov(t, &iov);

        for (unsigned i = 0; r >= 0 && i < iov.n_ports; i++) {
                uint64_t guid, pkey;

                r = read_guid(&iov, iov.ports[i], &guid);
                if (r >= 0)
                        r = read_pkey(&iov, iov.ports[i], &pkey);
                if (r < 0)
                        return r;
                vf_attributes_put(ret, port_attributes[i].guid, guid);
                vf_attributes_put(ret, port_attributes[i].pkey, pkey);
        }
        return r;
}

static int write_guid(const Iov *iov, unsigned port, uint64_t guid) {
        char path[MLX4_PATH_MAX], text[32];
        uint64_t now;
        int r = guid_path(iov, port, path);

        if (r < 0)
                return r;
        (void) snprintf(text, sizeof(text), "%" PRIx64, guid);
        r = sysfs_write(iov->t->fs, path, text);
        if (r >= 0)
                r = read_hex(iov->t->fs, path, UINT64_MAX, &now);
        if (r < 0)
                return r;
        return now == guid ? 0 : -EIO;
}

/* What is to be written to map index 0 to that key. -EADDRNOTAVAIL: the subnet manager gave the port no such key. */
static int format_pkey_index(const Iov *iov, unsigned port, uint64_t pkey, char text[static 16]) {
        if (pkey == 0) {
                (void) strcpy(text, "none");
                return 0;
        }
        for (unsigned i = 0; i < PKEYS_MAX; i++) {
                uint64_t have;
                int r = read_physical_pkey(iov, port, i, &have);

                if (r == -ENOENT)
                        break;
                if (r < 0)
                        return r;
                if (have == pkey) {
                        (void) snprintf(text, 16, "%u", i);
                        return 0;
                }
        }
        return -EADDRNOTAVAIL;
}

/* All of them are looked up before the first is written. */
static int write_pkeys(const Iov *iov, const VfAttributes *change) {
        char path[MLX4_PATH_MAX], texts[PORTS_MAX][16];
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < iov->n_ports; i++)
                if (vf_attributes_have(change, port_attributes[i].pkey))
                        r = format_pkey_index(iov, iov->ports[i], change->value[port_attributes[i].pkey], texts[i]);
        for (unsigned i = 0; r >= 0 && i < iov->n_ports; i++) {
                uint64_t now = 0;

                if (!vf_attributes_have(change, port_attributes[i].pkey))
                        continue;
                r = sysfs_write(iov->t->fs, pkey_path(iov, iov->ports[i], path), texts[i]);
                if (r >= 0)
                        r = read_pkey(iov, iov->ports[i], &now);
                if (r >= 0 && now != change->value[port_attributes[i].pkey])
                        r = -EIO;
        }
        return r;
}

int vf_mlx4_write(const VfTarget *t, const VfAttributes *change) {
        Iov iov;
        int r = find_iov(t, &iov);

        /* Those that can be refused for what they are come first. */
        if (r >= 0)
                r = write_pkeys(&iov, change);
        for (unsigned i = 0; r >= 0 && i < iov.n_ports; i++)
                if (vf_attributes_have(change, port_attributes[i].guid))
                        r = write_guid(&iov, iov.ports[i], change->value[port_attributes[i].guid]);
        return r;
}
