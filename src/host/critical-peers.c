/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Finds the network addresses, interfaces and RDMA devices that storage clients and servers in the kernel use. */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "critical-internal.h"
#include "util/fileio.h"
#include "util/strings.h"

/* Network file systems that only root can mount: a user who can mount one could name any server. */
static const struct {
        const char *type;
        const char *option;            /* mount option that names the server, "addr=10.1.0.5"; NULL: none */
        const char *option_separators; /* characters between several addresses in the option */
        const char *source_separators; /* characters between several addresses in the source; NULL: the source has host
                                          names */
} network_types[] = {
        { "nfs", "addr=", "", NULL },   { "nfs4", "addr=", "", NULL },     { "cifs", "addr=", "", NULL },
        { "smb3", "addr=", "", NULL },  { "ceph", "mon_addr=", "/", "," }, /* "10.1.0.5:6789,10.1.0.6:6789:/path", or
                                                                              "user@cluster.name=/path" */
        { "lustre", NULL, NULL, ",:" }, /* "10.1.0.5@o2ib,10.1.0.6@o2ib:10.1.0.7@tcp:/name" */
};

static int note_addresses(const Critical *c, char *list, const char *separators, const char *use) {
        char *address;
        int r = 0;

        while ((address = strsep(&list, separators))) {
                address[strcspn(address, "@")] = '\0'; /* cut off Lustre's network, as in 10.1.0.5@o2ib */
                r = critical_note_address(c, address, false, use);
                if (r < 0)
                        return r;
        }
        return r;
}

int critical_note_mount(const Critical *c, const char *type, char *source, char *options, const char *mount) {
        _cleanup_free_ char *use = NULL;
        char *option, *path;
        size_t i = 0;
        int r = 0;

        while (i < ELEMENTSOF(network_types) && !streq(type, network_types[i].type))
                i++;
        if (i == ELEMENTSOF(network_types))
                return 0;
        use = string_format("%s (%s)", mount, type);
        if (!use)
                return -ENOMEM;
        while (network_types[i].option && r >= 0 && (option = strsep(&options, ","))) {
                size_t n = strlen(network_types[i].option);

                if (strncmp(option, network_types[i].option, n) == 0)
                        r = note_addresses(c, option + n, network_types[i].option_separators, use);
        }
        path = strstr(source, ":/");
        if (r < 0 || !network_types[i].source_separators || !path)
                return r;
        *path = '\0';
        return note_addresses(c, source, network_types[i].source_separators, use);
}

/* Parses a line of proc/net/nfsfs/servers, "v4 0a010005  801   3 filer". The file also has the servers of other mount
 * namespaces, and data servers of pNFS. */
static int note_nfs_server(const Critical *c, char *line) {
        char text[INET6_ADDRSTRLEN], *rest = line;
        const char *digits;
        uint64_t number;

        (void) string_next_word(&rest);
        digits = string_next_word(&rest);
        if (!digits)
                return 0;
        if (strlen(digits) == 32) {
                char *at = text;

                for (size_t i = 0; i < 32; i++) {
                        if (i > 0 && i % 4 == 0)
                                *at++ = ':';
                        *at++ = digits[i];
                }
                *at = '\0';
        } else if (strlen(digits) == 8 && parse_hex(digits, UINT32_MAX, &number) >= 0) {
                uint32_t ipv4 = htonl((uint32_t) number);

                (void) inet_ntop(AF_INET, &ipv4, text, sizeof(text));
        } else
                return 0;
        return critical_note_address(c, text, false, "NFS");
}

static int mark_peer(const Critical *c, const char *text, const char *use) {
        return critical_note_address(c, text, false, use);
}

static int mark_own(const Critical *c, const char *text, const char *use) {
        return critical_note_address(c, text, true, use);
}

static int mark_rdma(const Critical *c, const char *text, const char *use) {
        _cleanup_free_ char *link = string_format("sys/class/infiniband/%s", critical_last_component(text));

        return link ? critical_mark_user(c, link, use) : -ENOMEM;
}

/* Marks the devices of interfaces, which text lists as "eth0,eth1". */
static int mark_interfaces(const Critical *c, const char *text, const char *use) {
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *name;
        int r = copy ? 0 : -ENOMEM;

        while (r >= 0 && (name = strsep(&rest, ",")))
                r = critical_mark_interface(c, name, use);
        return r;
}

/* A kind of storage client or server in the kernel, or netconsole, and the files that name its address or device. */
typedef struct NetworkUser {
        const char *pattern; /* directories, for critical_walk() */
        const char *file; /* the attribute with the address or device; NULL: the name of the directory is the address */
        const char
                *active; /* an attribute that is 0, or a directory that is empty, while unused; NULL: always in use */
        int (*mark)(const Critical *c, const char *text, const char *use);
        const char *use;
} NetworkUser;

/* The attribute "address" of iSCSI connections is not read: the read waits for a mutex that the kernel holds while it
 * disconnects. */
static const NetworkUser network_users[] = {
        { "sys/class/iscsi_connection/*", "persistent_address", NULL, mark_peer, "iSCSI" },
        { "sys/class/iscsi_host/*", "netdev", NULL, critical_mark_interface, "iSCSI" },
        { "sys/class/block/etherd!*", "netif", NULL, mark_interfaces, "ATA over Ethernet" },
        { "sys/kernel/config/netconsole/*", "dev_name", "enabled", critical_mark_interface, "netconsole" },
        { "sys/class/scsi_host/*", "local_ib_device", NULL, mark_rdma, "SRP" },
        { "sys/class/rtrs-client/*/paths/*", "hca_name", NULL, mark_rdma, "RNBD" },
        { "sys/class/rtrs-server/*/paths/*", "hca_name", NULL, mark_rdma, "RNBD target" },
        { "sys/bus/rbd/devices/*", "client_addr", NULL, mark_own, "Ceph RBD" },
        { "sys/kernel/config/nvmet/ports/*", "addr_traddr", "subsystems", mark_own, "NVMe target" },
        { "sys/kernel/config/target/iscsi/*/tpgt_*/np/*", NULL, NULL, mark_own, "LIO target" },
};

static int mark_network_user(const Critical *c, const char *dir, const void *userdata) {
        const NetworkUser *user = userdata;
        _cleanup_free_ char *path = NULL, *active = NULL;
        _cleanup_names_ char **names = NULL;
        char text[SYSFS_ATTRIBUTE_MAX];
        size_t n = 0;
        int r;

        if (!user->file)
                return user->mark(c, critical_last_component(dir), user->use);
        if (user->active) {
                active = string_format("%s/%s", dir, user->active);
                if (!active)
                        return -ENOMEM;
                if (sysfs_read(c->fs, active, text, sizeof(text)) >= 0)
                        n = !streq(text, "0");
                else if ((r = critical_list(c, active, &names, &n)) < 0)
                        return r;
                if (n == 0)
                        return 0;
        }
        path = string_format("%s/%s", dir, user->file);
        if (!path)
                return -ENOMEM;
        r = sysfs_read(c->fs, path, text, sizeof(text));
        return r < 0 ? critical_unreadable(c, path, r) : user->mark(c, text, user->use);
}

/* Reads an attribute of an NVMe controller. Returns 1, 0 when it cannot be read, or -ENOMEM. */
static int read_nvme(const Critical *c, const char *dir, const char *file, char buf[static SYSFS_ATTRIBUTE_MAX]) {
        _cleanup_free_ char *path = string_format("%s/%s", dir, file);
        int r = path ? sysfs_read(c->fs, path, buf, SYSFS_ATTRIBUTE_MAX) : -ENOMEM;

        return r < 0 ? critical_unreadable(c, path ?: dir, r) : 1;
}

/*
 * Marks devices by an NVMe controller's address, "traddr=10.1.0.5,trsvcid=4420,host_iface=eth0,src_addr=10.1.0.9". The
 * host's addresses are noted beside the controller's, because routing rules can depend on them. With host_iface only
 * that interface is marked.
 */
static int mark_nvme(const Critical *c, const char *dir, const void *userdata _unused_) {
        _cleanup_free_ char *use = string_format("%s (remote NVMe)", critical_last_component(dir));
        char transport[SYSFS_ATTRIBUTE_MAX], address[SYSFS_ATTRIBUTE_MAX], *rest = address, *option;
        const char *values[4] = { NULL };
        static const char *const keys[] = { "host_iface=", "traddr=", "host_traddr=", "src_addr=" };
        int r = use ? read_nvme(c, dir, "transport", transport) : -ENOMEM;

        if (r <= 0 || !(streq(transport, "tcp") || streq(transport, "rdma")))
                return MIN(r, 0);
        r = read_nvme(c, dir, "address", address);
        if (r <= 0)
                return r;
        while ((option = strsep(&rest, ",\n")))
                for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                        if (strncmp(option, keys[i], strlen(keys[i])) == 0)
                                values[i] = option + strlen(keys[i]);
        if (values[0])
                return critical_mark_interface(c, values[0], use);
        for (size_t i = 1; i < ELEMENTSOF(keys) && r >= 0; i++)
                if (values[i])
                        r = critical_note_address(c, values[i], i > 1, use);
        return MIN(r, 0);
}

int critical_mark_peers(const Critical *c) {
        int r = critical_lines(c, "proc/net/nfsfs/servers", true, note_nfs_server);

        for (size_t i = 0; i < ELEMENTSOF(network_users) && r >= 0; i++)
                r = critical_walk(c, network_users[i].pattern, mark_network_user, &network_users[i]);
        return r < 0 ? r : critical_walk(c, "sys/class/nvme/*", mark_nvme, NULL);
}
