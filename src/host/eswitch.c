/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the representors of VFs, and queries the eswitch mode of a PF by devlink. */

#include "eswitch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <stdio.h>

#include "host/pcipath.h"
#include "netlink.h"
#include "util/fileio.h"
#include "util/strings.h"

/* The most interfaces of a PF: its own, and the representors of VFs and subfunctions. */
#define ENTRIES_MAX     4096U
#define NETDEV_PATH_MAX 320
#define FAMILY          "devlink"

static struct nla_policy family_policy[CTRL_ATTR_MAX + 1] = {
        [CTRL_ATTR_FAMILY_ID] = { .type = NLA_U16 },
        [CTRL_ATTR_FAMILY_NAME] = { .type = NLA_STRING },
};
static struct nla_policy eswitch_policy[DEVLINK_ATTR_ESWITCH_MODE + 1] = {
        [DEVLINK_ATTR_BUS_NAME] = { .type = NLA_STRING },
        [DEVLINK_ATTR_DEV_NAME] = { .type = NLA_STRING },
        [DEVLINK_ATTR_ESWITCH_MODE] = { .type = NLA_U16 },
};

/* Creates a generic netlink request; struct genlmsghdr follows the netlink header. */
static struct nl_msg *new_request(uint16_t family, uint8_t command, uint8_t version) {
        struct genlmsghdr header = { .cmd = command, .version = version };
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *msg = nlmsg_alloc_simple(family, 0);

        if (!msg || nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO) < 0)
                return NULL;
        return TAKE_PTR(msg);
}

static int on_family(struct nlmsghdr *header, void *userdata) {
        struct nlattr *tb[CTRL_ATTR_MAX + 1];
        uint16_t *ret = userdata;

        if (header->nlmsg_type != GENL_ID_CTRL ||
            nlmsg_parse(header, GENL_HDRLEN, tb, CTRL_ATTR_MAX, family_policy) < 0 || !tb[CTRL_ATTR_FAMILY_ID] ||
            !tb[CTRL_ATTR_FAMILY_NAME] || nla_strcmp(tb[CTRL_ATTR_FAMILY_NAME], FAMILY) != 0)
                return -EPROTO;
        *ret = nla_get_u16(tb[CTRL_ATTR_FAMILY_ID]);
        return *ret >= NLMSG_MIN_TYPE ? 0 : -EPROTO;
}

/* Finds the number of the family "devlink", which the kernel assigns at run time. 0 or a negative errno. */
static int find_family(struct nl_sock *sk, uint16_t *ret) {
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *request = new_request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);

        if (!request || nla_put_string(request, CTRL_ATTR_FAMILY_NAME, FAMILY) < 0)
                return -ENOMEM;
        return netlink_ask(sk, request, on_family, ret);
}

typedef struct ModeQuery {
        uint16_t family;
        PciAddress pf;
        bool switchdev;
} ModeQuery;

static int on_eswitch(struct nlmsghdr *header, void *userdata) {
        struct nlattr *tb[DEVLINK_ATTR_ESWITCH_MODE + 1];
        ModeQuery *q = userdata;

        if (header->nlmsg_type != q->family ||
            nlmsg_parse(header, GENL_HDRLEN, tb, DEVLINK_ATTR_ESWITCH_MODE, eswitch_policy) < 0 ||
            !tb[DEVLINK_ATTR_DEV_NAME] || nla_strcmp(tb[DEVLINK_ATTR_DEV_NAME], PCI_ADDRESS_STR(q->pf)) != 0)
                return -EPROTO;
        /* The driver may report other properties of the eswitch, without its mode. */
        q->switchdev = tb[DEVLINK_ATTR_ESWITCH_MODE] &&
                       nla_get_u16(tb[DEVLINK_ATTR_ESWITCH_MODE]) == DEVLINK_ESWITCH_MODE_SWITCHDEV;
        return 0;
}

static int query_mode(struct nl_sock *sk, ModeQuery *q) {
        _cleanup_(cleanup_nlmsg_free) struct nl_msg *request =
                new_request(q->family, DEVLINK_CMD_ESWITCH_GET, DEVLINK_GENL_VERSION);

        if (!request || nla_put_string(request, DEVLINK_ATTR_BUS_NAME, "pci") < 0 ||
            nla_put_string(request, DEVLINK_ATTR_DEV_NAME, PCI_ADDRESS_STR(q->pf)) < 0)
                return -ENOMEM;
        return netlink_ask(sk, request, on_eswitch, q);
}

int eswitch_ask(PciAddress pf, bool *ret_switchdev) {
        _cleanup_(cleanup_nl_socket_free) struct nl_sock *sk = NULL;
        ModeQuery q = { .pf = pf };
        int r = netlink_open(NETLINK_GENERIC, &sk);

        if (r < 0)
                return r;
        r = find_family(sk, &q.family);
        if (r < 0)
                return r;
        r = query_mode(sk, &q);
        if (r < 0)
                return r;
        *ret_switchdev = q.switchdev;
        return r;
}

static bool is_representor(const Sysfs *fs, PciAddress pf, const char *netdev, unsigned vf) {
        char path[NETDEV_PATH_MAX], text[SYSFS_ATTRIBUTE_MAX];
        const char *of_vf;
        uint64_t number;

        (void) snprintf(path, sizeof(path), "%s/%s/phys_port_name", PCI_PATH(pf, "net"), netdev);
        /* Skip names such as c1pf0vf3: these representors are of VFs on another host that shares the card. */
        if (sysfs_read(fs, path, text, sizeof(text)) < 0 || strncmp(text, "pf", 2) != 0)
                return false;
        of_vf = strstr(text, "vf");
        return of_vf && parse_unsigned(of_vf + 2, UINT16_MAX, &number) == 0 && number == vf;
}

bool eswitch_find_representor(const Sysfs *fs, PciAddress pf, unsigned vf, char ret[static IF_NAMESIZE]) {
        _cleanup_close_ int fd = sysfs_open(fs, PCI_PATH(pf, "net"), O_RDONLY | O_DIRECTORY);
        _cleanup_names_ char **names = NULL;
        bool found = false;
        size_t n = 0;

        if (fd >= 0)
                (void) list_dir_at(fd, ".", ENTRIES_MAX, &names, &n);
        for (size_t i = 0; !found && i < n; i++) {
                found = strlen(names[i]) < IF_NAMESIZE && is_representor(fs, pf, names[i], vf);
                if (found)
                        (void) snprintf(ret, IF_NAMESIZE, "%s", names[i]);
        }
        return found;
}
