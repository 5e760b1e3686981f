"""Packs what numpy wrote, and compares what comes out with what went in. Called by pack.sh, in its temporary folder."""
import csv
import glob
import io
import json
import os
import subprocess
import sys
import tarfile

import numpy as np

W, COLD = os.environ["W"], os.environ["COLD"]
REAL = os.environ.get("WAFERTIER_REAL_DATA", "")


def run(*args, code=0):
    p = subprocess.run([W, *map(str, args)], capture_output=True, text=True, timeout=120)
    assert p.returncode == code, f"exit code {p.returncode}, not {code}: {args}\n{p.stdout}{p.stderr}"
    return p.stdout + p.stderr


def manifest(name):
    return json.loads(run("ls", name, "--json", "--from", COLD))


def samples(name):
    """key -> {extension: bytes}, out of the shards as tarfile and zstd read them, in order."""
    out = {}
    for line in run("ls", name, "-l", "--from", COLD).splitlines():
        path = os.path.join(COLD, line.split("  ")[-1])
        data = open(path, "rb").read()
        if path.endswith(".zst"):
            data = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = tar.getmembers()
            assert members[-1].name == "__index__"
            for m in members[:-1]:
                key, ext = m.name.split(".", 1)  # as WebDataset does
                fields = out.setdefault(key, {})
                assert ext not in fields, m.name
                fields[ext] = tar.extractfile(m).read()
    return out


def image(fields):
    a = np.load(io.BytesIO(fields["npy"]))
    assert a.flags.c_contiguous and a.dtype.byteorder in "|<="
    return a


def folder_with_table():
    rng = np.random.default_rng(1)
    os.makedirs("in/deep")
    want, rows = {}, []
    for i, dtype in enumerate(["u1", "<u2", ">u2", "<i4", ">i8", "<f4", ">f8", "?", "<f2", ">c8"]):
        a = (rng.random((5 + i, 7)) * 100).astype(dtype)
        if i % 2:
            a = np.asfortranarray(a)
        np.save(f"in/deep/f{i}.npy", a)
        want[f"L{i % 3}/w{i}/deep~f{i}"] = a
        rows.append([f"w{i}", "" if i == 4 else ["ring", "scratch"][i % 2], f"deep/f{i}.npy", f"L{i % 3}", i - 5])
    with open("labels.csv", "w", newline="", encoding="utf-8-sig") as f:
        w = csv.writer(f)  # CRLF
        w.writerow(["wafer", "label", "file", "lot", "die_x"])
        w.writerows(rows)
    text = run("pack", "in", "--dataset", "folder", "--to", COLD, "--labels", "labels.csv", "--codec", "tar")
    assert "10 packed" in text, text
    m, got = manifest("folder"), samples("folder")
    assert sorted(got) == sorted(want)
    for key, a in want.items():
        b = image(got[key])
        assert b.shape == a.shape and b.dtype == a.dtype.newbyteorder("<") and (a == b).all(), key
        out = f"one.npy"
        run("cat", "folder", key, "--from", COLD, "-o", out)
        assert (np.load(out) == a).all(), key
    labels = {k: v.get("cls") for k, v in got.items()}
    assert labels["L0/w0/deep~f0"] == b"0" and labels["L1/w1/deep~f1"] == b"1", labels
    assert labels["L1/w4/deep~f4"] is None  # unlabelled
    meta = json.loads(got["L0/w0/deep~f0"]["json"])
    assert meta["die_x"] == -5 and meta["source"] == "deep/f0.npy" and meta["label_source"] == "csv", meta
    assert [c["name"] for c in m["classes"]] == ["ring", "scratch"], m
    assert [c["samples"] for c in m["classes"]] == [4, 5], m
    run("verify", "folder", "--from", COLD)


def object_arrays_are_refused():
    os.makedirs("obj")
    np.save("obj/o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save("obj/p.npy", np.zeros((2, 2), "u1"))
    text = run("pack", "obj", "--dataset", "obj", "--to", COLD, code=1)
    assert "obj/o.npy" in text, text
    assert "obj" not in run("ls", "--from", COLD).split()
    text = run("pack", "obj", "--dataset", "obj", "--to", COLD, "--keep-going", code=1)
    assert "1 packed" in text and "1 bad left out" in text, text
    assert manifest("obj")["samples"] == 1


def npz_files():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, (300, 20, 30), dtype="u1")
    y = rng.integers(-1, 4, 300)
    hot = rng.integers(0, 2, (300, 6))
    for name, save, arrays in [
        ("npz-a", np.savez, dict(images=x, labels=y)),
        ("npz-b", np.savez_compressed, dict(x=np.asfortranarray(x), y=y.astype(">i2"))),
        ("npz-c", np.savez_compressed, dict(arr_0=x.astype(">u2"), arr_1=hot)),
        ("npz-d", np.savez, dict(data=x, label=hot.astype(bool))),
    ]:
        save(name + ".npz", **arrays)
        run("pack", name + ".npz", "--dataset", name, "--to", COLD, "--shard-size", "64KiB", "-j", "3")
        m, got = manifest(name), samples(name)
        assert m["samples"] == len(got) == 300 and m["shards"] > 5
        for i, (key, fields) in enumerate(got.items()):
            assert key == f"lot0/wafer0/{name}~{i:06d}"
            assert (image(fields) == x[i]).all(), key
        if name in ("npz-a", "npz-b"):
            assert [f.get("cls") for f in got.values()] == [None if v < 0 else b"%d" % v for v in y]
            assert [c["samples"] for c in m["classes"]] == [int((y == c).sum()) for c in range(4)]
        else:
            assert [c["samples"] for c in m["classes"]] == hot.sum(0).tolist()
            one = json.loads(run("cat", name, f"lot0/wafer0/{name}~000007", "--json", "--from", COLD))
            assert one["label"] == hot[7].tolist()
        run("verify", name, "--from", COLD)


def real_data():
    root = os.path.join(REAL, "wafermaps-faris-k/derived")
    if not REAL or not os.path.isdir(root):
        print("SKIPPED: real wafer maps: WAFERTIER_REAL_DATA does not name their folder", file=sys.stderr)
        return
    npz = os.path.join(root, "mixedwm38_test_arr.npz")
    with np.load(npz) as z:
        x, hot = z["arr_0"], z["arr_1"]
    run("pack", npz, "--dataset", "mixed", "--to", COLD)
    m, got = manifest("mixed"), samples("mixed")
    assert m["samples"] == len(got) == len(x)
    assert sum(int(image(f).sum()) for f in got.values()) == int(x.sum())
    assert [c["samples"] for c in m["classes"]] == hot.sum(0).tolist()
    table = os.path.join(root, "wm811k_labels.csv")
    with open(table, newline="", encoding="utf-8-sig") as f:
        rows = {r["file"]: r for r in csv.DictReader(f)}
    for sub, name in [("wm811k_npy", "wm-c"), ("wm811k_npy_forder", "wm-f")]:
        run("pack", os.path.join(root, sub), "--dataset", name, "--to", COLD, "--labels", table, "--label-column", "failureType")
        got, m = samples(name), manifest(name)
        files = sorted(glob.glob(os.path.join(root, sub, "*.npy")))
        assert len(files) == len(got) == m["samples"]
        names = [c["name"] for c in m["classes"]]
        assert names == sorted({rows[os.path.basename(f)]["failureType"] for f in files})
        for f in files:
            stem = os.path.basename(f)[:-4]
            fields = got[f"lot0/wafer0/{stem}"]
            assert (image(fields) == np.load(f)).all(), f
            assert names[int(fields["cls"])] == rows[stem + ".npy"]["failureType"]
            assert json.loads(fields["json"])["rows"] == int(rows[stem + ".npy"]["rows"])
    run("pack", os.path.join(root, "wm811k_png"), "--dataset", "wm-png", "--to", COLD)
    got = samples("wm-png")
    assert len(got) == len(glob.glob(os.path.join(root, "wm811k_png", "*.png")))
    same = 0
    for key, fields in got.items():
        npy = os.path.join(root, "wm811k_npy", key.split("/")[-1].split("_")[0] + ".npy")
        if os.path.exists(npy):
            assert (image(fields) == np.load(npy)).all(), key
            same += 1
    assert same > 0
    for name in ("mixed", "wm-c", "wm-f", "wm-png"):
        run("verify", name, "--from", COLD)
    bad = glob.glob(os.path.join(REAL, "npy-numpy", "*.np[yz]"))
    assert bad
    for f in bad:
        assert os.path.basename(f) in run("pack", f, "--dataset", "bad", "--to", COLD, code=1)
    # Every PNG of the suite is packed, or is one of those that are broken on purpose.
    suite = os.path.join(REAL, "pngsuite", "png")
    text = run("pack", suite, "--dataset", "suite", "--to", COLD, "--keep-going", code=1)
    broken = {os.path.basename(f) for f in glob.glob(os.path.join(suite, "x*.png"))}
    left = {os.path.basename(line.split(": ")[2]) for line in text.splitlines() if "left out: " in line}
    assert left <= broken, left - broken
    assert manifest("suite")["samples"] + len(left) == len(os.listdir(suite))
    print(f"   png suite: {len(left)} of {len(broken)} broken files refused; not refused: {sorted(broken - left)}")


for check in (folder_with_table, object_arrays_are_refused, npz_files, real_data):
    print("  ", check.__name__)
    check()
