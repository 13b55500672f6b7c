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
#define TYPE_MAX   64U         /* longest name of a type's directory, with its NUL */
#define NUMBER_MAX 0x3fffffffU /* the largest number in a name that is an id. Digests are larger */

/* Sets *ret to the id of a type: the number at the end of its name or, if the name does not end with a number from 1 to
 * NUMBER_MAX, as in GVT-g, a digest of the name, which is more than NUMBER_MAX. 0 or -EBADMSG. */
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

/* Appends the type in the directory to the list. Skips a type that cannot be read, because types disappear with their
 * driver. 0 or -ENOMEM. */
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
        /* In `known`, the name of the directory stands for a name that could not be read. Read such a name again. */
        if (vgpu_types_find_id(known, id, &type) && strncmp(type.name, directory, type.length) != 0)
                return string_append(types, "", "%u %u %s : %.*s\n", id, (unsigned) available, directory,
                                     (int) type.length, type.name);
        (void) snprintf(path, sizeof(path), "%s/name", directory);
        if (sysfs_read_at(fs, types_fd, path, text, sizeof(text)) < 0)
                (void) stpcpy(text, directory); /* the file "name" is optional */
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

/* Formats the path of an attribute of the mediated device. */
static const char *device_path(PciAddress vf, const char *uuid, const char *name, char path[static PCI_PATH_MAX]) {
        char attribute[PCI_PATH_MAX];

        (void) snprintf(attribute, sizeof(attribute), "%s/%s", uuid, name);
        return pci_path_format(pci_address_function(vf), attribute, path);
}

/* Returns 1 when the VF has the mediated device, of this type; 0 when it has not; -EEXIST when it is of another type;
 * or another negative errno. */
static int has_device(const Sysfs *fs, PciAddress vf, unsigned type, const char *uuid) {
        char path[PCI_PATH_MAX], name[NAME_MAX + 1];
        unsigned id;
        int r = sysfs_link_name(fs, device_path(vf, uuid, "mdev_type", path), name, sizeof(name));

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        return type_id(name, &id) == 0 && id == type ? 1 : -EEXIST;
}

/* Creates the mediated device: writes its UUID to "create" of the type. -ENOENT: there is no such type. */
static int write_uuid(const Sysfs *fs, PciAddress vf, unsigned type, const char *uuid) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(pci_address_function(vf), TYPES), O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        unsigned id;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", TYPES_MAX, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                char attribute[PCI_PATH_MAX];

                if (type_id(names[i], &id) < 0 || id != type)
                        continue;
                (void) snprintf(attribute, sizeof(attribute), TYPES "/%s/create", names[i]);
                return sysfs_write(fs, PCI_PATH(pci_address_function(vf), attribute), uuid);
        }
        return -ENOENT;
}

static int create_mdev(const Sysfs *fs, PciAddress vf, unsigned type, const char *uuid) {
        int r = has_device(fs, vf, type, uuid);

        if (r != 0)
                return MIN(r, 0);
        r = write_uuid(fs, vf, type, uuid);
        if (r < 0)
                return r;
        r = has_device(fs, vf, type, uuid);
        return r == 0 ? -EIO : r;
}

static int remove_mdev(const Sysfs *fs, PciAddress vf, unsigned type, const char *uuid) {
        char path[PCI_PATH_MAX];
        int r = has_device(fs, vf, type, uuid);

        if (r <= 0)
                return r;
        r = sysfs_write(fs, device_path(vf, uuid, "remove", path), "1");
        if (r < 0)
                return r == -EBUSY ? -EPERM : r;
        r = has_device(fs, vf, type, uuid);
        return r == 0 ? 1 : r < 0 ? r : -EIO;
}

#define VGPU_TYPE "nvidia/current_vgpu_type"
#define ID_MAX    16U /* bytes of a type's id as text, with its NUL */

/* Changes current_vgpu_type of the VF from one id to another; id 0: no vGPU. Returns as vgpu_set(). */
static int set_current_type(const Sysfs *fs, PciAddress vf, unsigned from, unsigned to) {
        char now[SYSFS_ATTRIBUTE_MAX], before[ID_MAX], wanted[ID_MAX];
        int r = sysfs_read(fs, PCI_PATH(vf, VGPU_TYPE), now, sizeof(now));

        if (r < 0)
                return r;
        (void) snprintf(before, sizeof(before), "%u", from);
        (void) snprintf(wanted, sizeof(wanted), "%u", to);
        if (streq(now, wanted))
                return 0;
        if (!streq(now, before))
                return -EBUSY;
        r = sysfs_write(fs, PCI_PATH(vf, VGPU_TYPE), wanted);
        if (r < 0)
                return r;
        r = sysfs_read(fs, PCI_PATH(vf, VGPU_TYPE), now, sizeof(now));
        if (r < 0)
                return r;
        return streq(now, wanted) ? 1 : -EIO;
}

int vgpu_set(const Sysfs *fs, PciAddress vf, unsigned type, const char *mdev, bool wanted) {
        if (!mdev)
                return set_current_type(fs, vf, wanted ? 0 : type, wanted ? type : 0);
        return wanted ? create_mdev(fs, vf, type, mdev) : remove_mdev(fs, vf, type, mdev);
}
