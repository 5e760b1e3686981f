"""Loader and context. Every wait lets other Python threads run and is ended by Ctrl-C within a fifth of a second."""

import ctypes
import json
import time
import weakref

from . import _library as lib
from ._library import C, WaferError, check, raise_last
from .batch import Batch

_SLICE_MS = 200


def _encode(value):
    if isinstance(value, bool):
        value = int(value)
    return str(value).encode()


def _log_function(log):
    if log is None:
        return lib.LOG_FUNCTION(0)
    return lib.LOG_FUNCTION(lambda _arg, level, line: log(level, lib.text(line)))


class Context:
    """What loaders share: tiers, threads, memory. log(level, line) is called from the library's threads."""

    def __init__(self, config=None, memory=0, threads=0, log=None, log_level=1):
        self._log = _log_function(log)
        options = lib.ContextOptionsStruct(
            ctypes.sizeof(lib.ContextOptionsStruct),
            _encode(config) if config is not None else None,
            memory,
            threads,
            self._log,
            None,
            log_level,
        )
        pointer = ctypes.c_void_p()
        check(C.wl_context_open(ctypes.byref(options), ctypes.byref(pointer)))
        self._c = pointer.value
        self._end = weakref.finalize(self, _close_context, self._c, self._log)

    def close(self):
        """Drops this reference: the context goes when its last loader has."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _close_context(pointer, _log):
    C.wl_context_close(pointer)


def _close_loader(pointer, _context):
    C.wl_close(pointer)


class Loader:
    """wl_open with the options of wl_options by name: Loader("wafers", batch=64, epochs=3, seed=1, tail="pad").

    Iterating gives the batches of one epoch; the next iteration goes on with the next epoch; after the last one it
    gives nothing. epochs() gives an iterator of each epoch that is left. One thread at a time iterates.
    """

    def __init__(self, dataset, *, context=None, stream=None, timeout=None, log=None, log_level=1, **options):
        if log is not None and context is None:
            keys = ("config", "memory", "threads")
            context = Context(log=log, log_level=log_level, **{k: options.pop(k) for k in keys if k in options})
        elif log is not None:
            raise WaferError("log belongs to the context: Context(log=...)")
        self.stream = stream
        self.timeout = timeout
        self._context = context
        # text options are kept by reference until wl_open has returned
        texts = {name: _encode(value) for name, value in {"dataset": dataset, **options}.items() if value is not None}
        o = C.wl_options_new()
        if not o:
            raise MemoryError("options of a loader")
        try:
            for name, value in texts.items():
                check(C.wl_options_set(o, name.encode(), value))
            pointer = ctypes.c_void_p()
            check(C.wl_open(context._c if context else None, o, ctypes.byref(pointer)))
        finally:
            C.wl_options_free(o)
        self._l = pointer.value
        self._ended = False
        self._end = weakref.finalize(self, _close_loader, self._l, context)

    def _pointer(self):
        if self._l is None:
            raise WaferError("the loader is closed")
        return self._l

    def next(self, timeout=None, stream=None):
        """The next batch; None at the end of an epoch, and after the last (then .ended is True). timeout in seconds."""
        timeout = self.timeout if timeout is None else timeout
        stream = self.stream if stream is None else stream
        number = getattr(stream, "cuda_stream", stream)
        deadline = None if timeout is None else time.monotonic() + timeout
        out = ctypes.c_void_p()
        while True:
            left = _SLICE_MS if deadline is None else max(0, int((deadline - time.monotonic()) * 1000))
            result = check(C.wl_next(self._pointer(), number, min(left, _SLICE_MS), ctypes.byref(out)), self._l)
            if result == lib.OK:
                return Batch(self, out.value, number)
            if result != lib.NOT_READY:
                self._ended = result == lib.END
                return None
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"no batch within {timeout} s: {self.stats()['blame'] or 'nothing'} is waited for")

    def __iter__(self):
        while True:
            batch = self.next()
            if batch is None:
                return
            yield batch
            del batch  # the consumer's reference alone decides

    def epochs(self):
        """An iterator over the batches of each epoch that is left; epochs=0 has no end."""
        while not self._ended:
            epoch = iter(self)
            first = next(epoch, None)
            if first is None and self._ended:
                return
            yield _chain(first, epoch)

    @property
    def ended(self):
        """All epochs are done."""
        return self._ended

    @property
    def info(self):
        """wl_info as a dict: samples, steps, rank_batch, lanes, window, rank, world, classes, ..."""
        info = lib.InfoStruct()
        C.wl_get_info(self._pointer(), ctypes.byref(info))
        row = {name: getattr(info, name) for name, _ in info._fields_}
        row["dataset"] = lib.text(row["dataset"])
        return row

    def __len__(self):
        """Batches of an epoch, the same on every rank."""
        return self.info["steps"]

    def class_names(self):
        return [lib.text(C.wl_class_name(self._pointer(), c)) for c in range(self.info["classes"])]

    def stats(self):
        """What wl_stats_json tells: time and queue of each stage, tiers, stalls and what is to blame for them."""
        buffer, length = ctypes.create_string_buffer(8192), ctypes.c_size_t()
        check(C.wl_stats_json(self._pointer(), buffer, len(buffer), ctypes.byref(length)))
        return json.loads(buffer.value)

    def state(self):
        """The position after the last batch that was given, as bytes."""
        buffer, length = ctypes.create_string_buffer(lib.STATE_MAX), ctypes.c_size_t()
        check(C.wl_state_save(self._pointer(), buffer, lib.STATE_MAX, ctypes.byref(length)))
        return buffer.raw[: length.value]

    def load_state(self, state):
        """Goes on from a saved position; before the first batch only."""
        check(C.wl_state_load(self._pointer(), state, len(state)), self._l)

    def abort(self):
        """Ends every wait with WL_ERROR_ABORTED; from any thread."""
        C.wl_abort(self._pointer())

    def close(self):
        """Ends the loader. Batches and arrays that are still held stay readable."""
        self._l = None
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _chain(first, rest):
    if first is not None:
        yield first
    del first
    yield from rest


__all__ = ["Context", "Loader", "raise_last"]
