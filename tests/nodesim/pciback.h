/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of slots of pciback, as drivers/xen/xen-pciback/pci_stub.c of the kernel keeps it. */
#pragma once

#include "sim.h"

#define PCIBACK "pciback"

void pciback_make(Node *dir); /* its files, in the directory of the driver */
bool pciback_has(const Sim *sim, const char *address);
void pciback_add(Sim *sim, const char *address); /* a slot is in the list once */
size_t pciback_shown_size(const Node *file);     /* what a read of the file can get */
int pciback_new_slot(Sim *sim, Node *dir, const char *value);
int pciback_remove_slot(Sim *sim, Node *dir, const char *value); /* -ENOENT: not in the list */
