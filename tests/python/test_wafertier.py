"""The Python package against a real data set: what it gives, keeps and refuses.

    test_wafertier.py WAFERTIER     (the command that makes the data; WAFERTIER_LIBRARY and PYTHONPATH are set)

The expected pixels, labels and keys come from `wafertier cat` and `wafertier ls`, not from the loader.
"""

import gc
import io
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy

import wafertier
from wafertier import Loader, WaferError

try:
    import torch
except ImportError:
    torch = None

COMMAND = sys.argv.pop(1)
SAMPLES = 1000


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, timeout=120).stdout


class Wafers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="wt-python-")
        cls.config = os.path.join(cls.folder.name, "loader.conf")
        with open(cls.config, "w") as f:
            f.write(f'tier "cold" {{ url = "file://{cls.folder.name}/cold" }}\n')
        run("gen", "-d", "maps", "-c", cls.config, "-n", str(SAMPLES), "-s", "256KiB", "-q")
        run("gen", "-d", "sem", "-c", cls.config, "-n", "40", "--kind", "sem", "--shape", "64x48", "--dtype", "u16", "-q")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def open(self, dataset="maps", **options):
        options = {"config": self.config, "batch": 50, "memory": 256 << 20, "threads": 2, **options}
        loader = Loader(dataset, **options)
        self.addCleanup(loader.close)
        return loader


class TestLoader(Wafers):
    def test_epochs(self):
        loader = self.open(epochs=2, seed=7)
        self.assertEqual(loader.info["samples"], SAMPLES)
        self.assertEqual(len(loader), SAMPLES // 50)
        orders = []
        for epoch in loader.epochs():
            seen = [int(i) for batch in epoch for i in batch["sample_id"].numpy()]
            self.assertEqual(len(seen), SAMPLES)
            self.assertEqual(len(set(seen)), SAMPLES)
            orders.append(seen)
        self.assertEqual(len(orders), 2)
        self.assertNotEqual(orders[0], orders[1])
        self.assertTrue(loader.ended)
        self.assertEqual(list(loader), [])

    def test_pixels_are_the_stored_ones(self):
        loader = self.open(mode="eval", batch=250)
        checked = 0
        for batch in loader:
            images, labels = batch["image"].numpy(), batch["label"].numpy()
            self.assertEqual((images.shape, images.dtype), ((250, 52, 52), numpy.uint8))
            for row in (0, 101, 249):
                raw = run("cat", "maps", batch.key(row), "-c", self.config)
                stored = numpy.lib.format.read_array(io.BytesIO(raw))
                self.assertTrue(numpy.array_equal(stored, images[row]))
                self.assertLess(labels[row], len(loader.class_names()))
                checked += 1
        self.assertEqual(checked, 12)

    def test_u16_and_signed(self):
        batch = self.open("sem", batch=10).next()
        image = batch["image"]
        self.assertEqual((image.dtype, image.shape, image.device), ("u16", (10, 64, 48), -1))
        self.assertEqual(image.signed().numpy().dtype, numpy.int16)
        self.assertEqual(image.numpy().view(numpy.int16).tobytes(), image.signed().numpy().tobytes())

    def test_ranks_and_resume(self):
        whole = [b["sample_id"].numpy().copy() for b in self.open(seed=3, lanes=2)]
        halves = [[b["sample_id"].numpy().copy() for b in self.open(seed=3, lanes=2, rank=r, world=2)] for r in (0, 1)]
        for step, ids in enumerate(whole):
            self.assertEqual(ids.tolist(), halves[0][step].tolist() + halves[1][step].tolist())
        loader = self.open(seed=3, lanes=2)
        for _ in range(7):
            batch = loader.next()
        self.assertEqual(batch.state(), loader.state())
        again = self.open(seed=3, lanes=2)
        again.load_state(batch.state())
        self.assertEqual([b["sample_id"].numpy().tolist() for b in again], [i.tolist() for i in whole[7:]])
        with self.assertRaises(WaferError) as caught:
            self.open(seed=4, lanes=2).load_state(batch.state())
        self.assertEqual(caught.exception.code, "WL_ERROR_STATE")
        self.assertIn("seed", str(caught.exception))

    def test_arrays_keep_their_batch(self):
        loader = self.open(slots=3)
        first = loader.next()
        array = first["image"].numpy()
        copy = array.copy()
        first.release()
        with self.assertRaises(WaferError):
            first["image"]
        for _ in loader:
            pass
        loader.close()
        self.assertTrue(numpy.array_equal(array, copy))

    def test_slots_that_are_all_kept_are_an_error(self):
        loader = self.open(slots=3)
        kept = []
        with self.assertRaises(WaferError) as caught:
            for batch in loader:
                kept.append(batch["image"].numpy())
        self.assertEqual(caught.exception.code, "WL_ERROR_EXHAUSTED")
        self.assertEqual(len(kept), 3)
        kept.clear()
        batch = None
        gc.collect()
        self.assertIsNotNone(loader.next())

    def test_a_capsule_that_nobody_takes_gives_its_slot_back(self):
        loader = self.open(slots=2)
        for _ in range(10):
            with loader.next() as batch:
                for version in (None, (1, 0)):
                    capsule = batch["image"].__dlpack__(max_version=version)
                    self.assertIn("dltensor", repr(capsule))
                    del capsule

    def test_refusals(self):
        for options, word in (
            ({"bach": 3}, "batch"),
            ({"batch": 0}, "batch"),
            ({"config": "/nowhere.conf"}, "/nowhere.conf"),
            ({"accel": "tpu"}, "cuda"),
        ):
            with self.assertRaises(WaferError) as caught:
                self.open(**options)
            self.assertIn(word, str(caught.exception))
        with self.assertRaises(WaferError) as caught:
            self.open("nothing", timeout_ms=200)
        self.assertEqual(caught.exception.code, "WL_ERROR_NOT_FOUND")
        with self.assertRaises(KeyError):
            self.open().next()["depth"]
        closed = self.open()
        closed.close()
        with self.assertRaises(WaferError):
            closed.next()

    def test_a_shared_context_and_its_log(self):
        lines = []
        with wafertier.Context(self.config, memory=256 << 20, threads=2, log=lambda level, line: lines.append(line), log_level=3) as ctx:
            train = Loader("maps", context=ctx, batch=50)
            check = Loader("maps", context=ctx, batch=50, mode="eval")
            self.assertEqual(sum(len(b) for b in train), SAMPLES)
            self.assertEqual(sum(int(b["valid"].numpy().sum()) for b in check), SAMPLES)
            train.close()
            check.close()

    def test_abort_from_another_thread(self):
        loader = self.open(slots=2, epochs=0)
        stopper = threading.Timer(0.2, loader.abort)
        stopper.start()
        began = time.monotonic()
        with self.assertRaises(WaferError) as caught:
            while time.monotonic() - began < 20:
                loader.next()
        stopper.join()
        self.assertEqual(caught.exception.code, "WL_ERROR_ABORTED")

    def test_stats(self):
        loader = self.open()
        for _ in loader:
            pass
        stats = loader.stats()
        self.assertEqual(stats["samples"], SAMPLES)
        self.assertEqual(set(stats["stages"]), {"fetch", "decode", "stage", "deliver"})
        self.assertEqual([t["name"] for t in stats["tiers"]], ["cold"])
        self.assertGreater(stats["tiers"][0]["bytes"], 0)
        parts = sum(s["stall_s"] for s in stats["stages"].values())
        self.assertLessEqual(parts, stats["stall_s"] + 1e-3)

    def test_a_program_that_just_ends(self):
        code = "import wafertier, sys\nl = wafertier.Loader('maps', batch=50, config=sys.argv[1], threads=2, memory=256 << 20)\nb = l.next()\nprint(len(b))"
        done = subprocess.run([sys.executable, "-c", code, self.config], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "50\n", ""))


@unittest.skipIf(torch is None, "no torch (apt: python3-torch)")
class TestTorch(Wafers):
    def dataset(self, name="maps", **options):
        from wafertier.torch import WaferDataset

        data = WaferDataset(name, **{"config": self.config, "batch": 50, "memory": 256 << 20, "threads": 2, **options})
        self.addCleanup(data.close)
        return data

    def copies(self, loader):
        for batch in loader:
            yield batch["image"].numpy().tobytes(), batch["sample_id"].numpy().tolist()

    def test_epochs_through_a_data_loader(self):
        data = self.dataset(epochs=2, seed=5)
        plain = self.open(epochs=2, seed=5)
        for _ in range(2):
            n = 0
            wanted = list(self.copies(plain))
            for got, want in zip(torch.utils.data.DataLoader(data, batch_size=None), wanted, strict=True):
                self.assertEqual(got["image"].dtype, torch.uint8)
                self.assertEqual(got["image"].numpy().tobytes(), want[0])
                self.assertEqual(got["sample_id"].tolist(), want[1])
                n += 1
            self.assertEqual(n, len(data))

    def test_no_copy(self):
        batch = self.open().next()
        self.assertEqual(torch.from_dlpack(batch["image"]).data_ptr(), batch["image"].numpy().ctypes.data)

    def test_state(self):
        data = self.dataset(epochs=2, seed=5)
        ids = []
        for step, batch in enumerate(data):
            ids.append(batch["sample_id"].tolist())
            if step == 4:
                kept = data.state_dict()
        rest = self.dataset(epochs=2, seed=5)
        rest.load_state_dict(kept)
        self.assertEqual([b["sample_id"].tolist() for b in rest], ids[5:])
        end = data.state_dict()
        second = [b["sample_id"].tolist() for b in data]
        fresh = self.dataset(epochs=2, seed=5)
        fresh.load_state_dict(end)
        self.assertEqual([b["sample_id"].tolist() for b in fresh], second)
        self.assertEqual(len(second), len(data))
        with self.assertRaises(WaferError):
            self.dataset(seed=6).load_state_dict(kept)
        with self.assertRaises(WaferError):
            data.load_state_dict({"epoch": 3})

    def test_workers_are_refused(self):
        with self.assertRaises(Exception) as caught:
            for _ in torch.utils.data.DataLoader(self.dataset(), batch_size=None, num_workers=1):
                pass
        self.assertIn("num_workers", str(caught.exception))

    @unittest.skipIf(torch is not None and hasattr(torch, "uint16"), "this torch knows uint16")
    def test_a_type_that_torch_lacks_is_named(self):
        with self.assertRaises(WaferError) as caught:
            next(iter(self.dataset("sem", batch=10)))
        self.assertIn("u16", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
