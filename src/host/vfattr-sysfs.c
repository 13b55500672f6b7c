/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes the attributes of a VF in sysfs directories of Mellanox' drivers. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "vfattr-internal.h"

/* Uses the directory sriov/N that MLNX_OFED gives a PF. */

static const char *const policies[_VF_LINK_MAX] = {
        [VF_LINK_AUTO] = "Follow",
        [VF_LINK_UP] = "Up",
        [VF_LINK_DOWN] = "Down",
};

/* The files of sriov/N whose values are attributes. An Ethernet PF has only "node" of these. The other files of the
 * directory return a usage text instead of a value. */
static const struct OfedFile {
        const char *name;
        VfAttribute attribute;
} ofed_files[] = {
        { "node", VF_NODE_GUID },
        { "port", VF_PORT_GUID },
        { "policy", VF_LINK },
};

static const char *ofed_path(const VfTarget *t, const struct OfedFile *f, char buf[static PCI_PATH_MAX]) {
        char name[64];

        (void) snprintf(name, sizeof(name), "sriov/%u/%s", t->vf, f->name);
        return pci_path_format(t->pf, name, buf);
}

static bool parse_policy(const char *text, VfAttributes *v) {
        for (VfLink l = 0; l < _VF_LINK_MAX; l++)
                if (streq(text, policies[l])) {
                        vf_attributes_put(v, VF_LINK, l);
                        return true;
                }
        return false;
}

static bool parse_ofed_guid(VfAttribute a, const char *text, VfAttributes *v) {
        _cleanup_free_ char *problem = NULL;
        char term[64];

        if ((size_t) snprintf(term, sizeof(term), "%s=%s", vf_attribute_to_string(a), text) >= sizeof(term))
                return false;
        return vf_attributes_parse(term, v, &problem) >= 0;
}

/* Parses the text of one file. Ignores a text that cannot be parsed, such as the driver's "Invalid policy", because no
 * undo could write it back. */
static void read_ofed_file(const struct OfedFile *f, const char *text, VfAttributes *ret) {
        VfAttributes one = { 0 };

        if (f->attribute == VF_LINK ? parse_policy(text, &one) : parse_ofed_guid(f->attribute, text, &one))
                vf_attributes_merge(ret, &one);
}

static bool has_ofed_directory(const VfTarget *t) {
        if (!t->view->ofed_known) {
                _cleanup_close_ int fd = sysfs_open(t->fs, PCI_PATH(t->pf, "sriov"), O_PATH | O_DIRECTORY);

                t->view->has_ofed = fd >= 0;
                t->view->ofed_known = true;
        }
        return t->view->has_ofed;
}

int vf_ofed_read(const VfTarget *t, VfAttributes *ret) {
        for (size_t i = 0; has_ofed_directory(t) && i < ELEMENTSOF(ofed_files); i++) {
                char path[PCI_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];
                int r = sysfs_read(t->fs, ofed_path(t, &ofed_files[i], path), text, sizeof(text));

                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        return r;
                read_ofed_file(&ofed_files[i], text, ret);
        }
        return 0;
}

int vf_ofed_write(const VfTarget *t, const VfAttributes *change) {
        for (size_t i = 0; i < ELEMENTSOF(ofed_files); i++) {
                char path[PCI_PATH_MAX], value[VF_VALUE_MAX], line[VF_VALUE_MAX + 2];
                VfAttribute a = ofed_files[i].attribute;
                int r;

                if (!vf_attributes_have(change, a))
                        continue;
                /* With the newline: the driver compares a policy with "Follow\n". */
                (void) snprintf(line, sizeof(line), "%s\n",
                                a == VF_LINK ? policies[change->value[a]]
                                             : vf_value_format(a, change->value[a], value));
                r = sysfs_write(t->fs, ofed_path(t, &ofed_files[i], path), line);
                if (r < 0)
                        return r;
        }
        return 0;
}

/*
 * The iov directory of an mlx4 InfiniBand device (the kernel's drivers/infiniband/hw/mlx4/sysfs.c). When 0 is written
 * as alias GUID, the subnet manager assigns a GUID; all ones delete the alias GUID.
 */

#define DEVICES_MAX   16U
#define PORTS_MAX     2U   /* the most ports of an mlx4 device */
#define PKEYS_MAX     256U /* the driver's index has 8 bits */
#define ENTRIES_MAX   256U
#define MLX4_PATH_MAX 256

/* The attributes of each InfiniBand port. Each port has attributes of its own, because an undo writes back the values
 * that were read at each port. */
static const struct PortAttributes {
        VfAttribute guid, pkey;
} port_attributes[PORTS_MAX] = {
        { VF_PORT_GUID, VF_PKEY },
        { VF_SECOND_PORT_GUID, VF_SECOND_PORT_PKEY },
};

typedef struct Iov {
        const VfTarget *t;
        const char *device; /* path of the InfiniBand device, relative to the root */
        char vf[40];        /* name of the VF's directory in iov */
        unsigned ports[PORTS_MAX];
        unsigned n_ports;
} Iov;

static int list_directory(const VfTarget *t, const char *path, size_t max, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(t->fs, path, O_RDONLY | O_DIRECTORY);

        return fd < 0 ? fd : list_dir_at(fd, ".", max, ret, ret_n);
}

static bool is_directory(const VfTarget *t, const char *path) {
        _cleanup_close_ int fd = sysfs_open(t->fs, path, O_PATH | O_DIRECTORY);

        return fd >= 0;
}

/* Sets iov_device of the cache to the InfiniBand device that has the directory iov/ports; "" if there is none, as
 * without mlx4_ib. */
static int find_device(const VfTarget *t) {
        PfView *view = t->view;
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = list_directory(t, PCI_PATH(t->pf, "infiniband"), DEVICES_MAX, &names, &n);

        for (size_t i = 0; i < n && view->iov_device[0] == '\0'; i++) {
                char path[MLX4_PATH_MAX];

                (void) snprintf(path, sizeof(path), "%s/%s/iov/ports", PCI_PATH(t->pf, "infiniband"), names[i]);
                if (is_directory(t, path))
                        (void) snprintf(view->iov_device, sizeof(view->iov_device), "%s/%s",
                                        PCI_PATH(t->pf, "infiniband"), names[i]);
        }
        view->iov_known = r >= 0 || r == -ENOENT;
        return view->iov_known ? 0 : r;
}

/* Returns true for an InfiniBand port, and for a port whose link layer cannot be read. On an Ethernet port alias GUIDs
 * have no effect, and pkeys cannot be written. */
static bool is_infiniband(const Iov *iov, unsigned port) {
        char path[MLX4_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];

        (void) snprintf(path, sizeof(path), "%s/ports/%u/link_layer", iov->device, port);
        return sysfs_read(iov->t->fs, path, text, sizeof(text)) < 0 || !streq(text, "Ethernet");
}

/* Lists the InfiniBand ports of the VF. */
static int find_ports(Iov *iov) {
        _cleanup_names_ char **names = NULL;
        char path[MLX4_PATH_MAX];
        size_t n = 0;
        int r;

        (void) snprintf(path, sizeof(path), "%s/iov/%s/ports", iov->device, iov->vf);
        r = list_directory(iov->t, path, ENTRIES_MAX, &names, &n);
        for (size_t i = 0; i < n && iov->n_ports < PORTS_MAX; i++) {
                uint64_t port;

                if (parse_unsigned(names[i], UINT8_MAX, &port) >= 0 && is_infiniband(iov, (unsigned) port))
                        iov->ports[iov->n_ports++] = (unsigned) port;
        }
        return r == -ENOENT ? 0 : r;
}

/* Finds the VF's directory and ports. n_ports is 0 if the PF has no iov directory, or the VF has no InfiniBand port. */
static int find_iov(const VfTarget *t, Iov *iov) {
        int r = t->view->iov_known ? 0 : find_device(t);
        unsigned number = t->vf + 1;

        *iov = (Iov) { .t = t, .device = t->view->iov_device };
        if (r < 0 || t->view->iov_device[0] == '\0')
                return r;
        /*
         * The driver builds the name of the VF's directory from the PF's domain and bus and a number, which is 0 for
         * the PF and n + 1 for VF n: the slot is number / 8, and the function is number % 8. The slot is decimal, so
         * from slot 10 on the name differs from the VF's PCI address.
         */
        (void) snprintf(iov->vf, sizeof(iov->vf), "%.8s%.2u.%u", PCI_ADDRESS_STR(t->pf), number / 8, number % 8);
        return find_ports(iov);
}

/* Formats the path of the VF's alias GUID at a port. */
static int guid_path(const Iov *iov, unsigned port, char path[static MLX4_PATH_MAX]) {
        char text[SYSFS_ATTRIBUTE_MAX];
        uint64_t index;
        int r;

        (void) snprintf(path, MLX4_PATH_MAX, "%s/iov/%s/ports/%u/gid_idx/0", iov->device, iov->vf, port);
        r = sysfs_read(iov->t->fs, path, text, sizeof(text));
        if (r < 0)
                return r;
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

/* Reads the partition key that the VF's pkey index 0 is mapped to. *ret is 0, an invalid key, for "none". */
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

        if (r < 0)
                return r;
        for (unsigned i = 0; i < iov.n_ports; i++) {
                uint64_t guid, pkey;

                r = read_guid(&iov, iov.ports[i], &guid);
                if (r < 0)
                        return r;
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
        if (r < 0)
                return r;
        r = read_hex(iov->t->fs, path, UINT64_MAX, &now);
        if (r < 0)
                return r;
        return now == guid ? 0 : -EIO;
}

/* Formats the value that maps the VF's pkey index 0 to `pkey`. -EADDRNOTAVAIL: the port's pkey table, which the subnet
 * manager fills, lacks `pkey`. */
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

/* Writes the pkeys of all ports. Looks up all pkeys before the first write, so that a missing pkey changes nothing. */
static int write_pkeys(const Iov *iov, const VfAttributes *change) {
        char path[MLX4_PATH_MAX], texts[PORTS_MAX][16];
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < iov->n_ports; i++)
                if (vf_attributes_have(change, port_attributes[i].pkey))
                        r = format_pkey_index(iov, iov->ports[i], change->value[port_attributes[i].pkey], texts[i]);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < iov->n_ports; i++) {
                uint64_t now = 0;

                if (!vf_attributes_have(change, port_attributes[i].pkey))
                        continue;
                r = sysfs_write(iov->t->fs, pkey_path(iov, iov->ports[i], path), texts[i]);
                if (r < 0)
                        return r;
                r = read_pkey(iov, iov->ports[i], &now);
                if (r < 0)
                        return r;
                if (now != change->value[port_attributes[i].pkey])
                        r = -EIO;
                if (r < 0)
                        return r;
        }
        return r;
}

int vf_mlx4_write(const VfTarget *t, const VfAttributes *change) {
        Iov iov;
        int r = find_iov(t, &iov);

        if (r < 0)
                return r;
        /* Pkeys first: a wrong pkey is refused before anything is written. */
        r = write_pkeys(&iov, change);
        for (unsigned i = 0; r >= 0 && i < iov.n_ports; i++)
                if (vf_attributes_have(change, port_attributes[i].guid))
                        r = write_guid(&iov, iov.ports[i], change->value[port_attributes[i].guid]);
        return r;
}
