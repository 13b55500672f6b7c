/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether a node is ready for passthrough: a list of findings about its kernel, devices, CPUs, memory and
 * configuration. Pure: each check only reads the facts of a scan. passthroughctl(1) documents the checks.
 */

#include "config/policy.h"
#include "model/daemon-report.h"

typedef enum CheckResult {
        CHECK_OK,
        CHECK_UNKNOWN, /* the facts are not known, because a recording cannot have them, for example */
        CHECK_WARNING, /* works, but some device is not usable or a guest is slower than necessary */
        CHECK_FAILURE, /* no device of the node can be allocated */
        _CHECK_RESULT_MAX,
} CheckResult;
const char *check_result_to_string(CheckResult r);

/* A file of driverctl, which binds a device to a driver at boot. */
typedef struct DriverSetting {
        PciAddress device;
        char driver[64];
} DriverSetting;

#define CHECK_SETTINGS_MAX 256U

typedef struct CheckFacts {
        const Policy *policy;   /* with the inventory and the configuration */
        const char *cmdline;    /* of the kernel; "" when unknown */
        bool unsafe_interrupts; /* VFIO accepts an IOMMU without interrupt remapping */
        bool idle_d3_disabled;  /* the module option disable_idle_d3 of vfio-pci is on */
        unsigned xen_cpus;      /* CPUs of the machine, which Xen tells Linux in dom0; 0 unknown */
        bool running;           /* this machine, not a recorded one: the next members are known */
        DriverSetting settings[CHECK_SETTINGS_MAX];
        size_t n_settings;
        PciAddress managed_vfs[CHECK_SETTINGS_MAX]; /* VFs with an interface that NetworkManager configures */
        size_t n_managed_vfs;
        uint64_t memory_lock; /* bytes that QEMU may lock when libvirt starts it; UINT64_MAX: unlimited; 0 unknown */
        const DaemonReport *daemon; /* NULL: not asked */
} CheckFacts;

typedef struct Finding {
        const char *check; /* name of the check, a static string */
        CheckResult result;
        char *message; /* a sentence with a full stop */
        char *remedy;  /* what the admin can do, a sentence; NULL for CHECK_OK and when nothing helps */
} Finding;

/* In the order of the checks; each check has at least one finding. */
typedef struct CheckReport {
        Finding *findings;
        size_t n;
        CheckResult result; /* the worst of the findings; CHECK_UNKNOWN counts as CHECK_OK */
        bool failed;        /* out of memory; while the checks run */
} CheckReport;

/* Runs all checks. The caller zeroes *ret before and calls check_report_done(). 0 or -ENOMEM. */
int check_node(const CheckFacts *facts, CheckReport *ret);
void check_report_done(CheckReport *report);
