/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks whether a node is ready for passthrough. The result is a list of findings about its kernel, devices, CPUs,
 * memory and configuration. Pure: the checks read only CheckFacts. passthroughctl(1) documents the checks.
 */

#include "config/policy.h"
#include "model/daemon-report.h"

typedef enum CheckResult {
        CHECK_OK,
        CHECK_UNKNOWN, /* the check lacks facts, for example because a recording does not have them */
        CHECK_WARNING, /* passthrough works, but not in full: for example, a device cannot be used, or guests are slower
                          than necessary */
        CHECK_FAILURE, /* no device of the node can be allocated, or pools conflict (Policy.conflict) */
        _CHECK_RESULT_MAX,
} CheckResult;
const char *check_result_to_string(CheckResult r);

/* A setting of driverctl(8), which binds the device to the driver at boot. */
typedef struct DriverSetting {
        PciAddress device;
        char driver[64];
} DriverSetting;

#define CHECK_SETTINGS_MAX 256U

typedef struct CheckFacts {
        const Policy *policy;   /* with its inventory and configuration */
        const char *cmdline;    /* command line of the kernel; "" when unknown */
        bool unsafe_interrupts; /* VFIO may be used with an IOMMU that does not remap interrupts
                                   (allow_unsafe_interrupts) */
        bool idle_d3_disabled;  /* vfio-pci does not put unused devices in D3 (disable_idle_d3) */
        unsigned xen_cpus;      /* CPUs of the machine, which Xen reports to dom0; 0 unknown */
        bool running; /* the facts are of the running machine, not of a recording. The members below are set only if
                         this is true */
        DriverSetting settings[CHECK_SETTINGS_MAX];
        size_t n_settings;
        PciAddress managed_vfs[CHECK_SETTINGS_MAX]; /* VFs whose network interfaces NetworkManager configures */
        size_t n_managed_vfs;
        uint64_t memory_lock;       /* bytes that QEMU may lock when libvirt starts it (RLIMIT_MEMLOCK); UINT64_MAX:
                                       unlimited; 0 unknown */
        const DaemonReport *daemon; /* what the running daemon reports; NULL: it was not asked */
} CheckFacts;

typedef struct Finding {
        const char *check; /* name of the check; static */
        CheckResult result;
        char *message; /* one or more sentences */
        char *remedy;  /* sentences: what the admin can do; NULL: nothing, or nothing beyond the message */
} Finding;

/* The findings, in the order of the checks. Each check has one or more. */
typedef struct CheckReport {
        Finding *findings;
        size_t n;
        CheckResult result; /* the worst result of a finding; CHECK_UNKNOWN counts as CHECK_OK */
        bool failed;        /* a check ran out of memory, so check_node() returns -ENOMEM */
} CheckReport;

/* Runs all checks. The caller zeroes *ret before, and frees it with check_report_done(). 0 or -ENOMEM. */
int check_node(const CheckFacts *facts, CheckReport *ret);
void check_report_done(CheckReport *report);
