/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The contract with passthroughd-libvirt for one change of the devices of a domain: passthroughd-libvirt URI ACTION
 * UUID SECONDS. Each change has a process of its own, because calls of libvirt block until QEMU has answered.
 *
 * Standard input: the text of a <hostdev>; nothing for "describe". Exit status: a PlugResult; any other end of the
 * process counts as PLUG_UNKNOWN. Standard output: the document for "describe", otherwise why the result is not
 * PLUG_DONE.
 *
 * attach and detach change the running domain and, if the domain is persistent, its definition. A domain or definition
 * that is already as requested is left unchanged, so a request can be repeated. detach changes the definition only
 * after the guest has released the device.
 */

#define PLUG_HOSTDEV_MAX  16384U /* bytes of a <hostdev> */
#define PLUG_DOCUMENT_MAX (1024U * 1024U)
#define PLUG_SECONDS_MAX  86400U
#define PLUG_GRACE_SEC    5U /* time after SECONDS until the process is killed */

typedef enum PlugAction {
        PLUG_ATTACH,
        PLUG_DETACH,
        PLUG_DESCRIBE, /* prints the document of the running domain; if it does not run, its definition */
        _PLUG_ACTION_MAX,
        _PLUG_ACTION_INVALID = -22,
} PlugAction;
const char *plug_action_to_string(PlugAction a);
PlugAction plug_action_from_string(const char *s);

typedef enum PlugResult {
        PLUG_DONE,
        PLUG_NO_DOMAIN, /* libvirt has no such domain */
        PLUG_FAILED,    /* nothing has changed: the request is malformed, or libvirt refuses it or cannot be reached */
        PLUG_KEPT,      /* of detach: the guest refuses to release the device, or has not released it within SECONDS */
        PLUG_UNKNOWN, /* libvirt gave no answer, or failed after a part of the change: the domain may have the device or
                         not */
        _PLUG_RESULT_MAX,
} PlugResult;
