/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "api.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "agent/http.h"
#include "agent/settings.h"
#include "model/json-parse.h"
#include "model/json-value.h"
#include "util/log.h"
#include "util/strings.h"

/* Version 1.37 lets a provider be moved, version 1.38 adds consumer types. */
#define MICROVERSION "OpenStack-API-Version: placement 1.38"

struct Api {
        const Settings *settings;
        HttpTls tls;
        Http *http;
        char *url;   /* URL of Placement, without a slash at the end */
        char *token; /* NULL: get one from Keystone before the next request */
};

Api *api_free(Api *a) {
        if (!a)
                return NULL;
        http_free(a->http);
        free(a->url);
        free(a->token);
        free(a);
        return NULL;
}

static int set_url(Api *a, const char *url) {
        size_t n = strlen(url);

        while (n > 0 && url[n - 1] == '/')
                n--;
        return string_replace(&a->url, "%.*s", (int) n, url);
}

int api_new(const Settings *settings, Api **ret) {
        _cleanup_(cleanup_api_free) Api *a = calloc(1, sizeof(*a));

        int r;

        if (!a || (settings->url && set_url(a, settings->url) < 0) ||
            (!settings->keystone_url && string_copy(&a->token, settings->token ?: "") < 0))
                return log_error_errno(-ENOMEM, "Failed to prepare HTTP: %m");
        a->settings = settings;
        a->tls.ca_file = settings->ca_file;
        r = http_new(NULL, &a->tls, &a->http);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}

/* Sends a request. token: NULL for a request without a token. Returns the HTTP status, or a negative errno, logged. */
static int send_request(Api *a, HttpRequest q, const char *token, HttpReply *ret) {
        _cleanup_free_ char *line = token ? string_format("X-Auth-Token: %s", token) : NULL;
        const char *const headers[] = { MICROVERSION, line, NULL };

        if (token && !line)
                return log_error_errno(-ENOMEM, "Failed to build the request to %s: %m", q.url);
        q.headers = headers;
        return http_send(a->http, &q, ret);
}

/*
 * Returns true when the reply does not come from the API that was asked: Placement, or Keystone in authenticate().
 * Placement sends a document with each error and with each reply to a GET. Its errors have the status 400, 403, 404,
 * 406 or 409. api_try() does not ask about 404 and 409, and to authenticate() they mean a wrong URL. A proxy in front
 * of the server may itself refuse a token (401) or report an overload (408, 429, 5xx): such a reply is no sign of
 * another server.
 */
static bool is_of_other_server(const char *method, const HttpReply *reply) {
        int status = reply->status;

        if (status == 401 || status == 408 || status == 429 || status >= 500)
                return false;
        if (status / 100 == 2)
                return !reply->document && (streq(method, "GET") || reply->has_body);
        return reply->document ? status != 400 && status != 403 && status != 406 : true;
}

static bool member_is(json_object *o, const char *key, const char *value) {
        return streq_ptr(member_text(o, key), value);
}

static const char *find_endpoint(const Settings *s, json_object *service) {
        json_object *endpoints = member(service, "endpoints");

        for (size_t i = 0; i < json_length(endpoints); i++) {
                json_object *e = json_at(endpoints, i);

                if (member_is(e, "interface", s->interface) && (!s->region || member_is(e, "region_id", s->region)))
                        return member_text(e, "url");
        }
        return NULL;
}

/* Takes the URL of Placement from the catalog in Keystone's reply, unless the settings name a URL. */
static int take_url(Api *a, json_object *reply) {
        json_object *catalog = member(member(reply, "token"), "catalog");

        if (a->settings->url)
                return 0;
        for (size_t i = 0; i < json_length(catalog); i++) {
                json_object *service = json_at(catalog, i);
                const char *url = member_is(service, "type", "placement") ? find_endpoint(a->settings, service) : NULL;

                if (url)
                        return set_url(a, url) < 0 ? log_error_errno(-ENOMEM, "Failed to read Keystone's catalog: %m")
                                                   : 0;
        }
        return log_error("Keystone's catalog has no endpoint of Placement for interface '%s'%s%s.",
                         a->settings->interface, a->settings->region ? " and region " : "", a->settings->region ?: ""),
               -ENOENT;
}

static json_object *credential_body(const Settings *s) {
        static const char text[] =
                "{\"auth\":{\"identity\":{\"methods\":[\"application_credential\"],\"application_credential\":{}}}}";
        _cleanup_json_ json_object *o = NULL;
        json_object *credential;

        if (json_parse(text, strlen(text), &o) < 0)
                return NULL;
        credential = member(member(member(o, "auth"), "identity"), "application_credential");
        if (!credential || json_object_object_add(credential, "id", json_object_new_string(s->credential)) < 0 ||
            json_object_object_add(credential, "secret", json_object_new_string(s->secret)) < 0)
                return NULL;
        return TAKE_PTR(o);
}

static int authenticate(Api *a) {
        _cleanup_json_ json_object *body = credential_body(a->settings);
        _cleanup_free_ char *url = string_format("%s/auth/tokens", a->settings->keystone_url);
        _cleanup_(http_reply_done) HttpReply reply = { 0 };
        int status;

        if (!body || !url)
                return log_error_errno(-ENOMEM, "Failed to ask Keystone: %m");
        status = send_request(a, (HttpRequest) { "POST", url, .body = body, .reply_header = "X-Subject-Token" }, NULL,
                              &reply);
        if (status < 0)
                return status;
        if (status != 201 || !reply.header)
                return log_error("Keystone gives no token for the application credential '%s': status %d.%s",
                                 a->settings->credential, status,
                                 status / 100 == 2 || is_of_other_server("POST", &reply)
                                         ? " Correct Url= of [Keystone]."
                                         : ""),
                       -EACCES;
        a->token = TAKE_PTR(reply.header);
        return take_url(a, reply.document);
}

static bool is_failure(int status) {
        return status / 100 != 2 && status != 404 && status != 409;
}

/* If the URL of Placement came from Keystone's catalog, drops the token, so that the next request reads the catalog
 * again: the URL may be wrong. */
static void forget_address(Api *a) {
        if (a->settings->keystone_url && !a->settings->url)
                free(TAKE_PTR(a->token));
}

int api_wrong_address(Api *a, const char *method, const char *path, int status) {
        forget_address(a);
        return log_error_errno(-EADDRNOTAVAIL, "%s is not the address of Placement: %s %s has status %d%s. %s", a->url,
                               method, path, status, status / 100 == 2 ? " without a document of Placement" : "",
                               a->settings->url ? "Correct Url= of [Placement]."
                                                : "Correct the endpoint in Keystone's catalog, or set Url= of "
                                                  "[Placement].");
}

int api_try(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply) {
        _cleanup_(http_reply_done) HttpReply reply = { 0 };
        bool may_renew = a->settings->keystone_url != NULL;
        int status = 401;

        if (ret_reply)
                *ret_reply = NULL;
        for (int i = 0; status == 401 && i < 2; i++) {
                _cleanup_free_ char *url = NULL;

                if (!a->token && (status = authenticate(a)) < 0)
                        return status;
                url = string_format("%s%s", a->url, path);
                if (!url)
                        return log_error_errno(-ENOMEM, "Failed to build the request to %s: %m", a->url);
                http_reply_done(&reply);
                status = send_request(a, (HttpRequest) { method, url, .body = body }, a->token, &reply);
                if (status != 401 || !may_renew)
                        break;
                free(TAKE_PTR(a->token));
        }
        if (status < 0)
                return forget_address(a), status;
        if (status != 404 && status != 409 && is_of_other_server(method, &reply))
                return api_wrong_address(a, method, path, status);
        if (is_failure(status)) {
                _cleanup_free_ char *reason = reply.document ? json_text(reply.document) : NULL;

                log_error("Placement refuses %s %s with status %d: %s", method, path, status,
                          reason ?: "no reason given.");
        }
        if (ret_reply)
                *ret_reply = TAKE_PTR(reply.document);
        return status;
}

int api_call(Api *a, const char *method, const char *path, json_object *body, json_object **ret_reply) {
        int status = api_try(a, method, path, body, ret_reply);

        if (status != 404 && status != 409)
                return status;
        if (ret_reply)
                json_object_put(TAKE_PTR(*ret_reply));
        return api_wrong_address(a, method, path, status);
}

unsigned api_requests(const Api *a) {
        return http_requests(a->http);
}

#define SECRET_NAME "passthrough-placement.secret"

static const AgentKey keys[] = {
        { "Placement", "Url", agent_parse_text, offsetof(Settings, url) },
        { "Placement", "Token", agent_parse_text, offsetof(Settings, token) },
        { "Placement", "CaFile", agent_parse_text, offsetof(Settings, ca_file) },
        { "Placement", "Host", agent_parse_text, offsetof(Settings, host) },
        { "Placement", "AddRoot", agent_parse_boolean, offsetof(Settings, add_root), "yes" },
        { "Placement", "Project", agent_parse_text, offsetof(Settings, project), "passthroughd" },
        { "Placement", "User", agent_parse_text, offsetof(Settings, user), "passthroughd" },
        { "Keystone", "Url", agent_parse_text, offsetof(Settings, keystone_url) },
        { "Keystone", "Credential", agent_parse_text, offsetof(Settings, credential) },
        { "Keystone", "SecretFile", agent_parse_text, offsetof(Settings, secret_file) },
        { "Keystone", "Region", agent_parse_text, offsetof(Settings, region) },
        { "Keystone", "Interface", agent_parse_text, offsetof(Settings, interface), "internal" },
};

void settings_done(Settings *s) {
        agent_free_settings(keys, ELEMENTSOF(keys), s);
        free(TAKE_PTR(s->secret));
}

static int read_secret(const char *file, Settings *s) {
        const char *directory = getenv("CREDENTIALS_DIRECTORY");
        char path[PATH_MAX];
        int r;

        if (s->secret_file)
                (void) snprintf(path, sizeof(path), "%s", s->secret_file);
        else if (directory)
                (void) snprintf(path, sizeof(path), "%s/" SECRET_NAME, directory);
        else
                return log_error("%s: [Keystone] needs SecretFile=, because this is no service of systemd.", file),
                       -EINVAL;
        r = agent_read_secret(path, &s->secret);
        return r < 0 ? log_error_errno(r, "Failed to read the secret of the application credential, %s: %m", path) : 0;
}

static int complete(const char *path, Settings *s) {
        char host[HOST_NAME_MAX + 1] = "";

        if (gethostname(host, sizeof(host) - 1) < 0)
                return log_error_errno(-errno, "Failed to read the name of the host: %m");
        if (!s->host && string_copy(&s->host, host) < 0)
                return log_error_errno(-ENOMEM, "Failed to complete the settings: %m");
        if (!s->url && !s->keystone_url)
                return log_error("%s: Neither [Placement] Url= nor [Keystone] Url= is set.", path), -EINVAL;
        if (s->keystone_url && !s->credential)
                return log_error("%s: [Keystone] needs Credential=.", path), -EINVAL;
        return s->keystone_url ? read_secret(path, s) : 0;
}

int settings_read(const char *path, Settings *ret) {
        int r;

        *ret = (Settings) { 0 };
        r = agent_read_settings(path, keys, ELEMENTSOF(keys), ret);
        if (r >= 0)
                r = complete(path, ret);
        if (r < 0)
                settings_done(ret);
        return r;
}
