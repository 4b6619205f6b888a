/* gmm_matrix.dp and gmm_points.dp, their gradient by hand; triangles are used as they are given. */
#include "../measure.h"

enum { D = 10, K = 25, P = 55 };

typedef struct { double alphas[K], means[K][D], factors[K][P]; } Mixture;

/* What does not depend on a point: the diagonals, and each component's score at its mean. */
typedef struct { double diagonal[K][D], top[K], of_alphas; } Fixed;

static double log_sum_exp(const double *xs, int n) {
    double top = xs[0], sum = 0.0;
    for (int i = 1; i < n; i++) top = xs[i] > top ? xs[i] : top;
    for (int i = 0; i < n; i++) sum += exp(xs[i] - top);
    return log(sum) + top;
}

/* Gives the prior. */
static double prepare(const Mixture *m, Fixed *fixed) {
    double prior = 0.0;
    for (int k = 0; k < K; k++) {
        fixed->top[k] = m->alphas[k];
        for (int i = 0; i < D; i++) {
            fixed->diagonal[k][i] = exp(m->factors[k][i]);
            fixed->top[k] += m->factors[k][i];
            prior += 0.5 * fixed->diagonal[k][i] * fixed->diagonal[k][i];
        }
        for (int i = D; i < P; i++) prior += 0.5 * m->factors[k][i] * m->factors[k][i];
    }
    fixed->of_alphas = log_sum_exp(m->alphas, K);
    return prior;
}

/* The score of a point; `away` is its distance from the mean, `y` that times the triangle. */
static inline double score(const Mixture *m, const Fixed *fixed, int k, const double *x, double *restrict away,
                           double *restrict y) {
    const double *l = m->factors[k] + D;
    double squares = 0.0;
    for (int i = 0; i < D; i++) {
        away[i] = x[i] - m->means[k][i];
        y[i] = fixed->diagonal[k][i] * away[i];
    }
    for (int j = 0; j < D; j++)
        for (int i = j + 1; i < D; i++) y[i] += *l++ * away[j];
    for (int i = 0; i < D; i++) squares += y[i] * y[i];
    return fixed->top[k] - 0.5 * squares;
}

static double likelihood(long n, const double *points, const Mixture *m) {
    Fixed fixed;
    double total = prepare(m, &fixed), scores[K], away[D], y[D];
    for (long p = 0; p < n; p++) {
        for (int k = 0; k < K; k++) scores[k] = score(m, &fixed, k, points + D * p, away, y);
        total += log_sum_exp(scores, K);
    }
    return total - (double)n * fixed.of_alphas;
}

static void gradient(long n, const double *points, const Mixture *m, Mixture *g) {
    Fixed fixed;
    double scores[K], away[K][D], y[K][D];
    prepare(m, &fixed);
    memset(g, 0, sizeof *g);
    for (long p = 0; p < n; p++) {
        for (int k = 0; k < K; k++) scores[k] = score(m, &fixed, k, points + D * p, away[k], y[k]);
        double whole = log_sum_exp(scores, K);
        for (int k = 0; k < K; k++) scores[k] = exp(scores[k] - whole);
        for (int k = 0; k < K; k++) {
            const double *l = m->factors[k] + D;
            double weight = scores[k], *restrict gl = g->factors[k] + D, *restrict c = y[k];
            g->alphas[k] += weight;
            for (int i = 0; i < D; i++) {
                c[i] *= weight;
                g->factors[k][i] -= c[i] * away[k][i];
            }
            for (int j = 0; j < D; j++) {
                double mean = fixed.diagonal[k][j] * c[j];
                for (int i = j + 1; i < D; i++) {
                    mean += *l++ * c[i];
                    *gl++ -= c[i] * away[k][j];
                }
                g->means[k][j] += mean;
            }
        }
    }
    for (int k = 0; k < K; k++) {
        double weight = g->alphas[k];
        g->alphas[k] -= (double)n * exp(m->alphas[k] - fixed.of_alphas);
        for (int i = 0; i < D; i++)
            g->factors[k][i] = (g->factors[k][i] + fixed.diagonal[k][i]) * fixed.diagonal[k][i] + weight;
        for (int i = D; i < P; i++) g->factors[k][i] += m->factors[k][i];
    }
}

static int work(const char *mode, long n, long i, double *results) {
    static Mixture m, g;
    double *points = room((size_t)(D * n)), total = 0.0;
    for (long k = 0; k < K; k++) m.alphas[k] = bell(1 + i, k);
    for (long k = 0; k < K * D; k++) (&m.means[0][0])[k] = uniform(2 + i, k);
    for (long k = 0; k < K * P; k++) (&m.factors[0][0])[k] = 0.3 * bell(3 + i, k);
    for (long k = 0; k < D * n; k++) points[k] = bell(4 + i, k);
    start();
    if (is(mode, "function"))
        total = likelihood(n, points, &m);
    else
        gradient(n, points, &m, &g);
    stop();
    results[0] = total;
    if (is(mode, "function")) return 1;
    digest(g.alphas, K, results);
    digest(&g.means[0][0], K * D, results + 2);
    digest(&g.factors[0][0], K * P, results + 4);
    return 6;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
