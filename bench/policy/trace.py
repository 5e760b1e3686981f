#!/usr/bin/env python3
"""Writes a trace of which nothing is known before, for `wafertier sim --trace FILE --format oracle`.

    trace.py zipf ALPHA | scan | loop | pollution  >FILE

zipf: 2,000,000 requests for 100,000 objects. scan: Zipf 0.9, and after every 100,000 requests a
burst over the next 20,000 objects. loop: 1000 objects in one order, 12 times. pollution: three jobs
read 1000 shards in new orders 12 times, a fourth reads 2000 others once. The definitions (not the
seeds) are those of the reference values in docs/performance.md.
"""
import random
import struct
import sys
from bisect import bisect
from itertools import accumulate


def zipf(n, alpha, count, rng):
    sums = list(accumulate(1 / (i + 1) ** alpha for i in range(n)))
    names = list(range(n))
    rng.shuffle(names)
    return [names[bisect(sums, rng.random() * sums[-1])] for _ in range(count)]


def scan(rng):
    out, at = [], 0
    requests = zipf(100000, 0.9, 2000000, rng)
    for i in range(0, len(requests), 100000):
        out += requests[i:i + 100000]
        out += [(at + k) % 100000 for k in range(20000)]
        at += 20000
    return out


def pollution(rng):
    def job():
        for _ in range(12):
            order = list(range(1000))
            rng.shuffle(order)
            yield from order
    jobs, out = [job() for _ in range(3)], []
    for i in range(12000):
        out += [next(j) for j in jobs]
        if 4000 <= i < 6000:
            out.append(1000 + i - 4000)
    return out


def main(argv):
    rng = random.Random(7)
    if len(argv) == 3 and argv[1] == "zipf":
        requests = zipf(100000, float(argv[2]), 2000000, rng)
    elif len(argv) == 2 and argv[1] in ("scan", "loop", "pollution"):
        requests = {"scan": lambda: scan(rng), "loop": lambda: list(range(1000)) * 12,
                    "pollution": lambda: pollution(rng)}[argv[1]]()
    else:
        sys.exit(__doc__)
    after, later = [-1] * len(requests), {}
    for i in range(len(requests) - 1, -1, -1):
        after[i] = later.get(requests[i], -1)
        later[requests[i]] = i
    pack = struct.Struct("<IQIq").pack
    sys.stdout.buffer.write(b"".join(pack(i, o, 1, after[i]) for i, o in enumerate(requests)))


main(sys.argv)
