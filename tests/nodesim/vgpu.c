/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory nvidia of a VF, or mdev_supported_types and the mediated devices of a VF or of a GPU without VFs. The
 * GPU has files that no kernel has: vgpu_types, with a line "ID SIZE NAME" for each type, vgpu_memory, vgpu_mixed, and
 * vgpu_mdev for mediated devices. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "device.h"
#include "park.h"
#include "uevent.h"
#include "util/strings.h"
#include "vgpu.h"

/* A vGPU of a type takes size of the GPU's memory, or one of a number of GPU instances. */
typedef struct Type {
        const char *id, *name;
        int id_length, length;
        unsigned long size, instances;
} Type;

static bool next_type(const char **rest, Type *ret) {
        while (*rest && **rest) {
                const char *line = *rest, *end = line + strcspn(line, "\n");
                char size[16];
                int at = 0;

                *rest = *end ? end + 1 : end;
                *ret = (Type) { .id = line };
                if (sscanf(line, "%*s%n %15s %n", &ret->id_length, size, &at) < 1 || at == 0)
                        continue;
                *(size[0] == 'x' ? &ret->instances : &ret->size) = strtoul(size + (size[0] == 'x'), NULL, 10);
                ret->name = line + at;
                ret->length = (int) (end - ret->name);
                return true;
        }
        return false;
}

static bool find_type(const char *types, const char *id, Type *ret) {
        size_t length = strcspn(id, "\n");

        while (next_type(&types, ret))
                if ((size_t) ret->id_length == length && strncmp(ret->id, id, length) == 0)
                        return true;
        return false;
}

/* Returns the id in the name of a type's directory: driver, dash, id. */
static const char *id_of(const char *directory) {
        return strchr(directory, '-') + 1;
}

static Node *next_mdev(const Node *parent, size_t *i) {
        while (*i < parent->n_children) {
                Node *child = parent->children[(*i)++];

                if (child->type == NODE_DIR && node_child(child, "mdev_type"))
                        return child;
        }
        return NULL;
}

static Node *mdev_of(const Node *parent) {
        return next_mdev(parent, &(size_t) { 0 });
}

/* Returns the types of the GPU. NULL: it has no vGPUs. */
static const char *types_of(const Node *gpu) {
        const Node *file = node_child(gpu, "vgpu_types");

        return file ? file->data : NULL;
}

/* Returns whether the GPU is the parent of its mediated devices: it has no VFs. */
static bool is_parent(const Node *gpu) {
        return types_of(gpu) && node_number(gpu, "vgpu_mdev", 0) > 0 && !node_child(gpu, "sriov_totalvfs");
}

static Node *next_vf(const Node *gpu, unsigned *i) {
        _cleanup_free_ char *link = xasprintf("virtfn%u", (*i)++);

        return node_at((Node *) gpu, link);
}

typedef struct Use {
        unsigned long memory, alike, others; /* memory in GB; vGPUs of the type; vGPUs of types with another size */
} Use;

static void add_use(Use *u, const char *types, const char *id, const Type *type) {
        Type of;

        if (!find_type(types, id, &of))
                return;
        u->memory += of.size;
        u->alike += of.id == type->id;
        u->others += of.size != type->size;
}

static Use use_of(const Node *gpu, const char *types, const Type *type) {
        const Node *mdev, *vf;
        Use u = {};

        for (size_t i = 0; is_parent(gpu) && (mdev = next_mdev(gpu, &i));)
                add_use(&u, types, id_of(node_link_name(mdev, "mdev_type")), type);
        for (unsigned i = 0; (vf = next_vf(gpu, &i));) {
                const Node *dir = node_child(vf, "nvidia");

                mdev = mdev_of(vf);
                if (mdev)
                        add_use(&u, types, id_of(node_link_name(mdev, "mdev_type")), type);
                else if (dir && node_child(dir, "current_vgpu_type"))
                        add_use(&u, types, node_child(dir, "current_vgpu_type")->data, type);
        }
        return u;
}

/* Returns how many further vGPUs of the type the GPU has room for. By default all vGPUs of a GPU have one size;
 * vgpu_mixed allows any. */
static unsigned long room(const Node *gpu, const char *types, const Type *type) {
        unsigned long memory = node_number(gpu, "vgpu_memory", 0);
        Use u = use_of(gpu, types, type);

        if (u.others > 0 && node_number(gpu, "vgpu_mixed", 0) == 0)
                return 0;
        if (type->size > 0)
                return (memory - MIN(memory, u.memory)) / type->size;
        return type->instances - MIN(type->instances, u.alike);
}

/* Returns how many further vGPUs of the type one parent has room for. A VF has at most one vGPU. */
static unsigned long room_on(const Node *parent, const Node *gpu, const char *types, const Type *type) {
        const Node *dir = node_child(parent, "nvidia");
        bool taken = mdev_of(parent) || (dir && node_number(dir, "current_vgpu_type", 0) > 0);

        return parent == gpu ? room(gpu, types, type) : !taken && room(gpu, types, type) > 0;
}

/* As in Documentation/ABI/testing/sysfs-bus-vfio-mdev. */
static void list_mdev_types(const Node *gpu, const Node *parent, const char *types) {
        Node *dir = node_child(parent, "mdev_supported_types");
        Type type;

        for (const char *rest = types; dir && next_type(&rest, &type);) {
                _cleanup_free_ char *name =
                        xasprintf("%s-%.*s", node_link_name(parent, "driver"), type.id_length, type.id);
                Node *of_type = node_make(dir, name, NODE_DIR);

                node_default(of_type, "create", "");
                node_default(of_type, "device_api", "vfio-pci\n");
                node_make(of_type, "devices", NODE_DIR);
                node_write(of_type, "name", "%.*s\n", type.length, type.name);
                node_write(of_type, "available_instances", "%lu\n", room_on(parent, gpu, types, &type));
        }
}

static void list_types(const Node *pf, const Node *vf, const char *types) {
        Node *dir = node_child(vf, "nvidia");
        char *text = NULL;
        size_t size;
        FILE *f;
        Type type;

        if (!dir)
                return;
        f = open_memstream(&text, &size);
        if (!f)
                abort();
        for (const char *rest = types; next_type(&rest, &type);)
                if (room_on(vf, pf, types, &type) > 0)
                        fprintf(f, "%.*s : %.*s\n", type.id_length, type.id, type.length, type.name);
        fclose(f);
        node_set(node_make(dir, "creatable_vgpu_types", NODE_FILE), text, size);
        free(text);
}

static void list_all(const Node *pf) {
        const Node *vf;

        for (unsigned i = 0; (vf = next_vf(pf, &i));) {
                list_types(pf, vf, types_of(pf));
                list_mdev_types(pf, vf, types_of(pf));
        }
        if (is_parent(pf))
                list_mdev_types(pf, pf, types_of(pf));
}

static Node *gpu_of(Node *dev) {
        Node *pf = node_at(dev, "physfn");

        if (pf)
                return types_of(pf) ? pf : NULL;
        return is_parent(dev) ? dev : NULL;
}

void vgpu_make(Sim *sim, Node *dev) {
        const Node *gpu = gpu_of(dev);
        Node *dir;

        if (!gpu)
                return;
        if (node_number(gpu, "vgpu_mdev", 0) > 0) {
                node_make(dev, "mdev_supported_types", NODE_DIR);
                list_all(gpu);
                return;
        }
        dir = node_make(dev, "nvidia", NODE_DIR);
        node_default(dir, "current_vgpu_type", "0\n");
        node_default(dir, "vgpu_params", "");
        device_vfio_add(sim, dev);
        list_all(gpu);
}

/* Returns a group number by the parent, so that tests can compare trees. The kernel takes the lowest free number. */
static int next_group(const Sim *sim, const Node *parent) {
        int group = 1000 + group_of(parent);

        while (node_atf(sim->root, "sys/kernel/iommu_groups/%d", group))
                group++;
        return group;
}

static void mdev_create(Sim *sim, Node *type, const char *uuid) {
        Node *vf = type->parent->parent, *mdev = node_make(vf, uuid, NODE_DIR), *members, *bus;
        _cleanup_free_ char *group = xasprintf("sys/kernel/iommu_groups/%d/devices", next_group(sim, vf));

        if (node_make_at(sim->root, group, NODE_DIR, &members) < 0 ||
            node_make_at(sim->root, "sys/bus/mdev/devices", NODE_DIR, &bus) < 0)
                abort();
        node_link(members, uuid, mdev);
        node_link(bus, uuid, mdev);
        node_link(node_child(type, "devices"), uuid, mdev);
        node_link(mdev, "iommu_group", members->parent);
        node_link(mdev, "mdev_type", type);
        node_default(mdev, "remove", "");
        uevent_child(sim, "add", "mdev", mdev);
}

static void mdev_remove(Sim *sim, Node *mdev) {
        Node *bus = node_at(sim->root, "sys/bus/mdev/devices");

        uevent_child(sim, "remove", "mdev", mdev);
        node_remove_child(node_at(mdev, "mdev_type/devices"), mdev->name);
        node_remove(node_at(mdev, "iommu_group"));
        node_remove_child(bus, mdev->name);
        if (bus->n_children == 0)
                node_remove(bus->parent);
        node_remove(mdev);
}

void vgpu_remove(Sim *sim, Node *dev) {
        const Node *gpu = gpu_of(dev);

        if (gpu && node_child(dev, "mdev_supported_types")) {
                for (Node *mdev; (mdev = mdev_of(dev));)
                        mdev_remove(sim, mdev);
                node_remove_child(dev, "mdev_supported_types");
                list_all(gpu);
        }
        if (!gpu || !node_child(dev, "nvidia"))
                return;
        node_remove_child(dev, "nvidia");
        device_vfio_remove(sim, dev);
        list_all(gpu);
}

static bool is_create(const Node *file) {
        return strcmp(file->name, "create") == 0 && file->parent && file->parent->parent &&
               strcmp(file->parent->parent->name, "mdev_supported_types") == 0;
}

static bool is_remove(const Node *file) {
        return strcmp(file->name, "remove") == 0 && file->parent && node_child(file->parent, "mdev_type");
}

mode_t vgpu_mode(const Node *file) {
        if (is_create(file) || is_remove(file))
                return 0200;
        return strcmp(file->name, "current_vgpu_type") == 0 && file->parent &&
                               strcmp(file->parent->name, "nvidia") == 0 && node_is_device(file->parent->parent)
                       ? 0644
                       : 0;
}

/* Creates a mediated device as create_store() and mdev_device_create() in drivers/vfio/mdev/. Without an available
 * instance fails with ENOSPC, like the kernel's samples; drivers differ here. */
static int write_create(Sim *sim, Node *file, const char *value) {
        _cleanup_free_ char *uuid = xstrndup(value, strcspn(value, "\n"));
        Node *type_dir = file->parent, *vf = type_dir->parent->parent;
        const Node *pf = gpu_of(vf);
        Type type;

        for (char *c = uuid; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        if (!text_is_uuid(uuid))
                return -EINVAL;
        if (node_atf(sim->root, "sys/bus/mdev/devices/%s", uuid))
                return -EEXIST;
        if (!pf || !find_type(types_of(pf), id_of(type_dir->name), &type))
                return -ENODEV;
        if (room_on(vf, pf, types_of(pf), &type) == 0)
                return -ENOSPC;
        mdev_create(sim, type_dir, uuid);
        list_all(pf);
        return 0;
}

/* As remove_store(). A driver that cannot remove a used device fails with EBUSY; newer kernels wait for its user. */
static int write_remove(Sim *sim, Node *file, const char *value) {
        Node *mdev = file->parent, *vf = mdev->parent;
        unsigned long remove;

        if (parse_number(value, &remove) < 0)
                return -EINVAL;
        if (remove == 0)
                return 0;
        if (node_number(vf, "vgpu_open", 0) > 0)
                return -EBUSY;
        mdev_remove(sim, mdev);
        list_all(gpu_of(vf));
        return 0;
}

/* Handles a write, also to vgpu_open, which no kernel has: a process has the VF's VFIO device open. */
int vgpu_write(Sim *sim, Node *file, const char *value) {
        Node *dir = file->parent, *vf = dir->parent;
        const Node *pf;
        const char *types;
        unsigned long id;
        Type type;
        bool bad;

        if (is_create(file))
                return write_create(sim, file, value);
        if (is_remove(file))
                return write_remove(sim, file, value);
        pf = gpu_of(vf);
        types = pf ? types_of(pf) : NULL;
        if (!types || parse_number(value, &id) < 0)
                return -EINVAL;
        if (node_number(vf, "vgpu_open", 0) > 0)
                return -EPERM;
        node_write(dir, "current_vgpu_type", "0\n");
        bad = id > 0 && (!find_type(types, value, &type) || room(pf, types, &type) == 0);
        if (id > 0 && !bad)
                node_write(dir, "current_vgpu_type", "%lu\n", id);
        list_all(pf);
        return bad ? -EINVAL : 0;
}
