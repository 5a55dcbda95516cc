"""Xid errors as the driver reports them through NVML's events, collected from the moment of asking."""

import contextlib
from typing import Any

# No driver reports more between two looks; a binding that never times out must not hang us.
_MOST_AT_ONCE = 1000


class XidWatch:
    """Collects the Xid errors of one GPU from now on.

    Args:
        library: the module ``pynvml`` or a stand-in.
        handle: of the GPU; of the whole one where it is divided.
    """

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._events: Any = None
        self._seen: list[int] = []
        # Refused to some containers and virtual GPUs, and missing in old bindings: then nothing is known.
        with contextlib.suppress(Exception):
            events = library.nvmlEventSetCreate()
            try:
                library.nvmlDeviceRegisterEvents(handle, library.nvmlEventTypeXidCriticalError, events)
                self._events = events
            finally:
                if self._events is None:
                    library.nvmlEventSetFree(events)

    def seen(self) -> tuple[int, ...] | None:
        """Return the errors so far, in their order; None where the driver does not tell."""
        if self._events is None:
            return None
        # What ends the wait is the binding's error for a time that is up, or any other: both mean that no more is told.
        with contextlib.suppress(Exception):
            for _ in range(_MOST_AT_ONCE):
                self._seen.append(int(self._library.nvmlEventSetWait_v2(self._events, 0).eventData))
        return tuple(self._seen)

    def close(self) -> None:
        """Release the events."""
        if self._events is not None:
            with contextlib.suppress(Exception):
                self._library.nvmlEventSetFree(self._events)
            self._events = None
