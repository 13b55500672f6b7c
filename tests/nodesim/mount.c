/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Serves the tree by FUSE. The kernel never caches the content of files. It caches names, also missing ones, and lists
 * of directories, which are most of the cost of a read. Before a write returns, the kernel is notified of each change
 * by the write, so every reader sees every change at once. */
#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <linux/fuse.h>
#include <string.h>
#include <unistd.h>

#include "attr.h"
#include "control.h"
#include "fault.h"
#include "mount.h"
#include "nvidia.h"
#include "pciback.h"
#include "uevent.h"

#ifndef FOPEN_PARALLEL_DIRECT_WRITES
#define FOPEN_PARALLEL_DIRECT_WRITES (1 << 6)
#endif

/* Enough threads to serve requests while writes hang. */
enum {
        THREADS_MAX = 256,
        CACHE_SEC = 1 << 30
};

typedef struct Handle {
        uint64_t serial; /* serial of the opened node; a node that was replaced has another one */
        char *data;      /* content of an open report, which must not change during reads; or NULL */
        size_t size;
        Node **entries; /* entries of a directory as of open or rewind; referenced */
        size_t n_entries;
        struct Handle *previous, *next; /* links of the list handles */
} Handle;

static Handle *handles; /* open handles: the kernel does not close them on unmount */

static Sim *lock(fuse_req_t req) {
        Sim *sim = fuse_req_userdata(req);

        pthread_mutex_lock(&sim->lock);
        return sim;
}

static void unlock(Sim *sim) {
        pthread_mutex_unlock(&sim->lock);
}

static Node *node_of(const Sim *sim, fuse_ino_t ino) {
        return ino == FUSE_ROOT_ID ? sim->root : (Node *) (uintptr_t) ino;
}

static fuse_ino_t ino_of(const Sim *sim, const Node *node) {
        return node == sim->root ? FUSE_ROOT_ID : (fuse_ino_t) (uintptr_t) node;
}

/* Unlocks, then notifies the kernel of changes: with the lock held, a notification would wait for a lookup that waits
 * for the lock. Sends events last, because receivers read at once. */
static void unlock_and_tell(Sim *sim) {
        size_t n, n_events;
        Stale *stale = nodes_take_stale(&n);
        UEvent *events = uevents_take(sim, &n_events);

        unlock(sim);
        for (size_t i = 0; i < n; i++)
                if (stale[i].name)
                        (void) fuse_lowlevel_notify_inval_entry(sim->session, ino_of(sim, stale[i].dir), stale[i].name,
                                                                strlen(stale[i].name));
                else
                        (void) fuse_lowlevel_notify_inval_inode(sim->session, ino_of(sim, stale[i].dir), 0, 0);
        uevents_send(sim, events, n_events);
        pthread_mutex_lock(&sim->lock);
        for (size_t i = 0; i < n; i++) {
                node_unref(stale[i].dir, 1);
                free(stale[i].name);
        }
        unlock(sim);
        free(stale);
}

static bool is_live(const Sim *sim, const Node *node) {
        return node_is_in(node, sim->root);
}

static Handle *handle_of(const struct fuse_file_info *fi) {
        return (Handle *) (uintptr_t) fi->fh;
}

/* Returns whether the opened node still exists. */
static bool is_same(const Sim *sim, const Node *node, const struct fuse_file_info *fi) {
        return is_live(sim, node) && node->serial == handle_of(fi)->serial;
}

static bool is_report(const Sim *sim, const Node *node) {
        return node->parent == sim->control;
}

static mode_t permissions(const Sim *sim, const Node *node) {
        if (is_report(sim, node))
                return strcmp(node->name, "control") == 0 ? 0200 : 0444;
        return attr_mode(node);
}

static struct stat node_stat(const Sim *sim, const Node *node) {
        static const mode_t types[] = {
                [NODE_DIR] = S_IFDIR, [NODE_FILE] = S_IFREG, [NODE_LINK] = S_IFLNK, [NODE_FIFO] = S_IFIFO
        };

        return (struct stat) {
                .st_ino = node->serial,
                .st_mode = types[node->type] | permissions(sim, node),
                .st_nlink = node->type == NODE_DIR ? 2 : 1,
                .st_uid = getuid(),
                .st_gid = getgid(),
                .st_size = (off_t) (node->type == NODE_FILE ? attr_size(node) : node->size),
                .st_mtime = (time_t) node->changes, /* the kernel compares it with the time of its cached list */
                .st_blksize = 4096,
        };
}

static void on_init(void *userdata, struct fuse_conn_info *connection) {
        (void) userdata;
        connection->want |= connection->capable & FUSE_CAP_CACHE_SYMLINKS;
}

static struct fuse_entry_param node_entry(const Sim *sim, Node *node) {
        return (struct fuse_entry_param) {
                .ino = ino_of(sim, node_ref(node)),
                .attr = node_stat(sim, node),
                .attr_timeout = CACHE_SEC,
                .entry_timeout = CACHE_SEC,
        };
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
        Sim *sim = lock(req);
        Node *dir = node_of(sim, parent);
        bool live = is_live(sim, dir);
        Node *node = live ? node_child(dir, name) : NULL;
        struct fuse_entry_param entry = { .entry_timeout = CACHE_SEC }; /* inode 0: no such name */

        if (node)
                entry = node_entry(sim, node);
        else if (live)
                dir->missed = true;
        unlock(sim);
        if (live)
                fuse_reply_entry(req, &entry);
        else
                fuse_reply_err(req, ENOENT);
}

static void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n) {
        Sim *sim = lock(req);

        if (ino != FUSE_ROOT_ID)
                node_unref(node_of(sim, ino), n);
        unlock(sim);
        fuse_reply_none(req);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Sim *sim = lock(req);
        struct stat st = node_stat(sim, node_of(sim, ino));

        (void) fi;
        unlock(sim);
        fuse_reply_attr(req, &st, CACHE_SEC);
}

/* Truncates a file outside of sysfs. Other changes of attributes are ignored. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi) {
        Sim *sim = lock(req);
        Node *node = node_of(sim, ino);

        (void) fi;
        if ((to_set & FUSE_SET_ATTR_SIZE) && attr->st_size == 0 && !node_is_sysfs(node) && !is_report(sim, node))
                node_set(node, "", 0);
        struct stat st = node_stat(sim, node);
        unlock(sim);
        if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
                fuse_reply_err(req, EPERM);
        else
                fuse_reply_attr(req, &st, CACHE_SEC);
}

static void on_readlink(fuse_req_t req, fuse_ino_t ino) {
        Sim *sim = lock(req);
        const Node *link = node_of(sim, ino);

        if (is_live(sim, link))
                fuse_reply_readlink(req, link->data);
        else
                fuse_reply_err(req, ENOENT);
        unlock(sim);
}

/* files */

static void drop_entries(Handle *handle) {
        for (size_t i = 0; i < handle->n_entries; i++)
                node_unref(handle->entries[i], 1);
        free(handle->entries);
        handle->entries = NULL;
        handle->n_entries = 0;
}

static void handle_free(Handle *handle) {
        if (handle->previous)
                handle->previous->next = handle->next;
        else
                handles = handle->next;
        if (handle->next)
                handle->next->previous = handle->previous;
        drop_entries(handle);
        free(handle->data);
        free(handle);
}

static Handle *handle_new(const Node *node, struct fuse_file_info *fi) {
        Handle *handle = xrealloc(NULL, 1, sizeof(Handle));

        *handle = (Handle) { .serial = node->serial, .next = handles };
        if (handles)
                handles->previous = handle;
        handles = handle;
        fi->fh = (uint64_t) (uintptr_t) handle;
        return handle;
}

static void reply_part(fuse_req_t req, const char *data, size_t size, size_t part, off_t offset) {
        size_t at = offset < 0 || (size_t) offset > size ? size : (size_t) offset;

        fuse_reply_buf(req, data + at, part < size - at ? part : size - at);
}

/* Permits parallel writes to a file: otherwise a hanging write to drivers_probe would block all others. Older libfuse
 * has no function for this flag. */
static int reply_open(fuse_req_t req, const struct fuse_file_info *fi) {
        const struct fuse_open_out out = {
                .fh = fi->fh,
                .open_flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES,
        };

        return fuse_reply_buf(req, (const char *) &out, sizeof(out));
}

/* Like kernfs, and unlike a disk, denies even root an access that no mode bit permits. */
static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Sim *sim = lock(req);
        const Node *node = node_of(sim, ino);
        mode_t mode = permissions(sim, node);
        int access = fi->flags & O_ACCMODE;
        bool live = is_live(sim, node);
        bool ok = live && (access == O_WRONLY || (mode & 0444)) && (access == O_RDONLY || (mode & 0222));

        if (ok) {
                Handle *handle = handle_new(node, fi);
                if (is_report(sim, node))
                        handle->data = control_read(sim, node, &handle->size);
        }
        unlock(sim);
        if (!ok)
                fuse_reply_err(req, live ? EACCES : ENOENT);
        else if (reply_open(req, fi) == -ENOENT) {
                lock(req);
                handle_free(handle_of(fi));
                unlock(sim);
        }
}

static void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi) {
        (void) parent, (void) name, (void) mode, (void) fi;
        fuse_reply_err(req, EACCES);
}

static WriterState writer_state(void *userdata) {
        fuse_req_t req = userdata;
        const Sim *sim = fuse_req_userdata(req);

        if (fuse_session_exited(sim->session))
                return WRITER_SHUTDOWN;
        return fuse_req_interrupted(req) ? WRITER_INTERRUPTED : WRITER_WAITS;
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi) {
        const Handle *handle = handle_of(fi);
        Sim *sim = lock(req);
        const Writer reader = { .pid = fuse_req_ctx(req)->pid, .state = writer_state, .userdata = req };
        const Node *node = node_of(sim, ino);

        if (fault_read(sim, &reader, node) < 0)
                fuse_reply_err(req, EINTR);
        else if (handle->data)
                reply_part(req, handle->data, handle->size, size, offset);
        else if (!is_same(sim, node, fi))
                fuse_reply_err(req, ENODEV);
        else if (node->error > 0)
                fuse_reply_err(req, node->error);
        else
                reply_part(req, node->data, pciback_shown_size(node), size, offset);
        unlock(sim);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
                     struct fuse_file_info *fi) {
        Sim *sim = lock(req);
        const Writer writer = { .pid = fuse_req_ctx(req)->pid, .state = writer_state, .userdata = req };
        Node *node = node_of(sim, ino);
        int r;

        if (!is_same(sim, node, fi))
                r = -ENODEV;
        else if (is_report(sim, node))
                r = control_write(sim, data, size);
        else if (node_is_sysfs(node) || nvidia_is_lock(node))
                r = fault_write(sim, &writer, node, data, size, offset);
        else
                r = attr_write(sim, node, data, size, offset);
        unlock_and_tell(sim);
        if (r < 0)
                fuse_reply_err(req, -r);
        else
                fuse_reply_write(req, size);
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Sim *sim = lock(req); /* locks, because a reader may have its answer before the reply returns */

        (void) ino;
        handle_free(handle_of(fi));
        unlock(sim);
        fuse_reply_err(req, 0);
}

/* directories */

static void take_entries(Handle *handle, Node *dir) {
        drop_entries(handle);
        handle->entries = xrealloc(NULL, dir->n_children + 1, sizeof(Node *));
        for (size_t i = 0; i < dir->n_children; i++)
                handle->entries[handle->n_entries++] = node_ref(dir->children[i]);
}

static void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Sim *sim = lock(req);
        Node *dir = node_of(sim, ino);

        take_entries(handle_new(dir, fi), dir);
        unlock(sim);
        fi->cache_readdir = fi->keep_cache = 1;
        if (fuse_reply_open(req, fi) == -ENOENT) {
                lock(req);
                handle_free(handle_of(fi));
                unlock(sim);
        }
}

/* Adds entry number i; "." and ".." come first. Returns its size, which is more than size when it does not fit. The
 * kernel also gets the attributes of the entry, unless it was removed since the list was taken. */
static size_t add_entry(fuse_req_t req, const Sim *sim, const Handle *handle, Node *dir, size_t i, char *to,
                        size_t size) {
        static const char *const dots[] = { ".", ".." };
        Node *node = i < 2 ? (i == 1 && dir->parent ? dir->parent : dir) : handle->entries[i - 2];
        const char *name = i < 2 ? dots[i] : node->name;
        struct fuse_entry_param entry = { .attr = node_stat(sim, node) };
        size_t n = fuse_add_direntry_plus(req, to, 0, name, &entry, 0);

        if (n > size)
                return n;
        if (i >= 2 && node->parent == dir)
                entry = node_entry(sim, node);
        return fuse_add_direntry_plus(req, to, size, name, &entry, (off_t) (i + 1));
}

static void on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi) {
        Handle *handle = handle_of(fi);
        Sim *sim = lock(req);
        Node *dir = node_of(sim, ino);
        _cleanup_free_ char *reply = xrealloc(NULL, size, 1);
        size_t used = 0;

        dir->listed = true; /* even for a removed or empty directory */
        if (is_same(sim, dir, fi)) {
                if (offset == 0)
                        take_entries(handle, dir);
                for (size_t i = (size_t) offset; i < handle->n_entries + 2; i++) {
                        size_t n = add_entry(req, sim, handle, dir, i, reply + used, size - used);

                        if (n > size - used)
                                break;
                        used += n;
                }
        }
        unlock(sim);
        fuse_reply_buf(req, reply, used);
}

static const struct fuse_lowlevel_ops operations = {
        .init = on_init,
        .lookup = on_lookup,
        .forget = on_forget,
        .getattr = on_getattr,
        .setattr = on_setattr,
        .readlink = on_readlink,
        .open = on_open,
        .create = on_create,
        .read = on_read,
        .write = on_write,
        .release = on_release,
        .opendir = on_opendir,
        .readdirplus = on_readdirplus,
        .releasedir = on_release,
};

/* the session */

static int session_loop(struct fuse_session *session) {
        struct fuse_loop_config *config = fuse_loop_cfg_create();
        int r;

        if (!config)
                return -ENOMEM;
        fuse_loop_cfg_set_max_threads(config, THREADS_MAX);
        r = fuse_session_loop_mt(session, config);
        fuse_loop_cfg_destroy(config);
        return r < 0 ? r : 0; /* positive: the signal that ended the loop */
}

static int session_run(struct fuse_session *session, const char *mountpoint, bool foreground) {
        int r;

        if (fuse_set_signal_handlers(session) < 0)
                return -EIO;
        if (fuse_session_mount(session, mountpoint) < 0)
                return -EIO;
        r = fuse_daemonize(foreground) < 0 ? -EIO : session_loop(session);
        fuse_session_unmount(session);
        fuse_remove_signal_handlers(session);
        return r;
}

int mount_serve(Sim *sim, const char *mountpoint, bool foreground, bool allow_other) {
        _cleanup_free_ char *where = realpath(mountpoint, NULL); /* the background process runs in / */
        char *argv[] = { (char *) "nodesim",
                         (char *) "-o",
                         (char *) "default_permissions,fsname=nodesim,subtype=nodesim",
                         (char *) "-o",
                         (char *) "allow_other",
                         NULL };
        struct fuse_args args = FUSE_ARGS_INIT(allow_other ? 5 : 3, argv);
        int r;

        if (!where)
                return -errno;
        sim->session = fuse_session_new(&args, &operations, sizeof(operations), sim);
        if (!sim->session)
                return -EIO;
        r = session_run(sim->session, where, foreground);
        fuse_session_destroy(sim->session);
        while (handles)
                handle_free(handles);
        fuse_opt_free_args(&args);
        return r;
}
