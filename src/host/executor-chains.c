/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Divides a run among processes and watches them. The watching process touches no device, so nothing can hang it. A
 * process that was given up may live on in the kernel, so the watching process waits for it last.
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor-run.h"
#include "host/joblock.h"
#include "util/cleanup.h"
#include "util/clock.h"

typedef LaneEnd (*LaneFunction)(const Run *run, const Part *part);

/* A process of the run, for one chain or for all. */
typedef struct Lane {
        pid_t pid;
        int process; /* pidfd of the process */
        Part part;
        LaneFunction function;
        Position *at;
        bool given_up;
        size_t step; /* index of the step at which the process was given up */
        Doing doing; /* what the process did with that step */
} Lane;

typedef struct Leader {
        Run run;
        int lock;            /* lock file of the job; negative: none */
        Position *positions; /* by chain: position of the chain's process; [0]: of the process for all chains */
        Lane *lanes;
        struct pollfd *fds;  /* one for each lane, filled by wait_for_lane() */
        size_t n, n_running; /* n: processes that have not exited. n_running: those of them that were not given up */
        Part rest; /* the steps that remain for another process after the process for all chains was given up */
        bool failed, not_undone, died, timed_out;
        bool kept; /* the guest may have a device, so nothing more is undone */
} Leader;

static void report_step(const Leader *l, Report report, size_t i) {
        report.step = (uint32_t) i;
        (void) l->run.report(&report, l->run.userdata);
}

static void stop_run(Leader *l) {
        l->failed = true;
        *l->run.stop = true;
}

/* Starts the process of a lane. This process has one thread, so the child may call anything. 0 or a negative errno. */
static int fork_lane(Leader *l, Lane *lane) {
        pid_t parent = getpid();
        LaneEnd end;
        int r;

        lane->pid = fork();
        if (lane->pid < 0)
                return -errno;
        if (lane->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (getppid() != parent)
                        _exit(EXIT_FAILURE);
                if (l->lock >= 0 && lane->part.chain != ALL_CHAINS)
                        job_lock_keep_chain(l->lock, lane->part.chain);
                l->run.at = lane->at;
                end = lane->function(&l->run, &lane->part);
                (void) l->run.report(NULL, l->run.userdata);
                _exit(end);
        }
        lane->process = pidfd_open(lane->pid, 0);
        if (lane->process >= 0)
                return 0;
        r = -errno;
        (void) kill(lane->pid, SIGKILL);
        (void) waitpid(lane->pid, NULL, 0);
        /* The child may have begun its first step before the kill. */
        l->died = true;
        return r;
}

/* Returns the index of the step with which the process begins: the first step of its chain in the part, or the last for
 * run_backward(). */
static size_t first_step(const Leader *l, const Part *part, LaneFunction function) {
        const size_t n = part->end - part->first;

        for (size_t k = 0; k < n; k++) {
                size_t i = function == run_backward ? part->end - 1 - k : part->first + k;

                if (part->chain == ALL_CHAINS || l->run.steps->steps[i].chain == part->chain)
                        return i;
        }
        return part->first;
}

static void start_lane(Leader *l, const Part *part, LaneFunction function) {
        Lane lane = { .part = *part, .function = function, .at = &l->positions[part->chain] };
        int r = -ENOMEM;

        lane.at->step = (uint32_t) first_step(l, part, function);
        lane.at->doing = function == run_backward ? DOING_UNDO : DOING_STEP;
        lane.at->since = clock_usec(CLOCK_MONOTONIC);
        if (ARRAY_RESERVE(l->lanes, l->n) >= 0 && ARRAY_RESERVE(l->fds, l->n) >= 0)
                r = fork_lane(l, &lane);
        if (r >= 0) {
                l->lanes[l->n++] = lane;
                l->n_running++;
                return;
        }
        stop_run(l);
        l->not_undone |= function == run_backward;
        report_step(l, (Report) { .kind = REPORT_FAILED, .error = r }, part->first);
}

static uint64_t limit_of(const Leader *l, const Lane *lane) {
        const StepList *steps = l->run.steps;
        unsigned sec = lane->at->doing != DOING_READ && lane->at->step < steps->n
                               ? step_timeout_sec(steps, &steps->steps[lane->at->step])
                               : steps->timeout_sec;

        return sec > 0 ? lane->at->since + sec * UINT64_C(1000000) : UINT64_MAX;
}

/* Marks the device of a given-up step as failed, and the other devices of the step's chain that have steps left. */
static void condemn(const Leader *l, size_t at) {
        const StepList *steps = l->run.steps;
        const Step *s = &steps->steps[at];

        l->run.done[at].device_failed = true;
        run_report_device_failed(&l->run, s, -ETIMEDOUT);
        for (size_t i = 0; s->chain > 0 && i < steps->n; i++) {
                PciAddress device = step_failed_device(&steps->steps[i]);

                if (steps->steps[i].chain != s->chain || l->run.done[i].begun ||
                    run_device_has_failed(&l->run, device, step_list_end(steps)))
                        continue;
                l->run.done[i].device_failed = true;
                run_report_device_failed(&l->run, &steps->steps[i], -ECANCELED);
        }
}

/* Leaves out the chain of a given-up step from now on: the steps of the chain are neither run nor undone. If the step
 * is a STEP_PLUG, nothing at all is undone, because the guest may have the device. */
static void abandon(Leader *l, size_t at) {
        const Step *s = &l->run.steps->steps[at];

        l->run.given_up[s->chain] = s->chain > 0;
        l->kept = l->kept || s->kind == STEP_PLUG;
}

/* Gives up a process. SIGKILL does not cancel a write in the kernel: the process dies when the kernel returns from the
 * write. */
static void give_up(Leader *l, Lane *lane) {
        const StepList *steps = l->run.steps;
        RunResult result = RUN_DONE;
        const Step *s;
        size_t at;
        Doing doing;

        /* Kill first, so that the process begins no other step after its position is read. */
        (void) kill(lane->pid, SIGKILL);
        lane->given_up = true;
        lane->step = at = lane->at->step;
        lane->doing = doing = (Doing) lane->at->doing;
        s = &steps->steps[at];
        l->n_running--;
        abandon(l, at);
        if (lane->part.chain == ALL_CHAINS) {
                l->rest = lane->part;
                l->rest.looks = false;
                if (doing == DOING_UNDO)
                        l->rest.end = at;
                else
                        l->rest.first = at + 1;
        }
        if (doing == DOING_STEP && step_may_lack(s, -ETIMEDOUT)) {
                report_step(l, (Report) { .kind = REPORT_LACKING, .error = -ETIMEDOUT }, at);
                *l->run.stop = true;
        } else if (doing == DOING_STEP && step_properties[s->kind].failure == STEP_FAILS_DEVICE)
                condemn(l, at);
        else {
                l->timed_out = true;
                result = RUN_TIMED_OUT;
                /* Later steps rely on a step that runs alone, as an unbind relies on the guest's release of the
                 * device. */
                if (!steps->outlives_stuck || s->chain == 0)
                        *l->run.stop = true;
        }
        report_step(l, (Report) { .kind = REPORT_GIVEN_UP, .status = result, .doing = doing }, at);
}

static void take_end(Leader *l, const Lane *lane, int status) {
        const size_t at = lane->at->step;

        if (lane->given_up) {
                report_step(l, (Report) { .kind = REPORT_RETURNED, .doing = lane->doing }, lane->step);
                return;
        }
        l->n_running--;
        if (lane->part.chain != ALL_CHAINS)
                report_step(l, (Report) { .kind = REPORT_CHAIN_ENDED }, at);
        switch (WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE) {
        case LANE_FAILED:
                stop_run(l);
                break;
        case LANE_LACKING:
                *l->run.stop = true;
                break;
        case LANE_KEPT:
                l->kept = true;
                l->not_undone = true;
                break;
        case LANE_NOT_UNDONE:
                l->not_undone = true;
                break;
        case LANE_DONE:
                break;
        default:
                l->died = true;
                *l->run.stop = true;
                abandon(l, at);
                report_step(l, (Report) { .kind = REPORT_GIVEN_UP, .status = RUN_DIRTY, .doing = lane->at->doing }, at);
        }
}

/* Waits until a process exits or its limit passes, and handles that. */
static void wait_for_lane(Leader *l) {
        struct pollfd *fds = l->fds;
        uint64_t now = clock_usec(CLOCK_MONOTONIC), first = UINT64_MAX;
        int r;

        /* A step that begins during the wait has at least JobTimeoutSec=, so the wait misses no limit. */
        if (l->run.steps->timeout_sec > 0)
                first = now + l->run.steps->timeout_sec * UINT64_C(1000000);
        for (size_t i = 0; i < l->n; i++) {
                fds[i] = (struct pollfd) { .fd = l->lanes[i].process, .events = POLLIN };
                if (!l->lanes[i].given_up)
                        first = MIN(first, limit_of(l, &l->lanes[i]));
        }
        r = poll(fds, l->n,
                 first == UINT64_MAX ? -1
                 : first <= now      ? 0
                                     : (int) MIN((first - now) / 1000 + 1, (uint64_t) INT_MAX));
        for (size_t i = l->n; i-- > 0;) {
                Lane lane = l->lanes[i];
                int status;

                if (r > 0 && fds[i].revents && waitpid(lane.pid, &status, 0) == lane.pid) {
                        (void) close(lane.process);
                        l->lanes[i] = l->lanes[--l->n];
                        take_end(l, &lane, status);
                } else if (!lane.given_up && clock_usec(CLOCK_MONOTONIC) >= limit_of(l, &lane))
                        give_up(l, &l->lanes[i]);
        }
}

static void wait_for_running(Leader *l, size_t most) {
        while (l->n_running > most)
                wait_for_lane(l);
}

static bool has_chain(const Leader *l, const Part *part) {
        for (size_t i = part->first; i < part->end; i++)
                if (l->run.steps->steps[i].chain == part->chain)
                        return true;
        return false;
}

/* Runs or undoes all steps of the part, in order, in one process. If that process is given up, another one does the
 * rest. */
static void run_in_order(Leader *l, Part part, LaneFunction function) {
        part.chain = ALL_CHAINS;
        do {
                l->rest = (Part) { 0 };
                start_lane(l, &part, function);
                wait_for_running(l, 0);
                part = l->rest;
        } while (part.first < part.end && (function == run_backward ? !l->kept : !*l->run.stop));
}

static void run_side_by_side(Leader *l, Part part, LaneFunction function) {
        for (part.chain = 1; part.chain <= l->run.steps->n_chains; part.chain++) {
                if (l->run.given_up[part.chain] || !has_chain(l, &part))
                        continue;
                wait_for_running(l, l->run.steps->parallel - 1);
                if (function == run_forward && *l->run.stop)
                        break;
                start_lane(l, &part, function);
        }
        wait_for_running(l, 0);
}

static void run_part(Leader *l, Part part, LaneFunction function) {
        if (l->run.steps->steps[part.first].chain > 0)
                run_side_by_side(l, part, function);
        else
                run_in_order(l, part, function);
}

static void advance(Leader *l) {
        const StepList *steps = l->run.steps;
        bool looks = steps->checks_health || steps->reports_found_state;

        if (steps->parallel <= 1 || steps->n_chains <= 1) {
                run_in_order(l, (Part) { .end = steps->n, .looks = looks }, run_forward);
                return;
        }
        if (looks && steps->steps[0].chain > 0) {
                run_in_order(l, (Part) { .looks = true }, run_forward);
                looks = false;
        }
        for (size_t i = 0; i < steps->n && !*l->run.stop; i = step_list_part_end(steps, i)) {
                run_part(l, (Part) { .first = i, .end = step_list_part_end(steps, i), .looks = looks }, run_forward);
                looks = false;
        }
}

static bool has_begun(const Leader *l, size_t first, size_t end) {
        for (size_t i = first; i < end; i++)
                if (l->run.done[i].begun)
                        return true;
        return false;
}

static size_t part_start(const StepList *steps, size_t end) {
        size_t first = end - 1;

        while (first > 0 && (steps->steps[first - 1].chain > 0) == (steps->steps[end - 1].chain > 0))
                first--;
        return first;
}

static void retreat(Leader *l) {
        const StepList *steps = l->run.steps;

        if (steps->parallel <= 1 || steps->n_chains <= 1) {
                if (!l->kept && has_begun(l, 0, steps->n))
                        run_in_order(l, (Part) { .end = steps->n }, run_backward);
                return;
        }
        for (size_t end = steps->n, first; end > 0 && !l->kept; end = first) {
                first = part_start(steps, end);
                if (has_begun(l, first, end))
                        run_part(l, (Part) { .first = first, .end = end }, run_backward);
        }
}

static RunResult run_list(Leader *l) {
        advance(l);
        if (l->failed || l->died || (l->timed_out && !l->run.steps->outlives_stuck))
                retreat(l);
        if (l->died)
                return RUN_DIRTY;
        if (l->timed_out)
                return RUN_TIMED_OUT;
        if (l->not_undone)
                return RUN_DIRTY;
        return l->failed ? RUN_FAILED : RUN_DONE;
}

RunResult executor_run(const Sysfs *fs, const StepList *steps, int lock, ReportFunction report, void *userdata) {
        Leader l = { .run = { .fs = fs, .steps = steps, .report = report, .userdata = userdata }, .lock = lock };
        const size_t positions = (steps->n_chains + 1) * sizeof(*l.positions);
        const size_t results = steps->n * sizeof(*l.run.done);
        RunResult result = RUN_FAILED;
        char *shared;

        shared = mmap(NULL, positions + results + sizeof(*l.run.stop), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        l.run.given_up = calloc(steps->n_chains + 1, sizeof(*l.run.given_up));
        if (shared != MAP_FAILED && l.run.given_up) {
                l.positions = (Position *) shared;
                l.run.done = (StepResult *) (shared + positions);
                l.run.stop = (atomic_bool *) (shared + positions + results);
                result = run_list(&l);
        }
        if (l.n > 0)
                (void) report(&(Report) { .kind = REPORT_ENDED, .status = result }, userdata);
        while (l.n > 0)
                wait_for_lane(&l);
        free(l.lanes);
        free(l.fds);
        free(l.run.given_up);
        if (shared != MAP_FAILED)
                (void) munmap(shared, positions + results + sizeof(*l.run.stop));
        return result;
}
