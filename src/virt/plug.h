/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Serves one request of guest/plug.h, given as arguments. Returns a PlugResult. */
int plug_run(int argc, char *argv[]);
