/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* MESSAGE_ID= of what an admin has to act on. conf/passthroughd.catalog says what each means and what to do. */

#define MESSAGE_CONFIG_LINE    "51ca76fe291d44f1a53287d55bd24f0c" /* a line of the configuration is ignored */
#define MESSAGE_HELD_BACK      "9bae8991a60c45489e8dec9f47e92d90" /* nothing is offered until a line is mended */
#define MESSAGE_CONFIG_REFUSED "39356a9ac35d4f3c869559f72a82c8c8" /* it would offer hardware twice */
#define MESSAGE_READ_ONLY      "58145d06ef484228aaaffa47bd143f41" /* the ledger on disk is damaged or newer */
#define MESSAGE_LEDGER_WRITE   "718deb087ccf47f7843229b0fdf7f591" /* the ledger cannot be written */
#define MESSAGE_JOB_FAILED     "d2612987e2e449b7b24dffa42f3448bf" /* hardware did not do as it was told */
#define MESSAGE_DEVICE_STUCK   "61f6305106fb4169af3732d09bdbf71e" /* a write to the kernel does not return */
#define MESSAGE_OUT_OF_ORDER   "2dad4595569a4d5ea7f2f9edd0c7896c" /* an allocation is not what it was promised to be */
#define MESSAGE_DEVICE_MISSING "69062f52b5bc415d93879bd8ca9a3d1f" /* an allocated device has gone from the node */
#define MESSAGE_NOT_PREPARED   "9bfe38e651e04c45bff700d8a751d07a" /* VFs not created, a device not bound */
