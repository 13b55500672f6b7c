/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drivers: declaration, matching, binding. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "device.h"
#include "driver.h"
#include "nvidia.h"
#include "park.h"
#include "pciback.h"
#include "sriov.h"
#include "uevent.h"
#include "vfattr.h"
#include "vgpu.h"

static void id_add(DriverId **ids, size_t *n, const char *vendor, const char *device) {
        *ids = xrealloc(*ids, *n + 1, sizeof(DriverId));
        (*ids)[(*n)++] = (DriverId) { xstrdup(vendor), xstrdup(device) };
}

static void ids_free(DriverId *ids, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(ids[i].vendor);
                free(ids[i].device);
        }
        free(ids);
}

void driver_free(Driver *d) {
        ids_free(d->ids, d->n_ids);
        ids_free(d->new_ids, d->n_new_ids);
        free(d->class_prefix);
        free(d->name);
        free(d);
}

static bool id_matches(const DriverId *id, const Node *dev) {
        _cleanup_free_ char *vendor = node_text(dev, "vendor");
        _cleanup_free_ char *device = node_text(dev, "device");

        return vendor && device && strlen(vendor) > 2 && strlen(device) > 2 &&
               strcasecmp(vendor + 2, id->vendor) == 0 &&
               (strcmp(id->device, "*") == 0 || strcasecmp(device + 2, id->device) == 0);
}

static bool ids_match(const DriverId *ids, size_t n, const Node *dev) {
        for (size_t i = 0; i < n; i++)
                if (id_matches(ids + i, dev))
                        return true;
        return false;
}

/* declaration */

Driver *driver_find(const Sim *sim, const char *name) {
        for (size_t i = 0; name && i < sim->n_drivers; i++)
                if (strcmp(sim->drivers[i]->name, name) == 0)
                        return sim->drivers[i];
        return NULL;
}

static Driver *driver_new(Sim *sim, const char *name) {
        Driver *d = xrealloc(NULL, 1, sizeof(Driver));

        *d = (Driver) {
                .name = xstrdup(name),
                .vfio = strcmp(name, "vfio-pci") == 0,
                .any = strcmp(name, "pci-stub") == 0,
                .pciback = strcmp(name, PCIBACK) == 0,
        };
        sim->drivers = xrealloc(sim->drivers, sim->n_drivers + 1, sizeof(Driver *));
        return sim->drivers[sim->n_drivers++] = d;
}

Driver *driver_get(Sim *sim, const char *name) {
        Driver *d = driver_find(sim, name) ?: driver_new(sim, name);
        Node *dir;

        if (node_atf(sim->root, "sys/bus/pci/drivers/%s/bind", name))
                return d;
        _cleanup_free_ char *path = xasprintf("sys/bus/pci/drivers/%s", name);
        if (node_make_at(sim->root, path, NODE_DIR, &dir) < 0)
                abort();
        node_write(dir, "bind", "%s", "");
        node_write(dir, "unbind", "%s", "");
        node_write(dir, "new_id", "%s", "");
        node_write(dir, "remove_id", "%s", "");
        if (d->pciback)
                pciback_make(dir);
        return d;
}

/* Returns whether the driver is for guests: without ids of its own, and without enabling a bound device. */
static bool is_for_guests(const Driver *d) {
        return d->vfio || d->any || d->pciback;
}

void driver_learn(Driver *d, const Node *dev) {
        _cleanup_free_ char *vendor = node_text(dev, "vendor");
        _cleanup_free_ char *device = node_text(dev, "device");

        if (d->declared || is_for_guests(d) || !vendor || !device || strlen(vendor) < 3 || strlen(device) < 3)
                return;
        d->sriov = d->sriov || node_child(dev, "sriov_totalvfs");
        if (!ids_match(d->ids, d->n_ids, dev))
                id_add(&d->ids, &d->n_ids, vendor + 2, device + 2);
}

static int ids_parse(Driver *d, char *list) {
        char *state = NULL;

        for (char *id = strtok_r(list, ",", &state); id; id = strtok_r(NULL, ",", &state)) {
                char *colon = strchr(id, ':');

                if (!colon)
                        return -EINVAL;
                *colon = '\0';
                id_add(&d->ids, &d->n_ids, id, colon + 1);
        }
        return 0;
}

int driver_declare(Sim *sim, const char *name, const char *options) {
        _cleanup_free_ char *words = xstrdup(options);
        Driver *d = driver_find(sim, name) ?: driver_new(sim, name);
        char *state = NULL;
        int r = 0;

        d->declared = true;
        for (char *word = strtok_r(words, " \t", &state); word && r == 0; word = strtok_r(NULL, " \t", &state))
                if (strncmp(word, "ids=", 4) == 0)
                        r = ids_parse(d, word + 4);
                else if (strncmp(word, "class=", 6) == 0) {
                        free(d->class_prefix);
                        d->class_prefix = xstrdup(word + 6);
                } else if (strcmp(word, "sriov") == 0)
                        d->sriov = true;
                else if (strcmp(word, "keeps-vfs") == 0)
                        d->keeps_vfs = true;
                else if (strncmp(word, "max-vfs=", 8) == 0)
                        d->max_vfs = strtoul(word + 8, NULL, 0);
                else if (strcmp(word, "vfio") == 0)
                        d->vfio = true;
                else if (strcmp(word, "any") == 0)
                        d->any = true;
                else
                        r = -EINVAL;
        return r;
}

static DriverId *id_find(DriverId *ids, size_t n, const char *vendor, const char *device) {
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(ids[i].vendor, vendor) == 0 &&
                    (strcmp(ids[i].device, "*") == 0 || strcasecmp(ids[i].device, device) == 0))
                        return ids + i;
        return NULL;
}

/* Adds an id. Ids by class alone are not compared, because they have no vendor. */
int driver_new_id(Driver *d, const char *vendor, const char *device) {
        if (id_find(d->new_ids, d->n_new_ids, vendor, device) || id_find(d->ids, d->n_ids, vendor, device))
                return -EEXIST;
        id_add(&d->new_ids, &d->n_new_ids, vendor, device);
        return 0;
}

/* Removes an id that was added by new_id. The ids in the driver's own table stay. */
int driver_remove_id(Driver *d, const char *vendor, const char *device) {
        DriverId *id = id_find(d->new_ids, d->n_new_ids, vendor, device);

        if (!id)
                return -ENODEV;
        free(id->vendor);
        free(id->device);
        *id = d->new_ids[--d->n_new_ids];
        return 0;
}

/* matching */

static bool class_matches(const Driver *d, const Node *dev) {
        _cleanup_free_ char *class = node_text(dev, "class");

        return class && strlen(class) > 2 && strncasecmp(class + 2, d->class_prefix, strlen(d->class_prefix)) == 0;
}

bool driver_matches(const Sim *sim, const Driver *d, const Node *dev) {
        _cleanup_free_ char *override = device_override(dev);

        if (override)
                return strcmp(override, d->name) == 0;
        if (ids_match(d->new_ids, d->n_new_ids, dev))
                return true;
        if (d->pciback)
                return pciback_has(sim, dev->name);
        if (is_for_guests(d) || (d->n_ids == 0 && !d->class_prefix))
                return false;
        return (d->n_ids == 0 || ids_match(d->ids, d->n_ids, dev)) && (!d->class_prefix || class_matches(d, dev));
}

Driver *driver_of(const Sim *sim, const Node *dev) {
        return driver_find(sim, node_link_name(dev, "driver"));
}

/* Returns whether the driver can create VFs. vfio-pci can if its module parameter enable_sriov is set. */
bool driver_enables_vfs(const Sim *sim, const Driver *d) {
        _cleanup_free_ char *text = NULL;
        const Node *parameters = node_at(sim->root, "sys/module/vfio_pci/parameters");

        if (d->vfio && parameters && node_child(parameters, "enable_sriov"))
                text = node_text(parameters, "enable_sriov");
        return d->sriov || (text && text[0] == 'Y');
}

/* Returns whether drivers may probe the device. A VF created with autoprobe off needs an override. */
static bool may_probe(const Node *dev) {
        _cleanup_free_ char *override = device_override(dev);
        const Node *pf = node_at((Node *) dev, "physfn");

        return override || !pf || node_number(pf, "sriov_drivers_autoprobe", 1) != 0;
}

static int vfio_probe(const Node *dev) {
        const Driver bridge = { .class_prefix = (char *) "0604" };

        if (class_matches(&bridge, dev) || !node_child(dev, "iommu_group"))
                return -EINVAL;
        return sriov_count(dev) > 0 ? -EBUSY : 0;
}

/* binding */

/* Counts enables of the device: drivers of the host enable a bound device. */
static void count_enable(const Driver *d, Node *dev, int change) {
        unsigned long n = node_number(dev, "enable", 0);

        if (!is_for_guests(d) && node_child(dev, "enable") && (change > 0 || n > 0))
                node_write(dev, "enable", "%lu\n", n + (unsigned long) change);
}

void driver_link(Sim *sim, Driver *d, Node *dev) {
        Node *dir = node_atf(sim->root, "sys/bus/pci/drivers/%s", d->name);

        node_link(dev, "driver", dir);
        node_link(dir, dev->name, dev);
        if (d->vfio)
                device_vfio_add(sim, dev);
        else
                vgpu_make(sim, dev);
        device_unpark_driver(sim, dev, d->name);
}

int driver_attach(Sim *sim, Driver *d, Node *dev) {
        int r;

        if (!driver_matches(sim, d, dev))
                return -ENODEV;
        if (node_child(dev, "driver"))
                return -EBUSY;
        if (!may_probe(dev))
                return -ENODEV;
        r = d->vfio ? vfio_probe(dev) : 0;
        if (r < 0)
                return r;
        driver_link(sim, d, dev);
        if (d->vfio)
                device_allow_suspend(dev, true);
        if (d->pciback)
                pciback_add(sim, dev->name);
        count_enable(d, dev, 1);
        sriov_limit(sim, dev, d);
        uevent_device(sim, "bind", dev);
        return 0;
}

void driver_detach(Sim *sim, Node *dev) {
        Driver *d = driver_of(sim, dev);

        if (!d)
                return;
        if (driver_enables_vfs(sim, d) && !d->keeps_vfs)
                sriov_destroy(sim, dev);
        vfattr_forget(dev);
        if (d->vfio) {
                device_vfio_remove(sim, dev);
                device_allow_suspend(dev, false);
        } else {
                vgpu_remove(sim, dev);
                nvidia_drop_lock(sim, dev);
                device_park_driver(sim, dev, d->name);
        }
        count_enable(d, dev, -1);
        sriov_limit(sim, dev, NULL);
        node_remove_child(dev, "driver");
        node_remove(node_child(node_atf(sim->root, "sys/bus/pci/drivers/%s", d->name), dev->name));
        uevent_device(sim, "unbind", dev);
}

int driver_load(Sim *sim, const char *name, const char *options) {
        const Node *devices = node_at(sim->root, "sys/bus/pci/devices");
        int r = driver_find(sim, name) ? -EEXIST : driver_declare(sim, name, options);
        Driver *d;

        if (r < 0)
                return r;
        d = driver_get(sim, name);
        uevent_driver(sim, "add", name);
        for (size_t i = 0; devices && i < devices->n_children; i++) {
                Node *dev = device_find(sim, devices->children[i]->name);

                if (dev && !node_child(dev, "driver") && driver_matches(sim, d, dev))
                        (void) driver_attach(sim, d, dev);
        }
        return 0;
}

static Node *find_bound(const Sim *sim, const Driver *driver) {
        const Node *devices = node_at(sim->root, "sys/bus/pci/devices");

        for (size_t i = 0; devices && i < devices->n_children; i++) {
                Node *dev = device_find(sim, devices->children[i]->name);

                if (dev && driver_of(sim, dev) == driver)
                        return dev;
        }
        return NULL;
}

void driver_unload(Sim *sim, Driver *driver) {
        _cleanup_free_ char *path = xasprintf("sys/bus/pci/drivers/%s", driver->name);
        size_t i = 0;
        Node *dev;

        while ((dev = find_bound(sim, driver)))
                driver_detach(sim, dev);
        node_remove(node_at(sim->root, path));
        uevent_driver(sim, "remove", driver->name);
        while (sim->drivers[i] != driver)
                i++;
        sim->drivers[i] = sim->drivers[--sim->n_drivers];
        driver_free(driver);
}

void driver_probe(Sim *sim, Node *dev) {
        for (size_t i = 0; i < sim->n_drivers && !node_child(dev, "driver"); i++)
                if (driver_matches(sim, sim->drivers[i], dev))
                        (void) driver_attach(sim, sim->drivers[i], dev);
}
