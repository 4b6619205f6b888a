/* det.dp, its gradient by hand: of each minor once, together with its determinant. */
#include "../measure.h"

static void minor_of(int n, int j, const double *a, double *restrict out) {
    for (int i = 0; i < n - 1; i++)
        for (int k = 0; k < n - 1; k++) out[(n - 1) * i + k] = a[n * (i + 1) + (k < j ? k : k + 1)];
}

static double det(int n, const double *a) {
    if (n == 1) return a[0];
    double total = 0.0, minor[(n - 1) * (n - 1)];
    for (int j = 0; j < n; j++) {
        minor_of(n, j, a, minor);
        total += (j % 2 ? -a[j] : a[j]) * det(n - 1, minor);
    }
    return total;
}

/* The determinant; adds its cotangent's share to that of `a`. */
static double reverse(int n, const double *a, double cotangent, double *g) {
    if (n == 1) {
        g[0] += cotangent;
        return a[0];
    }
    double total = 0.0, minor[(n - 1) * (n - 1)], back[(n - 1) * (n - 1)];
    for (int j = 0; j < n; j++) {
        double sign = j % 2 ? -1.0 : 1.0;
        minor_of(n, j, a, minor);
        memset(back, 0, sizeof back);
        double d = reverse(n - 1, minor, sign * a[j] * cotangent, back);
        total += sign * a[j] * d;
        g[j] += sign * d * cotangent;
        for (int i = 0; i < n - 1; i++)
            for (int k = 0; k < n - 1; k++) g[n * (i + 1) + (k < j ? k : k + 1)] += back[(n - 1) * i + k];
    }
    return total;
}

static int work(const char *mode, long n, long i, double *results) {
    double *a = room((size_t)(2 * n * n)), *g = a + n * n;
    for (long k = 0; k < n * n; k++) a[k] = bell(1 + i, k);
    start();
    memset(g, 0, (size_t)(n * n) * sizeof *g);
    if (is(mode, "function"))
        results[0] = det((int)n, a);
    else
        reverse((int)n, a, 1.0, g);
    stop();
    if (is(mode, "function")) return 1;
    digest(g, n * n, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
