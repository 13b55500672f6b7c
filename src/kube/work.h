/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is done for claims: prepare, unprepare, and release those that Kubernetes has no more. Each claim has one work
 * at a time; another one for the same claim waits for it. A work reads the claim from the API server, calls the daemon,
 * and then looks at each new document of the daemon, so that a lost signal or a restart of either leaves it where it
 * was.
 */

#include "api.h"
#include "facts.h"
#include "files.h"
#include "grpc.h"

#define WORKS_MAX        512U
/* Claims with an allocation that the API server is asked for at a time. */
#define ORPHANS_MAX      16U
/* The kubelet gives a call 45 s (kubernetes/kubernetes, pkg/kubelet/cm/dra/plugin). */
#define WORK_TIMEOUT_SEC 40U

typedef enum WorkKind {
        WORK_PREPARE,
        WORK_UNPREPARE,
        WORK_ORPHAN, /* release the claim if Kubernetes has it no more */
} WorkKind;

typedef struct Works Works;

/* All arguments stay the caller's and outlive the works. */
int works_new(sd_event *event, sd_bus *bus, Facts *facts, Api *api, const ClaimFiles *files, const char *node,
              Works **ret);
/* After the server of the calls. */
Works *works_free(Works *w);

/* A method of DRAPlugin: answers the call. */
void works_run(Works *w, WorkKind kind, GrpcCall *call, const uint8_t *data, size_t size);
/* The daemon has answered. */
void works_on_facts(Works *w);
/* Compares files and allocations of claims with the ledger and with the API server. */
void works_collect(Works *w);
