/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * ledger ROOT CONFIG N DIR: writes N ledger files into DIR, each with an allocation of one VF that the configuration
 * offers on the machine below ROOT, in the order of addresses. Prints the addresses.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger/ledger-file.h"
#include "machine.h"

#include "util/strings.h"

static int save(int dir_fd, const Allocation *a) {
        _cleanup_free_ char *text = ledger_file_format(a), *name = NULL;
        _cleanup_close_ int fd = -1;
        size_t size;

        if (!text || string_replace(&name, "%s.json", a->name) < 0)
                return -1;
        size = strlen(text);
        fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        return fd >= 0 && write(fd, text, size) == (ssize_t) size ? 0 : -1;
}

static int add(const Machine *m, int dir_fd, const PciDevice *dev, unsigned number) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        HostView c = machine_view(m);

        if (plan_single(&c, dev, &a) < 0 || string_replace(&a->name, "held-%u", number) < 0)
                return -1;
        (void) snprintf(a->id, sizeof(a->id), "00000000-0000-4000-8000-%012u", number);
        a->generation = number;
        a->state = ALLOCATION_READY;
        return save(dir_fd, a);
}

int main(int argc, char *argv[]) {
        _cleanup_(machine_done) Machine m = { 0 };
        unsigned wanted = argc == 5 ? (unsigned) strtoul(argv[3], NULL, 10) : 0, n = 0;
        _cleanup_close_ int dir_fd = argc == 5 ? open(argv[4], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

        if (dir_fd < 0 || machine_read(&m, argv[1], argv[2]) < 0) {
                (void) fprintf(stderr, "usage: ledger ROOT CONFIG N DIR\n");
                return EXIT_FAILURE;
        }
        for (size_t i = 0; i < m.inventory->n_devices && n < wanted; i++) {
                const PciDevice *dev = &m.inventory->devices[i];

                if (dev->type != PCI_TYPE_VF || policy_verdict(m.policy, dev) != VERDICT_NONE)
                        continue;
                if (add(&m, dir_fd, dev, ++n) < 0)
                        return EXIT_FAILURE;
                puts(PCI_ADDRESS_STR(dev->address));
        }
        return n == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}
