/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Translates the core numbers of Slurm to the CPU numbers of the kernel. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "cores.h"
#include "model/cpuset.h"
#include "util/fileio.h"
#include "util/strings.h"

#define LIST_MAX ((size_t) 1 << 16)

/* A CPU. socket, core: the lowest CPU of its socket and of its core. package: the kernel's number of the socket. */
typedef struct Place {
        unsigned socket, core, cpu;
        unsigned package;
} Place;

static int compare_places(const void *a, const void *b) {
        const Place *x = a, *y = b;

        if (x->socket != y->socket)
                return x->socket < y->socket ? -1 : 1;
        if (x->core != y->core)
                return x->core < y->core ? -1 : 1;
        return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int read_list(int dir_fd, const char *name, CpuSet *ret) {
        _cleanup_free_ char *text = NULL;
        int r = read_file_at(dir_fd, name, LIST_MAX, &text, NULL);

        return r < 0 ? r : cpuset_parse(text, ret);
}

/* Reads the lowest CPU of the CPU's core. Linux before 5.3 has only thread_siblings_list. */
static int read_core(int dir_fd, unsigned cpu, unsigned *ret) {
        char name[64];
        CpuSet set;
        int r;

        (void) snprintf(name, sizeof(name), "cpu%u/topology/core_cpus_list", cpu);
        r = read_list(dir_fd, name, &set);
        if (r == -ENOENT) {
                (void) snprintf(name, sizeof(name), "cpu%u/topology/thread_siblings_list", cpu);
                r = read_list(dir_fd, name, &set);
        }
        if (r < 0)
                return r;
        if (cpuset_is_empty(&set))
                return -EINVAL;
        *ret = (unsigned) cpuset_next(&set, 0);
        return 0;
}

/* Reads the kernel's number of the CPU's socket. *ret is 0 where the kernel writes -1 because it knows no sockets. */
static int read_package(int dir_fd, unsigned cpu, unsigned *ret) {
        _cleanup_free_ char *text = NULL;
        uint64_t package = 0;
        char name[64];
        int r;

        (void) snprintf(name, sizeof(name), "cpu%u/topology/physical_package_id", cpu);
        r = read_file_at(dir_fd, name, LIST_MAX, &text, NULL);
        if (r < 0)
                return r;
        text[strcspn(text, "\n")] = '\0';
        (void) parse_unsigned(text, UINT_MAX, &package);
        *ret = (unsigned) package;
        return 0;
}

static int read_place(int dir_fd, unsigned cpu, Place *places, size_t n) {
        Place place = { .cpu = cpu, .socket = cpu };
        int r = read_core(dir_fd, cpu, &place.core);

        if (r == 0)
                r = read_package(dir_fd, cpu, &place.package);
        for (size_t i = n; i-- > 0;)
                if (places[i].package == place.package)
                        place.socket = places[i].socket;
        places[n] = place;
        return r;
}

/* Lists the online CPUs of the machine in the order of Slurm's core numbers. The caller frees *ret. */
static int read_places(int dir_fd, Place **ret, size_t *ret_n) {
        _cleanup_free_ Place *places = NULL;
        CpuSet online;
        size_t n = 0;
        int r = read_list(dir_fd, "online", &online);

        for (int cpu = r < 0 ? -1 : cpuset_next(&online, 0); cpu >= 0; cpu = cpuset_next(&online, (unsigned) cpu + 1)) {
                r = ARRAY_RESERVE(places, n);
                if (r < 0)
                        return r;
                r = read_place(dir_fd, (unsigned) cpu, places, n);
                if (r < 0)
                        return r;
                n++;
        }
        if (r < 0)
                return r;
        if (n > 0)
                qsort(places, n, sizeof(*places), compare_places);
        *ret = TAKE_PTR(places);
        *ret_n = n;
        return 0;
}

int cpus_of_slurm_cores(const char *root, const char *cores, char **ret) {
        _cleanup_free_ char *path = string_format("%s/sys/devices/system/cpu", root);
        _cleanup_close_ int dir_fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        _cleanup_free_ Place *places = NULL;
        CpuSet wanted, found = { 0 };
        size_t n = 0;
        unsigned core = 0;
        int r;

        if (!path)
                return -ENOMEM;
        if (dir_fd < 0)
                return -errno;
        r = cpuset_parse(cores, &wanted);
        if (r == 0)
                r = read_places(dir_fd, &places, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && places[i].core != places[i - 1].core)
                        core++;
                if (cpuset_has(&wanted, core))
                        cpuset_add(&found, places[i].cpu);
        }
        if (n == 0 || cpuset_next(&wanted, core + 1) >= 0)
                return -EINVAL;
        *ret = cpuset_format(&found);
        return *ret ? 0 : -ENOMEM;
}
