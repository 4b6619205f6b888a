/* tree.dp, its derivatives by hand. */
#include "../measure.h"

typedef struct { double value, tangent; } Dual;

static Dual forward(double x, long n) {
    if (n < 2) return (Dual){ x + 0.1 * (double)n, 1.0 };
    Dual a = forward(x, n - 1), b = forward(x, n - 2);
    return (Dual){ 0.5 * (a.value * b.value) + x, 0.5 * (a.tangent * b.value + a.value * b.tangent) + 1.0 };
}

/* Both factors of every product are kept, in the order in which the products are made. */
static double *kept, cx;

static double up(double x, long n) {
    if (n < 2) return x + 0.1 * (double)n;
    double a = up(x, n - 1), b = up(x, n - 2);
    *kept++ = a;
    *kept++ = b;
    return 0.5 * (a * b) + x;
}

static void down(long n, double cy) {
    cx += cy;
    if (n < 2) return;
    double b = *--kept, a = *--kept;
    down(n - 2, 0.5 * a * cy);
    down(n - 1, 0.5 * b * cy);
}

static int work(const char *mode, long n, long i, double *results) {
    double x = 0.3 + 1e-9 * (double)i;
    if (is(mode, "forward")) {
        Dual y = forward(x, n);
        results[0] = y.value;
        results[1] = y.tangent;
    } else {
        double before = 1.0, products = 0.0; /* of the tree for n - 1, and for n */
        for (long k = 2; k <= n; k++) {
            double next = 1.0 + products + (k > 2 ? before : 0.0);
            before = products;
            products = next;
        }
        kept = room(2 * (size_t)products);
        cx = 0.0;
        results[0] = up(x, n);
        down(n, 1.0);
        results[1] = cx;
    }
    return 2;
}

int main(int count, char **arguments) { return measure(work, count, arguments); }
