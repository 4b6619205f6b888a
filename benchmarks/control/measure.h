/* Runs a benchmark: `NAME MODE SIZE REPEATS` prints, for each repetition, its seconds and its results.  Memory that a
 * repetition needs is asked for once and used again, as DPL's runtime does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Room for so many doubles, the same each time. */
static inline double *room(size_t count) {
    static double *memory;
    static size_t most;
    if (count > most) {
        free(memory);
        memory = malloc(count * sizeof(double));
        most = count;
    }
    return memory;
}

/* Gives the number of results. */
typedef int Work(const char *mode, long size, long i, double *results);

static int measure(Work *work, int count, char **arguments) {
    if (count != 4) return 2;
    long size = atol(arguments[2]), repeats = atol(arguments[3]);
    for (long i = 0; i < repeats; i++) {
        double results[8] = { 0.0 }, start = seconds();
        int n = work(arguments[1], size, i, results);
        printf("%.9f", seconds() - start);
        for (int k = 0; k < n; k++) printf(" %.17g", results[k]);
        printf("\n");
    }
    return 0;
}

static inline int is(const char *a, const char *b) { return strcmp(a, b) == 0; }
