/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of the writable files in sysfs. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "device.h"
#include "driver.h"
#include "nvidia.h"
#include "pciback.h"
#include "sriov.h"
#include "vfattr.h"
#include "vgpu.h"

enum {
        ATTRIBUTE_SIZE = 4096
};

typedef enum Scope {
        SCOPE_DEVICE,    /* in the directory of a PCI device */
        SCOPE_POWER,     /* in the directory power of a PCI device */
        SCOPE_DRIVER,    /* sys/bus/pci/drivers/X */
        SCOPE_BUS,       /* sys/bus/pci */
        SCOPE_HUGEPAGES, /* .../hugepages/hugepages-SIZE */
        _SCOPE_INVALID = -EINVAL,
} Scope;

typedef struct Attribute {
        const char *name;
        Scope scope;
        mode_t mode;
        int (*store)(Sim *sim, Node *dir, const char *value); /* NULL: keeps the written value */
} Attribute;

int parse_number(const char *s, unsigned long *ret) {
        char *end;

        s += *s == '+';
        if (!isdigit((unsigned char) *s))
                return -EINVAL;
        errno = 0;
        *ret = strtoul(s, &end, 0);
        if (errno > 0)
                return -errno;
        return *end == '\0' || strcmp(end, "\n") == 0 ? 0 : -EINVAL;
}

static int parse_bool(const char *s) {
        switch (*s) {
        case 'y':
        case 'Y':
        case 't':
        case 'T':
        case '1':
                return 1;
        case 'n':
        case 'N':
        case 'f':
        case 'F':
        case '0':
                return 0;
        case 'o':
        case 'O':
                return s[1] == 'n' || s[1] == 'N' ? 1 : s[1] == 'f' || s[1] == 'F' ? 0 : -EINVAL;
        default:
                return -EINVAL;
        }
}

static Node *named_device(const Sim *sim, const char *value) {
        size_t n = strlen(value);
        _cleanup_free_ char *name = xstrndup(value, n - (n > 0 && value[n - 1] == '\n'));

        return device_find(sim, name);
}

/* devices */

static int store_driver_override(Sim *sim, Node *dev, const char *value) {
        int n = (int) strcspn(value, "\n");

        (void) sim;
        if (strlen(value) >= ATTRIBUTE_SIZE - 1)
                return -EINVAL;
        if (n == 0)
                node_write(dev, "driver_override", "(null)\n");
        else
                node_write(dev, "driver_override", "%.*s\n", n, value);
        return 0;
}

static int store_remove(Sim *sim, Node *dev, const char *value) {
        unsigned long yes;

        if (parse_number(value, &yes) < 0)
                return -EINVAL;
        if (yes)
                device_remove(sim, dev);
        return 0;
}

static int rescan(Sim *sim, const Node *below, const char *value) {
        unsigned long yes;

        if (parse_number(value, &yes) < 0)
                return -EINVAL;
        if (yes)
                devices_rescan(sim, below);
        return 0;
}

static int store_device_rescan(Sim *sim, Node *dev, const char *value) {
        return rescan(sim, dev->parent, value);
}

/* Returns whether the function shares its bus, which forbids a bus reset, as in the kernel's pci_parent_bus_reset(). */
static bool shares_bus(const Node *dev) {
        const Node *bridge = dev->parent;

        for (size_t i = 0; i < bridge->n_children; i++)
                if (bridge->children[i] != dev && node_is_device(bridge->children[i]) &&
                    !node_child(bridge->children[i], "physfn"))
                        return true;
        return false;
}

static int store_reset(Sim *sim, Node *dev, const char *value) {
        _cleanup_free_ char *method = node_text(dev, "reset_method");
        unsigned long one;

        (void) sim;
        if (parse_number(value, &one) < 0 || one != 1)
                return -EINVAL;
        return method && *method && (strcmp(method, "bus") != 0 || !shares_bus(dev)) ? 0 : -ENOTTY;
}

static int store_autoprobe(Sim *sim, Node *pf, const char *value) {
        int on = parse_bool(value);

        (void) sim;
        if (on < 0)
                return on;
        node_write(pf, "sriov_drivers_autoprobe", "%d\n", on);
        return 0;
}

static int store_numa_node(Sim *sim, Node *dev, const char *value) {
        int sign = *value == '-' ? -1 : 1;
        unsigned long n;

        if (parse_number(value + (sign < 0), &n) < 0 || (sign < 0 && n > 1))
                return -EINVAL;
        if (sign > 0 && !node_atf(sim->root, "sys/devices/system/node/node%lu", n))
                return -EINVAL;
        node_write(dev, "numa_node", "%ld\n", sign * (long) n);
        return 0;
}

static bool has_word(const char *words, const char *word, size_t n) {
        for (; *words; words += strspn(words, " ")) {
                size_t m = strcspn(words, " ");

                if (m == n && strncmp(words, word, n) == 0)
                        return true;
                words += m;
        }
        return false;
}

/* Accepts reset methods of the device, in the order in which to try them. "default" means all of them. */
static int store_reset_method(Sim *sim, Node *dev, const char *value) {
        Node *file = node_child(dev, "reset_method");
        int n = (int) strcspn(value, "\n");

        (void) sim;
        file->original = file->original ?: node_text(dev, "reset_method");
        if (n == 0)
                node_set(file, "", 0);
        if (n == 0)
                return 0;
        if (strncmp(value, "default", (size_t) n) == 0) {
                node_write(dev, "reset_method", "%s\n", file->original);
                return 0;
        }
        for (int i = 0; i < n; i += (int) strspn(value + i, " ")) {
                size_t m = strcspn(value + i, " \n");

                if (!has_word(file->original, value + i, m) ||
                    (m == 3 && strncmp(value + i, "bus", m) == 0 && shares_bus(dev)))
                        return -EINVAL;
                i += (int) m;
        }
        node_write(dev, "reset_method", "%.*s\n", n, value);
        return 0;
}

static int store_d3cold_allowed(Sim *sim, Node *dev, const char *value) {
        unsigned long allowed;

        (void) sim;
        if (parse_number(value, &allowed) < 0)
                return -EINVAL;
        node_write(dev, "d3cold_allowed", "%d\n", allowed != 0);
        device_resume(dev);
        return 0;
}

static int store_power_control(Sim *sim, Node *power, const char *value) {
        int n = (int) strcspn(value, "\n");
        bool on = n == 2 && strncmp(value, "on", 2) == 0;

        (void) sim;
        if (!on && (n != 4 || strncmp(value, "auto", 4) != 0))
                return -EINVAL;
        node_write(power, "control", "%.*s\n", n, value);
        if (on)
                device_resume(power->parent);
        return 0;
}

static int store_enable(Sim *sim, Node *dev, const char *value) {
        unsigned long on, n = node_number(dev, "enable", 0);

        if (parse_number(value, &on) < 0)
                return -EINVAL;
        if (driver_of(sim, dev))
                return -EBUSY;
        if (!on && n == 0)
                return -EIO;
        node_write(dev, "enable", "%lu\n", on ? n + 1 : n - 1);
        return 0;
}

/* drivers */

static int store_bind(Sim *sim, Node *dir, const char *value) {
        Driver *driver = driver_find(sim, dir->name);
        Node *dev = named_device(sim, value);

        return driver && dev ? driver_attach(sim, driver, dev) : -ENODEV;
}

static int store_unbind(Sim *sim, Node *dir, const char *value) {
        Driver *driver = driver_find(sim, dir->name);
        Node *dev = named_device(sim, value);

        if (!driver || !dev || driver_of(sim, dev) != driver)
                return -ENODEV;
        driver_detach(sim, dev);
        return 0;
}

static int change_id(Sim *sim, const Node *dir, const char *value,
                     int (*change)(Driver *driver, const char *vendor, const char *device)) {
        Driver *driver = driver_find(sim, dir->name);
        unsigned vendor, device;

        if (!driver || sscanf(value, "%x %x", &vendor, &device) != 2)
                return -EINVAL;
        _cleanup_free_ char *vendor_text = xasprintf("%04x", vendor), *device_text = xasprintf("%04x", device);
        return change(driver, vendor_text, device_text);
}

static int store_remove_id(Sim *sim, Node *dir, const char *value) {
        return change_id(sim, dir, value, driver_remove_id);
}

static int store_new_id(Sim *sim, Node *dir, const char *value) {
        Driver *driver = driver_find(sim, dir->name);
        Node *devices = node_at(sim->root, "sys/bus/pci/devices");
        int r = change_id(sim, dir, value, driver_new_id);

        if (r < 0)
                return r;
        for (size_t i = 0; i < devices->n_children; i++) {
                Node *dev = device_find(sim, devices->children[i]->name);

                if (dev && !node_child(dev, "driver"))
                        (void) driver_attach(sim, driver, dev);
        }
        return 0;
}

/* the bus */

static int store_drivers_probe(Sim *sim, Node *bus, const char *value) {
        Node *dev = named_device(sim, value);

        (void) bus;
        if (!dev)
                return -ENODEV;
        driver_probe(sim, dev);
        return 0;
}

static int store_bus_autoprobe(Sim *sim, Node *bus, const char *value) {
        (void) sim;
        node_write(bus, "drivers_autoprobe", "%d\n", value[0] != '0');
        return 0;
}

static int store_bus_rescan(Sim *sim, Node *bus, const char *value) {
        (void) bus;
        return rescan(sim, NULL, value);
}

/* memory */

static int store_hugepages(Sim *sim, Node *dir, const char *value) {
        unsigned long before = node_number(dir, "nr_hugepages", 0), after, free_pages;

        (void) sim;
        if (parse_number(value, &after) < 0)
                return -EINVAL;
        node_write(dir, "nr_hugepages", "%lu\n", after);
        free_pages = node_number(dir, "free_hugepages", before) + after;
        node_write(dir, "free_hugepages", "%lu\n", free_pages > before ? free_pages - before : 0);
        return 0;
}

static const Attribute attributes[] = {
        { "driver_override", SCOPE_DEVICE, 0644, store_driver_override },
        { "sriov_numvfs", SCOPE_DEVICE, 0644, sriov_set },
        { "sriov_drivers_autoprobe", SCOPE_DEVICE, 0644, store_autoprobe },
        { "reset", SCOPE_DEVICE, 0200, store_reset },
        { "remove", SCOPE_DEVICE, 0220, store_remove },
        { "rescan", SCOPE_DEVICE, 0200, store_device_rescan },
        { "reset_method", SCOPE_DEVICE, 0644, store_reset_method },
        { "numa_node", SCOPE_DEVICE, 0644, store_numa_node },
        { "enable", SCOPE_DEVICE, 0644, store_enable },
        { "config", SCOPE_DEVICE, 0644, NULL },
        { "d3cold_allowed", SCOPE_DEVICE, 0644, store_d3cold_allowed },
        { "control", SCOPE_POWER, 0644, store_power_control },
        { "bind", SCOPE_DRIVER, 0200, store_bind },
        { "unbind", SCOPE_DRIVER, 0200, store_unbind },
        { "new_id", SCOPE_DRIVER, 0200, store_new_id },
        { "remove_id", SCOPE_DRIVER, 0200, store_remove_id },
        { "new_slot", SCOPE_DRIVER, 0200, pciback_new_slot },
        { "remove_slot", SCOPE_DRIVER, 0200, pciback_remove_slot },
        { "drivers_probe", SCOPE_BUS, 0200, store_drivers_probe },
        { "drivers_autoprobe", SCOPE_BUS, 0644, store_bus_autoprobe },
        { "rescan", SCOPE_BUS, 0200, store_bus_rescan },
        { "nr_hugepages", SCOPE_HUGEPAGES, 0644, store_hugepages },
};

static bool is_named(const Node *node, const char *name) {
        return node && strcmp(node->name, name) == 0;
}

static Scope scope_of(const Node *dir) {
        const Node *parent = dir ? dir->parent : NULL;

        if (node_is_device(dir))
                return SCOPE_DEVICE;
        if (is_named(dir, "power") && node_is_device(parent))
                return SCOPE_POWER;
        if (is_named(dir, "pci") && is_named(parent, "bus"))
                return SCOPE_BUS;
        if (is_named(parent, "drivers") && is_named(parent->parent, "pci"))
                return SCOPE_DRIVER;
        if (is_named(parent, "hugepages"))
                return SCOPE_HUGEPAGES;
        return _SCOPE_INVALID;
}

static const Attribute *attribute_of(const Node *file) {
        for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
                if (strcmp(attributes[i].name, file->name) == 0 && scope_of(file->parent) == attributes[i].scope)
                        return attributes + i;
        return NULL;
}

static const char *top_name(const Node *node) {
        while (node->parent && node->parent->parent)
                node = node->parent;
        return node->name;
}

bool node_is_sysfs(const Node *node) {
        return strcmp(top_name(node), "sys") == 0;
}

mode_t attr_mode(const Node *node) {
        const Attribute *attribute;

        if (node->type != NODE_FILE)
                return node->type == NODE_DIR ? 0755 : 0777;
        if (!node_is_sysfs(node))
                return is_named(node->parent, "vfio") && !is_named(node, "vfio") ? 0600 : 0644;
        if (vfattr_is_writable(node))
                return 0644;
        if (vgpu_mode(node))
                return vgpu_mode(node);
        attribute = attribute_of(node);
        return attribute ? attribute->mode : 0444;
}

size_t attr_size(const Node *file) {
        return node_is_sysfs(file) && !is_named(file, "config") ? ATTRIBUTE_SIZE : file->size;
}

static int config_write(Node *config, const char *data, size_t size, off_t offset) {
        if (offset < 0 || (size_t) offset >= config->size || size > config->size - (size_t) offset)
                return -EFBIG;
        memcpy(config->data + offset, data, size);
        return 0;
}

int attr_write(Sim *sim, Node *file, const char *data, size_t size, off_t offset) {
        const Attribute *attribute = node_is_sysfs(file) ? attribute_of(file) : NULL;
        _cleanup_free_ char *value = xstrndup(data, size);

        if (file->dropped || !node_is_in(file, sim->root))
                return -ENODEV;
        if (is_named(file, "config") && attribute)
                return config_write(file, data, size, offset);
        if (nvidia_is_lock(file))
                return nvidia_write_lock(sim, file, value);
        if (node_is_sysfs(file) && vfattr_is_writable(file))
                return vfattr_write(sim, file, value);
        if (node_is_sysfs(file) && vgpu_mode(file))
                return vgpu_write(sim, file, value);
        if (attribute && attribute->store)
                return attribute->store(sim, file->parent, value);
        if (!attribute && node_is_sysfs(file))
                return -EIO;
        if (attribute)
                node_write(file->parent, file->name, "%.*s\n", (int) strcspn(value, "\n"), value);
        else
                node_set(file, data, size);
        return 0;
}
