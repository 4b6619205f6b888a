/* tree_lstm.dp, its gradient by hand: nodes are numbered after their children; matrices' gradients are products over all
 * nodes of a tree. */
#define REAL float
#include "../measure.h"
#include "blas.h"

enum { H = 150, E = 300, LEAF = 3 * H, NODE = 5 * H, LABELS = 5, WORDS = 2000, MOST = 128 };

typedef struct { float leaf[LEAF * E], node[NODE * 2 * H], reader[LABELS * H], leaf_bias[LEAF], node_bias[NODE]; } Body;
typedef struct { Body body; float reader_bias[LABELS]; } Model;
typedef struct { int count, leaves, word[MOST], left[MOST], right[MOST], label[MOST], row[MOST]; } Tree;

static float h[MOST][H], c[MOST][H], tc[MOST][H], dh[MOST][H], dc[MOST][H], x[MOST][E], hh[MOST][2 * H];
static float zl[MOST][LEAF], zn[MOST][NODE], p[MOST][LABELS];

static inline float squash(float x) { return 1.0f / (1.0f + expf(-x)); }

/* Gates: in, (keep left, keep right,) out, change. */
static void leaf(int i, float *restrict z) {
    for (int j = 0; j < 2 * H; j++) z[j] = squash(z[j]);
    for (int j = 2 * H; j < 3 * H; j++) z[j] = tanhf(z[j]);
    for (int j = 0; j < H; j++) {
        c[i][j] = z[j] * z[2 * H + j];
        tc[i][j] = tanhf(c[i][j]);
        h[i][j] = z[H + j] * tc[i][j];
    }
}

static void node(int i, int l, int r, const Model *m, float *restrict in, float *restrict z) {
    memcpy(in, h[l], sizeof h[l]);
    memcpy(in + H, h[r], sizeof h[r]);
    memcpy(z, m->body.node_bias, sizeof m->body.node_bias);
    apply(AS_IS, NODE, 2 * H, m->body.node, in, 1.0f, z);
    for (int j = 0; j < 4 * H; j++) z[j] = squash(z[j]);
    for (int j = 4 * H; j < 5 * H; j++) z[j] = tanhf(z[j]);
    for (int j = 0; j < H; j++) {
        c[i][j] = z[j] * z[4 * H + j] + z[H + j] * c[l][j] + z[2 * H + j] * c[r][j];
        tc[i][j] = tanhf(c[i][j]);
        h[i][j] = z[3 * H + j] * tc[i][j];
    }
}

static double loss(const Tree *t, const float *words, const Model *m) {
    double total = 0.0;
    for (int i = 0; i < t->count; i++)
        if (t->word[i] >= 0) {
            memcpy(x[t->row[i]], words + E * t->word[i], sizeof x[0]);
            memcpy(zl[t->row[i]], m->body.leaf_bias, sizeof zl[0]);
        }
    product(AS_IS, TURNED, t->leaves, LEAF, E, &x[0][0], m->body.leaf, 1, &zl[0][0]);
    for (int i = 0; i < t->count; i++) {
        if (t->word[i] >= 0)
            leaf(i, zl[t->row[i]]);
        else
            node(i, t->left[i], t->right[i], m, hh[t->row[i]], zn[t->row[i]]);
    }
    repeat_row(t->count, LABELS, m->reader_bias, &p[0][0]);
    product(AS_IS, TURNED, t->count, LABELS, H, &h[0][0], m->body.reader, 1, &p[0][0]);
    for (int i = 0; i < t->count; i++) {
        float sum = 0.0f;
        for (int k = 0; k < LABELS; k++) sum += p[i][k] = expf(p[i][k]);
        for (int k = 0; k < LABELS; k++) p[i][k] /= sum;
        total -= log((double)p[i][t->label[i]]);
        p[i][t->label[i]] -= 1.0f;
    }
    return total;
}

static void leaf_back(int i, float *restrict z) {
    for (int j = 0; j < H; j++) {
        float a = z[j], o = z[H + j], u = z[2 * H + j], d = dc[i][j] + dh[i][j] * o * (1.0f - tc[i][j] * tc[i][j]);
        z[j] = d * u * a * (1.0f - a);
        z[H + j] = dh[i][j] * tc[i][j] * o * (1.0f - o);
        z[2 * H + j] = d * a * (1.0f - u * u);
    }
}

static void node_back(int i, int l, int r, const Model *m, float *restrict z) {
    float back[2 * H];
    for (int j = 0; j < H; j++) {
        float a = z[j], fl = z[H + j], fr = z[2 * H + j], o = z[3 * H + j], u = z[4 * H + j];
        float d = dc[i][j] + dh[i][j] * o * (1.0f - tc[i][j] * tc[i][j]);
        z[j] = d * u * a * (1.0f - a);
        z[H + j] = d * c[l][j] * fl * (1.0f - fl);
        z[2 * H + j] = d * c[r][j] * fr * (1.0f - fr);
        z[3 * H + j] = dh[i][j] * tc[i][j] * o * (1.0f - o);
        z[4 * H + j] = d * a * (1.0f - u * u);
        dc[l][j] += d * fl;
        dc[r][j] += d * fr;
    }
    apply(TURNED, NODE, 2 * H, m->body.node, z, 0.0f, back);
    for (int j = 0; j < H; j++) {
        dh[l][j] += back[j];
        dh[r][j] += back[H + j];
    }
}

/* Adds to `g`, or begins it where `keep` is 0. */
static void gradient(const Tree *t, const float *words, const Model *m, float keep, Model *g) {
    int nodes = t->count - t->leaves;
    loss(t, words, m);
    product(AS_IS, AS_IS, t->count, H, LABELS, &p[0][0], m->body.reader, 0, &dh[0][0]);
    memset(dc, 0, sizeof dc[0] * (size_t)t->count);
    for (int i = t->count - 1; i >= 0; i--) {
        if (t->word[i] >= 0)
            leaf_back(i, zl[t->row[i]]);
        else
            node_back(i, t->left[i], t->right[i], m, zn[t->row[i]]);
    }
    product(TURNED, AS_IS, LEAF, E, t->leaves, &zl[0][0], &x[0][0], keep, g->body.leaf);
    product(TURNED, AS_IS, NODE, 2 * H, nodes, &zn[0][0], &hh[0][0], keep, g->body.node);
    product(TURNED, AS_IS, LABELS, H, t->count, &p[0][0], &h[0][0], keep, g->body.reader);
    float *sums[3] = { g->body.leaf_bias, g->body.node_bias, g->reader_bias };
    const float *rows[3] = { &zl[0][0], &zn[0][0], &p[0][0] };
    const int widths[3] = { LEAF, NODE, LABELS }, counts[3] = { t->leaves, nodes, t->count };
    for (int s = 0; s < 3; s++) {
        for (int j = 0; j < widths[s]; j++) sums[s][j] *= keep;
        for (int i = 0; i < counts[s]; i++)
            for (int j = 0; j < widths[s]; j++) sums[s][j] += rows[s][widths[s] * i + j];
    }
}

static void adagrad(float *restrict m, const float *restrict g, float *restrict squares) {
    for (size_t k = 0; k < sizeof(Model) / sizeof(float); k++) {
        squares[k] += g[k] * g[k];
        m[k] -= 0.05f * g[k] / sqrtf(squares[k] + 1e-8f);
    }
}

static int grow(Tree *t, int count, int64_t place) {
    int left = -1, right = -1, word = (int)(2000.0 * uniform(2, place));
    if (count > 1) {
        int first = 1 + (int)(uniform(3, place) * (double)(count - 1));
        left = grow(t, first, 2 * place % 1000003);
        right = grow(t, count - first, (2 * place + 1) % 1000003);
        word = -1;
    }
    int i = t->count++;
    t->word[i] = word;
    t->left[i] = left;
    t->right[i] = right;
    t->label[i] = (int)(5.0 * uniform(1, place));
    t->row[i] = word >= 0 ? t->leaves++ : i - t->leaves;
    return i;
}

static void bells(long seed, double scale, long n, float *out) {
    for (long k = 0; k < n; k++) out[k] = (float)(scale * bell(seed, k));
}

static int work(const char *mode, long n, long i, double *results) {
    static Model m, g, squares;
    static float words[WORDS * E];
    static Tree trees[1000];
    bells(4 + i, 0.05, LEAF * E, m.body.leaf);
    bells(5 + i, 0.05, LEAF, m.body.leaf_bias);
    bells(6 + i, 0.05, NODE * 2 * H, m.body.node);
    bells(7 + i, 0.05, NODE, m.body.node_bias);
    bells(8 + i, 0.05, LABELS * H, m.body.reader);
    bells(9 + i, 0.05, LABELS, m.reader_bias);
    bells(10 + i, 0.3, WORDS * E, words);
    for (long k = 0; k < n; k++) {
        trees[k].count = trees[k].leaves = 0;
        grow(&trees[k], (int)(20 + k * 7 % 31), k + i + 1);
    }
    int learn = is(mode, "train");
    double total = 0.0;
    start();
    memset(&squares, 0, sizeof squares);
    for (long k = 0; k < n; k++) {
        if (is(mode, "function"))
            total += loss(&trees[k], words, &m);
        else
            gradient(&trees[k], words, &m, k && !learn ? 1.0f : 0.0f, &g);
        if (learn) adagrad((float *)&m, (const float *)&g, (float *)&squares);
    }
    stop();
    results[0] = total;
    if (is(mode, "function")) return 1;
    const Model *out = learn ? &m : &g;
    digest_reals(out->body.leaf, LEAF * E, results);
    digest_reals(out->body.node, NODE * 2 * H, results + 2);
    digest_reals(out->body.reader, LABELS * H, results + 4);
    digest_reals(out->body.leaf_bias, LEAF, results + 6);
    digest_reals(out->body.node_bias, NODE, results + 8);
    digest_reals(out->reader_bias, LABELS, results + 10);
    return 12;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
