/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "dra.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "bus/names.h"
#include "util/fileio.h"
#include "util/log.h"

#define TIMEOUT_USEC    (WORK_TIMEOUT_SEC * UINT64_C(1000000))
#define TAG_MAX         255U /* the longest tag that the daemon accepts */
#define CLAIMS_KEPT_MAX 65536U
#define DAEMON_AWAY     "passthroughd does not answer on this node. Start passthroughd.service there."

typedef enum WorkKind {
        WORK_PREPARE,
        WORK_UNPREPARE,
        WORK_ORPHAN, /* release the allocation if its claim no longer exists in Kubernetes */
} WorkKind;

/* A call of the kubelet for several claims. Each of its works adds its claim to the answer. The last work to end sends
 * the answer. */
typedef struct Batch {
        GrpcCall *call; /* NULL: the kubelet has canceled the call */
        WireBuffer answer;
        size_t n_left;
} Batch;

typedef struct Work {
        TAILQ_ENTRY(Work) list;
        Manager *manager;
        WorkKind kind;
        ClaimRef ref;
        Batch *batch; /* NULL for WORK_ORPHAN */
        char name[CLAIM_NAME_SIZE];
        bool is_started;
        bool is_requested; /* the daemon has accepted Allocate or Release */
        uint64_t number;   /* facts.number that the work waits for; UINT64_MAX: the work does not wait for a document */
        json_object *record;
        HttpCall *request; /* running request to the API server; NULL: none */
        sd_bus_slot *slot;
        sd_event_source *timer;
} Work;

static void start_work(Work *k);

static bool is_busy(const Works *w, const char *uid) {
        const Work *k;

        TAILQ_FOREACH(k, &w->list, list)
        if (k->is_started && streq(k->ref.uid, uid))
                return true;
        return false;
}

static json_object *find_allocation(const Work *k) {
        return facts_allocation(&k->manager->facts, k->name);
}

static bool state_is(json_object *allocation, const char *state) {
        return streq_ptr(member_text(allocation, "state"), state);
}

/* Returns the daemon's sentence why its ledger is read-only, else NULL. With a read-only ledger the document may lack
 * allocations, because the daemon may not have read all of them. A failed write also stops all changes, but the
 * document still has all allocations, so NULL is returned then. */
static const char *unread_ledger(const Manager *m) {
        json_object *document = m->facts.document;

        return json_object_get_boolean(member(document, "write_failed")) ? NULL : member_text(document, "read_only");
}

static void free_work(Work *k) {
        Works *w = &k->manager->works;

        TAILQ_REMOVE(&w->list, k, list);
        w->n--;
        w->n_orphans -= k->kind == WORK_ORPHAN;
        (void) http_cancel(k->request);
        json_object_put(k->record);
        sd_bus_slot_unref(k->slot);
        sd_event_source_disable_unref(k->timer);
        free(k);
}

static void end_batch(Batch *b) {
        if (--b->n_left > 0)
                return;
        if (b->call) {
                grpc_call_watch(b->call, NULL, NULL);
                grpc_reply(b->call, &b->answer);
        }
        wire_done(&b->answer);
        free(b);
}

/* Adds the work's claim to the answer of its batch, and ends the work's share of the batch. error: NULL for success. */
static void answer(Work *k, const char *error) {
        _cleanup_(wire_done) WireBuffer devices = { 0 };
        bool is_prepared = k->kind == WORK_PREPARE && !error;

        for (size_t i = 0; is_prepared && i < json_length(member(k->record, "devices")); i++) {
                char id[CLAIM_CDI_ID_SIZE], request[NAME_SIZE];

                claim_cdi_id(k->record, i, id);
                claim_request_name(k->record, i, request);
                message_put_device(&devices, request, member_text(k->record, "node"), claim_device(k->record, i), id);
        }
        message_put_claim(&k->batch->answer, k->ref.uid, k->kind == WORK_PREPARE ? &devices : NULL, error);
        end_batch(k->batch);
}

/* Ends the work with an error, or NULL for success. Starts the next work that waits for the same claim. */
static void end_work(Work *k, const char *error) {
        Works *w = &k->manager->works;
        ClaimRef ref = k->ref;
        Work *next;

        if (error && k->kind != WORK_ORPHAN)
                log_warning("Cannot %s claim %s/%s: %s", k->kind == WORK_PREPARE ? "prepare" : "unprepare",
                            ref.namespace, ref.name, error);
        else if (error && !json_object_object_get_ex(w->told, ref.uid, NULL)) {
                /* Log only once that this orphan cannot be released. */
                (void) json_object_object_add(w->told, ref.uid, NULL);
                log_warning("Cannot release %s, whose claim %s/%s has gone: %s", k->name, ref.namespace, ref.name,
                            error);
        }
        if (k->batch)
                answer(k, error);
        else
                (void) sd_event_source_set_enabled(w->check, SD_EVENT_ONESHOT);
        free_work(k);
        TAILQ_FOREACH(next, &w->list, list)
        if (streq(next->ref.uid, ref.uid)) {
                if (!next->is_started)
                        start_work(next);
                return;
        }
}

static _printf_(2, 3) void fail_work(Work *k, const char *format, ...) {
        char sentence[CLAIM_SENTENCE_SIZE];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(sentence, sizeof(sentence), format, ap);
        va_end(ap);
        end_work(k, sentence);
}

/* A job of the daemon has ended, and a work may wait for it: ask for a new document. */
static int on_job(sd_bus_message *message, void *userdata, sd_bus_error *ret_error) {
        Manager *m = userdata;

        if (m->works.n > 0)
                facts_refresh(m);
        return 0;
}

static int on_called(sd_bus_message *reply, void *userdata, sd_bus_error *ret_error) {
        const sd_bus_error *error = sd_bus_message_get_error(reply);
        const char *job = "/";
        Work *k = userdata;

        k->slot = sd_bus_slot_unref(k->slot);
        if (!error) {
                k->is_requested = true;
                if (k->kind == WORK_PREPARE) /* Allocate returns the allocation's path, then the job's */
                        (void) sd_bus_message_skip(reply, "o");
                if (sd_bus_message_read(reply, "o", &job) < 0 || streq(job, "/"))
                        k->number = facts_refresh(k->manager);
                else
                        k->number = k->manager->facts.asked + 1;
        } else if (sd_bus_error_has_names(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER, SD_BUS_ERROR_SERVICE_UNKNOWN))
                end_work(k, DAEMON_AWAY);
        else if (sd_bus_error_has_names(error, BUS_ERROR_NO_SUCH_ALLOCATION, BUS_ERROR_STALE) &&
                 k->kind != WORK_PREPARE)
                k->number = facts_refresh(k->manager);
        else
                end_work(k, error->message ?: error->name);
        return 0;
}

/* Finds device i of the record in the daemon's document. */
static json_object *device_of(const Work *k, size_t i) {
        return slice_find_device(k->manager->facts.document, claim_device(k->record, i));
}

/*
 * Appends to the request the number of devices from each pool or, if with_places, the pool and address of each device.
 */
static int append_devices(sd_bus_message *m, const Work *k, bool with_places) {
        size_t n = json_length(member(k->record, "devices"));
        const char *element = with_places ? "(ss)" : "(su)";
        int r = sd_bus_message_open_container(m, 'e', "sv");

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", with_places ? REQUEST_KEY_AT : REQUEST_KEY_DEVICES);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'v', with_places ? "a(ss)" : "a(su)");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', element);
        for (size_t i = 0; r >= 0 && i < n; i++) {
                const char *pool = member_text(device_of(k, i), "pool");
                uint32_t before = 0, count = 0;

                for (size_t j = 0; j < n; j++)
                        if (streq(member_text(device_of(k, j), "pool"), pool)) {
                                before += j < i;
                                count++;
                        }
                if (with_places)
                        r = sd_bus_message_append(m, element, pool, member_text(device_of(k, i), "address"));
                else if (before == 0)
                        r = sd_bus_message_append(m, element, pool, count);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

/* Appends the request of Allocate. The request has a token, so that a repeated call gets the allocation of the first
 * call. */
static int append_request(sd_bus_message *m, const Work *k) {
        char tag[NAMESPACE_SIZE + NAME_SIZE + 1];
        int r = sd_bus_message_append(m, "s", k->name);

        if (r < 0)
                return r;
        (void) snprintf(tag, sizeof(tag), "%s/%s", k->ref.namespace, k->ref.name);
        if (strlen(tag) > TAG_MAX) /* a tag without a slash names no claim, see claim_of_allocation(); a shortened name
                                      would be that of another claim */
                *strchr(tag, '/') = '\0';
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        r = append_devices(m, k, false);
        if (r < 0)
                return r;
        r = append_devices(m, k, true);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "{sv}{sv}{sv}", REQUEST_KEY_CONSUMER, "s", k->ref.uid, REQUEST_KEY_TOKEN, "s",
                                  k->ref.uid, REQUEST_KEY_TAG, "s", tag);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static void allocate(Work *k) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        for (size_t i = 0; i < json_length(member(k->record, "devices")); i++) {
                if (slice_has_pool(k->manager->facts.document, member_text(device_of(k, i), "pool")))
                        continue;
                if (k->number == UINT64_MAX) /* the device may be newer than the document */
                        k->number = facts_refresh(k->manager);
                else
                        fail_work(k, "This node has no device '%.64s' for Kubernetes.", claim_device(k->record, i));
                return;
        }
        r = daemon_new_call(k->manager->bus, "Allocate", &m);
        if (r >= 0)
                r = append_request(m, k);
        if (r >= 0)
                r = sd_bus_call_async(k->manager->bus, &k->slot, m, on_called, k, TIMEOUT_USEC);
        if (r < 0)
                fail_work(k, "Failed to call passthroughd: %s.", strerror(-r));
}

/* Releases the allocation. why: ends the work at once with this error; NULL: the work waits until the allocation is
 * gone. */
static void release(Work *k, const char *why) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        uint64_t generation = member_size(find_allocation(k), "generation");
        int r = daemon_new_call(k->manager->bus, "Release", &m);

        if (r >= 0)
                r = sd_bus_message_append(m, "st", k->name, generation);
        if (r >= 0 && why)
                r = sd_bus_send(k->manager->bus, m, NULL);
        else if (r >= 0)
                r = sd_bus_call_async(k->manager->bus, &k->slot, m, on_called, k, TIMEOUT_USEC);
        if (r < 0)
                fail_work(k, "Failed to call passthroughd: %s.", strerror(-r));
        else if (why)
                end_work(k, why);
}

/* Called for each new document: calls Allocate, and then waits until the allocation is ready. Releases a failed
 * allocation, so that the kubelet's next try makes a new one. */
static void continue_prepare(Work *k) {
        json_object *allocation = find_allocation(k);
        int r;

        if (!k->is_requested)
                allocate(k);
        else if (!allocation)
                end_work(k, "The allocation of the claim was released meanwhile.");
        else if (state_is(allocation, "failed"))
                release(k, member_text(allocation, "reason") ?: "The devices could not be prepared.");
        else if (state_is(allocation, "releasing"))
                end_work(k, "The devices of the claim are still being released.");
        else if (state_is(allocation, "ready") || state_is(allocation, "in-use")) {
                r = files_write(k->manager, k->record);
                if (r < 0 && r != -ENOENT)
                        fail_work(k, "Failed to write the files of the claim in %s or %s: %s.", k->manager->kubelet,
                                  k->manager->cdi, strerror(-r));
                else
                        end_work(k, r < 0 ? "A device of the claim has no IOMMU group." : NULL);
        }
}

static void on_claim(HttpReply *reply, void *userdata) {
        _cleanup_json_ json_object *before = NULL;
        char sentence[CLAIM_SENTENCE_SIZE];
        Work *k = userdata;
        int r;

        k->request = NULL;
        if (find_allocation(k))
                (void) files_read_record(k->manager, k->ref.uid, &before);
        if (reply->status != 200) {
                /* If the API server does not reply or cannot answer now, prepare the claim from its record, with the
                 * devices of the last time. */
                if (before && (reply->status < 0 || reply->status == 429 || reply->status >= 500)) {
                        k->record = TAKE_PTR(before);
                        allocate(k);
                } else
                        end_work(k, apiserver_reason(reply, sentence, sizeof(sentence)));
                return;
        }
        r = claim_from_document(reply->document, &k->ref, k->manager->node, &k->record, sentence);
        if (r == -ENOENT)
                end_work(k, "The API server has another claim of this name.");
        else if (r == -EINVAL)
                end_work(k, sentence);
        else if (r < 0)
                fail_work(k, "Failed to read the claim: %s.", strerror(-r));
        else if (before && !json_object_equal(member(before, "devices"), member(k->record, "devices")))
                release(k, "The claim has other devices than before, which are released first.");
        else
                allocate(k);
}

/* Called for each new document: calls Release, and then waits until the allocation is gone. The work fails while a
 * guest runs, because the daemon refuses the Release. */
static void continue_release(Work *k) {
        json_object *allocation = find_allocation(k);
        int r;

        if (state_is(allocation, "releasing"))
                k->number = k->manager->facts.number + 1;
        else if (allocation && k->is_requested)
                end_work(k, member_text(allocation, "reason") ?: "The devices could not be released.");
        else if (allocation)
                release(k, NULL);
        else if (unread_ledger(k->manager))
                end_work(k, unread_ledger(k->manager));
        else {
                r = files_remove(k->manager, k->ref.uid);
                if (k->kind == WORK_ORPHAN && k->is_requested)
                        log_info("Released %s, whose claim %s/%s has gone.", k->name, k->ref.namespace, k->ref.name);
                json_object_object_del(k->manager->works.told, k->ref.uid);
                if (r < 0)
                        fail_work(k, "Failed to remove the files of the claim in %s or %s: %s.", k->manager->kubelet,
                                  k->manager->cdi, strerror(-r));
                else
                        end_work(k, NULL);
        }
}

/* Starts a release. If the document lacks the allocation, the allocation may be newer than the document, so the work
 * waits for the next document. */
static void start_release(Work *k) {
        if (find_allocation(k))
                continue_release(k);
        else
                k->number = facts_refresh(k->manager);
}

/*
 * Handles the API server's reply about the claim of an allocation. Releases the allocation if the claim no longer
 * exists.
 */
static void on_orphan(HttpReply *reply, void *userdata) {
        char sentence[CLAIM_SENTENCE_SIZE];
        Work *k = userdata;

        k->request = NULL;
        if (claim_has_gone(reply->status, reply->document, &k->ref))
                start_release(k);
        else if (reply->status == 403)
                /* The credential of a node may read only the claims of pods on this node. */
                end_work(k, apiserver_reason(reply, sentence, sizeof(sentence)));
        else
                end_work(k, NULL);
}

static void start_work(Work *k) {
        char path[NAMESPACE_SIZE + NAME_SIZE + 64];

        k->is_started = true;
        if (k->kind == WORK_UNPREPARE) {
                start_release(k);
                return;
        }
        (void) snprintf(path, sizeof(path), "/apis/resource.k8s.io/v1/namespaces/%s/resourceclaims/%s",
                        k->ref.namespace, k->ref.name);
        if (apiserver_start(&k->manager->api, "GET", path, NULL, k->kind == WORK_PREPARE ? on_claim : on_orphan, k,
                            &k->request) >= 0)
                return;
        if (k->kind == WORK_PREPARE)
                end_work(k, "The API server cannot be asked for the claim: see the journal of passthrough-dra.");
        else {
                k->manager->works.is_checking = false; /* the other orphans' requests would fail as well */
                end_work(k, NULL);
        }
}

/* Continues all works that wait for this answer. Begins again after each work, because a work that continues may free
 * other works. */
void works_on_facts(Manager *m) {
        Work *k;

again:
        TAILQ_FOREACH(k, &m->works.list, list) {
                if (k->slot || k->number > m->facts.number)
                        continue;
                k->number = m->facts.number + 1;
                if (!m->facts.document)
                        end_work(k, DAEMON_AWAY);
                else if (k->kind == WORK_PREPARE)
                        continue_prepare(k);
                else
                        continue_release(k);
                goto again;
        }
}

/* Ends a work at its time limit. The daemon's job goes on, and the kubelet's next try finds its result. */
static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        Work *k = userdata;

        fail_work(k, "Not done within %u s: the allocation %s is %s. It goes on, and the next try finds it.",
                  WORK_TIMEOUT_SEC, k->name, member_text(find_allocation(k), "state") ?: "not made yet");
        return 0;
}

/* Appends a work to the list, and starts it unless another work of the same claim runs. 0 or -ENOMEM. */
static int add_work(Manager *m, WorkKind kind, const ClaimRef *ref, Batch *batch) {
        Work *k = calloc(1, sizeof(*k));
        Works *w = &m->works;
        bool busy = is_busy(w, ref->uid);

        if (!k)
                return -ENOMEM;
        *k = (Work) { .manager = m, .kind = kind, .ref = *ref, .batch = batch, .number = UINT64_MAX };
        (void) snprintf(k->name, sizeof(k->name), CLAIM_PREFIX "%s", ref->uid);
        TAILQ_INSERT_TAIL(&w->list, k, list);
        w->n++;
        w->n_orphans += kind == WORK_ORPHAN;
        if (batch &&
            sd_event_add_time_relative(m->event, &k->timer, CLOCK_MONOTONIC, TIMEOUT_USEC, 0, on_timeout, k) < 0) {
                free_work(k);
                return -ENOMEM;
        }
        if (!busy)
                start_work(k);
        return 0;
}

static void on_gone(GrpcCall *call, void *userdata) {
        Batch *b = userdata;

        b->call = NULL;
}

static void run_call(Manager *m, WorkKind kind, GrpcCall *call, const uint8_t *data, size_t size) {
        _cleanup_free_ ClaimRef *refs = NULL;
        WireBuffer empty = { 0 };
        size_t n = 0;
        int r = message_parse_claims(data, size, &refs, &n);
        Batch *b = r >= 0 && n > 0 && m->works.n + n <= WORKS_MAX ? calloc(1, sizeof(*b)) : NULL;

        if (r < 0)
                grpc_fail(call, r == -ENOMEM ? GRPC_INTERNAL : GRPC_INVALID_ARGUMENT, "The claims cannot be read.");
        else if (n == 0)
                grpc_reply(call, &empty);
        else if (!b)
                grpc_fail(call, GRPC_RESOURCE_EXHAUSTED, "Too many claims are under way.");
        if (!b)
                return;
        *b = (Batch) { .call = call, .n_left = n };
        grpc_call_watch(call, on_gone, b);
        for (size_t i = 0; i < n; i++)
                if (add_work(m, kind, &refs[i], b) < 0)
                        end_batch(b);
}

void works_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        run_call(userdata, WORK_PREPARE, call, data, size);
}

void works_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata) {
        run_call(userdata, WORK_UNPREPARE, call, data, size);
}

/* Removes files of claims without an allocation: a crash between a release and the removal leaves them behind. */
static void remove_stale_files(const Manager *m) {
        _cleanup_names_ char **uids = NULL;
        size_t n = 0;
        int r = list_dir_at(AT_FDCWD, m->records, CLAIMS_KEPT_MAX, &uids, &n);

        if (r < 0)
                log_warning_errno(r, "Cannot list %s: %m, ignoring", m->records);
        for (size_t i = 0; i < n; i++) {
                char name[CLAIM_NAME_SIZE];

                uids[i][strcspn(uids[i], ".")] = '\0';
                (void) snprintf(name, sizeof(name), CLAIM_PREFIX "%.36s", uids[i]);
                if (!text_is_uuid(uids[i]) || facts_allocation(&m->facts, name) || is_busy(&m->works, uids[i]))
                        continue;
                r = files_remove(m, uids[i]);
                if (r < 0)
                        log_warning_errno(r, "Cannot remove the files of claim %s: %m, ignoring", uids[i]);
                else
                        log_info("Removed the files of claim %s, which has no devices any more.", uids[i]);
        }
}

/* Finds the claim that follows works.checked in the order of UIDs, among the claims with an allocation. Returns false
 * if there is no further claim. */
static bool next_claim(const Manager *m, ClaimRef *ret) {
        json_object *all = member(m->facts.document, "allocations");
        bool found = false;

        for (size_t i = 0; i < json_length(all); i++) {
                ClaimRef ref = { 0 };

                if (!claim_of_allocation(json_at(all, i), &ref) || strcmp(ref.uid, m->works.checked) <= 0 ||
                    (found && strcmp(ref.uid, ret->uid) >= 0))
                        continue;
                *ret = ref;
                found = true;
        }
        return found;
}

/*
 * Adds works that check the next claims, as many as are allowed at a time. Runs again when such a work ends, until all
 * claims are checked.
 */
static int on_check(sd_event_source *source, void *userdata) {
        Manager *m = userdata;
        Works *w = &m->works;
        ClaimRef ref;

        while (w->is_checking && !unread_ledger(m) && w->n_orphans < ORPHANS_MAX && w->n < WORKS_MAX / 2) {
                w->is_checking = next_claim(m, &ref);
                (void) strcpy(m->works.checked, w->is_checking ? ref.uid : "");
                if (w->is_checking && !is_busy(&m->works, ref.uid))
                        (void) add_work(m, WORK_ORPHAN, &ref, NULL);
        }
        return 0;
}

/* Writes the files of all prepared claims again: after a boot there may be no CDI documents, and IOMMU groups may have
 * other numbers. A claim without a record was never prepared; the kubelet repeats its call. */
void works_collect(Manager *m) {
        json_object *all = member(m->facts.document, "allocations");

        if (!m->facts.document || unread_ledger(m))
                return;
        remove_stale_files(m);
        for (size_t i = 0; i < json_length(all); i++) {
                json_object *allocation = json_at(all, i);
                _cleanup_json_ json_object *record = NULL;
                ClaimRef ref = { 0 };
                int r;

                if (!claim_of_allocation(allocation, &ref) || is_busy(&m->works, ref.uid) ||
                    (!state_is(allocation, "ready") && !state_is(allocation, "in-use")))
                        continue;
                r = files_read_record(m, ref.uid, &record);
                if (r < 0 && r != -ENOENT)
                        log_warning_errno(r, "Cannot read %s/%s.json: %m. Remove it: the next Prepare writes it again.",
                                          m->records, ref.uid);
                if (r < 0)
                        continue;
                r = files_write(m, record);
                if (r < 0)
                        log_warning_errno(r, "Cannot write the files of claim %s again: %m, ignoring", ref.uid);
                else if (r > 0)
                        log_info("The files of claim %s are written again.", ref.uid);
        }
        m->works.is_checking = true;
        (void) sd_event_source_set_enabled(m->works.check, SD_EVENT_ONESHOT);
}

int works_init(Manager *m) {
        Works *w = &m->works;
        int r = agent_add_idle(m->event, &w->check, on_check, m);

        w->told = json_object_new_object();
        if (!w->told)
                r = -ENOMEM;
        if (r >= 0)
                r = sd_bus_match_signal(m->bus, NULL, BUS_NAME, BUS_PATH, BUS_MANAGER_INTERFACE, "JobRemoved", on_job,
                                        m);
        return r < 0 ? log_error_errno(r, "Failed to watch the jobs of passthroughd: %m") : 0;
}

void works_done(Works *w) {
        Work *k;

        while ((k = TAILQ_FIRST(&w->list))) {
                if (k->batch)
                        end_batch(k->batch);
                free_work(k);
        }
        sd_event_source_disable_unref(w->check);
        json_object_put(w->told);
}
