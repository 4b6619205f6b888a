/* The character network of examples/char_rnn.dp in C, with the backward pass written by hand.
 *
 *     cc -O3 -march=native -ffast-math char_rnn.c -lm -o char_rnn && ./char_rnn TEXT-FILE ITERATIONS
 *
 * Same algorithm, same settings, same first weights (Threefry-2x64).  The text must be ASCII. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { H = 50, STEPS = 20, MAX_V = 128, SIZE = MAX_V * H + H * H + MAX_V * H + H + MAX_V };

/* Parameters, gradients and Adagrad's squares are vectors of one layout. */
typedef struct { double *wxh, *whh, *why, *bh, *by; int count; } Params;

static int V; /* the size of the alphabet, after reading */

static Params lay_out(double *memory) {
    Params p;
    p.wxh = memory;
    p.whh = p.wxh + V * H;
    p.why = p.whh + H * H;
    p.bh = p.why + V * H;
    p.by = p.bh + H;
    p.count = (int)(p.by + V - memory);
    return p;
}

static uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static double normal(uint64_t key, uint64_t place) {
    static const int rotations[8] = { 16, 42, 12, 31, 16, 32, 24, 21 };
    const uint64_t words[3] = { key, 0, key ^ 0x1BD11BDAA9FC1A22u };
    uint64_t a = place + words[0], b = words[1];
    for (int step = 0; step < 20; step++) {
        a += b;
        b = rotate(b, rotations[step % 8]) ^ a;
        if (step % 4 == 3) {
            int turn = step / 4 + 1;
            a += words[turn % 3];
            b += words[(turn + 1) % 3] + (uint64_t)turn;
        }
    }
    double u = (double)(a >> 11) * 0x1p-53, v = (double)(b >> 11) * 0x1p-53;
    return sqrt(-2.0 * log(1.0 - u)) * cos(2.0 * M_PI * v);
}

static double h[STEPS + 1][H], probability[STEPS][MAX_V];

static double forward(Params p, const int *text) {
    double loss = 0.0;
    for (int t = 0; t < STEPS; t++) {
        for (int i = 0; i < H; i++) {
            double sum = p.wxh[text[t] * H + i] + p.bh[i];
            for (int j = 0; j < H; j++) sum += p.whh[i * H + j] * h[t][j];
            h[t + 1][i] = tanh(sum);
        }
        double *y = probability[t], top = -INFINITY, total = 0.0;
        for (int c = 0; c < V; c++) {
            double sum = p.by[c];
            for (int j = 0; j < H; j++) sum += p.why[c * H + j] * h[t + 1][j];
            y[c] = sum;
            if (sum > top) top = sum;
        }
        for (int c = 0; c < V; c++) total += y[c] = exp(y[c] - top);
        for (int c = 0; c < V; c++) y[c] /= total;
        loss -= log(y[text[t + 1]]);
    }
    return loss;
}

static void backward(Params p, Params d, const int *text) {
    double next[H] = { 0 };
    memset(d.wxh, 0, sizeof(double) * (size_t)d.count);
    for (int t = STEPS - 1; t >= 0; t--) {
        double dh[H], *dy = probability[t];
        dy[text[t + 1]] -= 1.0;
        memcpy(dh, next, sizeof dh);
        memset(next, 0, sizeof next);
        for (int c = 0; c < V; c++) {
            d.by[c] += dy[c];
            for (int j = 0; j < H; j++) d.why[c * H + j] += dy[c] * h[t + 1][j];
            for (int j = 0; j < H; j++) dh[j] += dy[c] * p.why[c * H + j];
        }
        for (int i = 0; i < H; i++) {
            double raw = (1.0 - h[t + 1][i] * h[t + 1][i]) * dh[i];
            d.bh[i] += raw;
            d.wxh[text[t] * H + i] += raw;
            for (int j = 0; j < H; j++) d.whh[i * H + j] += raw * h[t][j];
            for (int j = 0; j < H; j++) next[j] += raw * p.whh[i * H + j];
        }
    }
}

static void descend(Params p, Params d, Params squares) {
    for (int k = 0; k < p.count; k++) {
        double g = fmin(fmax(d.wxh[k], -5.0), 5.0);
        double s = squares.wxh[k] += g * g;
        p.wxh[k] -= 0.1 * g / sqrt(s + 1e-8);
    }
}

static int *read_text(const char *path, int *length) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(1); }
    int seen[256] = { 0 }, capacity = 1 << 20, *text = malloc(sizeof(int) * (size_t)capacity);
    *length = 0;
    for (int c; (c = getc(file)) != EOF; seen[c] = 1) {
        if (*length == capacity) text = realloc(text, sizeof(int) * (size_t)(capacity *= 2));
        text[(*length)++] = c;
    }
    fclose(file);
    for (int c = 0; c < 256; c++) seen[c] = seen[c] ? V++ : 0;
    if (V > MAX_V) { fprintf(stderr, "%s: not ASCII\n", path); exit(1); }
    for (int k = 0; k < *length; k++) text[k] = seen[text[k]];
    return text;
}

int main(int count, char **args) {
    if (count != 3) { fprintf(stderr, "usage: %s TEXT-FILE ITERATIONS\n", args[0]); return 2; }
    static double memory[3][SIZE];
    int length, iterations = atoi(args[2]), *text = read_text(args[1], &length);
    Params p = lay_out(memory[0]), d = lay_out(memory[1]), squares = lay_out(memory[2]);
    for (int k = 0; k < V * H; k++) p.wxh[k] = 0.01 * normal(1, (uint64_t)k);
    for (int k = 0; k < H * H; k++) p.whh[k] = 0.01 * normal(2, (uint64_t)k);
    for (int k = 0; k < V * H; k++) p.why[k] = 0.01 * normal(3, (uint64_t)k);
    double smooth = STEPS * log(V);
    for (int i = 0, at = 0; i < iterations; i++, at += STEPS) {
        if (at + STEPS + 1 >= length) { at = 0; memset(h[0], 0, sizeof h[0]); }
        double loss = forward(p, text + at);
        backward(p, d, text + at);
        descend(p, d, squares);
        memcpy(h[0], h[STEPS], sizeof h[0]);
        smooth = 0.999 * smooth + 0.001 * loss;
        if (i % 100 == 0) printf("iteration %d, loss %.6f\n", i, smooth);
    }
    free(text);
    return 0;
}
