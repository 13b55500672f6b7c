/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "claim.h"
#include "json.h"
#include "model/json-parse.h"
#include "slices.h"
#include "util/fileio.h"
#include "util/log.h"

#define RECORDS         "claims"
#define NAME_MAX_CDI    128U
#define RECORD_MAX      65536U
#define CLAIMS_KEPT_MAX 65536U

static int make_directories(const char *path) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                if (mkdir(copy, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *slash = '/';
        }
        return mkdir(copy, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_directory(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int open_records(const ClaimFiles *f) {
        _cleanup_free_ char *path = string_format("%s/" RECORDS, f->directory);

        return path ? open_directory(path) : -ENOMEM;
}

static int prepare_directory(const char *path) {
        _cleanup_close_ int fd = -1;
        int r = path ? make_directories(path) : -ENOMEM;

        if (r >= 0)
                r = fd = open_directory(path);
        if (r >= 0)
                r = remove_temporaries_at(fd);
        return r < 0 ? log_error_errno(r, "Failed to make %s: %m", path ?: "a directory") : 0;
}

int files_prepare(const ClaimFiles *f) {
        _cleanup_free_ char *records = string_format("%s/" RECORDS, f->directory);
        int r = prepare_directory(records);

        return r < 0 ? r : prepare_directory(f->cdi);
}

static void cdi_name(const char *uid, char ret[static NAME_MAX_CDI]) {
        (void) snprintf(ret, NAME_MAX_CDI, KUBE_DRIVER "-claim_%s.json", uid);
}

static int write_text(const char *directory, const char *name, const char *text) {
        _cleanup_close_ int fd = -1;
        int r = make_directories(directory);

        if (r >= 0)
                r = fd = open_directory(directory);
        return r < 0 ? r : write_file_atomic_mode_at(fd, name, 0644, text, strlen(text));
}

static int write_json(const char *directory, const char *name, json_object *o) {
        _cleanup_free_ char *text = json_text(o);

        return text && directory ? write_text(directory, name, text) : -ENOMEM;
}

static int write_metadata(const ClaimFiles *f, json_object *record, json_object *document, size_t i) {
        _cleanup_free_ char *path = claim_metadata_directory(record, i, f->directory), *text = NULL;
        int r = path ? claim_metadata(record, document, i, &text) : -ENOMEM;

        return r < 0 ? r : write_text(path, CLAIM_METADATA_FILE, text);
}

int files_write(const ClaimFiles *f, json_object *record, json_object *document) {
        _cleanup_free_ char *records = string_format("%s/" RECORDS, f->directory);
        _cleanup_json_ json_object *cdi = NULL;
        char name[NAME_MAX_CDI];
        int r = claim_cdi(record, document, f->directory, &cdi);

        (void) snprintf(name, sizeof(name), "%s.json", member_text(record, "uid"));
        if (r >= 0)
                r = write_json(records, name, record);
        for (size_t i = 0; r >= 0 && i < json_length(member(record, "devices")); i++)
                if (claim_is_first(record, i))
                        r = write_metadata(f, record, document, i);
        if (r < 0)
                return r;
        cdi_name(member_text(record, "uid"), name);
        return write_json(f->cdi, name, cdi);
}

int files_read_record(const ClaimFiles *f, const char *uid, json_object **ret) {
        _cleanup_close_ int fd = open_records(f);
        _cleanup_json_ json_object *record = NULL;
        _cleanup_free_ char *text = NULL;
        char name[NAME_MAX_CDI];
        size_t size;
        int r;

        (void) snprintf(name, sizeof(name), "%s.json", uid);
        r = fd < 0 ? fd : read_file_at(fd, name, RECORD_MAX, &text, &size);
        if (r >= 0)
                r = json_parse(text, size, &record);
        if (r >= 0)
                r = claim_check_record(record, uid);
        if (r >= 0)
                *ret = TAKE_PTR(record);
        return r;
}

bool files_have_cdi(const ClaimFiles *f, const char *uid) {
        _cleanup_close_ int fd = open_directory(f->cdi);
        struct stat st;
        char name[NAME_MAX_CDI];

        cdi_name(uid, name);
        return fd >= 0 && fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The directory of the claim has a directory for each request, with one file. */
static int remove_metadata(const ClaimFiles *f, const char *uid) {
        _cleanup_free_ char *path = string_format("%s/" CLAIM_METADATA "/%s", f->directory, uid);
        _cleanup_close_ int fd = path ? open_directory(path) : -ENOMEM;
        _cleanup_names_ char **names = NULL;
        size_t n = 0;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CLAIM_DEVICES_MAX, &names, &n);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *file = string_format("%s/" CLAIM_METADATA_FILE, names[i]);

                if (!file)
                        return -ENOMEM;
                (void) unlinkat(fd, file, 0);
                (void) unlinkat(fd, names[i], AT_REMOVEDIR);
        }
        (void) rmdir(path);
        return 0;
}

int files_remove(const ClaimFiles *f, const char *uid) {
        _cleanup_close_ int cdi = open_directory(f->cdi), records = open_records(f);
        char name[NAME_MAX_CDI];
        int r = 0;

        cdi_name(uid, name);
        if (cdi >= 0)
                r = remove_file_at(cdi, name);
        if (r >= 0)
                r = remove_metadata(f, uid);
        if (r < 0)
                return r;
        (void) snprintf(name, sizeof(name), "%s.json", uid);
        return records < 0 ? 0 : remove_file_at(records, name);
}

int files_list(const ClaimFiles *f, char ***ret, size_t *ret_n) {
        _cleanup_close_ int fd = open_records(f);
        size_t n = 0, kept = 0;
        char **names = NULL;
        int r = fd < 0 ? fd : list_dir_at(fd, ".", CLAIMS_KEPT_MAX, &names, &n);

        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                char *dot = strrchr(names[i], '.');

                if (dot && streq(dot, ".json"))
                        *dot = '\0';
                if (text_is_uuid(names[i]))
                        names[kept++] = names[i];
                else
                        free(names[i]);
        }
        for (size_t i = kept; i < n; i++)
                names[i] = NULL;
        *ret = names;
        *ret_n = kept;
        return 0;
}
