/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The eswitch mode and the representors of VFs: devlink's answers, and what is made of them. */

#include <errno.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "unit.h"

#include "host/eswitch.h"
#include "sentences.h"
#include "steps/step.h"
#include "treefixture.h"

#define FAMILY_ID    21
#define NO_MODE      UINT16_MAX
#define PF_TEXT      "0000:01:00.0"
#define PF_DIRECTORY "pci0000:00/0000:00:01.0/" PF_TEXT

static const PciAddress pf = { .bus = 1 };

typedef struct Datagram {
        uint8_t data[512];
        size_t size;
} Datagram;

/* A fake kernel, which answers as genetlink.c and devlink of Linux 6.12. */
static struct {
        int family_error, error; /* errnos of CTRL_CMD_GETFAMILY and of DEVLINK_CMD_ESWITCH_GET */
        const char *family, *device;
        uint16_t family_id, mode, type; /* type: message type of the answer; 0: the correct one */
        size_t mode_size, id_size;
        bool cuts_family;    /* cut and shrink apply to the family's reply, else to the other one */
        size_t cut;          /* bytes of a reply that arrive; 0: all */
        size_t shrink;       /* as cut, and the message's length says the same */
        size_t whole;        /* complete size of that reply */
        bool says_nothing;   /* acknowledges only */
        Datagram asked;      /* the last DEVLINK_CMD_ESWITCH_GET */
        Datagram replies[2]; /* the answer and its acknowledgement */
        unsigned n_replies, next_reply, asks;
} kernel;

static void put(Datagram *d, uint16_t type, const void *data, size_t size) {
        struct nlattr header = { .nla_len = (uint16_t) (NLA_HDRLEN + size), .nla_type = type };

        assert_true(d->size + NLA_HDRLEN + NLA_ALIGN(size) <= sizeof(d->data));
        memcpy(d->data + d->size, &header, sizeof(header));
        memcpy(d->data + d->size + NLA_HDRLEN, data, size);
        d->size += NLA_HDRLEN + NLA_ALIGN(size);
}

static void put_string(Datagram *d, uint16_t type, const char *text) {
        if (text)
                put(d, type, text, strlen(text) + 1);
}

static Datagram *new_reply(const struct nlmsghdr *request, uint16_t type, const void *data, size_t size) {
        Datagram *d = &kernel.replies[kernel.n_replies++];
        struct nlmsghdr header = *request;

        memset(d, 0, sizeof(*d));
        header.nlmsg_type = type;
        header.nlmsg_flags = 0;
        memcpy(d->data, &header, sizeof(header));
        memcpy(d->data + sizeof(header), data, size);
        d->size = sizeof(header) + NLMSG_ALIGN(size);
        return d;
}

static void end_reply(Datagram *d, bool damaged) {
        uint32_t size = (uint32_t) d->size;

        if (damaged)
                kernel.whole = size;
        if (damaged && kernel.shrink > 0)
                d->size = size = (uint32_t) MIN(kernel.shrink, d->size);
        memcpy(d->data, &size, sizeof(size));
        if (damaged && kernel.cut > 0)
                d->size = MIN(kernel.cut, d->size);
}

static void reply_error(const struct nlmsghdr *request, int error) {
        struct nlmsgerr e = { .error = error, .msg = *request };

        end_reply(new_reply(request, NLMSG_ERROR, &e, sizeof(e)), false);
}

static int reply_family(const struct nlmsghdr *request) {
        Datagram *d;

        if (kernel.family_error != 0)
                return -kernel.family_error;
        d = new_reply(request, GENL_ID_CTRL, &(struct genlmsghdr) { CTRL_CMD_NEWFAMILY, 2, 0 }, GENL_HDRLEN);
        put_string(d, CTRL_ATTR_FAMILY_NAME, kernel.family);
        if (kernel.family_id != 0)
                put(d, CTRL_ATTR_FAMILY_ID, &kernel.family_id, kernel.id_size);
        end_reply(d, kernel.cuts_family);
        return 0;
}

static int reply_eswitch(const struct nlmsghdr *request) {
        Datagram *d;

        kernel.asks++;
        memcpy(kernel.asked.data, request, request->nlmsg_len);
        kernel.asked.size = request->nlmsg_len;
        if (kernel.error != 0 || kernel.says_nothing)
                return -kernel.error;
        d = new_reply(request, kernel.type ?: request->nlmsg_type,
                      &(struct genlmsghdr) { DEVLINK_CMD_ESWITCH_GET, 0, 0 }, GENL_HDRLEN);
        put_string(d, DEVLINK_ATTR_BUS_NAME, "pci");
        put_string(d, DEVLINK_ATTR_DEV_NAME, kernel.device);
        if (kernel.mode != NO_MODE)
                put(d, DEVLINK_ATTR_ESWITCH_MODE, &kernel.mode, kernel.mode_size);
        put(d, DEVLINK_ATTR_ESWITCH_INLINE_MODE, &(uint8_t) { 0 }, 1);
        put(d, 9999, "newer", 5);
        end_reply(d, !kernel.cuts_family);
        return 0;
}

static int on_send(struct nl_sock *sk, struct nl_msg *msg) {
        struct nlmsghdr *request = nlmsg_hdr(msg);
        bool control = request->nlmsg_type == GENL_ID_CTRL;

        kernel.n_replies = kernel.next_reply = 0;
        assert_int_equal(request->nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK);
        reply_error(request, control ? reply_family(request) : reply_eswitch(request));
        return (int) request->nlmsg_len;
}

/* The buffer has exactly the received size, so that the sanitizer sees any read beyond. */
static int on_receive(struct nl_sock *sk, struct sockaddr_nl *from, unsigned char **ret, struct ucred **creds) {
        const Datagram *d = &kernel.replies[kernel.next_reply];

        assert_true(kernel.next_reply++ < kernel.n_replies); /* another receive would block for ever */
        *from = (struct sockaddr_nl) { .nl_family = AF_NETLINK };
        *ret = malloc(d->size);
        assert_non_null(*ret);
        memcpy(*ret, d->data, d->size);
        return (int) d->size;
}

/* Replaces the functions of libnl. */
int nl_connect(struct nl_sock *sk, int protocol) {
        struct nl_cb *cb = nl_socket_get_cb(sk);

        assert_int_equal(protocol, NETLINK_GENERIC);
        nl_cb_overwrite_send(cb, on_send);
        nl_cb_overwrite_recv(cb, on_receive);
        nl_cb_put(cb);
        return 0;
}

static int setup(void **state) {
        memset(&kernel, 0, sizeof(kernel));
        kernel.family = "devlink";
        kernel.family_id = FAMILY_ID;
        kernel.device = PF_TEXT;
        kernel.mode_size = kernel.id_size = sizeof(uint16_t);
        return 0;
}

static int setup_tree(void **state) {
        Fixture *f = fixture_new(state);

        tree_device(f->root, PF_DIRECTORY, "0x15b3", "0x101d", "0x020000");
        return setup(NULL);
}

static void assert_asked(int want, bool switchdev) {
        bool told = false;

        assert_int_equal(eswitch_ask(pf, &told), want);
        assert_int_equal(told, switchdev);
}

TEST_WITH(test_modes, setup, NULL) {
        for (kernel.mode = 0; kernel.mode < 6; kernel.mode++)
                assert_asked(0, kernel.mode == DEVLINK_ESWITCH_MODE_SWITCHDEV);
        /* The driver reports other properties of the eswitch. */
        kernel.mode = NO_MODE;
        assert_asked(0, false);
}

/* The request is DEVLINK_CMD_ESWITCH_GET for that device, with the family number from the kernel. */
TEST_WITH(test_request, setup, NULL) {
        const struct nlmsghdr *asked = (const void *) kernel.asked.data;
        const struct genlmsghdr *header = (const void *) (kernel.asked.data + NLMSG_HDRLEN);
        const uint8_t attributes[] = { 8,   0,   1,   0,   'p', 'c', 'i', 0,   17,  0,   2, 0, '0', '0',
                                       '0', '0', ':', '0', '1', ':', '0', '0', '.', '0', 0, 0, 0,   0 };

        kernel.family_id = 33;
        assert_asked(0, false);
        assert_int_equal(asked->nlmsg_type, 33);
        assert_int_equal(header->cmd, DEVLINK_CMD_ESWITCH_GET);
        assert_int_equal(header->version, DEVLINK_GENL_VERSION);
        assert_int_equal(kernel.asked.size, NLMSG_HDRLEN + GENL_HDRLEN + sizeof(attributes));
        assert_memory_equal(kernel.asked.data + NLMSG_HDRLEN + GENL_HDRLEN, attributes, sizeof(attributes));
}

TEST_WITH(test_errors, setup, NULL) {
        static const int errors[] = { EOPNOTSUPP, ENODEV, EPERM, EBUSY, EINVAL };

        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                kernel.error = errors[i];
                assert_asked(-errors[i], false);
        }
        assert_int_equal(kernel.asks, ELEMENTSOF(errors));
        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                kernel.family_error = errors[i];
                assert_asked(-errors[i], false);
        }
        kernel.family_error = ENOENT; /* built without devlink */
        assert_asked(-ENOENT, false);
        assert_int_equal(kernel.asks, ELEMENTSOF(errors));
}

TEST_WITH(test_malformed, setup, NULL) {
        kernel.device = "0000:02:00.0"; /* an answer about another device */
        assert_asked(-EPROTO, false);
        kernel.device = NULL;
        assert_asked(-EPROTO, false);
        kernel.device = PF_TEXT;
        kernel.mode_size = 1;
        assert_asked(-EPROTO, false);
        kernel.mode_size = 2;
        kernel.type = FAMILY_ID + 1;
        assert_asked(-EPROTO, false);
        kernel.type = 0;
        kernel.says_nothing = true;
        assert_asked(-EPROTO, false);
        kernel.says_nothing = false;
        assert_asked(0, false);
}

TEST_WITH(test_malformed_family, setup, NULL) {
        kernel.family = "nl80211";
        assert_asked(-EPROTO, false);
        kernel.family = NULL;
        assert_asked(-EPROTO, false);
        kernel.family = "devlink";
        kernel.id_size = 1;
        assert_asked(-EPROTO, false);
        kernel.id_size = 2;
        kernel.family_id = 0; /* no family number */
        assert_asked(-EPROTO, false);
        kernel.family_id = NLMSG_MIN_TYPE - 1; /* a number of netlink's own messages */
        assert_asked(-EPROTO, false);
        assert_int_equal(kernel.asks, 0);
}

/* A truncated message gives the correct answer or an error, and no further receive. */
TEST_WITH(test_truncated, setup, NULL) {
        for (unsigned family = 0; family < 2; family++) {
                size_t whole;

                kernel.cuts_family = family;
                kernel.cut = kernel.shrink = 0;
                kernel.mode = DEVLINK_ESWITCH_MODE_SWITCHDEV;
                assert_asked(0, true);
                whole = kernel.whole;
                for (kernel.cut = 1; kernel.cut < whole; kernel.cut++)
                        assert_asked(-EPROTO, false);
                kernel.cut = 0;
                for (kernel.shrink = NLMSG_HDRLEN; kernel.shrink < whole; kernel.shrink++) {
                        bool told = false;
                        int r = eswitch_ask(pf, &told);

                        assert_true(r == 0 || r == -EPROTO);
                        assert_true(r == 0 || !told);
                }
        }
}

TEST_WITH(test_representor, setup_tree, teardown) {
        Fixture *f = *state;
        char name[IF_NAMESIZE] = "none";

        assert_false(eswitch_find_representor(f->fs, pf, 3, name));
        tree_attribute(f->root, PF_TEXT, "net/eth0/phys_port_name", "p0");
        tree_attribute(f->root, PF_TEXT, "net/eth0_13/phys_port_name", "pf0vf13");
        tree_attribute(f->root, PF_TEXT, "net/eth1/ifindex", "7");
        tree_attribute(f->root, PF_TEXT, "net/sf/phys_port_name", "pf0sf3");
        tree_attribute(f->root, PF_TEXT, "net/far/phys_port_name", "c1pf0vf3");
        tree_attribute(f->root, PF_TEXT, "net/bad/phys_port_name", "pf0vf");
        assert_false(eswitch_find_representor(f->fs, pf, 3, name));
        assert_string_equal(name, "none");
        tree_attribute(f->root, PF_TEXT, "net/zeth/phys_port_name", "pf1vf3");
        assert_true(eswitch_find_representor(f->fs, pf, 3, name));
        assert_string_equal(name, "zeth");
        assert_true(eswitch_find_representor(f->fs, pf, 13, name));
        assert_string_equal(name, "eth0_13");
}

/* names: words that the sentence must have. legacy: the command that it must advise; NULL: it must not mention the
 * mode. */
static void assert_failure(int error, const char *found, const char *representor, const char *names,
                           const char *legacy) {
        Step s = { .kind = STEP_ATTRIBUTES, .device = pf, .vf = { .index = 3 } };
        _cleanup_free_ char *problem = NULL, *text = NULL;
        VfAttributes v = { 0 };

        vf_attributes_put(&s.vf.attributes, VF_VLAN, 5);
        assert_int_equal(vf_attributes_parse(found, &v, &problem), 0);
        text = step_failure_in_switchdev(&s, error, &v, representor);
        assert_non_null(strstr(text, "VF 3 of " PF_TEXT));
        assert_true(!names || strstr(text, names));
        assert_true(legacy ? strstr(text, legacy) != NULL : strstr(text, "switchdev") == NULL);
        record(found, text);
}

TEST(test_failure) {
        static const char legacy[] = "devlink dev eswitch set pci/" PF_TEXT " mode legacy";

        assert_failure(-EOPNOTSUPP, "vlan=0", "eth0_3", "eth0_3", legacy);
        assert_failure(-EOPNOTSUPP, "vlan=0", NULL, NULL, legacy);
        /* In switchdev mode the PF's own interface supports no attributes. */
        assert_failure(-EOPNOTSUPP, "", NULL, NULL, legacy);
        /* Failures with other reasons do not mention the mode. */
        assert_failure(-EOPNOTSUPP, "trust=on", "eth0_3", NULL, NULL);
        assert_failure(-EINVAL, "vlan=0", "eth0_3", NULL, NULL);
}

TEST(test_sentences) {
        assert_sentences("switchdev.txt");
}
