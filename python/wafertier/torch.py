"""For torch: batches as dictionaries of tensors, without a copy.

    data = wafertier.torch.WaferDataset("wafers", batch=64, epochs=3, config="loader.conf")
    for epoch in range(3):
        for batch in data:                     # or DataLoader(data, batch_size=None)
            loss = step(batch["image"], batch["label"])
    torch.save({"model": ..., "data": data.state_dict()}, path)

Prefetching, decoding and shuffling are done by the library's threads: a DataLoader around it has num_workers=0 (more is
refused: each would read everything again). A tensor keeps the batch's slot: clone what outlives a few steps.
"""

import torch

from ._library import WaferError
from .loader import Loader

_NO_UNSIGNED = {"u16", "u32", "u64"}


def _tensor(t):
    if t.dtype in _NO_UNSIGNED and not hasattr(torch, "uint" + t.dtype[1:]):
        if t.name != "sample_id":  # a number below 2^63: the same in either type
            raise WaferError(
                f"this torch ({torch.__version__}) has no type for tensor '{t.name}' ({t.dtype}): "
                "deliver another (transforms='cast=f32'), or take batch['...'].numpy() from wafertier.Loader"
            )
        t = t.signed()
    return torch.from_dlpack(t)


class WaferDataset(torch.utils.data.IterableDataset):
    """An iterable of one epoch's batches each time, as dictionaries {"image": ..., "label": ..., "valid": ...}.

    Takes the options of wafertier.Loader. The loader is opened at the first use; stream: a torch.cuda.Stream or None
    (the current one) where batches lie in device memory.
    """

    def __init__(self, dataset, **options):
        super().__init__()
        self._dataset, self._options = dataset, options
        self._loader = self._state = None

    @property
    def loader(self):
        """The wafertier.Loader underneath: info, stats(), class_names()."""
        if self._loader is None:
            self._loader = Loader(self._dataset, **self._options)
            if self._state is not None:
                self._loader.load_state(self._state)
        return self._loader

    def _stream(self, stream):
        if stream is None and torch.cuda.is_available():
            return torch.cuda.current_stream().cuda_stream
        return stream

    def __iter__(self):
        if torch.utils.data.get_worker_info() is not None:
            raise WaferError("num_workers must be 0: libwaferloader has its own threads, and each worker would read everything")
        while True:
            batch = self.loader.next(stream=self._stream(self.loader.stream))
            if batch is None:
                self._state = self.loader.state()  # the next epoch's begin
                return
            with batch:
                self._state = batch.state()
                yield {name: _tensor(batch[name]) for name in batch}

    def __len__(self):
        return len(self.loader)

    def state_dict(self):
        """The position after the last batch that was given."""
        return {"wafertier": self._state if self._state is not None else self.loader.state()}

    def load_state_dict(self, state):
        """Goes on from that position, with these options, on any number of ranks."""
        if "wafertier" not in state:
            raise WaferError("this is no state of a WaferDataset: it has no 'wafertier'")
        if self._loader is not None:
            self._loader.close()
            self._loader = None
        self._state = bytes(state["wafertier"])
        _ = self.loader  # a state that does not fit is refused here

    def close(self):
        if self._loader is not None:
            self._loader.close()
            self._loader = None
