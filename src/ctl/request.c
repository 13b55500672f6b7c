/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the request (a{sv}) of Plan, Allocate and Attach from operands and options. */
#include <errno.h>

#include "bus/names.h"
#include "report.h"
#include "request.h"
#include "util/strings.h"

/* Stores in *ret copies of the name, which ends before `end`, and of the text, which may be NULL. Returns 0 or -ENOMEM,
 * reported. */
static int item_set(const Args *args, const char *name, const char *end, const char *text, RequestItem *ret) {
        ret->name = strndup(name, (size_t) (end - name));
        ret->text = text ? strdup(text) : NULL;
        return ret->name && (ret->text || !text) ? 0 : report_errno(args, -ENOMEM, "Cannot read the arguments");
}

static int parse_pool_count(const Args *args, const char *word, RequestItem *ret) {
        const char *equals = strchr(word, '=');
        int r;

        if (!equals || equals == word)
                return report_usage(args, "'%s' is neither POOL=COUNT, such as gpu=1, nor SLOT:ATTRIBUTE=VALUE", word);
        r = parse_unsigned(equals + 1, UINT32_MAX, &ret->numbers[0]);
        if (r == -ERANGE)
                return report_usage(args, "the count in '%s' is too large", word);
        if (r < 0)
                return report_usage(args, "the count in '%s' is not a whole number", word);
        if (ret->numbers[0] == 0)
                return report_usage(args, "the count in '%s' is 0: leave it out, or ask for at least one", word);
        return item_set(args, word, equals, NULL, ret);
}

/* Returns true for attributes of a slot: "eth-vf0:mac=02:00:00:00:00:01,vlan=100". In POOL=COUNT there is no ':' before
 * '=', because a pool name has none. */
static bool is_slot_attributes(const char *word) {
        return word[strcspn(word, ":=")] == ':';
}

static int parse_slot_attributes(const Args *args, const char *word, RequestItem *ret) {
        const char *colon = strchr(word, ':');

        if (colon == word || !strchr(colon, '='))
                return report_usage(args, "'%s' is not SLOT:ATTRIBUTE=VALUE[,...], such as eth-vf0:vlan=100,trust=on",
                                    word);
        return item_set(args, word, colon, colon + 1, ret);
}

/* Parses a shared memory region: "mpi=256M", or with pages of 2 MiB "mpi=1G:2M". */
static int parse_region(const Args *args, const char *word, RequestItem *ret) {
        const char *equals = strchr(word, '='), *colon = equals ? strchr(equals, ':') : NULL;
        _cleanup_free_ char *size = NULL;

        if (equals) {
                size = colon ? strndup(equals + 1, (size_t) (colon - equals - 1)) : strdup(equals + 1);
                if (!size)
                        return report_errno(args, -ENOMEM, "Cannot read the arguments");
        }
        if (!equals || equals == word || parse_size(size, &ret->numbers[0]) < 0 || ret->numbers[0] == 0 ||
            (colon && (parse_size(colon + 1, &ret->numbers[1]) < 0 || ret->numbers[1] == 0)))
                return report_usage(args, "'%s' is not NAME=SIZE or NAME=SIZE:PAGESIZE, such as mpi=256M", word);
        return item_set(args, word, equals, NULL, ret);
}

/* Parses the pool and the address of a device to take: "gpu=0000:13:00.0". */
static int parse_place(const Args *args, const char *word, RequestItem *ret) {
        const char *equals = strchr(word, '=');

        if (!equals || equals == word || !equals[1])
                return report_usage(args, "'%s' is not POOL=ADDRESS, such as gpu=0000:13:00.0", word);
        return item_set(args, word, equals, equals + 1, ret);
}

static int parse_host_node(const Args *args, const char *word, RequestItem *ret) {
        if (parse_unsigned(word, INT32_MAX, &ret->numbers[0]) < 0)
                return report_usage(args, "'%s' is not the number of a NUMA node", word);
        return 0;
}

static const struct {
        const char *key;
        const char *array, *element; /* D-Bus types of the list and of an item */
        int (*parse)(const Args *args, const char *word, RequestItem *ret);
        Option option; /* option whose values are the items; 0: operands */
} request_lists[] = {
        [REQUEST_LIST_DEVICES] = { REQUEST_KEY_DEVICES, "a(su)", "(su)", parse_pool_count },
        [REQUEST_LIST_VFS] = { REQUEST_KEY_VFS, "a{ss}", "{ss}", parse_slot_attributes },
        [REQUEST_LIST_SHARED_MEMORY] = { REQUEST_KEY_SHARED_MEMORY, "a(stt)", "(stt)", parse_region,
                                         OPTION_SHARED_MEMORY },
        [REQUEST_LIST_AT] = { REQUEST_KEY_AT, "a(ss)", "(ss)", parse_place, OPTION_AT },
        [REQUEST_LIST_HOST_NODES] = { REQUEST_KEY_HOST_NODES, "au", "u", parse_host_node, OPTION_HOST_NODES },
};

static int parse_item(const Args *args, RequestList list, const char *word, RequestItems *r) {
        RequestItem *more = reallocarray(r->items[list], r->n[list] + 1, sizeof(*more));

        if (!more)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        r->items[list] = more;
        more[r->n[list]] = (RequestItem) { 0 };
        return request_lists[list].parse(args, word, &more[r->n[list]++]);
}

int request_items_parse(const Args *args, size_t first, RequestItems *ret) {
        _cleanup_request_items_ RequestItems items = { 0 };
        int r;

        for (size_t i = first; i < args->n_operands; i++) {
                const char *word = args->operands[i];

                r = parse_item(args, is_slot_attributes(word) ? REQUEST_LIST_VFS : REQUEST_LIST_DEVICES, word, &items);
                if (r != 0)
                        return r;
        }
        for (RequestList list = 0; list < _REQUEST_LIST_MAX; list++) {
                Option option = request_lists[list].option;
                _cleanup_free_ char *words = NULL;

                if (!option || !args_has(args, option))
                        continue;
                words = strdup(args->text[option]);
                if (!words)
                        return report_errno(args, -ENOMEM, "Cannot read the arguments");
                for (char *rest = words, *word; (word = strsep(&rest, ","));) {
                        r = parse_item(args, list, word, &items);
                        if (r != 0)
                                return r;
                }
        }
        *ret = items;
        items = (RequestItems) { 0 };
        return 0;
}

void request_items_done(RequestItems *r) {
        for (RequestList list = 0; list < _REQUEST_LIST_MAX; list++) {
                for (size_t i = 0; i < r->n[list]; i++) {
                        free(r->items[list][i].name);
                        free(r->items[list][i].text);
                }
                free(r->items[list]);
        }
        *r = (RequestItems) { 0 };
}

static int append_item(const RequestItem *item, const char *type, sd_bus_message *m) {
        if (streq(type, "u"))
                return sd_bus_message_append(m, type, (uint32_t) item->numbers[0]);
        if (streq(type, "(su)"))
                return sd_bus_message_append(m, type, item->name, (uint32_t) item->numbers[0]);
        if (streq(type, "(stt)"))
                return sd_bus_message_append(m, type, item->name, item->numbers[0], item->numbers[1]);
        return sd_bus_message_append(m, type, item->name, item->text);
}

static int append_list(const RequestItems *items, RequestList list, sd_bus_message *m) {
        int r;

        r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", request_lists[list].key);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, request_lists[list].array);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, request_lists[list].element);
        for (size_t i = 0; r >= 0 && i < items->n[list]; i++)
                r = append_item(&items->items[list][i], request_lists[list].element, m);
        for (size_t open = 3; r >= 0 && open > 0; open--)
                r = sd_bus_message_close_container(m);
        return r;
}

typedef struct RequestOption {
        Option option;
        const char *key;
        char type; /* D-Bus type of the value of the option */
} RequestOption;

static const RequestOption request_options[] = {
        { OPTION_CPUS, REQUEST_KEY_CPUS, 'u' },
        { OPTION_MEMORY, REQUEST_KEY_MEMORY, 't' },
        { OPTION_PAGE_SIZE, REQUEST_KEY_PAGE_SIZE, 't' },
        { OPTION_CELLS, REQUEST_KEY_CELLS, 'u' },
        { OPTION_CPUS_FROM, REQUEST_KEY_CPUS_FROM, 's' },
        { OPTION_MEMORY_FROM, REQUEST_KEY_MEMORY_FROM, 's' },
        { OPTION_CONFIDENTIAL, REQUEST_KEY_CONFIDENTIAL, 's' },
        { OPTION_NUMA, REQUEST_KEY_NUMA, 's' },
        { OPTION_PROXIMITY, REQUEST_KEY_PROXIMITY, 's' },
        { OPTION_TOPOLOGY, REQUEST_KEY_TOPOLOGY, 's' },
        { OPTION_FABRIC, REQUEST_KEY_FABRIC, 's' },
        { OPTION_OWNER, REQUEST_KEY_OWNER, 'u' },
        { OPTION_HOLD, REQUEST_KEY_HOLD, 'u' },
        { OPTION_TAG, REQUEST_KEY_TAG, 's' },
        { OPTION_TOKEN, REQUEST_KEY_TOKEN, 's' },
        { OPTION_CONSUMER, REQUEST_KEY_CONSUMER, 's' },
        { OPTION_FORCE, REQUEST_KEY_FORCE, 'b' },
        { OPTION_REPEAT, REQUEST_KEY_REPEAT, 'b' },
        { OPTION_RELEASE_WITH_DOMAIN, REQUEST_KEY_RELEASE_WITH_DOMAIN, 'b' },
};

static int append_option(const Args *args, const RequestOption *o, sd_bus_message *m) {
        if (o->type == 's')
                return sd_bus_message_append(m, "{sv}", o->key, "s", args->text[o->option]);
        if (o->type == 'b')
                return sd_bus_message_append(m, "{sv}", o->key, "b", true);
        if (o->type == 'u')
                return sd_bus_message_append(m, "{sv}", o->key, "u", (uint32_t) args->number[o->option]);
        return sd_bus_message_append(m, "{sv}", o->key, "t", args->number[o->option]);
}

int request_append(const Args *args, const char *name, const RequestItems *items, sd_bus_message *call) {
        int r = 0;

        if (name)
                r = sd_bus_message_append(call, "s", name);
        if (r >= 0)
                r = sd_bus_message_open_container(call, SD_BUS_TYPE_ARRAY, "{sv}");
        for (RequestList list = 0; r >= 0 && list < _REQUEST_LIST_MAX; list++)
                if (items->n[list] > 0)
                        r = append_list(items, list, call);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(request_options); i++)
                if (args_has(args, request_options[i].option))
                        r = append_option(args, &request_options[i], call);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        return r < 0 ? report_errno(args, r, "Cannot build the D-Bus call") : 0;
}
