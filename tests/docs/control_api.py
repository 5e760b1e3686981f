#!/usr/bin/env python3
"""Holds a real daemon's answers against docs/control-api.md: every documented field is there, no other is.

usage: control_api.py DOC SOURCES WAFERTIERD WAFERTIER
The tables below a heading like ### `GET /v1/tiers` are the fields of that answer. promtool checks /metrics where it is installed.
"""
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

doc_path, sources, daemon_path, tool = sys.argv[1:5]
failures = []


def fail(text):
    failures.append(text)
    print("FAILED:", text)


# ---- the page ----

def rows(text):
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if len(cells) >= 2 and not set(cells[0]) <= set("-: ") and "`" in cells[0]:
            yield re.findall(r"`([^`]+)`", cells[0]), cells[1]


def read_doc():
    text = open(doc_path).read()
    parts = re.split(r"^### `((?:GET|POST|DELETE) [^`]+)`$", text, flags=re.M)
    sections = {}
    for name, body in zip(parts[1::2], parts[2::2]):
        name = name.split("?")[0]
        sections[name] = re.split(r"^## ", body, flags=re.M)[0]
    return sections


def shown_by(sections, name):
    """The section that describes its answer: often its own."""
    alias = re.search(r"^(?:.*\. )?As `((?:GET|POST) [^`]+)` answers", sections[name], flags=re.M)
    return alias.group(1) if alias else name


def fields_of(sections, name, seen=()):
    body = sections[name]
    if shown_by(sections, name) != name and name not in seen:
        return fields_of(sections, shown_by(sections, name), (*seen, name))
    fields = set()
    for names, meaning in rows(body):
        also = re.search(r"as (?:in )?`((?:GET|POST) [^`]+)`", meaning)
        for field in names:
            if field.endswith(".*") and also:
                inner = fields_of(sections, also.group(1), (*seen, name))
                prefix = field[:-1]
                fields |= {f if f.startswith(prefix) else prefix + f for f in inner}
            else:
                fields.add(field)
    return fields


# ---- answers ----

def flatten(value, path=""):
    found = {path} if path else set()
    if isinstance(value, dict):
        for key, inner in value.items():
            found |= flatten(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        found.add(path + "[]")
        for inner in value:
            found |= flatten(inner, path + "[]")
    return found


def pattern(field):
    return re.compile(re.escape(field).replace(r"\*", r"[^.\[\]]+") + r"$")


def compare(name, documented, answers):
    found = set()
    for answer in answers:
        found |= flatten(answer)
    patterns = {f: pattern(f) for f in documented}
    for field, p in patterns.items():
        if not any(p.match(f) for f in found):
            fail(f"{name}: '{field}' is documented, but not in the answer")
    covered = set(documented)
    for field in documented:  # what holds a documented field is named by it
        while "." in field or field.endswith("[]"):
            field = field[:-2] if field.endswith("[]") else field.rsplit(".", 1)[0]
            covered.add(field)
    known = [pattern(f) for f in covered]
    for field in sorted(found):
        base = field.removesuffix("[]")
        if not any(p.match(field) or p.match(base) for p in known):
            fail(f"{name}: '{field}' is in the answer, but not documented")


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=20)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


class Daemon:
    def __init__(self, folder, name="d"):
        self.sock = f"{folder}/{name}.sock"
        self.conf = f"{folder}/{name}.conf"
        self.log = open(f"{folder}/{name}.log", "wb")
        self.seen = {}  # "GET /v1/tiers" -> answers
        self.errors = set()

    def start(self):
        self.process = subprocess.Popen([daemon_path, "--config", self.conf], stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def call(self, method, path, body=None, name=None, status=200):
        c = Connection(self.sock)
        try:
            c.request(method, path, None if body is None else json.dumps(body))
        except BrokenPipeError:  # refused before all was sent: the answer tells
            pass
        r = c.getresponse()
        text = r.read()
        c.close()
        if r.status != status:
            fail(f"{method} {path} {body}: {r.status} {text[:300]}, not {status}")
        if r.getheader("Content-Type") != "application/json":
            return text.decode()
        answer = json.loads(text)
        if r.status >= 400:
            self.errors.add((r.status, answer["code"]))
            if set(answer) != {"error", "code"} or not answer["error"]:
                fail(f"an error has other fields: {answer}")
        else:
            self.seen.setdefault(name or f"{method} {path.split('?')[0]}", []).append(answer)
        return answer

    def until(self, what, seconds=20):
        end = time.time() + seconds
        while True:
            try:
                value = what()
            except OSError:
                value = None
            if value:
                return value
            if time.time() > end:
                sys.exit("FAILED: it takes too long: " + open(self.log.name).read()[-2000:])
            time.sleep(0.02)


def run(sections, folder):
    for t in ("cold", "warm"):
        os.mkdir(f"{folder}/{t}")
    subprocess.run([tool, "gen", "-d", "wafers", "-u", f"file://{folder}/cold", "--kind", "map", "-n", "400", "--lots", "2",
                    "--wafers", "4", "-s", "16KiB", "--codec", "tar", "--quiet"], check=True, timeout=60)
    d = Daemon(folder)
    tiers = "".join(f'tier {os.path.basename(t)} {{ url = "file://{folder}/{t}" capacity = "{c}" }}\n'
                    for t, c in (("cold", 0), ("warm", "100MiB"), ("away/hot", "100MiB"))).replace('100MiB" }', '100MiB" land_max = "10MiB" }', 1)
    with open(d.conf, "w") as f:
        f.write(f'state_folder = "{folder}/state"\ncontrol = "unix:{d.sock}"\ntick = 100ms\nreport_interval = 50ms\n'
                f'job_expiry = 2s\npolicy {{ min_stay = 0s }}\nmover {{ retries = 0 backoff = 50ms }}\n{tiers}')
    d.start()
    try:
        use(d, folder)
        judge(sections, d)
    finally:
        d.stop()
        d.log.close()


def shards_in(folder):
    return sorted(os.path.join(r, f) for r, _, fs in os.walk(f"{folder}/shards") for f in fs)


def cold_shards(folder):
    return shards_in(f"{folder}/cold/wafers")


def spoil(name):
    os.chmod(name, 0o644)
    with open(name, "r+b") as f:
        f.seek(700)
        f.write(b"\x55\xaa\x55\xaa")


def break_shard(folder):
    """The index stays whole, so that lots can be selected; a pixel does not."""
    spoil(cold_shards(folder)[0])


def land(d, folder, name):
    """The daemon is not told of it: its socket has another name in that configuration."""
    text = open(d.conf).read().replace(d.sock, f"{folder}/nobody.sock")
    open(f"{folder}/land.conf", "w").write(text)
    subprocess.run([tool, "gen", "-d", name, "-c", f"{folder}/land.conf", "--land", "warm", "--kind", "map", "-n", "100", "-s", "16KiB",
                    "--codec", "tar", "--quiet"], check=True, timeout=60, stderr=subprocess.DEVNULL)


def use_landed(d, folder):
    """One data set is flushed; of another one copy is gone and one is damaged."""
    land(d, folder, "landed")
    d.call("POST", "/v1/datasets", {"name": "landed"})
    land(d, folder, "lost")
    names = shards_in(f"{folder}/warm/lost")
    os.remove(names[0])
    spoil(names[1])
    d.call("POST", "/v1/datasets", {"name": "lost"})
    d.until(lambda: d.call("GET", "/v1/stats")["flush"]["datasets"] and d.call("GET", "/v1/stats")["flush"]["failures"], 40)


def use(d, folder):
    """Makes the daemon show everything it can show."""
    d.until(lambda: d.call("GET", "/healthz")["status"] == "degraded")  # the folder of hot is not there
    os.mkdir(f"{folder}/away")
    d.until(lambda: d.call("GET", "/healthz")["status"] == "ok", 40)
    d.until(lambda: d.call("GET", "/v1/stats")["shards"])
    break_shard(folder)
    wafers = {"dataset": "wafers"}
    n = d.call("GET", "/v1/datasets")["datasets"][0]["samples"]
    job = {"name": "doc-1", "dataset": "wafers", "tiers": ["cold", "warm", "hot"], "world": 1, "seed": 1, "epoch": 0,
           "plan": {"version": 1, "samples": n, "batch": 4, "block": 8, "lanes": 1, "window": 1, "tail": "drop", "mode": "train"}}
    ids = [d.call("POST", "/v1/jobs", job)["id"] for _ in range(2)]
    shards = d.call("GET", "/v1/stats")["shards"]
    report = {"epoch": 0, "step": 1, "reads": [[s, "cold", 1, 9000] for s in range(shards)], "next": list(range(shards)),
              "stalled": {"fetch": 1.5, "decode": 0.25, "stage": 0, "consumer": 0}, "stalled_tiers": {"cold": 1.5},
              "bad": [["wafers/shard.tar", "lot0000/w00/s0000000"]]}
    progress = "POST /v1/jobs/{id}/progress"
    for _ in range(3):  # other shards than its plan says
        d.call("POST", f"/v1/jobs/{ids[0]}/progress", report, progress)
    d.call("GET", "/v1/jobs")
    d.call("DELETE", f"/v1/jobs/{ids[1]}", name="DELETE /v1/jobs/{id}")
    lots = d.call("GET", "/v1/shards?dataset=wafers&limit=1000")["shards"]
    lot = "lot0000"
    d.call("POST", "/v1/pin", {**wafers, "lot": lot, "wafer": "w01", "tier": "warm"})
    d.call("GET", "/v1/pins")
    d.call("POST", "/v1/evict", {**wafers, "tier": "warm"}, status=409)
    d.call("GET", "/v1/shards?dataset=wafers&lot=lot0000&wafer=w01&limit=3")
    w = d.call("POST", "/v1/warm", {**wafers, "tier": "hot"})["id"]
    d.until(lambda: d.call("GET", f"/v1/warm/{w}", name="GET /v1/warm/{id}")["state"] != "running")
    moving = d.call("POST", "/v1/warm", {**wafers, "tier": "warm"})["id"]
    for _ in range(5):
        d.call("GET", "/v1/moves")
    d.call("DELETE", f"/v1/warm/{moving}", name="DELETE /v1/warm/{id}")
    d.call("POST", "/v1/unpin", wafers)
    os.remove(cold_shards(folder)[-1])  # it is made anew from hot before that may go
    e = d.call("POST", "/v1/evict", {**wafers, "tier": "hot", "hold_s": 0.1})["id"]
    d.until(lambda: d.call("GET", f"/v1/evict/{e}", name="GET /v1/evict/{id}")["state"] != "running")
    d.call("DELETE", f"/v1/evict/{e}", name="DELETE /v1/evict/{id}")
    d.call("GET", "/v1/warm")
    d.call("POST", "/v1/quota", {**wafers, "tier": "hot", "bytes": 50000})
    d.call("GET", "/v1/quotas")
    d.call("POST", "/v1/pin", {**wafers, "tier": "attic"}, status=400)
    d.call("POST", "/v1/warm", {**wafers, "lot": "nowhere"}, status=404)
    d.call("POST", "/v1/stats", {}, status=405)
    d.call("POST", "/v1/pin", {"dataset": "a" * (1 << 20)}, status=413)
    text = open(d.conf).read()
    open(d.conf, "w").write(text.replace("retries = 0", "retries = 1").replace('hot" capacity = "100MiB', 'hot" capacity = "64KiB'))
    assert d.call("POST", "/v1/reload", {})["changed"] == ["mover.retries", "tier hot.capacity"]
    d.call("POST", "/v1/warm", {**wafers, "tier": "hot"}, status=507)
    open(d.conf, "w").write(text.replace("retries = 0", "retries = 0 moves = 2"))
    d.call("POST", "/v1/reload", {}, status=422)
    d.call("POST", "/v1/datasets", {"name": "wafers"})
    use_landed(d, folder)
    d.until(lambda: d.call("GET", "/v1/stats")["jobs_expired"])
    for path in ("/healthz", "/v1/tiers", "/v1/datasets", "/v1/stats"):
        d.call("GET", path)


def events(d):
    c = Connection(d.sock)
    c.request("GET", "/v1/events?since=0")
    r = c.getresponse()
    d.process.terminate()  # which ends the stream
    lines = r.read().decode().splitlines()
    return [json.loads(line) for line in lines]


def judge_events(sections, d):
    documented = {}
    for kinds, meaning in rows(sections["GET /v1/events"]):
        for kind in kinds:
            documented[kind] = set(re.findall(r"`([^`]+)`", meaning))
    seen = {}
    for e in events(d):
        kind = e["kind"]
        own = set(e) - {"kind", "time", "id"}
        seen[kind] = own
        if kind not in documented:
            fail(f"event '{kind}' is not documented")
        elif own != documented[kind]:
            fail(f"event '{kind}' has {sorted(own)}, documented are {sorted(documented[kind])}")
        if ("id" in e) != (kind not in ("alive", "lost", "end")):
            fail(f"event '{kind}': id")
    code = "".join(open(os.path.join(sources, f)).read() for f in os.listdir(sources) if f.endswith(".c"))
    for kind in documented:
        if f'"{kind}"' not in code:
            fail(f"event '{kind}' is documented, but never told")
    rare = {"tier_full", "tier_small", "job_returned", "standby", "alive", "lost"}  # not made here; test daemon_events makes the last two
    for kind in set(documented) - rare - set(seen):
        fail(f"event '{kind}' did not come; only {sorted(seen)}")


def judge_metrics(sections, text):
    documented, labels = set(), {}
    for names, meaning in rows(sections["GET /metrics"]):
        documented |= set(names)
        for name in names:
            labels[name] = set(re.findall(r"`([a-z]+)`", meaning)) | {"le"}
    found = set(re.findall(r"^# TYPE (\S+)", text, flags=re.M))
    for name in sorted(found ^ documented):
        fail(f"metric '{name}' is {'not documented' if name in found else 'documented, but not there'}")
    sample = re.compile(r'^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (?:[0-9.e+-]+|\+Inf|NaN)$')
    for line in text.splitlines():
        m = sample.match(line)
        if line.startswith("#"):
            continue
        if not m:
            fail(f"metrics: '{line}' is no sample")
            continue
        base = re.sub(r"_(bucket|sum|count)$", "", m.group(1))
        name = m.group(1) if m.group(1) in found else base
        given = set(re.findall(r'([a-z]+)="', m.group(2) or ""))
        if not given <= labels.get(name, set()):
            fail(f"metric '{name}' has labels {sorted(given)}, documented are {sorted(labels.get(name, set()))}")
    promtool = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if promtool:
        r = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, timeout=60)
        if r.returncode or r.stderr.strip():
            fail(f"promtool: {r.stderr.strip()}")
        print("promtool check metrics: done")
    else:
        print("SKIPPED: no promtool (Debian package prometheus); the syntax was checked by this script alone")


def judge(sections, d):
    judge_metrics(sections, d.call("GET", "/metrics"))
    judge_events(sections, d)
    d.process.wait(10)
    table = {int(s): codes for s, codes in
             ((s, c) for line in open(doc_path) if re.match(r"\| \d{3}", line)
              for cells in [[x.strip() for x in line.strip().strip("|").split("|")]]
              for s in re.findall(r"\d{3}", cells[0]) for c in [cells[1]])}
    for status, code in sorted(d.errors):
        if status not in table or f"`{code}`" not in table[status]:
            fail(f"error {status} {code} is not documented")
    for name in sections:
        if name in ("GET /v1/events", "GET /metrics"):
            continue
        if name not in d.seen:
            fail(f"{name} is documented, but was not asked")
        elif shown_by(sections, name) == name:
            alike = [n for n in sections if n in d.seen and shown_by(sections, n) == name]
            compare(name, fields_of(sections, name), [a for n in alike for a in d.seen[n]])
    routes = set(re.findall(r'\{"(GET|POST|DELETE)", "([^"]+)"', open(os.path.join(sources, "routes.c")).read()))
    told = open(doc_path).read()
    for method, path in sorted(routes):
        if f"`{method} {path}`" not in told and f"`{method} {path} " not in told and f"`{method} {path}?" not in told:
            fail(f"{method} {path} is not documented")


with tempfile.TemporaryDirectory(prefix="wt-api-", dir=os.environ.get("TMPDIR", "/tmp")) as top:
    run(read_doc(), top)
print(f"{len(failures)} differences between docs/control-api.md and the daemon")
sys.exit(1 if failures else 0)
