/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "domain.h"

#include <errno.h>
#include <fcntl.h>

#include "bus/names.h"
#include "report.h"
#include "util/fileio.h"
#include "util/strings.h"

#define TEMPLATE_MAX ((size_t) 256 * 1024)

/* file: "-" is standard input. *ret is NUL-terminated; *ret_size does not count the NUL. -E2BIG over TEMPLATE_MAX. */
static int read_text(const char *file, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -1;

        if (streq(file, "-"))
                return read_all_fd(STDIN_FILENO, TEMPLATE_MAX, ret, ret_size);
        fd = open(file, O_RDONLY | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? -errno : read_all_fd(fd, TEMPLATE_MAX, ret, ret_size);
}

/* D-Bus strings must be UTF-8. Control characters other than tab and newlines are refused too. */
static bool is_utf8(const char *text) {
        _cleanup_free_ char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if (strchr("\t\r\n", *p))
                        *p = ' ';
        return copy && text_is_clean(copy);
}

int domain_read_template(const Args *args, char **ret) {
        const char *file = args->text[OPTION_TEMPLATE];
        _cleanup_free_ char *data = NULL;
        size_t size = 0;
        int r;

        if (!file)
                return args_has(args, OPTION_ALLOW_QEMU_COMMANDLINE)
                               ? report_usage(args, "--allow-qemu-commandline needs --template")
                               : 0;
        r = read_text(file, &data, &size);
        if (r == -E2BIG)
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Template %s is longer than %zu KiB.", file,
                                      TEMPLATE_MAX / 1024);
        if (r < 0)
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Cannot read template %s: %s.", file,
                                      strerror(-r));
        if (strlen(data) != size || !is_utf8(data))
                return report_failure(args, BUS_ERROR_INVALID_TEMPLATE, "Template %s is not UTF-8 text.", file);
        *ret = TAKE_PTR(data);
        return 0;
}

static int append_text(sd_bus_message *call, const char *key, const char *text) {
        return text ? sd_bus_message_append(call, "{sv}", key, "s", text) : 0;
}

int domain_request(Client *c, const char *name, const char *template, char **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL, *reply = NULL;
        bool nccl = args_has(c->args, OPTION_NCCL);
        int r = client_method(c, nccl ? "GetNcclTopology" : "GetDomainXML", &call);

        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", name);
        if (r >= 0)
                r = sd_bus_message_open_container(call, 'a', "{sv}");
        if (r >= 0)
                r = append_text(call, OPTION_KEY_TEMPLATE, template);
        if (r >= 0)
                r = append_text(call, OPTION_KEY_DEVICE, c->args->text[OPTION_DEVICE]);
        if (r >= 0)
                r = append_text(call, OPTION_KEY_FORMAT, c->args->text[OPTION_FORMAT]);
        if (r >= 0 && args_has(c->args, OPTION_ALLOW_QEMU_COMMANDLINE))
                r = sd_bus_message_append(call, "{sv}", OPTION_KEY_QEMU_COMMANDLINE, "b", 1);
        if (r >= 0 && args_has(c->args, OPTION_NO_GUEST_INFO))
                r = sd_bus_message_append(call, "{sv}", OPTION_KEY_GUEST_INFO, "b", 0);
        if (r >= 0 && args_has(c->args, OPTION_HOST_ADDRESSES))
                r = sd_bus_message_append(call, "{sv}", OPTION_KEY_HOST_ADDRESSES, "b", 1);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        if (r < 0)
                return report_errno(c->args, r, "Cannot build the D-Bus call");
        r = client_call(c, call, &reply);
        return r < 0 ? r : client_read_text(c, reply, ret);
}
