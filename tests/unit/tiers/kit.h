/* What several of these tests need: cmocka, bounded loops, a temporary folder. */
#ifndef WT_TESTS_TIERS_KIT_H
#define WT_TESTS_TIERS_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <uv.h>

/* Runs the loop until *flag, for ms at most; did it become true? */
bool kit_until(uv_loop_t *loop, const bool *flag, unsigned ms);
/* The same for ms, whatever happens. */
void kit_run(uv_loop_t *loop, unsigned ms);

/* A fresh folder, removed with all that is in it by kit_remove_folder. */
void kit_make_folder(char path[256]);
void kit_remove_folder(const char *path);

#endif
