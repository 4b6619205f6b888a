/* kmeans.dp, its derivatives by hand: those of the nearest centre. */
#include "../measure.h"

enum { D = 8, K = 16 };

/* The nearest centre of a point. */
static inline int nearest(const double *point, const double *centres, double *least) {
    int at = 0;
    *least = 1e300;
    for (int c = 0; c < K; c++) {
        double s = 0.0;
        for (int j = 0; j < D; j++) {
            double e = point[j] - centres[D * c + j];
            s += e * e;
        }
        if (s < *least) {
            *least = s;
            at = c;
        }
    }
    return at;
}

static double cost(long n, const double *points, const double *centres) {
    double total = 0.0, least;
    for (long p = 0; p < n; p++) {
        nearest(points + D * p, centres, &least);
        total += least;
    }
    return total;
}

static void gradient(long n, const double *points, const double *centres, double *restrict g) {
    double least;
    memset(g, 0, D * K * sizeof *g);
    for (long p = 0; p < n; p++) {
        int c = nearest(points + D * p, centres, &least);
        for (int j = 0; j < D; j++) g[D * c + j] += 2.0 * (centres[D * c + j] - points[D * p + j]);
    }
}

/* The Hessian is diagonal: twice the number of points of each centre. */
static void curvature(long n, const double *points, const double *centres, const double *v, double *restrict h) {
    double least, count[K] = { 0.0 };
    for (long p = 0; p < n; p++) count[nearest(points + D * p, centres, &least)] += 1.0;
    for (int c = 0; c < K; c++)
        for (int j = 0; j < D; j++) h[D * c + j] = 2.0 * count[c] * v[D * c + j];
}

static int work(const char *mode, long n, long i, double *results) {
    double *points = room((size_t)(D * n)), around[D * K], centres[D * K], v[D * K], out[D * K];
    for (long k = 0; k < D * K; k++) {
        around[k] = 3.0 * bell(1 + i, k);
        centres[k] = around[k] + bell(3 + i, k);
        v[k] = bell(9, k);
    }
    for (long p = 0; p < n; p++)
        for (long j = 0; j < D; j++) points[D * p + j] = around[D * (p * 7 % K) + j] + bell(2 + i, D * p + j);
    start();
    if (is(mode, "function"))
        results[0] = cost(n, points, centres);
    else if (is(mode, "gradient"))
        gradient(n, points, centres, out);
    else
        curvature(n, points, centres, v, out);
    stop();
    if (is(mode, "function")) return 1;
    digest(out, D * K, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
