"""The C library by ctypes: its functions, structs and errors, and nothing else.

The structs are those of wafertier/loader.h that never change (wl_tensor, wl_error) or carry their
size (wl_context_options). wl_options is made by the library itself (wl_options_new), so that this
package serves newer and older libraries. The library is $WAFERTIER_LIBRARY, or libwaferloader.so.0
where the dynamic loader finds it.
"""

import ctypes
import os

MAX_NDIM = 8
STATE_MAX = 1024
OK, END_OF_EPOCH, END, NOT_READY = 0, 1, 2, 3
FOREVER = -1


class TensorStruct(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.c_int64 * MAX_NDIM),
        ("stride", ctypes.c_int64 * MAX_NDIM),
        ("device", ctypes.c_int),
    ]


class ErrorStruct(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("message", ctypes.c_char * 512),
        ("shard", ctypes.c_char * 192),
        ("key", ctypes.c_char * 96),
        ("offset", ctypes.c_uint64),
        ("sys", ctypes.c_int),
        ("cuda", ctypes.c_int),
    ]


LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)


class ContextOptionsStruct(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("config", ctypes.c_char_p),
        ("memory", ctypes.c_uint64),
        ("threads", ctypes.c_int),
        ("log", LOG_FUNCTION),
        ("log_arg", ctypes.c_void_p),
        ("log_level", ctypes.c_int),
    ]


class InfoStruct(ctypes.Structure):
    _fields_ = [
        ("dataset", ctypes.c_char_p),
        ("generation", ctypes.c_uint64),
        ("samples", ctypes.c_uint64),
        ("shards", ctypes.c_uint64),
        ("stored_bytes", ctypes.c_uint64),
        ("steps", ctypes.c_uint64),
        ("rank_batch", ctypes.c_uint64),
        ("lanes", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
        ("block", ctypes.c_uint64),
        ("rank", ctypes.c_int),
        ("world", ctypes.c_int),
        ("classes", ctypes.c_uint32),
        ("multihot", ctypes.c_int),
        ("memory", ctypes.c_uint64),
        ("ranged", ctypes.c_int),
    ]


class WaferError(RuntimeError):
    """What the library says: message, and code, shard, key, offset, errno, CUDA code where they apply."""

    def __init__(self, message, code="WL_ERROR_INVALID", shard="", key="", offset=0, sys=0, cuda=0):
        super().__init__(message)
        self.code, self.shard, self.key, self.offset, self.sys, self.cuda = code, shard, key, offset, sys, cuda


_P, _I, _S, _Z, _U64 = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
_OUT = ctypes.POINTER(ctypes.c_void_p)
_PROTOTYPES = {
    "wl_last_error": (ctypes.POINTER(ErrorStruct), [_P]),
    "wl_result_name": (_S, [_I]),
    "wl_version": (_S, []),
    "wl_dtype_name": (_S, [_I]),
    "wl_dtype_size": (_Z, [_I]),
    "wl_context_open": (_I, [ctypes.POINTER(ContextOptionsStruct), _OUT]),
    "wl_context_close": (None, [_P]),
    "wl_options_new": (_P, []),
    "wl_options_free": (None, [_P]),
    "wl_options_set": (_I, [_P, _S, _S]),
    "wl_open": (_I, [_P, _P, _OUT]),
    "wl_close": (None, [_P]),
    "wl_abort": (None, [_P]),
    "wl_next": (_I, [_P, _P, _I, _OUT]),
    "wl_batch_release": (None, [_P, _P]),
    "wl_batch_use": (_I, [_P, _P]),
    "wl_batch_tensor": (ctypes.POINTER(TensorStruct), [_P, _S]),
    "wl_batch_tensors": (_Z, [_P]),
    "wl_batch_tensor_at": (ctypes.POINTER(TensorStruct), [_P, _Z]),
    "wl_batch_size": (_U64, [_P]),
    "wl_batch_step": (_U64, [_P]),
    "wl_batch_epoch": (_U64, [_P]),
    "wl_batch_key": (_S, [_P, _U64]),
    "wl_batch_dlpack": (_P, [_P, _S, _P]),
    "wl_batch_dlpack_unversioned": (_P, [_P, _S, _P]),
    "wl_batch_state": (_I, [_P, _S, _Z, ctypes.POINTER(_Z)]),
    "wl_get_info": (None, [_P, ctypes.POINTER(InfoStruct)]),
    "wl_class_name": (_S, [_P, ctypes.c_uint32]),
    "wl_state_save": (_I, [_P, _S, _Z, ctypes.POINTER(_Z)]),
    "wl_state_load": (_I, [_P, _S, _Z]),
    "wl_stats_json": (_I, [_P, _S, _Z, ctypes.POINTER(_Z)]),
}


def _load():
    path = os.environ.get("WAFERTIER_LIBRARY", "libwaferloader.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as why:
        raise ImportError(
            f"{path} cannot be loaded ({why}): install libwaferloader, or set WAFERTIER_LIBRARY to its path"
        ) from why
    for name, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is older than this package") from None
        function.restype, function.argtypes = result, arguments
    return library


C = _load()


def version():
    """The C library's version."""
    return C.wl_version().decode()


def text(raw):
    return raw.decode("utf-8", "replace")


def raise_last(loader=None):
    """Raises what the library said last: of a loader, or of this thread's last call without one."""
    e = C.wl_last_error(loader).contents
    raise WaferError(
        text(e.message), C.wl_result_name(e.code).decode(), text(e.shard), text(e.key), e.offset, e.sys, e.cuda
    )


def check(result, loader=None):
    if result < 0:
        raise_last(loader)
    return result
