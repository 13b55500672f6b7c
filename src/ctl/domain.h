/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The domain document of an allocation, for the verbs that print or define it. */

#include "client.h"

/* Reads the file of --template. The caller frees *ret, which is unchanged without the option. 0 or EXIT_USAGE or
 * another failure, reported. */
int domain_read_template(const Args *args, char **ret);
/* Asks for the document that the options describe. template: NULL for none. The caller frees. Negative errno, reported.
 */
int domain_request(Client *c, const char *name, const char *template, char **ret);
