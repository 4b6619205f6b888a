/* nbody.dp, its gradient by hand; the three coordinates lie in arrays of their own.  A body's distance from itself is
 * 0, so it adds no force, and what it adds to the energy is known. */
#include "../measure.h"

static double energy(long n, const double *m, const double *x, const double *y, const double *z) {
    double total = 0.0;
    for (long i = 0; i < n; i++) {
        double sum = -100.0 * m[i];
        for (long j = 0; j < n; j++) {
            double a = x[i] - x[j], b = y[i] - y[j], c = z[i] - z[j];
            sum += m[j] / sqrt(a * a + b * b + c * c + 1e-4);
        }
        total -= 0.5 * m[i] * sum;
    }
    return total;
}

static void gradient(long n, const double *m, const double *x, const double *y, const double *z, double *restrict g) {
    for (long i = 0; i < n; i++) {
        double dx = 0.0, dy = 0.0, dz = 0.0;
        for (long j = 0; j < n; j++) {
            double a = x[i] - x[j], b = y[i] - y[j], c = z[i] - z[j], s = a * a + b * b + c * c + 1e-4;
            double f = m[j] / (s * sqrt(s));
            dx += f * a;
            dy += f * b;
            dz += f * c;
        }
        g[3 * i] = m[i] * dx;
        g[3 * i + 1] = m[i] * dy;
        g[3 * i + 2] = m[i] * dz;
    }
}

static int work(const char *mode, long n, long i, double *results) {
    double *m = room(7 * (size_t)n), *x = m + n, *g = x + 3 * n;
    for (long k = 0; k < n; k++) {
        m[k] = 0.5 + uniform(1 + i, k);
        for (long a = 0; a < 3; a++) x[a * n + k] = bell(2 + i, 3 * k + a);
    }
    start();
    if (is(mode, "function"))
        results[0] = energy(n, m, x, x + n, x + 2 * n);
    else
        gradient(n, m, x, x + n, x + 2 * n, g);
    stop();
    if (is(mode, "function")) return 1;
    digest(g, 3 * n, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
