/* checkpoint.dp, its derivative by hand: the states at the begin of segments are kept, then those of one segment. */
#include "../measure.h"

enum { M = 1000 };
static const double H = 1e-5;

static inline void step(const double *rates, const double *s, double *next) {
    for (int k = 0; k < M; k++) next[k] = s[k] + H * rates[k] * s[k] * (1.0 - s[k]);
}

static int work(const char *mode, long n, long i, double *results) {
    long size = (long)ceil(sqrt((double)n)), segments = (n + size - 1) / size;
    double *begins = room((size_t)((segments + size + 2) * M)), *states = begins + segments * M;
    static double rates[M], cs[M], cr[M];
    double two[2][M], total = 0.0;
    (void)mode;
    for (int k = 0; k < M; k++) {
        rates[k] = 0.5 + 1e-3 * (double)k + 1e-9 * (double)i;
        two[0][k] = 0.1;
        cs[k] = 1.0;
        cr[k] = 0.0;
    }
    for (long t = 0; t < n; t++) {
        if (t % size == 0) memcpy(begins + t / size * M, two[t % 2], sizeof two[0]);
        step(rates, two[t % 2], two[(t + 1) % 2]);
    }
    for (int k = 0; k < M; k++) total += two[n % 2][k];
    for (long g = segments - 1; g >= 0; g--) {
        long steps = g == segments - 1 ? n - g * size : size;
        memcpy(states, begins + g * M, sizeof two[0]);
        for (long t = 0; t + 1 < steps; t++) step(rates, states + t * M, states + (t + 1) * M);
        for (long t = steps - 1; t >= 0; t--) {
            const double *s = states + t * M;
            for (int k = 0; k < M; k++) {
                cr[k] += H * cs[k] * s[k] * (1.0 - s[k]);
                cs[k] += H * rates[k] * cs[k] * (1.0 - 2.0 * s[k]);
            }
        }
    }
    memcpy(results, (double[]){ total, cr[0], cr[500], cr[999] }, 4 * sizeof(double));
    return 4;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
