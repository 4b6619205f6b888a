/* lstm.dp, its gradient by hand; the 14 numbers of a layer lie in 16 lanes. */
#include "../measure.h"

enum { LAYERS = 2, WIDTH = 14, LANES = 16 };
enum { FORGET, INPUT, OUTPUT, CHANGE };

typedef double Lanes[LANES];
typedef struct { Lanes weights[LAYERS][4], biases[LAYERS][4], ends[3]; } Model;
typedef struct { Lanes x, f, i, o, a, c, tc, h; } Cell; /* what a layer computes in a step */

static inline void forward(const Model *m, int l, const double *x, const Cell *before, Cell *now) {
    for (int k = 0; k < LANES; k++) {
        double h = before->h[k];
        now->x[k] = x[k];
        now->f[k] = 1.0 / (1.0 + exp(-(m->weights[l][FORGET][k] * x[k] + m->biases[l][FORGET][k])));
        now->i[k] = 1.0 / (1.0 + exp(-(m->weights[l][INPUT][k] * h + m->biases[l][INPUT][k])));
        now->o[k] = 1.0 / (1.0 + exp(-(m->weights[l][OUTPUT][k] * x[k] + m->biases[l][OUTPUT][k])));
        now->a[k] = tanh(m->weights[l][CHANGE][k] * h + m->biases[l][CHANGE][k]);
        now->c[k] = before->c[k] * now->f[k] + now->i[k] * now->a[k];
        now->tc[k] = tanh(now->c[k]);
        now->h[k] = now->o[k] * now->tc[k];
    }
}

/* `cells[t]` are those before step t; where no gradient is wanted, two are enough.  `dy` are cotangents of outputs. */
static double loss(long n, const Lanes *letters, const Model *m, Cell (*cells)[LAYERS], Lanes *dy) {
    double total = 0.0, scale = -1.0 / (double)((n - 1) * WIDTH);
    for (long t = 0; t < n - 1; t++) {
        Cell *before = cells[dy ? t : t & 1], *now = cells[dy ? t + 1 : (t + 1) & 1];
        Lanes x, y, e;
        double sum = 2.0, bits = 0.0, chosen = 0.0;
        for (int k = 0; k < LANES; k++) x[k] = letters[t][k] * m->ends[0][k];
        forward(m, 0, x, &before[0], &now[0]);
        forward(m, 1, now[0].h, &before[1], &now[1]);
        for (int k = 0; k < LANES; k++) {
            y[k] = now[1].h[k] * m->ends[1][k] + m->ends[2][k];
            e[k] = exp(y[k]);
            bits += letters[t + 1][k];
            chosen += letters[t + 1][k] * y[k];
        }
        for (int k = 0; k < WIDTH; k++) sum += e[k];
        total += chosen - bits * log(sum);
        if (dy)
            for (int k = 0; k < LANES; k++)
                dy[t][k] = k < WIDTH ? scale * (letters[t + 1][k] - e[k] * bits / sum) : 0.0;
    }
    return total * scale;
}

static inline void backward(const Model *m, int l, const Cell *before, const Cell *now, double *restrict dx,
                            double *restrict dh, double *restrict dc, Model *g) {
    for (int k = 0; k < LANES; k++) {
        double d = dh[k] + dx[k], o = now->o[k], tc = now->tc[k], f = now->f[k], i = now->i[k], a = now->a[k];
        double cell = dc[k] + d * o * (1.0 - tc * tc);
        double zo = d * tc * o * (1.0 - o), zf = cell * before->c[k] * f * (1.0 - f);
        double zi = cell * a * i * (1.0 - i), za = cell * i * (1.0 - a * a);
        dc[k] = cell * f;
        g->weights[l][FORGET][k] += zf * now->x[k];
        g->weights[l][INPUT][k] += zi * before->h[k];
        g->weights[l][OUTPUT][k] += zo * now->x[k];
        g->weights[l][CHANGE][k] += za * before->h[k];
        g->biases[l][FORGET][k] += zf;
        g->biases[l][INPUT][k] += zi;
        g->biases[l][OUTPUT][k] += zo;
        g->biases[l][CHANGE][k] += za;
        dh[k] = zi * m->weights[l][INPUT][k] + za * m->weights[l][CHANGE][k];
        dx[k] = zf * m->weights[l][FORGET][k] + zo * m->weights[l][OUTPUT][k];
    }
}

static void gradient(long n, const Lanes *letters, const Model *m, Cell (*cells)[LAYERS], Lanes *dy, Model *g) {
    Lanes dh[LAYERS] = { 0 }, dc[LAYERS] = { 0 }, dx;
    loss(n, letters, m, cells, dy);
    memset(g, 0, sizeof *g);
    for (long t = n - 2; t >= 0; t--) {
        Cell *before = cells[t], *now = cells[t + 1];
        for (int k = 0; k < LANES; k++) {
            g->ends[1][k] += dy[t][k] * now[1].h[k];
            g->ends[2][k] += dy[t][k];
            dx[k] = dy[t][k] * m->ends[1][k];
        }
        backward(m, 1, &before[1], &now[1], dx, dh[1], dc[1], g);
        backward(m, 0, &before[0], &now[0], dx, dh[0], dc[0], g);
        for (int k = 0; k < LANES; k++) g->ends[0][k] += dx[k] * letters[t][k];
    }
}

static void spread(long seed, Lanes *out, int rows) {
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < WIDTH; k++) out[r][k] = uniform(seed, WIDTH * r + k);
}

static void gather(const Lanes *in, int rows, double *results) {
    double all[LAYERS * 4 * WIDTH];
    for (int r = 0; r < rows; r++) memcpy(all + WIDTH * r, in[r], WIDTH * sizeof(double));
    digest(all, WIDTH * rows, results);
}

static int work(const char *mode, long n, long i, double *results) {
    static Model m, g;
    size_t cells_size = (size_t)(n + 1) * LAYERS * sizeof(Cell), lanes_size = (size_t)n * sizeof(Lanes);
    char *memory = (char *)room((cells_size + 2 * lanes_size) / sizeof(double));
    Cell(*cells)[LAYERS] = (Cell(*)[LAYERS])memory;
    Lanes *letters = (Lanes *)(memory + cells_size), *dy = letters + n, hs[LAYERS] = { 0 }, cs[LAYERS] = { 0 };
    memset(letters, 0, lanes_size);
    memset(cells[0], 0, sizeof cells[0]);
    spread(1 + i, &m.weights[0][0], 4 * LAYERS);
    spread(2 + i, &m.biases[0][0], 4 * LAYERS);
    spread(3 + i, m.ends, 3);
    spread(4 + i, hs, LAYERS);
    spread(5 + i, cs, LAYERS);
    for (long t = 0; t < n; t++)
        for (long k = 0; k < WIDTH; k++) letters[t][k] = uniform(6 + i, WIDTH * t + k) < 0.5 ? 0.0 : 1.0;
    for (int l = 0; l < LAYERS; l++) {
        memcpy(cells[0][l].h, hs[l], sizeof(Lanes));
        memcpy(cells[0][l].c, cs[l], sizeof(Lanes));
    }
    start();
    if (is(mode, "function"))
        results[0] = loss(n, letters, &m, cells, NULL);
    else
        gradient(n, letters, &m, cells, dy, &g);
    stop();
    if (is(mode, "function")) return 1;
    gather(&g.weights[0][0], 4 * LAYERS, results);
    gather(&g.biases[0][0], 4 * LAYERS, results + 2);
    gather(g.ends, 3, results + 4);
    return 6;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
