/* saddle.dp, its derivatives by hand.  The ascent does not depend on where the descent is, but for its value: in the
 * derivative of the maximum, what the ascent's end contributes is zero throughout, and is left out. */
#include "../measure.h"

typedef struct { double x, y; } Point;

static double f(Point p, Point q) { return (p.x * p.x + p.y * p.y) - (q.x * q.x + q.y * q.y); }

/* Least f(p, q) over p if `q` is fixed, most over q if `p` is. */
typedef struct Problem Problem;
struct Problem {
    double (*value)(const Problem *, Point);
    Point (*gradient)(const Problem *, Point);
    Point other;
};

static inline __attribute__((always_inline)) Point argmin(
    double (*value)(Point, Point), Point (*gradient)(Point, Point), Point fixed, Point x) {
    double fx = value(fixed, x), eta = 1e-5;
    Point g = gradient(fixed, x);
    for (int good = 0;;) {
        if (sqrt(g.x * g.x + g.y * g.y) <= 1e-5) return x;
        if (good == 10) {
            eta *= 2.0;
            good = 0;
            continue;
        }
        Point next = { x.x - eta * g.x, x.y - eta * g.y };
        double dx = x.x - next.x, dy = x.y - next.y;
        if (sqrt(dx * dx + dy * dy) <= 1e-5) return x;
        double fnext = value(fixed, next);
        if (fnext < fx) {
            x = next;
            fx = fnext;
            g = gradient(fixed, x);
            good++;
        } else {
            eta *= 0.5;
            good = 0;
        }
    }
}

static double loss(Point p, Point q) { return -f(p, q); }
static Point loss_gradient(Point p, Point q) {
    (void)p;
    return (Point){ 2.0 * q.x, 2.0 * q.y };
}

static __attribute__((noinline)) Point best(Point start, Point p) { return argmin(loss, loss_gradient, p, start); }

static double most(Point start, Point p) { return f(p, best(start, p)); }

static Point most_gradient(Point start, Point p) {
    best(start, p);
    return (Point){ 2.0 * p.x, 2.0 * p.y };
}

static int work(const char *mode, long n, long i, double *results) {
    (void)mode;
    for (long k = 0; k < n; k++) {
        Point start = { 1.0 + 1e-9 * (double)(n * i + k), 1.0 };
        Point p = argmin(most, most_gradient, start, start), q = best(start, p);
        if (k == 0) memcpy(results, (double[]){ p.x, p.y, q.x, q.y }, 4 * sizeof(double));
    }
    return 4;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
