/* SPDX-License-Identifier: GPL-2.0-or-later */

/* proc/cpuinfo: of the first processor, which comes first. */

#include <fcntl.h>
#include <stdlib.h>

#include "host/cpuinfo.h"

#define CPUINFO_PART    8192U /* more than one processor takes; hundreds of them make a long file */
#define PHYS_BITS_LEAST 32U
#define PHYS_BITS_MOST  64U

/* "address sizes\t: 46 bits physical, 48 bits virtual" */
static unsigned find_phys_bits(const char *text) {
        const char *line = strstr(text, "\naddress sizes"), *colon;
        unsigned long bits;

        if (strncmp(text, "address sizes", 13) == 0)
                line = text;
        colon = line ? strchr(line, ':') : NULL;
        bits = colon ? strtoul(colon + 1, NULL, 10) : 0;
        return bits < PHYS_BITS_LEAST || bits > PHYS_BITS_MOST ? 0 : (unsigned) bits;
}

void cpuinfo_scan(const Sysfs *fs, Inventory *inv) {
        _cleanup_close_ int fd = sysfs_open(fs, "proc/cpuinfo", O_RDONLY | O_NONBLOCK);
        char text[CPUINFO_PART];
        ssize_t n, size = 0;

        while (fd >= 0 && size < (ssize_t) sizeof(text) - 1 &&
               (n = read(fd, text + size, sizeof(text) - 1 - (size_t) size)) > 0)
                size += n;
        text[size] = '\0';
        inv->phys_bits = find_phys_bits(text);
}
