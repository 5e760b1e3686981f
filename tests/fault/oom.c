/* The functions that fail, and the loop over them; see oom.h. */
#include "oom.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <confuse.h>
#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <spng.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <uv.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

static struct {
    _Atomic uint64_t left; /* until the one that fails; 0: none will */
    _Atomic uint64_t seen;
    _Atomic(const char *) failed;
} oom = {.failed = ""};

/* Is this the one? */
static bool fails(const char *what) {
    atomic_fetch_add(&oom.seen, 1);
    uint64_t left = atomic_load(&oom.left);
    while (left > 0)
        if (atomic_compare_exchange_weak(&oom.left, &left, left - 1))
            break;
    if (left != 1)
        return false;
    atomic_store(&oom.failed, what);
    errno = ENOMEM;
    return true;
}

void oom_arm(uint64_t n) {
    atomic_store(&oom.failed, "");
    atomic_store(&oom.seen, 0);
    atomic_store(&oom.left, n);
}

bool oom_disarm(void) {
    atomic_store(&oom.left, 0);
    return oom_failed()[0] != '\0';
}

uint64_t oom_seen(void) {
    return atomic_load(&oom.seen);
}

const char *oom_failed(void) {
    return atomic_load(&oom.failed);
}

/* ---- the functions ---- */

/* X(result, name, parameters, arguments, what a failure returns) */
#define WRAPPED(X)                                                                                 \
    X(void *, malloc, (size_t n), (n), NULL)                                                       \
    X(void *, calloc, (size_t n, size_t size), (n, size), NULL)                                    \
    X(void *, realloc, (void *p, size_t n), (p, n), NULL)                                          \
    X(char *, strdup, (const char *s), (s), NULL)                                                  \
    X(char *, strndup, (const char *s, size_t n), (s, n), NULL)                                    \
    X(void *, mmap, (void *at, size_t n, int prot, int flags, int fd, off_t off),                  \
      (at, n, prot, flags, fd, off), MAP_FAILED)                                                   \
    X(void *, mmap64, (void *at, size_t n, int prot, int flags, int fd, off_t off),                \
      (at, n, prot, flags, fd, off), MAP_FAILED)                                                   \
    X(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)                    \
    X(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)                     \
    X(FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)                   \
    X(FILE *, fmemopen, (void *p, size_t n, const char *mode), (p, n, mode), NULL)                 \
    X(FILE *, open_memstream, (char **p, size_t *n), (p, n), NULL)                                 \
    X(DIR *, fdopendir, (int fd), (fd), NULL)                                                      \
    X(DIR *, opendir, (const char *path), (path), NULL)                                            \
    X(FTS *, fts_open,                                                                             \
      (char *const *paths, int options, int (*order)(const FTSENT **, const FTSENT **)),           \
      (paths, options, order), NULL)                                                               \
    X(int, pthread_create,                                                                         \
      (pthread_t * t, const pthread_attr_t *attr, void *(*run)(void *), void *arg),                \
      (t, attr, run, arg), EAGAIN)                                                                 \
    X(XXH3_state_t *, XXH3_createState, (void), (), NULL)                                          \
    X(ZSTD_CCtx *, ZSTD_createCCtx, (void), (), NULL)                                              \
    X(ZSTD_DCtx *, ZSTD_createDCtx, (void), (), NULL)                                              \
    X(size_t, ZSTD_compress2, (ZSTD_CCtx * c, void *dst, size_t room, const void *src, size_t n),  \
      (c, dst, room, src, n), (size_t)-ZSTD_error_memory_allocation)                               \
    X(size_t, ZSTD_decompress, (void *dst, size_t room, const void *src, size_t n),                \
      (dst, room, src, n), (size_t)-ZSTD_error_memory_allocation)                                  \
    X(size_t, ZSTD_decompressDCtx,                                                                 \
      (ZSTD_DCtx * c, void *dst, size_t room, const void *src, size_t n), (c, dst, room, src, n),  \
      (size_t)-ZSTD_error_memory_allocation)                                                       \
    X(int, inflateInit2_, (z_streamp z, int bits, const char *version, int size),                  \
      (z, bits, version, size), Z_MEM_ERROR)                                                       \
    X(spng_ctx *, spng_ctx_new, (int flags), (flags), NULL)                                        \
    X(cfg_t *, cfg_init, (cfg_opt_t * opts, cfg_flag_t flags), (opts, flags), NULL)                \
    X(int, uv_loop_init, (uv_loop_t * loop), (loop), UV_ENOMEM)                                    \
    X(int, uv_async_init, (uv_loop_t * loop, uv_async_t * a, uv_async_cb fn), (loop, a, fn),       \
      UV_ENOMEM)                                                                                   \
    X(int, uv_poll_init, (uv_loop_t * loop, uv_poll_t * p, int fd), (loop, p, fd), UV_ENOMEM)      \
    X(int, uv_queue_work,                                                                          \
      (uv_loop_t * loop, uv_work_t * w, uv_work_cb work, uv_after_work_cb after),                  \
      (loop, w, work, after), UV_ENOMEM)                                                           \
    X(struct MHD_Response *, MHD_create_response_from_buffer,                                      \
      (size_t n, void *p, enum MHD_ResponseMemoryMode mode), (n, p, mode), NULL)                   \
    X(enum MHD_Result, MHD_queue_response,                                                         \
      (struct MHD_Connection * c, unsigned status, struct MHD_Response *r), (c, status, r),        \
      MHD_NO)

#define X(result, name, parameters, arguments, failure)                                            \
    result __real_##name parameters;                                                               \
    __attribute__((visibility("default"))) result __wrap_##name parameters;                        \
    result __wrap_##name parameters {                                                              \
        return fails(#name) ? (failure) : __real_##name arguments;                                 \
    }
WRAPPED(X)
#undef X

/* ---- libraries with hooks ---- */

static void *hook_malloc(size_t n) {
    return fails("library malloc") ? NULL : __real_malloc(n);
}
static void *hook_calloc(size_t n, size_t size) {
    return fails("library calloc") ? NULL : __real_calloc(n, size);
}
static void *hook_realloc(void *p, size_t n) {
    return fails("library realloc") ? NULL : __real_realloc(p, n);
}
static char *hook_strdup(const char *s) {
    return fails("library strdup") ? NULL : __real_strdup(s);
}

void oom_init(void) {
    json_object_seed(1);
    json_set_alloc_funcs(hook_malloc, free);
    assert_int_equal(curl_global_init_mem(CURL_GLOBAL_DEFAULT, hook_malloc, free, hook_realloc,
                                          hook_strdup, hook_calloc),
                     CURLE_OK);
}

/* ---- the loop ---- */

enum {
    LEAK_STEP = 8, /* allocations between looks for leaks: each stops the world */
    WAIT_MS = 3000,
};

/* Of LeakSanitizer, in builds that have it. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

void oom_check_leaks(void) {
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() != 0)
        fail_msg("memory was lost; %s failed last", oom_failed());
}

unsigned oom_descriptors(void) {
    DIR *dir = __real_opendir("/proc/self/fd");
    unsigned n = 0;
    assert_non_null(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* How many are open when threads have closed what they still hold, for which they get a moment. */
static unsigned settled_descriptors(unsigned want) {
    for (int i = 0; i < WAIT_MS / 10 && oom_descriptors() > want; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return oom_descriptors();
}

static void check_error(const struct oom_case *c, uint64_t n, int rc, const struct wt_err *err,
                        bool failed) {
    if (!failed)
        fail_msg("%s: %s (%d), though no allocation failed", c->name, err->text, rc);
    if (rc != err->code || !err->text[0])
        fail_msg("%s: allocation %llu (%s): %d without a message", c->name, (unsigned long long)n,
                 oom_failed(), rc);
    if (rc == WT_ECORRUPT || rc == WT_EFORMAT || rc == WT_EINVAL || rc == WT_EUNSUPPORTED)
        fail_msg("%s: allocation %llu (%s) puts the blame on the data: %s", c->name,
                 (unsigned long long)n, oom_failed(), err->text);
}

/* In peace: it has to succeed, and what libraries keep for good is made now. */
static void warm_up(const struct oom_case *c) {
    struct wt_err err = {0};
    int rc = c->run(c->arg, &err);
    if (rc < 0)
        fail_msg("%s: %s (%d), with all the memory it wants", c->name, err.text, rc);
    if (c->after)
        c->after(c->arg, rc);
}

uint64_t oom_each(const struct oom_case *c) {
    uint64_t n = 1, swallowed = 0;
    warm_up(c);
    unsigned before = oom_descriptors();
    for (;; n++) {
        struct wt_err err = {0};
        if (n > c->most)
            fail_msg("%s: makes more than %llu allocations", c->name, (unsigned long long)c->most);
        oom_arm(n);
        int rc = c->run(c->arg, &err);
        bool failed = oom_disarm();
        if (rc < 0)
            check_error(c, n, rc, &err, failed);
        if (c->after)
            c->after(c->arg, rc);
        unsigned now = settled_descriptors(before);
        if (now > before)
            fail_msg("%s: allocation %llu (%s) leaves descriptors open", c->name,
                     (unsigned long long)n, oom_failed());
        before = now; /* at first something of the warm-up may have been open */
        if (n % LEAK_STEP == 0 || !failed)
            oom_check_leaks();
        if (!failed)
            break;
        swallowed += rc == 0;
    }
    printf("%s: %llu allocations failed, %llu of them without harm\n", c->name,
           (unsigned long long)n - 1, (unsigned long long)swallowed);
    return n - 1;
}
