/* Products of matrices by the library named in the environment (BLAS: NumPy's OpenBLAS), or else by loops. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef REAL
#define REAL double
#endif
typedef REAL real;
typedef void Gemm(int, int, int, int64_t, int64_t, int64_t, real, const real *, int64_t, const real *, int64_t, real,
                  real *, int64_t);
typedef void Gemv(int, int, int64_t, int64_t, real, const real *, int64_t, const real *, int64_t, real, real *, int64_t);
enum { ROWS = 101, AS_IS = 111, TURNED = 112 };

/* c = a b + keep c, where a or b may be given transposed; c has m rows and n columns, and the sums have k terms. */
static void loops(int order, int ta, int tb, int64_t m, int64_t n, int64_t k, real alpha, const real *a, int64_t lda,
                  const real *b, int64_t ldb, real keep, real *restrict c, int64_t ldc) {
    (void)order;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) c[i * ldc + j] *= keep;
        for (int64_t h = 0; h < k; h++) {
            real x = alpha * (ta == AS_IS ? a[i * lda + h] : a[h * lda + i]);
            if (tb == AS_IS)
                for (int64_t j = 0; j < n; j++) c[i * ldc + j] += x * b[h * ldb + j];
            else
                for (int64_t j = 0; j < n; j++) c[i * ldc + j] += x * b[j * ldb + h];
        }
    }
}

static void *named(const char *single, const char *twice) {
    const char *path = getenv("BLAS");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    return library ? dlsym(library, sizeof(real) == 4 ? single : twice) : NULL;
}

static inline void product(int ta, int tb, int64_t m, int64_t n, int64_t k, const real *a, const real *b, real keep, real *c) {
    static Gemm *gemm;
    if (!gemm) gemm = (Gemm *)named("scipy_cblas_sgemm64_", "scipy_cblas_dgemm64_");
    if (!gemm) gemm = loops;
    gemm(ROWS, ta, tb, m, n, k, 1, a, ta == AS_IS ? k : m, b, tb == AS_IS ? n : k, keep, c, n);
}

/* y = a x + keep y, where a, of m rows and n columns, may be taken transposed. */
static inline void apply(int ta, int64_t m, int64_t n, const real *a, const real *x, real keep, real *restrict y) {
    static Gemv *gemv;
    if (!gemv) gemv = (Gemv *)named("scipy_cblas_sgemv64_", "scipy_cblas_dgemv64_");
    if (gemv)
        gemv(ROWS, ta, m, n, 1, a, n, x, 1, keep, y, 1);
    else
        loops(ROWS, ta, AS_IS, ta == AS_IS ? m : n, 1, ta == AS_IS ? n : m, 1, a, n, x, 1, keep, y, 1);
}

/* log (softmax) at the right labels: the mean surprise of rows of ten; where asked, rows become their cotangents. */
static inline double surprise(long rows, real *restrict logits, int change) {
    double total = 0.0;
    for (long i = 0; i < rows; i++) {
        real *z = logits + 10 * i, top = z[0], sum = 0, weights[10];
        int label = (int)(i * 7 % 10);
        for (int j = 1; j < 10; j++) top = z[j] > top ? z[j] : top;
        for (int j = 0; j < 10; j++) {
            weights[j] = sizeof(real) == 4 ? (real)expf((float)(z[j] - top)) : (real)exp((double)(z[j] - top));
            sum += weights[j];
        }
        total += log((double)sum) + (double)(top - z[label]);
        if (change) {
            for (int j = 0; j < 10; j++) z[j] = weights[j] / (sum * (real)rows);
            z[label] -= 1 / (real)rows;
        }
    }
    return total / (double)rows;
}

/* The sum of rows. */
static inline void sum_rows(long rows, long columns, const real *xs, real *restrict out) {
    for (long j = 0; j < columns; j++) out[j] = 0;
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) out[j] += xs[i * columns + j];
}

/* A row, so many times. */
static inline void repeat_row(long rows, long columns, const real *row, real *restrict out) {
    for (long i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++) out[i * columns + j] = row[j];
}

static inline void digest_reals(const real *xs, long n, double *results) {
    results[0] = results[1] = 0.0;
    for (long i = 0; i < n; i++) {
        results[0] += (double)xs[i] * (1.0 + (double)(i % 7));
        results[1] += (double)xs[i] * (double)xs[i];
    }
}
