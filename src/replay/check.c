/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a machine, recorded or not, and reports whether it is ready for passthrough, or suggests a configuration for
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "model/json-text.h"
#include "node.h"
#include "plan/check.h"
#include "plan/suggest.h"
#include "replay/replay.h"
#include "root.h"
#include "util/fileio.h"
#include "util/strings.h"
#include "util/sysfs.h"

#define DRIVERCTL           "etc/driverctl.d"
#define DRIVERCTL_PREFIX    "pci-"
#define NETWORK_MANAGER     "run/NetworkManager/devices"
#define PROC_FILE_MAX       16384
#define ENTRIES_MAX         4096U
#define CAPABILITY_RESOURCE 24U /* CAP_SYS_RESOURCE: a process with it may raise limits of other processes */

static int list_directory(const Sysfs *fs, const char *path, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = sysfs_open(fs, path, O_RDONLY | O_DIRECTORY);

        *ret_n = 0;
        return fd < 0 ? fd : list_dir_at(fd, ".", ENTRIES_MAX, ret, ret_n);
}

/* Reads the settings of driverctl: a file "pci-0000:3b:00.0" for each device, which contains the name of the driver. */
static void read_settings(const Sysfs *fs, CheckFacts *facts) {
        _cleanup_names_ char **names = NULL;
        size_t n;

        if (list_directory(fs, DRIVERCTL, &names, &n) < 0)
                return;
        for (size_t i = 0; i < n && facts->n_settings < CHECK_SETTINGS_MAX; i++) {
                DriverSetting *s = &facts->settings[facts->n_settings];
                char path[sizeof(DRIVERCTL "/") + NAME_MAX];

                if (strncmp(names[i], DRIVERCTL_PREFIX, strlen(DRIVERCTL_PREFIX)) != 0 ||
                    pci_address_parse(names[i] + strlen(DRIVERCTL_PREFIX), &s->device) < 0)
                        continue;
                (void) snprintf(path, sizeof(path), DRIVERCTL "/%s", names[i]);
                if (sysfs_read(fs, path, s->driver, sizeof(s->driver)) > 0)
                        facts->n_settings++;
        }
}

/* Returns true when NetworkManager configures the network interface. NetworkManager keeps the state of each interface
 * in a file that is named by the ifindex. */
static bool is_managed(const Sysfs *fs, const char *device, const char *interface) {
        char path[PATH_MAX], index[32], state[SYSFS_ATTRIBUTE_MAX];
        uint64_t n;

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/net/%s/ifindex", device, interface);
        if (sysfs_read(fs, path, index, sizeof(index)) <= 0 || parse_unsigned(index, UINT32_MAX, &n) < 0)
                return false;
        (void) snprintf(path, sizeof(path), NETWORK_MANAGER "/%s", index);
        return sysfs_read(fs, path, state, sizeof(state)) > 0 && strstr(state, "managed=true");
}

static bool has_managed_interface(const Sysfs *fs, const char *device) {
        _cleanup_names_ char **names = NULL;
        char path[PATH_MAX];
        size_t n;
        bool managed = false;

        (void) snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/net", device);
        if (list_directory(fs, path, &names, &n) < 0)
                return false;
        for (size_t i = 0; i < n && !managed; i++)
                managed = is_managed(fs, device, names[i]);
        return managed;
}

static void read_managed_vfs(const Sysfs *fs, CheckFacts *facts) {
        const Inventory *inv = facts->policy->inventory;

        for (size_t i = 0; i < inv->n_devices && facts->n_managed_vfs < CHECK_SETTINGS_MAX; i++) {
                const PciDevice *vf = &inv->devices[i];

                if (vf->type == PCI_TYPE_VF && pci_device_is_nic(vf) && vf->driver && !vf->vfio &&
                    has_managed_interface(fs, PCI_ADDRESS_STR(vf->address)))
                        facts->managed_vfs[facts->n_managed_vfs++] = vf->address;
        }
}

/* Finds the word in this column after the key in the text of a file of proc/PID, as in "Max locked memory 8388608
 * 8388608 bytes". column: 0 for the first word after the key. Modifies text. Returns false if there is no such word. */
static bool read_column(char *text, const char *key, unsigned column, const char **ret) {
        char *line = strstr(text, key);

        if (!line)
                return false;
        line += strlen(key);
        line[strcspn(line, "\n")] = '\0';
        for (unsigned i = 0; i <= column; i++)
                *ret = string_next_word(&line);
        return *ret;
}

static bool may_raise_limits(const Sysfs *fs, const char *pid) {
        char path[64], text[PROC_FILE_MAX];
        const char *word;
        uint64_t capabilities;

        (void) snprintf(path, sizeof(path), "proc/%s/status", pid);
        return sysfs_read(fs, path, text, sizeof(text)) > 0 && read_column(text, "CapEff:", 0, &word) &&
               parse_hex(word, UINT64_MAX, &capabilities) >= 0 && capabilities >> CAPABILITY_RESOURCE & 1;
}

/* Returns how many bytes QEMU may lock; UINT64_MAX: unlimited; 0: unknown. libvirt, the process `pid`, raises QEMU's
 * limit as far as libvirt itself is allowed to. */
static uint64_t read_memory_lock(const Sysfs *fs, const char *pid) {
        char path[64], text[PROC_FILE_MAX];
        const char *word;
        uint64_t n;

        if (may_raise_limits(fs, pid))
                return UINT64_MAX;
        (void) snprintf(path, sizeof(path), "proc/%s/limits", pid);
        if (sysfs_read(fs, path, text, sizeof(text)) <= 0 || !read_column(text, "Max locked memory", 1, &word))
                return 0;
        if (streq(word, "unlimited"))
                return UINT64_MAX;
        return parse_unsigned(word, UINT64_MAX, &n) < 0 ? 0 : n;
}

static void read_libvirt(const Sysfs *fs, CheckFacts *facts) {
        static const char *const files[] = { "run/virtqemud.pid", "run/libvirtd.pid" };
        char pid[32];
        uint64_t n;

        for (size_t i = 0; i < ELEMENTSOF(files) && facts->memory_lock == 0; i++)
                if (sysfs_read(fs, files[i], pid, sizeof(pid)) > 0 && parse_unsigned(pid, INT32_MAX, &n) >= 0)
                        facts->memory_lock = read_memory_lock(fs, pid);
}

/* Counts the CPUs of the machine: drivers/xen/pcpu.c of the kernel makes a directory xen_cpuN for each. */
static unsigned count_xen_cpus(const Sysfs *fs) {
        _cleanup_names_ char **names = NULL;
        unsigned count = 0;
        size_t n = 0;

        if (list_directory(fs, "sys/devices/system/xen_cpu", &names, &n) < 0)
                return 0;
        for (size_t i = 0; i < n; i++)
                count += strncmp(names[i], "xen_cpu", strlen("xen_cpu")) == 0;
        return count;
}

/* Sets unsafe_interrupts, idle_d3_disabled and xen_cpus; if facts->running, also settings, managed_vfs and memory_lock.
 * facts->policy must be set. A fact whose file is unreadable stays unknown. 0 or a negative errno. */
static int read_check_facts(const char *root, CheckFacts *facts) {
        _cleanup_(cleanup_sysfs_free) Sysfs *fs = NULL;
        char buf[SYSFS_ATTRIBUTE_MAX];
        int r = sysfs_new_recorded(root, &fs);

        if (r < 0)
                return r;
        facts->unsafe_interrupts = sysfs_read(fs, "sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts", buf,
                                              sizeof(buf)) > 0 &&
                                   streq(buf, "Y");
        facts->idle_d3_disabled =
                sysfs_read(fs, "sys/module/vfio_pci/parameters/disable_idle_d3", buf, sizeof(buf)) > 0 &&
                streq(buf, "Y");
        facts->xen_cpus = count_xen_cpus(fs);
        if (facts->running) {
                read_settings(fs, facts);
                read_managed_vfs(fs, facts);
                read_libvirt(fs, facts);
        }
        return 0;
}

static char *report_to_json(const CheckReport *report) {
        JsonText t = json_text_new();

        json_text_first_member(&t, "result", string, check_result_to_string(report->result));
        json_text_key(&t, "findings");
        json_text_literal(&t, "[");
        for (size_t i = 0; i < report->n; i++) {
                if (i > 0)
                        json_text_literal(&t, ",");
                json_text_first_member(&t, "check", string, report->findings[i].check);
                json_text_member(&t, "result", string, check_result_to_string(report->findings[i].result));
                json_text_member(&t, "message", string, report->findings[i].message);
                json_text_member(&t, "remedy", string, report->findings[i].remedy);
                json_text_literal(&t, "}");
        }
        json_text_literal(&t, "]}");
        return json_text_finish(&t);
}

static int check_root(HostState *state, const char *node, const char *root, const char *config,
                      const DaemonReport *daemon, char **ret_json, char **ret_problem) {
        CheckFacts facts = { .running = daemon || streq(node, "/"), .daemon = daemon };
        CheckReport report = { 0 };
        char cmdline[ROOT_CMDLINE_MAX];
        /* If `daemon` is set, replay_read() searches for the configuration on this machine, not below `root`: the
         * daemon's --sysroot= does not apply to its configuration files. */
        int r = replay_read(state, node, root, daemon, config, ret_problem);

        if (r < 0)
                return r;
        r = root_read_cmdline(root, cmdline);
        if (r < 0)
                return r;
        facts.cmdline = cmdline;
        facts.policy = state->policy;
        r = read_check_facts(root, &facts);
        if (r < 0)
                return r;
        r = check_node(&facts, &report);
        if (r >= 0) {
                *ret_json = report_to_json(&report);
                r = *ret_json ? 0 : -ENOMEM;
        }
        check_report_done(&report);
        return r;
}

int replay_check(const char *node, const char *config, const DaemonReport *daemon, char **ret_json,
                 char **ret_problem) {
        _cleanup_root_ Root root = { 0 };
        _cleanup_(host_state_done) HostState state = { 0 };
        int r = root_open(&root, node, ret_problem);

        return r < 0 ? r : check_root(&state, node, root.dir, config, daemon, ret_json, ret_problem);
}

/* Suggests a configuration. Ignores the configuration of the machine, because the suggestion replaces its pools. */
static int suggest_root(HostState *state, const char *node, const char *root, char **ret, char **ret_problem) {
        char cmdline[ROOT_CMDLINE_MAX];
        int r;

        state->config = config_new();
        r = state->config ? replay_read_facts(state, node, root, ret_problem) : -ENOMEM;
        if (r < 0)
                return r;
        r = root_read_cmdline(root, cmdline);
        return r < 0 ? r : suggest_configuration(state->inventory, cmdline, ret);
}

int replay_suggest(const char *node, char **ret, char **ret_problem) {
        _cleanup_root_ Root root = { 0 };
        _cleanup_(host_state_done) HostState state = { 0 };
        int r = root_open(&root, node, ret_problem);

        return r < 0 ? r : suggest_root(&state, node, root.dir, ret, ret_problem);
}
