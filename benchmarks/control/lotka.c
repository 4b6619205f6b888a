/* lotka.dp, its derivatives by hand. */
#include "../measure.h"

enum { P = 4 }; /* parameters */
static const double H = 1e-5, AT[4] = { 0.0, 0.5, 0.5, 1.0 }, WEIGHT[4] = { 1.0, 2.0, 2.0, 1.0 };

/* The tangents of all four parameters go along. */
static void forward(long n, const double *p, double *results) {
    double a = p[0], b = p[1], c = p[2], d = p[3], x = 1.0, y = 1.0, dx[P] = { 0 }, dy[P] = { 0 };
    for (long i = 0; i < n; i++) {
        double u = 0.0, v = 0.0, du[P] = { 0 }, dv[P] = { 0 };
        double sx = 0.0, sy = 0.0, dsx[P] = { 0 }, dsy[P] = { 0 };
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            double h = AT[k] * H, X = x + h * u, Y = y + h * v, XY = X * Y;
            double own[2][P] = { { X, -XY, 0.0, 0.0 }, { 0.0, 0.0, -Y, XY } };
            for (int q = 0; q < P; q++) {
                double dX = dx[q] + h * du[q], dY = dy[q] + h * dv[q];
                du[q] = own[0][q] + (a - b * Y) * dX - b * X * dY;
                dv[q] = own[1][q] + d * Y * dX + (d * X - c) * dY;
                dsx[q] += WEIGHT[k] * du[q];
                dsy[q] += WEIGHT[k] * dv[q];
            }
            u = a * X - b * XY;
            v = d * XY - c * Y;
            sx += WEIGHT[k] * u;
            sy += WEIGHT[k] * v;
        }
        for (int q = 0; q < P; q++) {
            dx[q] += H / 6.0 * dsx[q];
            dy[q] += H / 6.0 * dsy[q];
        }
        x += H / 6.0 * sx;
        y += H / 6.0 * sy;
    }
    results[0] = x + y;
    for (int q = 0; q < P; q++) results[1 + q] = dx[q] + dy[q];
}

/* One step; `X` and `Y` are where the slopes were taken. */
static inline void step(const double *p, double *x, double *y, double *X, double *Y) {
    double a = p[0], b = p[1], c = p[2], d = p[3], u = 0.0, v = 0.0, sx = 0.0, sy = 0.0;
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        X[k] = *x + AT[k] * H * u;
        Y[k] = *y + AT[k] * H * v;
        u = a * X[k] - b * X[k] * Y[k];
        v = d * X[k] * Y[k] - c * Y[k];
        sx += WEIGHT[k] * u;
        sy += WEIGHT[k] * v;
    }
    *x += H / 6.0 * sx;
    *y += H / 6.0 * sy;
}

/* The state of each step is kept, the four stages are computed again. */
static void reverse(long n, const double *p, double *results) {
    double a = p[0], b = p[1], c = p[2], d = p[3], x = 1.0, y = 1.0, X[4], Y[4];
    double *kept = room(2 * (size_t)n);
    for (long i = 0; i < n; i++) {
        kept[2 * i] = x;
        kept[2 * i + 1] = y;
        step(p, &x, &y, X, Y);
    }
    results[0] = x + y;
    double cx = 1.0, cy = 1.0, ca = 0.0, cb = 0.0, cc = 0.0, cd = 0.0;
    for (long i = n - 1; i >= 0; i--) {
        double x0 = kept[2 * i], y0 = kept[2 * i + 1];
        step(p, &x0, &y0, X, Y);
        double gx = cx, gy = cy, au = 0.0, av = 0.0;
#pragma GCC unroll 4
        for (int k = 3; k >= 0; k--) {
            double cu = au + WEIGHT[k] * H / 6.0 * cx, cv = av + WEIGHT[k] * H / 6.0 * cy, XY = X[k] * Y[k];
            double cX = (a - b * Y[k]) * cu + d * Y[k] * cv, cY = (d * X[k] - c) * cv - b * X[k] * cu;
            ca += X[k] * cu;
            cb -= XY * cu;
            cc -= Y[k] * cv;
            cd += XY * cv;
            gx += cX;
            gy += cY;
            au = AT[k] * H * cX;
            av = AT[k] * H * cY;
        }
        cx = gx;
        cy = gy;
    }
    results[1] = ca;
    results[2] = cb;
    results[3] = cc;
    results[4] = cd;
}

static int work(const char *mode, long n, long i, double *results) {
    const double p[P] = { 1.5, 1.0 + 1e-9 * (double)i, 3.0, 1.0 };
    if (is(mode, "forward")) forward(n, p, results);
    if (is(mode, "reverse")) reverse(n, p, results);
    return 5;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
