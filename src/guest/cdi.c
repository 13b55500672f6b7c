/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/cdi.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "guest/guestpci.h"
#include "guest/iommufd.h"
#include "model/json-value.h"
#include "util/strings.h"

#define CDI_VERSION "0.5.0"
#define NODE_MAX    64U

static bool add_text(json_object *o, const char *key, const char *text) {
        return member_add(o, key, json_object_new_string(text));
}

/* Appends a value to the array with this key, which is added if missing. Takes ownership of value. 0 or -ENOMEM. */
static int append(json_object *o, const char *key, json_object *value) {
        if (!member(o, key))
                (void) member_add(o, key, json_object_new_array());
        return json_append(member(o, key), value) ? 0 : -ENOMEM;
}

json_object *cdi_new(const char *kind) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || !add_text(o, "cdiVersion", CDI_VERSION) || !add_text(o, "kind", kind) ||
            !member_add(o, "devices", json_object_new_array()))
                return NULL;
        return TAKE_PTR(o);
}

json_object *cdi_add_device(json_object *cdi, const char *name) {
        json_object *device = json_object_new_object(), *edits = json_object_new_object();

        if (append(cdi, "devices", device) < 0 || !add_text(device, "name", name)) {
                (void) json_object_put(edits);
                return NULL;
        }
        return member_add(device, "containerEdits", edits) ? edits : NULL;
}

static int add_node(json_object *edits, const char *path) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (json_find(member(edits, "deviceNodes"), "path", path))
                return 0;
        if (!o || !add_text(o, "path", path) || !add_text(o, "permissions", "rw"))
                return -ENOMEM;
        return append(edits, "deviceNodes", TAKE_PTR(o));
}

int cdi_add_group(json_object *edits, int group) {
        char path[NODE_MAX];
        int r = add_node(edits, "/dev/vfio/vfio");

        (void) snprintf(path, sizeof(path), "/dev/vfio/%d", group);
        return r < 0 ? r : add_node(edits, path);
}

int cdi_add_cdev(json_object *edits, const char *name) {
        char path[NODE_MAX];
        int r = add_node(edits, "/dev/iommu");

        (void) snprintf(path, sizeof(path), "/dev/vfio/devices/%s", name);
        return r < 0 ? r : add_node(edits, path);
}

int cdi_add_env(json_object *edits, const char *variable, const char *value) {
        _cleanup_free_ char *text = string_format("%s=%s", variable, value);

        return text ? append(edits, "env", json_object_new_string(text)) : -ENOMEM;
}

int cdi_add_mount(json_object *edits, const char *host, const char *container) {
        _cleanup_json_ json_object *o = json_object_new_object();

        if (!o || !add_text(o, "hostPath", host) || !add_text(o, "containerPath", container) ||
            append(o, "options", json_object_new_string("ro")) < 0 ||
            append(o, "options", json_object_new_string("bind")) < 0)
                return -ENOMEM;
        return append(edits, "mounts", TAKE_PTR(o));
}

static Verdict check_device(const PciDevice *dev, const AllocationDevice *d, Refusal *ret) {
        if (*d->mdev || (dev && dev->mdev_parent))
                return refuse(ret, VERDICT_NOT_SUPPORTED, &d->address,
                              "Give the vGPU to a domain of libvirt on the host.",
                              "The vGPU of %s is a mediated device, whose IOMMU group is not known.",
                              PCI_ADDRESS_STR(d->address));
        if (dev && dev->vfio && dev->iommu_group >= 0)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_WRONG_STATE, &d->address, "Wait until the allocation is ready.",
                      "%s is not bound to a VFIO driver.", PCI_ADDRESS_STR(d->address));
}

/* Refuses a node with Xen, and a name that does not end with a letter or digit: CDI forbids such a name, the ledger
 * does not. */
static Verdict check_allocation(const Config *config, const Allocation *a, Refusal *ret) {
        if (config->hypervisor == HYPERVISOR_XEN)
                return refuse(ret, VERDICT_NOT_SUPPORTED, NULL, "Use the format 'xml' or 'xl'.",
                              "This node has Xen, and no guest in a container can have its devices.");
        if (!isalnum((unsigned char) a->name[strlen(a->name) - 1]))
                return refuse_request(ret, "Use a name that ends with a letter or digit.",
                                      "CDI has no device with the name '%s'.", a->name);
        return VERDICT_NONE;
}

static bool is_first_of_pool(const Allocation *a, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (streq_ptr(a->devices[k].pool, a->devices[i].pool))
                        return false;
        return true;
}

/* Adds the variable of Kubernetes device plugins: PCI_RESOURCE_PASSTHROUGHD_ORG_GPU=0000:13:00.0,0000:23:00.0 */
static int add_pool(json_object *edits, const Allocation *a, const char *pool) {
        _cleanup_free_ char *variable = string_format("PCI_RESOURCE_PASSTHROUGHD_ORG_%s", pool), *list = NULL;

        if (!variable)
                return -ENOMEM;
        for (char *c = variable; *c; c++)
                *c = isalnum((unsigned char) *c) ? (char) toupper((unsigned char) *c) : '_';
        for (size_t i = 0; i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]) && streq_ptr(a->devices[i].pool, pool) &&
                    string_append(&list, ",", "%s", PCI_ADDRESS_STR(a->devices[i].address)) < 0)
                        return -ENOMEM;
        return cdi_add_env(edits, variable, list);
}

static int write_allocation(const Inventory *inv, const Allocation *a, bool iommufd, char **ret) {
        _cleanup_json_ json_object *cdi = cdi_new(CDI_ALLOCATION);
        json_object *edits = cdi ? cdi_add_device(cdi, a->name) : NULL;
        int r = edits ? cdi_add_env(edits, "PASSTHROUGH_ALLOCATION", a->name) : -ENOMEM;

        if (r < 0)
                return r;
        for (size_t i = 0; i < a->n_devices; i++) {
                const AllocationDevice *d = &a->devices[i];
                const PciDevice *dev = inventory_find(inv, d->address);

                if (!guest_pci_shows(d))
                        continue;
                if (d->pool && is_first_of_pool(a, i))
                        r = add_pool(edits, a, d->pool);
                if (r < 0)
                        return r;
                r = iommufd ? cdi_add_cdev(edits, dev->vfio_cdev) : cdi_add_group(edits, dev->iommu_group);
                if (r < 0)
                        return r;
        }
        *ret = json_text(cdi);
        return *ret ? 0 : -ENOMEM;
}

Verdict cdi_make(const Inventory *inv, const Config *config, const Allocation *a, char **ret, Refusal *ret_refusal) {
        IommufdFacts facts = iommufd_facts(inv, config, a);
        IommufdReason reason = iommufd_choose(&facts);
        Verdict v = check_allocation(config, a, ret_refusal);

        for (size_t i = 0; v == VERDICT_NONE && i < a->n_devices; i++)
                if (guest_pci_shows(&a->devices[i]))
                        v = check_device(inventory_find(inv, a->devices[i].address), &a->devices[i], ret_refusal);
        if (v == VERDICT_NONE && reason == IOMMUFD_NO_DEVICE)
                v = refuse_request(ret_refusal, NULL, "Allocation '%s' has no device.", a->name);
        if (v == VERDICT_NONE)
                v = iommufd_check(&facts, reason, ret_refusal);
        if (v != VERDICT_NONE)
                return v;
        return write_allocation(inv, a, iommufd_is_used(reason), ret) < 0 ? refuse_no_memory(ret_refusal)
                                                                          : VERDICT_NONE;
}
