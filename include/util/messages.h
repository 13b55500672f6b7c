/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Journal message ids: first those of the messages of the daemon, most of which an admin has to act on, then those of
 * events. conf/passthroughd.catalog explains each id and its remedy. */

#define MESSAGE_CONFIG_LINE    "51ca76fe291d44f1a53287d55bd24f0c" /* a line of the configuration is ignored */
#define MESSAGE_NONE_OFFERED   "9bae8991a60c45489e8dec9f47e92d90" /* no device is offered until the cause is fixed */
#define MESSAGE_CONFIG_REFUSED "39356a9ac35d4f3c869559f72a82c8c8" /* the configuration offers hardware twice */
#define MESSAGE_READ_ONLY      "58145d06ef484228aaaffa47bd143f41" /* the ledger on disk cannot be trusted */
#define MESSAGE_LEDGER_WRITE   "718deb087ccf47f7843229b0fdf7f591" /* the ledger cannot be written */
#define MESSAGE_JOB_FAILED     "d2612987e2e449b7b24dffa42f3448bf" /* a job could not change the hardware */
#define MESSAGE_DEVICE_STUCK   "61f6305106fb4169af3732d09bdbf71e" /* a job's access to the device hangs in the kernel */
#define MESSAGE_DEVIATION      "2dad4595569a4d5ea7f2f9edd0c7896c" /* the hardware of an allocation has changed */
#define MESSAGE_DEVICE_MISSING "69062f52b5bc415d93879bd8ca9a3d1f" /* an allocated device is missing from the node */
#define MESSAGE_NOT_PREPARED   "9bfe38e651e04c45bff700d8a751d07a" /* VFs not created or set up, or a device not bound */
#define MESSAGE_BUS_LOST       "709db4ffee474c84aa246497f7ad24ec" /* the system bus cannot be used */
#define MESSAGE_BUS_BACK       "4ccd46a5379343259f9b2380b85888bf" /* the daemon has its bus name again */
#define MESSAGE_LIBVIRT_LOST   "0978dac2c99045b3aab188c988229484" /* libvirt no longer reports which domains run */
#define MESSAGE_LIBVIRT_BACK   "c7e2b0a1004244e2b322f84548fabe7f" /* libvirt reports again which domains run */
#define MESSAGE_CALL_REFUSED   "523a2ce89dd54850a4253d6225c7c081" /* a caller exceeds a limit or lacks a right */
#define MESSAGE_SERVICE_DOWN   "293c00eda1614f25970a08fd7f640f42" /* a stopped service did not start again */
#define MESSAGE_ENDPOINT_DOWN  "6f51639932d94bb7afe215eef4cbc52d" /* an endpoint accepts no connection */
#define MESSAGE_ENDPOINT_UP    "24b17ebff86b4245b6e3e2b9e05afd22" /* an endpoint accepts connections again */

/* Events of devices and allocations. 'passthroughctl history' shows these, MESSAGE_DEVICE_STUCK and
 * MESSAGE_DEVICE_MISSING. */
#define MESSAGE_DEVICE_RESERVED    "0a55567c68eb444096db03206ee3badb" /* the device is reserved for an allocation */
#define MESSAGE_DEVICE_READY       "8e32e378a7f74d31889f40e559813cb0" /* the device is ready for a guest */
#define MESSAGE_DEVICE_RELEASED    "898f1cac73aa4c709c3e15914295d7a9" /* the device is free again */
#define MESSAGE_LEASE_EXPIRED      "5b6f1c1f0d3a4e0c9c1f2f6a8d7e4b31" /* a lease ended, and with it the allocation */
#define MESSAGE_DEVICE_FAILED      "ed65ba209f8f4a6bb61f373032d2d295" /* a job for the device failed */
#define MESSAGE_DEVICE_RESUMED     "1c48f4ef5f8b4c90bed112bdc2d6b14f" /* an interrupted job continues */
#define MESSAGE_DEVICE_UNSTUCK     "166811f4cc6145c4ae7571899b66a15f" /* the access that hung has returned */
#define MESSAGE_DEVICE_CONTESTED   "899583210c754dfea6a55a97f9c7c1fa" /* another program uses or changes the device */
#define MESSAGE_DEVICE_UNCONTESTED "b5ce2993404b48e381f0c71f90dc8f95" /* the device is no longer contested */
#define MESSAGE_VFS_CREATED        "040689b0bd03498a862161588f842472" /* VFs were created on a PF */
#define MESSAGE_VFS_CHANGED        "867f3339590d4a33969163547353825e" /* the number of VFs of a PF changed */
#define MESSAGE_VFS_REMOVED        "e9569c069ad040a78c903fd4b6542144" /* all VFs of a PF were removed */
#define MESSAGE_HARDWARE_CHANGED   "266f2ac3f2ff4120a49084763374a87b" /* another card is at the address */
#define MESSAGE_DEVICE_BACK        "84244766d63146afa5ff8aa2f2661421" /* a missing device is back */
#define MESSAGE_DEVICE_MOVED       "8a58cf3e34d34161b03222a9e8324eb4" /* a card's address changed after a boot */
#define MESSAGE_DEVICE_ACCEPTED    "a896bd2576094225ae15921f26c2fe76" /* an admin accepted another card in its place */
#define MESSAGE_DEVICE_QUARANTINED "bbc9e86c38454a51b589d1d46e71e50d" /* the device is in quarantine */
#define MESSAGE_DEVICE_CLEARED     "2823b521baa7460d8e4901108704339d" /* an admin cleared the device from quarantine */
#define MESSAGE_DEVICE_UNHEALTHY   "e40cff5cfb5f4facac51299c40e2d627" /* the device is faulty (model/device-status.h) */
#define MESSAGE_DEVICE_HEALTHY     "cfde76e2366c491ca2f44b146f8aa163" /* the device is healthy again */
#define MESSAGE_PROMISE_BROKEN     "9a69305e07014bc0a2eac7cbdc7a3ac2" /* no guest can use the allocation as reserved */
#define MESSAGE_PROMISE_KEPT       "14bf3a3fdd214ff8a9b1296c8033f8c4" /* guests can use the allocation again */
