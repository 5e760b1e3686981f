#!/bin/bash
# Shards as other programs see them: tar, zstd and Python read what make_shards wrote.
# usage: shard_tools.sh MAKE_SHARDS
set -euo pipefail

make_shards=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/wt-shard-tools-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
"$make_shards" .

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

for kind in small large; do
    tar -tf $kind.tar >plain.list
    tar --zstd -tf $kind.tar.zst >zstd.list
    # The index differs (it says which codec), the names do not.
    cmp plain.list zstd.list || fail "$kind: the two archives list other members"
    [ "$(tail -n 1 plain.list)" = __index__ ] || fail "$kind: __index__ is not the last member"
    zstd -q -t $kind.tar.zst || fail "$kind: zstd -t"
    mkdir plain zstd
    tar -xf $kind.tar -C plain
    zstd -q -dc $kind.tar.zst | tar -xf - -C zstd
    diff -r -x __index__ plain zstd || fail "$kind: the two archives hold other files"
    rm -r plain zstd
done
[ "$(grep -c . plain.list)" = $((4 * 3 + 2 + 1)) ] || fail "large: $(grep -c . plain.list) members"

# Deterministic: the same content gives the same bytes.
mkdir again
"$make_shards" again
for f in *.tar *.tar.zst; do
    cmp "$f" "again/$f" || fail "$f differs when it is made again"
done

if ! /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    echo "NOTE: /usr/bin/python3 has no numpy: the Python half of this test did not run" >&2
    exit 0
fi
/usr/bin/python3 - <<'PYTHON'
import io, json, struct, subprocess, tarfile
import numpy as np

def samples(stream):
    """As WebDataset groups members: by the name up to the first dot behind the last slash; __names__ are skipped."""
    found = {}
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            if member.name.startswith("__") and member.name.endswith("__"):
                continue
            folder, _, base = member.name.rpartition("/")
            name, _, field = base.partition(".")
            key = folder + "/" + name
            assert key not in found or list(found)[-1] == key, f"{key} is not adjacent"
            found.setdefault(key, {})[field] = tar.extractfile(member).read()
    return found

def image(i, rows, cols, wide):
    k = np.arange(rows * cols, dtype=np.uint64)
    v = (k * 31 + i * 7) % 251
    return (v + 300).astype("<u2").reshape(rows, cols) if wide else v.astype("u1").reshape(rows, cols)

def check(found, n, rows, cols, wide):
    assert len(found) == n, len(found)
    for i, (key, fields) in enumerate(found.items()):
        assert key == f"lot1/w{i // 100:02}/die{i:04}", key
        a = np.load(io.BytesIO(fields["npy"]), allow_pickle=False)
        want = image(i, rows, cols, wide)
        assert a.dtype == want.dtype and (a == want).all(), key
        assert int(fields["cls"]) == i % 9
        assert json.loads(fields["json"]) == {"x": i}
        assert ("mask.npy" in fields) == (i % 2 == 0)
        if i % 2 == 0:
            mask = np.load(io.BytesIO(fields["mask.npy"]))
            assert mask.dtype == bool and (mask.reshape(-1) == (np.arange(rows * cols) % 2 == 1)).all()

def seek_table(path):
    """The zstd seekable format, read as a stranger would: [(stored, decoded)]."""
    data = open(path, "rb").read()
    n, descriptor, magic = struct.unpack("<IBI", data[-9:])
    assert magic == 0x8F92EAB1 and descriptor == 0
    head = len(data) - 9 - 8 * n - 8
    assert struct.unpack("<II", data[head:head + 8]) == (0x184D2A5E, 8 * n + 9)
    entries = list(struct.iter_unpack("<II", data[head + 8:-9]))
    assert sum(stored for stored, _ in entries) == head
    return data, entries

def check_frames(path):
    data, entries = seek_table(path)
    at = 0
    for stored, decoded in entries:
        frame = data[at:at + stored]
        out = subprocess.run(["zstd", "-q", "-dc"], input=frame, stdout=subprocess.PIPE, check=True).stdout
        assert len(out) == decoded
        at += stored
    assert out[:9] == b"__index__" and out[512:517] == b"WTIDX", "the last frame is not the index"
    assert out[-1024:] == bytes(1024)
    return len(entries)

def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF

def check_index(path, n, rows, cols, wide):
    """The index of a plain tar, read by docs/shard-format.md alone."""
    data = open(path, "rb").read()
    end = len(data) - 1024
    length, magic = struct.unpack("<Q8s", data[end - 16:end])
    assert magic == b"WTIDXEND"
    index = data[end - length:end]
    version, codec, samples, fields, shapes, sums, hot, text_len = struct.unpack_from("<8I", index, 8)
    tar_size, member, payload = struct.unpack_from("<3Q", index, 40)
    at = struct.unpack_from("<12I", index, 80)
    assert (index[:8], version, codec, samples, fields, hot) == (b"WTIDX\0\0\0", 1, 0, n, 2, 0)
    assert (tar_size, member, payload) == (len(data), end - length - 512, length)
    names = [index[at[0] + 32 * f:at[0] + 32 * f + 32].rstrip(b"\0").decode() for f in range(fields)]
    assert names == ["", "mask"], names
    ids = np.frombuffer(index, "<u8", n, at[2])
    starts = np.frombuffer(index, "<u8", n + 1, at[3])
    offsets = np.frombuffer(index, "<u8", n * fields, at[4]).reshape(n, fields)
    numbers = np.frombuffer(index, "<u4", n * fields, at[5]).reshape(n, fields)
    labels = np.frombuffer(index, "<i4", n, at[6])
    keys = np.frombuffer(index, "<u4", n, at[8])
    jsons = np.frombuffer(index, "<u4", n, at[9])
    crcs = np.frombuffer(index, "<u4", sums, at[10])
    text = index[at[11]:at[11] + text_len]
    string = lambda off: text[off:text.index(b"\0", off)].decode()
    assert starts[0] == 0 and starts[-1] == member
    used = 0
    for i in range(n):
        assert ids[i] == i and labels[i] == i % 9
        assert string(keys[i]) == f"lot1/w{i // 100:02}/die{i:04}"
        assert json.loads(string(jsons[i])) == {"x": i}
        for f in range(fields):
            if numbers[i, f] == 0xFFFFFFFF:
                assert f == 1 and i % 2 == 1 and offsets[i, f] == 0
                continue
            shape = struct.unpack_from("<12I", index, at[1] + 48 * int(numbers[i, f]))
            kind, ndim, dims, per_block = shape[0], shape[1], shape[2:4], shape[10]
            assert (kind, ndim, dims) == ((4 if wide else 2) if f == 0 else 1, 2, (rows, cols))
            row = cols * (2 if kind == 4 else 1)
            assert per_block == max(1, (1 << 20) // row)
            first = int(offsets[i, f])
            tensor = data[first:first + rows * row]
            if f == 0:
                assert tensor == image(i, rows, cols, wide).tobytes()
            for b in range(0, len(tensor), per_block * row):
                if i < 3 and not wide: # bit by bit is slow
                    assert crcs[used] == crc32c(tensor[b:b + per_block * row])
                used += 1
    assert used == sums

for name, n, rows, cols, wide in (("small", 250, 52, 52, False), ("large", 4, 1100, 1000, True)):
    check(samples(open(name + ".tar", "rb")), n, rows, cols, wide)
    zstd = subprocess.Popen(["zstd", "-q", "-dc", name + ".tar.zst"], stdout=subprocess.PIPE)
    check(samples(zstd.stdout), n, rows, cols, wide)
    assert zstd.wait() == 0
    check_index(name + ".tar", n, rows, cols, wide)
assert check_frames("small.tar.zst") >= 4
assert check_frames("large.tar.zst") >= 4 * 3
print("tar, zstd, tarfile and numpy read the shards")
PYTHON
