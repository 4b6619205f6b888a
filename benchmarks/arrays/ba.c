/* ba.dp, its Jacobian by hand: in reverse, from each of the two errors of an observation. */
#include "../measure.h"

enum { CAMERAS = 49, POINTS = 7776 };

typedef struct { double cameras[CAMERAS][11], points[POINTS][3]; } Scene;

/* What is computed on the way to an observation's errors. */
typedef struct { double angle, c, s, u[3], x[3], crossed[3], along, seen[3], at[2], r, bulge; } View;

static inline void cross(const double *a, const double *b, double *out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static inline double dot(const double *a, const double *b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static inline void error(const double *camera, const double *point, double weight, const double *feature, View *v,
                         double *out) {
    v->angle = sqrt(dot(camera, camera));
    v->c = cos(v->angle);
    v->s = sin(v->angle);
    for (int i = 0; i < 3; i++) {
        v->u[i] = camera[i] / v->angle;
        v->x[i] = point[i] - camera[3 + i];
    }
    cross(v->u, v->x, v->crossed);
    v->along = dot(v->u, v->x);
    for (int i = 0; i < 3; i++) v->seen[i] = v->c * v->x[i] + v->s * v->crossed[i] + (1.0 - v->c) * v->along * v->u[i];
    v->at[0] = v->seen[0] / v->seen[2];
    v->at[1] = v->seen[1] / v->seen[2];
    v->r = v->at[0] * v->at[0] + v->at[1] * v->at[1];
    v->bulge = 1.0 + camera[9] * v->r + camera[10] * v->r * v->r;
    for (int k = 0; k < 2; k++) out[k] = weight * (v->bulge * camera[6] * v->at[k] + camera[7 + k] - feature[k]);
}

/* The derivatives of error `k` in the camera, the point and the weight. */
static inline void row(const double *camera, double weight, const View *v, int k, double error, double *out) {
    double scale = weight * camera[6], d = camera[9] + 2.0 * camera[10] * v->r, z = 1.0 / v->seen[2];
    double a = scale * (2.0 * v->at[k] * v->at[0] * d + (k == 0 ? v->bulge : 0.0)) * z;
    double b = scale * (2.0 * v->at[k] * v->at[1] * d + (k == 1 ? v->bulge : 0.0)) * z;
    double g[3] = { a, b, -(a * v->at[0] + b * v->at[1]) }, gu[3], gx[3], du[3], less = 1.0 - v->c;
    double gn = dot(g, v->u), angle = 0.0, inward = 0.0;
    cross(g, v->u, gx);
    cross(v->x, g, gu);
    for (int i = 0; i < 3; i++) {
        double x = v->c * g[i] + v->s * gx[i] + less * gn * v->u[i];
        out[3 + i] = -x;
        out[11 + i] = x;
        angle += g[i] * (v->c * v->crossed[i] - v->s * v->x[i] + v->s * v->along * v->u[i]);
        du[i] = v->s * gu[i] + less * (v->along * g[i] + gn * v->x[i]);
        inward += du[i] * v->u[i];
    }
    for (int i = 0; i < 3; i++) out[i] = (du[i] - inward * v->u[i]) / v->angle + angle * v->u[i];
    out[6] = weight * v->bulge * v->at[k];
    out[7] = k == 0 ? weight : 0.0;
    out[8] = k == 1 ? weight : 0.0;
    out[9] = scale * v->at[k] * v->r;
    out[10] = scale * v->at[k] * v->r * v->r;
    out[14] = error / weight;
}

static int work(const char *mode, long n, long i, double *results) {
    static const double usual[11] = { -0.758453, -1.109613, -0.845551, 34.556073, 39.676747, 53.881673, 419.194514,
                                      5.864426,  -8.51887,  0.087812,  0.002739 };
    static const double place[3] = { 7.203245, 0.001144, 3.023326 }, usually[2] = { 271.760969, 834.209256 };
    static Scene s;
    double *weights = room((size_t)(37 * n)), *features = weights + n, *errors = features + 2 * n;
    double *slopes = errors + 3 * n, *blocks = slopes + n;
    int both = is(mode, "gradient");
#define NEAR(seed, k, x) ((x) * (0.95 + 0.1 * uniform((seed) + i, k)))
    for (long c = 0; c < CAMERAS; c++)
        for (long j = 0; j < 11; j++) s.cameras[c][j] = NEAR(1, 11 * c + j, usual[j]);
    for (long m = 0; m < POINTS; m++)
        for (long j = 0; j < 3; j++) s.points[m][j] = NEAR(2, 3 * m + j, place[j]);
    for (long o = 0; o < n; o++) weights[o] = NEAR(3, o, 0.417022);
    for (long k = 0; k < 2 * n; k++) features[k] = NEAR(4, k, usually[k % 2]);
    start();
    for (long o = 0; o < n; o++) {
        const double *camera = s.cameras[o % CAMERAS];
        View v;
        error(camera, s.points[o % POINTS], weights[o], features + 2 * o, &v, errors + 2 * o);
        for (int k = 0; both && k < 2; k++) row(camera, weights[o], &v, k, errors[2 * o + k], blocks + 30 * o + 15 * k);
    }
    for (long o = 0; o < n; o++) errors[2 * n + o] = 1.0 - weights[o] * weights[o];
    for (long o = 0; both && o < n; o++) slopes[o] = -2.0 * weights[o];
    stop();
    digest(both ? blocks : errors, both ? 30 * n : 2 * n, results);
    digest(both ? slopes : errors + 2 * n, n, results + 2);
    return 4;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
