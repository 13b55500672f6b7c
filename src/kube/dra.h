/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* passthrough-dra: its state and its parts. main.c initializes each part once, in this order. */

#include <sys/queue.h>

#include "agent/daemon.h"
#include "agent/http.h"
#include "claim.h"
#include "grpc.h"

#define WORKS_MAX        512U
#define ORPHANS_MAX      32U /* the most claims with an allocation about which the API server is asked at a time */
/* The kubelet gives a call 45 s (kubernetes/kubernetes, pkg/kubelet/cm/dra/plugin). */
#define WORK_TIMEOUT_SEC 40U
#define WATCHERS_MAX     8U

/* Address of the API server, and credential of this program, from a kubeconfig file. */
typedef struct Api {
        char *server; /* without a slash at the end */
        char *token, *token_file;
        char *files[3],
                *texts[3]; /* PEM files and texts: the CA (none: those of the system), a certificate, and its key */
        HttpTls tls;
        Http *http;
} Api;

/* The daemon's current document of the node. */
typedef struct Facts {
        json_object *document; /* NULL: the daemon does not answer */
        uint64_t number;       /* number of the last answer */
        uint64_t asked;        /* number of the current call, or of the last one */
        bool again;            /* something changed after the call was sent, so ask again */
        sd_bus_slot *slot;
        sd_event_source *timer; /* timer of the next try */
        uint64_t delay;
} Facts;

/* The ResourceSlices. */
typedef struct Publisher {
        char *node_uid;         /* NULL: not read yet */
        sd_event_source *timer; /* the next full comparison, or the next try */
        json_object *wanted;    /* NULL: the daemon has not answered yet */
        json_object *items;     /* slices that the API server has, by name; NULL: not read yet */
        json_object *written;   /* specs that were sent, and what the API server stored of them, by name */
        json_object *told;      /* logged already: members that the API server dropped, devices of other drivers */
        json_object *write;     /* the current request */
        int64_t generation;     /* generation of the slices that are being written; 0: none */
        bool is_busy;           /* a request is under way */
        bool is_stale;          /* everything must be read again */
        uint64_t delay;         /* time until the next try; 0: the last one succeeded */
        unsigned n_writes, kubelet_tries;
} Publisher;

/* The works: what is being done for claims. */
typedef struct Works {
        TAILQ_HEAD(WorkList, Work) list; /* in the order of the kubelet's calls */
        size_t n, n_orphans;
        bool is_checking;
        sd_event_source *check;        /* asks the API server about further claims */
        char checked[UUID_STRING_MAX]; /* the claim that was checked last; "": all were checked */
        json_object *told;             /* UIDs of orphans that were logged already */
} Works;

/* The two sockets that the kubelet calls. */
typedef struct Plugin {
        char *path; /* path of the plugin's socket */
        GrpcServer *registration, *server;
        GrpcCall *watchers[WATCHERS_MAX]; /* streams of DRAResourceHealth */
        WireBuffer health;                /* the last message, without times */
        sd_event_source *renew;
} Plugin;

typedef struct Manager Manager;
struct Manager {
        char *kubeconfig, *node, *kubelet, *cdi; /* settings: passthrough-dra(8) */
        char *records, *metadata;                /* directories for the files of claims */
        sd_bus *bus;
        sd_event *event;
        sd_event_source *collect; /* the next comparison of files and claims */
        sd_event_source *tell;    /* updates the API server and the kubelet */
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
 * (kubernetes.io/docs/reference/config-api/kubeconfig.v1). A token file is read before each request, and certificates
 * before each connection, so that both can be renewed. 0 or a negative errno, logged. If a request fails to start, its
 * done() is not called.
 */
int apiserver_init(Manager *m);
void apiserver_done(Api *a);
/* Starts a request, and calls done() with the reply from the loop. ret_call: as in http_start(). */
int apiserver_start(const Api *a, const char *method, const char *path, json_object *body, http_done_t done,
                    void *userdata, HttpCall **ret_call);
/* Returns the sentence for a reply that is not a success, from the API server's Status or the HTTP status. */
const char *apiserver_reason(const HttpReply *reply, char *buf, size_t size);

/* Keeps the ResourceSlices of the API server up to date, with one request at a time and as few writes as possible for a
 * change. Everything is read again after a conflict, periodically, and when the kubelet starts, which removes slices. 0
 * or a negative errno, logged. */
int publisher_init(Manager *m);
void publisher_done(Publisher *p);
/* Call when the daemon's document has changed. While the daemon is away, the published slices stay. */
void publisher_update(Manager *m);
/* Reads everything again, and sends members again that the API server dropped. */
void publisher_reread(Manager *m);
/* Call when the kubelet has started: it may remove slices until its plugins are registered, and shortly afterwards. */
void publisher_kubelet_started(Manager *m);

/*
 * Reads the daemon's document. Each answer of the daemon has a number. A caller that needs the present state calls
 * facts_refresh(), and waits for an answer with the returned number or a higher one. on_facts() is called after each
 * answer, and when the daemon is away. 0 or a negative errno, logged.
 */
int facts_init(Manager *m, void (*on_facts)(Manager *m));
void facts_done(Facts *f);
uint64_t facts_refresh(Manager *m);
/* Returns the allocation of this name; NULL: there is none. */
json_object *facts_allocation(const Facts *f, const char *name);

/*
 * The files of a claim: its record below this program's directory, the metadata of its requests beside it, and a CDI
 * document. The daemon's ledger, not these files, decides which claims have devices: files without an allocation are
 * removed, and missing files are made again from the record.
 */
/* Makes the directories. 0 or a negative errno, logged. */
int files_init(Manager *m);
/* Writes the files that differ, the record first. Returns their number; -ENOENT: a device or its group is missing. */
int files_write(const Manager *m, json_object *record);
/* Reads the record of a claim. -ENOENT: there is none. */
int files_read_record(const Manager *m, const char *uid, json_object **ret);
/* Removes the files, the record last. A claim without files is no error. */
int files_remove(const Manager *m, const char *uid);

/*
 * Works for claims: prepare, unprepare, and release of claims that no longer exist in Kubernetes. Each claim has one
 * work at a time; further ones for the claim wait. A work reads the claim from the API server, calls the daemon, and
 * then examines each new document of the daemon. So it continues after a lost signal, and after a restart of the daemon
 * or the API server.
 */
/* Starts the works. 0 or a negative errno, logged. */
int works_init(Manager *m);
/* Ends the works; call it after the server of the calls has ended. */
void works_done(Works *w);
/* The methods of DRAPlugin, which answer the call. */
void works_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
void works_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
/* Call when the daemon has answered. */
void works_on_facts(Manager *m);
/* Compares files and allocations of claims with the ledger and with the API server. */
void works_collect(Manager *m);
