/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The two sockets that the kubelet calls: the one by which it finds the plugin, and the one of the plugin, with
 * DRAPlugin and DRAResourceHealth.
 */

#include "files.h"
#include "publish.h"
#include "work.h"

typedef struct Plugin Plugin;

typedef struct PluginParts {
        sd_event *event;
        Works *works;
        Publisher *publisher;
        Facts *facts;
        const char *node, *kubelet; /* the name of the node; the directory of the kubelet */
} PluginParts;

/* The parts outlive the plugin. 0 or a negative errno, logged. */
int plugin_new(const PluginParts *parts, Plugin **ret);
Plugin *plugin_free(Plugin *p);
/* Sends the health of the devices to each watcher when it has changed. */
void plugin_on_facts(Plugin *p);
