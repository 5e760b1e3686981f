"""A batch and its tensors. A tensor speaks DLPack, so that numpy, torch, cupy and jax take it without a copy.

A batch's memory is one slot of the loader's ring. It goes back when the batch was released (release(), the end of
a with block, or when the last reference to the batch goes) and every array made from it is gone; a loader whose
slots are all kept says so (WL_ERROR_EXHAUSTED): copy what you keep.
"""

import ctypes

from ._library import C, STATE_MAX, TensorStruct, WaferError, check, raise_last

_CPU, _CUDA = 1, 2
_LEGACY_STREAM = 1  # what DLPack's Python protocol calls CUDA's default stream

_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype, _capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_capsule_get = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_get.restype, _capsule_get.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]

_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_DL_TENSOR = 8 + 8 + 4 + 4 + 8 + 8 + 8  # sizeof(DLTensor): data, device, ndim, dtype, shape, strides, byte_offset
_DTYPE_AT = 8 + 8 + 4  # in a DLTensor
_VERSIONED_TENSOR_AT = 8 + _POINTER + _POINTER + 8  # version, manager_ctx, deleter, flags


def _call_deleter(managed, at):
    deleter = ctypes.c_void_p.from_address(managed + at).value
    _DELETER(deleter)(managed)


# A capsule that nobody took still owns its tensor. By address, not as an object: it is being destroyed.
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _drop(capsule):
    if _capsule_is(capsule, b"dltensor"):
        _call_deleter(_capsule_get(capsule, b"dltensor"), _DL_TENSOR + _POINTER)
    elif _capsule_is(capsule, b"dltensor_versioned"):
        _call_deleter(_capsule_get(capsule, b"dltensor_versioned"), 8 + _POINTER)


class Tensor:
    """One tensor of a batch. shape, dtype ("u8", "f32"), device (-1: host) describe it; numpy() is a view of it."""

    def __init__(self, batch, struct):
        self._batch, self.name = batch, struct.name.decode()
        self.shape = tuple(struct.shape[: struct.ndim])
        self.dtype = C.wl_dtype_name(struct.dtype).decode()
        self.device = struct.device
        self._signed = False

    def __repr__(self):
        place = "host" if self.device < 0 else f"cuda:{self.device}"
        return f"<wafertier.Tensor {self.name} {self.dtype} {list(self.shape)} on {place}>"

    def signed(self):
        """The same bytes called signed: for frameworks without unsigned integers of more than 8 bits."""
        other = Tensor.__new__(Tensor)
        other.__dict__.update(self.__dict__, _signed=True)
        if self.dtype[0] == "u":
            other.dtype = "i" + self.dtype[1:]
        return other

    def __dlpack_device__(self):
        return (_CPU, 0) if self.device < 0 else (_CUDA, self.device)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("a batch's tensor is handed on, not copied: clone it afterwards")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"tensor '{self.name}' lies on device {self.__dlpack_device__()}, not on {tuple(dl_device)}")
        versioned = max_version is not None and max_version[0] >= 1
        export = C.wl_batch_dlpack if versioned else C.wl_batch_dlpack_unversioned
        where = None if stream in (None, -1, 0, _LEGACY_STREAM) else stream
        managed = export(self._batch._pointer(), self.name.encode(), where)
        if not managed:
            raise_last()
        if self._signed:
            code = managed + (_VERSIONED_TENSOR_AT if versioned else 0) + _DTYPE_AT
            if ctypes.c_uint8.from_address(code).value == 1:  # kDLUInt
                ctypes.c_uint8.from_address(code).value = 0  # kDLInt
        return _capsule_new(managed, b"dltensor_versioned" if versioned else b"dltensor", ctypes.cast(_drop, ctypes.c_void_p))

    def numpy(self):
        """A numpy array over the batch's memory, which it keeps."""
        import numpy

        return numpy.from_dlpack(self)


class Batch:
    """A batch of this rank: batch["image"], "label" in batch, batch.step, batch.key(row). See the module's text."""

    def __init__(self, loader, pointer, stream):
        self._loader, self._b, self._stream = loader, pointer, stream

    def _pointer(self):
        if self._b is None:
            raise WaferError("the batch was released")
        return self._b

    def names(self):
        b = self._pointer()
        return [C.wl_batch_tensor_at(b, i).contents.name.decode() for i in range(C.wl_batch_tensors(b))]

    def __getitem__(self, name):
        found = C.wl_batch_tensor(self._pointer(), name.encode())
        if not found:
            raise KeyError(f"the batch has no tensor '{name}': {', '.join(self.names())}")
        struct = TensorStruct.from_buffer_copy(found.contents)
        return Tensor(self, struct)

    def __contains__(self, name):
        return bool(C.wl_batch_tensor(self._pointer(), name.encode()))

    def __iter__(self):
        return iter(self.names())

    def __len__(self):
        """Rows of this rank, valid or not."""
        return C.wl_batch_size(self._pointer())

    @property
    def step(self):
        return C.wl_batch_step(self._pointer())

    @property
    def epoch(self):
        return C.wl_batch_epoch(self._pointer())

    def key(self, row):
        """<lot>/<wafer>/<sample>, "" for padding."""
        return C.wl_batch_key(self._pointer(), row).decode()

    def keys(self):
        return [self.key(row) for row in range(len(self))]

    def state(self):
        """The position after this batch, for load_state."""
        buffer, length = ctypes.create_string_buffer(STATE_MAX), ctypes.c_size_t()
        check(C.wl_batch_state(self._pointer(), buffer, STATE_MAX, ctypes.byref(length)))
        return buffer.raw[: length.value]

    def record_stream(self, stream):
        """A further CUDA stream uses the batch (a number, or a torch.cuda.Stream): its slot waits for that too."""
        check(C.wl_batch_use(self._pointer(), getattr(stream, "cuda_stream", stream)))

    def release(self):
        """Gives the batch back. Arrays made from it stay valid until they are gone themselves."""
        b, self._b = self._b, None
        if b is not None:
            C.wl_batch_release(b, self._stream)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def __del__(self):
        self.release()
