/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Lists of steps: their order, and that an undo restores the former state. */

#include <errno.h>
#include <stdio.h>

#include "unit.h"

#include "nodefixture.h"
#include "sentences.h"

#define VFIO    "vfio-pci"
#define DEVICES 3U

/* The state of one device that the steps of this file change. */
typedef struct Fact {
        const char *driver, *override;
} Fact;

static PciAddress device_address(unsigned i) {
        return (PciAddress) { .bus = 1, .slot = (uint8_t) i };
}

static Allocation *make_allocation(const Fact *prior, unsigned n) {
        Allocation *a = allocation_new("vm");

        assert_non_null(a);
        assert_int_equal(string_copy(&a->vfio_driver, VFIO), 0);
        for (unsigned i = 0; i < n; i++) {
                AllocationDevice *d = allocation_add_device(a, device_address(i), DEVICE_ROLE_ASSIGNED);

                assert_non_null(d);
                assert_int_equal(string_copy(&d->prior_driver, prior[i].driver), 0);
                assert_int_equal(string_copy(&d->prior_override, prior[i].override), 0);
        }
        return a;
}

static Inventory *make_inventory(unsigned n) {
        Inventory *inv = inventory_new();

        assert_non_null(inv);
        for (unsigned i = 0; i < n; i++)
                assert_non_null(inventory_add_device(inv, device_address(i)));
        assert_int_equal(inventory_finish(inv), 0);
        return inv;
}

static void set_inventory(Inventory *inv, const Fact *facts) {
        for (size_t i = 0; i < inv->n_devices; i++) {
                assert_int_equal(string_copy(&inv->devices[i].driver, facts[i].driver), 0);
                assert_int_equal(string_copy(&inv->devices[i].driver_override, facts[i].override), 0);
        }
}

/* Applies the step as the kernel would. Fails if its precondition is not met. */
static bool apply(const Step *s, Fact *facts) {
        Fact *f = &facts[s->device.slot];

        switch (s->kind) {
        case STEP_OVERRIDE:
                if (!streq_ptr(f->override, s->override.from))
                        return false;
                f->override = s->override.to;
                return true;
        case STEP_UNBIND:
                if (!streq_ptr(f->driver, s->unbind.driver) || !s->unbind.driver)
                        return false;
                f->driver = NULL;
                return true;
        case STEP_BIND: /* drivers_probe: only by its override can it be that driver for certain */
                if (f->driver || !streq_ptr(f->override, s->driver))
                        return false;
                f->driver = s->driver;
                return true;
        default:
                return false;
        }
}

static void assert_applies(const StepList *l, Fact *facts) {
        for (size_t i = 0; i < l->n; i++)
                if (!apply(&l->steps[i], facts)) {
                        _cleanup_free_ char *text = step_describe(&l->steps[i]);

                        fail_msg("step %zu cannot be done: %s", i, text);
                }
}

/* Kinds ascend: all overrides, all unbinds, all binds, and at the end of a release overrides again. */
static void assert_order(const StepList *l, const StepKind *order, size_t n) {
        size_t at = 0;

        for (size_t i = 0; i < l->n; i++) {
                while (at < n && l->steps[i].kind != order[at])
                        at++;
                assert_true(at < n);
        }
}

static const Fact priors[] = {
        { NULL, NULL },     { NULL, VFIO }, { NULL, "nvidia" }, { "nvidia", NULL }, { "nvidia", "nvidia" },
        { "nvidia", VFIO }, { VFIO, NULL }, { VFIO, VFIO },     { VFIO, "nvidia" }, { "nouveau", "nvidia" },
};

static void check_there_and_back(const Fact *prior, unsigned n) {
        static const StepKind there[] = { STEP_OVERRIDE, STEP_UNBIND, STEP_BIND };
        static const StepKind back[] = { STEP_OVERRIDE, STEP_UNBIND, STEP_BIND, STEP_OVERRIDE };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(prior, n);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(n);
        _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL, *keep = NULL;
        Fact facts[DEVICES];

        memcpy(facts, prior, n * sizeof(*facts));
        set_inventory(inv, facts);
        assert_int_equal(steps_prepare(a, inv, &prepare), 0);
        assert_order(prepare, there, ELEMENTSOF(there));
        assert_applies(prepare, facts);
        for (unsigned i = 0; i < n; i++) {
                assert_string_equal(facts[i].driver, VFIO);
                assert_string_equal(facts[i].override, VFIO);
        }
        set_inventory(inv, facts);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_KEEP, false, &keep), 0);
        assert_int_equal(keep->n, 0);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, false, &release), 0);
        assert_order(release, back, ELEMENTSOF(back));
        assert_applies(release, facts);
        for (unsigned i = 0; i < n; i++) {
                assert_true(streq_ptr(facts[i].driver, prior[i].driver));
                assert_true(streq_ptr(facts[i].override, prior[i].override));
        }
}

TEST(test_there_and_back) {
        const size_t n = ELEMENTSOF(priors);

        for (size_t i = 0; i < n * n * n; i++)
                check_there_and_back((const Fact[]) { priors[i % n], priors[i / n % n], priors[i / n / n] }, DEVICES);
}

/* What the step sets. */
static const char *target(const Step *s) {
        return s->kind == STEP_OVERRIDE     ? s->override.to
               : s->kind == STEP_UNBIND     ? s->unbind.instead
               : s->kind == STEP_BIND       ? s->driver
               : s->kind == STEP_RUNTIME_PM ? (s->on ? "on" : "auto")
                                            : (s->on ? "1" : "0");
}

static void assert_steps(const StepList *l, const StepKind *kinds, const char *const *to, size_t n) {
        assert_int_equal(l->n, n);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(l->steps[i].kind, kinds[i]);
                assert_true(streq_ptr(target(&l->steps[i]), to[i]));
        }
}

/* D3 is forbidden before the bind and allowed again after it. A device that stays on VFIO stays awake. */
TEST(test_power) {
        static const StepKind there[] = { STEP_D3COLD, STEP_RUNTIME_PM, STEP_OVERRIDE, STEP_UNBIND, STEP_BIND };
        static const StepKind back[] = { STEP_OVERRIDE, STEP_UNBIND, STEP_BIND,
                                         STEP_OVERRIDE, STEP_D3COLD, STEP_RUNTIME_PM };
        static const StepKind resumed[] = { STEP_RUNTIME_PM }, home[] = { STEP_OVERRIDE, STEP_D3COLD, STEP_RUNTIME_PM };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation((const Fact[]) { { "nvidia", NULL } }, 1);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        const AfterRelease ways[] = { AFTER_RELEASE_RESTORE, AFTER_RELEASE_KEEP };
        StepList *l = NULL;

        set_inventory(inv, (const Fact[]) { { "nvidia", NULL } });
        inv->devices[0].runtime_pm = inv->devices[0].d3cold = true;
        a->devices[0].prior_runtime_pm = a->devices[0].prior_d3cold = true;
        assert_int_equal(steps_prepare(a, inv, &l), 0);
        assert_steps(l, there, (const char *const[]) { "0", "on", VFIO, VFIO, VFIO }, ELEMENTSOF(there));
        l = step_list_free(l);
        /* Killed between the bind, after which the kernel may suspend the device, and the next write. */
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO } });
        inv->devices[0].d3cold = false;
        assert_int_equal(steps_prepare(a, inv, &l), 0);
        assert_steps(l, resumed, (const char *const[]) { "on" }, ELEMENTSOF(resumed));
        l = step_list_free(l);
        inv->devices[0].runtime_pm = false;
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, false, &l), 0);
        assert_steps(l, back, (const char *const[]) { "nvidia", "nvidia", "nvidia", NULL, "1", "auto" },
                     ELEMENTSOF(back));
        l = step_list_free(l);
        /* Killed after the bind to the host driver. */
        set_inventory(inv, (const Fact[]) { { "nvidia", NULL } });
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, false, &l), 0);
        assert_steps(l, home, (const char *const[]) { NULL, "1", "auto" }, ELEMENTSOF(home));
        l = step_list_free(l);
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO } });
        assert_int_equal(string_copy(&a->devices[0].prior_driver, VFIO), 0);
        assert_int_equal(string_copy(&a->devices[0].prior_override, VFIO), 0);
        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                assert_int_equal(steps_release(a, inv, ways[i], false, &l), 0);
                assert_int_equal(l->n, 0);
                l = step_list_free(l);
        }
}

/* Members of a group are never on a host driver and on VFIO at the same time. */
TEST(test_all_unbound_before_any_is_bound) {
        _cleanup_(cleanup_allocation_free) Allocation *a =
                make_allocation((const Fact[]) { { "nvidia", NULL }, { "snd_hda_intel", NULL } }, 2);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(2);
        _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL;
        static const StepKind there[] = {
                STEP_OVERRIDE, STEP_OVERRIDE, STEP_UNBIND, STEP_UNBIND, STEP_BIND, STEP_BIND
        };

        set_inventory(inv, (const Fact[]) { { "nvidia", NULL }, { "snd_hda_intel", NULL } });
        assert_int_equal(steps_prepare(a, inv, &prepare), 0);
        assert_int_equal(prepare->n, ELEMENTSOF(there));
        for (size_t i = 0; i < ELEMENTSOF(there); i++) {
                assert_int_equal(prepare->steps[i].kind, there[i]);
                assert_int_equal(prepare->steps[i].device.slot, i % 2);
        }
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO }, { VFIO, VFIO } });
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, false, &release), 0);
        assert_int_equal(release->n, 8);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(release->steps[i].kind, i < 6 ? there[i] : STEP_OVERRIDE);
}

/* The undo of every step, in reverse: after any number of steps the facts are as before. */
TEST(test_undone_after_any_step) {
        for (size_t p = 0; p < ELEMENTSOF(priors); p++) {
                _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(&priors[p], 1);
                _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
                _cleanup_(cleanup_step_list_free) StepList *l = NULL;

                set_inventory(inv, &priors[p]);
                assert_int_equal(steps_prepare(a, inv, &l), 0);
                for (size_t done = 0; done <= l->n; done++) {
                        Fact facts[1] = { priors[p] };

                        for (size_t i = 0; i < done; i++)
                                assert_true(apply(&l->steps[i], facts));
                        for (size_t i = done; i-- > 0;) {
                                const Step *s = &l->steps[i];

                                if (s->kind == STEP_OVERRIDE)
                                        facts[0].override = s->override.from;
                                else
                                        facts[0].driver = s->kind == STEP_UNBIND ? s->unbind.driver : NULL;
                        }
                        assert_true(streq_ptr(facts[0].driver, priors[p].driver) &&
                                    streq_ptr(facts[0].override, priors[p].override));
                }
        }
}

/* Services are stopped once and in order, except those of pools of which no device is taken from the host. */
TEST(test_services_are_stopped_around) {
        static const char text[] = "[Pool a]\nMatch=type=device\nStopServices=x.service y.service\n"
                                   "[Pool b]\nMatch=type=vf\nStopServices=z.service\n";
        static const struct {
                StepKind kind;
                const char *service;
        } expected[] = {
                { STEP_STOP_SERVICE, "x.service" },
                { STEP_STOP_SERVICE, "y.service" },
                { STEP_CHECK_IDLE, NULL },
                { STEP_CHECK_IDLE, NULL },
                { STEP_OVERRIDE, NULL },
                { STEP_OVERRIDE, NULL },
                { STEP_OVERRIDE, NULL },
                { STEP_UNBIND, NULL },
                { STEP_UNBIND, NULL },
                { STEP_BIND, NULL },
                { STEP_BIND, NULL },
                { STEP_BIND, NULL },
                { STEP_START_SERVICE, "y.service" },
                { STEP_START_SERVICE, "x.service" },
        };
        static const Fact now[] = { { "nvidia", NULL }, { NULL, NULL }, { "nvidia", NULL } };
        static const char *const pools[] = { "a", "b", "a" };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(now, 3);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(3);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL, *none = NULL;
        _cleanup_(cleanup_config_free) Config *config = NULL;

        assert_int_equal(config_parse("f", text, strlen(text), &config), 0);
        assert_int_equal(config->n_problems, 0);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(string_copy(&a->devices[i].pool, pools[i]), 0);
        set_inventory(inv, now);
        assert_int_equal(steps_prepare(a, inv, &l), 0);
        assert_int_equal(steps_around_services(a, config, l), 0);
        assert_int_equal(l->n, ELEMENTSOF(expected));
        for (size_t i = 0; i < l->n; i++) {
                assert_int_equal(l->steps[i].kind, expected[i].kind);
                assert_true(!expected[i].service || streq(l->steps[i].service, expected[i].service));
        }
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO }, { VFIO, VFIO }, { VFIO, VFIO } });
        assert_int_equal(steps_prepare(a, inv, &none), 0);
        assert_int_equal(steps_around_services(a, config, none), 0);
        assert_int_equal(none->n, 0);
}

/* A device that will be bound is checked in its bind, any other one in a step before all others. */
TEST(test_check_health) {
        static const Fact now[] = { { VFIO, VFIO }, { "mlx5_core", NULL }, { VFIO, NULL } };
        static const StepKind expected[] = { STEP_CHECK_HEALTH, STEP_CHECK_HEALTH, STEP_OVERRIDE,
                                             STEP_OVERRIDE,     STEP_UNBIND,       STEP_BIND };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(now, 3);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(3);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;

        set_inventory(inv, now);
        assert_int_equal(steps_prepare(a, inv, &l), 0);
        assert_false(l->checks_health);
        assert_int_equal(steps_check_health(a, l), 0);
        assert_true(l->checks_health);
        assert_int_equal(l->n, ELEMENTSOF(expected));
        for (size_t i = 0; i < l->n; i++)
                assert_int_equal(l->steps[i].kind, expected[i]);
        assert_int_equal(l->steps[0].device.slot, 0);
        assert_int_equal(l->steps[1].device.slot, 2);
}

/* The check has the error count from the preparation, also if it is 0, and after a copy. */
TEST(test_fatal_errors) {
        static const Fact bound[] = { { VFIO, VFIO }, { VFIO, VFIO }, { VFIO, VFIO } };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(bound, 3), *copy = NULL;
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(3);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;
        size_t n = 0;

        a->devices[1].has_fatal = a->devices[2].has_fatal = true;
        a->devices[2].fatal = UINT32_MAX;
        copy = allocation_copy(a);
        assert_non_null(copy);
        set_inventory(inv, bound);
        assert_int_equal(steps_release(copy, inv, AFTER_RELEASE_KEEP, true, &l), 0);
        for (size_t i = 0; i < l->n; i++)
                if (l->steps[i].kind == STEP_CHECK) {
                        assert_int_equal(l->steps[i].check.compares, n > 0);
                        assert_int_equal(l->steps[i].check.fatal, n++ < 2 ? 0 : UINT32_MAX);
                }
        assert_int_equal(n, 3);
}

/* The one service of a pool is stopped for a VF too. */
TEST(test_one_service) {
        static const char text[] = "[Pool a]\nMatch=type=vf\nStopServices=x.service\n";
        static const Fact now[] = { { "nvidia", NULL }, { "mlx5_core", NULL } };
        static const StepKind expected[] = {
                STEP_STOP_SERVICE, STEP_CHECK_IDLE, STEP_OVERRIDE, STEP_OVERRIDE,      STEP_UNBIND,
                STEP_UNBIND,       STEP_BIND,       STEP_BIND,     STEP_START_SERVICE,
        };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(now, 2);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(2);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL, *without = NULL;
        _cleanup_(cleanup_config_free) Config *config = NULL;

        assert_int_equal(config_parse("f", text, strlen(text), &config), 0);
        assert_int_equal(string_copy(&a->devices[1].pool, "a"), 0);
        a->devices[1].is_vf = true;
        inv->devices[1].type = PCI_TYPE_VF;
        set_inventory(inv, now);
        assert_int_equal(steps_prepare(a, inv, &l), 0);
        assert_int_equal(steps_prepare(a, inv, &without), 0);
        assert_int_equal(steps_around_services(a, config, l), 0);
        assert_true(l->reports_found_state);
        assert_int_equal(l->n, ELEMENTSOF(expected));
        for (size_t i = 0; i < l->n; i++)
                assert_int_equal(l->steps[i].kind, expected[i]);
        assert_int_equal(l->steps[1].device.slot, 1);
        assert_true(l->steps[1].unbind.is_vf);
        assert_string_equal(l->steps[1].unbind.driver, "mlx5_core");
        assert_true(step_lists_share_service(l, l));
        assert_false(step_lists_share_service(l, without));
        assert_false(step_lists_share_service(without, l));
}

TEST(test_release_of_a_device_that_is_gone) {
        _cleanup_(cleanup_allocation_free) Allocation *a =
                make_allocation((const Fact[]) { { "nvidia", NULL }, { "nvidia", NULL } }, 2);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;

        set_inventory(inv, (const Fact[]) { { VFIO, VFIO } });
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, false, &l), 0);
        assert_int_equal(l->n, 4);
        for (size_t i = 0; i < l->n; i++)
                assert_int_equal(l->steps[i].device.slot, 0);
}

/* A device that the host already has is not moved, and nothing interrupted is kept. */
TEST(test_release_of_what_is_not_on_vfio) {
        _cleanup_(cleanup_allocation_free) Allocation *a =
                make_allocation((const Fact[]) { { "nvidia", NULL }, { "nvidia", NULL }, { "nvidia", NULL } }, 3);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(3);
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;
        Fact facts[DEVICES] = { { "nvidia", VFIO }, { "pci-stub", "pci-stub" }, { NULL, VFIO } };

        set_inventory(inv, facts);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_KEEP, false, &l), 0);
        assert_applies(l, facts);
        assert_true(streq(facts[0].driver, "nvidia") && !facts[0].override);
        assert_true(streq(facts[1].driver, "pci-stub") && streq(facts[1].override, "pci-stub"));
        assert_true(streq_ptr(facts[2].driver, "nvidia") && !facts[2].override);
        for (size_t i = 0; i < l->n; i++)
                assert_true(l->steps[i].kind != STEP_UNBIND);
}

static bool is_vgpu(const Step *s, bool wanted, unsigned type, const char *name, const char *mdev) {
        return s->kind == STEP_VGPU && s->vgpu.wanted == wanted && s->vgpu.type == type &&
               streq_ptr(s->vgpu.name, name) && streq_ptr(s->vgpu.mdev, mdev);
}

/* A VF with a vGPU keeps its driver and override. A vGPU of another program is not touched. */
TEST(test_vgpu) {
        const Fact on_nvidia = { "nvidia", NULL };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(&on_nvidia, 1);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        static const struct {
                const char *driver;
                unsigned present;
                bool ours;
        } cases[] = { { "nvidia", 0, false },
                      { "nvidia", 1414, true },
                      { "nvidia", 7, false },
                      { NULL, 0, false },
                      { "vfio-pci", 0, false } };

        a->devices[0].vgpu_type = 1414;
        assert_int_equal(string_copy(&a->devices[0].vfio_driver, "nvidia"), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL;

                set_inventory(inv, &(Fact) { cases[i].driver, NULL });
                inv->devices[0].vgpu_type = cases[i].present;
                assert_int_equal(steps_prepare(a, inv, &prepare), 0);
                assert_int_equal(prepare->n, cases[i].ours ? 0 : 1);
                assert_true(cases[i].ours || is_vgpu(&prepare->steps[0], true, 1414, NULL, NULL));
                assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &release), 0);
                assert_int_equal(release->n, cases[i].ours ? 1 : 0);
                assert_true(!cases[i].ours || is_vgpu(&release->steps[0], false, 1414, NULL, NULL));
        }
}

/* The vGPU is a mediated device with the allocation's UUID. Another mediated device is not touched. */
TEST(test_mediated_device) {
        const Fact on_nvidia = { "nvidia", NULL };
        static const char uuid[] = "4b20d080-1b54-4048-85b3-a6a600000100";
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(&on_nvidia, 1);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        _cleanup_(cleanup_step_list_free) StepList *unlisted = NULL;
        static const struct {
                unsigned present;
                const char *mdev;
                bool ours;
        } cases[] = { { 0, "", false },
                      { 558, uuid, true },
                      { 558, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", false },
                      { 7, uuid, false } };

        a->devices[0].vgpu_type = 558;
        (void) strcpy(a->id, "4b20d080-1b54-4048-85b3-a6a62d165c01");
        assert_int_equal(string_copy(&a->devices[0].vfio_driver, "nvidia"), 0);
        set_inventory(inv, &on_nvidia);
        allocation_assign_mdevs(a, inv);
        assert_string_equal(a->devices[0].mdev, "");
        inv->devices[0].mdev_parent = true;
        allocation_assign_mdevs(a, inv);
        assert_string_equal(a->devices[0].mdev, uuid);
        assert_int_equal(string_copy(&inv->devices[0].vgpu_types, "7 1 nvidia-7 : A\n558 0 nvidia-558 : B\n"), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL;

                inv->devices[0].vgpu_type = cases[i].present;
                (void) strcpy(inv->devices[0].mdev, cases[i].mdev);
                assert_int_equal(steps_prepare(a, inv, &prepare), 0);
                assert_int_equal(prepare->n, cases[i].ours ? 0 : 1);
                assert_true(cases[i].ours || is_vgpu(&prepare->steps[0], true, 558, "nvidia-558", uuid));
                assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &release), 0);
                assert_int_equal(release->n, cases[i].ours ? 1 : 0);
                assert_true(!cases[i].ours || is_vgpu(&release->steps[0], false, 558, "nvidia-558", uuid));
        }

        /* While types are not listed, the type's directory is unknown; GVT-g's has no number. */
        inv->devices[0].vgpu_type = 558;
        (void) strcpy(inv->devices[0].mdev, uuid);
        assert_int_equal(string_copy(&inv->devices[0].vgpu_types, ""), 0);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &unlisted), 0);
        assert_int_equal(unlisted->n, 1);
        assert_true(is_vgpu(&unlisted->steps[0], false, 558, NULL, uuid));
}

static void assert_autoprobe_off(const Step *s) {
        assert_int_equal(s->kind, STEP_AUTOPROBE);
        assert_false(s->on);
}

static void assert_count(const Step *s, StepKind kind, unsigned count) {
        assert_int_equal(s->kind, kind);
        assert_int_equal(s->count, count);
}

TEST(test_create_vfs) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        const PciDevice pf = { .address = { .bus = 0x81 } };
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;

        assert_int_equal(steps_set_vfs(inv, &pf, 4, NULL, &l), 0);
        assert_int_equal(l->n, 2);
        assert_autoprobe_off(&l->steps[0]); /* has no effect on VFs that are there */
        assert_count(&l->steps[1], STEP_NUMVFS, 4);
}

/* Changes from two VFs, one of them on vfio-pci, to count. */
static StepList *from_two(unsigned count) {
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        PciAddress vfs[] = { { .bus = 0x81, .slot = 1 }, { .bus = 0x81, .slot = 2 } };
        const PciDevice pf = { .address = { .bus = 0x81 }, .vfs = vfs, .n_vfs = 2, .n_virtfns = 2 };
        StepList *l = NULL;

        for (size_t i = 0; i < ELEMENTSOF(vfs); i++) {
                PciDevice *vf = inventory_add_device(inv, vfs[i]);

                assert_int_equal(string_copy(&vf->driver, i == 1 ? VFIO : NULL), 0);
                assert_int_equal(string_copy(&vf->driver_override, i == 1 ? VFIO : NULL), 0);
        }
        assert_int_equal(inventory_finish(inv), 0);
        assert_int_equal(steps_set_vfs(inv, &pf, count, NULL, &l), 0);
        return l;
}

/* The number changes by way of 0. The undo restores each VF. */
TEST(test_change_vfs) {
        _cleanup_(cleanup_step_list_free) StepList *l = from_two(5);

        assert_int_equal(l->n, 5);
        assert_autoprobe_off(&l->steps[0]);
        assert_int_equal(l->steps[1].kind, STEP_UNBIND);
        assert_string_equal(l->steps[1].unbind.driver, VFIO);
        assert_null(l->steps[1].unbind.instead);
        assert_int_equal(l->steps[1].device.slot, 2);
        assert_int_equal(l->steps[2].kind, STEP_OVERRIDE);
        assert_string_equal(l->steps[2].override.from, VFIO);
        assert_null(l->steps[2].override.to);
        assert_count(&l->steps[3], STEP_REMOVE_VFS, 2);
        assert_count(&l->steps[4], STEP_NUMVFS, 5);
}

TEST(test_remove_vfs) {
        _cleanup_(cleanup_step_list_free) StepList *none = from_two(0), *same = from_two(2);

        assert_int_equal(none->n, 4);
        assert_count(&none->steps[3], STEP_REMOVE_VFS, 2);
        assert_int_equal(same->n, 0);
}

/* The undo restores the addresses of a NIC's VFs. A VF without a device is removed too. */
TEST(test_remove_vfs_of_a_nic) {
        for (unsigned count = 1; count < 3; count++) {
                _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
                PciAddress vfs[] = { { .bus = 0x81, .slot = 1 }, { .bus = 0x81, .slot = 2 } };
                const PciDevice pf = {
                        .address = { .bus = 0x81 }, .class = 0x020000, .vfs = vfs, .n_vfs = count, .n_virtfns = count
                };
                _cleanup_(cleanup_step_list_free) StepList *l = NULL;

                assert_int_equal(inventory_finish(inv), 0);
                assert_int_equal(steps_set_vfs(inv, &pf, 0, NULL, &l), 0);
                assert_int_equal(l->n, count + 2);
                assert_autoprobe_off(&l->steps[0]);
                for (unsigned i = 0; i < count; i++) {
                        assert_int_equal(l->steps[i + 1].kind, STEP_SAVE_VF_STATE);
                        assert_int_equal(l->steps[i + 1].vf.index, i);
                }
                assert_count(&l->steps[count + 1], STEP_REMOVE_VFS, count);
        }
}

/* Exactly the steps that hold the kernel's rescan and remove lock. */
TEST(test_hang) {
        for (StepKind kind = 0; kind < _STEP_KIND_MAX; kind++) {
                const char *text = step_hang(&(Step) { .kind = kind });

                assert_int_equal(!!text, kind == STEP_REMOVE_VFS || kind == STEP_NUMVFS);
                assert_true(!text || strstr(text, "rescan"));
        }
}

#define AT_82 .device = { .bus = 0x82 }
#define VLAN  .attributes = { .set = VF_ATTRIBUTE_BIT(VF_VLAN), .value = { [VF_VLAN] = 7 } }

static const Step steps[] = {
        { STEP_OVERRIDE, AT_82, .override = { .to = VFIO } },
        { STEP_OVERRIDE, AT_82, .override = { .from = VFIO } },
        { STEP_UNBIND, AT_82, .unbind = { .driver = "nvidia" } },
        { STEP_BIND, AT_82, .driver = VFIO },
        { STEP_AUTOPROBE, AT_82, .on = false },
        { STEP_NUMVFS, AT_82, .count = 4 },
        { STEP_REMOVE_VFS, AT_82, .count = 4 },
        { STEP_RESTORE, AT_82, .vf = { .index = 1, VLAN } },
        { STEP_SUPPORTED_ATTRIBUTES, AT_82, .vf = { .index = 1 } },
        { STEP_ATTRIBUTES, AT_82, .vf = { .index = STEP_VF_UNKNOWN, VLAN } },
        { STEP_VGPU, AT_82, .vgpu = { .wanted = true, .type = 4 } },
        { STEP_VGPU, AT_82, .vgpu = { .wanted = false, .type = 4 } },
        { STEP_VGPU, AT_82, .vgpu = { .wanted = true, .type = 558, .name = "nvidia-558" } },
        { STEP_RUNTIME_PM, AT_82, .on = true },
        { STEP_RUNTIME_PM, AT_82, .on = false },
        { STEP_D3COLD, AT_82, .on = false },
        { STEP_RESET, AT_82 },
        { STEP_RESET, AT_82, .reset = { .method = RESET_METHOD_BUS } },
};

TEST(test_describe) {
        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                _cleanup_free_ char *text = step_describe(&steps[i]);

                assert_non_null(strstr(text, "0000:82:00.0"));
                record("step", text);
        }
}

/* Every failure is a sentence with the action and the reason, never "(null)" or a bare number. */
TEST(test_failures) {
        static const int errors[] = { EBUSY, EIO, ENOENT, ENODEV, EINVAL, ENOMEM, ENOSPC, ERANGE, EACCES, ETIMEDOUT };

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                _cleanup_free_ char *phrase = step_describe(&steps[i]);

                for (size_t e = 0; e < ELEMENTSOF(errors); e++) {
                        _cleanup_free_ char *text = step_failure(&steps[i], -errors[e], NULL);

                        assert_non_null(strstr(text, phrase));
                        assert_null(strstr(text, "(null)"));
                        assert_int_equal(text[strlen(text) - 1], '.');
                        record(strerror(errors[e]), text);
                }
        }
}

static VfAttributes parse(const char *text) {
        _cleanup_free_ char *problem = NULL;
        VfAttributes v = { 0 };

        assert_int_equal(vf_attributes_parse(text, &v, &problem), 0);
        return v;
}

/* The sentence names the attributes that the PF does not offer, and no other. */
TEST(test_missing_attributes) {
        const Step s = { STEP_ATTRIBUTES, AT_82, .vf = { 1, parse("mac=02:00:00:00:00:01 vlan=7") } };
        static const unsigned found[] = { 0, VF_ATTRIBUTE_BIT(VF_MAC), VF_ATTRIBUTE_BIT(VF_VLAN),
                                          VF_ATTRIBUTE_BIT(VF_MAC) | VF_ATTRIBUTE_BIT(VF_VLAN) };

        for (size_t i = 0; i < ELEMENTSOF(found); i++) {
                _cleanup_free_ char *lacks = step_failure(&s, -EOPNOTSUPP, &(const VfAttributes) { .set = found[i] }),
                                    *other = step_failure(&s, -EBUSY, &(const VfAttributes) { .set = found[i] });
                _cleanup_free_ char *about = string_format("the PF offers attributes %#x", found[i]);

                record(about, lacks);
                record("any attributes, EBUSY", other);
        }
}

/* A shell reports a signal as 128 plus its number. */
TEST(test_status) {
        static const int statuses[] = { 1, 127, 128, 129, 130, 137 };
        const Step s = { STEP_CLEAN, AT_82, .clean = { "gpu", "/bin/clean" } };

        for (size_t i = 0; i < ELEMENTSOF(statuses); i++) {
                _cleanup_free_ char *text = step_failure_with_status(&s, statuses[i]), *about = NULL;

                about = string_format("status %d", statuses[i]);
                record(about, text);
        }
}

static void assert_failure(const Step *s, int error, const char *words) {
        _cleanup_free_ char *text = step_failure(s, -error, NULL);

        if (!strstr(text, words))
                fail_msg("\"%s\" does not say \"%s\"", text, words);
}

TEST(test_causes) {
        static const int dead[] = { ENOLINK, EREMCHG };
        const Step check = { STEP_CHECK, AT_82, .check = { .compares = true } };
        const Step health = { STEP_CHECK_HEALTH, AT_82 };
        const Step bind = { STEP_BIND, AT_82, .driver = VFIO };
        const Step infiniband = { STEP_ATTRIBUTES, AT_82,
                                  .vf = { .attributes = parse("node-guid=02:00:00:00:00:00:00:01") } };
        _cleanup_free_ char *module = step_failure(&infiniband, -EOPNOTSUPP, &(const VfAttributes) { 0 });

        record("no interface of an InfiniBand PF", module);
        assert_non_null(strstr(module, "ib_ipoib"));
        assert_failure(&check, EBADE, "aer_dev_fatal");
        for (size_t i = 0; i < ELEMENTSOF(dead); i++) {
                _cleanup_free_ char *found = step_failure(&health, -dead[i], NULL);

                record("a device that is dead", found);
                assert_failure(&bind, dead[i], strstr(found, ": "));
        }
        assert_failure(&steps[5], ENOMEM, "pci=realloc");
        assert_failure(&steps[5], ERANGE, "NUM_OF_VFS");
        assert_failure(&steps[5], ENOENT, "num_vfs");
        assert_failure(&steps[5], ENOSPC, "MSI-X");
        assert_failure(&steps[ELEMENTSOF(steps) - 2], ENOTTY, "AllowNoReset=");
        assert_failure(&steps[ELEMENTSOF(steps) - 2], ENOENT, "AllowNoReset=");
        assert_failure(&steps[ELEMENTSOF(steps) - 1], EINVAL, "ResetMethod=");
}

/* A GPU that returns to NVIDIA's driver gets its persistence mode back and is checked. */
TEST(test_return_of_gpus) {
        static const Fact there[] = { { VFIO, VFIO }, { VFIO, VFIO }, { VFIO, VFIO } };
        static const Fact back[] = { { "nvidia", NULL }, { VFIO, VFIO }, { NULL, VFIO } };
        static const Fact home[] = { { "nvidia", NULL }, { "mlx5_core", NULL }, { "nvidia", NULL } };
        static const int errors[] = { ENOTRECOVERABLE, EUCLEAN, EBADE, ENOLINK, ENODEV, ETIMEDOUT };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(home, 3);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(3);
        const struct {
                const Fact *facts;
                AfterRelease after;
                bool check;
                unsigned persistent, checked; /* bit i: device i */
        } cases[] = {
                { there, AFTER_RELEASE_RESTORE, true, 1, 1 | 4 }, { there, AFTER_RELEASE_RESTORE, false, 1, 0 },
                { there, AFTER_RELEASE_KEEP, true, 0, 0 },        { back, AFTER_RELEASE_RESTORE, true, 1, 1 | 4 },
                { home, AFTER_RELEASE_RESTORE, true, 1, 1 | 4 },
        };

        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(string_copy(&a->devices[i].pool, "gpu"), 0);
        a->devices[0].prior_persistence = true;
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_step_list_free) StepList *l = NULL;
                unsigned persistent = 0, checked = 0;
                size_t n;

                set_inventory(inv, cases[i].facts);
                assert_int_equal(steps_release(a, inv, cases[i].after, true, &l), 0);
                n = l->n;
                assert_int_equal(steps_return_gpus(a, inv, cases[i].check, l), 0);
                for (; n < l->n; n++) {
                        unsigned *bits = l->steps[n].kind == STEP_PERSISTENCE ? &persistent : &checked;

                        assert_true(bits == &persistent || l->steps[n].kind == STEP_CHECK_GPU);
                        *bits |= 1U << l->steps[n].device.slot;
                }
                assert_int_equal(persistent, cases[i].persistent);
                assert_int_equal(checked, cases[i].checked);
        }
        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                const Step check = { STEP_CHECK_GPU, AT_82 };
                _cleanup_free_ char *text = step_failure(&check, -errors[i], NULL);

                assert_non_null(step_cause(&check, -errors[i]));
                record("a GPU that is back with the host", text);
        }
        assert_null(step_cause(&(const Step) { .kind = STEP_CHECK_GPU }, -EPERM));
}

/* The partition is activated at the end, and deactivated at the beginning. */
TEST(test_partition) {
        static const Fact home[] = { { "nvidia", NULL } }, bound[] = { { VFIO, VFIO } };
        static const int errors[] = { ELIBACC, ENOTCONN, ETIMEDOUT, EAGAIN,    EBUSY,     EIO,    EOPNOTSUPP, EPROTO,
                                      ENOENT,  EXDEV,    EPERM,     EREMOTEIO, EHOSTDOWN, EINVAL, ESTALE };
        static const int away[] = { ELIBACC, ENOTCONN, ETIMEDOUT, EAGAIN, EPROTO, EHOSTDOWN };
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation(home, 1);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        _cleanup_(cleanup_step_list_free) StepList *there = NULL, *again = NULL, *back = NULL, *none = NULL;
        _cleanup_(cleanup_config_free) Config *config = config_new();
        _cleanup_free_ char *undone = NULL;

        set_inventory(inv, home);
        a->partition = 3;
        assert_int_equal(steps_prepare(a, inv, &none), 0);
        assert_int_equal(steps_activate(a, config, false, none), 0);
        assert_int_equal(string_copy(&config->fabric_manager, "127.0.0.1:6666"), 0);
        assert_int_equal(steps_prepare(a, inv, &there), 0);
        assert_int_equal(steps_activate(a, config, false, there), 0);
        assert_int_equal(there->n, none->n + 1);
        assert_int_equal(there->steps[there->n - 1].kind, STEP_ACTIVATE);
        assert_false(step_may_lack(&there->steps[there->n - 1], -ENOTCONN));
        /* Again only if the GPU is unused. Fabric Manager may be missing. */
        assert_int_equal(steps_prepare(a, inv, &again), 0);
        assert_int_equal(steps_activate(a, config, true, again), 0);
        assert_int_equal(again->n, there->n + 1);
        assert_int_equal(again->steps[there->n - 1].kind, STEP_CHECK_UNUSED);
        assert_true(pci_address_equal(again->steps[there->n - 1].device, a->devices[0].address));
        assert_true(step_may_lack(&again->steps[there->n - 1], -EBUSY));
        assert_int_equal(again->steps[there->n].kind, STEP_ACTIVATE);
        assert_false(again->steps[there->n - 2].may_lack);
        for (size_t i = 0; i < ELEMENTSOF(away); i++) {
                assert_true(step_may_lack(&again->steps[there->n], -away[i]));
                assert_non_null(step_cause(&again->steps[there->n], -away[i]));
        }
        assert_false(step_may_lack(&again->steps[there->n], -EIO));
        set_inventory(inv, bound);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &back), 0);
        assert_int_equal(back->steps[0].kind, STEP_RESET);
        assert_int_equal(steps_deactivate(a, config, back), 0);
        assert_int_equal(back->steps[0].kind, STEP_DEACTIVATE);
        assert_int_equal(back->steps[0].partition, 3);
        assert_int_equal(back->steps[1].kind, STEP_RESET);
        for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                _cleanup_free_ char *text =
                        step_failure(i % 2 ? &back->steps[0] : &there->steps[there->n - 1], -errors[i], NULL);

                record(strerror(errors[i]), text);
        }
        undone = step_undo_failure(&back->steps[0], -EIO);
        assert_non_null(undone);
        assert_non_null(strstr(undone, "NVLink partition 3"));
        record("not undone", undone);
        a->partition = -1;
        assert_int_equal(steps_deactivate(a, config, none), 0);
        assert_int_equal(none->n, there->n - 1);
}

/* A companion is reset by any method, or by none. An allocation may consist of a companion alone. */
TEST(test_reset_of_pools) {
        static const struct {
                const char *keys;
                bool may_lack_method, may_stay; /* of the GPU */
                ResetMethod method;
        } cases[] = {
                { "", false, false, RESET_METHOD_DEFAULT },
                { "AllowNoReset=yes\n", true, true, RESET_METHOD_DEFAULT },
                { "ResetMethod=bus\n", false, false, RESET_METHOD_BUS },
                { "ResetMethod=default\n", false, false, RESET_METHOD_DEFAULT },
        };
        _cleanup_(cleanup_allocation_free) Allocation *a =
                make_allocation((const Fact[]) { { "nvidia", NULL }, { "snd_hda_intel", NULL } }, 2);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(2);

        a->devices[1].role = DEVICE_ROLE_COMPANION;
        assert_int_equal(string_copy(&a->devices[0].pool, "gpu"), 0);
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO }, { VFIO, VFIO } });
        assert_int_equal(string_copy(&inv->devices[0].reset_methods, "flr bus"), 0);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *text = string_format("[Pool gpu]\nMatch=class=03\n%s", cases[i].keys);
                _cleanup_(cleanup_config_free) Config *config = NULL;
                _cleanup_(cleanup_step_list_free) StepList *l = NULL;
                const Step *gpu, *audio;

                assert_non_null(text);
                assert_int_equal(config_parse("test.conf", text, strlen(text), &config), 0);
                assert_int_equal(config->n_problems, 0);
                assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &l), 0);
                assert_int_equal(steps_reset(a, inv, config, l), 0);
                gpu = &l->steps[0];
                audio = &l->steps[2];
                assert_true(gpu->kind == STEP_RESET && audio->kind == STEP_RESET);
                assert_true(gpu->reset.may_lack_method == cases[i].may_lack_method &&
                            gpu->reset.may_stay == cases[i].may_stay);
                assert_int_equal(gpu->reset.method, cases[i].method);
                assert_true(streq_ptr(gpu->reset.before, cases[i].method ? "flr bus" : NULL));
                assert_true(audio->reset.may_lack_method && audio->reset.may_stay == cases[i].may_stay);
                assert_int_equal(audio->reset.method, RESET_METHOD_DEFAULT);
        }
}

/* After a kill, the present reset methods are not the former ones. */
TEST(test_methods_after_a_kill) {
        static const char text[] = "[Pool gpu]\nMatch=class=03\nResetMethod=bus\n";
        _cleanup_(cleanup_allocation_free) Allocation *a = make_allocation((const Fact[]) { { "nvidia", NULL } }, 1);
        _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(1);
        _cleanup_(cleanup_config_free) Config *config = NULL;
        _cleanup_(cleanup_step_list_free) StepList *l = NULL;

        assert_int_equal(config_parse("test.conf", text, strlen(text), &config), 0);
        assert_int_equal(string_copy(&a->devices[0].pool, "gpu"), 0);
        assert_int_equal(string_copy(&a->devices[0].prior_reset, "pm bus"), 0);
        set_inventory(inv, (const Fact[]) { { VFIO, VFIO } });
        assert_int_equal(string_copy(&inv->devices[0].reset_methods, "bus"), 0);
        assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &l), 0);
        assert_int_equal(steps_reset(a, inv, config, l), 0);
        assert_string_equal(l->steps[0].reset.before, "pm bus");
}

/* Addresses of one chain are in one column of the list of chains. */
TEST(test_chains) {
        enum {
                GPU,
                SOUND,
                OTHER,
                PF,
                VF,
                BELOW,
                BESIDE,
                MEMBER,
                GONE
        };
        static const char *const addresses[] = { "0000:01:00.0", "0000:01:00.1", "0000:02:00.0",
                                                 "0000:03:00.0", "0000:04:10.0", "0000:05:00.0",
                                                 "0000:05:01.0", "0000:06:00.0", "0000:07:00.0" };
        static const unsigned expected[] = { 1, 1, 2, 3, 3, 4, 4, 2, 5 };
        _cleanup_(cleanup_inventory_free) Inventory *inv = inventory_new();
        _cleanup_(cleanup_step_list_free) StepList *l = step_list_new();
        PciAddress a[ELEMENTSOF(addresses)];

        assert_non_null(inv);
        assert_non_null(l);
        for (size_t i = 0; i < ELEMENTSOF(addresses); i++) {
                PciDevice *dev;

                assert_int_equal(pci_address_parse(addresses[i], &a[i]), 0);
                if (i == GONE)
                        continue;
                dev = inventory_add_device(inv, a[i]);
                assert_non_null(dev);
        }
        assert_int_equal(inventory_finish(inv), 0);
        inv->devices[OTHER].iommu_group = inv->devices[MEMBER].iommu_group = 7;
        inv->devices[VF].type = PCI_TYPE_VF;
        inv->devices[VF].physfn = a[PF];
        inv->devices[BELOW].parent = inv->devices[BESIDE].parent = 0;
        step_list_add(l, (Step) { STEP_STOP_SERVICE, a[GPU], .service = "x.service" });
        step_list_add(l, (Step) { STEP_CHECK_IDLE, a[GPU], .unbind = { .driver = "nvidia" } });
        for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
                step_list_add(l, (Step) { STEP_UNBIND, a[i], .unbind = { .driver = "nvidia" } });
        step_list_add(l, (Step) { STEP_START_SERVICE, a[GPU], .service = "x.service" });
        assert_int_equal(step_list_result(l), 0);
        assert_int_equal(steps_set_chains(l, inv), 0);
        assert_int_equal(l->n_chains, 5);
        assert_int_equal(l->steps[0].chain, 0);
        assert_int_equal(l->steps[1].chain, 0);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_int_equal(l->steps[2 + i].chain, expected[i]);
        assert_int_equal(l->steps[l->n - 1].chain, 0);
        assert_int_equal(step_list_part_end(l, 0), 2);
        assert_int_equal(step_list_part_end(l, 2), l->n - 1);
        assert_int_equal(step_list_part_end(l, l->n - 1), l->n);

        /* Chains of two steps, two steps and one step. With two chains at a time, three rounds. */
        l->timeout_sec = 60;
        l->parallel = 8;
        assert_int_equal(step_list_timeout_sec(l), 2 * 60 + 2 * 60 + 60);
        l->parallel = 2;
        assert_int_equal(step_list_timeout_sec(l), 2 * 60 + 3 * 2 * 60 + 60);
        l->parallel = 1;
        assert_int_equal(step_list_timeout_sec(l), 12 * 60);
        l->steps[2].kind = STEP_RESET;
        assert_int_equal(step_list_timeout_sec(l), 14 * 60);
}

/* The limits in passthroughd(8) for jobs with NVIDIA GPUs that the kernel may suspend, by default. */
TEST(test_limits_in_the_manual) {
        static const Fact with_host = { "nvidia", NULL }, with_guest = { VFIO, VFIO };
        static const struct {
                unsigned gpus, prepare_sec, release_sec;
        } cases[] = { { 1, 300, 660 }, { 8, 300, 840 }, { 16, 300, 1080 } };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(cases[i].gpus);
                _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL;
                _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
                Fact host[16], guest[16];

                for (size_t j = 0; j < cases[i].gpus; j++) {
                        host[j] = with_host;
                        guest[j] = with_guest;
                        inv->devices[j].d3cold = inv->devices[j].runtime_pm = true;
                }
                a = make_allocation(host, cases[i].gpus);
                set_inventory(inv, host);
                assert_int_equal(steps_prepare(a, inv, &prepare), 0);
                set_inventory(inv, guest);
                for (size_t j = 0; j < cases[i].gpus; j++) {
                        assert_int_equal(string_copy(&a->devices[j].pool, "gpu"), 0);
                        a->devices[j].prior_d3cold = a->devices[j].prior_runtime_pm = true;
                        inv->devices[j].d3cold = inv->devices[j].runtime_pm = false;
                }
                assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &release), 0);
                assert_int_equal(steps_return_gpus(a, inv, true, release), 0);
                for (size_t k = 0; k < 2; k++) {
                        StepList *l = k ? release : prepare;

                        l->timeout_sec = 60;
                        l->parallel = 16;
                        assert_int_equal(steps_set_chains(l, inv), 0);
                        assert_int_equal(step_list_timeout_sec(l), k ? cases[i].release_sec : cases[i].prepare_sec);
                }
        }
}

/* The most time of a job whose devices all hang until their limits. */
TEST(test_limit_of_a_job) {
        static const Fact with_host = { "nvidia", NULL }, with_guest = { VFIO, VFIO };
        static const unsigned counts[] = { 1, 8, 16 };

        for (size_t i = 0; i < ELEMENTSOF(counts); i++) {
                _cleanup_(cleanup_inventory_free) Inventory *inv = make_inventory(counts[i]);
                _cleanup_(cleanup_step_list_free) StepList *prepare = NULL, *release = NULL;
                _cleanup_(cleanup_allocation_free) Allocation *a = NULL;
                Fact host[16], guest[16];

                for (size_t j = 0; j < counts[i]; j++) {
                        host[j] = with_host;
                        guest[j] = with_guest;
                }
                a = make_allocation(host, counts[i]);
                set_inventory(inv, host);
                assert_int_equal(steps_prepare(a, inv, &prepare), 0);
                set_inventory(inv, guest);
                assert_int_equal(steps_release(a, inv, AFTER_RELEASE_RESTORE, true, &release), 0);
                for (size_t k = 0; k < 2; k++) {
                        StepList *l = k ? release : prepare;

                        l->timeout_sec = 60;
                        l->parallel = 8;
                        assert_int_equal(steps_set_chains(l, inv), 0);
                        assert_int_equal(l->n_chains, counts[i]);
                        /* Override, unbind, bind; reset (3 times) and check, override twice, unbind, bind. */
                        assert_int_equal(step_list_timeout_sec(l), (k ? 8 : 3) * 60 * (counts[i] > 8 ? 2 : 1));
                }
        }
}

TEST(test_sentences) {
        assert_sentences("steps.txt");
}
