/* least_squares.dp, its gradient by hand: each row of the matrix is read once. */
#include "../measure.h"

enum { D = 100 };

static double away(const double *row, double b, const double *x) {
    double sum = -b;
    for (int j = 0; j < D; j++) sum += row[j] * x[j];
    return sum;
}

static double loss(long n, const double *a, const double *b, const double *x) {
    double total = 0.0;
    for (long k = 0; k < n; k++) {
        double e = away(a + D * k, b[k], x);
        total += 0.5 * e * e;
    }
    return total;
}

static void gradient(long n, const double *a, const double *b, const double *x, double *restrict g) {
    memset(g, 0, D * sizeof *g);
    for (long k = 0; k < n; k++) {
        double e = away(a + D * k, b[k], x);
        for (int j = 0; j < D; j++) g[j] += e * a[D * k + j];
    }
}

static int work(const char *mode, long n, long i, double *results) {
    double *a = room((size_t)((D + 1) * n)), *b = a + D * n, x[D], g[D];
    for (long k = 0; k < D * n; k++) a[k] = bell(1 + i, k);
    for (long k = 0; k < n; k++) b[k] = bell(2 + i, k);
    for (long j = 0; j < D; j++) x[j] = bell(3 + i, j);
    start();
    if (is(mode, "function"))
        results[0] = loss(n, a, b, x);
    else
        gradient(n, a, b, x, g);
    stop();
    if (is(mode, "function")) return 1;
    digest(g, D, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
