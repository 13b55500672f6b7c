/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* passthrough-dra: its state, and its parts. Each part is initialized once, by main.c, before the parts below it. */

#include <sys/queue.h>

#include "agent/daemon.h"
#include "agent/http.h"
#include "claim.h"
#include "grpc.h"

#define WORKS_MAX        512U
#define ORPHANS_MAX      32U /* claims with an allocation that the API server is asked for at a time */
/* The kubelet gives a call 45 s (kubernetes/kubernetes, pkg/kubelet/cm/dra/plugin). */
#define WORK_TIMEOUT_SEC 40U
#define WATCHERS_MAX     8U

/* Where the API server is, and how this program proves to it who it is: a kubeconfig file. */
typedef struct Api {
        char *server; /* without a slash at the end */
        char *token, *token_file;
        char *files[3], *texts[3]; /* of PEM: a CA, else those of the system; a certificate and its key */
        HttpTls tls;
        Http *http;
} Api;

/* The daemon's document of the node, kept current. */
typedef struct Facts {
        json_object *document; /* NULL: the daemon does not answer */
        uint64_t number;       /* of the last answer */
        uint64_t asked;        /* of the call under way, or of the last one */
        bool again;            /* something changed after the call was sent */
        sd_bus_slot *slot;
        sd_event_source *timer; /* the next try */
        uint64_t delay;
} Facts;

/* The ResourceSlices. */
typedef struct Publisher {
        char *node_uid;         /* NULL: not read yet */
        sd_event_source *timer; /* the next full comparison, or the next try */
        json_object *wanted;    /* NULL: the daemon has not answered yet */
        json_object *items;     /* what the API server has, by name; NULL: to be read */
        json_object *written;   /* what was sent, and what the API server has kept of it, by name */
        json_object *told;  /* members that it has left out, and devices of other drivers: the journal has a message of
                               each */
        json_object *write; /* the request under way */
        int64_t generation; /* of the slices that are being written; 0: none */
        bool is_busy;       /* a request is under way */
        bool is_stale;      /* all is to be read again */
        uint64_t delay;     /* until the next try; 0: the last one succeeded */
        unsigned n_writes, kubelet_tries;
} Publisher;

/* What is done for claims. */
typedef struct Works {
        TAILQ_HEAD(WorkList, Work) list; /* in the order of their calls */
        size_t n, n_orphans;
        bool is_checking;
        sd_event_source *check;        /* asks the API server for further claims */
        char checked[UUID_STRING_MAX]; /* the claim that it was asked for last; "": all had their turn */
        json_object *told;             /* UIDs of orphans that the journal has a message of */
} Works;

/* The two sockets that the kubelet calls. */
typedef struct Plugin {
        char *path; /* of the second one */
        GrpcServer *registration, *server;
        GrpcCall *watchers[WATCHERS_MAX]; /* streams of DRAResourceHealth */
        WireBuffer health;                /* the last message, without times */
        sd_event_source *renew;
} Plugin;

typedef struct Manager Manager;
struct Manager {
        char *kubeconfig, *node, *kubelet, *cdi; /* passthrough-dra(8) */
        char *records, *metadata;                /* directories of files of claims */
        sd_bus *bus;
        sd_event *event;
        sd_event_source *collect; /* the next comparison of files and claims */
        sd_event_source *tell;    /* tells the API server and the kubelet of the node */
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
 * (kubernetes.io/docs/reference/config-api/kubeconfig.v1). A file of a token is read before each request, and
 * certificates for each connection, so that both may be renewed. 0 or a negative errno, logged; done() of a request
 * that has failed to start is not called.
 */
int apiserver_init(Manager *m);
void apiserver_done(Api *a);
/* Calls done() with the reply, from the loop. ret_call: as http_start(). */
int apiserver_start(const Api *a, const char *method, const char *path, json_object *body, http_done_t done,
                    void *userdata, HttpCall **ret_call);
/* The sentence for a reply that is no success: that of the API server's Status, or of its status. */
const char *apiserver_reason(const HttpReply *reply, char *buf, size_t size);

/* Keeps the ResourceSlices of the API server equal to the node: one request at a time, each change with as few writes
 * as possible, and all read again after a conflict, at times, and when the kubelet starts, which removes slices. 0 or a
 * negative errno, logged. */
int publisher_init(Manager *m);
void publisher_done(Publisher *p);
/* The daemon's document is another one. While the daemon is away, what is published stays. */
void publisher_update(Manager *m);
/* Reads all again, and sends again what the API server has left out. */
void publisher_reread(Manager *m);
/* The kubelet has started: it may remove slices until its plugins are registered, and a little after. */
void publisher_kubelet_started(Manager *m);

/*
 * Each answer of the daemon has a number; a caller who must see what is true now asks with facts_refresh() and waits
 * for an answer with the number that it returns, or a later one. on_facts() is called after each answer, and when the
 * daemon is away. 0 or a negative errno, logged.
 */
int facts_init(Manager *m, void (*on_facts)(Manager *m));
void facts_done(Facts *f);
uint64_t facts_refresh(Manager *m);
/* The allocation of this name; NULL: there is none. */
json_object *facts_allocation(const Facts *f, const char *name);

/*
 * The files of claims: its record below the directory of this program, the metadata of its requests beside it, and a
 * CDI document. Which claims have devices is in the ledger of the daemon, not here: files without an allocation are
 * removed, and missing ones are made again of the record.
 */
/* Makes the directories. 0 or a negative errno, logged. */
int files_init(Manager *m);
/* Writes the files that differ, the record first. The number of files, or a negative errno; -ENOENT: a device or its
 * IOMMU group is not there. */
int files_write(const Manager *m, json_object *record);
/* -ENOENT: there is none. */
int files_read_record(const Manager *m, const char *uid, json_object **ret);
/* Removes the files, the record last. None is not an error. */
int files_remove(const Manager *m, const char *uid);

/*
 * What is done for claims: prepare, unprepare, and release those that Kubernetes has no more. Each claim has one work
 * at a time; another one for the same claim waits for it. A work reads the claim from the API server, calls the daemon,
 * and then looks at each new document of the daemon, so that a lost signal or a restart of either leaves it where it
 * was.
 */
/* 0 or a negative errno, logged. */
int works_init(Manager *m);
/* After the server of the calls. */
void works_done(Works *w);
/* Methods of DRAPlugin: they answer the call. */
void works_prepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
void works_unprepare(GrpcCall *call, const uint8_t *data, size_t size, void *userdata);
/* The daemon has answered. */
void works_on_facts(Manager *m);
/* Compares files and allocations of claims with the ledger and with the API server. */
void works_collect(Manager *m);
