/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The commands and reports of the directory .nodesim. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "attr.h"
#include "control.h"
#include "device.h"
#include "driver.h"
#include "dump.h"
#include "fault.h"
#include "load.h"
#include "uevent.h"
#include "util/tree.h"
#include "vgpu.h"

enum {
        FLOOD_MAX = 1000000
};

/* Cuts off and returns the first word. */
static char *next_word(char **rest) {
        char *word = *rest;
        size_t n = strcspn(word, " \t");

        *rest = word + n + strspn(word + n, " \t");
        word[n] = '\0';
        return *word ? word : NULL;
}

static int parse_int(const char *s, int *ret) {
        unsigned long n;

        if (!s || parse_number(s, &n) < 0 || n > INT_MAX)
                return -EINVAL;
        *ret = (int) n;
        return 0;
}

/* Faults. The arguments are N or NAME@ADDRESS, then those of the fault. */

static int fault_command(Sim *sim, FaultType type, char *rest) {
        const char *at = next_word(&rest);
        bool named = at && strchr(at, '@');
        int n = 0, number = 0;

        if (!named && (parse_int(at, &n) < 0 || n < 1))
                return -EINVAL;
        if (type == FAULT_FAIL || type == FAULT_FAIL_AFTER)
                number = tree_error_number(rest);
        else if (type == FAULT_DELAY && parse_int(rest, &number) < 0)
                return -EINVAL;
        if (number < 0)
                return number;
        fault_add(sim, type, (unsigned long) n, named ? at : NULL, number, type == FAULT_REPLACE ? rest : NULL);
        return 0;
}

static int command_delay_all(Sim *sim, char *rest) {
        int msec;

        if (parse_int(rest, &msec) < 0)
                return -EINVAL;
        fault_add(sim, FAULT_DELAY, FAULT_AT_EACH, NULL, msec, NULL);
        return 0;
}

static int command_jitter(Sim *sim, char *rest) {
        int seed, msec;

        if (parse_int(next_word(&rest), &seed) < 0 || parse_int(rest, &msec) < 0)
                return -EINVAL;
        sim->jitter_seed = (unsigned) seed;
        sim->jitter_msec = (unsigned) msec;
        return 0;
}

static int command_serial(Sim *sim, char *name) {
        Driver *driver = driver_find(sim, name);

        if (!driver)
                return -ENOENT;
        driver->serial = true;
        return 0;
}

static int command_kill(Sim *sim, char *rest) {
        char *n = next_word(&rest);

        if (!n || (strcmp(rest, "before") != 0 && strcmp(rest, "after") != 0))
                return -EINVAL;
        return fault_command(sim, strcmp(rest, "before") == 0 ? FAULT_KILL_BEFORE : FAULT_KILL_AFTER, n);
}

static int command_reset(Sim *sim, char *rest) {
        faults_reset(sim);
        return *rest ? -EINVAL : 0;
}

static int command_release(Sim *sim, char *rest) {
        sim->releases++;
        return *rest ? -EINVAL : 0;
}

/* Changes that are not counted as writes, as if made by another program. */

/* Returns the device whose driver link the path is, or NULL. */
static Node *bound_device(const Sim *sim, const char *path) {
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *dir = slash ? xstrndup(path, (size_t) (slash - path)) : NULL;
        Node *dev = slash && strcmp(slash, "/driver") == 0 ? node_at(sim->root, dir) : NULL;

        return node_is_device(dev) ? dev : NULL;
}

static void remove_driver_link(Sim *sim, Node *dev) {
        if (!node_child(dev, "driver"))
                return;
        node_remove_child(dev, "driver");
        uevent_device(sim, "unbind", dev);
}

static int command_remove(Sim *sim, char *path) {
        char *slash = strrchr(path, '/');
        Node *node = node_at(sim->root, path), *dev = bound_device(sim, path);

        if (dev && node_child(dev, "driver")) {
                remove_driver_link(sim, dev);
                return 0;
        }
        if (slash && address_is_valid(slash + 1) && node_is_device(node)) {
                device_remove(sim, node);
                return 0;
        }
        if (slash)
                *slash = '\0';
        if (slash && strcmp(path, "sys/bus/pci/drivers") == 0 && driver_find(sim, slash + 1)) {
                driver_unload(sim, driver_find(sim, slash + 1));
                return 0;
        }
        node = node_child(slash ? node_at(sim->root, path) : sim->root, slash ? slash + 1 : path);
        if (!node || node == sim->control)
                return -ENOENT;
        node_remove(node);
        return 0;
}

static int command_driver(Sim *sim, char *rest) {
        const char *name = next_word(&rest);

        return name ? driver_load(sim, name, rest) : -EINVAL;
}

static int command_set(Sim *sim, char *rest) {
        const char *path = next_word(&rest);
        Node *file;
        int r;

        if (!path)
                return -EINVAL;
        r = node_make_at(sim->root, path, NODE_FILE, &file);
        return r < 0 ? r : tree_value_set(file, rest);
}

/* Makes a file that blocks whoever opens it. */
static int command_fifo(Sim *sim, char *rest) {
        const char *path = next_word(&rest);
        Node *fifo;

        return path ? node_make_at(sim->root, path, NODE_FIFO, &fifo) : -EINVAL;
}

static int hang_read(Sim *sim, const char *path, bool unkillable) {
        Node *file = node_at(sim->root, path);

        if (!file || file->type != NODE_FILE)
                return -ENOENT;
        file->hangs = sim->releases + 1;
        file->unkillable = unkillable;
        return 0;
}

static int command_hang_read(Sim *sim, char *path) {
        return hang_read(sim, path, false);
}

static int command_unkillable_read(Sim *sim, char *path) {
        return hang_read(sim, path, true);
}

static int command_link(Sim *sim, char *rest) {
        const char *path = next_word(&rest);
        Node *dev;
        int r;

        if (!path || !*rest)
                return -EINVAL;
        dev = bound_device(sim, path);
        if (dev)
                remove_driver_link(sim, dev);
        r = tree_link_set(sim, path, rest);
        if (r == 0 && dev)
                uevent_device(sim, "bind", dev);
        return r;
}

/* Registers the GPU's types of mediated devices, as its driver does some time after the bind. */
static int command_register(Sim *sim, char *address) {
        Node *gpu = device_find(sim, address);

        if (!gpu || !node_child(gpu, "driver"))
                return -ENODEV;
        vgpu_make(sim, gpu);
        uevent_device(sim, "change", gpu);
        return 0;
}

/* Suspends the device, if that is permitted, as the kernel does when no process has it open. */
static int command_idle(Sim *sim, char *address) {
        return device_suspend(sim, address);
}

static int command_write(Sim *sim, char *rest) {
        const char *path = next_word(&rest);
        Node *file = path ? node_at(sim->root, path) : NULL;
        _cleanup_free_ char *value = NULL;
        size_t size;
        int r;

        if (!file || file->type != NODE_FILE)
                return -ENOENT;
        r = tree_unescape(rest, &value, &size);
        return r < 0 ? r : attr_write(sim, file, value, size, 0);
}

/* events */

static int command_events(Sim *sim, char *rest) {
        bool on = strcmp(rest, "on") == 0;

        return on || strcmp(rest, "off") == 0 ? uevents_enable(sim, on) : -EINVAL;
}

static int command_event(Sim *sim, char *rest) {
        const char *action = next_word(&rest);
        char *slash = strchr(rest, '/');

        if (action && slash) {
                *slash = '\0';
                return uevent_system(sim, action, rest, slash + 1);
        }
        return action && address_is_valid(rest) ? uevent_force(sim, action, rest, 1) : -EINVAL;
}

/* Sends many events of the first device: tests of floods accept any device. */
static int command_flood(Sim *sim, char *rest) {
        const Node *devices = node_at(sim->root, "sys/bus/pci/devices");
        int n;

        if (parse_int(rest, &n) < 0 || n < 1 || n > FLOOD_MAX)
                return -EINVAL;
        return devices->n_children > 0 ? uevent_force(sim, "change", devices->children[0]->name, (unsigned long) n)
                                       : -ENODEV;
}

static const struct {
        const char *name;
        int (*run)(Sim *sim, char *rest);
} commands[] = {
        { "kill", command_kill },           { "reset", command_reset },
        { "release", command_release },     { "remove", command_remove },
        { "driver", command_driver },       { "set", command_set },
        { "hang-read", command_hang_read }, { "unkillable-read", command_unkillable_read },
        { "link", command_link },           { "write", command_write },
        { "events", command_events },       { "event", command_event },
        { "flood", command_flood },         { "delay-all", command_delay_all },
        { "fifo", command_fifo },           { "register", command_register },
        { "idle", command_idle },           { "jitter", command_jitter },
        { "serial", command_serial },
};

static const struct {
        const char *name;
        FaultType type;
} faults[] = {
        { "fail", FAULT_FAIL },       { "fail-after", FAULT_FAIL_AFTER }, { "delay", FAULT_DELAY },
        { "hang", FAULT_HANG },       { "unkillable", FAULT_UNKILLABLE }, { "silent", FAULT_SILENT },
        { "replace", FAULT_REPLACE },
};

static int run_command(Sim *sim, char *line) {
        const char *verb = next_word(&line);

        if (!verb)
                return 0;
        for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
                if (strcmp(commands[i].name, verb) == 0)
                        return commands[i].run(sim, line);
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                if (strcmp(faults[i].name, verb) == 0)
                        return fault_command(sim, faults[i].type, line);
        return -EINVAL;
}

int control_write(Sim *sim, const char *data, size_t size) {
        _cleanup_free_ char *text = xstrndup(data, size);
        char *state = NULL;
        int r = 0;

        for (char *line = strtok_r(text, "\n", &state); line && r == 0; line = strtok_r(NULL, "\n", &state))
                r = run_command(sim, line);
        return r;
}

char *control_read(Sim *sim, const Node *file, size_t *ret_size) {
        char *text = NULL;
        FILE *f = open_memstream(&text, ret_size);

        if (!f)
                abort();
        if (strcmp(file->name, "log") == 0)
                log_dump(sim, f);
        else if (strcmp(file->name, "writes") == 0)
                fprintf(f, "%zu\n", sim->n_log);
        else if (strcmp(file->name, "tree") == 0)
                sim_dump(sim, f);
        fclose(f);
        return text;
}

void control_make(Sim *sim) {
        static const char *const names[] = { "control", "log", "writes", "tree" };

        sim->control = node_make(sim->root, ".nodesim", NODE_DIR);
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                node_write(sim->control, names[i], "%s", "");
}
