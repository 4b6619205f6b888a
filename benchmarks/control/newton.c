/* newton.dp, its derivatives by hand.  In reverse, the steps of one root are kept until its derivative is taken. */
#include "../measure.h"

enum { MOST = 100 }; /* steps of one root; it takes about seven */

static double forward(double a) {
    double before = 0.0, x = 0.5 * (a + 1.0), d = 0.5;
    while (fabs(x - before) > 1e-12 * x) {
        before = x;
        d = 0.5 * (d + (1.0 - d * a / x) / x);
        x = 0.5 * (x + a / x);
    }
    return d;
}

static double reverse(double a) {
    static double xs[MOST];
    int n = 0;
    double before = 0.0, x = 0.5 * (a + 1.0), cx = 1.0, ca = 0.0;
    while (fabs(x - before) > 1e-12 * x) {
        before = xs[n++] = x;
        x = 0.5 * (x + a / x);
    }
    while (n-- > 0) {
        double y = 1.0 / xs[n];
        ca += 0.5 * cx * y;
        cx = 0.5 * cx * (1.0 - a * y * y);
    }
    return ca + 0.5 * cx;
}

static int work(const char *mode, long n, long i, double *results) {
    double *as = room(2 * (size_t)n), *ds = as + n, total = 0.0;
    for (long k = 0; k < n; k++) as[k] = 1.0 + 1e-4 * (double)(k + i);
    for (long k = 0; k < n; k++) ds[k] = is(mode, "forward") ? forward(as[k]) : reverse(as[k]);
    for (long k = 0; k < n; k++) total += ds[k];
    results[0] = total;
    return 1;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
