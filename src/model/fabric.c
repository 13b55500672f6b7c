/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/fabric.h"

#include <errno.h>

#include "util/strings.h"

/* The default partitions of a machine, with ascending ids: first those of several GPUs, then one for each GPU. */
typedef struct Machine {
        const char *name;
        unsigned first;       /* id of the first partition */
        unsigned modules;     /* the highest module id; the lowest is 1 */
        uint16_t several[19]; /* modules of each partition, bit 0 is module 1; the list ends at 0 or with the array */
} Machine;

/* From "Default GPU Partitions" in the Fabric Manager User Guide. */
static const Machine machines[] = {
        { "hgx-a100",
          0,
          16,
          { 0xffff, 0x00ff, 0xff00, 0x0f0f, 0xf0f0, 0xf00f, 0x0ff0, 0x000f, 0x00f0, 0x0f00, 0xf000, 0x0003, 0x000c,
            0x0030, 0x00c0, 0x0300, 0x0c00, 0x3000, 0xc000 } },
        { "hgx-h100", 0, 8, { 0xff, 0x0f, 0xf0, 0x05, 0x0a, 0x50, 0xa0 } },
        { "hgx-b200", 1, 8, { 0xff, 0x0f, 0xf0, 0x03, 0x0c, 0x30, 0xc0 } },
};

int fabric_table_of(const char *machine, FabricTable *ret) {
        for (size_t i = 0; i < ELEMENTSOF(machines); i++) {
                const Machine *m = &machines[i];

                if (!streq(m->name, machine))
                        continue;
                ret->n = 0;
                for (size_t j = 0; j < ELEMENTSOF(m->several) && m->several[j]; j++, ret->n++)
                        ret->partitions[ret->n] =
                                (FabricPartition) { m->first + (unsigned) ret->n, (uint64_t) m->several[j] << 1 };
                for (unsigned module = 1; module <= m->modules; module++, ret->n++)
                        ret->partitions[ret->n] =
                                (FabricPartition) { m->first + (unsigned) ret->n, fabric_bit(module) };
                return 0;
        }
        return -EINVAL;
}

int fabric_table_add(FabricTable *t, unsigned id, uint64_t modules) {
        size_t at = 0;

        while (at < t->n && t->partitions[at].id < id)
                at++;
        if (at == t->n || t->partitions[at].id != id) {
                if (t->n >= FABRIC_PARTITIONS_MAX)
                        return -E2BIG;
                memmove(&t->partitions[at + 1], &t->partitions[at], (t->n++ - at) * sizeof(*t->partitions));
        }
        t->partitions[at] = (FabricPartition) { id, modules };
        return 0;
}

const FabricPartition *fabric_table_find(const FabricTable *t, unsigned id) {
        for (size_t i = 0; i < t->n; i++)
                if (t->partitions[i].id == id)
                        return &t->partitions[i];
        return NULL;
}

bool fabric_table_has(const FabricTable *t, const FabricPartition *p) {
        const FabricPartition *found = fabric_table_find(t, p->id);

        return found && found->modules == p->modules;
}

bool fabric_table_equal(const FabricTable *t, const FabricTable *other) {
        for (size_t i = 0; i < t->n; i++)
                if (!fabric_table_has(other, &t->partitions[i]))
                        return false;
        return t->n == other->n;
}

bool fabric_table_joins(const FabricTable *t, unsigned module, unsigned other) {
        uint64_t both = fabric_bit(module) | fabric_bit(other);

        for (size_t i = 0; i < t->n && module > 0 && other > 0; i++)
                if ((t->partitions[i].modules & both) == both)
                        return true;
        return false;
}
