/* The account of a tier's fullness against a store in which changes land at any time between their
 * begin and their end, and figures are taken at any time between question and answer. */
#include "daemon/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OPS = 6, STEPS = 20000, FIRST = 50000, STRANGERS = 3000 };

struct op {
    uint64_t size; /* 0: free */
    bool removes, landed;
};

struct store {
    uint64_t chance;
    uint64_t there; /* what it holds */
    uint64_t known; /* by the changes that have ended */
    struct op op[OPS];
    struct wt_moved moved;
    bool asked, snapped;
    uint64_t figure;
    struct wt_usage u;
    unsigned taken, doubted;
};

static uint64_t draw(struct store *s, uint64_t n) {
    s->chance = s->chance * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (s->chance >> 33) % n;
}

static void begin(struct store *s, struct op *o) {
    *o = (struct op){.size = 1 + draw(s, 1000), .removes = draw(s, 2) && s->known > FIRST / 2};
    *(o->removes ? &s->moved.removing : &s->moved.committing) += o->size;
}

static void land(struct store *s, struct op *o) {
    o->landed = true;
    s->there += o->removes ? -o->size : o->size;
}

static void end(struct store *s, struct op *o) {
    if (o->removes) {
        s->moved.removing -= o->size;
        s->moved.net -= (int64_t)o->size;
        s->moved.gone += o->size;
        s->known -= o->size;
    } else {
        s->moved.committing -= o->size;
        s->moved.net += (int64_t)o->size;
        s->known += o->size;
    }
    o->size = 0;
}

static void go_on(struct store *s, struct op *o) {
    if (o->size == 0)
        begin(s, o);
    else if (!o->landed)
        land(s, o);
    else
        end(s, o);
}

static void talk(struct store *s) {
    if (!s->asked) {
        wt_usage_ask(&s->u, &s->moved);
    } else if (!s->snapped) {
        s->figure = s->there;
        s->snapped = true;
        return;
    } else {
        wt_usage_take(&s->u, &s->moved, s->figure, 0);
        s->snapped = false;
        s->taken++;
    }
    s->asked = !s->asked;
}

static void start(struct store *s, uint64_t seed) {
    *s = (struct store){.chance = seed, .there = FIRST, .known = FIRST};
    for (int i = 0; i < 3; i++)
        talk(s);
}

static void the_account_is_exact_and_the_most_is_safe(void **state) {
    (void)state;
    struct store s;
    start(&s, 7);
    for (int i = 0; i < STEPS; i++) {
        if (draw(&s, 4))
            go_on(&s, &s.op[draw(&s, OPS)]);
        else
            talk(&s);
        uint64_t most = wt_usage_most(&s.u, s.moved.net, 0);
        uint64_t doubt = wt_usage_doubt(&s.u, s.moved.net, 0);
        assert_int_equal(most - doubt, s.known);
        assert_true(most + s.moved.committing >= s.there);
        s.doubted += doubt > 0;
    }
    assert_true(s.taken > STEPS / 100 && s.doubted > STEPS / 100);
}

/* Strangers put beside us: between two changes of ours a figure tells exactly, among them nearly.
 */
static void what_others_put_is_seen(void **state) {
    (void)state;
    struct store s;
    start(&s, 11);
    s.there += STRANGERS;
    begin(&s, &s.op[0]);
    for (int i = 0; i < 3; i++)
        talk(&s);
    uint64_t most = wt_usage_most(&s.u, s.moved.net, 0);
    uint64_t account = most - wt_usage_doubt(&s.u, s.moved.net, 0);
    assert_true(most >= FIRST + STRANGERS);
    assert_in_range(account, FIRST + STRANGERS - s.op[0].size, most);
    land(&s, &s.op[0]);
    end(&s, &s.op[0]);
    for (int i = 0; i < 3; i++)
        talk(&s);
    assert_int_equal(wt_usage_most(&s.u, s.moved.net, 0), s.there);
    assert_int_equal(wt_usage_doubt(&s.u, s.moved.net, 0), 0);
}

/* Never asked, or lowered below nothing: the catalog's figure stands. */
static void the_catalog_is_the_least(void **state) {
    (void)state;
    struct wt_usage u = {0};
    struct wt_moved now = {0};
    assert_int_equal(wt_usage_most(&u, 0, 700), 700);
    assert_int_equal(wt_usage_doubt(&u, 0, 700), 0);
    wt_usage_ask(&u, &now);
    wt_usage_take(&u, &now, 500, 700);
    assert_int_equal(wt_usage_most(&u, 0, 700), 700);
    assert_int_equal(wt_usage_doubt(&u, 0, 700), 0);
    assert_int_equal(wt_usage_most(&u, -600, 0), 0);
    now.removing = 100; /* the first figure, while something goes: the catalog has it still */
    u = (struct wt_usage){0};
    wt_usage_take(&u, &now, 900, 900);
    assert_int_equal(wt_usage_most(&u, 0, 900), 1000);
    assert_int_equal(wt_usage_doubt(&u, 0, 900), 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_account_is_exact_and_the_most_is_safe),
        cmocka_unit_test(what_others_put_is_seen),
        cmocka_unit_test(the_catalog_is_the_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
