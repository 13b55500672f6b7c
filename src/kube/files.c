/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "claim.h"
#include "model/json-parse.h"
#include "util/fileio.h"
#include "util/log.h"

#define OWN_DIRECTORY   "plugins/" KUBE_DRIVER
#define FILE_NAME_SIZE  128U
#define TEXT_MAX        (1U << 20)
#define CLAIMS_KEPT_MAX 65536U

/* Makes the directory with those above it, and opens it. */
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

void files_done(ClaimFiles *f) {
        free(f->records);
        free(f->metadata);
}

int files_prepare(ClaimFiles *f, const char *kubelet, const char *cdi) {
        *f = (ClaimFiles) { string_format("%s/" OWN_DIRECTORY "/claims", kubelet),
                            string_format("%s/" OWN_DIRECTORY "/dra-device-metadata", kubelet), cdi };
        if (!f->records || !f->metadata)
                return log_error_errno(-ENOMEM, "Failed to prepare: %m");
        for (size_t i = 0; i < 2; i++) {
                const char *path = i == 0 ? f->records : cdi;
                _cleanup_close_ int fd = make_directory(path);
                int r = fd < 0 ? fd : remove_temporaries_at(fd);

                if (r < 0)
                        return log_error_errno(r, "Failed to make %s: %m", path);
        }
        return 0;
}

static void record_name(const char *uid, char ret[static FILE_NAME_SIZE]) {
        (void) snprintf(ret, FILE_NAME_SIZE, "%s.json", uid);
}

static void cdi_name(const char *uid, char ret[static FILE_NAME_SIZE]) {
        (void) snprintf(ret, FILE_NAME_SIZE, KUBE_DRIVER "-claim_%s.json", uid);
}

/* Takes ownership of the text. 1; 0: the file has this text. */
static int write_text(const char *directory, const char *name, char *text) {
        _cleanup_free_ char *own = text, *have = NULL;
        _cleanup_close_ int fd = text ? make_directory(directory) : -ENOMEM;
        int r;

        if (fd < 0)
                return fd;
        if (read_file_at(fd, name, TEXT_MAX, &have, NULL) >= 0 && streq(have, text))
                return 0;
        r = write_file_atomic_mode_at(fd, name, 0644, text, strlen(text));
        return r < 0 ? r : 1;
}

static int write_metadata(const ClaimFiles *f, json_object *record, json_object *document, size_t i) {
        _cleanup_free_ char *path = NULL;
        char request[NAME_SIZE], *text = NULL;

        claim_request_name(record, i, request);
        path = string_format("%s/%s/%s", f->metadata, member_text(record, "uid"), request);
        if (!path || claim_metadata(record, document, i, &text) < 0)
                return -ENOMEM;
        return write_text(path, CLAIM_METADATA_FILE, text);
}

int files_write(const ClaimFiles *f, json_object *record, json_object *document) {
        _cleanup_json_ json_object *cdi = NULL;
        const char *uid = member_text(record, "uid");
        char name[FILE_NAME_SIZE];
        int r = claim_cdi(record, document, f->metadata, &cdi), n = 0;

        if (r < 0)
                return r;
        record_name(uid, name);
        r = n = write_text(f->records, name, json_text(record));
        for (size_t i = 0; r >= 0 && i < json_length(member(record, "devices")); i++)
                if (claim_is_first(record, i)) {
                        r = write_metadata(f, record, document, i);
                        n += r;
                }
        if (r < 0)
                return r;
        cdi_name(uid, name);
        r = write_text(f->cdi, name, json_text(cdi));
        return r < 0 ? r : n + r;
}

int files_read_record(const ClaimFiles *f, const char *uid, json_object **ret) {
        _cleanup_json_ json_object *record = NULL;
        _cleanup_free_ char *path = string_format("%s/%s.json", f->records, uid), *text = NULL;
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

/* The directory of the claim has a directory for each request, with one file. */
static int remove_metadata(const ClaimFiles *f, const char *uid) {
        _cleanup_free_ char *path = string_format("%s/%s", f->metadata, uid);
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = path ? list_dir_at(AT_FDCWD, path, CLAIM_DEVICES_MAX, &names, &n) : -ENOMEM;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *request = string_format("%s/%s", path, names[i]), *file = NULL;

                file = request ? string_format("%s/" CLAIM_METADATA_FILE, request) : NULL;
                if (!file)
                        return -ENOMEM;
                (void) unlink(file);
                (void) rmdir(request);
        }
        (void) rmdir(path);
        return 0;
}

static int remove_file(const char *directory, const char *name) {
        _cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        return remove_file_at(fd, name);
}

int files_remove(const ClaimFiles *f, const char *uid) {
        char name[FILE_NAME_SIZE];
        int r;

        cdi_name(uid, name);
        r = remove_file(f->cdi, name);
        if (r >= 0)
                r = remove_metadata(f, uid);
        record_name(uid, name);
        return r < 0 ? r : remove_file(f->records, name);
}

int files_list(const ClaimFiles *f, char ***ret, size_t *ret_n) {
        int r = list_dir_at(AT_FDCWD, f->records, CLAIMS_KEPT_MAX, ret, ret_n);

        for (size_t i = 0; r >= 0 && i < *ret_n; i++)
                (*ret)[i][strcspn((*ret)[i], ".")] = '\0';
        return r;
}
