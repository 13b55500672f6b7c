/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "dra.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "model/json-parse.h"
#include "util/fileio.h"
#include "util/log.h"

#define OWN_DIRECTORY "plugins/" KUBE_DRIVER
#define RECORD_FILE   "%s.json" /* the claim's UID and ".json" */
#define CDI_FILE      KUBE_DRIVER "-claim_%s.json"
#define TEXT_MAX      (1U << 20)

/* Creates the directory and its parents. Returns a descriptor of it, or a negative errno. */
static int make_directory(const char *path) {
        _cleanup_free_ char *copy = strdup(path);
        int fd;

        if (!copy)
                return -ENOMEM;
        for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int files_init(Manager *m) {
        const char *paths[2];

        m->records = string_format("%s/" OWN_DIRECTORY "/claims", m->kubelet);
        m->metadata = string_format("%s/" OWN_DIRECTORY "/dra-device-metadata", m->kubelet);
        if (!m->records || !m->metadata)
                return log_error_errno(-ENOMEM, "Failed to prepare: %m");
        paths[0] = m->records;
        paths[1] = m->cdi;
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_close_ int fd = make_directory(paths[i]);
                int r = fd < 0 ? fd : remove_temporaries_at(fd);

                if (r < 0)
                        return log_error_errno(r, "Failed to make %s: %m", paths[i]);
        }
        return 0;
}

/* Writes a file. Takes ownership of name and text; NULL means out of memory. Returns 1 if written, 0 if the file
 * already has this text, or a negative errno. */
static int write_text(const char *directory, char *name, char *text) {
        _cleanup_free_ char *own_name = name, *own_text = text, *have = NULL;
        _cleanup_close_ int fd = name && text ? make_directory(directory) : -ENOMEM;
        int r;

        if (fd < 0)
                return fd;
        if (read_file_at(fd, name, TEXT_MAX, &have, NULL) >= 0 && streq(have, text))
                return 0;
        r = write_file_atomic_mode_at(fd, name, 0644, text, strlen(text));
        return r < 0 ? r : 1;
}

int files_write(const Manager *m, json_object *record) {
        _cleanup_json_ json_object *cdi = NULL;
        const char *uid = member_text(record, "uid");
        int r = claim_cdi(record, m->facts.document, m->metadata, &cdi), n = 0;

        if (r >= 0)
                n = r = write_text(m->records, string_format(RECORD_FILE, uid), json_text(record));
        for (size_t i = 0; r >= 0 && i < json_length(member(record, "devices")); i++) {
                _cleanup_free_ char *path = NULL;
                char request[NAME_SIZE], *text = NULL;

                if (!claim_is_first(record, i))
                        continue;
                claim_request_name(record, i, request);
                path = string_format("%s/%s/%s", m->metadata, uid, request);
                r = path ? claim_metadata(record, m->facts.document, i, &text) : -ENOMEM;
                if (r >= 0)
                        n += r = write_text(path, strdup(CLAIM_METADATA_FILE), text);
        }
        if (r >= 0)
                n += r = write_text(m->cdi, string_format(CDI_FILE, uid), json_text(cdi));
        return r < 0 ? r : n;
}

int files_read_record(const Manager *m, const char *uid, json_object **ret) {
        _cleanup_json_ json_object *record = NULL;
        _cleanup_free_ char *path = string_format("%s/" RECORD_FILE, m->records, uid), *text = NULL;
        size_t size;
        int r = path ? read_file_at(AT_FDCWD, path, TEXT_MAX, &text, &size) : -ENOMEM;

        if (r >= 0)
                r = json_parse(text, size, &record);
        if (r >= 0)
                r = claim_check_record(record, uid);
        if (r >= 0)
                *ret = TAKE_PTR(record);
        return r;
}

/* Removes the directory of a request: the metadata and the temporary file that a crash may have left. */
static int remove_request(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : remove_temporaries_at(fd);

        if (r < 0)
                return r;
        r = remove_file_at(fd, CLAIM_METADATA_FILE);
        if (r < 0)
                return r;
        return rmdir(path) < 0 ? -errno : 0;
}

/* Removes the metadata of a claim: a directory with a subdirectory for each request. */
static int remove_metadata(const Manager *m, const char *uid) {
        _cleanup_free_ char *path = string_format("%s/%s", m->metadata, uid);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = path ? list_dir_at(AT_FDCWD, path, CLAIM_DEVICES_MAX, &names, &n) : -ENOMEM;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *request = string_format("%s/%s", path, names[i]);

                r = request ? remove_request(request) : -ENOMEM;
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes a file. Takes ownership of name; NULL means out of memory. */
static int remove_file(const char *directory, char *name) {
        _cleanup_free_ char *own_name = name;
        _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        return name ? remove_file_at(fd, name) : -ENOMEM;
}

int files_remove(const Manager *m, const char *uid) {
        int r = remove_file(m->cdi, string_format(CDI_FILE, uid));

        if (r < 0)
                return r;
        r = remove_metadata(m, uid);
        return r < 0 ? r : remove_file(m->records, string_format(RECORD_FILE, uid));
}
