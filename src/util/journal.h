/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Entries of systemd's journal by its native protocol. sd_journal_send() waits while the queue of journald is full;
 * these functions never wait.
 */

#include <stddef.h>
#include <stdio.h>

/* Appends a field to an entry. value may contain any bytes. */
void journal_add_field(FILE *entry, const char *key, const char *value, size_t size);
/* Sends an entry. Returns -EAGAIN if the queue of journald is full, and another negative errno without a journal. */
int journal_send(const char *entry, size_t size);
