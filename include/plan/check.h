/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks whether a node is ready for passthrough. The result is a list of findings about its kernel, devices, CPUs,
 * memory and configuration. Pure: each check only reads the facts of a scan. passthroughctl(1) documents the checks.
 */

#include "config/policy.h"
#include "model/daemon-report.h"

typedef enum CheckResult {
        CHECK_OK,
        CHECK_UNKNOWN, /* the facts are unknown, for example because recordings do not have them */
        CHECK_WARNING, /* passthrough works, but a device cannot be used or guests are slower than necessary */
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
        const Policy *policy;   /* it refers to the inventory and the configuration */
        const char *cmdline;    /* command line of the kernel; "" when unknown */
        bool unsafe_interrupts; /* VFIO accepts an IOMMU without interrupt remapping */
        bool idle_d3_disabled;  /* the module option disable_idle_d3 of vfio-pci is on */
        unsigned xen_cpus;      /* CPUs of the machine, which Xen tells Linux in dom0; 0 unknown */
        bool running;           /* this is the running machine, not a recorded one, so the next members are known */
        DriverSetting settings[CHECK_SETTINGS_MAX];
        size_t n_settings;
        PciAddress managed_vfs[CHECK_SETTINGS_MAX]; /* VFs whose network interface NetworkManager configures */
        size_t n_managed_vfs;
        uint64_t memory_lock;       /* bytes that QEMU may lock when libvirt starts it (RLIMIT_MEMLOCK); UINT64_MAX:
                                       unlimited; 0 unknown */
        const DaemonReport *daemon; /* report of the daemon; NULL: it was not asked */
} CheckFacts;

typedef struct Finding {
        const char *check; /* name of the check, a static string */
        CheckResult result;
        char *message; /* a sentence with a full stop */
        char *remedy;  /* what the admin can do, a sentence; NULL for CHECK_OK and when nothing helps */
} Finding;

/* The findings in the order of the checks; each check has at least one. */
typedef struct CheckReport {
        Finding *findings;
        size_t n;
        CheckResult result; /* the worst of the findings; CHECK_UNKNOWN counts as CHECK_OK */
        bool failed;        /* used while the checks run: out of memory */
} CheckReport;

/* Runs all checks. The caller zeroes *ret before and calls check_report_done(). 0 or -ENOMEM. */
int check_node(const CheckFacts *facts, CheckReport *ret);
void check_report_done(CheckReport *report);
