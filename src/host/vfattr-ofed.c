/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads and writes the attributes of a VF in MLNX_OFED's directory sriov/N of the PF (domain.md C30). */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "vfattr-internal.h"

static const char *const policies[_VF_LINK_MAX] = {
        [VF_LINK_AUTO] = "Follow",
        [VF_LINK_UP] = "Up",
        [VF_LINK_DOWN] = "Down",
};

/* Of these files an Ethernet PF has only "node". Other files of the directory are not used: they return a usage text
 * instead of the value. */
static const struct File {
        const char *name;
        VfAttribute attribute;
} files[] = {
        { "node", VF_NODE_GUID },
        { "port", VF_PORT_GUID },
        { "policy", VF_LINK },
};

static const char *file_path(const VfTarget *t, const struct File *f, char buf[static PCI_PATH_MAX]) {
        char name[64];

        (void) snprintf(name, sizeof(name), "sriov/%u/%s", t->vf, f->name);
        return pci_path_format(t->pf, name, buf);
}

static bool parse_policy(const char *text, VfAttributes *v) {
        for (VfLink l = 0; l < _VF_LINK_MAX; l++)
                if (streq(text, policies[l])) {
                        vf_attributes_put(v, VF_LINK, l);
                        return true;
                }
        return false;
}

static bool parse_guid(VfAttribute a, const char *text, VfAttributes *v) {
        _cleanup_free_ char *problem = NULL;
        char term[64];

        if ((size_t) snprintf(term, sizeof(term), "%s=%s", vf_attribute_to_string(a), text) >= sizeof(term))
                return false;
        return vf_attributes_parse(term, v, &problem) >= 0;
}

/* Ignores a value that cannot be parsed, such as the driver's "Invalid policy". Such a value could not be restored. */
static void read_file(const struct File *f, const char *text, VfAttributes *ret) {
        VfAttributes one = { 0 };

        if (f->attribute == VF_LINK ? parse_policy(text, &one) : parse_guid(f->attribute, text, &one))
                vf_attributes_merge(ret, &one);
}

static bool has_directory(const VfTarget *t) {
        if (!t->view->ofed_known) {
                _cleanup_close_ int fd = sysfs_open(t->fs, PCI_PATH(t->pf, "sriov"), O_PATH | O_DIRECTORY);

                t->view->has_ofed = fd >= 0;
                t->view->ofed_known = true;
        }
        return t->view->has_ofed;
}

int vf_ofed_read(const VfTarget *t, VfAttributes *ret) {
        for (size_t i = 0; has_directory(t) && i < ELEMENTSOF(files); i++) {
                char path[PCI_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];
                int r = sysfs_read(t->fs, file_path(t, &files[i], path), text, sizeof(text));

                if (r == -ENOENT)
                        continue;
                if (r < 0)
                        return r;
                read_file(&files[i], text, ret);
        }
        return 0;
}

int vf_ofed_write(const VfTarget *t, const VfAttributes *change) {
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                char path[PCI_PATH_MAX], value[VF_VALUE_MAX], line[VF_VALUE_MAX + 2];
                VfAttribute a = files[i].attribute;
                int r;

                if (!vf_attributes_have(change, a))
                        continue;
                /* The newline is required: the driver compares the policy with "Follow\n". */
                (void) snprintf(line, sizeof(line), "%s\n",
                                a == VF_LINK ? policies[change->value[a]]
                                             : vf_value_format(a, change->value[a], value));
                r = sysfs_write(t->fs, file_path(t, &files[i], path), line);
                if (r < 0)
                        return r;
        }
        return 0;
}
