/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "api.h"

#include <curl/curl.h>
#include <errno.h>

#include "member.h"
#include "model/json-parse.h"
#include "model/json-value.h"
#include "util/log.h"
#include "util/strings.h"

/* The tree of a node with 4096 devices is shorter than 4 MiB. */
#define REPLY_MAX      ((size_t) 16 << 20)
/* Its values cost 600,000. */
#define REPLY_COST_MAX ((size_t) 2 << 20)
/* 1.38 has consumer types, 1.37 lets a provider move. */
#define MICROVERSION   "OpenStack-API-Version: placement 1.38"

struct Api {
        const Settings *settings;
        CURL *curl;
        char *url;   /* of Placement, without a slash at the end */
        char *token; /* NULL: ask Keystone */
        unsigned requests;
};

typedef struct Buffer {
        char *data;
        size_t size, capacity;
} Buffer;

typedef struct Request {
        const char *method, *url;
        json_object *body;
        const char *token; /* NULL: none */
} Request;

Api *api_free(Api *a) {
        if (!a)
                return NULL;
        curl_easy_cleanup(a->curl);
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

        if (!a || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(a->curl = curl_easy_init()) ||
            (settings->url && set_url(a, settings->url) < 0) ||
            (!settings->keystone_url && string_copy(&a->token, settings->token ?: "") < 0))
                return log_error_errno(-ENOMEM, "Failed to prepare HTTP: %m");
        a->settings = settings;
        *ret = TAKE_PTR(a);
        return 0;
}

static size_t on_data(char *data, size_t size, size_t n, void *userdata) {
        Buffer *b = userdata;

        if (b->size + n >= REPLY_MAX)
                return 0;
        if (b->size + n >= b->capacity) {
                size_t capacity = MAX(2 * b->capacity, b->size + n + 1);
                char *larger = realloc(b->data, capacity);

                if (!larger)
                        return 0;
                b->data = larger;
                b->capacity = capacity;
        }
        memcpy(b->data + b->size, data, n);
        b->size += n;
        b->data[b->size] = '\0';
        return n;
}

static struct curl_slist *make_headers(const char *token) {
        _cleanup_free_ char *line = token ? string_format("X-Auth-Token: %s", token) : NULL;
        const char *const lines[] = { "Content-Type: application/json", "Accept: application/json", MICROVERSION,
                                      line };
        struct curl_slist *headers = NULL;

        if (token && !line)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(lines) && lines[i]; i++) {
                struct curl_slist *longer = curl_slist_append(headers, lines[i]);

                if (!longer) {
                        curl_slist_free_all(headers);
                        return NULL;
                }
                headers = longer;
        }
        return headers;
}

static void set_options(Api *a, const Request *q, struct curl_slist *headers, const char *body, Buffer *b) {
        curl_easy_reset(a->curl);
        (void) curl_easy_setopt(a->curl, CURLOPT_URL, q->url);
        (void) curl_easy_setopt(a->curl, CURLOPT_PROTOCOLS_STR, "http,https");
        (void) curl_easy_setopt(a->curl, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(a->curl, CURLOPT_TIMEOUT, API_TIMEOUT_SEC);
        (void) curl_easy_setopt(a->curl, CURLOPT_HTTPHEADER, headers);
        (void) curl_easy_setopt(a->curl, CURLOPT_WRITEFUNCTION, on_data);
        (void) curl_easy_setopt(a->curl, CURLOPT_WRITEDATA, b);
        if (a->settings->ca_file)
                (void) curl_easy_setopt(a->curl, CURLOPT_CAINFO, a->settings->ca_file);
        /* Before the method: POSTFIELDS implies POST. A PUT without a body sends an empty one. */
        if (!streq(q->method, "GET") && !streq(q->method, "DELETE"))
                (void) curl_easy_setopt(a->curl, CURLOPT_COPYPOSTFIELDS, body ?: "");
        (void) curl_easy_setopt(a->curl, CURLOPT_CUSTOMREQUEST, q->method);
}

/* One request. The status of HTTP, or a negative errno, logged. */
static int send_request(Api *a, const Request *q, json_object **ret_reply) {
        struct curl_slist *headers = make_headers(q->token);
        _cleanup_free_ char *body = q->body ? json_text(q->body) : NULL;
        Buffer b = { 0 };
        CURLcode code;
        long status = 0;
        int r = 0;

        *ret_reply = NULL;
        if (!headers || (q->body && !body)) {
                curl_slist_free_all(headers);
                return log_error_errno(-ENOMEM, "Failed to build the request to %s: %m", q->url);
        }
        a->requests++;
        set_options(a, q, headers, body, &b);
        code = curl_easy_perform(a->curl);
        if (code == CURLE_OK) {
                (void) curl_easy_getinfo(a->curl, CURLINFO_RESPONSE_CODE, &status);
                if (b.data)
                        r = json_parse_within(b.data, b.size, REPLY_COST_MAX, ret_reply);
                log_debug("%s %s: %ld", q->method, q->url, status);
        }
        curl_slist_free_all(headers);
        free(b.data);
        if (code == CURLE_WRITE_ERROR || r == -E2BIG)
                return log_warning_errno(-EHOSTUNREACH, "The reply of %s is too long.", q->url);
        if (code != CURLE_OK)
                return log_warning_errno(-EHOSTUNREACH, "%s does not answer: %s.", q->url, curl_easy_strerror(code));
        return (int) status;
}

static bool has_body(Api *a) {
        curl_off_t size = 0;

        return curl_easy_getinfo(a->curl, CURLINFO_SIZE_DOWNLOAD_T, &size) == CURLE_OK && size > 0;
}

/* The last reply is neither one of the API nor one of a proxy before it, which may be overloaded or without its server.
 * The API replies with a document; a proxy before it may check tokens itself. */
static bool is_of_other_server(Api *a, const char *method, int status, json_object *reply) {
        if (status == 401 || status == 408 || status == 429 || status >= 500)
                return false;
        if (status / 100 == 2)
                return !reply && (streq(method, "GET") || has_body(a));
        return reply ? status != 400 && status != 403 && status != 406 : true;
}

/* Keystone */

static bool member_is(json_object *o, const char *key, const char *value) {
        return streq_ptr(member_text(o, key), value);
}

static const char *find_endpoint(const Settings *s, json_object *service) {
        json_object *endpoints = member(service, "endpoints");

        for (size_t i = 0; json_object_is_type(endpoints, json_type_array) && i < json_object_array_length(endpoints);
             i++) {
                json_object *e = json_object_array_get_idx(endpoints, i);

                if (member_is(e, "interface", s->interface) && (!s->region || member_is(e, "region_id", s->region)))
                        return member_text(e, "url");
        }
        return NULL;
}

/* Takes the address of Placement from the catalog in Keystone's reply, unless the settings have it. */
static int take_url(Api *a, json_object *reply) {
        json_object *catalog = member(member(reply, "token"), "catalog");

        if (a->settings->url)
                return 0;
        for (size_t i = 0; json_object_is_type(catalog, json_type_array) && i < json_object_array_length(catalog);
             i++) {
                json_object *service = json_object_array_get_idx(catalog, i);
                const char *url = member_is(service, "type", "placement") ? find_endpoint(a->settings, service) : NULL;

                if (url)
                        return set_url(a, url);
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
        _cleanup_json_ json_object *body = credential_body(a->settings), *reply = NULL;
        _cleanup_free_ char *url = string_format("%s/auth/tokens", a->settings->keystone_url);
        struct curl_header *token;
        int status;

        if (!body || !url)
                return log_error_errno(-ENOMEM, "Failed to ask Keystone: %m");
        status = send_request(a, &(const Request) { "POST", url, body, NULL }, &reply);
        if (status < 0)
                return status;
        if (status != 201 || curl_easy_header(a->curl, "X-Subject-Token", 0, CURLH_HEADER, -1, &token) != CURLHE_OK)
                return log_error("Keystone gives no token for the application credential '%s': status %d.%s",
                                 a->settings->credential, status,
                                 status / 100 == 2 || is_of_other_server(a, "POST", status, reply)
                                         ? " Correct Url= of [Keystone]."
                                         : ""),
                       -EACCES;
        if (string_copy(&a->token, token->value) < 0)
                return -ENOMEM;
        return take_url(a, reply);
}

/* Requests to Placement */

static bool is_failure(int status) {
        return status / 100 != 2 && status != 404 && status != 409;
}

/* What did not lead to Placement is read from the catalog again. */
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
        _cleanup_json_ json_object *reply = NULL;
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
                        return -ENOMEM;
                json_object_put(TAKE_PTR(reply));
                status = send_request(a, &(const Request) { method, url, body, a->token }, &reply);
                if (status != 401 || !may_renew)
                        break;
                free(TAKE_PTR(a->token));
        }
        if (status < 0)
                return forget_address(a), status;
        if (status != 404 && status != 409 && is_of_other_server(a, method, status, reply))
                return api_wrong_address(a, method, path, status);
        if (is_failure(status)) {
                _cleanup_free_ char *reason = reply ? json_text(reply) : NULL;

                log_error("Placement refuses %s %s with status %d: %s", method, path, status,
                          reason ?: "no reason given.");
        }
        if (ret_reply)
                *ret_reply = TAKE_PTR(reply);
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

char *api_escape(Api *a, const char *text) {
        char *escaped = curl_easy_escape(a->curl, text, 0), *copy = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
        return copy;
}

unsigned api_requests(const Api *a) {
        return a->requests;
}
