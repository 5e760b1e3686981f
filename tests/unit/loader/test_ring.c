/* The ring alone: states, references, memory layout, DLPack. */
#include "libloader/dlpack.h"
#include "libloader/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <string.h>

static const struct wt_tensor_spec specs[] = {
    {.name = "image", .dtype = WL_U16, .ndim = 3, .dim = {5, 7, 3}},
    {.name = "label", .dtype = WL_I32},
};

static struct wt_ring *make(unsigned slots) {
    struct wt_ring *r;
    struct wt_err err = {0};
    assert_int_equal(wt_ring_new(specs, 2, 6, slots, &wt_accel_host, &r, &err), 0);
    return r;
}

static void count_freed(void *owner) {
    (*(int *)owner)++;
}

static struct wl_batch *take_held(struct wt_ring *r) {
    pthread_mutex_lock(&r->mutex);
    struct wl_batch *b = wt_ring_take(r);
    if (b) {
        wt_ring_publish(b);
        wt_ring_deliver(b);
    }
    pthread_mutex_unlock(&r->mutex);
    return b;
}

static void test_layout(void **state) {
    (void)state;
    struct wt_ring *r = make(3);
    char *end = NULL;
    for (unsigned i = 0; i < 3; i++) {
        struct wl_batch *b = &r->slot[i];
        assert_int_equal(wl_batch_tensors(b), 2);
        const wl_tensor *t = wl_batch_tensor(b, "image");
        assert_int_equal(t->ndim, 4);
        assert_int_equal(t->shape[0], 6);
        assert_int_equal(t->shape[3], 3);
        assert_int_equal(t->stride[0], 105);
        assert_int_equal(t->stride[1], 21);
        assert_int_equal(t->stride[3], 1);
        assert_int_equal((uintptr_t)t->data % 256, 0);
        assert_true((char *)t->data >= end); /* nothing overlaps */
        end = (char *)t->data + 6 * 105 * 2;
        const wl_tensor *label = wl_batch_tensor_at(b, 1);
        assert_string_equal(label->name, "label");
        assert_int_equal(label->ndim, 1);
        assert_true((char *)label->data >= end);
        end = (char *)label->data + 24;
        memset(t->data, 1, 6 * 105 * 2);
        memset(label->data, 1, 24);
    }
    assert_true(end <= (char *)r->mem.ptr + r->mem.size);
    assert_null(wl_batch_tensor_at(&r->slot[0], 2));
    assert_null(wl_batch_tensor(&r->slot[0], "nothing"));
    assert_string_equal(wl_batch_key(&r->slot[0], 6), "");
    wt_ring_disown(r);
}

static void test_states(void **state) {
    (void)state;
    struct wt_ring *r = make(2);
    int freed = 0;
    r->owner = &freed;
    r->freed = count_freed;
    struct wl_batch *a = take_held(r), *b = take_held(r);
    assert_ptr_not_equal(a, b);
    assert_null(take_held(r));
    assert_int_equal(wt_ring_count(r, WT_SLOT_HELD), 2);
    wl_batch_release(a, NULL);
    assert_int_equal(freed, 1);
    assert_ptr_equal(take_held(r), a);
    wl_batch_release(a, NULL);
    wl_batch_release(b, NULL);
    assert_int_equal(freed, 3);
    assert_int_equal(wt_ring_count(r, WT_SLOT_FREE), 2);
    pthread_mutex_lock(&r->mutex);
    struct wl_batch *c = wt_ring_take(r);
    wt_ring_drop(c);
    pthread_mutex_unlock(&r->mutex);
    assert_int_equal(freed, 3); /* dropping tells nobody */
    assert_int_equal(wt_ring_count(r, WT_SLOT_FREE), 2);
    wt_ring_disown(r);
}

/* References keep a slot, and the slot keeps the ring; the owner hears nothing after disown. (The
 * address sanitizer sees both a leak and an early free.) */
static void test_references(void **state) {
    (void)state;
    struct wt_ring *r = make(2);
    int freed = 0;
    r->owner = &freed;
    r->freed = count_freed;
    struct wl_batch *a = take_held(r), *b = take_held(r);
    struct wt_dl_managed *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = wl_batch_dlpack(a, i == 2 ? "label" : "image", NULL);
    wl_batch_release(a, NULL);
    t[0]->deleter(t[0]);
    assert_int_equal(freed, 0);
    assert_int_equal(a->state, WT_SLOT_HELD);
    wt_ring_disown(r);
    memset(t[1]->tensor.data, 3, 6 * 105 * 2);
    t[1]->deleter(t[1]);
    wl_batch_release(b, NULL);
    assert_int_equal(freed, 0);
    assert_int_equal(t[2]->tensor.dtype.code, WT_DL_INT);
    assert_int_equal(t[2]->tensor.dtype.bits, 32);
    assert_int_equal(t[2]->tensor.shape[0], 6);
    assert_int_equal(t[2]->flags, 0);
    t[2]->deleter(t[2]);
}

static void test_too_large(void **state) {
    (void)state;
    struct wt_tensor_spec huge = {.name = "image",
                                  .dtype = WL_F64,
                                  .ndim = 3,
                                  .dim = {INT64_C(1) << 31, INT64_C(1) << 31, 4}};
    struct wt_ring *r;
    struct wt_err err = {0};
    assert_true(wt_ring_bytes(&huge, 1, 8, 4) == UINT64_MAX);
    assert_int_equal(wt_ring_new(&huge, 1, 8, 4, &wt_accel_host, &r, &err), WT_EINVAL);
    assert_true(wt_ring_bytes(specs, 2, UINT64_MAX / 2, 4) == UINT64_MAX);
}

static void test_dlpack_codes(void **state) {
    (void)state;
    assert_int_equal(wt_dl_code(WL_BOOL), WT_DL_BOOL);
    assert_int_equal(wt_dl_code(WL_U8), WT_DL_UINT);
    assert_int_equal(wt_dl_code(WL_I64), WT_DL_INT);
    assert_int_equal(wt_dl_code(WL_F16), WT_DL_FLOAT);
    assert_int_equal(wt_dl_code(WL_C64), WT_DL_COMPLEX);
    assert_int_equal(wl_dtype_size(WL_C128), 16);
    assert_string_equal(wl_dtype_name(WL_U16), "u16");
    /* The ABI of DLManagedTensorVersioned on 64-bit machines. */
    assert_int_equal(offsetof(struct wt_dl_managed, deleter), 16);
    assert_int_equal(offsetof(struct wt_dl_managed, flags), 24);
    assert_int_equal(offsetof(struct wt_dl_managed, tensor), 32);
    assert_int_equal(offsetof(struct wt_dl_tensor, dtype), 20);
    assert_int_equal(offsetof(struct wt_dl_tensor, shape), 24);
    assert_int_equal(sizeof(struct wt_dl_tensor), 48);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),       cmocka_unit_test(test_states),
        cmocka_unit_test(test_references),   cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_dlpack_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
