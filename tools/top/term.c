/* The terminal; see term.h. Plain escape sequences that every terminal of the last decades knows.
 */
#include "tools/top/term.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const char enter[] =
    "\033[?1049h\033[?25l\033[?7l\033[2J"; /* other screen, no cursor, no wrapping */
static const char leave[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

void wt_term_size(unsigned *columns, unsigned *rows) {
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *columns = known ? size.ws_col : 80;
    *rows = known ? size.ws_row : 24;
}

static int write_all(const void *data, size_t len) {
    const char *at = data;
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return WT_ESYSTEM;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static void show_screen(struct wt_term *t) {
    struct termios raw = t->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_iflag &= ~(tcflag_t)IXON; /* Ctrl-S must not hold us where no signal is read */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    write_all(enter, sizeof enter - 1);
    t->shown = true;
    t->last.n = 0;
}

static void hide_screen(struct wt_term *t) {
    if (!t->shown)
        return;
    t->shown = false;
    write_all(leave, sizeof leave - 1);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

int wt_term_open(struct wt_term *t, struct wt_err *err) {
    static const int list[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    sigset_t set;
    *t = (struct wt_term){.signals = -1};
    if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1 ||
        tcgetattr(STDIN_FILENO, &t->before) < 0)
        return wt_err_set(err, WT_EINVAL,
                          "this is no terminal; --once prints one screen as text, "
                          "wafertier stats --watch goes on");
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        sigaddset(&set, list[i]);
    if (sigprocmask(SIG_BLOCK, &set, &t->mask) < 0)
        return wt_err_sys(err, errno, "signals cannot be blocked");
    t->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (t->signals < 0) {
        int sys = errno;
        sigprocmask(SIG_SETMASK, &t->mask, NULL);
        return wt_err_sys(err, sys, "signals cannot be watched");
    }
    t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    show_screen(t);
    return 0;
}

void wt_term_close(struct wt_term *t) {
    if (t->signals < 0)
        return;
    hide_screen(t);
    close(t->signals);
    t->signals = -1;
    sigprocmask(SIG_SETMASK, &t->mask, NULL);
    wt_page_free(&t->last);
    wt_bytes_free(&t->out);
}

/* Ctrl-Z: the shell gets its terminal back as it was, and we ours when it lets us go on. */
static void stop_here(struct wt_term *t) {
    hide_screen(t);
    raise(SIGSTOP);
    show_screen(t);
}

int wt_term_show(struct wt_term *t, struct wt_page *f) {
    char place[32];
    bool anew = t->last.n == 0 || t->last.columns != f->columns || t->last.rows != f->rows;
    int rc = 0;
    t->out.len = 0;
    if (anew)
        rc = wt_bytes_add(&t->out, "\033[2J", 4);
    for (unsigned row = 0; rc == 0 && row < f->rows; row++) {
        if (!anew && strcmp(wt_page_at(f, row), wt_page_at(&t->last, row)) == 0)
            continue;
        int n = snprintf(place, sizeof place, "\033[%u;1H", row + 1);
        rc = wt_bytes_add(&t->out, place, (size_t)n);
        if (rc == 0)
            rc = wt_page_encode(wt_page_at(f, row), true, &t->out);
        if (rc == 0)
            rc = wt_bytes_add(&t->out, "\033[K", 3);
    }
    struct wt_page old = t->last; /* its memory serves the next one */
    t->last = *f;
    *f = old;
    return rc == 0 ? write_all(t->out.data, t->out.len) : rc;
}

static enum wt_term_event take_signal(struct wt_term *t) {
    struct signalfd_siginfo info;
    if (read(t->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return WT_TERM_NOTHING;
    if (info.ssi_signo == SIGTSTP)
        stop_here(t);
    return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH ? WT_TERM_RESIZED
                                                                   : WT_TERM_ENDED;
}

enum wt_term_event wt_term_wait(struct wt_term *t, int fd, int timeout_ms, char *key) {
    struct pollfd list[] = {{.fd = t->signals, .events = POLLIN},
                            {.fd = STDIN_FILENO, .events = POLLIN},
                            {.fd = fd, .events = POLLIN}};
    if (poll(list, 3, timeout_ms) <= 0)
        return WT_TERM_NOTHING;
    if (list[0].revents)
        return take_signal(t);
    if (!list[1].revents)
        return WT_TERM_NOTHING;
    ssize_t n = read(STDIN_FILENO, key, 1);
    if (n == 1)
        return WT_TERM_KEY;
    return n < 0 && (errno == EINTR || errno == EAGAIN) ? WT_TERM_NOTHING : WT_TERM_ENDED;
}
