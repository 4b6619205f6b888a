/* ensemble.dp, its gradient by hand: the steps of one flight are kept until its derivative is taken. */
#include "../measure.h"

enum { MOST = 100000 }; /* steps of one flight */

typedef struct { double u, v, dt; char change; } Step;
enum { SAME, HALF, MORE, TOP };

static inline double flight(double drag, double speed, Step *steps, long *count) {
    double x = 0.0, y = 0.0, u = speed, v = speed, dt = 0.01;
    long n = 0;
    while (y >= 0.0) {
        double s = drag * sqrt(u * u + v * v), a = -s * u, b = -9.81 - s * v;
        double uh = u + 0.5 * dt * a, vh = v + 0.5 * dt * b;
        double sh = drag * sqrt(uh * uh + vh * vh), ah = -sh * uh, bh = -9.81 - sh * vh;
        double error = fabs(a - ah) + fabs(b - bh), next = dt;
        char change = SAME;
        if (error > 1.0) {
            next = 0.5 * dt;
            change = HALF;
        } else if (error < 0.1) {
            change = 1.5 * dt < 0.1 ? MORE : TOP;
            next = change == MORE ? 1.5 * dt : 0.1;
        }
        if (steps) steps[n] = (Step){ u, v, dt, change };
        n++;
        x += dt * uh;
        y += dt * vh;
        u += dt * ah;
        v += dt * bh;
        dt = next;
    }
    if (count) *count = n;
    return x;
}

/* Adds what a pull (-s u, -9.81 - s v), s = drag * |(u, v)|, tells of its arguments. */
static inline void pull(double drag, double u, double v, double ca, double cb, double *cu, double *cv, double *cdrag) {
    double r = sqrt(u * u + v * v), s = drag * r, cs = -(ca * u + cb * v), k = cs * drag / r;
    *cu += k * u - ca * s;
    *cv += k * v - cb * s;
    *cdrag += cs * r;
}

static double reverse(double drag, double speed, Step *steps, double *cdrag) {
    long n;
    flight(drag, speed, steps, &n);
    double cu = 0.0, cv = 0.0, cdt = 0.0; /* x always has 1, y always 0 */
    while (n-- > 0) {
        double u = steps[n].u, v = steps[n].v, dt = steps[n].dt;
        double s = drag * sqrt(u * u + v * v), a = -s * u, b = -9.81 - s * v;
        double uh = u + 0.5 * dt * a, vh = v + 0.5 * dt * b;
        double sh = drag * sqrt(uh * uh + vh * vh), ah = -sh * uh, bh = -9.81 - sh * vh;
        static const double factors[4] = { 1.0, 0.5, 1.5, 0.0 };
        double cuh = dt, cvh = 0.0, ca = 0.0, cb = 0.0, before = cdt * factors[(int)steps[n].change];
        before += uh + cu * ah + cv * bh;
        pull(drag, uh, vh, cu * dt, cv * dt, &cuh, &cvh, cdrag);
        cu += cuh;
        cv += cvh;
        before += 0.5 * (cuh * a + cvh * b);
        ca = 0.5 * dt * cuh;
        cb = 0.5 * dt * cvh;
        pull(drag, u, v, ca, cb, &cu, &cv, cdrag);
        cdt = before;
    }
    return cu + cv;
}

static int work(const char *mode, long n, long i, double *results) {
    static Step steps[MOST];
    double *speeds = room(2 * (size_t)n), *slopes = speeds + n, cdrag = 0.0, total = 0.0;
    for (long k = 0; k < n; k++) speeds[k] = 1.0 + 50.0 * uniform(1 + i, k);
    start();
    if (is(mode, "function"))
        for (long k = 0; k < n; k++) total += flight(0.01, speeds[k], NULL, NULL);
    else
        for (long k = 0; k < n; k++) slopes[k] = reverse(0.01, speeds[k], steps, &cdrag);
    stop();
    results[0] = is(mode, "function") ? total : cdrag;
    if (is(mode, "function")) return 1;
    digest(slopes, n, results + 1);
    return 3;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
