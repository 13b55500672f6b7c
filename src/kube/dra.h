/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* passthrough-dra: its state and its parts. main.c initializes each part once. */

#include <sys/queue.h>

#include "agent/daemon.h"
#include "agent/http.h"
#include "claim.h"
#include "grpc.h"

#define WORKS_MAX        512U
#define ORPHANS_MAX      32U /* the most checks of orphans (allocations whose claims may have gone) at a time */
/* Limit for preparing or unpreparing a claim. The kubelet cancels a call after 45 s (kubernetes/kubernetes,
 * pkg/kubelet/cm/dra/plugin). */
#define WORK_TIMEOUT_SEC 40U
#define WATCHERS_MAX     8U

/* Address of the API server, and credential of this program, from a kubeconfig file. */
typedef struct Api {
        char *server; /* without a slash at the end */
        char *token, *token_file;
        char *files[3], *texts[3]; /* the CA (both NULL: the system's CAs), the client certificate, and its key, in PEM:
                                      texts[i] has the text, or files[i] the path of a file */
        HttpTls tls;
        Http *http;
} Api;

/* The daemon's last document of the node. */
typedef struct Facts {
        json_object *document; /* NULL: no answer yet, or the last call failed */
        uint64_t number; /* number of the last call that was answered, also with an error; calls are counted from 1 */
        uint64_t asked;  /* number of the call that is running, or of the last one */
        bool again;      /* facts_refresh() was called during the running call: call once more after the reply */
        sd_bus_slot *slot;
        sd_event_source *timer; /* starts the next call */
        uint64_t delay;
} Facts;

/* The state of publishing ResourceSlices to the API server. */
typedef struct Publisher {
        char *node_uid;         /* metadata.uid of this Node, the owner of the slices; NULL: not read yet */
        sd_event_source *timer; /* starts the next full comparison, also after a failed request */
        json_object *wanted;    /* slices_wanted() of the daemon's last document; NULL: no document yet */
        json_object *items;     /* this driver's slices that the API server has, by name; NULL: to be read */
        json_object *written; /* by name of a slice: the spec that was sent, and the spec that the API server stored */
        json_object *told;  /* what was logged already: members that the API server dropped, devices that other drivers
                               also offer */
        json_object *write; /* the write that is running or comes next; see slices_difference() */
        int64_t generation; /* pool generation of the slices that are being written; 0: none are being written */
        bool is_busy;       /* a request is running */
        bool is_stale;      /* read the Node and the slices again before the next write */
        uint64_t delay;     /* for retry_usec(); 0: no request has failed since the slices were last equal */
        unsigned n_writes, kubelet_tries;
} Publisher;

/* The works: one Work for each claim of a prepare or unprepare call, and one for each check of an orphan. */
typedef struct Works {
        TAILQ_HEAD(WorkList, Work) list; /* in the order in which they were added */
        size_t n, n_orphans;
        bool is_checking;
        sd_event_source *check;        /* idle source that starts the check of further orphans */
        char checked[UUID_STRING_MAX]; /* UID of the claim that was checked last; "": start a round. A round checks the
                                          claims of all allocations, in the order of the claims' UIDs */
        json_object *told;             /* UIDs of the claims of orphans that were logged already */
} Works;

/* The two sockets that the kubelet calls. */
typedef struct Plugin {
        char *path; /* path of the plugin's socket */
        GrpcServer *registration, *server;
        GrpcCall *watchers[WATCHERS_MAX]; /* calls of NodeWatchResources, to which health is sent */
        WireBuffer health;                /* the last message to watchers, without its timestamps */
        sd_event_source *renew;
} Plugin;

typedef struct Manager Manager;
struct Manager {
        char *kubeconfig, *node, *kubelet, *cdi; /* settings: passthrough-dra(8) */
        char *records, *metadata;                /* directories for the files of claims */
        sd_bus *bus;
        sd_event *event;
        sd_event_source *collect; /* starts works_collect() */
        sd_event_source *tell;    /* updates the ResourceSlices, and then the watchers */
        bool had_facts;
        Api api;
        Publisher publisher;
        Facts facts;
        Works works;
        Plugin plugin;
        void (*on_facts)(Manager *m);
};

/*
 * Requests to the API server of Kubernetes, with the address and the credential of a kubeconfig file
 * (kubernetes.io/docs/reference/config-api/kubeconfig.v1). A token file is read before each request, and certificate
 * files before each connection, so that these files can be renewed. apiserver_init() and apiserver_start() return 0 or
 * a negative errno, logged. If apiserver_start() fails, done() is not called.
 */
int apiserver_init(Manager *m);
void apiserver_done(Api *a);
/* Starts a request. The loop calls done() with the reply. ret_call: as in http_start(). */
int apiserver_start(const Api *a, const char *method, const char *path, json_object *body, http_done_t done,
                    void *userdata, HttpCall **ret_call);
/* Returns why a request failed, as a sentence, which may be in buf: the message that the API server sent, the HTTP
 * status, or that the API server does not answer. */
const char *apiserver_reason(const HttpReply *reply, char *buf, size_t size);

/* Keeps the ResourceSlices of the API server up to date, with one request at a time and as few writes as possible for a
 * change. The slices are read again after a conflict. The Node and the slices are read again after a failure,
 * periodically, at a reload, and when the kubelet has started, because it may remove slices. publisher_init() returns 0
 * or a negative errno, logged. */
int publisher_init(Manager *m);
void publisher_done(Publisher *p);
/* Call when the daemon's document has changed. Without a document (the daemon is away) the published slices stay. */
void publisher_update(Manager *m);
/* Reads the Node and the slices again, and sends again the members that the API server dropped. */
void publisher_reread(Manager *m);
/* Call when the kubelet has started: it may remove slices until its plugins are registered, and shortly afterwards. */
void publisher_kubelet_started(Manager *m);

/*
 * Reads the daemon's document. Each answer of the daemon has a number. A caller that needs the present state calls
 * facts_refresh(), and waits for an answer with the returned number or a higher one. on_facts() is called after each
 * answer, also after an error, for example because the daemon does not run. facts_init() returns 0 or a negative errno,
 * logged.
 */
int facts_init(Manager *m, void (*on_facts)(Manager *m));
void facts_done(Facts *f);
uint64_t facts_refresh(Manager *m);
/* Returns the allocation of this name in the daemon's document. NULL: none, or no document. */
json_object *facts_allocation(const Facts *f, const char *name);

/*
 * The files of a claim: its record below this program's directory, the metadata of its requests beside it, and a CDI
 * document. The daemon's ledger, not these files, decides which claims have devices: files without an allocation are
 * removed, and missing files are made again from the record.
 */
/* Makes the directories of the records and the CDI documents, and removes temporary files from them. 0 or a negative
 * errno, logged. */
int files_init(Manager *m);
/* Writes the files whose content differs, the record first. Returns how many it wrote, or a negative errno; -ENOENT: a
 * device of the claim, or its IOMMU group, is missing. */
int files_write(const Manager *m, json_object *record);
/* Reads the record of a claim. Returns 0, -ENOENT if there is no record, or another negative errno. */
int files_read_record(const Manager *m, const char *uid, json_object **ret);
/* Removes the files of a claim, the record last. Returns 0, also for a claim without files, or a negative errno. */
int files_remove(const Manager *m, const char *uid);

/*
 * Works for claims: prepare, unprepare, and release of orphans, the allocations whose claims no longer exist in
 * Kubernetes. Only one work of a claim runs at a time; further works for the claim wait. A work first reads the claim
 * from the API server, unless it is an unprepare. It then calls the daemon, and examines each new document of the
 * daemon. So it continues after a lost signal. A work that finds that the daemon does not run ends with an error; the
 * kubelet repeats its call.
 */
/* Prepares the works, and watches the daemon's jobs. 0 or a negative errno, logged. */
int works_init(Manager *m);
/* Frees all works. Call it after grpc_server_free(), which ends the kubelet's calls. */
void works_done(Works *w);
/* The methods NodePrepareResources and NodeUnprepareResources of DRAPlugin. */
void works_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
void works_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
/* Call when facts_refresh() has an answer: continues the works that wait for it. */
void works_on_facts(Manager *m);
/* Writes the files of prepared claims again, removes files of claims without an allocation, and starts a check whether
 * the claims of all allocations still exist. Does nothing without a document, or while the daemon's ledger is
 * read-only (unread_ledger()). */
void works_collect(Manager *m);
