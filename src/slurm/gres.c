/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes Slurm's GRES from the pools of the node. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "model/json-parse.h"
#include "slurm/gres.h"
#include "util/strings.h"

/* Returns true for a GPU or accelerator. A daemon of 0.3, which runs on after an upgrade until its restart, reports no
 * kind: then its GPUs are those of PCI class 03. */
static bool is_accelerator(json_object *device) {
        const char *kind = member_text(device, "kind"), *class = member_text(device, "class");

        if (!kind)
                return class && strncmp(class, "03", 2) == 0;
        return streq_ptr(kind, "gpu") || streq_ptr(kind, "accelerator");
}

/* Appends a word to the GRES type, in lower case, with '_' for characters that a type cannot have. */
static int append_word(char **type, const char *word, size_t n) {
        int r = string_append(type, "_", "%.*s", (int) n, word);

        for (char *p = *type; r == 0 && *p; p++)
                *p = isalnum((unsigned char) *p) || *p == '-' ? (char) tolower((unsigned char) *p) : '_';
        return r;
}

/*
 * Finds the model in the last brackets of a name of pci.ids: the first word with a digit, "h100" of "GH100 [H100 SXM5
 * 80GB]". Slurm takes a word of only digits for a count, so such a word gets the previous one as a prefix: "rtx_3090"
 * of "GA102 [GeForce RTX 3090]".
 */
static int find_type(const char *name, char **ret) {
        const char *at = name ? strrchr(name, '[') : NULL, *before = NULL;
        size_t n, n_before = 0;

        for (at = at ? at + 1 : ""; *at && *at != ']'; at += n) {
                at += strspn(at, " ");
                n = strcspn(at, " ]");
                if (strcspn(at, "0123456789") < n) {
                        int r = 0;

                        if (strspn(at, "0123456789") == n)
                                r = before ? append_word(ret, before, n_before) : -ENOENT;
                        return r < 0 ? MIN(r, 0) : append_word(ret, at, n);
                }
                before = at;
                n_before = n;
        }
        return 0;
}

/* Finds the model of a device. If the device is not in pci.ids, its name ends with its id in brackets, which is no
 * model. */
static int take_model(json_object *device, char **ret) {
        const char *name = member_text(device, "name"), *vendor = member_text(device, "vendor"),
                   *id = member_text(device, "device");
        const char *brackets = name ? strrchr(name, '[') : NULL;
        char unknown[16] = "";

        if (vendor && id)
                (void) snprintf(unknown, sizeof(unknown), "[%s:%s]", vendor, id);
        return streq_ptr(brackets, unknown) ? 0 : find_type(name, ret);
}

static bool is_in_service(const char *state) {
        return streq_ptr(state, "available") || streq_ptr(state, "allocated") || streq_ptr(state, "reserved");
}

/* Sets the type of the pool to the model of the device. Clears it when the pool has devices of several models. */
static int take_type(Gres *gres, json_object *device) {
        _cleanup_free_ char *type = NULL;
        int r = is_accelerator(device) ? take_model(device, &type) : 0;

        if (r == -ENOMEM)
                return r;
        if (gres->total == 1)
                gres->type = TAKE_PTR(type);
        else if (!streq_ptr(gres->type, type)) {
                free(gres->type);
                gres->type = NULL;
        }
        return 0;
}

static int take_devices(Gres *gres, json_object *devices) {
        for (size_t i = 0; i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                int r;

                if (!streq_ptr(member_text(device, "pool"), gres->pool))
                        continue;
                gres->total++;
                if (is_in_service(member_text(device, "state")))
                        gres->healthy++;
                r = take_type(gres, device);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* If the pool is a service, sets total and healthy to the daemon's count of its slots. */
static void take_slots(Gres *gres, json_object *pool) {
        if (member_length(pool, "endpoints") > 0)
                gres->total = gres->healthy = (unsigned) member_number(pool, "total");
}

int gres_list_new(json_object *description, GresList *ret) {
        _cleanup_gres_list_ GresList list = { 0 };

        for (size_t i = 0; i < member_length(description, "pools"); i++) {
                json_object *pool = member_at(description, "pools", i);
                const char *name = member_text(pool, "name"), *scheduler = member_text(pool, "scheduler");
                int r = ARRAY_RESERVE(list.items, list.n);

                if (r < 0)
                        return r;
                list.items[list.n++] = (Gres) { .pool = name ? name : "" };
                if (scheduler && !streq(scheduler, "none"))
                        continue;
                take_slots(&list.items[list.n - 1], pool);
                r = take_devices(&list.items[list.n - 1], member(description, "devices"));
                if (r < 0)
                        return r;
        }
        *ret = list;
        list = (GresList) { 0 };
        return 0;
}

void gres_list_withhold(GresList *list, json_object *description, const char *allocation) {
        for (size_t i = 0; i < member_length(description, "devices"); i++) {
                json_object *device = member_at(description, "devices", i);

                if (!streq_ptr(member_text(device, "allocation"), allocation) ||
                    !is_in_service(member_text(device, "state")))
                        continue;
                for (size_t j = 0; j < list->n; j++)
                        if (streq_ptr(member_text(device, "pool"), list->items[j].pool) && list->items[j].healthy > 0)
                                list->items[j].healthy--;
        }
}

void gres_list_done(GresList *list) {
        for (size_t i = 0; i < list->n; i++)
                free(list->items[i].type);
        free(list->items);
        *list = (GresList) { 0 };
}

/* Returns whether the first entry of a Gres= is for this pool: "vmgpu", "vmgpu:8" or "vmgpu:h100:8(S:0-1)". */
static bool is_of_pool(const char *entry, const Gres *g) {
        size_t n = strcspn(entry, ":(,"), prefix = strlen(GRES_PREFIX);

        return n == prefix + strlen(g->pool) && strncmp(entry, GRES_PREFIX, prefix) == 0 &&
               strncmp(entry + prefix, g->pool, n - prefix) == 0;
}

static bool has_pool(const char *entries, const Gres *g) {
        for (const char *at = entries; at; at = strchr(at, ',')) {
                at += *at == ',';
                if (is_of_pool(at, g))
                        return true;
        }
        return false;
}

static const Gres *find_gres(const GresList *list, const char *entry) {
        for (size_t i = 0; i < list->n; i++)
                if (is_of_pool(entry, &list->items[i]))
                        return &list->items[i];
        return NULL;
}

/* Returns the length of the entry without its count: that of "vmgpu:h100" in "vmgpu:h100:8(S:0-1)". */
static size_t name_length(const char *entry) {
        size_t n = strcspn(entry, "("), i = n;

        while (i > 0 && isdigit((unsigned char) entry[i - 1]))
                i--;
        return i > 0 && i < n && entry[i - 1] == ':' ? i - 1 : n;
}

static int append_gres(char **text, const Gres *g, unsigned count) {
        return string_append(text, ",", GRES_PREFIX "%s%s%s:%u", g->pool, g->type ? ":" : "", g->type ?: "", count);
}

char *gres_list_format(const GresList *list) {
        _cleanup_free_ char *text = strdup("");
        int r = text ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < list->n; i++)
                r = append_gres(&text, &list->items[i], list->items[i].total);
        return r == 0 ? TAKE_PTR(text) : NULL;
}

char *gres_list_update(const GresList *list, const char *present, const char *types) {
        _cleanup_free_ char *copy = strdup(present), *text = strdup("");
        char *rest = copy, *entry;
        int r = copy && text ? 0 : -ENOMEM;

        while (r == 0 && (entry = strsep(&rest, ","))) {
                const Gres *g = find_gres(list, entry);

                if (g && g->healthy > 0)
                        r = string_append(&text, ",", "%.*s:%u", (int) name_length(entry), entry, g->healthy);
                else if (!g)
                        r = string_append(&text, ",", "%s", entry);
        }
        for (size_t i = 0; r == 0 && i < list->n; i++)
                if (list->items[i].healthy > 0 && !has_pool(present, &list->items[i]) &&
                    has_pool(types, &list->items[i]))
                        r = append_gres(&text, &list->items[i], list->items[i].healthy);
        return r == 0 ? TAKE_PTR(text) : NULL;
}
