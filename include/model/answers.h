/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What only a driver can tell of a device, one number each. That can take minutes, so it is asked by a child and kept
 * beside the inventory, whose facts are read at one moment.
 */

#include "model/inventory.h"

typedef struct Answer {
        PciAddress address;
        uint64_t instance; /* PciDevice.instance: a card that was plugged in later is another one */
        uint32_t value;    /* what stands for "unknown" is for who asks to say */
        bool asked;        /* no more is to be asked */
} Answer;

typedef struct AnswerList {
        Answer *answers;
        size_t n;
} AnswerList;

void answer_list_done(AnswerList *l);
/* The one of this very card, or NULL. Good until the list grows. */
Answer *answer_list_find(const AnswerList *l, const PciDevice *dev);
/* Takes it in when it is new: unknown, not asked. NULL: out of memory. */
Answer *answer_list_add(AnswerList *l, const PciDevice *dev, uint32_t unknown);
/* Forgets what is known of whatever is at that address. */
void answer_list_remove(AnswerList *l, PciAddress address);
/* All are to be asked once more; what is known of them stands until then. */
void answer_list_ask_again(AnswerList *l);
