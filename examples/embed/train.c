/* Trains the network of curve.dp from C:
 *
 *   dpl build --lib examples/embed/curve.dp
 *   cc examples/embed/train.c -I. -L. -lcurve -Wl,-rpath,. -lm -o train && ./train
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "curve.h"

enum { EXAMPLES = 64, INPUTS = 2, HIDDEN = 16, STEPS = 2000 };

static void check(int32_t code) {
    if (code != 0) {
        fprintf(stderr, "%s\n", curve_message());
        exit(1);
    }
}

int main(void) {
    double xs[EXAMPLES][INPUTS], ys[EXAMPLES];
    for (int i = 0; i < EXAMPLES; i++) {
        double x = 2.0 * i / (EXAMPLES - 1) - 1.0;
        xs[i][0] = x;
        xs[i][1] = 1.0;
        ys[i] = sin(3.0 * x);
    }

    /* The first call gives memory to `net`; the others fill it again, being told its sizes. */
    curve_net net = {0};
    check(curve_start(INPUTS, HIDDEN, 7, &net));

    double loss = 0.0;
    for (int i = 0; i < STEPS; i++) {
        check(curve_step(0.1, &net, &xs[0][0], EXAMPLES, INPUTS, ys, EXAMPLES, &loss, &net));
        if (i % 400 == 0) printf("step %4d  loss %.5f\n", i, loss);
    }
    double middle;
    check(curve_predict(&net, xs[EXAMPLES / 4], INPUTS, &middle));
    printf("sin(3 * %.3f) = %.3f, learnt: %.3f\n", xs[EXAMPLES / 4][0], ys[EXAMPLES / 4], middle);

    /* Sizes that do not fit are an error of the call, and nothing else. */
    if (curve_predict(&net, xs[0], 1, &middle) == CURVE_CHECK) printf("%s", curve_message());

    curve_free(net.weights);
    curve_free(net.offsets);
    curve_free(net.output);
    return 0;
}
