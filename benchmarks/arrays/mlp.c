/* mlp.dp, its gradient by hand; REAL tells the kind of numbers. */
#include "../measure.h"
#include "blas.h"

enum { IN = 784, MID = 128, OUT = 10 };

typedef struct { real w1[IN * MID], b1[MID], w2[MID * OUT], b2[OUT]; } Model;

/* Leaves the logits, or their cotangents. */
static double loss(long n, const real *xs, const Model *m, real *restrict hidden, real *logits, int change) {
    repeat_row(n, MID, m->b1, hidden);
    product(AS_IS, AS_IS, n, MID, IN, xs, m->w1, 1, hidden);
    for (long i = 0; i < n * MID; i++) hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
    repeat_row(n, OUT, m->b2, logits);
    product(AS_IS, AS_IS, n, OUT, MID, hidden, m->w2, 1, logits);
    return surprise(n, logits, change);
}

static void gradient(long n, const real *xs, const Model *m, Model *g, real *hidden, real *logits, real *restrict back) {
    loss(n, xs, m, hidden, logits, 1);
    sum_rows(n, OUT, logits, g->b2);
    product(TURNED, AS_IS, MID, OUT, n, hidden, logits, 0, g->w2);
    product(AS_IS, TURNED, n, MID, OUT, logits, m->w2, 0, back);
    for (long i = 0; i < n * MID; i++) back[i] = hidden[i] > 0 ? back[i] : 0;
    sum_rows(n, MID, back, g->b1);
    product(TURNED, AS_IS, IN, MID, n, xs, back, 0, g->w1);
}

static void bells(long seed, double scale, long n, real *out) {
    for (long k = 0; k < n; k++) out[k] = (real)(scale * bell(seed, k));
}

static int work(const char *mode, long n, long i, double *results) {
    static Model m, g;
    real *xs = (real *)room((size_t)n * (IN + 2 * MID + OUT)), *hidden = xs + n * IN, *back = hidden + n * MID;
    real *logits = back + n * MID;
    bells(1 + i, 0.05, IN * MID, m.w1);
    bells(2 + i, 0.1, MID, m.b1);
    bells(3 + i, 0.1, MID * OUT, m.w2);
    bells(4 + i, 0.1, OUT, m.b2);
    for (long k = 0; k < n * IN; k++) xs[k] = (real)uniform(5 + i, k);
    start();
    if (is(mode, "function"))
        results[0] = loss(n, xs, &m, hidden, logits, 0);
    else
        gradient(n, xs, &m, &g, hidden, logits, back);
    stop();
    if (is(mode, "function")) return 1;
    digest_reals(g.w1, IN * MID, results);
    digest_reals(g.b1, MID, results + 2);
    digest_reals(g.w2, MID * OUT, results + 4);
    digest_reals(g.b2, OUT, results + 6);
    return 8;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
