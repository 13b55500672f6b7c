/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The iov directory as in drivers/infiniband/hw/mlx4/sysfs.c of Linux 6.12, with shorter tables. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mlx4.h"

#define GUID_DELETED UINT64_MAX
/* Base of the GUIDs that the driver generates at load: locally administered. Hardware has random ones. */
#define GUID_OF_VFS  UINT64_C(0x0614b1e5a0c30000)

enum {
        TABLE_SIZE = 16 /* 128 entries in hardware */
};

/* making */

static Node *directory_at(Node *from, const char *path) {
        Node *dir;

        if (node_make_at(from, path, NODE_DIR, &dir) < 0)
                abort();
        return dir;
}

static Node *make_number(Node *dir, unsigned i, const char *text) {
        _cleanup_free_ char *name = xasprintf("%u", i);

        return node_default(dir, name, text);
}

static uint64_t port_guid(const Node *device, unsigned port) {
        _cleanup_free_ char *text = node_text(device, "node_guid");
        unsigned g[4] = {};

        if (text)
                (void) sscanf(text, "%x:%x:%x:%x", g, g + 1, g + 2, g + 3);
        return ((uint64_t) g[0] << 48 | (uint64_t) g[1] << 32 | (uint64_t) g[2] << 16 | g[3]) + port;
}

static char *format_gid(uint64_t guid) {
        return xasprintf("fe80:0000:0000:0000:%04x:%04x:%04x:%04x\n", (unsigned) (guid >> 48),
                         (unsigned) (guid >> 32 & 0xffff), (unsigned) (guid >> 16 & 0xffff),
                         (unsigned) (guid & 0xffff));
}

/* Makes a port with two further keys besides the default one, as a subnet manager may configure. */
static void make_port(const Node *device, Node *port, unsigned number, unsigned n_vfs) {
        const uint64_t of_vfs = GUID_OF_VFS + (number - 1) * 0x100;

        for (unsigned i = 0; i < TABLE_SIZE; i++) {
                uint64_t guid = i == 0 ? port_guid(device, number) : i <= n_vfs ? of_vfs + i : 0;
                _cleanup_free_ char *admin = xasprintf("%" PRIx64 "\n", guid), *gid = format_gid(guid),
                                    *pkey = xasprintf("0x%04x\n", i == 0   ? 0xffff
                                                                  : i <= 2 ? 0x8000 + i
                                                                           : 0);

                make_number(node_make(port, "admin_guids", NODE_DIR), i, admin);
                make_number(node_make(port, "gids", NODE_DIR), i, gid);
                make_number(node_make(port, "pkeys", NODE_DIR), i, pkey);
        }
}

/* Makes the tables of a function: the PF has all keys, a VF only the first. */
static void make_function(Node *port, unsigned function) {
        Node *pkeys = node_make(port, "pkey_idx", NODE_DIR);
        _cleanup_free_ char *gid = xasprintf("%u\n", function);

        make_number(node_make(port, "gid_idx", NODE_DIR), 0, gid);
        for (unsigned i = 0; i < TABLE_SIZE; i++) {
                _cleanup_free_ char *same = xasprintf("%u\n", i);

                make_number(pkeys, i, function == 0 || i == 0 ? same : "none\n");
        }
}

static void make_iov_port(const Node *pf, const Node *device, Node *iov, unsigned number, unsigned n_vfs) {
        _cleanup_free_ char *of_all = xasprintf("ports/%u", number);

        make_port(device, directory_at(iov, of_all), number, n_vfs);
        for (unsigned i = 0; i <= n_vfs; i++) { /* numbered from the PF, which is 0 */
                _cleanup_free_ char *path = xasprintf("%.8s%.2u.%u/ports/%u", pf->name, i / 8, i % 8, number);

                make_function(directory_at(iov, path), i);
        }
}

void mlx4_make(Node *pf, unsigned n_vfs) {
        Node *infiniband = node_child(pf, "infiniband"), *device, *iov;

        if (!infiniband || infiniband->n_children == 0)
                return;
        device = infiniband->children[0];
        iov = node_make(device, "iov", NODE_DIR);
        make_iov_port(pf, device, iov, 1, n_vfs);
        if (node_at(device, "ports/2"))
                make_iov_port(pf, device, iov, 2, n_vfs);
}

/* writes */

/* Sets the GUID of a function. The driver ignores writes to entry 0, the PF's. gids has the resulting GUIDs. For 0 the
 * subnet manager would choose one, and the simulator has none. */
static int store_admin_guid(Node *file, const char *value) {
        Node *gids = node_child(file->parent->parent, "gids");
        uint64_t guid = 0;

        if (strcmp(file->name, "0") == 0)
                return 0;
        (void) sscanf(value, "%" SCNx64, &guid);
        node_write(file->parent, file->name, "%" PRIx64 "\n", guid);
        _cleanup_free_ char *gid = format_gid(guid == GUID_DELETED ? 0 : guid);
        if (gids)
                node_write(gids, file->name, "%s", gid);
        return 0;
}

/* file: such as .../infiniband/mlx4_0/iov/0000:83:00.1/ports/1/pkey_idx/0 */
static int store_pkey_index(Node *file, const char *value) {
        const Node *gid = node_child(file->parent->parent, "gid_idx");
        int i;

        if (node_number(gid, "0", 0) == 0) /* the PF's tables are read-only */
                return -EINVAL;
        if (strncasecmp(value, "no", 2) == 0)
                node_write(file->parent, file->name, "none\n");
        else if (sscanf(value, "%i", &i) != 1 || i < 0 || i >= TABLE_SIZE)
                return -EINVAL;
        else
                node_write(file->parent, file->name, "%d\n", i);
        return 0;
}

static bool is_named(const Node *node, const char *name) {
        return node && strcmp(node->name, name) == 0;
}

/* Returns whether the file is in iov/ports/P, or in iov/FUNCTION/ports/P. */
static bool is_of_iov(const Node *file) {
        const Node *port = file->parent ? file->parent->parent : NULL;
        const Node *above = port && is_named(port->parent, "ports") ? port->parent->parent : NULL;

        return above && (is_named(above, "iov") || is_named(above->parent, "iov"));
}

bool mlx4_is_writable(const Node *file) {
        return is_of_iov(file) && (is_named(file->parent, "admin_guids") || is_named(file->parent, "pkey_idx"));
}

int mlx4_write(Node *file, const char *value) {
        return is_named(file->parent, "admin_guids") ? store_admin_guid(file, value) : store_pkey_index(file, value);
}
