/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A libnvfm.so.1 for tests, with a Fabric Manager in the directory $NVFM_DIR. Without the directory nobody answers.
 *
 * machine    hgx-a100, hgx-h100 or hgx-b200
 * active     the ids of the active partitions, separated by spaces
 * failed     lines with the address of a GPU, as 00000000:1B:00.0: its NVLinks failed
 * log        a line for each call that reaches the manager
 * fail       lines "FUNCTION RESULT": the call does nothing and has this result
 * hang       lines with a FUNCTION: the call does what it should, but does not return while the line is there
 * die        a number: the manager ends at this call after the next start, before or (negative) after doing it
 * dead       exists: the manager has ended
 * restarted  exists: the manager waits to be told the active partitions
 * version    the version of the connection that the manager knows, if not the present one
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MAX      64U

enum {
        OK = 0,
        BAD = -1,
        GENERIC = -2,
        NOT_INITIALIZED = -4,
        OTHER_VERSION = -6,
        IN_USE = -7,
        NOT_READY = -8,
        NO_CONNECTION = -9
};

struct gpu {
        uint32_t id;
        char uuid[80], bus[32];
        uint32_t links, max_links, mbps;
};
struct partition {
        uint32_t id, is_active, n;
        struct gpu gpus[16];
};
struct partitions {
        uint32_t version, n, max;
        struct partition list[MAX];
};
struct active {
        uint32_t version, n, ids[MAX];
};

struct failed {
        char uuid[80], bus[32];
        uint32_t n_ports, ports[64];
};
struct failed_list {
        uint32_t version, n_gpus, n_switches;
        struct failed gpus[16], switches[12];
};

/* A letter stands for a GPU, from 1 to 16. */
static const char *const a100[] = { "abcdefghijklmnop",
                                    "abcdefgh",
                                    "ijklmnop",
                                    "abcdijkl",
                                    "efghmnop",
                                    "abcdmnop",
                                    "efghijkl",
                                    "abcd",
                                    "efgh",
                                    "ijkl",
                                    "mnop",
                                    "ab",
                                    "cd",
                                    "ef",
                                    "gh",
                                    "ij",
                                    "kl",
                                    "mn",
                                    "op",
                                    "a",
                                    "b",
                                    "c",
                                    "d",
                                    "e",
                                    "f",
                                    "g",
                                    "h",
                                    "i",
                                    "j",
                                    "k",
                                    "l",
                                    "m",
                                    "n",
                                    "o",
                                    "p",
                                    NULL };
static const char *const h100[] = { "abcdefgh", "abcd", "efgh", "ac", "bd", "eg", "fh", "a",
                                    "b",        "c",    "d",    "e",  "f",  "g",  "h",  NULL };
static const char *const b200[] = { "",  "abcdefgh", "abcd", "efgh", "ab", "cd", "ef", "gh", "a",
                                    "b", "c",        "d",    "e",    "f",  "g",  "h",  NULL };

static bool is_initialized;
static int handle;

static FILE *open_file(const char *name, const char *mode) {
        const char *dir = getenv("NVFM_DIR");
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s/%s", dir ? dir : "/nonexistent", name);
        return fopen(path, mode);
}

static bool has_file(const char *name) {
        FILE *f = open_file(name, "re");

        return f && fclose(f) == 0;
}

/* Finds the number after the word in the file, or without a word in a line of its own. */
static bool find_line(const char *file, const char *word, int *ret) {
        FILE *f = open_file(file, "re");
        char line[256], name[128];
        bool found = false;

        while (f && !found && fgets(line, sizeof(line), f)) {
                *ret = 0;
                found = word ? sscanf(line, "%127s %d", name, ret) >= 1 && strcmp(name, word) == 0
                             : sscanf(line, "%d", ret) == 1;
        }
        if (f)
                (void) fclose(f);
        return found;
}

static const char *const *table(void) {
        FILE *f = open_file("machine", "re");
        char name[32] = "";

        if (f && fscanf(f, "%31s", name) != 1)
                name[0] = '\0';
        if (f)
                (void) fclose(f);
        return strcmp(name, "hgx-a100") == 0 ? a100 : strcmp(name, "hgx-b200") == 0 ? b200 : h100;
}

static unsigned count(void) {
        unsigned n = 0;

        while (table()[n])
                n++;
        return n;
}

static uint64_t read_active(void) {
        FILE *f = open_file("active", "re");
        uint64_t active = 0;
        unsigned id;

        while (f && fscanf(f, "%u", &id) == 1)
                active |= UINT64_C(1) << id;
        if (f)
                (void) fclose(f);
        return active;
}

static int write_active(uint64_t active) {
        FILE *f = open_file("active", "we");

        if (!f)
                return GENERIC;
        for (unsigned id = 0; id < MAX; id++)
                if (active >> id & 1)
                        (void) fprintf(f, "%u ", id);
        return fclose(f) == 0 ? OK : GENERIC;
}

static void end_manager(void) {
        FILE *f = open_file("dead", "we");

        if (f)
                (void) fclose(f);
}

/* Counts down the calls before the manager ends. */
static bool dies(bool after) {
        int left;
        FILE *f;

        if (!find_line("die", NULL, &left) || left == 0 || (left < 0) != after)
                return false;
        left += after ? 1 : -1;
        f = open_file("die", "we");
        if (f) {
                (void) fprintf(f, "%d\n", left);
                (void) fclose(f);
        }
        return left == 0;
}

/* Begins a call. Returns 0, or the result that it fails with. */
static int begin(const char *function, unsigned id) {
        FILE *f;
        int result;

        if (!is_initialized)
                return NOT_INITIALIZED;
        if (has_file("dead") || !has_file("machine"))
                return NO_CONNECTION;
        if (dies(false)) {
                end_manager();
                return NO_CONNECTION;
        }
        f = open_file("log", "ae");
        if (f) {
                (void) fprintf(f, id == ~0U ? "%s\n" : "%s %u\n", function, id);
                (void) fclose(f);
        }
        return find_line("fail", function, &result) ? result : OK;
}

static int end(const char *function, int result) {
        int unused;

        if (dies(true)) {
                end_manager();
                return NO_CONNECTION;
        }
        while (find_line("hang", function, &unused))
                (void) nanosleep(&(struct timespec) { .tv_nsec = 5 * 1000 * 1000 }, NULL);
        return result;
}

EXPORTED int fmLibInit(void);
EXPORTED int fmLibInit(void) {
        is_initialized = true;
        return OK;
}

EXPORTED int fmLibShutdown(void);
EXPORTED int fmLibShutdown(void) {
        is_initialized = false;
        return OK;
}

EXPORTED int fmConnect(const uint32_t *params, void **ret);
EXPORTED int fmConnect(const uint32_t *params, void **ret) {
        int r = begin("fmConnect", ~0U), version = 0x100010c;

        (void) find_line("version", NULL, &version);
        if (r == OK && (int) *params != version)
                r = OTHER_VERSION;
        if (r != OK)
                return r;
        *ret = &handle;
        return end("fmConnect", OK);
}

EXPORTED int fmDisconnect(void *of);
EXPORTED int fmDisconnect(void *of) {
        return of == &handle ? OK : BAD;
}

static void fill(struct partition *p, unsigned id) {
        const char *gpus = table()[id];

        *p = (struct partition) { .id = id, .is_active = read_active() >> id & 1, .n = (uint32_t) strlen(gpus) };
        for (unsigned i = 0; i < p->n; i++)
                p->gpus[i] = (struct gpu) {
                        .id = (uint32_t) (gpus[i] - 'a' + 1), .links = p->n > 1 ? 18 : 0, .max_links = 18, .mbps = 26562
                };
}

EXPORTED int fmGetSupportedFabricPartitions(void *of, struct partitions *ret);
EXPORTED int fmGetSupportedFabricPartitions(void *of, struct partitions *ret) {
        int r = begin("fmGetSupportedFabricPartitions", ~0U);

        if (r == OK && of != &handle)
                r = BAD;
        if (r == OK && ret->version != 0x102030c)
                r = OTHER_VERSION;
        if (r == OK && has_file("restarted"))
                r = NOT_READY;
        if (r != OK)
                return r;
        ret->n = 0;
        for (unsigned id = 0; id < count(); id++)
                if (*table()[id])
                        fill(&ret->list[ret->n++], id);
        ret->max = ret->n;
        return end("fmGetSupportedFabricPartitions", OK);
}

static int change(const char *function, const void *of, unsigned id, bool active) {
        int r = begin(function, id);
        uint64_t now = read_active();
        int unused;

        if (r == OK && find_line("fail", function, &unused)) /* "fail FUNCTION 0": success without a change */
                return end(function, OK);
        if (r == OK && (of != &handle || id >= count() || !*table()[id]))
                r = BAD;
        if (r == OK && has_file("restarted"))
                r = NOT_READY;
        if (r == OK && !active && !(now >> id & 1))
                r = NOT_INITIALIZED;
        for (unsigned other = 0; r == OK && active && other < count(); other++)
                if (now >> other & 1 && strpbrk(table()[id], table()[other]))
                        r = IN_USE;
        if (r == OK)
                r = write_active(active ? now | UINT64_C(1) << id : now & ~(UINT64_C(1) << id));
        return r == OK ? end(function, OK) : r;
}

EXPORTED int fmActivateFabricPartition(void *of, uint32_t id);
EXPORTED int fmActivateFabricPartition(void *of, uint32_t id) {
        return change("fmActivateFabricPartition", of, id, true);
}

EXPORTED int fmDeactivateFabricPartition(void *of, uint32_t id);
EXPORTED int fmDeactivateFabricPartition(void *of, uint32_t id) {
        return change("fmDeactivateFabricPartition", of, id, false);
}

EXPORTED int fmSetActivatedFabricPartitions(void *of, const struct active *list);
EXPORTED int fmSetActivatedFabricPartitions(void *of, const struct active *list) {
        int r = begin("fmSetActivatedFabricPartitions", list->n);
        const char *dir = getenv("NVFM_DIR");
        uint64_t active = 0;
        char path[4096];

        if (r == OK && of != &handle)
                r = BAD;
        if (r == OK && list->version != 0x1000108)
                r = OTHER_VERSION;
        for (unsigned i = 0; r == OK && i < list->n && i < MAX; i++)
                active |= UINT64_C(1) << (list->ids[i] % MAX);
        if (r == OK)
                r = write_active(active);
        (void) snprintf(path, sizeof(path), "%s/restarted", dir);
        if (r == OK)
                (void) unlink(path);
        return r == OK ? end("fmSetActivatedFabricPartitions", OK) : r;
}

EXPORTED int fmGetNvlinkFailedDevices(void *of, struct failed_list *ret);
EXPORTED int fmGetNvlinkFailedDevices(void *of, struct failed_list *ret) {
        int r = begin("fmGetNvlinkFailedDevices", ~0U);
        FILE *f;

        if (r == OK && of != &handle)
                r = BAD;
        if (r == OK && ret->version != 0x10028bc)
                r = OTHER_VERSION;
        if (r == OK && has_file("restarted"))
                r = NOT_READY;
        if (r != OK)
                return r;
        ret->n_gpus = ret->n_switches = 0;
        f = open_file("failed", "re");
        while (f && ret->n_gpus < 16 && fscanf(f, "%31s", ret->gpus[ret->n_gpus].bus) == 1)
                ret->gpus[ret->n_gpus++].n_ports = 1;
        if (f)
                (void) fclose(f);
        return end("fmGetNvlinkFailedDevices", OK);
}
