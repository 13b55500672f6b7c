/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Reads the header type, ACS and ATS from config space with libpci, and device names from pci.ids. */

#include <errno.h>
#include <fcntl.h>
#include <pci/pci.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/stat.h>

#include "host/pcipath.h"
#include "pciconf.h"
#include "pciids.h"
#include "util/strings.h"

#define CONFIG_HEADER_SIZE   64
#define CONFIG_PCI_SIZE      256
#define CONFIG_EXTENDED_SIZE (CONFIG_PCI_SIZE + 4) /* including the header of the first extended capability */
#define NAME_MAX_LENGTH      256

/* ACS controls that a port needs to isolate the functions below it. */
#define ACS_REQUIRED (PCI_ACS_CAP_VALID | PCI_ACS_CAP_REQ_RED | PCI_ACS_CAP_CMPLT_RED | PCI_ACS_CAP_FORWARD)
#define ACS_BITS     ((1U << _PCI_ACS_BIT_MAX) - 1)

struct PciConf {
        const Sysfs *fs;
        struct pci_access *access;
};

/* Where libpci's error callback jumps to: libpci exits the process if the callback returns. A global variable, because
 * libpci passes the callback no context. */
static jmp_buf escape;

static void PCI_NONRET on_error(char *message, ...) {
        longjmp(escape, 1);
}

/* Drops libpci's warnings: the functions here return an unreadable config space as an error. */
static void on_warning(char *message, ...) {
}

/* Calls a function that uses libpci. -EIO: libpci reported an error. */
static int guarded(int (*function)(void *), void *data) {
        if (setjmp(escape) != 0)
                return -EIO;
        return function(data);
}

typedef struct NewCall {
        const char *path;
        struct pci_access *access;
} NewCall;

static int call_new(void *data) {
        NewCall *call = data;

        call->access = pci_alloc();
        call->access->error = on_error;
        call->access->warning = on_warning;
        call->access->debug = on_warning;
        call->access->method = PCI_ACCESS_SYS_BUS_PCI;
        call->access->id_lookup_mode = 0; /* use no name cache in the home directory and no network */
        if (pci_set_param(call->access, (char *) "sysfs.path", (char *) call->path) < 0)
                return -EOPNOTSUPP;
        pci_init(call->access);
        return 0;
}

int pciconf_new(const Sysfs *fs, PciConf **ret) {
        _cleanup_(cleanup_pciconf_free) PciConf *conf = calloc(1, sizeof(*conf));
        _cleanup_free_ char *path = string_format("%s/sys/bus/pci", sysfs_root(fs));
        NewCall call = { .path = path };
        int r;

        if (!conf || !path)
                return -ENOMEM;
        r = guarded(call_new, &call);
        conf->fs = fs;
        conf->access = call.access;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(conf);
        return 0;
}

static int call_free(void *data) {
        pci_cleanup(data);
        return 0;
}

PciConf *pciconf_free(PciConf *conf) {
        if (conf && conf->access)
                (void) guarded(call_free, conf->access);
        free(conf);
        return NULL;
}

typedef struct ReadCall {
        struct pci_access *access;
        PciAddress address;
        uint8_t config[CONFIG_EXTENDED_SIZE];
        PciConfFacts facts;
} ReadCall;

/*
 * Reads the first 256 bytes and the header of the first extended capability in one system call; libpci would make one
 * call per register. Does not read all 4096 bytes, because this takes real hardware a millisecond. Returns the number
 * of bytes read: 260, 256, 64 or 0.
 */
static int read_config(struct pci_dev *dev, uint8_t *config) {
        static const int sizes[] = { CONFIG_EXTENDED_SIZE, CONFIG_PCI_SIZE, CONFIG_HEADER_SIZE };

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
                if (pci_read_block(dev, 0, config, sizes[i]))
                        return sizes[i];
        return 0;
}

static PciAcs acs_of_capability(struct pci_dev *dev, int size, PciConfFacts *facts) {
        const struct pci_cap *cap;
        uint16_t can, does;

        if (size < CONFIG_EXTENDED_SIZE)
                return PCI_ACS_UNKNOWN;
        cap = pci_find_cap(dev, PCI_EXT_CAP_ID_ACS, PCI_CAP_EXTENDED);
        if (!cap)
                return PCI_ACS_OPEN;
        can = pci_read_word(dev, (int) cap->addr + PCI_ACS_CAP);
        does = pci_read_word(dev, (int) cap->addr + PCI_ACS_CTRL);
        facts->acs_capabilities = can & ACS_BITS;
        facts->acs_enabled = does & can & ACS_BITS;
        /* A control that the port lacks is not needed: the kernel judges likewise. */
        return (does & can & ACS_REQUIRED) == (can & ACS_REQUIRED) ? PCI_ACS_ISOLATED : PCI_ACS_OPEN;
}

/* Follows the kernel's pci_acs_enabled(), because the kernel's IOMMU groups depend on it. Unlike the kernel, makes no
 * exception for the devices that pci_dev_specific_acs_enabled() lists. */
static PciAcs acs_of(struct pci_dev *dev, int size, bool multifunction, PciConfFacts *facts) {
        const struct pci_cap *express;

        if (!facts->is_bridge && !multifunction)
                return PCI_ACS_CLEAN;
        if (size < CONFIG_PCI_SIZE)
                return PCI_ACS_UNKNOWN;
        express = pci_find_cap(dev, PCI_CAP_ID_EXP, PCI_CAP_NORMAL);
        if (!express)
                return PCI_ACS_OPEN;

        switch ((pci_read_word(dev, (int) express->addr + PCI_EXP_FLAGS) & PCI_EXP_FLAGS_TYPE) >> 4) {
        case PCI_EXP_TYPE_ROOT_PORT:
        case PCI_EXP_TYPE_DOWNSTREAM:
                return acs_of_capability(dev, size, facts);
        case PCI_EXP_TYPE_UPSTREAM:
        case PCI_EXP_TYPE_ENDPOINT:
        case PCI_EXP_TYPE_LEG_END:
        case PCI_EXP_TYPE_ROOT_INT_EP:
                return multifunction ? acs_of_capability(dev, size, facts) : PCI_ACS_CLEAN;
        default:
                return PCI_ACS_OPEN;
        }
}

static PciAts ats_of(struct pci_dev *dev, int size) {
        const struct pci_cap *cap;

        if (size < CONFIG_EXTENDED_SIZE)
                return PCI_ATS_UNKNOWN;
        cap = pci_find_cap(dev, PCI_EXT_CAP_ID_ATS, PCI_CAP_EXTENDED);
        if (!cap)
                return PCI_ATS_NONE;
        return pci_read_word(dev, (int) cap->addr + PCI_ATS_CTRL) & PCI_ATS_CTRL_ENABLE ? PCI_ATS_ON : PCI_ATS_OFF;
}

static int call_read(void *data) {
        ReadCall *call = data;
        PciAddress a = call->address;
        struct pci_dev *dev = pci_get_dev(call->access, (int) a.domain, a.bus, a.slot, a.function);
        int size = read_config(dev, call->config), type;

        if (size == 0) {
                pci_free_dev(dev);
                return -EIO;
        }
        pci_setup_cache(dev, call->config, size);
        type = call->config[PCI_HEADER_TYPE];
        call->facts.is_bridge = (type & 0x7f) == PCI_HEADER_TYPE_BRIDGE || (type & 0x7f) == PCI_HEADER_TYPE_CARDBUS;
        call->facts.acs = acs_of(dev, size, (type & 0x80) || a.function > 0, &call->facts);
        call->facts.ats = call->facts.is_bridge ? PCI_ATS_UNKNOWN : ats_of(dev, size);
        pci_free_dev(dev);
        return 0;
}

/* Returns true when config is a regular file. On a FIFO in a recording, libpci would block. */
static bool is_regular(const Sysfs *fs, PciAddress address) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(address, "config"), O_PATH);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) >= 0 && S_ISREG(st.st_mode);
}

int pciconf_read(PciConf *conf, PciAddress address, PciConfFacts *ret) {
        ReadCall call = { .access = conf->access, .address = address };
        int r;

        if (sysfs_is_recorded(conf->fs) && !is_regular(conf->fs, address))
                return -EIO;
        r = guarded(call_read, &call);
        if (r < 0)
                return r;
        *ret = call.facts;
        return 0;
}

typedef struct NameCall {
        struct pci_access *access;
        Inventory *inv;
} NameCall;

#define LOOK_UP(access, buf, kind, ...)                                                                                \
        pci_lookup_name(access, buf, sizeof(buf), (kind) | PCI_LOOKUP_NO_NUMBERS | PCI_LOOKUP_NO_HWDB, __VA_ARGS__)

static const char *clean_or_null(const char *name) {
        return name && text_is_clean(name) ? name : NULL;
}

static int look_up(struct pci_access *access, const PciDevice *dev, uint16_t device, char **ret) {
        char buf[NAME_MAX_LENGTH], class[NAME_MAX_LENGTH];
        const char *name =
                clean_or_null(LOOK_UP(access, buf, PCI_LOOKUP_VENDOR | PCI_LOOKUP_DEVICE, dev->vendor, device));

        if (name)
                return string_copy(ret, name);
        return pciids_describe(dev, device, clean_or_null(LOOK_UP(access, buf, PCI_LOOKUP_VENDOR, dev->vendor)),
                               clean_or_null(LOOK_UP(access, class, PCI_LOOKUP_CLASS, dev->class >> 8)), ret);
}

static int call_name(void *data) {
        NameCall *call = data;

        for (size_t i = 0; i < call->inv->n_devices; i++) {
                PciDevice *dev = &call->inv->devices[i];
                int r;

                if (dev->named)
                        continue;
                r = look_up(call->access, dev, dev->device, &dev->name);
                if (r < 0)
                        return r;
                r = dev->vf_device ? look_up(call->access, dev, dev->vf_device, &dev->vf_name) : 0;
                if (r < 0)
                        return r;
                dev->named = true;
        }
        return 0;
}

int pciconf_name_devices(PciConf *conf, Inventory *inv) {
        int r = pciids_name_devices(conf->access->id_file_name, inv);

        /* pci.ids is compressed. libpci can read it. */
        return r == -EBADMSG ? guarded(call_name, &(NameCall) { conf->access, inv }) : r;
}
