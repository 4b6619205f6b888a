/* gmm_matrix.dp and gmm_points.dp, their gradient by hand; triangles are used as they are given. */
#include "../measure.h"

enum { D = 10, K = 25, P = 55, LANES = 32 };

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

/* Points lie side by side, so many at a time; the last block repeats its last point, with weight 0. */
typedef double Lanes[LANES];
typedef struct { Lanes x[D], weight, scores[K]; } Points;

static long load(long n, const double *points, Points *out) {
    long blocks = (n + LANES - 1) / LANES;
    for (long k = 0; k < blocks * LANES; k++) {
        Points *block = out + k / LANES;
        block->weight[k % LANES] = k < n ? 1.0 : 0.0;
        for (int i = 0; i < D; i++) block->x[i][k % LANES] = points[D * (k < n ? k : n - 1) + i];
    }
    return blocks;
}

/* The score of points; `away` are the distances from the mean, `y` that times the triangle. */
static inline void score(const Mixture *m, const Fixed *fixed, int k, const Lanes *x, Lanes *away, Lanes *y,
                         double *out) {
    const double *l = m->factors[k] + D;
    for (int i = 0; i < D; i++)
        for (int p = 0; p < LANES; p++) {
            away[i][p] = x[i][p] - m->means[k][i];
            y[i][p] = fixed->diagonal[k][i] * away[i][p];
        }
    for (int j = 0; j < D; j++)
        for (int i = j + 1; i < D; i++, l++)
            for (int p = 0; p < LANES; p++) y[i][p] += *l * away[j][p];
    for (int p = 0; p < LANES; p++) out[p] = fixed->top[k];
    for (int i = 0; i < D; i++)
        for (int p = 0; p < LANES; p++) out[p] -= 0.5 * y[i][p] * y[i][p];
}

/* log (sum (exp)) of the components' scores, which become their shares. */
static inline void share(Lanes *scores, double *whole) {
    Lanes top, sum = { 0.0 };
    memcpy(top, scores[0], sizeof top);
    for (int k = 1; k < K; k++)
        for (int p = 0; p < LANES; p++) top[p] = scores[k][p] > top[p] ? scores[k][p] : top[p];
    for (int k = 0; k < K; k++)
        for (int p = 0; p < LANES; p++) {
            scores[k][p] = exp(scores[k][p] - top[p]);
            sum[p] += scores[k][p];
        }
    for (int p = 0; p < LANES; p++) whole[p] = log(sum[p]) + top[p];
    for (int k = 0; k < K; k++)
        for (int p = 0; p < LANES; p++) scores[k][p] /= sum[p];
}

/* Leaves the shares of the components in each point. */
static double likelihood(const Mixture *m, const Fixed *fixed, Points *points, long blocks) {
    double total = 0.0;
    Lanes away[D], y[D], whole;
    for (long b = 0; b < blocks; b++) {
        for (int k = 0; k < K; k++) score(m, fixed, k, points[b].x, away, y, points[b].scores[k]);
        share(points[b].scores, whole);
        for (int p = 0; p < LANES; p++) total += points[b].weight[p] * whole[p];
    }
    return total;
}

static double sum(const double *xs) {
    double total = 0.0;
    for (int p = 0; p < LANES; p++) total += xs[p];
    return total;
}

/* The gradient in one component, each lane for itself. */
typedef struct { Lanes alpha, mean[D], factor[P]; } Sums;

static inline void back(const Mixture *m, const Fixed *fixed, int k, const Points *block, Sums *restrict g) {
    Lanes away[D], y[D], unused, weight;
    const double *l = m->factors[k] + D;
    score(m, fixed, k, block->x, away, y, unused);
    for (int p = 0; p < LANES; p++) weight[p] = block->weight[p] * block->scores[k][p];
    for (int p = 0; p < LANES; p++) g->alpha[p] += weight[p];
    for (int i = 0; i < D; i++)
        for (int p = 0; p < LANES; p++) {
            y[i][p] *= weight[p];
            g->factor[i][p] -= y[i][p] * away[i][p];
        }
    for (int j = 0, at = D; j < D; j++) {
        Lanes mean;
        for (int p = 0; p < LANES; p++) mean[p] = fixed->diagonal[k][j] * y[j][p];
        for (int i = j + 1; i < D; i++, at++, l++)
            for (int p = 0; p < LANES; p++) {
                mean[p] += *l * y[i][p];
                g->factor[at][p] -= y[i][p] * away[j][p];
            }
        for (int p = 0; p < LANES; p++) g->mean[j][p] += mean[p];
    }
}

static void gradient(long n, const Mixture *m, const Fixed *fixed, Points *points, long blocks, Mixture *g) {
    likelihood(m, fixed, points, blocks);
    for (int k = 0; k < K; k++) {
        Sums sums;
        memset(&sums, 0, sizeof sums);
        for (long b = 0; b < blocks; b++) back(m, fixed, k, points + b, &sums);
        double whole = sum(sums.alpha);
        g->alphas[k] = whole - (double)n * exp(m->alphas[k] - fixed->of_alphas);
        for (int i = 0; i < D; i++) {
            g->means[k][i] = sum(sums.mean[i]);
            g->factors[k][i] = (sum(sums.factor[i]) + fixed->diagonal[k][i]) * fixed->diagonal[k][i] + whole;
        }
        for (int i = D; i < P; i++) g->factors[k][i] = sum(sums.factor[i]) + m->factors[k][i];
    }
}

static int work(const char *mode, long n, long i, double *results) {
    static Mixture m, g;
    Fixed fixed;
    size_t most = (size_t)(n / LANES + 1);
    Points *blocks = (Points *)room(most * sizeof(Points) / sizeof(double) + (size_t)(D * n));
    double *points = (double *)(blocks + most), total = 0.0;
    for (long k = 0; k < K; k++) m.alphas[k] = bell(1 + i, k);
    for (long k = 0; k < K * D; k++) (&m.means[0][0])[k] = uniform(2 + i, k);
    for (long k = 0; k < K * P; k++) (&m.factors[0][0])[k] = 0.3 * bell(3 + i, k);
    for (long k = 0; k < D * n; k++) points[k] = bell(4 + i, k);
    start();
    long count = load(n, points, blocks);
    total = prepare(&m, &fixed) - (double)n * fixed.of_alphas;
    if (is(mode, "function"))
        total += likelihood(&m, &fixed, blocks, count);
    else
        gradient(n, &m, &fixed, blocks, count, &g);
    stop();
    results[0] = total;
    if (is(mode, "function")) return 1;
    digest(g.alphas, K, results);
    digest(&g.means[0][0], K * D, results + 2);
    digest(&g.factors[0][0], K * P, results + 4);
    return 6;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
