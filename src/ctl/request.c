/* SPDX-License-Identifier: GPL-2.0-or-later */
/* POOL=COUNT arguments and request options into the a{sv} of Plan and Allocate. */
#include <errno.h>

#include "bus/names.h"
#include "ctl/report.h"
#include "ctl/request.h"
#include "util/strings.h"

static int pool_count_parse(const Args *args, const char *argument, PoolCount *ret) {
        const char *equals = strchr(argument, '=');
        uint64_t count;
        int r;

        if (!equals || equals == argument)
                return report_usage(args, "'%s' is not POOL=COUNT, such as gpu=1", argument);
        r = parse_unsigned(equals + 1, UINT32_MAX, &count);
        if (r == -ERANGE)
                return report_usage(args, "the count in '%s' is too large", argument);
        if (r < 0)
                return report_usage(args, "the count in '%s' is not a whole number", argument);
        if (count == 0)
                return report_usage(args, "the count in '%s' is 0: leave it out, or ask for at least one", argument);
        ret->count = (uint32_t) count;
        ret->pool = strndup(argument, (size_t) (equals - argument));
        return ret->pool ? 0 : report_errno(args, -ENOMEM, "Cannot read the arguments");
}

int pool_counts_parse(const Args *args, size_t first, PoolCounts *ret) {
        _cleanup_pool_counts_ PoolCounts p = { 0 };

        p.items = calloc(args->n_operands + 1, sizeof(*p.items));
        if (!p.items)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        for (size_t i = first; i < args->n_operands; i++) {
                int r = pool_count_parse(args, args->operands[i], &p.items[p.n]);
                if (r != 0)
                        return r;
                p.n++;
        }
        *ret = p;
        p = (PoolCounts){ 0 };
        return 0;
}

void pool_counts_done(PoolCounts *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->items[i].pool);
        free(p->items);
        *p = (PoolCounts){ 0 };
}

static int append_devices(const PoolCounts *pools, sd_bus_message *m) {
        int r;

        r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", REQUEST_KEY_DEVICES);
        if (r >= 0)
                r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, "a(su)");
        if (r >= 0)
                r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, "(su)");
        for (size_t i = 0; r >= 0 && i < pools->n; i++)
                r = sd_bus_message_append(m, "(su)", pools->items[i].pool, pools->items[i].count);
        for (size_t open = 3; r >= 0 && open > 0; open--)
                r = sd_bus_message_close_container(m);
        return r;
}

typedef struct RequestOption {
        Option option;
        const char *key;
        char type; /* of the D-Bus value */
} RequestOption;

static const RequestOption request_options[] = {
        { OPTION_CPUS, REQUEST_KEY_CPUS, 'u' },           { OPTION_MEMORY, REQUEST_KEY_MEMORY, 't' },
        { OPTION_PAGE_SIZE, REQUEST_KEY_PAGE_SIZE, 't' }, { OPTION_CELLS, REQUEST_KEY_CELLS, 'u' },
        { OPTION_NUMA, REQUEST_KEY_NUMA, 's' },           { OPTION_PROXIMITY, REQUEST_KEY_PROXIMITY, 's' },
};

static int append_option(const Args *args, const RequestOption *o, sd_bus_message *m) {
        if (o->type == 's')
                return sd_bus_message_append(m, "{sv}", o->key, "s", args->text[o->option]);
        if (o->type == 'u')
                return sd_bus_message_append(m, "{sv}", o->key, "u", (uint32_t) args->number[o->option]);
        return sd_bus_message_append(m, "{sv}", o->key, "t", args->number[o->option]);
}

int request_append(const Args *args, const char *name, const PoolCounts *pools, sd_bus_message *call) {
        int r = 0;

        if (name)
                r = sd_bus_message_append(call, "s", name);
        if (r >= 0)
                r = sd_bus_message_open_container(call, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r >= 0 && pools->n > 0)
                r = append_devices(pools, call);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(request_options); i++)
                if (args_has(args, request_options[i].option))
                        r = append_option(args, &request_options[i], call);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        return r < 0 ? report_errno(args, r, "Cannot make a call") : 0;
}
