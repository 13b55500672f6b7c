/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The D-Bus interface org.passthroughd1.Device. */

#include <errno.h>

#include "error.h"
#include "model/pcilink.h"
#include "plan/device-state.h"
#include "server-internal.h"
#include "util/strings.h"

Verdict bus_read_address(const char *text, PciAddress *ret, Refusal *ret_refusal) {
        if (pci_address_parse(text, ret) >= 0)
                return VERDICT_NONE;
        return refuse_request(ret_refusal, "Write it as the kernel does: 0000:82:00.0.", "'%s' is not a PCI address.",
                              QUOTABLE(text));
}

const PciDevice *bus_find_device(sd_bus_message *call, const HostView *view, const char *text, int *ret_reply) {
        _cleanup_refusal_ Refusal refusal = { 0 };
        const PciDevice *dev;
        PciAddress address;

        if (bus_read_address(text, &address, &refusal) == VERDICT_NONE) {
                dev = inventory_find(view->inventory, address);
                if (dev)
                        return dev;
                (void) refuse(&refusal, VERDICT_NO_SUCH_DEVICE, &address, NULL, "%s is not on this node.",
                              PCI_ADDRESS_STR(address));
        }
        *ret_reply = bus_reply_refusal(call, &refusal);
        return NULL;
}

static void *find_device(Server *s, const char *label) {
        PciAddress address;

        return pci_address_parse(label, &address) < 0 ? NULL
                                                      : (void *) inventory_find(server_view(s).inventory, address);
}

static const char *state_property(const HostView *view, const PciDevice *dev, const char *property, Refusal *why) {
        DeviceState state = device_state(view, dev, why);

        if (streq(property, "State"))
                return device_state_to_string(state);
        return (streq(property, "Reason") ? why->message : why->remedy) ?: "";
}

static const char *string_property(const HostView *view, const PciDevice *dev, const char *property) {
        const Pool *pool = policy_pool(view->policy, dev);
        const Allocation *holder = ledger_holder(view->ledger, dev->address);

        if (streq(property, "Name"))
                return dev->name ?: "";
        if (streq(property, "Driver"))
                return dev->driver ?: "";
        if (streq(property, "Pool"))
                return pool ? pool->name : "";
        return holder ? holder->name : "";
}

static int append_words(sd_bus_message *m, const char *words) {
        _cleanup_free_ char *copy = strdup(words ?: "");
        char *word, *rest = copy;
        int r = copy ? sd_bus_message_open_container(m, 'a', "s") : -ENOMEM;

        while (r >= 0 && (word = strsep(&rest, " ")))
                r = *word ? sd_bus_message_append(m, "s", word) : 0;
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static unsigned link_property(const PciDevice *dev, const char *property) {
        if (streq(property, "LinkGeneration"))
                return pci_link_generation(dev->current_speed);
        if (streq(property, "LinkWidth"))
                return dev->current_width;
        return streq(property, "MaxLinkWidth") ? dev->link_width : pci_link_generation(dev->link_speed);
}

static int property_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        HostView view = server_view(server_of_getter(bus));
        _cleanup_refusal_ Refusal why = { 0 };
        const PciDevice *dev = userdata;

        if (streq(property, "Address"))
                return sd_bus_message_append(reply, "s", PCI_ADDRESS_STR(dev->address));
        if (streq(property, "PhysicalFunction"))
                return sd_bus_message_append(reply, "s", dev->type == PCI_TYPE_VF ? PCI_ADDRESS_STR(dev->physfn) : "");
        if (streq(property, "Class"))
                return sd_bus_message_append(reply, "u", dev->class);
        if (streq(property, "NumaNode"))
                return sd_bus_message_append(reply, "i", dev->numa_node);
        if (streq(property, "IommuGroup"))
                return sd_bus_message_append(reply, "i", dev->iommu_group);
        if (streq(property, "KernelNames"))
                return append_words(reply, dev->kernel_names);
        if (strstr(property, "Link"))
                return sd_bus_message_append(reply, "u", link_property(dev, property));
        if (streq(property, "State") || streq(property, "Reason") || streq(property, "Remedy"))
                return sd_bus_message_append(reply, "s", state_property(&view, dev, property, &why));
        return sd_bus_message_append(reply, "s", string_property(&view, dev, property));
}

#define CHANGES SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE
#define CONST   SD_BUS_VTABLE_PROPERTY_CONST

static const sd_bus_vtable device_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Address", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Name", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Class", "u", property_get, 0, CONST),
        SD_BUS_PROPERTY("Pool", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("State", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Reason", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Remedy", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("Driver", "s", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("KernelNames", "as", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("LinkGeneration", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("LinkWidth", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("MaxLinkGeneration", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("MaxLinkWidth", "u", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("NumaNode", "i", property_get, 0, CONST),
        SD_BUS_PROPERTY("IommuGroup", "i", property_get, 0, CHANGES),
        SD_BUS_PROPERTY("PhysicalFunction", "s", property_get, 0, CONST),
        SD_BUS_PROPERTY("Allocation", "s", property_get, 0, CHANGES),
        SD_BUS_VTABLE_END,
};

static size_t count_devices(Server *s) {
        return server_view(s).inventory->n_devices;
}

static int path_of_device(Server *s, size_t i, char **ret) {
        return device_path(server_view(s).inventory->devices[i].address, ret);
}

const ObjectKind device_objects = { BUS_DEVICE_PREFIX, BUS_DEVICE_INTERFACE, device_vtable, device_property_names,
                                    find_device,       count_devices,        path_of_device };
