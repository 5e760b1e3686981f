#!/usr/bin/env python3
"""`wafertier top` on a pseudo-terminal beside a real daemon: what it draws, how it follows the window's size, what it does when the daemon
goes, and that the terminal is as it was, however it ends.

    top.py WAFERTIER WAFERTIERD

Screen is a terminal of its own that knows the sequences top uses and refuses all others, so nothing slips through unseen. Every wait is
bounded; the daemon and top are ended by their pids also on failure.
"""
import codecs
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

WAFERTIER, WAFERTIERD = sys.argv[1:3]
PATIENCE = 20  # seconds; a busy machine is slow


class Screen:
    """Columns and rows, as a terminal would show them after all that was written to it."""

    SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")

    def __init__(self, columns, rows):
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.rest = ""
        self.alternate = False
        self.cursor = True
        self.wrapping = True
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.x = self.y = 0
        self.cut = 0  # letters that did not fit their line

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def feed(self, data):
        text = self.rest + self.decoder.decode(data)
        self.rest = ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            match = self.SEQUENCE.match(text, at)
            if not match:
                assert len(text) - at < 16, f"an unknown sequence: {text[at:at + 16]!r}"
                self.rest = text[at:]
                return
            self.obey(*match.groups())
            at = match.end()

    def put(self, letter):
        if letter in "\r\n":
            self.x, self.y = (0, self.y) if letter == "\r" else (self.x, self.y + 1)
            return
        assert letter >= " " and letter != "\x7f", f"a control character: {letter!r}"
        if not self.alternate:
            return
        if self.x >= self.columns or self.y >= self.rows:
            self.cut += 1
            return
        self.cells[self.y][self.x] = letter
        self.x += 1

    def obey(self, private, numbers, kind):
        n = [int(v) if v else 0 for v in numbers.split(";")]
        if private and kind in "hl" and n[0] in (7, 25, 1049):
            on = kind == "h"
            if n[0] == 7:
                self.wrapping = on
            elif n[0] == 25:
                self.cursor = on
            else:
                self.alternate = on
                self.clear()
        elif kind == "H":
            self.y, self.x = (max(n[0], 1) - 1, max(n[1] if len(n) > 1 else 1, 1) - 1)
        elif kind == "J" and n[0] == 2:
            self.clear()
        elif kind == "K" and n[0] == 0:
            for x in range(self.x, self.columns):
                self.cells[self.y][x] = " "
        elif kind == "m":
            assert n[0] in (0, 1, 2, 7, 31, 33), f"colour {n}"
        else:
            raise AssertionError(f"an unknown sequence: {private}{numbers}{kind}")


class Top:
    """wafertier top on a pseudo-terminal of its own."""

    def __init__(self, columns=120, rows=30, *options, locale="C.UTF-8"):
        self.screen = Screen(columns, rows)
        self.master, self.slave = pty.openpty()
        self.set_size(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        environment = dict(os.environ, LC_ALL=locale, TERM="xterm")
        self.process = subprocess.Popen([WAFERTIER, "top", "--interval", "200ms", *options], stdin=self.slave, stdout=self.slave,
                                        stderr=subprocess.PIPE, env=environment, preexec_fn=self.own_terminal)

    def own_terminal(self):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.pump(0.3)
        self.screen.resize(columns, rows)
        self.set_size(columns, rows)

    def pump(self, seconds):
        """Shows what comes within so long; returns early when it was something."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if ready:
            try:
                self.screen.feed(os.read(self.master, 65536))
            except OSError:
                pass

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"waited in vain for {what}; the screen:\n{self.screen.text()}"
            self.pump(0.1)

    def until_shown(self, text):
        self.until(lambda: text in self.screen.text(), repr(text))

    def key(self, text):
        os.write(self.master, text.encode())

    def ended(self, code):
        """It has ended with this code, and the terminal is as it was before."""
        self.until(lambda: self.process.poll() is not None, "the end")
        self.pump(0.1)
        errors = self.process.stderr.read().decode()
        assert self.process.returncode == code, f"exit status {self.process.returncode}, not {code}: {errors}"
        assert not self.screen.alternate and self.screen.cursor and self.screen.wrapping, "the screen was left in disorder"
        assert termios.tcgetattr(self.slave) == self.before, "the terminal's modes were left changed"
        assert not errors, errors

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for fd in (self.master, self.slave):
            if fd >= 0:
                os.close(fd)
        self.master = self.slave = -1


class Daemon:
    def __init__(self, folder):
        self.folder = folder
        self.process = None
        with open(f"{folder}/w.conf", "w", encoding="utf-8") as conf:
            conf.write(f'state_folder = "{folder}/state"\ncontrol = "unix:{folder}/s"\n'
                       f'tier "cold" {{ url = "file://{folder}/cold" }}\n'
                       f'tier "warm" {{ url = "file://{folder}/warm" capacity = "64MiB" }}\n'
                       f'tier "hot" {{ url = "file://{folder}/hot" capacity = "32MiB" }}\n')
        os.mkdir(f"{folder}/state")

    def start(self):
        with open(f"{self.folder}/log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([WAFERTIERD, "--config", f"{self.folder}/w.conf"], stderr=log)
        end = time.monotonic() + PATIENCE
        while subprocess.run([WAFERTIER, "stats"], capture_output=True, check=False).returncode != 0:
            assert time.monotonic() < end, "the daemon does not answer"
            time.sleep(0.1)

    def kill(self, number=signal.SIGKILL):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
            self.process.wait()

    def post(self, path, body):
        call = subprocess.run(["curl", "-sS", "--max-time", "10", "--unix-socket", f"{self.folder}/s", f"http://localhost{path}", "-d",
                               json.dumps(body)], capture_output=True, check=True)
        reply = json.loads(call.stdout)
        assert "error" not in reply, reply
        return reply


def check_screen(daemon):
    """Tiers, bars, the job, whose name tries to steer the terminal; nothing is wider than the window."""
    daemon.post("/v1/jobs", {"name": "evil\x1b[31m\x07\x9b2J", "dataset": "wafers", "tiers": ["cold", "warm", "hot"]})
    top = Top()
    try:
        top.until_shown("evil?[31m")
        for word in ("wafertierd", "cold", "warm", "hot", "MOVES", "JOB", "·" * 8, "q quits"):
            assert word in top.screen.text(), f"{word} is not on the screen:\n{top.screen.text()}"
        assert top.screen.lines()[-1] == "q quits, space pauses", top.screen.lines()[-1]
        assert top.screen.cut == 0, "lines are wider than the window"
        top.key(" ")
        top.until_shown("PAUSED")
        top.key(" \x1b[A")  # goes on; an arrow key is none of ours
        top.until(lambda: "PAUSED" not in top.screen.text(), "the end of the pause")
        top.key("q")
        top.ended(0)
    finally:
        top.close()


def check_sizes():
    top = Top(100, 24)
    try:
        top.until_shown("TIER")
        for columns, rows in ((60, 12), (200, 50), (20, 5), (1, 1), (400, 200), (100, 24)):
            top.resize(columns, rows)
            if columns >= 20:
                top.until(lambda: "q quits" in top.screen.lines()[-1], f"{columns}x{rows}")
            else:
                top.pump(0.5)
            assert top.screen.cut == 0, f"at {columns}x{rows} lines are wider than the window"
        top.key("q")
        top.ended(0)
    finally:
        top.close()


def check_ends():
    """Each way to end it, but SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        top = Top()
        try:
            top.until_shown("TIER")
            top.process.send_signal(number)
            top.ended(130)
        finally:
            top.close()
    top = Top()
    try:
        top.until_shown("TIER")
        top.key("\x03")  # the terminal makes SIGINT of it
        top.ended(130)
    finally:
        top.close()


def check_hang_up():
    """The window is closed."""
    top = Top()
    try:
        top.until_shown("TIER")
        os.close(top.slave)
        os.close(top.master)
        top.slave = top.master = -1
        top.process.wait(timeout=PATIENCE)
        assert top.process.returncode == 130, top.process.returncode
    finally:
        top.close()


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def check_stop():
    """Ctrl-Z gives the terminal back; fg takes it again."""
    top = Top()
    try:
        top.until_shown("TIER")
        top.key("\x1a")
        top.until(lambda: state_of(top.process.pid) == "T", "the stop")
        top.pump(0.2)
        assert not top.screen.alternate and top.screen.cursor, "stopped, it keeps the screen"
        assert termios.tcgetattr(top.slave) == top.before, "stopped, it keeps the terminal's modes"
        top.process.send_signal(signal.SIGCONT)
        top.until_shown("TIER")
        top.key("q")
        top.ended(0)
    finally:
        top.close()


def check_daemon_goes(daemon):
    top = Top()
    try:
        top.until_shown("TIER")
        daemon.kill()
        top.until_shown("trying again")
        assert "nobody listens" in top.screen.text(), top.screen.text()
        assert "TIER" in top.screen.text(), "what was known last is gone"
        daemon.start()
        top.until(lambda: "trying again" not in top.screen.text(), "the daemon's return")
        daemon.process.send_signal(signal.SIGSTOP)  # it hangs: keys work all the same
        top.pump(0.5)
        began = time.monotonic()
        top.key("q")
        top.ended(0)
        assert time.monotonic() - began < 3, "a daemon that hangs holds the keys"
        daemon.process.send_signal(signal.SIGCONT)
    finally:
        top.close()


def check_plain(folder):
    """Without UTF-8, without a terminal, without a daemon."""
    top = Top(locale="C")
    try:
        top.until_shown("TIER")
        assert top.screen.text().isascii() and "." * 8 in top.screen.text(), top.screen.text()
        top.key("q")
        top.ended(0)
    finally:
        top.close()
    once = subprocess.run([WAFERTIER, "top", "--once", "--interval", "200ms", "--size", "90x20"], capture_output=True, check=True,
                          env=dict(os.environ, LC_ALL="C.UTF-8"))
    lines = once.stdout.decode().splitlines()
    assert len(lines) == 20 and max(map(len, lines)) <= 90 and "\x1b" not in once.stdout.decode(), once.stdout.decode()
    bare = subprocess.run([WAFERTIER, "top"], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    assert bare.returncode == 1 and b"--once" in bare.stderr, bare
    wrong = subprocess.run([WAFERTIER, "top", "--once", "--size", "7x7"], capture_output=True, check=False)
    assert wrong.returncode == 2 and b"--size" in wrong.stderr, wrong
    none = subprocess.run([WAFERTIER, "top", "--once", "--control", f"{folder}/nothing"], capture_output=True, check=False)
    assert none.returncode == 3, none


def main():
    folder = tempfile.mkdtemp(prefix="wt-top-")
    os.environ["WAFERTIER_CONFIG"] = f"{folder}/w.conf"
    daemon = Daemon(folder)
    try:
        subprocess.run([WAFERTIER, "gen", "--dataset", "wafers", "--samples", "300", "--quiet"], check=True, capture_output=True)
        daemon.start()
        check_screen(daemon)
        check_sizes()
        check_ends()
        check_hang_up()
        check_stop()
        check_plain(folder)
        check_daemon_goes(daemon)
    finally:
        daemon.kill()
        shutil.rmtree(folder)
    print("top: all passed")


main()
