/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of the node at NODE_ROOT. */
#include "node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS "sys/class/net"

/* Reads the first line. */
static int read_path(const char *path, char *buf, size_t size) {
        int r, fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return -errno;
        n = read(fd, buf, size - 1);
        r = n < 0 ? -errno : 0;
        (void) close(fd);
        buf[n < 0 ? 0 : n] = '\0';
        buf[strcspn(buf, "\n")] = '\0';
        return r;
}

static int path_format(char path[static PATH_MAX], const char *netdev, const char *below) {
        int n = snprintf(path, PATH_MAX, "%s/" CLASS "/%s/%s", getenv("NODE_ROOT"), netdev, below);

        return n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int read_line(const char *netdev, const char *below, char *buf, size_t size) {
        char path[PATH_MAX];
        int r = path_format(path, netdev, below);

        return r < 0 ? r : read_path(path, buf, size);
}

static unsigned read_number(const char *netdev, const char *below, unsigned otherwise) {
        char text[32];

        return read_line(netdev, below, text, sizeof(text)) < 0 ? otherwise : (unsigned) strtoul(text, NULL, 0);
}

/* Parses "00:11:22" or "001122". */
static unsigned parse_bytes(const char *text, uint8_t *ret) {
        unsigned n = 0;
        int used = 0;

        for (unsigned byte; n < ADDRESS_MAX && sscanf(text, "%2x%n", &byte, &used) == 1; n++) {
                ret[n] = (uint8_t) byte;
                text += used;
                text += *text == ':';
        }
        return n;
}

static bool is_there(const char *netdev, const char *below) {
        char path[PATH_MAX];

        return path_format(path, netdev, below) == 0 && access(path, F_OK) == 0;
}

/* The kernel resolves NAME/.. after the link in sys/class/net, so that it is DEVICE/net. */
#define DEVICE "../.."

static void read_device(Netdev *dev) {
        char path[PATH_MAX], target[PATH_MAX];
        ssize_t n;

        dev->n_vfs = -1;
        if (path_format(path, dev->name, "device") < 0)
                return;
        n = readlink(path, target, sizeof(target) - 1);
        if (n < 0)
                return;
        target[n] = '\0';
        (void) snprintf(dev->pci, sizeof(dev->pci), "%.63s", strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
        if (is_there(dev->name, DEVICE "/sriov_numvfs"))
                dev->n_vfs = (int) read_number(dev->name, DEVICE "/sriov_numvfs", 0);
}

/* Returns whether the interface reports VFs. A representor is another interface of the device, and does not. */
static bool answers_for_vfs(const Netdev *dev) {
        return is_there(dev->name, DEVICE "/vf-netlink") && !strchr(dev->port_name, 'v');
}

static int netdev_read(const char *name, Netdev *ret) {
        char text[128];

        *ret = (Netdev) { .ifindex = read_number(name, "ifindex", 0), .type = (uint16_t) read_number(name, "type", 1) };
        if (ret->ifindex == 0)
                return -ENODEV;
        (void) snprintf(ret->name, sizeof(ret->name), "%s", name);
        if (read_line(name, "address", text, sizeof(text)) == 0)
                ret->address_size = parse_bytes(text, ret->address);
        if (read_line(name, "phys_switch_id", text, sizeof(text)) == 0)
                ret->switch_id_size = parse_bytes(text, ret->switch_id);
        if (read_line(name, "phys_port_name", text, sizeof(text)) == 0)
                (void) snprintf(ret->port_name, sizeof(ret->port_name), "%.31s", text);
        read_device(ret);
        ret->told = answers_for_vfs(ret);
        return 0;
}

static int each_name(int (*each)(const char *name, void *userdata), void *userdata) {
        char path[PATH_MAX];
        DIR *dir;
        int r = path_format(path, ".", "");

        if (r < 0)
                return r;
        dir = opendir(path);
        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        for (struct dirent *entry; r == 0 && (entry = readdir(dir));)
                if (entry->d_name[0] != '.')
                        r = each(entry->d_name, userdata);
        (void) closedir(dir);
        return r;
}

typedef struct Each {
        int (*each)(const Netdev *dev, void *userdata);
        void *userdata;
} Each;

static int tell(const char *name, void *userdata) {
        const Each *e = userdata;
        Netdev dev;

        return netdev_read(name, &dev) == 0 ? e->each(&dev, e->userdata) : 0;
}

int netdevs_each(int (*each)(const Netdev *dev, void *userdata), void *userdata) {
        return each_name(tell, &(Each) { each, userdata });
}

typedef struct Wanted {
        uint32_t ifindex;
        Netdev *ret;
} Wanted;

static int match(const char *name, void *userdata) {
        const Wanted *wanted = userdata;

        return read_number(name, "ifindex", 0) == wanted->ifindex && netdev_read(name, wanted->ret) == 0;
}

int netdev_find(uint32_t ifindex, const char *name, Netdev *ret) {
        int r;

        if (ifindex == 0)
                return name ? netdev_read(name, ret) : -ENODEV;
        r = each_name(match, &(Wanted) { ifindex, ret });
        return r < 0 ? r : r == 0 ? -ENODEV : 0;
}

static int vf_path(const Netdev *dev, uint32_t vf, const char *file, char ret[static PATH_MAX]) {
        char below[128];

        (void) snprintf(below, sizeof(below), DEVICE "/vf-netlink/%u", vf);
        if (!dev->told)
                return -EOPNOTSUPP;
        if (!is_there(dev->name, below))
                return -EINVAL;
        (void) snprintf(below, sizeof(below), DEVICE "/vf-netlink/%u/%s", vf, file);
        if (!is_there(dev->name, below))
                return -EOPNOTSUPP;
        return path_format(ret, dev->name, below);
}

int vf_read(const Netdev *dev, uint32_t vf, const char *file, char buf[static 64]) {
        char below[128];

        (void) snprintf(below, sizeof(below), DEVICE "/vf-netlink/%u/%s", vf, file);
        return dev->told ? read_line(dev->name, below, buf, 64) : -EOPNOTSUPP;
}

int vf_write(const Netdev *dev, uint32_t vf, const char *file, const char *value) {
        char path[PATH_MAX], line[80];
        int fd, n, r = vf_path(dev, vf, file, path);

        if (r < 0)
                return r;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = snprintf(line, sizeof(line), "%s\n", value);
        r = write(fd, line, (size_t) n) < 0 ? -errno : 0;
        (void) close(fd);
        return r;
}

/* eswitches */

/* Returns whether the device is an Ethernet card of mlx5. */
static bool is_mlx5_ethernet(const char *device) {
        char path[PATH_MAX], driver[PATH_MAX], class[32];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "%s/driver", device);
        n = readlink(path, driver, sizeof(driver) - 1);
        driver[n < 0 ? 0 : n] = '\0';
        (void) snprintf(path, sizeof(path), "%s/class", device);
        return strstr(driver, "/mlx5_core") && read_path(path, class, sizeof(class)) == 0 &&
               strncmp(class, "0x0200", 6) == 0;
}

int eswitch_read_mode(const char *address, uint16_t *ret) {
        static const char *const names[] = { "legacy", "switchdev", "switchdev_inactive" };
        char device[PATH_MAX / 2], path[PATH_MAX], text[32];
        int n = snprintf(device, sizeof(device), "%s/sys/bus/pci/devices/%s", getenv("NODE_ROOT"), address), r;

        (void) snprintf(path, sizeof(path), "%s/driver", device);
        if (n >= (int) sizeof(device) || strchr(address, '/') || access(path, F_OK) < 0)
                return -ENODEV;
        (void) snprintf(path, sizeof(path), "%s/vf-netlink/eswitch_mode", device);
        r = read_path(path, text, sizeof(text));
        if (r == -ENOENT && is_mlx5_ethernet(device)) {
                *ret = 0;
                return 0;
        }
        for (uint16_t i = 0; r == 0 && i < sizeof(names) / sizeof(*names); i++)
                if (strcmp(text, names[i]) == 0) {
                        *ret = i;
                        return 0;
                }
        return -EOPNOTSUPP;
}
