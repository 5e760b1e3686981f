"""Batches of wafer images from libwaferloader: verified, shuffled, resumable, sharded over ranks.

    import wafertier

    with wafertier.Loader("wafers", batch=64, epochs=3, config="loader.conf") as loader:
        for epoch in loader.epochs():
            for batch in epoch:
                images = batch["image"].numpy()    # no copy; or torch.from_dlpack(batch["image"])
                labels = batch["label"].numpy()

This package is ctypes over the C library: nothing is compiled. Options are those of wl_options in
wafertier/loader.h, by their names. wafertier.torch has a class like torch's IterableDataset.
"""

from ._library import WaferError, version
from .batch import Batch, Tensor
from .loader import Context, Loader

__all__ = ["Batch", "Context", "Loader", "Tensor", "WaferError", "version"]
