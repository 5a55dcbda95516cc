"""What is taken out of texts before they are written: documents are committed, uploaded and posted.

Most texts in a document are perfgate's own. A few come from elsewhere, such as the last words of a
launch that crashed, and those may name a GPU's UUID or a person's folder.
"""

import re
from typing import Any

from perfgate.storage.json_text import printable

# As NVML and CUDA print them: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx, MIG-... likewise.
_UUID = re.compile(r"\b(?:(GPU|MIG)-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_HOME = re.compile(r"(?:/home/|/Users/)[^/\s:'\"]+|/root(?=[/\s:'\"]|$)")
# The folders of any other absolute path: a workspace is named like a project. Not those that every system has,
# and not what follows a word, a scheme or a number sign: units, addresses, JSON pointers.
_FOLDERS = re.compile(r"(?<![\w.~:/#-])/(?!(?:usr|dev|proc|sys|lib|lib64|etc)/)(?:[\w.@+-]+/)+(?=[\w.@+-])")


def withheld(text: str) -> str:
    """Return a text without UUIDs, homes, folders of absolute paths and characters that a document may not hold."""
    text = _UUID.sub(lambda match: f"{match[1] or 'UUID'}-withheld", printable(text))
    return _FOLDERS.sub(".../", _HOME.sub("~", text))


def without_private_text(value: Any) -> Any:
    """Return a JSON value with every text in it withheld; names of fields and cases stay as they are."""
    if isinstance(value, str):
        return withheld(value)
    if isinstance(value, dict):
        return {key: without_private_text(item) for key, item in value.items()}
    if isinstance(value, list) and set(map(type, value)) != {float}:
        return [without_private_text(item) for item in value]
    return value
