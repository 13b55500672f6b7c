/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads xenstore. Messages are described in xen/include/public/io/xs_wire.h, requests and answers in
 * docs/misc/xenstore.txt of Xen. */

#include "xenstore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fileio.h"
#include "util/strings.h"

#define SOCKET       "/run/xenstored/socket" /* where a xenstored in dom0 listens */
#define DEVICE       "/dev/xen/xenbus"       /* the kernel's connection, also to a xenstored in another domain */
#define BACKENDS     "/local/domain/0/backend/pci"
#define NOTES        "/libxl/pci"
#define PAYLOAD_MAX  4096U /* XENSTORE_PAYLOAD_MAX */
#define ATTEMPTS_MAX 5U

typedef enum MessageType {
        XS_DIRECTORY = 1,
        XS_READ = 2,
        XS_TRANSACTION_START = 6,
        XS_TRANSACTION_END = 7,
        XS_ERROR = 16,
} MessageType;

typedef struct Message {
        uint32_t type, request, transaction, length;
        char payload[PAYLOAD_MAX + 1]; /* of a request: its text; of an answer: what was received, and a NUL */
} Message;
#define HEADER_SIZE offsetof(Message, payload)

typedef struct Store {
        int fd;
        uint32_t transaction;
        XenGuests *guests;
} Store;

static int connect_socket(const char *path) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int r = fd < 0 ? -errno : connect_unix(fd, path);

        return r < 0 ? r : TAKE_FD(fd);
}

/* Opens a connection. XENSTORED_PATH takes precedence, as in libxenstore. */
static int open_store(void) {
        const char *path = getenv("XENSTORED_PATH");
        int fd = connect_socket(path ?: SOCKET);

        if (path || (fd != -ENOENT && fd != -ECONNREFUSED))
                return fd;
        fd = open(DEVICE, O_RDWR | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int receive_bytes(int fd, void *buf, size_t size) {
        for (size_t at = 0; at < size;) {
                ssize_t n = TEMP_FAILURE_RETRY(read(fd, (char *) buf + at, size - at));

                if (n <= 0)
                        return n < 0 ? -errno : -ECONNRESET;
                at += (size_t) n;
        }
        return 0;
}

/* Converts the name of an error, which xenstore sends, to an errno. */
static int error_of(const Message *m) {
        return streq(m->payload, "ENOENT") ? -ENOENT : streq(m->payload, "EAGAIN") ? -EAGAIN : -EIO;
}

/* Sends a request with one string and receives the answer in *m. Returns 0 or a negative errno, also for an error that
 * xenstore answers. */
static int call_store(const Store *s, MessageType type, const char *argument, Message *m) {
        const size_t size = strlen(argument) + 1;
        ssize_t n;
        int r;

        *m = (Message) { .type = type, .transaction = s->transaction, .length = (uint32_t) size };
        if (size > PAYLOAD_MAX)
                return -ENAMETOOLONG;
        memcpy(m->payload, argument, size);
        n = TEMP_FAILURE_RETRY(write(s->fd, m, HEADER_SIZE + size));
        if (n < 0)
                return -errno;
        if ((size_t) n != HEADER_SIZE + size)
                return -EIO;
        r = receive_bytes(s->fd, m, HEADER_SIZE);
        if (r < 0)
                return r;
        if (m->length > PAYLOAD_MAX || (m->type != type && m->type != XS_ERROR))
                return -EBADMSG;
        r = receive_bytes(s->fd, m->payload, m->length);
        m->payload[m->length] = '\0';
        return r < 0 ? r : m->type == XS_ERROR ? error_of(m) : 0;
}

/* Reads the name of a guest; sets name in any case. -ENOENT: the guest does not exist any more. */
static int read_name(const Store *s, uint32_t domain, char *name) {
        Message m;
        char path[64];
        int r;

        (void) snprintf(path, sizeof(path), "/local/domain/%u/name", domain);
        r = call_store(s, XS_READ, path, &m);
        (void) snprintf(name, XEN_NAME_MAX, "%.*s", (int) XEN_NAME_MAX - 1, r == 0 ? QUOTABLE(m.payload) : "no name");
        return r;
}

static int add_guest_device(const Store *s, PciAddress address, uint32_t domain, const char *name) {
        XenGuestDevice *device;

        if (s->guests->n == XEN_GUEST_DEVICES_MAX)
                return -E2BIG;
        if (ARRAY_RESERVE(s->guests->devices, s->guests->n) < 0)
                return -ENOMEM;
        device = &s->guests->devices[s->guests->n++];
        *device = (XenGuestDevice) { .domain = domain, .address = address };
        strcpy(device->name, name);
        return 0;
}

static int take_device(const Store *s, const char *directory, const char *entry, uint32_t domain, const char *name) {
        PciAddress address;
        char path[256];
        Message m;
        int r;

        (void) snprintf(path, sizeof(path), "%s/%.16s", directory, entry);
        r = call_store(s, XS_READ, path, &m);
        if (r < 0)
                return r;
        r = pci_address_parse(m.payload, &address);
        return r < 0 ? r : add_guest_device(s, address, domain, name);
}

/* Reads the devices of one backend, BACKENDS/DOMAIN/NUMBER. */
static int read_backend(const Store *s, const char *directory, uint32_t domain) {
        char name[XEN_NAME_MAX];
        Message list;
        int r = call_store(s, XS_DIRECTORY, directory, &list);

        if (r < 0)
                return r;
        if ((r = read_name(s, domain, name)) == -ENOENT)
                r = 0;
        for (const char *entry = list.payload; r == 0 && entry < list.payload + list.length; entry += strlen(entry) + 1)
                if (strncmp(entry, "dev-", strlen("dev-")) == 0)
                        r = take_device(s, directory, entry, domain, name);
        return r;
}

static int read_domain(const Store *s, const char *domain) {
        char directory[128];
        uint64_t id;
        Message list;
        int r = parse_unsigned(domain, UINT16_MAX, &id);

        if (r < 0)
                return -EBADMSG;
        (void) snprintf(directory, sizeof(directory), BACKENDS "/%" PRIu64, id);
        r = call_store(s, XS_DIRECTORY, directory, &list);
        if (r < 0)
                return r;
        for (const char *entry = list.payload; entry < list.payload + list.length; entry += strlen(entry) + 1) {
                char path[192];

                (void) snprintf(path, sizeof(path), "%s/%.16s", directory, entry);
                r = read_backend(s, path, (uint32_t) id);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Parses the name of an entry of /libxl/pci, which is the PCI address of a device: "0000-03-10-1". */
static int parse_note(const char *entry, PciAddress *ret) {
        static const char separators[] = "::.";
        char text[PCI_ADDRESS_STRING_MAX];

        if (strlen(entry) >= sizeof(text))
                return -EINVAL;
        strcpy(text, entry);
        for (size_t i = 0; i < strlen(separators); i++) {
                char *dash = strchr(text, '-');

                if (!dash)
                        return -EINVAL;
                *dash = separators[i];
        }
        return pci_address_parse(text, ret);
}

/* Adds the device of an entry of NOTES. Skips the device if its guest has ended. */
static int take_note(const Store *s, const char *entry) {
        char path[64], name[XEN_NAME_MAX];
        PciAddress address;
        uint64_t id;
        Message m;
        int r = parse_note(entry, &address);

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), NOTES "/%.16s/domid", entry);
        r = call_store(s, XS_READ, path, &m);
        if (r >= 0)
                r = parse_unsigned(m.payload, UINT16_MAX, &id);
        if (r >= 0)
                r = read_name(s, (uint32_t) id, name);
        if (r >= 0)
                r = add_guest_device(s, address, (uint32_t) id, name);
        return r == -ENOENT ? 0 : MIN(r, 0);
}

/* Calls take() for each entry of a directory. The directory does not exist before the first guest with a PCI device. */
static int read_entries(const Store *s, const char *directory, int (*take)(const Store *s, const char *entry)) {
        Message list;
        int r = call_store(s, XS_DIRECTORY, directory, &list);

        if (r == -ENOENT)
                return 0;
        for (const char *entry = list.payload; r == 0 && entry < list.payload + list.length; entry += strlen(entry) + 1)
                r = take(s, entry);
        return r;
}

/* Uses a transaction, because libxl renumbers a guest's devices when it removes one. -EAGAIN: a concurrent change. */
static int read_once(Store *s) {
        Message m;
        uint64_t id;
        int r, end;

        s->transaction = 0;
        r = call_store(s, XS_TRANSACTION_START, "", &m);
        if (r < 0)
                return r;
        r = parse_unsigned(m.payload, UINT32_MAX, &id);
        if (r < 0)
                return r;
        s->transaction = (uint32_t) id;
        r = read_entries(s, BACKENDS, read_domain);
        /* libxl writes the entry of NOTES before it gives the device to the guest. */
        if (r == 0)
                r = read_entries(s, NOTES, take_note);
        end = call_store(s, XS_TRANSACTION_END, "T", &m);
        return end < 0 ? end : r;
}

int xenstore_read_guests(XenGuests *ret) {
        _cleanup_close_ int fd = open_store();
        Store s = { .fd = fd, .guests = ret };
        int r = fd < 0 ? fd : -EAGAIN;

        for (unsigned i = 0; r == -EAGAIN && i < ATTEMPTS_MAX; i++) {
                ret->n = 0;
                r = read_once(&s);
        }
        return r;
}
