"""Reads the tables of hardware facts that ship with perfgate: GPUs, links, latencies."""

import functools
import json
from typing import TypeVar

from perfgate.core.codec import CodecError, decode
from perfgate.core.gpu_table import GpuTable
from perfgate.core.latency import LatencyTable
from perfgate.core.transfer import LinkTable
from perfgate.errors import DocumentError
from perfgate.resources import data_folder

T = TypeVar("T")


def _read(file_name: str, kind: type[T]) -> T:
    path = data_folder() / file_name
    try:
        return decode(kind, json.loads(path.read_text(encoding="utf-8")))
    except CodecError as error:
        raise DocumentError(str(path), error.reason, pointer=error.pointer) from error
    except (OSError, ValueError) as error:
        hint = "the installation is incomplete: install perfgate again"
        raise DocumentError(str(path), f"cannot be read: {error}", hint=hint) from error


@functools.cache
def read_gpu_table() -> GpuTable:
    """Read ``gpus.json``.

    Raises:
        DocumentError: the file is missing or damaged.
    """
    return _read("gpus.json", GpuTable)


@functools.cache
def read_link_table() -> LinkTable:
    """Read ``links.json``; raises like ``read_gpu_table``."""
    return _read("links.json", LinkTable)


@functools.cache
def read_latency_table() -> LatencyTable:
    """Read ``latencies.json``; raises like ``read_gpu_table``."""
    return _read("latencies.json", LatencyTable)
