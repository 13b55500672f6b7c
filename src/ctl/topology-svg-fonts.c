/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fonts of the picture of a node. */

#include "topology-svg.h"

const Font svg_title = { 20, true, ALIGN_LEFT, "#1f2328" };
const Font svg_heading = { 15, true, ALIGN_LEFT, "#1f2328" };
const Font svg_text = { 12, false, ALIGN_LEFT, "#1f2328" };
const Font svg_strong = { 12, true, ALIGN_LEFT, "#1f2328" };
const Font svg_small = { 11, false, ALIGN_LEFT, "#1f2328" };
const Font svg_small_strong = { 11, true, ALIGN_LEFT, "#1f2328" };
const Font svg_dim = { 12, false, ALIGN_LEFT, "#57606a" };
