/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration of a guest of Xen for the command xl: xl.cfg(5), xl-pci-configuration(5). Pure. */

#include "guest/domxml.h"

/*
 * Makes the configuration. Returns VERDICT_NONE and sets *ret, which the caller frees. Otherwise VERDICT_NOT_SUPPORTED
 * on a node without Xen, and for features that Xen does not have; or as domxml_make().
 */
Verdict xl_config_make(const Inventory *inv, const Config *config, const Allocation *a, GuestInfo info, char **ret,
                       Refusal *ret_refusal);
