/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded into a program with an sd-event loop, this runs its clocks CLOCK_RATE times as fast, so that an hour takes
 * seconds: the times of clock_gettime(), and the ends of timerfd_settime() timers. Time begins at the program's start.
 * System calls replace the real functions, because a sanitizer asks for the time before dlsym() can be called.
 */

#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define VISIBLE __attribute__((visibility("default")))

#define SECOND     INT64_C(1000000000)
#define FILES_MAX  1024
#define CLOCKS_MAX 16 /* more than Linux has */

static clockid_t clock_of[FILES_MAX]; /* by the timer's descriptor */
static int64_t start_of[CLOCKS_MAX];
static int64_t rate = 1;

VISIBLE int clock_gettime(clockid_t clock, struct timespec *ret);
VISIBLE int timerfd_create(int clock, int flags);
VISIBLE int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret);

static int64_t nanoseconds(struct timespec t) {
        return t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec timespec_of(int64_t n) {
        return (struct timespec) { .tv_sec = n / SECOND, .tv_nsec = n % SECOND };
}

/* Returns whether the clock is changed. Clocks of processes and threads count CPU time. */
static int has_rate(clockid_t clock) {
        return clock >= 0 && clock < CLOCKS_MAX && clock != CLOCK_PROCESS_CPUTIME_ID &&
               clock != CLOCK_THREAD_CPUTIME_ID;
}

static __attribute__((constructor)) void start(void) {
        const char *text = getenv("CLOCK_RATE");
        struct timespec now;

        if (text && atoi(text) > 0)
                rate = atoi(text);
        for (clockid_t c = 0; c < CLOCKS_MAX; c++)
                if (has_rate(c) && (int) syscall(SYS_clock_gettime, c, &now) == 0)
                        start_of[c] = nanoseconds(now);
}

int clock_gettime(clockid_t clock, struct timespec *ret) {
        int r = (int) syscall(SYS_clock_gettime, clock, ret);

        if (r == 0 && has_rate(clock) && start_of[clock] > 0)
                *ret = timespec_of(start_of[clock] + (nanoseconds(*ret) - start_of[clock]) * rate);
        return r;
}

int timerfd_create(int clock, int flags) {
        int fd = (int) syscall(SYS_timerfd_create, clock, flags);

        if (fd >= 0 && fd < FILES_MAX)
                clock_of[fd] = clock;
        return fd;
}

/* Converts the first time of a timer. 0 would disarm the timer, so a time below a nanosecond is not rounded to 0. */
static int64_t slow_down(int fd, int flags, int64_t value) {
        int64_t begin = flags & TFD_TIMER_ABSTIME && fd < FILES_MAX ? start_of[clock_of[fd]] : 0;

        return value <= begin ? value : begin + (value - begin) / rate + 1;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *ret) {
        struct itimerspec real = {
                .it_value = timespec_of(slow_down(fd, flags, nanoseconds(value->it_value))),
                .it_interval = timespec_of(nanoseconds(value->it_interval) / rate),
        };

        return (int) syscall(SYS_timerfd_settime, fd, flags, &real, ret);
}
