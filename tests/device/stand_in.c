/* A stand-in for libcuda.so.1 on machines without a GPU, as strict as the driver.

   Device memory is a file that this process shares with an interpreter of PTX (stand_in.py), which listens at the socket
   that DPL_STAND_IN names.  Device addresses are none of this process, so a program that mixes them up does not get far.
   Memory is poisoned when it is allocated, and not used again when it is given back.  DPL_STAND_IN_LOG names a file that
   gets a line for each copy and launch.

   Work is queued, and done as late as the driver may: when the stream is waited for, or when something is copied to
   memory of the host that is not page-locked.  Page-locked memory is read when the copy is done, other memory at the call.
   A launch that goes wrong is told by the call that waits, and by each one after it.  Calls need a context, which each
   thread sets for itself. */
#define _GNU_SOURCE
#include <pthread.h>
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
enum {
  OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, NOT_A_DEVICE = 101, NO_CONTEXT = 201,
  WRONG_GPU = 209, BAD_PTX = 218, NEW_PTX = 222, BAD_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
  ILLEGAL_ADDRESS = 700
};
enum { VERSION = 13000, ISA = 90, MOST_STACK = 512 << 10, STACK_SIZE = 0, QUEUED = 4096 };

static const P FIRST = 0x700000000000ull;      /* the address of the first byte */
static const uint64_t ROOM = 1ull << 36;
static char *memory;
static uint64_t used, in_use, limit;
static int talk = -1;
static R sticky;
static FILE *told;
static double clock_ms;
static __thread int current;                    /* whether this thread has set a context */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char context, stream, pool;              /* their addresses are handles */

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

enum { HELLO, LOAD, PLACE, PARAMETERS, VARIABLE, ALLOCATED, FREED, LAUNCH, STACK };

static void leave(pthread_mutex_t **m) { pthread_mutex_unlock(*m); }

/* What each call begins with. */
#define ENTER                                                                          \
  pthread_mutex_t *held __attribute__((cleanup(leave))) = &turn;                       \
  pthread_mutex_lock(held);                                                            \
  if (talk < 0) return NOT_INITIALIZED;                                                \
  if (!current) return NO_CONTEXT;                                                     \
  if (sticky) return sticky
#define ENTER_STREAM(s)                                                                \
  ENTER;                                                                               \
  if ((s) && (s) != (void *)&stream) return BAD_HANDLE

/* ---- the queue */

struct function { int module; char name[120]; int count; int sizes[MOST]; };
struct event { double ms; int queued, done; };
enum { COPY_UP, COPY_UP_PINNED, COPY_DOWN, ACROSS, FILL, RELEASE, RUN, MARK, MULTIPLY };
struct product { P a, b, c; int m, n, k, ta, tb, lda, ldb, ldc, single; double alpha, beta; };
struct work { int kind; P to, from; uint64_t size; void *data; int grid, block; struct event *event; };
static void multiply(struct product *);
static struct work queue[QUEUED];
static int queued;
static uint64_t staged;

struct pinned { char *base; uint64_t size; };
static struct pinned *locked;
static int locked_count;

static int is_pinned(const void *p, uint64_t n) {
  for (int i = 0; i < locked_count; i++)
    if ((char *)p >= locked[i].base && (char *)p + n <= locked[i].base + locked[i].size) return 1;
  return 0;
}

static char *at(P p) { return memory + (p - FIRST); }

static void do_work(struct work *w) {
  switch (w->kind) {
  case COPY_UP: memcpy(at(w->to), w->data, w->size); break;
  case COPY_UP_PINNED: memcpy(at(w->to), (void *)w->from, w->size); break;
  case COPY_DOWN: memcpy((void *)w->to, at(w->from), w->size); break;
  case ACROSS: memcpy(at(w->to), at(w->from), w->size); break;
  case FILL: memset(at(w->to), (int)w->from, w->size); break;
  case MULTIPLY: clock_ms += 1; multiply(w->data); break;
  case MARK: w->event->ms = clock_ms; w->event->done = 1; break;
  case RELEASE: {
    P from = (w->to + 4095) & ~4095ull, to = (w->to + w->size) & ~4095ull;
    if (to > from) madvise(at(from), to - from, MADV_REMOVE);
    ask(FREED, w->to, 0, 0, NULL, 0, NULL, 0);
    break;
  }
  case RUN:
    clock_ms += 1;
    if (ask(LAUNCH, w->from, w->grid, w->block, w->data, w->size, NULL, 0)) sticky = ILLEGAL_ADDRESS;
  }
}

static int has_data(struct work *w) { return w->kind == COPY_UP || w->kind == RUN || w->kind == MULTIPLY; }

/* Does all that is queued; what is left after an error is lost. */
static R finish(void) {
  for (int i = 0; i < queued; i++) {
    if (!sticky) do_work(&queue[i]);
    if (has_data(&queue[i])) free(queue[i].data);
  }
  queued = 0;
  staged = 0;
  return sticky;
}

static void later(struct work w) {
  if (queued == QUEUED || staged > 1 << 28) finish();
  if (has_data(&w)) {
    void *kept = malloc(w.size);
    memcpy(kept, w.data, w.size);
    w.data = kept;
    staged += w.size;
  }
  queue[queued++] = w;
}

/* ---- the device */

R cuInit(unsigned flags) {
  const char *path = getenv("DPL_STAND_IN"), *log = getenv("DPL_STAND_IN_LOG"), *most = getenv("DPL_STAND_IN_MEMORY");
  struct sockaddr_un address = {AF_UNIX, ""};
  if (talk >= 0) return OK;
  if (flags) return INVALID;
  if (!path) return NO_DEVICE;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  int file = memfd_create("device memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, ROOM)) return OUT_OF_MEMORY;
  memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  int found = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (memory == MAP_FAILED || connect(found, (struct sockaddr *)&address, sizeof address)) return NO_DEVICE;
  talk = found;
  limit = most ? strtoull(most, NULL, 10) : ROOM / 2;
  if (log) told = fopen(log, "a");
  return ask(HELLO, getpid(), file, ROOM, NULL, 0, NULL, 0) ? NO_DEVICE : OK;
}
R cuDriverGetVersion(int *v) { *v = VERSION; return OK; }
R cuDeviceGetCount(int *n) { *n = 1; return talk < 0 ? NOT_INITIALIZED : OK; }
R cuDeviceGet(int *d, int i) { *d = i; return talk < 0 ? NOT_INITIALIZED : i ? NOT_A_DEVICE : OK; }
R cuDeviceGetName(char *s, int n, int d) { strncpy(s, "a GPU that is none", n); return d ? NOT_A_DEVICE : OK; }
R cuDeviceGetAttribute(int *v, int a, int d) {
  if (talk < 0) return NOT_INITIALIZED;
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 16 ? 2 : a == 1 ? 1024 : a == 39 ? 2048 : a == 115 ? !getenv("DPL_STAND_IN_OLD") : 0;
  return d ? NOT_A_DEVICE : OK;
}
R cuDevicePrimaryCtxRetain(void **c, int d) {
  if (talk < 0) return NOT_INITIALIZED;
  *c = &context;
  return d ? NOT_A_DEVICE : OK;
}
R cuDevicePrimaryCtxRelease_v2(int d) { return OK; }
R cuCtxSetCurrent(void *c) {
  if (talk < 0) return NOT_INITIALIZED;
  if (c && c != &context) return NO_CONTEXT;
  current = c != NULL;
  return OK;
}
R cuCtxGetCurrent(void **c) { *c = current ? &context : NULL; return talk < 0 ? NOT_INITIALIZED : OK; }
R cuCtxSetLimit(int which, size_t value) {
  ENTER;
  if (which != STACK_SIZE || value > MOST_STACK) return INVALID;
  return ask(STACK, value, 0, 0, NULL, 0, NULL, 0) ? INVALID : OK;
}
R cuStreamCreate(void **s, unsigned flags) { ENTER; *s = &stream; return flags > 1 ? INVALID : OK; }
R cuDeviceGetDefaultMemPool(void **p, int d) {
  if (talk < 0) return NOT_INITIALIZED;
  *p = &pool;
  return d ? NOT_A_DEVICE : getenv("DPL_STAND_IN_OLD") ? 801 : OK;
}
R cuMemPoolSetAttribute(void *p, int which, void *value) { return p != &pool ? BAD_HANDLE : OK; }

/* ---- memory */

R cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  ENTER;
  if (!(*p = aligned_alloc(4096, (n + 4095) & ~4095ull))) return OUT_OF_MEMORY;
  locked = realloc(locked, (locked_count + 1) * sizeof *locked);
  locked[locked_count++] = (struct pinned){*p, n};
  return OK;
}
R cuMemFreeHost(void *p) {
  ENTER;
  finish();
  for (int i = 0; i < locked_count; i++)
    if (locked[i].base == p) {
      free(p);
      locked[i] = locked[--locked_count];
      return OK;
    }
  return INVALID;
}

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
  ENTER_STREAM(s);
  if (getenv("DPL_STAND_IN_OLD")) return 801;
  if (n == 0) return INVALID;
  R r = allocate(p, n);
  return r ? r : ask(ALLOCATED, *p, n, 0, NULL, 0, NULL, 0) ? INVALID : OK;
}
R cuMemFreeAsync(P p, void *s) {
  ENTER_STREAM(s);
  struct block *b = block_at(p);
  if (!b || b->base != p) return INVALID;
  in_use -= b->size;
  later((struct work){RELEASE, .to = p, .size = b->size});
  memmove(b, b + 1, (char *)(blocks + block_count) - (char *)(b + 1));
  block_count--;
  return OK;
}
R cuMemGetInfo_v2(size_t *unused, size_t *all) { ENTER; *all = limit; *unused = limit - in_use; return OK; }
R cuMemcpyHtoDAsync_v2(P d, const void *h, size_t n, void *s) {
  ENTER_STREAM(s);
  if (!bytes(d, n)) return INVALID;
  int wait = is_pinned(h, n);
  later((struct work){wait ? COPY_UP_PINNED : COPY_UP, .to = d, .from = (P)h, .size = n, .data = (void *)h});
  note("up", wait ? "pinned" : "-", n);
  return OK;
}
R cuMemcpyDtoHAsync_v2(void *h, P d, size_t n, void *s) {
  ENTER_STREAM(s);
  if (!bytes(d, n)) return INVALID;
  int wait = is_pinned(h, n);
  later((struct work){COPY_DOWN, .to = (P)h, .from = d, .size = n});
  note("down", wait ? "pinned" : "-", n);
  return wait ? OK : finish();
}
R cuMemcpyDtoDAsync_v2(P to, P from, size_t n, void *s) {
  ENTER_STREAM(s);
  if (!bytes(to, n) || !bytes(from, n)) return INVALID;
  later((struct work){ACROSS, .to = to, .from = from, .size = n});
  return OK;
}
R cuMemsetD8Async(P d, unsigned char v, size_t n, void *s) {
  ENTER_STREAM(s);
  if (!bytes(d, n)) return INVALID;
  later((struct work){FILL, .to = d, .from = v, .size = n});
  return OK;
}

/* ---- modules */

/* whether this driver and GPU can have a module */
static R suits(const char *image) {
  int major, minor, sm;
  const char *version = strstr(image, ".version "), *target = strstr(image, ".target sm_");
  if (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2) return BAD_PTX;
  if (!target || sscanf(target, ".target sm_%d", &sm) != 1) return BAD_PTX;
  return 10 * major + minor > ISA ? NEW_PTX : sm > 90 ? WRONG_GPU : OK;
}
R cuModuleLoadDataEx(void **m, const void *image, unsigned n, int *options, void **values) {
  ENTER;
  char *log = NULL;
  uint64_t room = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == 5) log = values[i];
    if (options[i] == 6) room = (uint32_t)(uintptr_t)values[i];
  }
  R r = suits(image);
  if (r) return r;
  int64_t size = ask(LOAD, 0, 0, 0, image, strlen(image), log, room ? room - 1 : 0);
  if (size < 0) return BAD_PTX;
  P base;
  if ((r = allocate(&base, size + 8))) return r;
  int64_t made = ask(PLACE, base, size + 8, 0, NULL, 0, NULL, 0);
  *m = (void *)made;
  return made < 0 ? BAD_PTX : OK;
}
R cuModuleGetFunction(void **f, void *m, const char *name) {
  ENTER;
  struct function *made = calloc(1, sizeof *made);
  made->module = (intptr_t)m;
  strncpy(made->name, name, sizeof made->name - 1);
  made->count = ask(PARAMETERS, (intptr_t)m, 0, 0, name, strlen(name), (char *)made->sizes, sizeof made->sizes);
  *f = made;
  return made->count < 0 ? NOT_FOUND : made->count > MOST ? INVALID : OK;
}
R cuModuleGetGlobal_v2(P *p, size_t *size, void *m, const char *name) {
  ENTER;
  int64_t made[2], known = ask(VARIABLE, (intptr_t)m, 0, 0, name, strlen(name), (char *)made, sizeof made);
  if (known < 0) return NOT_FOUND;
  if (p) *p = made[0];
  if (size) *size = made[1];
  return OK;
}
R cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                 void *s, void **params, void **extra) {
  ENTER_STREAM(s);
  struct function *k = f;
  char data[sizeof k->name + 8 * MOST] = "";
  if (gx == 0 || gx > 2147483647u || gy - 1 >= 65535 || gz - 1 >= 65535) return INVALID;
  if (bx == 0 || bx > 1024 || by * bz != 1 || gy * gz != 1 || shared > 48 << 10 || extra) return INVALID;
  memcpy(data, k->name, sizeof k->name);
  for (int i = 0; i < k->count; i++) memcpy(data + sizeof k->name + 8 * i, params[i], k->sizes[i]);
  note("launch", k->name, (uint64_t)gx * bx);
  later((struct work){RUN, .from = k->module, .size = sizeof k->name + 8 * k->count, .data = data, .grid = gx, .block = bx});
  return OK;
}
R cuStreamSynchronize(void *s) { ENTER_STREAM(s); note("wait", "-", 0); return finish(); }
R cuGetErrorName(R e, const char **s) {
  static const struct { R code; const char *name; } names[] = {
    {1, "CUDA_ERROR_INVALID_VALUE"}, {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
    {100, "CUDA_ERROR_NO_DEVICE"}, {101, "CUDA_ERROR_INVALID_DEVICE"}, {201, "CUDA_ERROR_INVALID_CONTEXT"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"}, {218, "CUDA_ERROR_INVALID_PTX"}, {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {400, "CUDA_ERROR_INVALID_HANDLE"}, {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {801, "CUDA_ERROR_NOT_SUPPORTED"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].code == e) { *s = names[i].name; return OK; }
  *s = NULL;
  return INVALID;
}

/* ---- events; a launch takes one millisecond here */

R cuEventCreate(void **e, unsigned flags) { ENTER; *e = calloc(1, sizeof(struct event)); return OK; }
R cuEventRecord(void *e, void *s) {
  ENTER_STREAM(s);
  struct event *event = e;
  event->queued = 1;
  event->done = 0;
  later((struct work){MARK, .event = event});
  return OK;
}
R cuEventElapsedTime(float *ms, void *a, void *b) {
  ENTER;
  struct event *first = a, *last = b;
  if (!first->queued || !last->queued) return BAD_HANDLE;
  if (!first->done || !last->done) return NOT_READY;
  *ms = last->ms - first->ms;
  return OK;
}
R cuEventElapsedTime_v2(float *ms, void *a, void *b) { return cuEventElapsedTime(ms, a, b); }
R cuEventDestroy_v2(void *e) { ENTER; free(e); return OK; }

/* ---- cuBLAS: products of matrices whose columns lie side by side */

static char blas;
static void *blas_stream;
enum { NO_BLAS = 1, WRONG_VALUE = 7 };

static double element(P base, int single, uint64_t i) {
  return single ? ((float *)at(base))[i] : ((double *)at(base))[i];
}

static void multiply(struct product *p) {
  for (uint64_t j = 0; j < p->n; j++)
    for (uint64_t i = 0; i < p->m; i++) {
      uint64_t place = i + j * p->ldc;
      double sum = 0.0;
      for (uint64_t l = 0; l < p->k; l++)
        sum += element(p->a, p->single, p->ta ? l + i * p->lda : i + l * p->lda) *
               element(p->b, p->single, p->tb ? j + l * p->ldb : l + j * p->ldb);
      sum = p->alpha * sum + (p->beta ? p->beta * element(p->c, p->single, place) : 0.0);
      if (p->single) ((float *)at(p->c))[place] = sum;
      else ((double *)at(p->c))[place] = sum;
    }
}

static R enqueue(void *handle, struct product p, int rows_a, int columns_a, int rows_b, int columns_b) {
  uint64_t size = p.single ? 4 : 8;
  if (handle != &blas || blas_stream != &stream || !current) return NO_BLAS;
  if (p.m < 0 || p.n < 0 || p.k < 0 || (p.ta | p.tb) > 1u || p.lda < rows_a || p.ldb < rows_b || p.ldc < p.m) return WRONG_VALUE;
  if (!bytes(p.a, size * p.lda * columns_a) || !bytes(p.b, size * p.ldb * columns_b) || !bytes(p.c, size * p.ldc * p.n))
    return WRONG_VALUE;
  later((struct work){MULTIPLY, .data = &p, .size = sizeof p});
  note("launch", p.single ? "sgemm" : "dgemm", (uint64_t)p.m * p.n);
  return OK;
}

R cublasCreate_v2(void **handle) { *handle = &blas; return current ? OK : NO_BLAS; }
R cublasSetStream_v2(void *handle, void *s) { blas_stream = s; return handle == &blas ? OK : NO_BLAS; }
#define GEMM(name, type, is_single)                                                                                 \
  R name(void *handle, int ta, int tb, int m, int n, int k, const type *alpha, P a, int lda, P b, int ldb,          \
         const type *beta, P c, int ldc) {                                                                          \
    struct product p = {a, b, c, m, n, k, ta, tb, lda, ldb, ldc, is_single, *alpha, *beta};                         \
    return enqueue(handle, p, ta ? k : m, ta ? m : k, tb ? n : k, tb ? k : n);                                      \
  }
GEMM(cublasDgemm_v2, double, 0)
GEMM(cublasSgemm_v2, float, 1)
