/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a guest with remote GPUs needs: variables for the clients, and a file for GVirtuS. */

#include "services.h"

#include <string.h>

#include "util/strings.h"

/* The default port of an rCUDA server. */
#define RCUDA_PORT ":8308"

/* In the guest, passthroughd-guest.service (conf/guest) writes the text of services_gvirtus() to this file. */
#define GVIRTUS_FILE "/run/passthroughd/gvirtus.json"

static int host_length(const AllocationService *s) {
        return (int) (strrchr(s->endpoint, ':') - s->endpoint);
}

/* Returns the first endpoint of this kind of service; NULL: the allocation has none. */
static const AllocationService *find_kind(const Allocation *a, RemoteKind kind) {
        for (size_t i = 0; i < a->n_services; i++)
                if (a->services[i].kind == kind)
                        return &a->services[i];
        return NULL;
}

/* Appends variables that give the client a device for each slot: GPU numbers of a server begin with 0. 0 or -ENOMEM. */
static int append_rcuda(const Allocation *a, char **text) {
        unsigned n = 0;
        int r = 0;

        for (size_t i = 0; i < a->n_services; i++) {
                const AllocationService *s = &a->services[i];
                const char *port = s->endpoint + host_length(s);

                for (unsigned k = 0; r >= 0 && k < s->slots && s->kind == REMOTE_KIND_RCUDA; k++)
                        r = string_append(text, "", "RCUDA_DEVICE_%u=%.*s%s%s:%u\n", n++, host_length(s), s->endpoint,
                                          streq(port, RCUDA_PORT) ? "" : "@", streq(port, RCUDA_PORT) ? "" : port + 1,
                                          k);
        }
        return r < 0 || n == 0 ? r : string_append(text, "", "RCUDA_DEVICE_COUNT=%u\n", n);
}

static int append_lupine(const Allocation *a, char **text) {
        _cleanup_free_ char *servers = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < a->n_services; i++)
                if (a->services[i].kind == REMOTE_KIND_LUPINE)
                        r = string_append(&servers, ",", "%s", a->services[i].endpoint);
        return r < 0 || !servers ? r : string_append(text, "", "LUPINE_SERVER=%s\n", servers);
}

/* Appends a line for each word of Variables=. slots: the number of slots of all endpoints of the service together. 0 or
 * -ENOMEM. */
static int append_variables(const AllocationService *s, unsigned slots, char **text) {
        const char *port = s->endpoint + host_length(s) + 1;
        int r = 0;

        for (const char *at = s->variables; r >= 0 && *at; at++)
                if (*at == '%' && at[1] == 'h')
                        r = string_append(text, "", "%.*s", host_length(s), s->endpoint), at++;
                else if (*at == '%' && at[1] == 'p')
                        r = string_append(text, "", "%s", port), at++;
                else if (*at == '%')
                        r = string_append(text, "", "%u", slots), at++;
                else if (*at != ' ')
                        r = string_append(text, "", "%c", *at);
                else if (at[1] != ' ')
                        r = string_append(text, "", "\n");
        return r < 0 || !*s->variables ? r : string_append(text, "", "\n");
}

static int append_all_variables(const Allocation *a, char **text) {
        int r = 0;

        for (size_t i = 0, next; i < a->n_services; i = next) {
                unsigned slots = 0;

                for (next = i; next < a->n_services && streq(a->services[next].name, a->services[i].name); next++)
                        slots += a->services[next].slots;
                r = append_variables(&a->services[i], slots, text);
                if (r < 0)
                        return r;
        }
        return r;
}

int services_env(const Allocation *a, char **ret) {
        const AllocationService *cricket = find_kind(a, REMOTE_KIND_CRICKET);
        _cleanup_free_ char *text = NULL;
        int r = append_rcuda(a, &text);

        if (r < 0)
                return r;
        r = append_lupine(a, &text);
        if (r < 0)
                return r;
        if (cricket)
                r = string_append(&text, "", "REMOTE_GPU_ADDRESS=%s\n", cricket->endpoint);
        if (r < 0)
                return r;
        if (find_kind(a, REMOTE_KIND_GVIRTUS))
                r = string_append(&text, "", "GVIRTUS_CONFIG=%s\n", GVIRTUS_FILE);
        if (r < 0)
                return r;
        r = append_all_variables(a, &text);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

/* Formats a JSON text, as the documentation of GVirtuS describes it. */
int services_gvirtus(const Allocation *a, char **ret) {
        const AllocationService *s = find_kind(a, REMOTE_KIND_GVIRTUS);

        return s ? string_replace(ret,
                                  "{\"communicator\":[{\"endpoint\":{\"suite\":\"tcp/ip\",\"protocol\":\"oldtcp\","
                                  "\"server_address\":\"%.*s\",\"port\":\"%s\"},\"plugins\":[\"cudart\",\"cudadr\","
                                  "\"cufft\",\"cublas\",\"curand\"]}],\"secure_application\":false}\n",
                                  host_length(s), s->endpoint, s->endpoint + host_length(s) + 1)
                 : 0;
}
