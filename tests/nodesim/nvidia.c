/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unbind locks of GPUs, as nv_procfs_close_unbind_lock() in NVIDIA/open-gpu-kernel-modules, nv-procfs.c. */
#include <stdio.h>
#include <string.h>

#include "nvidia.h"

bool nvidia_is_lock(const Node *file) {
        const Node *dir = file->parent ? file->parent->parent : NULL;

        return strcmp(file->name, "unbindLock") == 0 && dir && strcmp(dir->name, "gpus") == 0;
}

static bool has_open(const Node *process, const char *path) {
        const Node *fds = node_child(process, "fd");

        for (size_t i = 0; fds && i < fds->n_children; i++)
                if (fds->children[i]->type == NODE_LINK && strcmp(fds->children[i]->data, path) == 0)
                        return true;
        return false;
}

static bool is_open(const Sim *sim, const Node *gpu) {
        _cleanup_free_ char *text = node_text(gpu, "information"), *path = NULL;
        const char *at = text ? strstr(text, "Device Minor:") : NULL;
        const Node *proc = node_at(sim->root, "proc");
        unsigned minor;

        if (!at || sscanf(at, "Device Minor: %u", &minor) != 1)
                return false;
        path = xasprintf("/dev/nvidia%u", minor);
        for (size_t i = 0; i < proc->n_children; i++)
                if (proc->children[i]->type == NODE_DIR && has_open(proc->children[i], path))
                        return true;
        return false;
}

int nvidia_write_lock(Sim *sim, Node *lock, const char *value) {
        Node *gpu = lock->parent;
        unsigned wanted;

        if (sscanf(value, "%u", &wanted) != 1)
                return 0;
        if (wanted == 0 || (wanted == 1 && !is_open(sim, gpu)))
                node_write(gpu, lock->name, "%u\n", wanted);
        return 0;
}

void nvidia_drop_lock(Sim *sim, const Node *gpu) {
        Node *dir = node_atf(sim->root, "proc/driver/nvidia/gpus/%s", gpu->name);

        if (dir && node_child(dir, "unbindLock"))
                node_write(dir, "unbindLock", "0\n");
}
