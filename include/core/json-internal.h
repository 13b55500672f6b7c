/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files that make JSON, json*.c and ledger-file.c; nobody else includes it. */

#include "core/json.h"

json_object *json_string_or_null(const char *s);
/* Negative is unknown. */
json_object *json_known_or_null(int n);
json_object *json_address(PciAddress a);
json_object *json_cpus(const CpuSet *set);
json_object *json_hex(unsigned value, int digits);
/* NULL where nothing is known. */
json_object *json_link(const HealthLink *l);
json_object *json_errors(const HealthErrors *e);
