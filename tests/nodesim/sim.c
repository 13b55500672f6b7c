/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sim.h"

#include "driver.h"
#include "fault.h"
#include "park.h"
#include "uevent.h"

void sim_done(Sim *sim) {
        uevents_close(sim);
        device_forget(sim, NULL);
        faults_reset(sim);
        nodes_free();
        for (size_t i = 0; i < sim->n_drivers; i++)
                driver_free(sim->drivers[i]);
        for (size_t i = 0; i < sim->n_vfs; i++) {
                free(sim->vfs[i].pf);
                free(sim->vfs[i].device);
                free(sim->vfs[i].reset_method);
        }
        free(sim->locks);
        free(sim->drivers);
        free(sim->vfs);
        free(sim->parked);
        free(sim->log);
        free(sim->faults);
        if (sim->log_file)
                fclose(sim->log_file);
}
