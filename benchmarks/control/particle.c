/* particle.dp, its derivatives by hand: of the potential, and of the landing, forward or in reverse as the mode says. */
#include "../measure.h"

typedef struct { double x, y, u, v; } State;

static const double DT = 0.1;
static const State START = { 0.0, 8.0, 0.75, 0.0 };

/* The gradient of the potential. */
static inline void force(double w, double x, double y, double *a, double *b) {
    double p = x - 10.0, q = y - 10.0 + w, r = p * p + q * q, s = p * p + y * y;
    double cube1 = 1.0 / (r * sqrt(r)), cube2 = 1.0 / (s * sqrt(s));
    *a = -p * (cube1 + cube2);
    *b = -q * cube1 - y * cube2;
}

/* The force and its derivatives: in x and y (`b` in x is `a` in y), and in w. */
typedef struct { double a, b, ax, ay, by, aw, bw; } Slopes;

static inline Slopes slopes(double w, double x, double y) {
    double p = x - 10.0, q = y - 10.0 + w, r = p * p + q * q, s = p * p + y * y;
    double i = 1.0 / r, j = 1.0 / s, cube1 = i * sqrt(i), cube2 = j * sqrt(j), f = 3.0 * cube1 * i, g = 3.0 * cube2 * j;
    Slopes d = { .a = -p * (cube1 + cube2), .b = -q * cube1 - y * cube2 };
    d.aw = f * p * q;
    d.bw = f * q * q - cube1;
    d.ax = (f + g) * p * p - cube1 - cube2;
    d.ay = d.aw + g * p * y;
    d.by = d.bw + g * y * y - cube2;
    return d;
}

static double miss(double w) {
    State s = START;
    for (;;) {
        double a, b, x = s.x + DT * s.u, y = s.y + DT * s.v;
        if (!(y > 0.0)) break;
        force(w, s.x, s.y, &a, &b);
        s = (State){ x, y, s.u - DT * a, s.v - DT * b };
    }
    double end = s.x - s.y / s.v * s.u;
    return end * end;
}

static double forward(double w) {
    State s = START, d = { 0.0, 0.0, 0.0, 0.0 };
    for (;;) {
        double x = s.x + DT * s.u, y = s.y + DT * s.v;
        if (!(y > 0.0)) break;
        Slopes f = slopes(w, s.x, s.y);
        double da = f.ax * d.x + f.ay * d.y + f.aw, db = f.ay * d.x + f.by * d.y + f.bw;
        d = (State){ d.x + DT * d.u, d.y + DT * d.v, d.u - DT * da, d.v - DT * db };
        s = (State){ x, y, s.u - DT * f.a, s.v - DT * f.b };
    }
    double t = -s.y / s.v, dt = -(d.y + t * d.v) / s.v;
    return 2.0 * (s.x + t * s.u) * (d.x + t * d.u + dt * s.u);
}

/* The state of each step is kept. */
static double reverse(double w) {
    static State *kept;
    static int most;
    State s = START;
    int n = 0;
    for (;; n++) {
        double a, b, x = s.x + DT * s.u, y = s.y + DT * s.v;
        if (!(y > 0.0)) break;
        if (n == most) kept = realloc(kept, (size_t)(most = 2 * most + 64) * sizeof(State));
        kept[n] = s;
        force(w, s.x, s.y, &a, &b);
        s = (State){ x, y, s.u - DT * a, s.v - DT * b };
    }
    double t = -s.y / s.v, c = 2.0 * (s.x + t * s.u), ct = c * s.u, cw = 0.0;
    State d = { c, -ct / s.v, c * t, -ct * t / s.v };
    while (n-- > 0) {
        Slopes f = slopes(w, kept[n].x, kept[n].y);
        double ca = -DT * d.u, cb = -DT * d.v;
        cw += f.aw * ca + f.bw * cb;
        d = (State){ d.x + f.ax * ca + f.ay * cb, d.y + f.ay * ca + f.by * cb, d.u + DT * d.x, d.v + DT * d.y };
    }
    return cw;
}

static inline double argmin(double (*derivative)(double), double x) {
    double fx = miss(x), g = derivative(x), eta = 1e-5;
    for (int good = 0;;) {
        if (fabs(g) <= 1e-5) return x;
        if (good == 10) {
            eta *= 2.0;
            good = 0;
            continue;
        }
        double next = x - eta * g;
        if (fabs(x - next) <= 1e-5) return x;
        double fnext = miss(next);
        if (fnext < fx) {
            x = next;
            fx = fnext;
            g = derivative(x);
            good++;
        } else {
            eta *= 0.5;
            good = 0;
        }
    }
}

static int work(const char *mode, long n, long i, double *results) {
    for (long k = 0; k < n; k++) {
        double start = 1e-9 * (double)(n * i + k), w = mode[0] == 'F' ? argmin(forward, start) : argmin(reverse, start);
        if (k == 0) results[0] = w;
    }
    return 1;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
