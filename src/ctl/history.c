/* SPDX-License-Identifier: GPL-2.0-or-later */
/* passthroughctl history: the past events of a device, with the allocation and the owner of each. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "bus/names.h"
#include "reply.h"
#include "report.h"
#include "table.h"
#include "verbs.h"

static const Column columns[] = {
        { "TIME" },
        { "EVENT" },
        { "OWNER", .right = true },
        { "GENERATION", .right = true },
        { "ALLOCATION" },
        { "MESSAGE", .cut = true },
};

/* Converts "2026-03-01T12:00:00.123456Z" to local time, "2026-03-01 13:00:00.123". Returns utc if it has another
 * format. */
static const char *local_time(const char *utc, char *buf, size_t size) {
        struct tm tm = { 0 };
        const char *rest = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);
        time_t seconds;
        size_t n;

        if (!rest || *rest != '.' || strlen(rest) < strlen(".000"))
                return utc;
        seconds = timegm(&tm);
        if (!localtime_r(&seconds, &tm))
                return utc;
        n = strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
        (void) snprintf(buf + n, size - n, "%.4s", rest);
        return buf;
}

static int add_entry(struct libscols_table *table, json_object *e) {
        char buf[64];
        const char *cells[ELEMENTSOF(columns)] = {
                local_time(reply_cell(e, "time"), buf, sizeof(buf)),
                reply_cell(e, "event"),
                reply_cell(e, "owner"),
                reply_cell(e, "generation"),
                reply_cell(e, "allocation"),
                reply_cell(e, "message"),
        };

        return table_add(table, cells);
}

static int print_table(const Args *args, const char *address, json_object *entries) {
        _cleanup_(cleanup_scols_unref_table) struct libscols_table *table = table_new(columns, ELEMENTSOF(columns));
        size_t n = json_object_array_length(entries);

        if (!table)
                return report_errno(args, -ENOMEM, "Cannot print");
        for (size_t i = 0; i < n; i++)
                if (add_entry(table, json_object_array_get_idx(entries, i)) < 0)
                        return report_errno(args, -ENOMEM, "Cannot print");
        if (n == 0)
                fprintf(stderr, "There is no history of %s.\n", address);
        return n > 0 && table_print(table) < 0 ? report_errno(args, -EIO, "Cannot print") : 0;
}

int verb_history(const Args *args) {
        uint32_t lines = args_has(args, OPTION_LINES) ? (uint32_t) args->number[OPTION_LINES] : BUS_HISTORY_MAX;
        _cleanup_(cleanup_client_free) Client *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_json_ json_object *entries = NULL;
        char address[PCI_ADDRESS_STRING_MAX];
        const char *text;
        int r = reply_device_address(args, args->operands[0], address);

        if (r != 0)
                return r;
        r = client_new(args, &c);
        if (r >= 0)
                r = client_ask(c, "GetHistory", &reply, "su", address, lines);
        if (r < 0)
                return r;
        r = sd_bus_message_read(reply, "s", &text);
        if (r < 0)
                return client_bad_reply(c, r);
        if (args_has(args, OPTION_JSON)) {
                puts(text);
                return 0;
        }
        entries = json_tokener_parse(text);
        return json_object_is_type(entries, json_type_array) ? print_table(args, address, entries)
                                                             : client_bad_reply(c, -EBADMSG);
}
