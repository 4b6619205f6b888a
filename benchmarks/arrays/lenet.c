/* lenet.dp, its gradient by hand: convolutions are products of the windows' matrix. */
#define REAL float
#include "../measure.h"
#include "blas.h"

enum { C1 = 10, C2 = 20, FLAT = 320, MID = 50, OUT = 10, W1 = 25, W2 = 25 * C1 };

typedef struct {
    float k1[W1 * C1], k2[W2 * C2], w3[FLAT * MID], w4[MID * OUT], b1[C1], b2[C2], b3[MID], b4[OUT];
} Net;

/* Of so many pictures; `at` says from which of four the greatest came. */
typedef struct {
    float *windows1, *conv1, *pool1, *windows2, *conv2, *pool2, *mid, *logits;
    unsigned char *at1, *at2;
} Room;

static void windows(long n, int side, int c, const float *x, float *restrict out) {
    for (long b = 0; b < n; b++)
        for (int i = 0; i < side - 4; i++)
            for (int j = 0; j < side - 4; j++)
                for (int u = 0; u < 5; u++, out += 5 * c)
                    memcpy(out, x + ((b * side + i + u) * side + j) * c, 5 * (size_t)c * sizeof *x);
}

static void windows_back(long n, int side, int c, const float *g, float *restrict x) {
    memset(x, 0, (size_t)(n * side * side * c) * sizeof *x);
    for (long b = 0; b < n; b++)
        for (int i = 0; i < side - 4; i++)
            for (int j = 0; j < side - 4; j++)
                for (int u = 0; u < 5; u++, g += 5 * c) {
                    float *restrict to = x + ((b * side + i + u) * side + j) * c;
                    for (int k = 0; k < 5 * c; k++) to[k] += g[k];
                }
}

/* The greatest of each 2 by 2, or 0. */
static void pool(long n, int side, int c, const float *x, float *restrict out, unsigned char *restrict at) {
    int half = side / 2;
    for (long b = 0; b < n * half; b++)
        for (int j = 0; j < half; j++, out += c, at += c) {
            const float *top = x + (2 * b * side + 2 * j) * c, *low = top + side * c;
            for (int k = 0; k < c; k++) {
                float most = 0.0f;
                unsigned char found = 4;
                if (top[k] > most) most = top[k], found = 0;
                if (top[c + k] > most) most = top[c + k], found = 1;
                if (low[k] > most) most = low[k], found = 2;
                if (low[c + k] > most) most = low[c + k], found = 3;
                out[k] = most;
                at[k] = found;
            }
        }
}

static void pool_back(long n, int side, int c, const float *g, const unsigned char *at, float *restrict x) {
    int half = side / 2;
    for (long b = 0; b < n * half; b++)
        for (int j = 0; j < half; j++, g += c, at += c) {
            float *restrict top = x + (2 * b * side + 2 * j) * c, *restrict low = top + side * c;
            for (int k = 0; k < c; k++) {
                top[k] = at[k] == 0 ? g[k] : 0.0f;
                top[c + k] = at[k] == 1 ? g[k] : 0.0f;
                low[k] = at[k] == 2 ? g[k] : 0.0f;
                low[c + k] = at[k] == 3 ? g[k] : 0.0f;
            }
        }
}

static double loss(long n, const float *xs, const Net *p, Room *r, int change) {
    windows(n, 28, 1, xs, r->windows1);
    repeat_row(n * 576, C1, p->b1, r->conv1);
    product(AS_IS, AS_IS, n * 576, C1, W1, r->windows1, p->k1, 1, r->conv1);
    pool(n, 24, C1, r->conv1, r->pool1, r->at1);
    windows(n, 12, C1, r->pool1, r->windows2);
    repeat_row(n * 64, C2, p->b2, r->conv2);
    product(AS_IS, AS_IS, n * 64, C2, W2, r->windows2, p->k2, 1, r->conv2);
    pool(n, 8, C2, r->conv2, r->pool2, r->at2);
    repeat_row(n, MID, p->b3, r->mid);
    product(AS_IS, AS_IS, n, MID, FLAT, r->pool2, p->w3, 1, r->mid);
    for (long k = 0; k < n * MID; k++) r->mid[k] = r->mid[k] > 0.0f ? r->mid[k] : 0.0f;
    repeat_row(n, OUT, p->b4, r->logits);
    product(AS_IS, AS_IS, n, OUT, MID, r->mid, p->w4, 1, r->logits);
    return surprise(n, r->logits, change);
}

/* What has been used is written over by its cotangents. */
static void gradient(long n, const float *xs, const Net *p, Room *r, float *restrict back, Net *g) {
    loss(n, xs, p, r, 1);
    sum_rows(n, OUT, r->logits, g->b4);
    product(TURNED, AS_IS, MID, OUT, n, r->mid, r->logits, 0, g->w4);
    product(AS_IS, TURNED, n, MID, OUT, r->logits, p->w4, 0, back);
    for (long k = 0; k < n * MID; k++) back[k] = r->mid[k] > 0.0f ? back[k] : 0.0f;
    sum_rows(n, MID, back, g->b3);
    product(TURNED, AS_IS, FLAT, MID, n, r->pool2, back, 0, g->w3);
    product(AS_IS, TURNED, n, FLAT, MID, back, p->w3, 0, r->pool2);
    pool_back(n, 8, C2, r->pool2, r->at2, r->conv2);
    sum_rows(n * 64, C2, r->conv2, g->b2);
    product(TURNED, AS_IS, W2, C2, n * 64, r->windows2, r->conv2, 0, g->k2);
    product(AS_IS, TURNED, n * 64, W2, C2, r->conv2, p->k2, 0, r->windows2);
    windows_back(n, 12, C1, r->windows2, r->pool1);
    pool_back(n, 24, C1, r->pool1, r->at1, r->conv1);
    sum_rows(n * 576, C1, r->conv1, g->b1);
    product(TURNED, AS_IS, W1, C1, n * 576, r->windows1, r->conv1, 0, g->k1);
}

static void bells(long seed, double scale, long n, float *out) {
    for (long k = 0; k < n; k++) out[k] = (float)(scale * bell(seed, k));
}

static Room lay_out(long n, float *next) {
    Room r;
    float **parts[8] = { &r.windows1, &r.conv1, &r.pool1, &r.windows2, &r.conv2, &r.pool2, &r.mid, &r.logits };
    const long sizes[8] = { 576 * W1, 576 * C1, 144 * C1, 64 * W2, 64 * C2, FLAT, MID, OUT };
    for (int k = 0; k < 8; k++) {
        *parts[k] = next;
        next += n * sizes[k];
    }
    r.at1 = (unsigned char *)next;
    r.at2 = r.at1 + n * 144 * C1;
    return r;
}

static int work(const char *mode, long n, long i, double *results) {
    static Net p, g;
    float *xs = (float *)room((size_t)n * 23000), *back = xs + n * 784;
    Room r = lay_out(n, back + n * MID);
    bells(1 + i, 0.2, W1 * C1, p.k1);
    bells(2 + i, 0.1, C1, p.b1);
    bells(3 + i, 0.06, W2 * C2, p.k2);
    bells(4 + i, 0.1, C2, p.b2);
    bells(5 + i, 0.06, FLAT * MID, p.w3);
    bells(6 + i, 0.1, MID, p.b3);
    bells(7 + i, 0.15, MID * OUT, p.w4);
    bells(8 + i, 0.1, OUT, p.b4);
    for (long k = 0; k < n * 784; k++) xs[k] = (float)uniform(9 + i, k);
    start();
    if (is(mode, "function"))
        results[0] = loss(n, xs, &p, &r, 0);
    else
        gradient(n, xs, &p, &r, back, &g);
    stop();
    if (is(mode, "function")) return 1;
    const float *parts[8] = { g.k1, g.k2, g.w3, g.w4, g.b1, g.b2, g.b3, g.b4 };
    const long sizes[8] = { W1 * C1, W2 * C2, FLAT * MID, MID * OUT, C1, C2, MID, OUT };
    for (int k = 0; k < 8; k++) digest_reals(parts[k], sizes[k], results + 2 * k);
    return 16;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
