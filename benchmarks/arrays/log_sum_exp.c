/* log_sum_exp.dp, its gradient by hand. */
#include "../measure.h"

static double log_sum_exp(long n, const double *xs) {
    double top = xs[0], sum = 0.0;
    for (long k = 1; k < n; k++) top = xs[k] > top ? xs[k] : top;
    for (long k = 0; k < n; k++) sum += exp(xs[k] - top);
    return top + log(sum);
}

static void gradient(long n, const double *xs, double *restrict g) {
    double top = xs[0], sum = 0.0;
    for (long k = 1; k < n; k++) top = xs[k] > top ? xs[k] : top;
    for (long k = 0; k < n; k++) sum += g[k] = exp(xs[k] - top);
    for (long k = 0; k < n; k++) g[k] *= 1.0 / sum;
}

static int work(const char *mode, long n, long i, double *results) {
    double *xs = room(2 * (size_t)n), *g = xs + n;
    for (long k = 0; k < n; k++) xs[k] = 3.0 * bell(1 + i, k);
    start();
    if (is(mode, "function"))
        results[0] = log_sum_exp(n, xs);
    else
        gradient(n, xs, g);
    stop();
    if (is(mode, "function")) return 1;
    digest(g, n, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
