/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Carries out the request of guest/plug.h that the arguments name. Returns a PlugResult. */
int plug_run(int argc, char *argv[]);
