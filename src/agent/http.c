/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "agent/http.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include "agent/daemon.h"
#include "model/json-parse.h"
#include "model/json-value.h"
#include "util/log.h"
#include "util/strings.h"

/* The size limit of a reply. The Placement tree of a node with 4096 devices has less than 4 MiB. */
#define REPLY_MAX       ((size_t) 16 << 20)
/* The limit of what the values of a reply cost (model/json-parse.h). The values of that Placement tree cost 600,000. */
#define REPLY_COST_MAX  ((size_t) 2 << 20)
#define POLL_MS         1000
#define RETRY_MIN_USEC  UINT64_C(1000000)
#define RETRY_MAX_USEC  (60 * RETRY_MIN_USEC)
#define CONNECTIONS_MAX 4L /* connections to one server at a time; further requests wait for one of them */

struct Http {
        const HttpTls *tls;
        sd_event *event; /* NULL: for http_send(), which blocks */
        sd_event_source *timer;
        CURLM *multi;
        HttpCall *calls; /* the running requests */
        unsigned requests;
};

struct HttpCall {
        Http *http;
        HttpCall *next;
        CURL *easy;
        struct curl_slist *headers;
        char *method, *url, *reply_header;
        char *data; /* the body of the reply so far */
        size_t size, capacity;
        int failure;                 /* 0, or why on_data() refuses the body: -E2BIG or -ENOMEM */
        char error[CURL_ERROR_SIZE]; /* libcurl's message about a failure */
        http_done_t done;
        void *userdata;
};

void http_reply_done(HttpReply *r) {
        json_object_put(r->document);
        free(r->header);
        *r = (HttpReply) { 0 };
}

static void unlink_call(HttpCall *c) {
        for (HttpCall **at = &c->http->calls; *at; at = &(*at)->next)
                if (*at == c) {
                        *at = c->next;
                        (void) curl_multi_remove_handle(c->http->multi, c->easy);
                        return;
                }
}

HttpCall *http_cancel(HttpCall *c) {
        if (!c)
                return NULL;
        unlink_call(c);
        curl_easy_cleanup(c->easy);
        curl_slist_free_all(c->headers);
        free(c->method);
        free(c->url);
        free(c->reply_header);
        free(c->data);
        free(c);
        return NULL;
}

DEFINE_CLEANUP(HttpCall *, http_cancel)

/* Requests. */

static size_t on_data(char *data, size_t size, size_t n, void *userdata) {
        HttpCall *c = userdata;

        if (c->size + n > REPLY_MAX) {
                c->failure = -E2BIG;
                return 0;
        }
        if (c->size + n >= c->capacity) {
                size_t capacity = MAX(2 * c->capacity, c->size + n + 1);
                char *larger = realloc(c->data, capacity);

                if (!larger) {
                        c->failure = -ENOMEM;
                        return 0;
                }
                c->data = larger;
                c->capacity = capacity;
        }
        memcpy(c->data + c->size, data, n);
        c->size += n;
        c->data[c->size] = '\0';
        return n;
}

static int add_header(HttpCall *c, const char *line) {
        struct curl_slist *longer = curl_slist_append(c->headers, line);

        if (!longer)
                return -ENOMEM;
        c->headers = longer;
        return 0;
}

static int add_headers(HttpCall *c, const HttpRequest *q) {
        _cleanup_free_ char *type = string_format("Content-Type: %s", q->content_type ?: "application/json");
        int r = type ? add_header(c, type) : -ENOMEM;

        if (r < 0)
                return r;
        r = add_header(c, "Accept: application/json");
        if (r < 0)
                return r;
        for (const char *const *line = q->headers; line && *line; line++) {
                r = add_header(c, *line);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Sets a PEM from its text, or if that is NULL, from its file. libcurl is told not to copy the text: HttpTls outlives
 * the call. Returns 0, -ENOMEM or -EOPNOTSUPP. */
static int set_pem(CURL *easy, CURLoption file_option, const char *file, CURLoption text_option, const char *text) {
        struct curl_blob blob = { .data = (void *) (uintptr_t) text, .len = text ? strlen(text) : 0 };
        CURLcode code = text   ? curl_easy_setopt(easy, text_option, &blob)
                        : file ? curl_easy_setopt(easy, file_option, file)
                               : CURLE_OK;

        return code == CURLE_OK ? 0 : code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EOPNOTSUPP;
}

static int set_tls(CURL *easy, const HttpTls *t) {
        int r;

        (void) curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
        (void) curl_easy_setopt(easy, CURLOPT_MAXLIFETIME_CONN, HTTP_AGE_SEC);
        r = set_pem(easy, CURLOPT_CAINFO, t->ca_file, CURLOPT_CAINFO_BLOB, t->ca_text);
        if (r < 0)
                return r;
        r = set_pem(easy, CURLOPT_SSLCERT, t->certificate_file, CURLOPT_SSLCERT_BLOB, t->certificate_text);
        if (r < 0)
                return r;
        return set_pem(easy, CURLOPT_SSLKEY, t->key_file, CURLOPT_SSLKEY_BLOB, t->key_text);
}

static int set_options(HttpCall *c, const HttpRequest *q) {
        _cleanup_free_ char *body = q->body ? json_text(q->body) : NULL;

        if (q->body && !body)
                return -ENOMEM;
        (void) curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c);
        (void) curl_easy_setopt(c->easy, CURLOPT_ERRORBUFFER, c->error);
        (void) curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR, "http,https");
        (void) curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
        /* Do not wait at the end of a request for a name server that does not answer. */
        (void) curl_easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
        (void) curl_easy_setopt(c->easy, CURLOPT_TIMEOUT, q->timeout_sec ?: HTTP_TIMEOUT_SEC);
        (void) curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers);
        (void) curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_data);
        (void) curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c);
        /* COPYPOSTFIELDS makes the request a POST with this body; CUSTOMREQUEST only changes the method that is sent.
         * So each request that is neither GET nor DELETE sends a body, even if an empty one. */
        if ((q->body || (!streq(q->method, "GET") && !streq(q->method, "DELETE"))) &&
            curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, body ?: "") != CURLE_OK)
                return -ENOMEM;
        if (curl_easy_setopt(c->easy, CURLOPT_URL, q->url) != CURLE_OK ||
            curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, q->method) != CURLE_OK)
                return -ENOMEM;
        return set_tls(c->easy, c->http->tls);
}

static int start_call(Http *h, const HttpRequest *q, http_done_t done, void *userdata, HttpCall **ret) {
        _cleanup_(cleanup_http_cancel) HttpCall *c = calloc(1, sizeof(*c));
        int r = -ENOMEM;

        if (!c)
                return log_error_errno(r, "Failed to build the request to %s: %m", q->url);
        c->http = h;
        c->done = done;
        c->userdata = userdata;
        c->easy = curl_easy_init();
        if (c->easy && string_copy(&c->method, q->method) >= 0 && string_copy(&c->url, q->url) >= 0 &&
            string_copy(&c->reply_header, q->reply_header) >= 0)
                r = add_headers(c, q);
        if (r >= 0)
                r = set_options(c, q);
        if (r < 0)
                return log_error_errno(r, "Failed to build the request to %s: %m", q->url);
        c->next = h->calls;
        h->calls = c;
        h->requests++;
        if (curl_multi_add_handle(h->multi, c->easy) != CURLM_OK)
                return log_error_errno(-ENOMEM, "Failed to build the request to %s: %m", q->url);
        *ret = TAKE_PTR(c);
        return 0;
}

/* Replies. */

static int read_reply(HttpCall *c, CURLcode code, HttpReply *ret) {
        struct curl_header *header;
        long status = 0;
        int r = c->failure;

        if (code == CURLE_OK && c->size > 0)
                r = json_parse_within(c->data, c->size, REPLY_COST_MAX, &ret->document);
        if (r == -E2BIG)
                return log_warning_errno(-EHOSTUNREACH, "The reply of %s is too long.", c->url);
        if (r == -ENOMEM)
                return log_error_errno(r, "Failed to read the reply of %s: %m", c->url);
        if (code != CURLE_OK)
                return log_warning_errno(-EHOSTUNREACH, "%s does not answer: %s.", c->url,
                                         *c->error ? QUOTABLE(c->error) : curl_easy_strerror(code));
        (void) curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
        log_debug("%s %s: %ld", c->method, c->url, status);
        ret->has_body = c->size > 0;
        if (c->reply_header && curl_easy_header(c->easy, c->reply_header, 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
            string_copy(&ret->header, header->value) < 0)
                return log_error_errno(-ENOMEM, "Failed to read the reply of %s: %m", c->url);
        return (int) status;
}

static void end_call(HttpCall *c, CURLcode code) {
        HttpReply reply = { 0 };
        http_done_t done = c->done;
        void *userdata = c->userdata;

        reply.status = read_reply(c, code, &reply);
        (void) http_cancel(c);
        done(&reply, userdata);
        http_reply_done(&reply);
}

static void end_calls(Http *h) {
        const CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(h->multi, &left))) {
                CURLcode code = m->data.result;
                HttpCall *c = NULL;

                (void) curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **) &c);
                end_call(c, code);
        }
}

/* Requests in the event loop. libcurl names the events to wait for, and is called when they occur. */

static void on_ready(Http *h, curl_socket_t fd, int events) {
        int running;

        (void) curl_multi_socket_action(h->multi, fd, events, &running);
        end_calls(h);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        int ready = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                    (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);

        on_ready(userdata, fd, ready);
        return 0;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        on_ready(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

static int want_timer(CURLM *multi, long ms, void *userdata) {
        const Http *h = userdata;

        int r = ms >= 0 ? agent_set_timer(h->timer, (uint64_t) ms * 1000)
                        : sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);

        return r < 0 ? -1 : 0;
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *assigned) {
        const Http *h = userdata;
        sd_event_source *source = assigned;
        uint32_t events = (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                (void) curl_multi_assign(h->multi, fd, NULL);
                return 0;
        }
        if (source)
                return sd_event_source_set_io_events(source, events) < 0 ? -1 : 0;
        if (sd_event_add_io(h->event, &source, fd, events, on_io, userdata) < 0)
                return -1;
        (void) curl_multi_assign(h->multi, fd, source);
        return 0;
}

static int add_to_loop(Http *h) {
        int r = agent_add_timer(h->event, &h->timer, on_timer, h);

        if (r < 0)
                return r;
        (void) curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
        (void) curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
        (void) curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, want_timer);
        (void) curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
        return 0;
}

/* The functions of agent/http.h. */

Http *http_free(Http *h) {
        if (!h)
                return NULL;
        while (h->calls)
                (void) http_cancel(h->calls);
        (void) curl_multi_cleanup(h->multi);
        sd_event_source_disable_unref(h->timer);
        sd_event_unref(h->event);
        free(h);
        return NULL;
}

int http_new(sd_event *event, const HttpTls *tls, Http **ret) {
        _cleanup_(cleanup_http_free) Http *h = calloc(1, sizeof(*h));
        int r = 0;

        if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || !(h->multi = curl_multi_init()))
                return log_error_errno(-ENOMEM, "Failed to prepare HTTP: %m");
        (void) curl_multi_setopt(h->multi, CURLMOPT_MAX_HOST_CONNECTIONS, CONNECTIONS_MAX);
        h->tls = tls;
        h->event = event ? sd_event_ref(event) : NULL;
        if (event)
                r = add_to_loop(h);
        if (r < 0)
                return log_error_errno(r, "Failed to prepare HTTP: %m");
        *ret = TAKE_PTR(h);
        return 0;
}

static void take_reply(HttpReply *reply, void *userdata) {
        HttpReply *ret = userdata;

        *ret = *reply;
        *reply = (HttpReply) { 0 };
}

int http_send(Http *h, const HttpRequest *q, HttpReply *ret) {
        int running = 1, r;
        HttpCall *c;

        assert(!h->event);
        *ret = (HttpReply) { 0 };
        r = start_call(h, q, take_reply, ret, &c);
        while (r >= 0 && running > 0) {
                (void) curl_multi_perform(h->multi, &running);
                if (running > 0)
                        (void) curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
        }
        if (r < 0)
                return ret->status = r;
        end_calls(h);
        return ret->status;
}

int http_start(Http *h, const HttpRequest *q, http_done_t done, void *userdata, HttpCall **ret_call) {
        HttpCall *c;
        int r;

        assert(h->event);
        r = start_call(h, q, done, userdata, &c);
        if (r >= 0 && ret_call)
                *ret_call = c;
        return r;
}

char *http_escape(const char *text) {
        char *escaped = curl_easy_escape(NULL, text, 0), *copy = escaped ? strdup(escaped) : NULL;

        curl_free(escaped);
        return copy;
}

unsigned http_requests(const Http *h) {
        return h->requests;
}

uint64_t random_usec(uint64_t max) {
        uint64_t n = 0;

        if (getrandom(&n, sizeof(n), GRND_NONBLOCK) < 0)
                return 0;
        return n % max;
}

uint64_t retry_usec(uint64_t *delay) {
        *delay = *delay == 0 ? RETRY_MIN_USEC : MIN(*delay * 2, RETRY_MAX_USEC);
        return *delay / 2 + random_usec(*delay);
}
