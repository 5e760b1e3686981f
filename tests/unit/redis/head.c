/* Layout, names, headers and the meaning of replies of the Redis backend. */
#include "tiers/redis/internal.h"

/* cmocka needs these before it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunks tile the object, never cross a part, and find() agrees with them. */
static void layouts(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0,
                                     1,
                                     RDS_CHUNK - 1,
                                     RDS_CHUNK,
                                     RDS_CHUNK + 1,
                                     WT_PART - 1,
                                     WT_PART,
                                     WT_PART + 1,
                                     3 * (uint64_t)WT_PART + 5 * RDS_CHUNK + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct rds_layout l;
        uint64_t at = 0;
        assert_int_equal(rds_layout_make(sizes[i], WT_PART, RDS_CHUNK, &l), 0);
        for (uint32_t c = 0; c < l.n_chunks; c++) {
            struct rds_extent x = rds_layout_chunk(&l, c);
            assert_int_equal(x.off, at);
            assert_true(x.len > 0 && x.len <= RDS_CHUNK);
            assert_int_equal(x.off / WT_PART, (x.off + x.len - 1) / WT_PART);
            assert_int_equal(rds_layout_find(&l, x.off), c);
            assert_int_equal(rds_layout_find(&l, x.off + x.len - 1), c);
            at += x.len;
        }
        assert_int_equal(at, sizes[i]);
    }
    struct rds_layout l;
    assert_int_equal(rds_layout_make(UINT64_MAX, WT_PART, RDS_CHUNK, &l), WT_ERANGE);
    assert_int_equal(rds_layout_make(UINT64_C(1) << 40, WT_PART, 1, &l), WT_ERANGE);
}

static uint8_t *encode(uint64_t size, unsigned flags, size_t *len) {
    static uint8_t data[RDS_INLINE];
    struct rds_head head = {
        .flags = flags, .token = 0x1122334455667788, .mtime = 1700000000, .data = data};
    assert_int_equal(rds_layout_make(size, WT_PART, RDS_CHUNK, &head.layout), 0);
    uint32_t *crc = calloc(head.layout.n_chunks + 1u, sizeof *crc);
    for (uint32_t i = 0; i < head.layout.n_chunks; i++)
        crc[i] = i * 7;
    head.crc = crc;
    uint8_t *bytes = rds_head_encode(&head, len);
    free(crc);
    return bytes;
}

static void headers(void **state) {
    (void)state;
    size_t len;
    struct wt_err err;
    struct rds_head *head;
    uint8_t *bytes = encode(20000000, 0, &len);
    assert_int_equal(rds_head_decode(bytes, len, &head, &err), 0);
    assert_int_equal(head->layout.size, 20000000);
    assert_int_equal(head->token, 0x1122334455667788);
    assert_int_equal(head->mtime, 1700000000);
    assert_int_equal(head->crc[3], 21);
    assert_null(head->data);
    rds_head_unref(rds_head_ref(head));
    rds_head_unref(head);
    /* Each bit counts, each byte too. */
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 1;
        assert_true(rds_head_decode(bytes, len, &head, &err) < 0);
        bytes[i] ^= 1;
        uint8_t *cut = malloc(i + 1);
        memcpy(cut, bytes, i);
        assert_int_equal(rds_head_decode(cut, i, &head, &err), WT_ECORRUPT);
        free(cut);
    }
    free(bytes);
    bytes = encode(1000, RDS_HEAD_INLINE, &len);
    assert_int_equal(rds_head_decode(bytes, len, &head, &err), 0);
    assert_int_equal(head->data[999], 0);
    assert_null(head->crc);
    rds_head_unref(head);
    struct rds_head fixed;
    assert_int_equal(rds_head_peek(bytes, RDS_HEAD_FIXED, &fixed, &err), 0);
    assert_int_equal(fixed.layout.size, 1000);
    free(bytes);
}

static void names(void **state) {
    (void)state;
    char name[RDS_NAME_SIZE], key[WT_KEY_SIZE], longest[WT_KEY_SIZE];
    uint64_t token;
    uint32_t chunk;
    const char *rest;
    memset(longest, 'k', sizeof longest);
    longest[WT_KEY_SIZE - 1] = '\0';
    rds_name_head(name, longest);
    assert_int_equal(rds_name_parse_head(name, strlen(name), key), 0);
    assert_string_equal(key, longest);
    rds_name_chunk(name, UINT64_MAX, RDS_CHUNKS_MAX - 1, longest);
    assert_int_equal(rds_name_parse_chunk(name, strlen(name), &token, &chunk, key), 0);
    assert_int_equal(token, UINT64_MAX);
    assert_int_equal(chunk, RDS_CHUNKS_MAX - 1);
    assert_string_equal(key, longest);
    static const char *const bad[] = {"wt:",
                                      "wt:{",
                                      "wt:{}",
                                      "wt:{a",
                                      "wt:{../x}",
                                      "wt:!mark:{0}",
                                      "else",
                                      "wt:0123456789abcdef:1",
                                      "wt:0123456789abcdef:1:",
                                      "wt:0123456789ABCDEF:1:k",
                                      "wt:0123456789abcdef:99999999:k",
                                      "wt:0123456789abcdef::k",
                                      "wt:0123456789abcde:1:kk",
                                      NULL};
    for (size_t i = 0; bad[i]; i++) {
        assert_true(rds_name_parse_head(bad[i], strlen(bad[i]), key) < 0);
        assert_true(rds_name_parse_chunk(bad[i], strlen(bad[i]), &token, &chunk, key) < 0);
    }
    assert_int_equal(rds_orphan_key(key, 0xabc, 17, "a/b.tar"), 0);
    assert_int_equal(wt_key_check(key, NULL), 0);
    assert_int_equal(rds_orphan_parse(key, &token, &chunk, &rest), 0);
    assert_int_equal(token, 0xabc);
    assert_int_equal(chunk, 17);
    assert_string_equal(rest, "a/b.tar");
    assert_int_equal(rds_orphan_key(key, 1, 1, longest), WT_ERANGE);
    assert_true(rds_orphan_parse("a/b", &token, &chunk, &rest) < 0);
    assert_true(rds_orphan_parse(".wafertier.tmp/x", &token, &chunk, &rest) < 0);
}

static void slots(void **state) {
    (void)state;
    assert_int_equal(rds_slot("123456789", 9), 0x31c3); /* from the cluster specification */
    assert_int_equal(rds_slot("foo", 3), 12182);
    assert_int_equal(rds_slot("x{foo}y", 7), 12182);
    assert_int_equal(rds_slot("{}foo", 5), rds_slot("{}foo", 5));
    assert_int_not_equal(rds_slot("{}foo", 5), rds_slot("", 0));
    assert_int_equal(rds_slot("{user1000}.following", 20), rds_slot("{user1000}.followers", 20));
}

static enum rds_verdict judge(const char *text, int code) {
    struct wt_err err;
    enum rds_verdict v = rds_reply_judge(text, strlen(text), &err);
    assert_int_equal(err.code, code);
    for (const char *p = err.text; *p; p++)
        assert_true(*p >= ' ' && *p < 127);
    return v;
}

static void errors(void **state) {
    (void)state;
    assert_int_equal(judge("OOM command not allowed", WT_EFULL), RDS_FINAL);
    assert_int_equal(judge("LOADING Redis is loading", WT_EDOWN), RDS_PASSES);
    assert_int_equal(judge("CLUSTERDOWN Hash slot not served", WT_EDOWN), RDS_PASSES);
    assert_int_equal(judge("MASTERDOWN Link", WT_EDOWN), RDS_PASSES);
    assert_int_equal(judge("MOVED 1 a:1", WT_EDOWN), RDS_MOVED);
    assert_int_equal(judge("ASK 1 a:1", WT_EDOWN), RDS_ASK);
    assert_int_equal(judge("READONLY You can't write", WT_EDENIED), RDS_FINAL);
    assert_int_equal(judge("NOAUTH", WT_EDENIED), RDS_FINAL);
    assert_int_equal(judge("WRONGPASS x", WT_EDENIED), RDS_FINAL);
    assert_int_equal(judge("NOPERM x", WT_EDENIED), RDS_FINAL);
    assert_int_equal(judge("WRONGTYPE x", WT_ECORRUPT), RDS_FINAL);
    assert_int_equal(judge("ERR something\n\x01else", WT_EIO), RDS_FINAL);
    assert_int_equal(judge("", WT_EIO), RDS_FINAL);
}

static void redirects(void **state) {
    (void)state;
    uint16_t slot;
    struct rds_addr to;
    assert_int_equal(rds_reply_redirect("MOVED 3999 127.0.0.1:6381", &slot, &to), 0);
    assert_int_equal(slot, 3999);
    assert_string_equal(to.host, "127.0.0.1");
    assert_int_equal(to.port, 6381);
    assert_int_equal(rds_reply_redirect("ASK 1 ::1:7", &slot, &to), 0);
    assert_string_equal(to.host, "::1");
    assert_int_equal(rds_reply_redirect("MOVED 5 :6381", &slot, &to), 0);
    assert_string_equal(to.host, "");
    static const char *const bad[] = {"MOVED",       "MOVED ",      "MOVED 16384 a:1",
                                      "MOVED 1 a",   "MOVED 1 a:0", "MOVED 1 a:65536",
                                      "MOVED x a:1", NULL};
    for (size_t i = 0; bad[i]; i++)
        assert_true(rds_reply_redirect(bad[i], &slot, &to) < 0);
}

static void info(void **state) {
    (void)state;
    const char *text =
        "# Memory\r\nused_memory_peak:9\r\nused_memory:123\r\nrole:master\r\nbad:x\r\n";
    uint64_t v;
    char s[8];
    assert_true(rds_info_number(text, "used_memory", &v));
    assert_int_equal(v, 123);
    assert_false(rds_info_number(text, "bad", &v));
    assert_false(rds_info_number(text, "memory", &v));
    assert_true(rds_info_text(text, "role", s, sizeof s));
    assert_string_equal(s, "master");
    assert_false(rds_info_text(text, "role", s, 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts), cmocka_unit_test(headers), cmocka_unit_test(names),
        cmocka_unit_test(slots),   cmocka_unit_test(errors),  cmocka_unit_test(redirects),
        cmocka_unit_test(info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
