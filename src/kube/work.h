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
/* The kubelet gives a call 45 s (kubernetes/kubernetes, pkg/kubelet/cm/dra/plugin). */
#define WORK_TIMEOUT_SEC 40U

typedef struct Works Works;

/* All arguments stay the caller's and outlive the works. */
int works_new(sd_event *event, sd_bus *bus, Facts *facts, Api *api, const ClaimFiles *files, const char *node,
              Works **ret);
Works *works_free(Works *w);

/* Methods of DRAPlugin: they answer the call. */
void works_prepare(Works *w, GrpcCall *call, const uint8_t *data, size_t size);
void works_unprepare(Works *w, GrpcCall *call, const uint8_t *data, size_t size);

/* The daemon has answered. */
void works_on_facts(Works *w);
/* Compares files and allocations of claims with the ledger and with the API server. */
void works_collect(Works *w);
