/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Owns the directory nvidia of a VF, or mdev_supported_types and the mediated device. The PF has what no kernel shows:
 * vgpu_types, with a line "ID SIZE NAME" for each type, vgpu_memory, vgpu_mixed, and vgpu_mdev for mediated devices. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "device.h"
#include "park.h"
#include "util/strings.h"
#include "vgpu.h"

/* A type takes size of the memory, or one of so many GPU instances. */
typedef struct Type {
        unsigned long id, size, instances;
        const char *name;
        int length;
} Type;

static bool next_type(const char **rest, Type *ret) {
        while (*rest && **rest) {
                const char *line = *rest, *end = line + strcspn(line, "\n");
                char size[16];
                int at = 0;

                *rest = *end ? end + 1 : end;
                *ret = (Type){};
                if (sscanf(line, "%lu %15s %n", &ret->id, size, &at) < 2 || at == 0)
                        continue;
                *(size[0] == 'x' ? &ret->instances : &ret->size) = strtoul(size + (size[0] == 'x'), NULL, 10);
                ret->name = line + at;
                ret->length = (int) (end - ret->name);
                return true;
        }
        return false;
}

static bool find_type(const char *types, unsigned long id, Type *ret) {
        while (next_type(&types, ret))
                if (ret->id == id)
                        return true;
        return false;
}

static Node *mdev_of(const Node *vf) {
        for (size_t i = 0; i < vf->n_children; i++)
                if (vf->children[i]->type == NODE_DIR && node_child(vf->children[i], "mdev_type"))
                        return vf->children[i];
        return NULL;
}

static unsigned long current(const Node *vf) {
        const Node *dir = node_child(vf, "nvidia"), *mdev = mdev_of(vf);

        if (mdev)
                return strtoul(strrchr(node_link_name(mdev, "mdev_type"), '-') + 1, NULL, 10);
        return dir ? node_number(dir, "current_vgpu_type", 0) : 0;
}

/* The types of the GPU; NULL: it has no vGPUs. */
static const char *types_of(const Node *pf) {
        const Node *file = node_child(pf, "vgpu_types");

        return file ? file->data : NULL;
}

static Node *next_vf(const Node *pf, unsigned *i) {
        _cleanup_free_ char *link = xasprintf("virtfn%u", (*i)++);

        return node_at((Node *) pf, link);
}

/* By default the vGPUs of a GPU have one size; vgpu_mixed allows any. */
static bool fits(const Node *pf, const char *types, const Type *type) {
        unsigned long used = 0, alike = 0;
        const Node *vf;
        Type other;

        for (unsigned i = 0; (vf = next_vf(pf, &i));) {
                if (current(vf) == 0 || !find_type(types, current(vf), &other))
                        continue;
                if (other.size != type->size && node_number(pf, "vgpu_mixed", 0) == 0)
                        return false;
                used += other.size;
                alike += other.id == type->id;
        }
        return type->size > 0 ? used + type->size <= node_number(pf, "vgpu_memory", 0) : alike < type->instances;
}

/* As Documentation/ABI/testing/sysfs-bus-vfio-mdev says. */
static void list_mdev_types(const Node *pf, const Node *vf, const char *types) {
        Node *dir = node_child(vf, "mdev_supported_types");
        Type type;

        for (const char *rest = types; dir && next_type(&rest, &type);) {
                _cleanup_free_ char *name = xasprintf("nvidia-%lu", type.id);
                Node *of_type = node_make(dir, name, NODE_DIR);

                node_default(of_type, "create", "");
                node_default(of_type, "device_api", "vfio-pci\n");
                node_make(of_type, "devices", NODE_DIR);
                node_write(of_type, "name", "%.*s\n", type.length, type.name);
                node_write(of_type, "available_instances", "%d\n", current(vf) == 0 && fits(pf, types, &type));
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
        for (const char *rest = types; current(vf) == 0 && next_type(&rest, &type);)
                if (fits(pf, types, &type))
                        fprintf(f, "%lu : %.*s\n", type.id, type.length, type.name);
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
}

static Node *gpu_of(Node *vf) {
        Node *pf = node_at(vf, "physfn");

        return pf && types_of(pf) ? pf : NULL;
}

void vgpu_make(Sim *sim, Node *vf) {
        const Node *pf = gpu_of(vf);
        Node *dir;

        if (!pf)
                return;
        if (node_number(pf, "vgpu_mdev", 0) > 0) {
                node_make(vf, "mdev_supported_types", NODE_DIR);
                list_all(pf);
                return;
        }
        dir = node_make(vf, "nvidia", NODE_DIR);
        node_default(dir, "current_vgpu_type", "0\n");
        node_default(dir, "vgpu_params", "");
        device_vfio_add(sim, vf);
        list_all(pf);
}

/* The kernel gives a mediated device the lowest free group number. A number by the VF lets a test compare trees. */
static void mdev_create(Sim *sim, Node *type, const char *uuid) {
        Node *vf = type->parent->parent, *mdev = node_make(vf, uuid, NODE_DIR), *members, *bus;
        _cleanup_free_ char *group = xasprintf("sys/kernel/iommu_groups/%d/devices", 1000 + group_of(vf));

        if (node_make_at(sim->root, group, NODE_DIR, &members) < 0 ||
            node_make_at(sim->root, "sys/bus/mdev/devices", NODE_DIR, &bus) < 0)
                abort();
        node_link(members, uuid, mdev);
        node_link(bus, uuid, mdev);
        node_link(node_child(type, "devices"), uuid, mdev);
        node_link(mdev, "iommu_group", members->parent);
        node_link(mdev, "mdev_type", type);
        node_default(mdev, "remove", "");
}

static void mdev_remove(Sim *sim, Node *mdev) {
        Node *bus = node_at(sim->root, "sys/bus/mdev/devices");

        node_remove_child(node_at(mdev, "mdev_type/devices"), mdev->name);
        node_remove(node_at(mdev, "iommu_group"));
        node_remove_child(bus, mdev->name);
        if (bus->n_children == 0)
                node_remove(bus->parent);
        node_remove(mdev);
}

void vgpu_remove(Sim *sim, Node *vf) {
        const Node *pf = gpu_of(vf);

        if (pf && node_child(vf, "mdev_supported_types")) {
                if (mdev_of(vf))
                        mdev_remove(sim, mdev_of(vf));
                node_remove_child(vf, "mdev_supported_types");
                list_all(pf);
        }
        if (!pf || !node_child(vf, "nvidia"))
                return;
        node_remove_child(vf, "nvidia");
        device_vfio_remove(sim, vf);
        list_all(pf);
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

/* As create_store() and mdev_device_create() in drivers/vfio/mdev/. What a driver says that has no instance available
 * is up to it: ENOSPC in the kernel's samples. */
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
        if (!pf || !find_type(types_of(pf), strtoul(strrchr(type_dir->name, '-') + 1, NULL, 10), &type))
                return -ENODEV;
        if (current(vf) > 0 || !fits(pf, types_of(pf), &type))
                return -ENOSPC;
        mdev_create(sim, type_dir, uuid);
        list_all(pf);
        return 0;
}

/* As remove_store(). A driver that cannot remove a device in use fails with EBUSY; newer kernels wait for its user. */
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

/* vgpu_open, which no kernel has: a process has the VFIO device of the VF open. */
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
        bad = id > 0 && (!find_type(types, id, &type) || !fits(pf, types, &type));
        if (id > 0 && !bad)
                node_write(dir, "current_vgpu_type", "%lu\n", id);
        list_all(pf);
        return bad ? -EINVAL : 0;
}
