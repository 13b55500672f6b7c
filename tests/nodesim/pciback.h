/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of slots of pciback, as drivers/xen/xen-pciback/pci_stub.c of the kernel keeps it. */
#pragma once

#include "sim.h"

#define PCIBACK "pciback"

void pciback_make(Node *dir); /* makes the files in the driver's directory */
bool pciback_has(const Sim *sim, const char *address);
void pciback_add(Sim *sim, const char *address); /* does nothing if the list has the slot */
size_t pciback_shown_size(const Node *file);     /* size of the file as a read shows it */
int pciback_new_slot(Sim *sim, Node *dir, const char *value);
int pciback_remove_slot(Sim *sim, Node *dir, const char *value); /* -ENOENT: no such slot */
