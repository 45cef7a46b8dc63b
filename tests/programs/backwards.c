/* To be preloaded: the clocks that are named in TEST_CLOCK, "real" or "all", are ten seconds earlier at
 * each reading. With a number there, the time of day is this many seconds ahead, as on a host whose clock is wrong. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static atomic_long looks;
    const char *which = getenv("TEST_CLOCK");
    int result = syscall(SYS_clock_gettime, clock, time);
    if (which && atol(which))
        time->tv_sec += clock == CLOCK_REALTIME ? atol(which) : 0;
    else if (which && (clock == CLOCK_REALTIME || strcmp(which, "all") == 0))
        time->tv_sec -= 10 * atomic_fetch_add(&looks, 1);
    return result;
}
