#!/usr/bin/env python3
"""Two jobs with orders of their own on one data set, hot a quarter of it: RADOS, Redis, the daemon.

What leaves cold, readers and mover together, as the OSD itself counts it, is held against what
`wafertier sim` predicts for such a mix, and against a fixed set's and the optimum's bytes for the
very requests that were made. Every byte must be told of by a job or the mover, and a shard enters
hot by one read of cold: a tap between the jobs and the daemon notes which shard was read where.
Bytes are judged, not times. LANES and WINDOW are the jobs': how many shards they fetch at a time.
Usage: two_jobs.py BUILD LANES WINDOW (with_ceph's environment; its Redis is its own)
"""
import json, os, shutil, signal, socket, subprocess, sys, tempfile, threading, time

BUILD, LANES, WINDOW = sys.argv[1:4]
WAFERTIER = BUILD + "/bin/wafertier"
CEPH, SERVERS = os.environ["WT_TEST_CEPH"], os.environ["WT_TEST_SERVERS"]
SHARDS, EPOCHS, PACE_MS, REPORT_MS = 128, 5, 60, 50
NEAR = 0.10  # of the prediction
children = []


def run(*command, timeout=60):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, "%s: %s%s" % (" ".join(command), done.stdout, done.stderr)
    return done.stdout


def spawn(log, *command):
    # Bounded, should this program be killed.
    child = subprocess.Popen(("timeout", "150") + command, stdout=open(log, "w"), stderr=subprocess.STDOUT)
    children.append(child)
    return child


def end(child):
    if child.poll() is None:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def osd_bytes():
    out = run("ceph", "--admin-daemon", CEPH + "/run/osd.0.asok", "perf", "dump", "osd", timeout=20)
    return json.loads(out)["osd"]["op_r_out_bytes"]


def stats():
    return json.loads(run(WAFERTIER, "stats", "--control", "s", "--json"))


class Tap:
    """Passes connections on and notes what is reported, with the time of it."""

    def __init__(self, path, onto):
        self.onto, self.reads, self.lock = onto, [], threading.Lock()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, daemon = self.socket.accept()[0], socket.socket(socket.AF_UNIX)
            daemon.connect(self.onto)
            for a, b, note in ((client, daemon, self.note), (daemon, client, None)):
                threading.Thread(target=self.pump, args=(a, b, note), daemon=True).start()

    def pump(self, a, b, note):
        held = b""
        try:
            while data := a.recv(1 << 20):
                b.sendall(data)
                held = note(held + data) if note else b""
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def note(self, held):
        while b"\r\n\r\n" in held:
            head, rest = held.split(b"\r\n\r\n", 1)
            size = [int(l.split(b":")[1]) for l in head.split(b"\r\n") if l.lower().startswith(b"content-length:")]
            size = size[0] if size else 0
            if len(rest) < size:
                break
            if b"/progress" in head.split(b"\r\n")[0]:
                with self.lock:
                    for shard, tier, ranges, size_read in json.loads(rest[:size])["reads"]:
                        self.reads.append((time.time(), shard, tier, ranges, size_read))
            held = rest[size:]
        return held


def configure(path, control, cold, hot, capacity):
    with open(path, "w") as f:
        f.write('state_folder = "%s/state"\ncontrol = "unix:%s/%s"\nreport_interval = "%dms"\ntick = "200ms"\n'
                % (os.getcwd(), os.getcwd(), control, REPORT_MS))
        # All of the capacity, as the simulation has it.
        f.write('policy { min_stay = "0s" high = "100%" low = "100%" }\n')
        f.write('tier "cold" { url = "%s" }\ntier "hot" { url = "%s" capacity = "%d" }\n' % (cold, hot, capacity))


def start_daemon():
    daemon = spawn("daemon.log", BUILD + "/bin/wafertierd", "--config", "w.conf")
    for _ in range(100):
        if subprocess.run([WAFERTIER, "stats", "--control", "s"], capture_output=True).returncode == 0 and \
                stats().get("active"):
            return daemon
        time.sleep(0.1)
    raise AssertionError("the daemon does not answer")


def play(tap):
    """Both jobs to their end, the second one half an epoch later; the counters before and after, from
    when a quarter of all reads were made: the warm-up, as in `wafertier sim`."""
    jobs = []
    for seed in (1, 2):
        jobs.append(spawn("job.%d" % seed, BUILD + "/tests/paced", "jobs.conf", "wafers", str(seed), str(EPOCHS), "16",
                          str(PACE_MS), LANES, WINDOW))
        if seed == 1:
            time.sleep(SHARDS * PACE_MS / 2000)
    warm = None
    while any(j.poll() is None for j in jobs):
        if warm is None and len(tap.reads) >= 2 * SHARDS * EPOCHS // 4:
            warm = (stats(), osd_bytes(), time.time())
        time.sleep(0.05)
    assert all(j.returncode == 0 for j in jobs), [open("job.%d" % s).read() for s in (1, 2)]
    time.sleep(1)  # copies that were under way
    return warm, (stats(), osd_bytes())


def simulate(size):
    """Cold bytes of one byte read, the mean over orders."""
    parts = []
    for seed in range(1, 13):
        out = json.loads(run(WAFERTIER, "sim", "--jobs", "2", "--shards", str(SHARDS), "--epochs", str(EPOCHS), "--cache", "0.25",
                             "--shard-size", str(size), "--epoch-time", "%dms" % (SHARDS * PACE_MS), "--react",
                             "%dms" % (REPORT_MS + 100), "--seed", str(seed), "--json"))
        parts.append(out["policies"]["wafertier"]["cold_bytes"] / (0.75 * out["requests"] * size))
    return sum(parts) / len(parts)


def of_requests(reads, size):
    """What a fixed set, and the optimum, would read of cold for one byte of these requests."""
    with open("trace.txt", "w") as f:
        for i, (when, shard, tier, ranges, got) in enumerate(sorted(reads)):
            f.write("%d %d %d\n" % (i, shard, size))
    out = json.loads(run(WAFERTIER, "sim", "--trace", "trace.txt", "--cache", "0.25", "--json"))
    counted = out["requests"] - out["requests"] // 4
    return [out["policies"][p]["cold_bytes"] / (counted * size) for p in ("fixed", "bound")]


def twice(reads, events, since):
    """Reads of cold of a shard that stood in hot, or was on its way there: by a reader who was sooner than the copy."""
    told = [(when, shard, tier, None) for when, shard, tier, ranges, got in reads]
    for e in events:
        if e["kind"] in ("move_started", "move_done", "move_failed"):
            told.append((e["time"], e["shard"], e["kind"], e))
    held, entries, doubles = set(), 0, 0
    for when, shard, kind, e in sorted(told, key=lambda t: t[0]):
        if kind == "cold":
            doubles += shard in held and when > since
        elif kind == "move_started" and e["to"] == "hot":
            held.add(shard)
        elif kind == "move_done" and e["to"] == "hot":
            entries += e["from"] == "cold" and when > since
        elif kind == "move_failed" or (kind == "move_done" and e["drop"] == "hot"):
            held.discard(shard)
    return doubles, entries


def judge(size, warm, after, reads, events):
    set_bytes = SHARDS * size
    read = after[0]["reads"]["bytes"] - warm[0]["reads"]["bytes"]
    copied = after[0]["moves"]["from_cold"] - warm[0]["moves"]["from_cold"]
    by_jobs = after[0]["tiers"][0]["reported"]["bytes"] - warm[0]["tiers"][0]["reported"]["bytes"]
    counted = after[1] - warm[1]
    measured, predicted = counted / read, simulate(size)
    fixed, optimum = of_requests(reads, size)
    print("cold MB an epoch of %.1f MB: measured %.1f, sim %.1f, fixed set %.1f, optimum %.1f" % tuple(
        x * set_bytes / 1e6 for x in (1, measured, predicted, fixed, optimum)))
    print("the OSD counted %.1f MB: %.1f by jobs, %.1f by the mover" % (counted / 1e6, by_jobs / 1e6, copied / 1e6))
    doubles, entries = twice(reads, events, warm[2])
    print("%d shards entered hot, %d of them were read from cold a second time" % (entries, doubles))
    assert abs(measured / predicted - 1) <= NEAR, "not within 10% of the prediction"
    assert measured < 0.9 * fixed, "not below a fixed set"
    assert measured > 0.95 * optimum, "below the optimum: something was not counted"
    assert abs(counted / (by_jobs + copied) - 1) < 0.03, "bytes of cold that nobody told of"
    assert entries > SHARDS and doubles <= entries / 25, "shards enter hot by more than one read"


def main():
    space = "twojobs%d" % os.getpid()
    cold = "rados://wafers-cold/%s?conf=%s/ceph.conf" % (space, CEPH)
    redis = [SERVERS + "/redis"]
    run(*redis, "start", "redis", "single")
    run(WAFERTIER, "gen", "--dataset", "wafers", "--to", cold, "--kind", "sem", "--shape", "256x256", "--samples", str(16 * SHARDS),
        "--shard-size", str(16 * (256 * 256 + 1536) + 4096), "--codec", "tar", "--sidecars", "index", "--seed", "3", "--quiet")
    ls = json.loads(run(WAFERTIER, "ls", "wafers", "--from", cold, "--json"))
    assert ls["shards"] == SHARDS, ls
    size = ls["stored_bytes"] // SHARDS
    run(*redis, "cli", "redis", "config", "set", "maxmemory", str(ls["stored_bytes"] // 2 + (64 << 20)))
    hot = "redis+unix://%s/redis/socket" % os.getcwd()
    os.mkdir("state")
    # A little more than a quarter, so that 32 shards fit though their sizes differ by some bytes.
    configure("w.conf", "s", cold, hot, (SHARDS // 4) * (size + 4096))
    configure("jobs.conf", "tap", cold, hot, (SHARDS // 4) * (size + 4096))
    daemon = start_daemon()
    tap = Tap("tap", "s")
    spawn("events", "curl", "-sN", "--unix-socket", "s", "http://localhost/v1/events")
    warm, after = play(tap)
    end(daemon)
    assert "does not read" not in open("daemon.log").read(), "a job that reads as it said was taken for another"
    events = [json.loads(line) for line in open("events") if line.endswith("}\n")]
    judge(size, warm, after, tap.reads, events)
    print("two jobs: all passed")


def clean(space_of, top):
    for child in children:
        end(child)
    listed = subprocess.run(["rados", "-c", CEPH + "/ceph.conf", "-p", "wafers-cold", "-N", space_of, "ls"],
                            capture_output=True, text=True, timeout=60).stdout.split()
    for i in range(0, len(listed), 64):
        subprocess.run(["rados", "-c", CEPH + "/ceph.conf", "-p", "wafers-cold", "-N", space_of, "rm"] + listed[i:i + 64], timeout=60)
    subprocess.run([SERVERS + "/redis", "wipe", top + "/redis"], timeout=60)
    shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    if not shutil.which("redis-server"):
        print("SKIPPED: redis-server is not installed (scripts/setup test)", file=sys.stderr)
        sys.exit(77)
    top = tempfile.mkdtemp(prefix="wt-two-jobs-", dir=os.environ.get("TMPDIR", "/tmp"))
    os.chdir(top)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        main()
    except Exception as e:
        for name in ("daemon.log", "job.1", "job.2"):
            if os.path.exists(name):
                sys.stderr.write(name + ":\n" + "".join(open(name).readlines()[-15:]))
        print("FAILED: %s" % e, file=sys.stderr)
        raise
    finally:
        clean("twojobs%d" % os.getpid(), top)
