/* Runs a benchmark: `NAME MODE SIZE REPEATS` prints, for each repetition, its seconds of processor time, its seconds on
 * the clock, and its results.  Memory that a repetition needs is asked for once and used again, as DPL's runtime does. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Room for so many doubles, the same each time. */
static inline double *room(size_t count) {
    static double *memory;
    static size_t most;
    if (count > most) {
        free(memory);
        memory = aligned_alloc(64, (count * sizeof(double) + 63) / 64 * 64);
        most = count;
    }
    return memory;
}

/* What lies between `start` and `stop` is timed; all of a repetition, where they are not called. */
static double begun[2], taken[2];

static inline void start(void) {
    begun[0] = seconds(CLOCK_PROCESS_CPUTIME_ID);
    begun[1] = seconds(CLOCK_MONOTONIC);
}

static inline void stop(void) {
    taken[0] = seconds(CLOCK_PROCESS_CPUTIME_ID) - begun[0];
    taken[1] = seconds(CLOCK_MONOTONIC) - begun[1];
}

/* Repetition `i` in a mode; gives the number of results. */
typedef int Work(const char *mode, long size, long i, double *results);

static int measure(Work *work, int count, char **arguments) {
    if (count != 4) return 2;
    long size = atol(arguments[2]), repeats = atol(arguments[3]);
    for (long i = 0; i < repeats; i++) {
        double results[16] = { 0.0 };
        taken[0] = 0.0;
        start();
        int n = work(arguments[1], size, i, results);
        if (taken[0] == 0.0) stop();
        printf("%.9f %.9f", taken[0], taken[1]);
        for (int k = 0; k < n; k++) printf(" %.17g", results[k]);
        printf("\n");
    }
    return 0;
}

static inline int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* Number `i` of a sequence between 0 and 1, one for each seed. */
static inline int64_t mix(int64_t h) { return h * h % 2147483647; }

static inline double uniform(int64_t seed, int64_t i) {
    int64_t h = mix((1000003 * i + 7919 * seed + 12345) % 2147483647);
    return 4.656612875245797e-10 * (double)mix((48271 * h + i) % 2147483647);
}

/* The same with mean 0, variance 1 and roughly the form of a bell. */
static inline double bell(int64_t seed, int64_t i) {
    return 2.0 * (uniform(seed, 3 * i) + uniform(seed, 3 * i + 1) + uniform(seed, 3 * i + 2)) - 3.0;
}

/* Two numbers that differ if the array differs. */
static inline void digest(const double *xs, long n, double *results) {
    double weighted = 0.0, squares = 0.0;
    for (long i = 0; i < n; i++) {
        weighted += xs[i] * (1.0 + (double)(i % 7));
        squares += xs[i] * xs[i];
    }
    results[0] = weighted;
    results[1] = squares;
}
