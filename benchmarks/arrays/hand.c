/* hand.dp, its Jacobian by hand, in forward mode: an angle turns only the bones of its finger from its own bone on. */
#include "../measure.h"

enum { BONES = 22, POINTS = 100, ANGLES = 26, RESULTS = 3 * POINTS };

typedef double Matrix[4][4];
typedef struct {
    Matrix relative[BONES], inverse[BONES];
    double surface[POINTS][4], weights[POINTS][BONES], seen[POINTS][3];
} Hand;

static inline int parent(int b) { return b == 0 ? -1 : b % 4 == 1 ? 0 : b - 1; }
static inline int is_bent(int b) { return b > 0 && b < 21 && b % 4 != 1; }

/* The number of the angle by which a bone is bent; the first bent one has a second angle after it. */
static inline int angle(int b) { return 6 + (b - 1) / 4 * 4 + ((b - 1) % 4 == 1 ? 0 : (b - 1) % 4); }

/* A product; the last row of the right factor is 0 0 0 `end`. */
static inline void times(const Matrix a, const Matrix b, Matrix out, double end) {
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 4; j++) out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
        out[i][3] += a[i][3] * end;
    }
}

static void bend(double x, double z, Matrix out, Matrix dx, Matrix dz) {
    double cx = cos(x), sx = sin(x), cz = cos(z), sz = sin(z);
    const double all[3][3][4] = {
        { { cz, -sz * cx, sz * sx, 0.0 }, { sz, cz * cx, -cz * sx, 0.0 }, { 0.0, sx, cx, 0.0 } },
        { { 0.0, sz * sx, sz * cx, 0.0 }, { 0.0, -cz * sx, -cz * cx, 0.0 }, { 0.0, cx, -sx, 0.0 } },
        { { -sz, -cz * cx, cz * sx, 0.0 }, { cz, -sz * cx, sz * sx, 0.0 }, { 0.0, 0.0, 0.0, 0.0 } },
    };
    memcpy(out, all[0], sizeof all[0]);
    if (dx) memcpy(dx, all[1], sizeof all[1]);
    if (dz) memcpy(dz, all[2], sizeof all[2]);
}

/* The rotation about an axis, and its derivatives in the axis where they are wanted. */
static void rotation(const double *axis, double out[3][3], double d[3][3][3]) {
    double n = sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]), c = cos(n), s = sin(n);
    double u[3] = { axis[0] / n, axis[1] / n, axis[2] / n };
    double cross[3][3] = { { 0.0, -u[2], u[1] }, { u[2], 0.0, -u[0] }, { -u[1], u[0], 0.0 } };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out[i][j] = (i == j ? c : 0.0) + (1.0 - c) * u[i] * u[j] + s * cross[i][j];
    for (int k = 0; d && k < 3; k++) {
        double du[3], dc = -s * u[k], ds = c * u[k];
        for (int i = 0; i < 3; i++) du[i] = ((i == k ? 1.0 : 0.0) - u[i] * u[k]) / n;
        double turned[3][3] = { { 0.0, -du[2], du[1] }, { du[2], 0.0, -du[0] }, { -du[1], du[0], 0.0 } };
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                d[k][i][j] = (i == j ? dc : 0.0) - dc * u[i] * u[j] + (1.0 - c) * (du[i] * u[j] + u[i] * du[j]) +
                             ds * cross[i][j] + s * turned[i][j];
    }
}

typedef struct { Matrix local[BONES], placed[BONES], moved[BONES]; double points[POINTS][3], turned[3][3]; } State;

static void place(const Hand *h, const double *theta, State *s) {
    for (int b = 0; b < BONES; b++) {
        Matrix turn;
        if (is_bent(b)) {
            bend(theta[angle(b)], b % 4 == 2 ? theta[angle(b) + 1] : 0.0, turn, NULL, NULL);
            times(h->relative[b], turn, s->local[b], 1.0);
        } else
            memcpy(s->local[b], h->relative[b], sizeof(Matrix));
        if (b == 0)
            memcpy(s->placed[b], s->local[b], sizeof(Matrix));
        else
            times(s->placed[parent(b)], s->local[b], s->placed[b], 1.0);
        times(s->placed[b], h->inverse[b], s->moved[b], 1.0);
    }
}

/* Where some of the bones bring a point, or how it changes. */
static inline void bring(const Hand *h, int p, Matrix *moved, int first, int last, double *out) {
    double sum[3][4] = { { 0.0 } };
    for (int b = first; b <= last; b++)
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 4; j++) sum[i][j] += h->weights[p][b] * moved[b - first][i][j];
    for (int i = 0; i < 3; i++) {
        out[i] = 0.0;
        for (int j = 0; j < 4; j++) out[i] += sum[i][j] * h->surface[p][j];
    }
}

static inline void turn(double a[3][3], const double *v, double *out) {
    for (int i = 0; i < 3; i++) out[i] = a[i][0] * v[0] + a[i][1] * v[1] + a[i][2] * v[2];
}

static void residuals(const Hand *h, const double *theta, State *s, double *out) {
    place(h, theta, s);
    rotation(theta, s->turned, NULL);
    for (int p = 0; p < POINTS; p++) {
        double v[3];
        bring(h, p, s->moved, 0, BONES - 1, s->points[p]);
        turn(s->turned, s->points[p], v);
        for (int i = 0; i < 3; i++) out[3 * p + i] = h->seen[p][i] - (v[i] + theta[3 + i]);
    }
}

/* The column of one angle of a bone, from the derivative of how it is bent. */
static void column(const Hand *h, State *s, int b, Matrix bent, int at, double (*out)[ANGLES]) {
    Matrix local, placed, moved[4];
    int last = (b - 1) / 4 * 4 + 4;
    times(h->relative[b], bent, local, 0.0);
    times(s->placed[parent(b)], local, placed, 0.0);
    times(placed, h->inverse[b], moved[0], 1.0);
    for (int e = b + 1; e <= last; e++) {
        Matrix next;
        times(placed, s->local[e], next, 1.0);
        memcpy(placed, next, sizeof next);
        times(placed, h->inverse[e], moved[e - b], 1.0);
    }
    for (int p = 0; p < POINTS; p++) {
        double v[3], w[3];
        bring(h, p, moved, b, last, v);
        turn(s->turned, v, w);
        for (int i = 0; i < 3; i++) out[3 * p + i][at] = -w[i];
    }
}

static void jacobian(const Hand *h, const double *theta, State *s, double (*out)[ANGLES]) {
    double values[RESULTS], d[3][3][3];
    residuals(h, theta, s, values);
    rotation(theta, s->turned, d);
    memset(out, 0, sizeof(double) * RESULTS * ANGLES);
    for (int p = 0; p < POINTS; p++)
        for (int k = 0; k < 3; k++) {
            double v[3];
            turn(d[k], s->points[p], v);
            for (int i = 0; i < 3; i++) out[3 * p + i][k] = -v[i];
            out[3 * p + k][3 + k] = -1.0;
        }
    for (int b = 0; b < BONES; b++) {
        if (!is_bent(b)) continue;
        int at = angle(b), two = b % 4 == 2;
        Matrix now, dx, dz;
        bend(theta[at], two ? theta[at + 1] : 0.0, now, dx, dz);
        column(h, s, b, dx, at, out);
        if (two) column(h, s, b, dz, at + 1, out);
    }
}

static void rigid(long seed, long b, Matrix out) {
    double axis[3] = { bell(seed, 3 * b), bell(seed, 3 * b + 1), bell(seed, 3 * b + 2) }, turned[3][3];
    rotation(axis, turned, NULL);
    for (int i = 0; i < 3; i++) {
        memcpy(out[i], turned[i], sizeof turned[i]);
        out[i][3] = 0.1 * bell(seed + 1, 3 * b + i);
        out[3][i] = 0.0;
    }
    out[3][3] = 1.0;
}

static void make(long i, Hand *h) {
    for (long b = 0; b < BONES; b++) {
        rigid(1 + i, b, h->relative[b]);
        rigid(3 + i, b, h->inverse[b]);
    }
    for (long p = 0; p < POINTS; p++) {
        double whole = 0.0;
        for (long b = 0; b < BONES; b++) whole += h->weights[p][b] = pow(uniform(5 + i, BONES * p + b), 4.0);
        for (long b = 0; b < BONES; b++) h->weights[p][b] /= whole;
        for (long a = 0; a < 4; a++) h->surface[p][a] = a == 3 ? 1.0 : 0.1 * bell(6 + i, 3 * p + a);
        for (long a = 0; a < 3; a++) h->seen[p][a] = bell(7 + i, 3 * p + a);
    }
}

static int work(const char *mode, long n, long i, double *results) {
    static Hand h;
    static State s;
    long each = is(mode, "function") ? RESULTS : RESULTS * ANGLES;
    double *thetas = room((size_t)(n * (ANGLES + each))), *out = thetas + n * ANGLES;
    make(i, &h);
    for (long k = 0; k < n * ANGLES; k++) thetas[k] = 0.3 * bell(8 + i, k);
    start();
    for (long k = 0; k < n; k++) {
        if (is(mode, "function"))
            residuals(&h, thetas + k * ANGLES, &s, out + k * each);
        else
            jacobian(&h, thetas + k * ANGLES, &s, (double(*)[ANGLES])(out + k * each));
    }
    stop();
    digest(out, n * each, results);
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
