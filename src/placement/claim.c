/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model/json-parse.h"
#include "provider-name.h"
#include "util/strings.h"

typedef struct Words {
        const char *host;
        json_object
                *counts;  /* by pool or service: how many devices or slots the claim has, in the order of the claim */
        char *at, *nodes; /* options --at and --host-nodes as text; NULL: none */
        int64_t cpus, memory_mib, page_kib;
} Words;

static int add_count(Words *w, const char *pool, int64_t amount) {
        int64_t n = member_number(w->counts, pool);

        return json_object_object_add(w->counts, pool, json_object_new_int64(n + amount)) < 0 ? -ENOMEM : 0;
}

static int add_device(Words *w, json_object *device) {
        const char *pool = member_text(device, "pool");

        if (add_count(w, pool, 1) < 0)
                return -ENOMEM;
        return string_replace(&w->at, "%s --at %s=%s", w->at ?: "", pool, member_text(device, "address"));
}

/* Adds available devices of the part's provider and class, at most *left, in the daemon's order. Subtracts their number
 * from *left. */
static int add_devices(Words *w, json_object *devices, const ClaimPart *part, int64_t *left) {
        int r = 0;

        for (size_t i = 0; r >= 0 && *left > 0 && i < json_length(devices); i++) {
                json_object *device = json_at(devices, i);
                char uuid[TREE_UUID_SIZE], class[TREE_NAME_SIZE];

                if (!member_text(device, "pool") || !streq_ptr(member_text(device, "state"), "available"))
                        continue;
                r = name_device(w->host, device, uuid, class);
                if (r < 0 || !streq(uuid, part->provider) || !streq(class, part->class))
                        continue;
                r = add_device(w, device);
                (*left)--;
        }
        return r;
}

static bool add_amount(Words *w, const ClaimPart *part) {
        uint64_t size = 0;

        if (streq(part->class, "PCPU"))
                w->cpus += part->amount;
        else if (streq(part->class, "MEMORY_MB"))
                w->memory_mib += part->amount;
        else if (sscanf(part->class, "CUSTOM_HUGEPAGES_%" SCNu64 "KB", &size) == 1 && size > 0) {
                w->page_kib = (int64_t) size;
                w->memory_mib += part->amount * (int64_t) size / 1024;
        } else
                return false;
        return true;
}

/* If the part is on a NUMA node, adds its CPUs or memory, and names the node unless an earlier part did. */
static int add_node(Words *w, json_object *nodes, const Claim *claim, const ClaimPart *part) {
        for (size_t i = 0; i < json_length(nodes); i++) {
                int id = (int) member_number(json_at(nodes, i), "id");
                char suffix[32], uuid[TREE_UUID_SIZE];

                (void) snprintf(suffix, sizeof(suffix), "NUMA%d", id);
                if (name_provider(w->host, suffix, uuid) < 0)
                        return -ENOMEM;
                if (!streq(uuid, part->provider) || !add_amount(w, part))
                        continue;
                for (const ClaimPart *before = claim->parts; before < part; before++)
                        if (streq(before->provider, uuid))
                                return 0;
                return string_replace(&w->nodes, "%s%s%d", w->nodes ?: "", w->nodes ? "," : " --host-nodes ", id);
        }
        return 0;
}

/* Returns 1 if the part is on a device of this node, whether available or not; 0 if it is not; or -ENOMEM. */
static int is_device_part(const Words *w, json_object *devices, const ClaimPart *part) {
        for (size_t i = 0; i < json_length(devices); i++) {
                char uuid[TREE_UUID_SIZE], class[TREE_NAME_SIZE];
                json_object *device = json_at(devices, i);
                int r = member_text(device, "vendor") ? name_device(w->host, device, uuid, class) : -ENOENT;

                if (r == -ENOMEM)
                        return r;
                if (r == 0 && streq(uuid, part->provider) && streq(class, part->class))
                        return 1;
        }
        return 0;
}

/* If the part is on an endpoint of the service, adds the part's slots. The daemon will choose the endpoint, so the text
 * does not name it. Returns 0, -ENOMEM, or -EBUSY if the endpoint has too few free slots or is out of service. */
static int add_slots(Words *w, json_object *service, const ClaimPart *part) {
        json_object *endpoints = member_array(service, "endpoints");
        const char *name = member_text(service, "name") ?: "";
        char uuid[TREE_UUID_SIZE], class[TREE_NAME_SIZE];

        name_slot_class(name, class);
        if (!streq(class, part->class) || !endpoints)
                return 0;
        for (size_t i = 0; i < json_length(endpoints); i++) {
                json_object *o = json_at(endpoints, i);
                int64_t slots = member_number(o, "slots"), allocated = member_number(o, "allocated");

                if (name_endpoint(w->host, member_text(o, "endpoint") ?: "", uuid) < 0)
                        return -ENOMEM;
                if (!streq(uuid, part->provider))
                        continue;
                if (slots - allocated < part->amount || member_text(o, "reason"))
                        return -EBUSY;
                return add_count(w, name, part->amount);
        }
        return 0;
}

/* Adds a part on a NUMA node or on an endpoint of a service. */
static int add_other(Words *w, json_object *describe, const Claim *claim, const ClaimPart *part) {
        json_object *pools = member(describe, "pools");
        int r = add_node(w, member(describe, "nodes"), claim, part);

        for (size_t i = 0; r >= 0 && i < json_length(pools); i++)
                r = add_slots(w, json_at(pools, i), part);
        return r;
}

static int join(Words *w, const char *consumer, char **ret) {
        _cleanup_free_ char *line = string_format("--consumer %s", consumer);

        if (!line)
                return -ENOMEM;
        json_object_object_foreach(w->counts, pool, count) {
                if (string_replace(&line, "%s %s=%s", line, pool, json_object_get_string(count)) < 0)
                        return -ENOMEM;
        }
        if (string_replace(&line, "%s%s%s", line, w->at ?: "", w->nodes ?: "") < 0 ||
            (w->cpus > 0 && string_replace(&line, "%s --cpus %" PRId64, line, w->cpus) < 0) ||
            (w->memory_mib > 0 && string_replace(&line, "%s --memory %" PRId64 "M", line, w->memory_mib) < 0) ||
            (w->page_kib > 0 && string_replace(&line, "%s --page-size %" PRId64 "K", line, w->page_kib) < 0))
                return -ENOMEM;
        *ret = TAKE_PTR(line);
        return 0;
}

int claim_request(const Claim *claim, const char *host, json_object *describe, char **ret) {
        json_object *devices = member_array(describe, "devices");
        Words w = { .host = host, .counts = json_object_new_object() };
        int r = w.counts ? 0 : -ENOMEM;

        if (!devices || !member_array(describe, "nodes") || !member_array(describe, "pools"))
                r = -EBADMSG;
        for (size_t i = 0; r >= 0 && i < claim->n_parts; i++) {
                const ClaimPart *part = &claim->parts[i];
                int64_t left = part->amount;

                r = is_device_part(&w, devices, part);
                if (r > 0)
                        r = add_devices(&w, devices, part, &left) < 0 ? -ENOMEM : left > 0 ? -EBUSY : 0;
                else if (r == 0)
                        r = add_other(&w, describe, claim, part);
        }
        if (r >= 0 && json_object_object_length(w.counts) == 0 && !w.nodes)
                r = -ENOENT;
        if (r >= 0)
                r = join(&w, claim->consumer, ret);
        json_object_put(w.counts);
        free(w.at);
        free(w.nodes);
        return r;
}
