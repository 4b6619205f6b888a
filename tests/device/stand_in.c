/* A stand-in for libcuda.so.1 on machines without a GPU.

   Device memory is a file that this process shares with an interpreter of PTX (stand_in.py), which listens at the socket
   that DPL_STAND_IN names.  Device addresses are none of this process, so a program that mixes them up does not get far.
   Memory is poisoned when it is allocated, and not used again when it is given back.  DPL_STAND_IN_LOG names a file that
   gets a line for each copy and launch. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef int R;
typedef uint64_t P;
enum { MOST = 512 };                            /* parameters of a kernel: 4096 bytes */
enum { OK = 0, INVALID = 1, NO_DEVICE = 100, NOT_FOUND = 500, BAD_PTX = 218, ILLEGAL_ADDRESS = 700, OUT_OF_MEMORY = 2 };

static const P FIRST = 0x700000000000ull;      /* the address of the first byte */
static const uint64_t ROOM = 1ull << 36;
static char *memory;
static uint64_t used, in_use, limit;
static int talk = -1;
static R sticky;
static FILE *told;
static double clock_ms;

struct block { P base; uint64_t size; };
static struct block *blocks;
static int block_count;

static struct block *block_at(P p) {
  for (int i = block_count - 1; i >= 0; i--)
    if (p >= blocks[i].base && p < blocks[i].base + blocks[i].size) return &blocks[i];
  return NULL;
}

/* the bytes at a device address; NULL if no block has so many there */
static char *bytes(P p, uint64_t size) {
  struct block *b = block_at(p);
  if (size == 0) return memory;
  return b && p + size <= b->base + b->size ? memory + (p - FIRST) : NULL;
}

static void note(const char *what, const char *name, uint64_t size) {
  if (told) { fprintf(told, "%s %s %lu\n", what, name, (unsigned long)size); fflush(told); }
}

/* asks the interpreter: four numbers and some bytes; the answer is a number and some bytes */
static int64_t ask(int64_t what, int64_t a, int64_t b, int64_t c, const void *data, uint64_t size, char *back, uint64_t most) {
  int64_t head[5] = {what, a, b, c, (int64_t)size}, reply[2];
  if (write(talk, head, sizeof head) != sizeof head) return -1;
  for (uint64_t done = 0; done < size;) {
    ssize_t n = write(talk, (const char *)data + done, size - done);
    if (n <= 0) return -1;
    done += n;
  }
  for (uint64_t done = 0; done < sizeof reply;) {
    ssize_t n = read(talk, (char *)reply + done, sizeof reply - done);
    if (n <= 0) return -1;
    done += n;
  }
  for (uint64_t done = 0; done < (uint64_t)reply[1];) {
    char spare[256];
    uint64_t room = done < most ? most - done : sizeof spare;
    if (room > (uint64_t)reply[1] - done) room = reply[1] - done;
    ssize_t n = read(talk, done < most ? back + done : spare, room);
    if (n <= 0) return -1;
    done += n;
  }
  return reply[0];
}

enum { HELLO, LOAD, PLACE, PARAMETERS, VARIABLE, ALLOCATED, FREED, LAUNCH };

R cuInit(unsigned flags) {
  const char *path = getenv("DPL_STAND_IN"), *log = getenv("DPL_STAND_IN_LOG"), *most = getenv("DPL_STAND_IN_MEMORY");
  struct sockaddr_un address = {AF_UNIX, ""};
  if (talk >= 0) return OK;
  if (!path) return NO_DEVICE;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  int file = memfd_create("device memory", 0);
  if (file < 0 || ftruncate(file, ROOM)) return OUT_OF_MEMORY;
  memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  talk = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (memory == MAP_FAILED || connect(talk, (struct sockaddr *)&address, sizeof address)) return NO_DEVICE;
  limit = most ? strtoull(most, NULL, 10) : ROOM / 2;
  if (log) told = fopen(log, "a");
  return ask(HELLO, getpid(), file, ROOM, NULL, 0, NULL, 0) ? NO_DEVICE : OK;
}
R cuDriverGetVersion(int *v) { *v = 13000; return OK; }
R cuDeviceGetCount(int *n) { *n = 1; return OK; }
R cuDeviceGet(int *d, int i) { *d = i; return i ? 101 : OK; }
R cuDeviceGetName(char *s, int n, int d) { strncpy(s, "a GPU that is none", n); return OK; }
R cuDeviceGetAttribute(int *v, int a, int d) {
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 2 : a == 1 ? 1024 : a == 39 ? 2048 : a == 115 ? 1 : 0;
  return OK;
}
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)1; return OK; }
R cuDevicePrimaryCtxRelease_v2(int d) { return OK; }
R cuCtxSetCurrent(void *c) { return OK; }
R cuCtxSetLimit(int which, size_t value) { return OK; }
R cuStreamCreate(void **s, unsigned flags) { *s = (void *)2; return OK; }
R cuDeviceGetDefaultMemPool(void **p, int d) { *p = (void *)3; return OK; }
R cuMemPoolSetAttribute(void *p, int which, void *value) { return OK; }
R cuMemHostAlloc(void **p, size_t n, unsigned flags) { *p = malloc(n); return *p ? OK : OUT_OF_MEMORY; }
R cuMemFreeHost(void *p) { free(p); return OK; }

static R allocate(P *p, uint64_t n) {
  uint64_t whole = (n + 511) / 256 * 256 + 256;
  if (in_use + n > limit || used + whole > ROOM) return OUT_OF_MEMORY;
  blocks = realloc(blocks, (block_count + 1) * sizeof *blocks);
  *p = FIRST + used;
  blocks[block_count++] = (struct block){*p, n};
  memset(memory + used, 0xA5, n);
  used += whole;
  in_use += n;
  return OK;
}
R cuMemAllocAsync(P *p, size_t n, void *s) {
  if (n == 0) return INVALID;
  R r = allocate(p, n);
  return r ? r : ask(ALLOCATED, *p, n, 0, NULL, 0, NULL, 0) ? INVALID : OK;
}
R cuMemFreeAsync(P p, void *s) {
  struct block *b = block_at(p);
  if (!b || b->base != p) return INVALID;
  uint64_t from = (p - FIRST + 4095) & ~4095ull, to = (p - FIRST + b->size) & ~4095ull;
  if (to > from) madvise(memory + from, to - from, MADV_REMOVE);
  in_use -= b->size;
  memmove(b, b + 1, (char *)(blocks + block_count) - (char *)(b + 1));
  block_count--;
  return ask(FREED, p, 0, 0, NULL, 0, NULL, 0) ? INVALID : OK;
}
R cuMemGetInfo_v2(size_t *unused, size_t *all) { *all = limit; *unused = limit - in_use; return OK; }
R cuMemcpyHtoDAsync_v2(P d, const void *h, size_t n, void *s) {
  char *to = bytes(d, n);
  if (!to) return INVALID;
  memcpy(to, h, n);
  note("up", "-", n);
  return sticky;
}
R cuMemcpyDtoHAsync_v2(void *h, P d, size_t n, void *s) {
  char *from = bytes(d, n);
  if (!from) return INVALID;
  if (!sticky) memcpy(h, from, n);
  note("down", "-", n);
  return sticky;
}
R cuMemcpyDtoDAsync_v2(P to, P from, size_t n, void *s) {
  char *a = bytes(to, n), *b = bytes(from, n);
  if (!a || !b) return INVALID;
  memcpy(a, b, n);
  return sticky;
}
R cuMemsetD8Async(P d, unsigned char v, size_t n, void *s) {
  char *to = bytes(d, n);
  if (!to) return INVALID;
  memset(to, v, n);
  return sticky;
}

struct function { int module; char name[120]; int count; int sizes[MOST]; };

R cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options, void **values) {
  char *log = NULL;
  uint64_t room = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == 5) log = values[i];
    if (options[i] == 6) room = (uint64_t)values[i];
  }
  int64_t size = ask(LOAD, 0, 0, 0, image, strlen(image), log, room ? room - 1 : 0);
  if (size < 0) return BAD_PTX;
  P base;
  R r = allocate(&base, size + 8);
  if (r) return r;
  int64_t made = ask(PLACE, base, size + 8, 0, NULL, 0, NULL, 0);
  *m = (void *)made;
  return made < 0 ? BAD_PTX : OK;
}
R cuModuleGetFunction(void **f, void *m, const char *name) {
  struct function *made = calloc(1, sizeof *made);
  made->module = (intptr_t)m;
  strncpy(made->name, name, sizeof made->name - 1);
  made->count = ask(PARAMETERS, (intptr_t)m, 0, 0, name, strlen(name), (char *)made->sizes, sizeof made->sizes);
  *f = made;
  return made->count < 0 ? NOT_FOUND : made->count > MOST ? INVALID : OK;
}
R cuModuleGetGlobal_v2(P *p, size_t *size, void *m, const char *name) {
  int64_t made[2], known = ask(VARIABLE, (intptr_t)m, 0, 0, name, strlen(name), (char *)made, sizeof made);
  if (known < 0) return NOT_FOUND;
  if (p) *p = made[0];
  if (size) *size = made[1];
  return OK;
}
R cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 void *s, void **params, void **extra) {
  struct function *k = f;
  char data[sizeof k->name + 8 * MOST] = "";
  if (gx == 0 || gx > 2147483647u || bx == 0 || bx > 1024 || gy * gz * by * bz != 1) return INVALID;
  memcpy(data, k->name, sizeof k->name);
  for (int i = 0; i < k->count; i++) memcpy(data + sizeof k->name + 8 * i, params[i], k->sizes[i]);
  note("launch", k->name, (uint64_t)gx * bx);
  clock_ms += 1;
  if (ask(LAUNCH, k->module, gx, bx, data, sizeof k->name + 8 * k->count, NULL, 0)) sticky = ILLEGAL_ADDRESS;
  return OK;
}
R cuStreamSynchronize(void *s) { note("wait", "-", 0); return sticky; }
R cuGetErrorName(R e, const char **s) {
  *s = e == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : e == 100 ? "CUDA_ERROR_NO_DEVICE" : e == 218 ? "CUDA_ERROR_INVALID_PTX"
     : e == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : e == 500 ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_INVALID_VALUE";
  return OK;
}

/* a launch takes one millisecond here */
R cuEventCreate(void **e, unsigned flags) { *e = calloc(1, sizeof(double)); return OK; }
R cuEventRecord(void *e, void *s) { *(double *)e = clock_ms; return OK; }
R cuEventElapsedTime(float *ms, void *a, void *b) { *ms = *(double *)b - *(double *)a; return OK; }
R cuEventElapsedTime_v2(float *ms, void *a, void *b) { return cuEventElapsedTime(ms, a, b); }
R cuEventDestroy_v2(void *e) { free(e); return OK; }
