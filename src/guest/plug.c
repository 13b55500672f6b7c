/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "guest/plug.h"

#include "util/stringtable.h"

static const char *const plug_action_table[_PLUG_ACTION_MAX] = {
        [PLUG_ATTACH] = "attach",
        [PLUG_DETACH] = "detach",
        [PLUG_DESCRIBE] = "describe",
};
DEFINE_STRING_TABLE(plug_action, PlugAction, _PLUG_ACTION_MAX)
