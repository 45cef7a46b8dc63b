/* What the programs of the tests share: a clock, and the file for what is true of a rank. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline long long nanoseconds_by(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* All ranks of a host share CLOCK_REALTIME and CLOCK_MONOTONIC. */
static inline double seconds_by(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

/* The file truth.<rank> in the directory of the run, which the test compares with the profile. */
static inline FILE *truth_of(int rank)
{
    char name[32];
    snprintf(name, sizeof name, "truth.%d", rank);
    FILE *truth = fopen(name, "w");
    if (truth == NULL) {
        perror(name);
        exit(1);
    }
    return truth;
}

#endif
