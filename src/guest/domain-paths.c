/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/domain-paths.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "guest/xmlnode.h"
#include "ledger/region.h"
#include "util/strings.h"

/* Patterns of fnmatch(). Each component of a path is compared with the same component of the pattern. */
static const char *const reserved[] = {
        "/dev/vfio",
        "/dev/iommu",
        "/dev/nvidia*",
        "/dev/dri",
        "/dev/kfd",
        "/dev/accel*",
        "/dev/infiniband",
        "/dev/vhost-vdpa*",
        "/dev/uio*",
        "/dev/mst",
        "/dev/fwctl",
        "/dev/cxl",
        "/dev/dax*",
        "/dev/hl[0-9]*", /* Habana */
        "/dev/hl_control*",
        "/dev/hfi1_*",
        "/dev/ng[0-9]*", /* NVMe commands; block devices, which are disks, are not listed */
        "/dev/nvme[0-9]",
        "/dev/nvme[0-9][0-9]",
        "/dev/nvme[0-9][0-9][0-9]",
        "/dev/nvme-fabrics",
        "/dev/sg[0-9]*",
        "/dev/bsg",
        "/dev/bus", /* USB */
        "/dev/cpu", /* model-specific registers */
        "/dev/kmem",
        "/dev/mem",
        "/dev/port",
        "/dev/char", /* links to device nodes */
        "/dev/fd",
        "/dev/shm/" REGION_FILE_PREFIX "*",
        "/dev/hugepages*/" REGION_FILE_PREFIX "*",
        "/proc", /* contains the root directory and the open files of processes */
        "/sys",  /* contains the BARs of devices */
};

/* Removes redundant slashes, "." and "..", as if the path had no symbolic links. A relative path is taken as below "/",
 * the working directory of libvirt and QEMU. Returns NULL when out of memory. */
static char *normalize(const char *path) {
        char *normal = calloc(1, strlen(path) + 2), *end = normal;

        while (normal && *(path += strspn(path, "/"))) {
                size_t n = strcspn(path, "/");

                if (n == 2 && memcmp(path, "..", 2) == 0) {
                        while (end > normal && *--end != '/')
                                ;
                } else if (n != 1 || *path != '.') {
                        *end++ = '/';
                        memcpy(end, path, n);
                        end += n;
                }
                *end = '\0';
                path += n;
        }
        return normal;
}

/* Returns true when the path matches the pattern, or is a parent directory of a match, or is below a match. */
static bool leads_to(const char *path, const char *pattern) {
        while (*path && *pattern) {
                size_t n = strcspn(++path, "/"), m = strcspn(++pattern, "/");
                char name[NAME_MAX + 1], wanted[64];

                if (n >= sizeof(name))
                        return false;
                (void) snprintf(name, sizeof(name), "%.*s", (int) n, path);
                (void) snprintf(wanted, sizeof(wanted), "%.*s", (int) m, pattern);
                if (fnmatch(wanted, name, 0) != 0)
                        return false;
                path += n;
                pattern += m;
        }
        return true;
}

static bool is_reserved(const char *path) {
        _cleanup_free_ char *normal = normalize(path);

        for (size_t i = 0; i < ELEMENTSOF(reserved); i++)
                if (!normal || leads_to(normal, reserved[i]))
                        return true;
        return false;
}

static bool value_is_reserved(const char *value, ResolvePath resolve) {
        _cleanup_free_ char *resolved = NULL;

        if (!strchr(value, '/') || strlen(value) >= PATH_MAX)
                return false;
        if (is_reserved(value))
                return true;
        resolved = resolve ? resolve(value) : NULL;
        return resolved && is_reserved(resolved);
}

/* Returns true for text that is no path of the host: a description, or the mount tag of a <filesystem>. */
static bool is_other_text(const xmlNode *node) {
        return node_is(node, "metadata") || node_is(node, "title") || node_is(node, "description") ||
               (node_is(node, "target") && node->parent && node_is(node->parent, "filesystem"));
}

static char *find_value(const xmlNode *node, ResolvePath resolve) {
        char *value;

        for (const xmlAttr *a = node->properties; a; a = a->next) {
                value = node_get(node, (const char *) a->name);
                if (value && (*value == '/' || !streq((const char *) a->name, "name")) &&
                    value_is_reserved(value, resolve))
                        return value;
                free(value);
        }
        value = xmlFirstElementChild((xmlNode *) node) ? NULL : node_get_text(node);
        if (value && value_is_reserved(value, resolve))
                return value;
        free(value);
        return NULL;
}

const xmlNode *domain_find_reserved_path(const xmlNode *root, ResolvePath resolve, char **ret_path) {
        const xmlNode *found = NULL;

        if (root->ns || is_other_text(root))
                return NULL;
        *ret_path = find_value(root, resolve);
        if (*ret_path)
                return root;
        for (xmlNode *n = xmlFirstElementChild((xmlNode *) root); n && !found; n = xmlNextElementSibling(n))
                found = domain_find_reserved_path(n, resolve, ret_path);
        return found;
}
