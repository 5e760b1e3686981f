/*
 * Readers of one object that go on and on while a test does something to the servers; see
 * redis_kit.h.
 *
 * Each answer is the whole object or an error, and nobody writes to a buffer after its completion.
 */
#include "redis_kit.h"

#include <stdlib.h>
#include <string.h>

static void on_read(struct wt_req *req) {
    struct kit_reading *r = req->arg;
    r->busy--;
    if (req->rc == 0) {
        r->ok++;
        r->bad |= req->got != KIT_OBJECT || memcmp(req->buf, r->want, KIT_OBJECT) != 0;
    } else {
        r->failed++;
        r->seen[-req->rc]++;
    }
    memset(req->buf, 0x77, KIT_OBJECT);
    if (!r->stop && wt_tier_submit(r->k->tier, req) == 0)
        r->busy++;
}

struct kit_reading *kit_reading_start(struct kit *k, const char *key) {
    struct kit_reading *r = calloc(1, sizeof *r);
    r->k = k;
    r->want = malloc(KIT_OBJECT);
    kit_fill(r->want, KIT_OBJECT, key);
    for (int i = 0; i < KIT_READERS; i++) {
        r->buf[i] = malloc(KIT_OBJECT);
        r->req[i] = (struct wt_req){.op = WT_OP_GET,
                                    .key = key,
                                    .buf = r->buf[i],
                                    .len = KIT_OBJECT,
                                    .timeout_ms = KIT_DEADLINE_MS,
                                    .done = on_read,
                                    .arg = r};
        assert_int_equal(wt_tier_submit(k->tier, &r->req[i]), 0);
        r->busy++;
    }
    return r;
}

void kit_reading_stop(struct kit *k, struct kit_reading *r) {
    r->stop = true;
    for (int i = 0; i < 500 && r->busy; i++)
        kit_sleep(k, 10);
    assert_int_equal(r->busy, 0);
    assert_false(r->bad);
    /* Nobody writes to a buffer whose request is over. */
    kit_sleep(k, 50);
    for (int i = 0; i < KIT_READERS; i++)
        for (size_t b = 0; b < KIT_OBJECT; b += 991)
            assert_int_equal(r->buf[i][b], 0x77);
    for (int i = 0; i < KIT_READERS; i++)
        free(r->buf[i]);
    free(r->want);
    free(r);
}
