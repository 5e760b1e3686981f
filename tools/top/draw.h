/*
 * What `wafertier top` shows, from two answers of the daemon: the newest, and one before it for
 * what happens in a second. No I/O.
 */
#ifndef WT_TOOLS_TOP_DRAW_H
#define WT_TOOLS_TOP_DRAW_H

#include "tools/top/page.h"
#include "tools/top/watch.h"

struct wt_top_screen {
    struct wt_top_answer now, before;
    char error[WT_ERR_TEXT]; /* why there is nothing newer; "" */
    bool paused;
};
/* Takes the answer over: a good one becomes `now`, a failed one only tells its error. */
void wt_top_screen_take(struct wt_top_screen *s, struct wt_top_answer *a);
void wt_top_screen_free(struct wt_top_screen *s);
/* Fills the page that was begun. */
void wt_top_draw(const struct wt_top_screen *s, struct wt_page *f);

#endif
