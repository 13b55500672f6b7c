/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "model/confidential.h"

#include "util/stringtable.h"

static const char *const confidential_table[_CONFIDENTIAL_MAX] = {
        [CONFIDENTIAL_NONE] = "none",
        [CONFIDENTIAL_SEV] = "sev",
        [CONFIDENTIAL_SNP] = "snp",
        [CONFIDENTIAL_TDX] = "tdx",
};
DEFINE_STRING_TABLE(confidential, Confidential, _CONFIDENTIAL_MAX)

static const char *const confidential_libvirt_name_table[_CONFIDENTIAL_MAX] = {
        [CONFIDENTIAL_SEV] = "sev",
        [CONFIDENTIAL_SNP] = "sev-snp",
        [CONFIDENTIAL_TDX] = "tdx",
};

const char *confidential_libvirt_name(Confidential c) {
        return confidential_libvirt_name_table[c];
}

static const char *const confidential_title_table[_CONFIDENTIAL_MAX] = {
        [CONFIDENTIAL_NONE] = "no confidential guest",
        [CONFIDENTIAL_SEV] = "SEV",
        [CONFIDENTIAL_SNP] = "SEV-SNP",
        [CONFIDENTIAL_TDX] = "TDX",
};

const char *confidential_title(Confidential c) {
        return confidential_title_table[c];
}

static const char *const confidential_mode_table[_CONFIDENTIAL_MODE_MAX] = {
        [CONFIDENTIAL_MODE_OFF] = "off",
        [CONFIDENTIAL_MODE_ON] = "on",
        [CONFIDENTIAL_MODE_DEVTOOLS] = "devtools",
        [CONFIDENTIAL_MODE_PROTECTED_PCIE] = "protected-pcie",
};
DEFINE_STRING_TABLE(confidential_mode, ConfidentialMode, _CONFIDENTIAL_MODE_MAX)
