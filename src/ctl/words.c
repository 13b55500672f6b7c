/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Short texts for people: lists of CPUs, names of devices, and the PCI paths between two devices. */

#include "words.h"

#include <errno.h>
#include <stdlib.h>

#include "util/strings.h"
#include "view.h"

/* A run of CPUs with equal gaps between them: first, first + step, ..., last. */
typedef struct CpuRun {
        unsigned long first, last, step;
        size_t n;
} CpuRun;

/* Appends a run: as "first-last:step", or if it has few CPUs with wide gaps, each CPU, which is easier to read. */
static int append_cpu_run(char **text, const CpuRun *run) {
        int r = 0;

        if (run->n > 2 && run->n >= 2 * run->step)
                return string_append(text, ",", "%lu-%lu:%lu", run->first, run->last, run->step);
        for (size_t i = 0; r >= 0 && i < run->n; i++)
                r = string_append(text, ",", "%lu", run->first + i * run->step);
        return r;
}

/* Adds a CPU that is not part of a range "first-last". Appends the run if the CPU does not continue it. */
static int add_single_cpu(char **text, CpuRun *run, unsigned long cpu) {
        CpuRun before = *run;

        if (before.n == 1 || (before.n > 1 && cpu - before.last == before.step)) {
                *run = (CpuRun) { before.first, cpu, cpu - before.last, before.n + 1 };
                return 0;
        }
        *run = (CpuRun) { cpu, cpu, 0, 1 };
        return append_cpu_run(text, &before);
}

char *cpus_shorten(const char *list) {
        _cleanup_free_ char *text = NULL;
        CpuRun run = { 0 };

        while (*list) {
                char *end;
                unsigned long first = strtoul(list, &end, 10);

                if (*end == '-') {
                        if (append_cpu_run(&text, &run) < 0 ||
                            string_append(&text, ",", "%lu-%lu", first, strtoul(end + 1, &end, 10)) < 0)
                                return NULL;
                        run = (CpuRun) { 0 };
                } else if (add_single_cpu(&text, &run, first) < 0)
                        return NULL;
                list = *end ? end + 1 : end;
        }
        if (append_cpu_run(&text, &run) < 0)
                return NULL;
        return text ? TAKE_PTR(text) : strdup("-");
}

/* Returns the name without the vendor at its start, such as "Advanced Micro Devices, Inc. [AMD] ". */
static const char *skip_vendor(const char *name) {
        static const char *const ends[] = {
                " Corporation ", " Technologies ", " Inc. ", " Ltd. ", " Ltd ", " and subsidiaries ",
        };
        const char *after;

        for (size_t i = 0; i < ELEMENTSOF(ends); i++) {
                const char *at = strstr(name, ends[i]);

                /* Keep the space at the end of the match. The next match may begin with it. */
                if (at)
                        name = at + strlen(ends[i]) - 1;
        }
        name += *name == ' ';
        after = *name == '[' ? strstr(name, "] ") : NULL;
        return after ? after + 2 : name;
}

/* Returns true for a GPU, another accelerator or a NIC: the brackets in its name have the product. In the names of
 * other devices they have a mode, for example. */
static bool has_product(json_object *device) {
        const char *class = reply_text(device, "class");

        return class && (strncmp(class, "02", 2) == 0 || strncmp(class, "03", 2) == 0 || strncmp(class, "12", 2) == 0);
}

/* Returns the name with the vendor shortened to its brand: "Advanced Micro Devices, Inc. [AMD/ATI] X" becomes
 * "AMD/ATI X". A vendor without brackets is shortened to its first word. rest: the text of name after the vendor; if
 * that is all of name, the result is a copy of name. The caller frees the result. */
static char *shorten_vendor(const char *name, const char *rest) {
        const char *brand = memchr(name, '[', (size_t) (rest - name));

        brand = brand ? brand + 1 : name;
        return rest == name ? strdup(name) : string_format("%.*s %s", (int) strcspn(brand, " ,]"), brand, rest);
}

char *device_product(json_object *device) {
        _cleanup_free_ char *id = string_format("%s:%s", reply_cell(device, "vendor"), reply_cell(device, "device"));
        const char *name = reply_text(device, "name"), *rest, *brackets;
        size_t n;

        if (!name || !id)
                return TAKE_PTR(id);
        rest = skip_vendor(name);
        n = strlen(rest);
        brackets = n > 0 && rest[n - 1] == ']' ? strrchr(rest, '[') : NULL;
        if (brackets && strncmp(brackets + 1, id, strlen(id)) == 0)
                return shorten_vendor(name, rest);
        return brackets && has_product(device) ? strndup(brackets + 1, n - 2 - (size_t) (brackets - rest))
                                               : strdup(rest);
}

/* Appends the ports that redirect: "0000:12:00.0 (SV RR CR UF), 0000:12:01.0 (SV RR CR UF)". brief: without the ACS
 * bits. */
static int add_redirecting_ports(char **text, json_object *path, bool brief) {
        _cleanup_free_ char *ports = NULL;
        int r = 0;

        for (size_t i = 0; i < member_length(path, "ports"); i++) {
                json_object *port = member_at(path, "ports", i);
                _cleanup_free_ char *bits = view_join(port, "acs_control", " ");

                if (!streq_ptr(reply_text(port, "redirects"), "true"))
                        continue;
                r = brief ? string_append(&ports, ", ", "%s", reply_cell(port, "address"))
                          : string_append(&ports, ", ", "%s (%s)", reply_cell(port, "address"), bits ?: "");
                if (r < 0)
                        return r;
        }
        return string_append(text, "", "redirected by ACS at %s", ports ?: "");
}

/* Appends the state of ATS of both devices. brief: only of the first device, which makes the requests. */
static int add_ats(char **text, json_object *path, bool brief) {
        json_object *ats = member_object(path, "ats");

        if (!ats)
                return 0;
        json_object_object_foreach(ats, address, state) {
                const char *s = json_object_get_string(state);
                int r = 0;

                if (text_is_clean(address) && (!s || text_is_clean(s)))
                        r = string_append(text, "; ", "ATS of %s %s", address, s ?: "unknown");
                if (r < 0 || brief)
                        return r;
        }
        return 0;
}

char *peer_path_text(json_object *path, bool brief) {
        static const struct {
                const char *access, *text;
        } texts[] = {
                { "translated", "direct for requests translated by ATS, else redirected by ACS" },
                { "root-complex", "through the root complex, no switch is above both" },
                { "card", "within one card" },
        };
        const char *access = reply_text(path, "peer_to_peer"), *known = access;
        bool redirected = streq_ptr(access, "redirected");
        _cleanup_free_ char *text = NULL;

        if (!brief && string_append(&text, "", "peer-to-peer ") < 0)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (streq_ptr(access, texts[i].access))
                        known = texts[i].text;
        if (redirected ? add_redirecting_ports(&text, path, brief) < 0
                       : string_append(&text, "", "%s", known ?: "unknown: ACS or ATS could not be read") < 0)
                return NULL;
        if ((redirected || (!access && !brief)) && add_ats(&text, path, brief) < 0)
                return NULL;
        return TAKE_PTR(text);
}
