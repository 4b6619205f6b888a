/* black_scholes.dp, its derivatives by hand. */
#include "../measure.h"

static double cdf(double x) { return 0.5 * (1.0 + erf(x * 0.7071067811865476)); }

static void prices(long n, const double *s, const double *k, const double *t, const double *r, const double *v,
                   double *restrict value) {
    for (long i = 0; i < n; i++) {
        double deviation = v[i] * sqrt(t[i]);
        double d = (log(s[i] / k[i]) + (r[i] + 0.5 * v[i] * v[i]) * t[i]) / deviation;
        value[i] = s[i] * cdf(d) - k[i] * exp(-r[i] * t[i]) * cdf(d - deviation);
    }
}

static void greeks(long n, const double *s, const double *k, const double *t, const double *r, const double *v,
                   double *restrict value, double *restrict ds, double *restrict dk, double *restrict dt,
                   double *restrict dr, double *restrict dv) {
    for (long i = 0; i < n; i++) {
        double root = sqrt(t[i]), deviation = v[i] * root;
        double d = (log(s[i] / k[i]) + (r[i] + 0.5 * v[i] * v[i]) * t[i]) / deviation;
        double above = cdf(d), discount = exp(-r[i] * t[i]) * cdf(d - deviation), paid = k[i] * discount;
        double density = s[i] * 0.3989422804014327 * exp(-0.5 * d * d);
        value[i] = s[i] * above - paid;
        ds[i] = above;
        dk[i] = -discount;
        dt[i] = 0.5 * density * v[i] / root + r[i] * paid;
        dr[i] = t[i] * paid;
        dv[i] = density * root;
    }
}

static int work(const char *mode, long n, long i, double *results) {
    static const double low[5] = { 50.0, 50.0, 0.1, 0.0, 0.1 }, high[5] = { 150.0, 150.0, 2.0, 0.1, 0.5 };
    double *in = room(11 * (size_t)n), *out = in + 5 * n;
    for (long k = 0; k < 5; k++)
        for (long j = 0; j < n; j++) in[k * n + j] = low[k] + (high[k] - low[k]) * uniform(10 * (k + 1) + i, j);
    int arrays = is(mode, "function") ? 1 : 6;
    start();
    if (arrays == 1)
        prices(n, in, in + n, in + 2 * n, in + 3 * n, in + 4 * n, out);
    else
        greeks(n, in, in + n, in + 2 * n, in + 3 * n, in + 4 * n, out, out + n, out + 2 * n, out + 3 * n, out + 4 * n,
               out + 5 * n);
    stop();
    for (int k = 0; k < arrays; k++) digest(out + k * n, n, results + 2 * k);
    return 2 * arrays;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
