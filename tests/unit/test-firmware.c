/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Which of QEMU's firmware descriptors count. */

#include "unit.h"

#include "tmptree.h"
#include "virt/firmware.h"

#define DESCRIPTOR(feature) "{\"mapping\":{\"device\":\"memory\"},\"features\":[\"" feature "\"]}"

static void assert_firmware(const char *root, bool snp, bool tdx) {
        LibvirtFeatures f = { 0 };

        firmware_find(root, &f);
        assert_int_equal(f.firmware[CONFIDENTIAL_SNP], snp);
        assert_int_equal(f.firmware[CONFIDENTIAL_TDX], tdx);
}

TEST(test_directories) {
        char *root = tree_new();

        assert_firmware(root, false, false);
        tree_file(root, "usr/share/qemu/firmware/60-snp.json", DESCRIPTOR("amd-sev-snp"));
        assert_firmware(root, true, false);
        tree_file(root, "etc/qemu/firmware/60-tdx.json", DESCRIPTOR("intel-tdx"));
        assert_firmware(root, true, true);
        tree_done(root);
}

/* A file of the administrator hides the package's file of that name, even an invalid one. */
TEST(test_hidden) {
        static const char packaged[] = "usr/share/qemu/firmware/60-x.json", own[] = "etc/qemu/firmware/60-x.json";
        char *root = tree_new();

        tree_file(root, packaged, DESCRIPTOR("amd-sev-snp"));
        tree_file(root, own, DESCRIPTOR("intel-tdx"));
        assert_firmware(root, false, true);
        tree_bytes(root, own, "", 0);
        assert_firmware(root, false, false);
        tree_link(root, own, "/dev/null");
        assert_firmware(root, false, false);
        tree_unlink(root, own);
        assert_firmware(root, true, false);
        tree_done(root);
}
