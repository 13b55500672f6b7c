/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Turns POOL=COUNT and SLOT:ATTRIBUTES operands and request options into the a{sv} of Plan and Allocate. */
#include <errno.h>

#include "bus/names.h"
#include "report.h"
#include "request.h"
#include "util/strings.h"

static int pool_count_parse(const Args *args, const char *argument, PoolCount *ret) {
        const char *equals = strchr(argument, '=');
        uint64_t count;
        int r;

        if (!equals || equals == argument)
                return report_usage(args, "'%s' is neither POOL=COUNT, such as gpu=1, nor SLOT:ATTRIBUTE=VALUE",
                                    argument);
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

/* "eth-vf0:mac=02:00:00:00:00:01,vlan=100". A pool name has no colon, so a colon before "=" ends the name of a slot. */
static bool is_slot_attributes(const char *argument) {
        size_t n = strcspn(argument, ":=");

        return argument[n] == ':';
}

static int slot_attributes_parse(const Args *args, const char *argument, SlotAttributes *ret) {
        const char *colon = strchr(argument, ':');
        SlotAttributes s;

        if (colon == argument || !strchr(colon, '='))
                return report_usage(args, "'%s' is not SLOT:ATTRIBUTE=VALUE[,...], such as eth-vf0:vlan=100,trust=on",
                                    argument);
        s = (SlotAttributes) { .slot = strndup(argument, (size_t) (colon - argument)),
                               .attributes = strdup(colon + 1) };
        *ret = s;
        return s.slot && s.attributes ? 0 : report_errno(args, -ENOMEM, "Cannot read the arguments");
}

/* Parses "mpi=256M" or, with pages of 2M, "mpi=1G:2M". Modifies word. */
static int region_parse(const Args *args, char *word, SharedMemory *ret) {
        _cleanup_free_ char *whole = strdup(word);
        char *equals = strchr(word, '='), *colon = equals ? strchr(equals, ':') : NULL;

        if (!whole)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        if (equals)
                *equals = '\0';
        if (colon)
                *colon = '\0';
        if (!equals || equals == word || parse_size(equals + 1, &ret->size) < 0 || ret->size == 0 ||
            (colon && (parse_size(colon + 1, &ret->page_size) < 0 || ret->page_size == 0)))
                return report_usage(args, "'%s' is not NAME=SIZE or NAME=SIZE:PAGESIZE, such as mpi=256M", whole);
        ret->name = strdup(word);
        return ret->name ? 0 : report_errno(args, -ENOMEM, "Cannot read the arguments");
}

/* Parses "gpu=0000:13:00.0". */
static int chosen_parse(const Args *args, const char *word, ChosenDevice *ret) {
        const char *equals = strchr(word, '=');
        ChosenDevice d;

        if (!equals || equals == word || !equals[1])
                return report_usage(args, "'%s' is not POOL=ADDRESS, such as gpu=0000:13:00.0", word);
        d = (ChosenDevice) { .pool = strndup(word, (size_t) (equals - word)), .address = strdup(equals + 1) };
        *ret = d;
        return d.pool && d.address ? 0 : report_errno(args, -ENOMEM, "Cannot read the arguments");
}

static int host_node_parse(const Args *args, const char *word, uint32_t *ret) {
        uint64_t node;

        if (parse_unsigned(word, INT32_MAX, &node) < 0)
                return report_usage(args, "'%s' is not the number of a NUMA node", word);
        *ret = (uint32_t) node;
        return 0;
}

static int list_word_parse(const Args *args, Option option, char *word, PoolCounts *p) {
        if (option == OPTION_SHARED_MEMORY)
                return region_parse(args, word, &p->regions[p->n_regions++]);
        if (option == OPTION_AT)
                return chosen_parse(args, word, &p->at[p->n_at++]);
        return host_node_parse(args, word, &p->host_nodes[p->n_host_nodes++]);
}

/* Parses the words of an option whose value is a list. *ret_array gets room for each of them. */
static int list_parse(const Args *args, Option option, void **ret_array, size_t element, PoolCounts *p) {
        const char *text = args_has(args, option) ? args->text[option] : NULL;
        _cleanup_free_ char *list = NULL;
        char *rest, *word;
        int r = 0;

        if (!text)
                return 0;
        rest = list = strdup(text);
        *ret_array = calloc(strlen(text) + 1, element);
        if (!list || !*ret_array)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        while (r == 0 && (word = strsep(&rest, ",")))
                r = list_word_parse(args, option, word, p);
        return r;
}

static int lists_parse(const Args *args, PoolCounts *p) {
        int r = list_parse(args, OPTION_SHARED_MEMORY, (void **) &p->regions, sizeof(*p->regions), p);

        if (r == 0)
                r = list_parse(args, OPTION_AT, (void **) &p->at, sizeof(*p->at), p);
        return r != 0 ? r : list_parse(args, OPTION_HOST_NODES, (void **) &p->host_nodes, sizeof(*p->host_nodes), p);
}

int pool_counts_parse(const Args *args, size_t first, PoolCounts *ret) {
        _cleanup_pool_counts_ PoolCounts p = { 0 };

        p.items = calloc(args->n_operands + 1, sizeof(*p.items));
        p.slots = calloc(args->n_operands + 1, sizeof(*p.slots));
        if (!p.items || !p.slots)
                return report_errno(args, -ENOMEM, "Cannot read the arguments");
        for (size_t i = first; i < args->n_operands; i++) {
                const char *argument = args->operands[i];
                int r = is_slot_attributes(argument) ? slot_attributes_parse(args, argument, &p.slots[p.n_slots++])
                                                     : pool_count_parse(args, argument, &p.items[p.n++]);
                if (r != 0)
                        return r;
        }
        int r = lists_parse(args, &p);
        if (r != 0)
                return r;
        *ret = p;
        p = (PoolCounts) { 0 };
        return 0;
}

void pool_counts_done(PoolCounts *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->items[i].pool);
        for (size_t i = 0; i < p->n_slots; i++) {
                free(p->slots[i].slot);
                free(p->slots[i].attributes);
        }
        for (size_t i = 0; i < p->n_regions; i++)
                free(p->regions[i].name);
        for (size_t i = 0; i < p->n_at; i++) {
                free(p->at[i].pool);
                free(p->at[i].address);
        }
        free(p->at);
        free(p->host_nodes);
        free(p->regions);
        free(p->items);
        free(p->slots);
        *p = (PoolCounts) { 0 };
}

/* Opens a dictionary entry whose value is an array; the caller appends the elements, then calls close_array(). */
static int open_array(sd_bus_message *m, const char *key, const char *array, const char *element) {
        int r;

        r = sd_bus_message_open_container(m, SD_BUS_TYPE_DICT_ENTRY, "sv");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", key);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, SD_BUS_TYPE_VARIANT, array);
        return r < 0 ? r : sd_bus_message_open_container(m, SD_BUS_TYPE_ARRAY, element);
}

static int close_array(sd_bus_message *m) {
        int r = 0;

        for (size_t open = 3; r >= 0 && open > 0; open--)
                r = sd_bus_message_close_container(m);
        return r;
}

static int append_devices(const PoolCounts *pools, sd_bus_message *m) {
        int r = open_array(m, REQUEST_KEY_DEVICES, "a(su)", "(su)");

        for (size_t i = 0; r >= 0 && i < pools->n; i++)
                r = sd_bus_message_append(m, "(su)", pools->items[i].pool, pools->items[i].count);
        return r < 0 ? r : close_array(m);
}

static int append_attributes(const PoolCounts *pools, sd_bus_message *m) {
        int r = open_array(m, REQUEST_KEY_VFS, "a{ss}", "{ss}");

        for (size_t i = 0; r >= 0 && i < pools->n_slots; i++)
                r = sd_bus_message_append(m, "{ss}", pools->slots[i].slot, pools->slots[i].attributes);
        return r < 0 ? r : close_array(m);
}

static int append_at(const PoolCounts *pools, sd_bus_message *m) {
        int r = open_array(m, REQUEST_KEY_AT, "a(ss)", "(ss)");

        for (size_t i = 0; r >= 0 && i < pools->n_at; i++)
                r = sd_bus_message_append(m, "(ss)", pools->at[i].pool, pools->at[i].address);
        return r < 0 ? r : close_array(m);
}

static int append_host_nodes(const PoolCounts *pools, sd_bus_message *m) {
        int r = open_array(m, REQUEST_KEY_HOST_NODES, "au", "u");

        for (size_t i = 0; r >= 0 && i < pools->n_host_nodes; i++)
                r = sd_bus_message_append(m, "u", pools->host_nodes[i]);
        return r < 0 ? r : close_array(m);
}

static int append_regions(const PoolCounts *pools, sd_bus_message *m) {
        int r = open_array(m, REQUEST_KEY_SHARED_MEMORY, "a(stt)", "(stt)");

        for (size_t i = 0; r >= 0 && i < pools->n_regions; i++)
                r = sd_bus_message_append(m, "(stt)", pools->regions[i].name, pools->regions[i].size,
                                          pools->regions[i].page_size);
        return r < 0 ? r : close_array(m);
}

typedef struct RequestOption {
        Option option;
        const char *key;
        char type; /* D-Bus type of the value */
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

int request_append(const Args *args, const char *name, const PoolCounts *pools, sd_bus_message *call) {
        int r = 0;

        if (name)
                r = sd_bus_message_append(call, "s", name);
        if (r >= 0)
                r = sd_bus_message_open_container(call, SD_BUS_TYPE_ARRAY, "{sv}");
        if (r >= 0 && pools->n > 0)
                r = append_devices(pools, call);
        if (r >= 0 && pools->n_slots > 0)
                r = append_attributes(pools, call);
        if (r >= 0 && pools->n_regions > 0)
                r = append_regions(pools, call);
        if (r >= 0 && pools->n_at > 0)
                r = append_at(pools, call);
        if (r >= 0 && pools->n_host_nodes > 0)
                r = append_host_nodes(pools, call);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(request_options); i++)
                if (args_has(args, request_options[i].option))
                        r = append_option(args, &request_options[i], call);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        return r < 0 ? report_errno(args, r, "Cannot build the D-Bus call") : 0;
}
