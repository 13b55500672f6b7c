/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The file of an allocation: a written file is read back; any other file is refused as a whole. */

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <json-c/printbuf.h>
#include <limits.h>
#include <stdio.h>

#include "unit.h"

#include "bus/json.h"
#include "ledger/ledger-file.h"
#include "nodefixture.h"
#include "util/fileio.h"

static unsigned appends_left = UINT_MAX; /* json-c's appends to a full buffer that succeed before one fails */

/* Replaces the function of json-c for the program under test. */
int printbuf_memappend(struct printbuf *p, const char *buf, int size) {
        static int (*append)(struct printbuf *p, const char *buf, int size);

        if (!append)
                append = dlsym(RTLD_NEXT, "printbuf_memappend");
        return appends_left-- == 0 ? -1 : append(p, buf, size);
}

static AllocationDevice *add(Allocation *a, const char *address, DeviceRole role, const char *slot, const char *pool) {
        AllocationDevice *d = allocation_add_device(a, address_of(address), role);

        assert_non_null(d);
        assert_int_equal(string_copy(&d->slot, slot), 0);
        assert_int_equal(string_copy(&d->pool, pool), 0);
        return d;
}

static VfAttributes attributes_of(const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v = { 0 };

        assert_int_equal(vf_attributes_parse(text, &v, &problem), 0);
        return v;
}

/* An allocation in which no member has its default. */
static Allocation *make_full(void) {
        Allocation *a = allocation_new("vm7");
        AllocationDevice *d;

        assert_non_null(a);
        memcpy(a->id, "01234567-89ab-cdef-0123-456789abcdef", sizeof(a->id));
        a->owner = UINT32_MAX;
        a->forced = a->release_with_domain = a->had_domain = true;
        a->generation = INT64_MAX;
        a->state = ALLOCATION_FAILED;
        assert_int_equal(string_copy(&a->vfio_driver, "mlx5_vfio_pci"), 0);
        assert_int_equal(string_copy(&a->reason, "\"It\" did not\ncome back: \\ \x01 \xc3\xa4."), 0);
        assert_int_equal(string_copy(&a->tag, "job 7 \xc3\xa4"), 0);
        assert_int_equal(string_copy(&a->token, "\"1\""), 0);
        assert_int_equal(string_copy(&a->consumer, "22222222-0000-4000-8000-000000000001"), 0);
        d = add(a, "10000:82:00.0", DEVICE_ROLE_ASSIGNED, "gpu0", "gpu");
        d->phase = DEVICE_PHASE_DETACHING;
        d->vendor = 0xffff;
        d->device = 0x1234;
        d->subsystem_vendor = 0x8086;
        d->subsystem_device = 1;
        d->numa_node = 4;
        assert_int_equal(string_copy(&d->prior_driver, "nvidia"), 0);
        assert_int_equal(string_copy(&d->prior_override, "none"), 0);
        d->prior_runtime_pm = d->prior_d3cold = d->prior_persistence = true;
        assert_int_equal(string_copy(&d->prior_reset, "flr bus"), 0);
        assert_int_equal(string_copy(&d->path, "pci0000:80/0000:80:02.0/10000:82:00.0"), 0);
        d->serial = UINT64_C(0x0002c90300123456);
        assert_int_equal(guest_place_parse("0000:02:00.0 pci0000:fb/0000:fb:00.0/0000:fc:00.0", &d->guest), 0);
        d->lost = true;
        d->fatal = UINT32_MAX;
        d->has_fatal = true;
        (void) add(a, "10000:82:00.1", DEVICE_ROLE_COMPANION, "gpu0-1", NULL);
        d = add(a, "0000:83:00.2", DEVICE_ROLE_ASSIGNED, "ib-vf0", "ib-vf");
        d->is_vf = true;
        d->physfn = address_of("0000:83:00.0");
        d->vf_index = UINT16_MAX;
        d->attributes = attributes_of("mac=02:00:00:00:00:01 vlan=100 link=auto node-guid=02:00:00:00:00:00:00:01");
        d->generated = VF_ATTRIBUTE_BIT(VF_MAC) | VF_ATTRIBUTE_BIT(VF_LINK);
        d->baseline = attributes_of("mac=00:00:00:00:00:00 trust=off");
        d->has_baseline = true;
        assert_int_equal(string_copy(&d->vfio_driver, "mlx5_vfio_pci"), 0);
        d->vgpu_type = UINT32_MAX;
        d->vgpu_total = 4;
        (void) strcpy(d->mdev, "4b20d080-1b54-4048-85b3-a6a600008312");
        assert_int_equal(string_copy(&d->vgpu_name, "NVIDIA \"A\"-12C"), 0);
        (void) add(a, "0000:84:00.0", DEVICE_ROLE_HELD, NULL, "gpu");
        assert_int_equal(cpuset_parse("8-11,4095", &a->cpus), 0);
        a->pins = calloc(3, sizeof(Pin));
        assert_non_null(a->pins);
        a->pins[0] = (Pin) { 0, 8 };
        a->pins[1] = (Pin) { 1, 4095 };
        a->pins[2] = (Pin) { 4095, 10 };
        a->n_pins = 3;
        a->cells[0] = (Cell) { .node = 0, .memory = ALLOCATION_MEMORY_MAX };
        a->cells[1] = (Cell) { .node = 63, .memory = 4096 };
        cpuset_add(&a->cells[0].vcpus, 0);
        cpuset_add(&a->cells[1].vcpus, 1);
        a->n_cells = 2;
        a->page_size = GIB;
        a->topology = GUEST_TOPOLOGY_MIRROR;
        a->confidential = CONFIDENTIAL_SNP;
        a->spare_ports = CONFIG_SPARE_MAX;
        a->regions[0] = (Region) { .name = "mpi", .size = REGION_SIZE_MAX, .node = 63 };
        a->regions[1] = (Region) { .name = "halo.2", .size = GIB, .page_size = GIB };
        a->n_regions = 2;
        return a;
}

static LedgerFileResult parse(const char *text, size_t size, Allocation **ret) {
        _cleanup_free_ char *message = NULL,
                            *copy = malloc(size ?: 1); /* exactly the size, so that the sanitizer sees a read beyond */
        LedgerFileResult r;

        assert_non_null(copy);
        memcpy(copy, text, size);
        r = ledger_file_parse(copy, size, ret, &message);
        assert_int_equal(!message, r == LEDGER_FILE_OK);
        return r;
}

static LedgerFileResult parse_text(const char *text) {
        _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
        LedgerFileResult r = parse(text, strlen(text), &a);

        assert_int_equal(!a, r != LEDGER_FILE_OK);
        return r;
}

static void assert_same_attributes(const VfAttributes *a, const VfAttributes *b) {
        assert_int_equal(vf_attributes_differ(a, b), 0);
        assert_int_equal(vf_attributes_differ(b, a), 0);
}

static void assert_same_device(const AllocationDevice *x, const AllocationDevice *y) {
        assert_true(pci_address_equal(x->address, y->address));
        assert_int_equal(x->role, y->role);
        assert_true(streq_ptr(x->slot, y->slot) && streq_ptr(x->pool, y->pool) && streq_ptr(x->path, y->path));
        assert_true(streq_ptr(x->prior_driver, y->prior_driver) && streq_ptr(x->prior_override, y->prior_override));
        assert_true(streq_ptr(x->prior_reset, y->prior_reset));
        assert_true(x->prior_runtime_pm == y->prior_runtime_pm && x->prior_d3cold == y->prior_d3cold &&
                    x->prior_persistence == y->prior_persistence);
        assert_true(streq_ptr(x->vfio_driver, y->vfio_driver));
        assert_true(x->vgpu_type == y->vgpu_type && x->vgpu_total == y->vgpu_total);
        assert_true(streq_ptr(x->vgpu_name, y->vgpu_name) && streq(x->mdev, y->mdev));
        assert_int_equal(x->is_vf, y->is_vf);
        assert_int_equal(x->numa_node, y->numa_node);
        assert_true(guest_place_equal(&x->guest, &y->guest));
        assert_true(x->serial == y->serial && x->lost == y->lost);
        assert_true(x->fatal == y->fatal && x->has_fatal == y->has_fatal);
        assert_int_equal(x->vf_index, y->vf_index);
        assert_true(!x->is_vf || pci_address_equal(x->physfn, y->physfn));
        assert_same_attributes(&x->attributes, &y->attributes);
        assert_same_attributes(&x->baseline, &y->baseline);
        assert_int_equal(x->generated, y->generated);
        assert_int_equal(x->phase, y->phase);
        assert_int_equal(x->has_baseline, y->has_baseline);
        assert_true(x->vendor == y->vendor && x->device == y->device);
        assert_true(x->subsystem_vendor == y->subsystem_vendor && x->subsystem_device == y->subsystem_device);
}

static void assert_same_devices(const Allocation *a, const Allocation *b) {
        assert_int_equal(a->n_devices, b->n_devices);
        for (size_t i = 0; i < a->n_devices; i++)
                assert_same_device(&a->devices[i], &b->devices[i]);
}

static void assert_same(const Allocation *a, const Allocation *b) {
        assert_string_equal(a->name, b->name);
        assert_string_equal(a->id, b->id);
        assert_true(streq_ptr(a->reason, b->reason));
        assert_true(streq_ptr(a->vfio_driver, b->vfio_driver));
        assert_true(streq_ptr(a->tag, b->tag));
        assert_true(streq_ptr(a->token, b->token));
        assert_true(streq_ptr(a->consumer, b->consumer));
        assert_int_equal(a->hold, b->hold);
        assert_int_equal(a->lease_end, b->lease_end);
        assert_string_equal(a->lease_boot, b->lease_boot);
        assert_int_equal(a->owner, b->owner);
        assert_int_equal(a->forced, b->forced);
        assert_int_equal(a->release_with_domain, b->release_with_domain);
        assert_int_equal(a->had_domain, b->had_domain);
        assert_int_equal(a->generation, b->generation);
        assert_int_equal(a->state, b->state);
        assert_int_equal(a->page_size, b->page_size);
        assert_int_equal(a->topology, b->topology);
        assert_int_equal(a->confidential, b->confidential);
        assert_int_equal(a->spare_ports, b->spare_ports);
        assert_true(cpuset_equal(&a->cpus, &b->cpus));
        assert_same_devices(a, b);
        assert_int_equal(a->n_pins, b->n_pins);
        for (size_t i = 0; i < a->n_pins; i++)
                assert_true(a->pins[i].vcpu == b->pins[i].vcpu && a->pins[i].cpu == b->pins[i].cpu);
        assert_int_equal(a->n_cells, b->n_cells);
        for (size_t i = 0; i < a->n_cells; i++) {
                assert_int_equal(a->cells[i].node, b->cells[i].node);
                assert_int_equal(a->cells[i].memory, b->cells[i].memory);
                assert_true(cpuset_equal(&a->cells[i].vcpus, &b->cells[i].vcpus));
        }
        assert_int_equal(a->n_regions, b->n_regions);
        for (size_t i = 0; i < a->n_regions; i++)
                assert_memory_equal(&a->regions[i], &b->regions[i], sizeof(Region));
}

TEST(test_round_trip) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = ledger_file_format(a), *again = NULL;

        assert_non_null(text);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
        again = ledger_file_format(b);
        assert_string_equal(text, again);
}

/* Files of earlier releases. A non-ASCII letter is one letter in memory, and an escape in the written file. */
TEST(test_releases) {
        static const char *const patterns[] = { SRCDIR "/tests/state/*/allocations/*.json",
                                                SRCDIR "/tests/state/*/quarantine/*.json" };
        size_t n_letters = 0;
        glob_t files;

        assert_int_equal(glob(patterns[0], 0, NULL, &files), 0);
        assert_int_equal(glob(patterns[1], GLOB_APPEND, NULL, &files), 0);
        assert_int_equal(files.gl_pathc, 12);
        for (size_t i = 0; i < files.gl_pathc; i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = NULL, *b = NULL;
                _cleanup_free_ char *text = NULL, *written = NULL;
                size_t size;

                assert_int_equal(read_file_at(AT_FDCWD, files.gl_pathv[i], LEDGER_FILE_MAX, &text, &size), 0);
                if (parse(text, size, &a) != LEDGER_FILE_OK)
                        fail_msg("refused: %s", files.gl_pathv[i]);
                written = ledger_file_format(a);
                assert_true(text_is_ascii(written, strlen(written)));
                assert_int_equal(parse(written, strlen(written), &b), LEDGER_FILE_OK);
                assert_same(a, b);
                for (size_t j = 0; j < a->n_devices; j++)
                        n_letters += streq_ptr(a->devices[j].prior_override, "Pr\xc3\xbc"
                                                                             "fstand");
                n_letters += streq_ptr(a->tag, "J\xc3\xbcrgen");
        }
        globfree(&files);
        assert_int_equal(n_letters, 4);
}

/* Earlier releases accepted tags that text_is_clean() refuses. */
TEST(test_unclean_tag) {
        static const char tag[] = "a\xe2\x80\x8b\xe2\x80\xae\xc2\x85";
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = NULL;

        assert_false(text_is_clean(tag));
        assert_int_equal(string_copy(&a->tag, tag), 0);
        text = ledger_file_format(a);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_string_equal(b->tag, tag);
}

TEST(test_copy) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        const SharedRegion shared = { 0 };

        assert_int_equal(string_copy(&a->status.domain, "guest"), 0);
        a->shared[0] = &shared;
        b = allocation_copy(a);
        assert_non_null(b);
        assert_same(a, b);
        assert_string_equal(b->status.domain, "guest");
        assert_null(b->shared[0]);
}

/* A quarantined device keeps the facts that its later release needs. */
TEST(test_reduce) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;

        a->state = ALLOCATION_RELEASING;
        b = allocation_reduce(a, &a->devices[2], "lost");
        assert_non_null(b);
        assert_string_equal(b->name, a->name);
        assert_string_equal(b->id, a->id);
        assert_string_equal(b->vfio_driver, a->vfio_driver);
        assert_string_equal(b->reason, "lost");
        assert_int_equal(b->owner, a->owner);
        assert_int_equal(b->generation, a->generation);
        assert_int_equal(b->state, ALLOCATION_FAILED);
        assert_int_equal(b->n_cells + b->n_pins + b->n_regions, 0);
        assert_int_equal(b->n_devices, 1);
        assert_same_device(&a->devices[2], &b->devices[0]);
}

/* The smallest written values, which are next to omitted ones. */
TEST(test_round_trip_of_small_values) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = NULL;

        a->devices[2].vf_index = 0;
        a->devices[2].serial = 1;
        a->spare_ports = 1;
        a->n_regions = 1;
        text = ledger_file_format(a);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
}

TEST(test_round_trip_of_states_and_roles) {
        for (int s = 0; s < _ALLOCATION_STATE_MAX; s++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
                _cleanup_free_ char *text = NULL;

                a->state = (AllocationState) s;
                if (s == ALLOCATION_RESERVED) {
                        a->hold = ALLOCATION_HOLD_MAX;
                        a->lease_end = INT64_MAX;
                        strcpy(a->lease_boot, "0123456789abcdef0123456789abcdef");
                }
                text = ledger_file_format(a);
                assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
                assert_same(a, b);
        }
}

TEST(test_nothing_but_a_name) {
        _cleanup_(cleanup_allocation_free) Allocation *a = allocation_new("x"), *b = NULL;
        _cleanup_free_ char *text = NULL;

        memset(a->id, 'a', 36);
        a->state = ALLOCATION_READY;
        assert_int_equal(string_copy(&a->vfio_driver, "vfio-pci"), 0);
        text = ledger_file_format(a);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
}

/* The largest request that request.h permits, with cards of eight functions. */
TEST(test_the_largest_fits) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = NULL;

        while (a->n_devices < (size_t) REQUEST_DEVICES_MAX) {
                AllocationDevice *d = add(a, "0000:84:00.1", DEVICE_ROLE_ASSIGNED, "accelerator12", "accelerator");

                d->address.bus = (uint8_t) a->n_devices;
                assert_int_equal(string_copy(&d->prior_driver, "nvidia"), 0);
                assert_int_equal(
                        string_copy(&d->path,
                                    "pci0000:80/0000:80:02.0/0000:81:00.0/0000:82:04.0/0000:83:00.0/0000:84:00.1"),
                        0);
                assert_int_equal(guest_place_parse("0000:84:00.1 pci0000:80/0000:80:02.0/0000:81:00.0/0000:82:04.0/"
                                                   "0000:83:00.0/0000:84:00.1",
                                                   &d->guest),
                                 0);
        }
        free(a->pins);
        a->pins = calloc(ALLOCATION_CPUS_MAX, sizeof(Pin));
        assert_non_null(a->pins);
        for (a->n_pins = 0; a->n_pins < ALLOCATION_CPUS_MAX; a->n_pins++) {
                cpuset_add(&a->cpus, (unsigned) a->n_pins);
                a->pins[a->n_pins] = (Pin) { (unsigned) a->n_pins, (unsigned) a->n_pins };
        }
        text = ledger_file_format(a);
        assert_in_range(strlen(text), 1, LEDGER_FILE_MAX);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
}

/* Out of memory, no text is made, rather than an incomplete one. */
TEST(test_out_of_memory) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        bool failed = true;

        for (unsigned n = 0; failed; n++) {
                _cleanup_(cleanup_allocation_free) Allocation *b = NULL;
                _cleanup_free_ char *text = NULL;

                appends_left = n;
                text = ledger_file_format(a);
                failed = appends_left == UINT_MAX;
                appends_left = UINT_MAX;
                assert_int_equal(!text, failed);
                if (text)
                        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
                assert_true(failed || n > 1);
        }
}

TEST(test_truncated_at_every_byte) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        _cleanup_free_ char *text = ledger_file_format(a);
        size_t size = strlen(text);

        for (size_t n = 0; n < size; n++) {
                Allocation *b = NULL;

                if (parse(text, n, &b) != LEDGER_FILE_BROKEN)
                        fail_msg("%zu of %zu bytes are taken for a whole file", n, size);
                assert_null(b);
        }
}

/* After a change of any byte: no crash, and whatever is read can be written. */
TEST(test_every_byte_damaged) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        _cleanup_free_ char *text = ledger_file_format(a);
        static const char junk[] = "\"{}[],:0-9\\ \xff\x01";

        for (size_t i = 0; text[i]; i++) {
                char was = text[i];

                for (const char *c = junk; *c; c++) {
                        _cleanup_(cleanup_allocation_free) Allocation *b = NULL;

                        text[i] = *c;
                        if (parse(text, strlen(text), &b) == LEDGER_FILE_OK) {
                                _cleanup_free_ char *again = ledger_file_format(b);

                                assert_non_null(again);
                        }
                }
                text[i] = was;
        }
}

TEST(test_trailing_text) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        _cleanup_free_ char *text = ledger_file_format(a), *longer = NULL;

        assert_int_equal(string_replace(&longer, "%s\n", text), 0);
        assert_int_equal(parse_text(longer), LEDGER_FILE_OK);
        assert_int_equal(string_replace(&longer, "%s{}", text), 0);
        assert_int_equal(parse_text(longer), LEDGER_FILE_BROKEN);
}

/* Parses the text with the first occurrence of "what" replaced. */
static LedgerFileResult parse_changed(const char *what, const char *by) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        _cleanup_free_ char *text = ledger_file_format(a), *changed = NULL;
        char *at = strstr(text, what);

        if (!at)
                fail_msg("no %s in %s", what, text);
        assert_int_equal(string_replace(&changed, "%.*s%s%s", (int) (at - text), text, by, at + strlen(what)), 0);
        return parse_text(changed);
}

TEST(test_mdev) {
        const char member[] = "\"mdev\": \"4b20d080-1b54-4048-85b3-a6a600008312\"";

        assert_int_equal(parse_changed(member, "\"other\": 1"), LEDGER_FILE_OK);
        assert_int_equal(parse_changed(member, "\"mdev\": \"4b20d080-1b54-4048-85b3-a6a6/00008312\""),
                         LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed(member, "\"mdev\": \"\""), LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed(member, "\"mdev\": null"), LEDGER_FILE_BROKEN);
}

TEST(test_vf_index) {
        /* The first device is not a VF. */
        assert_int_equal(parse_changed("\"role\": \"assigned\"", "\"role\": \"assigned\", \"vf_index\": 0"),
                         LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed("\"vf_index\": 65535", "\"vf_index\": 65534"), LEDGER_FILE_OK);
        assert_int_equal(parse_changed("\"vf_index\": 65535", "\"vf_index\": 65536"), LEDGER_FILE_BROKEN);
}

/* A CPU is pinned once, and belongs to the allocation. */
TEST(test_pins) {
        static const struct {
                Pin second;
                LedgerFileResult expected;
        } cases[] = {
                { { 1, 4095 }, LEDGER_FILE_OK },     { { 1, 8 }, LEDGER_FILE_BROKEN },
                { { 0, 4095 }, LEDGER_FILE_BROKEN }, { { 1, 7 }, LEDGER_FILE_BROKEN },
                { { 4095, 9 }, LEDGER_FILE_BROKEN },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
                _cleanup_free_ char *text = NULL;

                a->pins[1] = cases[i].second;
                text = ledger_file_format(a);
                assert_int_equal(parse_text(text), cases[i].expected);
        }
}

/* A daemon without slots must not read an allocation with slots, which it would give away again. */
TEST(test_slots) {
        static const char *const broken[][2] = {
                { "\"name\": \"remote\"", "\"name\": \"Remote\"" },
                { "rcuda", "juice" },
                { "SERVER=%h:%p", "SERVER" },
                { "gpu1:9999", "gpu1" },
                { "gpu1:9999", "gpu2:9999" },
                { "\"slots\": 2", "\"slots\": 0" },
                { "\"slots\": 2", "\"slots\": 1025" },
                { "\"slots\": 2", "\"slots\": \"2\"" },
                { "\"services\": [", "\"services\": [ 7," },
        };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; i < a->n_devices; i++)
                a->devices[i].mdev[0] = '\0';
        assert_int_equal(allocation_add_service(a, &(AllocationService) { "remote", REMOTE_KIND_RCUDA,
                                                                          "A=b SERVER=%h:%p", "gpu1:9999", 2 }),
                         0);
        assert_int_equal(allocation_add_service(a, &(AllocationService) { "remote", REMOTE_KIND_RCUDA, "", "gpu2:9999",
                                                                          ENDPOINT_SLOTS_MAX }),
                         0);
        text = ledger_file_format(a);
        assert_non_null(text);
        assert_non_null(strstr(text, "\"version\": 5"));
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
        assert_int_equal(b->n_services, 2);
        for (size_t i = 0; i < 2; i++)
                assert_memory_equal(&a->services[i], &b->services[i], sizeof(*a->services));
        for (size_t i = 0; i < ELEMENTSOF(broken); i++) {
                const char *at = strstr(text, broken[i][0]);
                _cleanup_free_ char *changed = NULL;

                assert_non_null(at);
                changed = string_format("%.*s%s%s", (int) (at - text), text, broken[i][1], at + strlen(broken[i][0]));
                if (parse_text(changed) != LEDGER_FILE_BROKEN)
                        fail_msg("'%s' instead of '%s' is read", broken[i][1], broken[i][0]);
        }
}

static int version_written(const Allocation *a) {
        static const char key[] = "\"version\": ";
        _cleanup_free_ char *text = ledger_file_format(a);
        const char *at = text ? strstr(text, key) : NULL;

        assert_non_null(at);
        return at[strlen(key)] - '0';
}

TEST(test_versions) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *plain = allocation_new("plain"), *b = NULL;
        AllocationDevice *d = &a->devices[2];
        _cleanup_free_ char *text = NULL;

        (void) add(plain, "0000:82:00.0", DEVICE_ROLE_ASSIGNED, "gpu0", "gpu");
        plain->state = ALLOCATION_READY;

        /* An older daemon refuses new files, and this one reads old files. */
        assert_int_equal(LEDGER_FILE_VERSION, 5);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 1"), LEDGER_FILE_OK);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 2"), LEDGER_FILE_OK);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 6"), LEDGER_FILE_UNKNOWN_VERSION);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 0"), LEDGER_FILE_UNKNOWN_VERSION);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 2147483647"), LEDGER_FILE_UNKNOWN_VERSION);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": \"2\""), LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": 2.0"), LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed("\"version\": 5", "\"version\": -1"), LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed("\"version\": 5", "\"other\": 2"), LEDGER_FILE_BROKEN);
        /* 0.2 reads an allocation without features of 0.3. */
        assert_int_equal(version_written(plain), 2);
        assert_int_equal(string_copy(&plain->tag, "t"), 0);
        assert_int_equal(version_written(plain), 3);
        free(TAKE_PTR(plain->tag));
        assert_int_equal(string_copy(&plain->token, "t"), 0);
        assert_int_equal(version_written(plain), 3);
        free(TAKE_PTR(plain->token));
        assert_int_equal(string_copy(&plain->consumer, "22222222-0000-4000-8000-000000000001"), 0);
        assert_int_equal(version_written(plain), 3);
        free(TAKE_PTR(plain->consumer));
        assert_int_equal(guest_place_parse("0000:02:00.0", &plain->devices[0].guest), 0);
        assert_int_equal(version_written(plain), 2);
        plain->partition = 0;
        assert_int_equal(version_written(plain), 3);
        plain->partition = -1;
        plain->state = ALLOCATION_RESERVED;
        assert_int_equal(version_written(plain), 3);
        plain->state = ALLOCATION_READY;
        plain->devices[0].phase = DEVICE_PHASE_DETACHING;
        assert_int_equal(version_written(plain), 3);
        plain->devices[0].phase = DEVICE_PHASE_SETTLED;
        plain->devices[0].vgpu_type = 1;
        assert_int_equal(version_written(plain), 3);
        plain->devices[0].address.instance = 2;
        assert_int_equal(version_written(plain), 4);
        /* 0.3 would not restore these attributes. */
        plain->devices[0].prior_runtime_pm = true;
        assert_int_equal(version_written(plain), 5);
        plain->devices[0].prior_runtime_pm = false;
        plain->devices[0].prior_d3cold = true;
        assert_int_equal(version_written(plain), 5);
        plain->devices[0].prior_d3cold = false;
        plain->devices[0].prior_persistence = true;
        assert_int_equal(version_written(plain), 5);
        plain->devices[0].prior_persistence = false;
        assert_int_equal(string_copy(&plain->devices[0].prior_reset, "flr bus"), 0);
        assert_int_equal(version_written(plain), 5);
        assert_int_equal(string_copy(&plain->devices[0].prior_reset, NULL), 0);
        assert_int_equal(version_written(plain), 4);
        plain->confidential = CONFIDENTIAL_TDX;
        assert_int_equal(version_written(plain), 5);
        plain->confidential = CONFIDENTIAL_NONE;
        assert_int_equal(version_written(plain), 4);
        plain->n_cells = 1;
        plain->cells[0].has_memory_node = true;
        assert_int_equal(version_written(plain), 5);
        /* No older version reads an address with an instance. */
        (void) strcpy(d->mdev, "4b20d080-1b54-4048-85b3-a6a602008300");
        d->address.instance = 2;
        d->physfn = pci_address_function(d->address);
        text = ledger_file_format(a);
        assert_non_null(text);
        assert_non_null(strstr(text, "\"version\": 5"));
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_same(a, b);
        /* A slot belongs to its GPU. */
        d->physfn.function = 1;
        free(text);
        text = ledger_file_format(a);
        assert_int_equal(parse_text(text), LEDGER_FILE_BROKEN);
        /* A newer version may have any members. */
        assert_int_equal(parse_text("{ \"version\": 7 }"), LEDGER_FILE_UNKNOWN_VERSION);
}

TEST(test_broken_members) {
        static const char *const changes[][2] = {
                { "\"name\": \"vm7\"", "\"name\": \"../vm7\"" },
                { "\"name\": \"vm7\"", "\"name\": 7" },
                { "\"name\": \"vm7\"", "\"name\": null" },
                { "\"name\": \"vm7\"", "\"name\": \"vm\\u0000\"" },
                { "\"id\": \"0", "\"id\": \"00" },
                { "\"state\": \"failed\"", "\"state\": \"gone\"" },
                { "\"state\": \"failed\"", "\"state\": null" },
                { "\"owner\": 4294967295", "\"owner\": 4294967296" },
                { "\"owner\": 4294967295", "\"owner\": -1" },
                { "\"forced\": true", "\"forced\": \"no\"" },
                { "\"guest\": \"0000:02:00.0 ", "\"guest\": \"02:00.0 " },
                { "\"guest\": \"0000:02:00.0 ", "\"guest\": 7, \"other\": \"" },
                { "\"guest\": \"0000:02:00.0 pci", "\"guest\": \"0000:02:00.0 " },
                { "\"generation\": 9223372036854775807", "\"generation\": 9223372036854775808" },
                { "\"generation\": 9223372036854775807", "\"generation\": 99999999999999999999999" },
                { "\"generation\": 9223372036854775807", "\"generation\": -99999999999999999999999" },
                { "\"generation\": 9223372036854775807", "\"generation\": 1e3" },
                { "\"page_size\": 1073741824", "\"page_size\": 1125899906842625" },
                { "\"topology\": \"mirror\"", "\"topology\": \"ring\"" },
                { "\"topology\": \"mirror\"", "\"topology\": 1" },
                { "\"spare_ports\": 8", "\"spare_ports\": 9" },
                { "\"cpus\": \"8-11,4095\"", "\"cpus\": \"8-11,4096\"" },
                { "\"cpus\": \"8-11,4095\"", "\"cpus\": \"8-10,4094\"" }, /* the pins' CPUs are missing */
                { "\"cpus\": \"8-11,4095\"", "\"cpus\": [8]" },
                { "\"address\": \"10000:82:00.0\"", "\"address\": \"82:00.0\"" },
                { "\"address\": \"10000:82:00.0\"", "\"address\": null" },
                { "\"role\": \"assigned\"", "\"role\": \"owned\"" },
                { "\"slot\": \"gpu0\"", "\"slot\": null" },
                { "\"numa_node\"", "\"no_node\"" },
                { "\"vendor\": 65535", "\"vendor\": 65536" },
                { "\"vendor\": 65535", "\"vendor\": \"ffff\"" },
                { "\"physical_function\": \"0000:83:00.0\"", "\"physical_function\": true" },
                { "\"memory\": 1125899906842624", "\"memory\": 1125899906842625" },
                { "\"node\": 63", "\"node\": -1" },
                { "\"node\": 63", "\"node\": 2147483648" },
                { "\"devices\": [", "\"devices\": [ 7," },
                { "\"devices\": [", "\"devices\": [ null," },
                { "\"pins\": [", "\"pins\": [ 7," },
                { "\"pins\": [", "\"pins\": [ [ 1 ]," },
                { "[0, 8]", "[0, 8, 9]" },
                { "\"pins\": [", "\"pins\": [ [ 1, 2, 3 ]," },
                { "\"pins\": [", "\"pins\": [ [ 4096, 8 ]," },
                { "\"pins\": [", "\"pins\": {}, \"pins2\": [" },
                { "\"cells\": [", "\"cells\": [ {}," },
                { "\"reason\":", "\"season\":" },
                { "\"attributes\": \"mac=02", "\"attributes\": \"mac=2" },
                { "\"attributes\": \"mac=02", "\"attributes\": 7, \"old\": \"mac=02" },
                { "\"generated\": \"mac=02", "\"generated\": \"mac=06" }, /* not an attribute of the device */
                { "\"generated\": \"", "\"generated\": \"trust=on " },
                { "\"baseline\": \"", "\"baseline\": \"colour=red " },
        };

        for (size_t i = 0; i < ELEMENTSOF(changes); i++)
                if (parse_changed(changes[i][0], changes[i][1]) != LEDGER_FILE_BROKEN)
                        fail_msg("%s is taken", changes[i][1]);
}

/* A file from before attributes, and one of a VF whose attributes were not read yet. */
TEST(test_no_attributes) {
        static const char *const texts[][2] = {
                { "\"attributes\":", "\"others\":" },
                { "\"baseline\": \"mac=00:00:00:00:00:00 trust=off\"", "\"baseline\": null" },
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
                _cleanup_free_ char *text = NULL, *changed = NULL;
                char *at;

                a->devices[2].generated = 0;
                text = ledger_file_format(a);
                at = strstr(text, texts[i][0]);
                assert_non_null(at);
                assert_int_equal(string_replace(&changed, "%.*s%s%s", (int) (at - text), text, texts[i][1],
                                                at + strlen(texts[i][0])),
                                 0);
                assert_int_equal(parse(changed, strlen(changed), &b), LEDGER_FILE_OK);
                assert_int_equal(b->devices[2].attributes.set, i == 0 ? 0 : a->devices[2].attributes.set);
                assert_int_equal(b->devices[2].has_baseline, i == 0);
        }
}

/* Attributes that the PF does not support were dropped; generated has the others. */
TEST(test_generated_and_left_out) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full(), *b = NULL;
        _cleanup_free_ char *text = NULL;

        vf_attributes_keep(&a->devices[2].attributes, ~VF_ATTRIBUTE_BIT(VF_LINK));
        text = ledger_file_format(a);
        assert_int_equal(parse(text, strlen(text), &b), LEDGER_FILE_OK);
        assert_int_equal(b->devices[2].generated, VF_ATTRIBUTE_BIT(VF_MAC));
}

/* Unknown members are ignored: a newer program may add one without a new version, and a downgrade stays possible. */
TEST(test_extra_members_are_passed_over) {
        assert_int_equal(parse_changed("\"name\":", "\"colour\": { \"red\": [] }, \"name\":"), LEDGER_FILE_OK);
        assert_int_equal(parse_changed("\"role\":", "\"colour\": 7, \"role\":"), LEDGER_FILE_OK);
}

/* A CPU or vCPU that is pinned twice would be promised twice. */
TEST(test_pins_are_unique) {
        assert_int_equal(parse_changed("\"pins\": [", "\"pins\": [ [ 0, 9 ],"), LEDGER_FILE_BROKEN);
        assert_int_equal(parse_changed("\"pins\": [", "\"pins\": [ [ 7, 8 ],"), LEDGER_FILE_BROKEN);
}

TEST(test_not_an_object) {
        static const char *const texts[] = {
                "", " ", "[]", "null", "7", "\"version\"", "{", "{}", "{\"version\":1}", "not JSON", "{'version':1}"
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                assert_int_equal(parse_text(texts[i]), LEDGER_FILE_BROKEN);
}

TEST(test_too_long_and_too_deep) {
        _cleanup_(cleanup_allocation_free) Allocation *a = make_full();
        _cleanup_free_ char *text = ledger_file_format(a), *longer = malloc(LEDGER_FILE_MAX + 2);
        size_t size = strlen(text);

        assert_non_null(longer);
        memcpy(longer, text, size);
        memset(longer + size, ' ', LEDGER_FILE_MAX + 1 - size);
        longer[LEDGER_FILE_MAX + 1] = '\0';
        assert_int_equal(parse_text(longer), LEDGER_FILE_BROKEN);
        longer[LEDGER_FILE_MAX] = '\0';
        assert_int_equal(parse_text(longer), LEDGER_FILE_OK);
        memset(longer, '[', 10000);
        longer[10000] = '\0';
        assert_int_equal(parse_text(longer), LEDGER_FILE_BROKEN);
}
