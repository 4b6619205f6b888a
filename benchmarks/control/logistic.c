/* logistic.dp, its derivatives by hand. */
#include "../measure.h"

static void forward(long n, double r, double *results) {
    double x = 0.5, d = 0.0;
    for (long i = 0; i < n; i++) {
        d = x * (1.0 - x) + r * (1.0 - 2.0 * x) * d;
        x = r * x * (1.0 - x);
    }
    results[0] = x;
    results[1] = d;
}

static void reverse(long n, double r, double *results) {
    double *xs = room((size_t)n), x = 0.5, cx = 1.0, cr = 0.0;
    for (long i = 0; i < n; i++) {
        xs[i] = x;
        x = r * x * (1.0 - x);
    }
    for (long i = n - 1; i >= 0; i--) {
        cr += cx * xs[i] * (1.0 - xs[i]);
        cx *= r * (1.0 - 2.0 * xs[i]);
    }
    results[0] = x;
    results[1] = cr;
}

static int work(const char *mode, long n, long i, double *results) {
    double r = 3.2 + 1e-9 * (double)i;
    if (is(mode, "forward")) forward(n, r, results);
    if (is(mode, "reverse")) reverse(n, r, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
