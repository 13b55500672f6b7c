/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/answers.h"

#include "util/strings.h"

void answer_list_done(AnswerList *l) {
        free(l->answers);
        *l = (AnswerList){ 0 };
}

Answer *answer_list_find(const AnswerList *l, const PciDevice *dev) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->answers[i].address, dev->address) && l->answers[i].instance == dev->instance)
                        return &l->answers[i];
        return NULL;
}

Answer *answer_list_add(AnswerList *l, const PciDevice *dev, uint32_t unknown) {
        Answer *known = answer_list_find(l, dev);

        if (known)
                return known;
        answer_list_remove(l, dev->address);
        if (ARRAY_RESERVE(l->answers, l->n) < 0)
                return NULL;
        l->answers[l->n] = (Answer){ .address = dev->address, .instance = dev->instance, .value = unknown };
        return &l->answers[l->n++];
}

void answer_list_remove(AnswerList *l, PciAddress address) {
        for (size_t i = 0; i < l->n; i++)
                if (pci_address_equal(l->answers[i].address, address)) {
                        l->answers[i] = l->answers[--l->n];
                        return;
                }
}

void answer_list_ask_again(AnswerList *l) {
        for (size_t i = 0; i < l->n; i++)
                l->answers[i].asked = false;
}
