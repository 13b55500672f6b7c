/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Well-known strings of the D-Bus interface, which org.passthroughd1(5) documents. The daemon and its clients share
 * them. */

#define BUS_NAME                 "org.passthroughd1"
#define BUS_PATH                 "/org/passthroughd1"
#define BUS_MANAGER_INTERFACE    "org.passthroughd1.Manager"
#define BUS_DEVICE_INTERFACE     "org.passthroughd1.Device"
#define BUS_ALLOCATION_INTERFACE "org.passthroughd1.Allocation"
#define BUS_JOB_INTERFACE        "org.passthroughd1.Job"
#define BUS_POOL_INTERFACE       "org.passthroughd1.Pool"
#define BUS_NODE_INTERFACE       "org.passthroughd1.Node"

/* The socket in the daemon's runtime directory (/run/passthroughd) on which root speaks D-Bus to the daemon directly.
 */
#define BUS_PRIVATE_SOCKET "private"

/* The Unix group whose members may call the daemon, as in conf/org.passthroughd1.conf and
 * conf/passthroughd.sysusers. */
#define BUS_GROUP "passthrough"

/* Prefixes of object paths. A path is the prefix, a slash, and a label encoded with sd_bus_path_encode(). */
#define BUS_DEVICE_PREFIX     "/org/passthroughd1/device"
#define BUS_ALLOCATION_PREFIX "/org/passthroughd1/allocation"
#define BUS_JOB_PREFIX        "/org/passthroughd1/job"
#define BUS_POOL_PREFIX       "/org/passthroughd1/pool"
#define BUS_NODE_PREFIX       "/org/passthroughd1/node"

/* A refusal is sent as a D-Bus error with two strings: the message with the remedy, and the refusal as JSON. */
#define BUS_ERROR_PREFIX              "org.passthroughd1.Error."
#define BUS_ERROR_INVALID_REQUEST     BUS_ERROR_PREFIX "InvalidRequest"
#define BUS_ERROR_NO_SUCH_DEVICE      BUS_ERROR_PREFIX "NoSuchDevice"
#define BUS_ERROR_NO_SUCH_POOL        BUS_ERROR_PREFIX "NoSuchPool"
#define BUS_ERROR_NO_SUCH_ALLOCATION  BUS_ERROR_PREFIX "NoSuchAllocation"
#define BUS_ERROR_NAME_TAKEN          BUS_ERROR_PREFIX "NameTaken"
#define BUS_ERROR_INSUFFICIENT        BUS_ERROR_PREFIX "Insufficient"
#define BUS_ERROR_UNAVAILABLE         BUS_ERROR_PREFIX "Unavailable"
#define BUS_ERROR_STALE               BUS_ERROR_PREFIX "Stale"
#define BUS_ERROR_WRONG_STATE         BUS_ERROR_PREFIX "WrongState"
#define BUS_ERROR_LIMIT_EXCEEDED      BUS_ERROR_PREFIX "LimitExceeded"
#define BUS_ERROR_READ_ONLY           BUS_ERROR_PREFIX "ReadOnly"
#define BUS_ERROR_NOT_SUPPORTED       BUS_ERROR_PREFIX "NotSupported"
#define BUS_ERROR_INVALID_TEMPLATE    BUS_ERROR_PREFIX "InvalidTemplate"
#define BUS_ERROR_NOT_VALIDATED       BUS_ERROR_PREFIX "NotValidated"
#define BUS_ERROR_NOT_ANSWERED        BUS_ERROR_PREFIX "NotAnswered"
#define BUS_ERROR_CONFIG_REFUSED      BUS_ERROR_PREFIX "ConfigRefused"
#define BUS_ERROR_SHARED_MEMORY_TAKEN BUS_ERROR_PREFIX "SharedMemoryTaken"

/* Keys of a request, a dictionary a{sv}. A request with an unknown key is refused. */
#define REQUEST_KEY_DEVICES             "devices"             /* a(su): pool and number of devices, in slot order */
#define REQUEST_KEY_AT                  "at"                  /* a(ss): pool, and address of the device to take */
#define REQUEST_KEY_HOST_NODES          "host-nodes"          /* au: the NUMA nodes of the host to take */
#define REQUEST_KEY_CPUS_FROM           "cpus-from"           /* s: the CPUs to take from, "8-15,120-127" */
#define REQUEST_KEY_MEMORY_FROM         "memory-from"         /* s: the NUMA nodes to take memory from, "2-3" */
#define REQUEST_KEY_CONFIDENTIAL        "confidential"        /* s: "snp" or "tdx" */
#define REQUEST_KEY_CPUS                "cpus"                /* u: vCPUs */
#define REQUEST_KEY_MEMORY              "memory"              /* t: bytes */
#define REQUEST_KEY_PAGE_SIZE           "page-size"           /* t: bytes */
#define REQUEST_KEY_CELLS               "cells"               /* u: number of guest NUMA nodes */
#define REQUEST_KEY_NUMA                "numa"                /* s: legacy, preferred, socket, required, single */
#define REQUEST_KEY_PROXIMITY           "proximity"           /* s: switch, root-complex, node, any; gpu:disk=node */
#define REQUEST_KEY_TOPOLOGY            "topology"            /* s: mirror, flat */
#define REQUEST_KEY_RELEASE_WITH_DOMAIN "release-with-domain" /* b: release the allocation when its domain ends */
#define REQUEST_KEY_HOLD                "hold"     /* u: seconds of the lease; at its end the allocation is removed */
#define REQUEST_KEY_TAG                 "tag"      /* s: free text that is shown with the allocation */
#define REQUEST_KEY_CONSUMER            "consumer" /* s: UUID of the consumer in Placement or claim in Kubernetes */
#define REQUEST_KEY_TOKEN               "token"    /* s: a repeated call with the same token gets the same allocation */
#define REQUEST_KEY_FABRIC              "fabric"   /* s: partition, off */
#define REQUEST_KEY_FORCE               "force"    /* b: allow the boot VGA and the console's card */
#define REQUEST_KEY_REPEAT              "repeat"   /* b: only for Plan: count how often the request fits */
#define REQUEST_KEY_VFS                 "vf-attributes" /* a{ss}: slot or pool to "vlan=100,trust=on" */
#define REQUEST_KEY_OWNER               "owner"         /* u: uid of the owner; default: the caller */
#define REQUEST_KEY_SHARED_MEMORY       "shared-memory" /* a(stt): name, bytes, page size or 0 */

/* Keys of the options, a dictionary a{sv}, of GetDomainXML and GetNcclTopology. */
#define OPTION_KEY_TEMPLATE         "template"               /* s: a domain document */
#define OPTION_KEY_QEMU_COMMANDLINE "allow-qemu-commandline" /* b: accept elements of QEMU's namespace */
/* The following keys are only for GetDomainXML. */
#define OPTION_KEY_DEVICE           "device"         /* s: a slot; the reply is then only the <hostdev> of this slot */
#define OPTION_KEY_GUEST_INFO       "guest-info"     /* b: tell the guest about its devices; default: true */
#define OPTION_KEY_HOST_ADDRESSES   "host-addresses" /* b: tell the guest the host addresses of its devices too */
#define OPTION_KEY_FORMAT           "format"         /* s: a DOCUMENT_FORMAT; default: xml */

#define DOCUMENT_FORMAT_XML "xml" /* a domain document for libvirt */
#define DOCUMENT_FORMAT_XL  "xl"  /* a configuration for xl of Xen */
#define DOCUMENT_FORMAT_CDI "cdi" /* a CDI document: device nodes for a container */

/* Values of the result argument of JobRemoved. */
#define JOB_RESULT_DONE    "done"
#define JOB_RESULT_FAILED  "failed"
#define JOB_RESULT_TIMEOUT "timeout"
