/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals the changes of the capacity and of the problems, and then the epoch if it has grown. */

#include "server-internal.h"

static void tell_removed(Server *s, const Capacity *now) {
        for (size_t i = 0; s->capacity && i < s->capacity->n_pools; i++)
                if (!capacity_find_pool(now, s->capacity->pools[i].name))
                        server_pool_removed(s, s->capacity->pools[i].name);
        for (size_t i = 0; s->capacity && i < s->capacity->n_nodes; i++)
                if (!capacity_find_node(now, s->capacity->nodes[i].id))
                        server_node_removed(s, s->capacity->nodes[i].id);
}

static void tell_pool(Server *s, const PoolCapacity *before, const PoolCapacity *now) {
        unsigned properties = before ? pool_capacity_differences(before, now) : 0;

        if (!before)
                server_pool_added(s, now->name);
        else if (properties != 0)
                server_pool_changed(s, now->name, properties);
}

static void tell_node(Server *s, const NodeCapacity *before, const NodeCapacity *now) {
        unsigned properties = before ? node_capacity_differences(before, now) : 0;

        if (!before)
                server_node_added(s, now->id);
        else if (properties != 0)
                server_node_changed(s, now->id, properties);
}

static void show(Server *s, Capacity *now) {
        _cleanup_(cleanup_capacity_free) Capacity *before = NULL;

        /* The objects of removed pools and nodes still exist while their signals are sent. */
        tell_removed(s, now);
        before = s->capacity;
        s->capacity = now;
        for (size_t i = 0; i < now->n_pools; i++)
                tell_pool(s, capacity_find_pool(before, now->pools[i].name), &now->pools[i]);
        for (size_t i = 0; i < now->n_nodes; i++)
                tell_node(s, capacity_find_node(before, now->nodes[i].id), &now->nodes[i]);
}

void server_settle(Server *s) {
        Capacity *now;

        /* To emit a signal, sd-bus reads properties, and their getters call this function again. */
        if (s->settling)
                return;
        s->settling = true;
        now = s->callbacks->measure(s->userdata);
        if (now) {
                show(s, now);
                server_problems_changed(s, problems_note_shown(s));
        }
        if (s->epoch != s->told_epoch)
                server_epoch_changed(s);
        s->told_epoch = s->epoch;
        s->settling = false;
}

const Capacity *server_capacity(Server *s) {
        server_settle(s);
        return s->capacity;
}
