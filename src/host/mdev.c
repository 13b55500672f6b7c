/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "mdev.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "model/vgpu.h"
#include "util/digest.h"
#include "util/fileio.h"
#include "util/strings.h"

#define TYPES      "mdev_supported_types"
#define TYPES_MAX  256U
#define TYPE_MAX   64U         /* size of the name of a type's directory, with its NUL */
#define NUMBER_MAX 0x3fffffffU /* the largest number of a type; digests of names are larger */

/* Returns the number at the end of the type's name. A name without number, as in GVT-g, gets a digest above the numbers
 * of NVIDIA. */
static int type_id(const char *name, unsigned *ret) {
        const char *number = strrchr(name, '-');
        uint64_t id;

        if (!number || strlen(name) >= TYPE_MAX || strchr(name, ' '))
                return -EBADMSG;
        if (parse_unsigned(number + 1, NUMBER_MAX, &id) < 0 || id == 0)
                id = NUMBER_MAX + 1 + (digest_string(DIGEST_START, name) & NUMBER_MAX);
        *ret = (unsigned) id;
        return 0;
}

/* Appends a type. A type disappears with its driver, so after an error the type is skipped: it cannot be created. */
static int append_type(const Sysfs *fs, int types_fd, const char *directory, const char *known, char **types) {
        char path[TYPE_MAX + sizeof("/available_instances")], text[SYSFS_ATTRIBUTE_MAX];
        uint64_t available;
        VgpuType type;
        unsigned id;

        if (type_id(directory, &id) < 0)
                return 0;
        (void) snprintf(path, sizeof(path), "%s/available_instances", directory);
        if (sysfs_read_at(fs, types_fd, path, text, sizeof(text)) < 0 || parse_unsigned(text, UINT_MAX, &available) < 0)
                return 0;
        if (vgpu_types_find_id(known, id, &type))
                return string_append(types, "", "%u %u %s : %.*s\n", id, (unsigned) available, directory,
                                     (int) type.length, type.name);
        (void) snprintf(path, sizeof(path), "%s/name", directory);
        if (sysfs_read_at(fs, types_fd, path, text, sizeof(text)) < 0)
                (void) stpcpy(text, directory); /* the attribute is optional */
        return string_append(types, "", "%u %u %s : %s\n", id, (unsigned) available, directory, text);
}

int mdev_read_types(const Sysfs *fs, int dir_fd, const char *known, char **ret) {
        _cleanup_close_ int fd = openat(dir_fd, TYPES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *types = NULL;
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? -errno : list_dir_at(fd, ".", TYPES_MAX, &names, &n);

        if (r < 0)
                return r;
        r = string_copy(&types, "");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = append_type(fs, fd, names[i], known, &types);
        if (r < 0)
                return r;
        free(*ret);
        *ret = TAKE_PTR(types);
        return 0;
}

int mdev_read_type(int dir_fd, const char *uuid, unsigned *ret) {
        char path[UUID_STRING_MAX + sizeof("/mdev_type")], type[NAME_MAX + 1];
        int r;

        (void) snprintf(path, sizeof(path), "%s/mdev_type", uuid);
        r = sysfs_link_name_at(dir_fd, path, type, sizeof(type));
        return r < 0 ? r : type_id(type, ret);
}

/* Splits "TYPE/UUID", and formats a path of the mediated device. */
static const char *device_path(PciAddress vf, const char *device, const char *name, char path[static PCI_PATH_MAX]) {
        char attribute[PCI_PATH_MAX];

        (void) snprintf(attribute, sizeof(attribute), "%s/%s", strchr(device, '/') + 1, name);
        return pci_path_format(pci_address_function(vf), attribute, path);
}

/* Returns the id of TYPE, which is the id itself or a name. */
static int wanted_type(const char *device, unsigned *ret) {
        char type[TYPE_MAX];
        uint64_t id;

        (void) snprintf(type, sizeof(type), "%.*s", (int) strcspn(device, "/"), device);
        if (parse_unsigned(type, UINT_MAX, &id) < 0)
                return type_id(type, ret);
        *ret = (unsigned) id;
        return 0;
}

/* Returns 1 when the VF has the mediated device with this type, 0, or a negative errno. */
static int has_device(const Sysfs *fs, PciAddress vf, const char *device) {
        char path[PCI_PATH_MAX], type[NAME_MAX + 1];
        unsigned id, wanted;
        int r = sysfs_link_name(fs, device_path(vf, device, "mdev_type", path), type, sizeof(type));

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = wanted_type(device, &wanted);
        if (r < 0)
                return r;
        return type_id(type, &id) == 0 && id == wanted ? 1 : -EEXIST;
}

/* Writes the UUID to the directory of the type. */
static int write_uuid(const Sysfs *fs, PciAddress vf, const char *device) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(pci_address_function(vf), TYPES), O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        unsigned id, wanted;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", TYPES_MAX, &names, &n);

        if (r < 0)
                return r;
        r = wanted_type(device, &wanted);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                char attribute[PCI_PATH_MAX];

                if (type_id(names[i], &id) < 0 || id != wanted)
                        continue;
                (void) snprintf(attribute, sizeof(attribute), TYPES "/%s/create", names[i]);
                return sysfs_write(fs, PCI_PATH(pci_address_function(vf), attribute), strchr(device, '/') + 1);
        }
        return -ENOENT;
}

/*
 * Create or remove the mediated device of the VF. device: "TYPE/UUID", such as
 * "nvidia-558/4b20d080-1b54-4048-85b3-a6a62d165c01". TYPE is the directory of the type, or its id. Return 1 after a
 * change, 0 when there was nothing to change, or a negative errno: -EIO when the write succeeds and changes nothing,
 * -EPERM when the driver does not remove the device because a process has it open.
 */
static int create_mdev(const Sysfs *fs, PciAddress vf, const char *device) {
        int r = has_device(fs, vf, device);

        if (r != 0)
                return MIN(r, 0);
        r = write_uuid(fs, vf, device);
        if (r < 0)
                return r;
        r = has_device(fs, vf, device);
        return r == 0 ? -EIO : r;
}

static int remove_mdev(const Sysfs *fs, PciAddress vf, const char *device) {
        char path[PCI_PATH_MAX];
        int r = has_device(fs, vf, device);

        if (r <= 0)
                return r;
        r = sysfs_write(fs, device_path(vf, device, "remove", path), "1");
        if (r < 0)
                return r == -EBUSY ? -EPERM : r;
        r = has_device(fs, vf, device);
        return r == 0 ? 1 : r < 0 ? r : -EIO;
}

#define VGPU_TYPE "nvidia/current_vgpu_type"

int vgpu_set_type(const Sysfs *fs, PciAddress vf, const char *from, const char *to) {
        char now[SYSFS_ATTRIBUTE_MAX];
        int r;

        if (strchr(to, '/'))
                return create_mdev(fs, vf, to);
        if (strchr(from, '/'))
                return remove_mdev(fs, vf, from);
        r = sysfs_read(fs, PCI_PATH(vf, VGPU_TYPE), now, sizeof(now));
        if (r < 0)
                return r;
        if (streq(now, to))
                return 0;
        if (!streq(now, from))
                return -EBUSY;
        r = sysfs_write(fs, PCI_PATH(vf, VGPU_TYPE), to);
        if (r < 0)
                return r;
        r = sysfs_read(fs, PCI_PATH(vf, VGPU_TYPE), now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, to) ? 1 : -EIO;
}
