/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The methods GetDomainXML and GetNcclTopology. If GetDomainXML makes a whole document from a template, libvirt
 * validates the document before the reply. */

#include <errno.h>

#include "bus/names.h"
#include "error.h"
#include "guest/cdi.h"
#include "guest/domxml.h"
#include "guest/xlcfg.h"
#include "server-internal.h"
#include "util/strings.h"
#include "util/stringtable.h"

typedef enum DocumentOption {
        DOCUMENT_TEMPLATE,
        DOCUMENT_QEMU_COMMANDLINE,
        DOCUMENT_DEVICE, /* this option and the following are only for GetDomainXML */
        DOCUMENT_GUEST_INFO,
        DOCUMENT_HOST_ADDRESSES,
        DOCUMENT_FORMAT,
        _DOCUMENT_OPTION_MAX,
} DocumentOption;

static Verdict find_option(const char *key, size_t n_options, DocumentOption *ret, Refusal *ret_refusal) {
        static const char *const names[_DOCUMENT_OPTION_MAX] = { OPTION_KEY_TEMPLATE,       OPTION_KEY_QEMU_COMMANDLINE,
                                                                 OPTION_KEY_DEVICE,         OPTION_KEY_GUEST_INFO,
                                                                 OPTION_KEY_HOST_ADDRESSES, OPTION_KEY_FORMAT };
        _cleanup_free_ char *all = NULL;
        int option = string_table_find(names, n_options, key);

        *ret = (DocumentOption) option;
        if (option >= 0)
                return VERDICT_NONE;
        for (size_t i = 0; i < n_options; i++)
                if (string_append(&all, i + 1 < n_options ? ", " : " and ", "'%s'", names[i]) < 0)
                        return refuse_no_memory(ret_refusal);
        (void) string_replace(&all, "The options are %s.", all);
        return refuse_request(ret_refusal, all, "There is no option '%s'.", QUOTABLE(key));
}

static Verdict check_format(Answer *a, Refusal *ret) {
        if (streq(a->format, DOCUMENT_FORMAT_XML))
                a->format = NULL;
        if (!a->format || streq(a->format, DOCUMENT_FORMAT_XL) || streq(a->format, DOCUMENT_FORMAT_CDI))
                return VERDICT_NONE;
        return refuse_request(ret,
                              "The formats are '" DOCUMENT_FORMAT_XML "', '" DOCUMENT_FORMAT_XL
                              "' and '" DOCUMENT_FORMAT_CDI "'.",
                              "There is no format '%s'.", QUOTABLE(a->format));
}

/* Parses one of the first n_options options. Adds it to the set `seen`. Adds it to the set `on` if it is a boolean with
 * the value true; otherwise removes it from `on`. `a` borrows the strings of the message. */
static Verdict read_option(sd_bus_message *m, const char *key, size_t n_options, unsigned *seen, unsigned *on,
                           Answer *a, Refusal *ret) {
        DocumentOption option;
        Verdict v = find_option(key, n_options, &option, ret);
        const char **texts[_DOCUMENT_OPTION_MAX] = {
                [DOCUMENT_TEMPLATE] = &a->template.text, [DOCUMENT_DEVICE] = &a->slot, [DOCUMENT_FORMAT] = &a->format
        };
        int r, value = false;

        if (v != VERDICT_NONE)
                return v;
        if (*seen & (1U << option))
                return refuse_request(ret, NULL, "The options have the key '%s' twice.", key);
        *seen |= 1U << option;
        if (texts[option])
                r = sd_bus_message_read(m, "v", "s", texts[option]);
        else
                r = sd_bus_message_read(m, "v", "b", &value);
        if (r < 0)
                return refuse_request(ret, NULL, "The option '%s' is not a %s.", key,
                                      texts[option] ? "string" : "boolean");
        if (value)
                *on |= 1U << option;
        else
                *on &= ~(1U << option);
        if (option == DOCUMENT_FORMAT)
                return check_format(a, ret);
        return option == DOCUMENT_TEMPLATE ? domxml_check_size(a->template.text, ret) : VERDICT_NONE;
}

/* Parses the options (a{sv}) of a call. Only the first n_options of DocumentOption are allowed. */
static Verdict read_options(sd_bus_message *m, size_t n_options, Answer *a, Refusal *ret) {
        const char *key;
        unsigned seen = 0, on = 1U << DOCUMENT_GUEST_INFO;
        bool info, host;
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                Verdict v;

                r = sd_bus_message_read(m, "s", &key);
                if (r < 0)
                        break;
                v = read_option(m, key, n_options, &seen, &on, a, ret);
                if (v != VERDICT_NONE)
                        return v;
                r = sd_bus_message_exit_container(m);
        }
        if (r < 0)
                return refuse_request(ret, NULL, "The options could not be read.");
        info = on & (1U << DOCUMENT_GUEST_INFO);
        host = on & (1U << DOCUMENT_HOST_ADDRESSES);
        if (host && !info)
                return refuse_request(ret, "Leave out one of them.",
                                      "With 'guest-info' false, there is nothing to add '%s' to.",
                                      OPTION_KEY_HOST_ADDRESSES);
        if (a->format && (a->slot || a->template.text))
                return refuse_request(ret, "Leave out one of them.",
                                      "The option '%s' is for libvirt, not for the format '%s'.",
                                      a->slot ? OPTION_KEY_DEVICE : OPTION_KEY_TEMPLATE, a->format);
        a->info = !info ? GUEST_INFO_NONE : host ? GUEST_INFO_HOST : GUEST_INFO_GUEST;
        a->template.qemu_commandline = on & (1U << DOCUMENT_QEMU_COMMANDLINE);
        return VERDICT_NONE;
}

static Verdict check_state(const Allocation *a, Refusal *ret) {
        if (a->state != ALLOCATION_FAILED && a->state != ALLOCATION_RELEASING)
                return VERDICT_NONE;
        return refuse(ret, VERDICT_WRONG_STATE, NULL,
                      a->state == ALLOCATION_FAILED ? "Release the allocation and allocate again."
                                                    : "Allocate again after the release.",
                      "Allocation '%s' is %s: no guest can start with it.%s%s", a->name,
                      allocation_state_to_string(allocation_shown_state(a)), a->reason ? " " : "", a->reason ?: "");
}

/* Finds the allocation with this name. Returns NULL, and stores a refusal, if there is none, or if it has failed or is
 * being released. */
static const Allocation *find_usable(const HostView *view, const char *name, Refusal *ret) {
        const Allocation *a = bus_find_allocation(view, name, ret);

        return a && check_state(a, ret) == VERDICT_NONE ? a : NULL;
}

/* Runs in the child: finds the allocation again. Returns NULL, and stores a refusal, if that fails: for example, if the
 * allocation was released and another owner has allocated with the same name while the answer was queued. */
static const Allocation *find_again(const HostView *view, const Answer *answer, Refusal *ret) {
        const Allocation *a = find_usable(view, answer->name, ret);

        if (!a || streq(a->id, answer->id))
                return a;
        (void) refuse(ret, VERDICT_NO_SUCH_ALLOCATION, NULL, NULL, "The allocation '%s' was released.",
                      QUOTABLE(answer->name));
        return NULL;
}

static const DomainTemplate *template_of(const Answer *a) {
        return a->template.text ? &a->template : NULL;
}

static Verdict make_domain_xml(const HostView *view, const Answer *a, Refusal *ret) {
        const Allocation *allocation = find_again(view, a, ret);
        _cleanup_free_ char *document = NULL;
        size_t size = 0;
        Verdict v;

        if (!allocation)
                return ret->verdict;
        if (a->format && streq(a->format, DOCUMENT_FORMAT_CDI))
                v = cdi_make(view->inventory, view->config, allocation, &document, ret);
        else if (a->format)
                v = xl_config_make(view->inventory, view->config, allocation, a->info, &document, ret);
        else if (a->slot)
                v = domxml_hostdev(view->inventory, view->config, allocation, template_of(a), a->slot, &document, ret);
        else
                v = domxml_make_with_lines(view->inventory, view->config, allocation, template_of(a), a->info,
                                           &document, &size, ret);
        /* size includes the lines of the template, which lie behind the NUL of the document. Only the validator
         * needs them. */
        if (v == VERDICT_NONE)
                answer_write(document, a->validate ? size : strlen(document));
        return v;
}

static Verdict make_nccl_topology(const HostView *view, const Answer *a, Refusal *ret) {
        const Allocation *allocation = find_again(view, a, ret);
        _cleanup_free_ char *document = NULL;

        if (allocation && !view->inventory->xen && view->may_miss_guests && !allocation_has_guest(allocation))
                return refuse(ret, VERDICT_BUSY, NULL, "Check libvirt, or set Libvirt= to nothing if it has no guests.",
                              "Whether a guest runs with '%s' is unknown: %s", allocation->name,
                              view->libvirt->reason ?: "libvirt was not asked.");
        if (!allocation || domxml_nccl_topology(view->inventory, view->config, allocation, template_of(a), &document,
                                                ret) != VERDICT_NONE)
                return ret->verdict;
        answer_write(document, strlen(document));
        return VERDICT_NONE;
}

/* Reads and checks the arguments of either method, and queues the answer. is_domain: the method is GetDomainXML. */
static int queue_document(Server *s, sd_bus_message *call, uint32_t uid, AnswerMake make, bool is_domain) {
        _cleanup_(cleanup_answer_free) Answer *a = NULL;
        _cleanup_refusal_ Refusal refusal = { 0 };
        const Allocation *allocation;
        HostView view;
        int r;

        a = answer_new(s, call, uid, make, &r);
        if (!a)
                return r;
        r = sd_bus_message_read(call, "s", &a->name);
        if (r < 0)
                return r;
        view = server_view(s);
        allocation = find_usable(&view, a->name, &refusal);
        if (!allocation ||
            read_options(call, is_domain ? _DOCUMENT_OPTION_MAX : DOCUMENT_DEVICE, a, &refusal) != VERDICT_NONE ||
            s->callbacks->check_runnable(s->userdata, a->name, &refusal) != VERDICT_NONE)
                return bus_reply_refusal(call, &refusal);
        memcpy(a->id, allocation->id, sizeof(a->id));
        /* Without a template, passthroughd has written the whole document, which needs no validation. */
        a->validate = is_domain && a->template.text && !a->slot;
        return answer_queue(TAKE_PTR(a));
}

static int get_domain_xml(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return queue_document(s, call, uid, make_domain_xml, true);
}

static int get_nccl_topology(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return queue_document(s, call, uid, make_nccl_topology, false);
}

/* Calls the method if the caller may read the document of the allocation. The owner of the allocation and root may, and
 * polkit is not asked; other users may if polkit lets them manage allocations. If there is no such allocation, calls
 * the method, which refuses. */
static int check_reader(Server *s, sd_bus_message *call, uint32_t uid, CallerMethod method, sd_bus_error *error) {
        HostView view = server_view(s);
        const Allocation *a;
        const char *name;
        int r = sd_bus_message_read(call, "s", &name);

        if (r < 0)
                return r;
        a = ledger_find(view.ledger, name);
        r = sd_bus_message_rewind(call, true);
        if (r < 0)
                return r;
        if (!a || a->owner == uid)
                return method(s, call, uid, error);
        return authorize(s, call, uid, intent_on_allocation, method, error);
}

int bus_get_domain_xml(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return check_reader(s, call, uid, get_domain_xml, error);
}

int bus_get_nccl_topology(Server *s, sd_bus_message *call, uint32_t uid, sd_bus_error *error) {
        return check_reader(s, call, uid, get_nccl_topology, error);
}
