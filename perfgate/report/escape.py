"""Text from files is data: how it is made harmless for a terminal, Markdown and Mermaid.

Reports hold names and messages that other people wrote (case ids, file names, compiler logs, GPU
names). Whatever they contain, they are shown as plain text and change nothing around them.
"""

import re
import unicodedata

# Categories that draw nothing, or change how other characters are drawn: control, format (bidi
# overrides, zero-width), surrogate, private use, unassigned, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_ASCII = str.maketrans(
    {
        "µ": "u",
        "±": "+-",
        "×": "x",
        "·": "-",
        "…": "...",
        "→": "->",
        "°": "deg ",
        "▌": "|",
        "─": "-",
        "≤": "<=",
        "≥": ">=",
        "α": "alpha",
        "–": "-",
        "—": "-",
    }
)

# Zero-width space: it stays in the rendered text, so it also stops what GitHub looks for after
# Markdown has been turned into HTML (mentions, references, e-mail addresses, links).
_BREAK = "&#8203;"

# Entities rather than backslashes: they mean the same inside an HTML block, and CommonMark never
# takes an entity for structure.
_ENTITIES = str.maketrans({**{sign: f"&#{ord(sign)};" for sign in "&<>\"'`*_~[]|\\"}, "$": "<span>$</span>"})

# List items, heading underlines and thematic breaks; headings start with a sign of _ACTIVE.
_LINE_START = re.compile(r"\A(?:(\d{1,9})([.)])(?=\s|\Z)|([-+=]))")
_ACTIVE = re.compile(
    r"([@#]"  # mention, e-mail address, reference
    r"|:(?=//)"  # bare link
    r"|www(?=\.)"
    r"|gh-(?=\d)"  # GH-123 is a reference too
    r"|:(?=(?:100|1234|[\w+-]*[a-z_+-][\w+-]*):))",  # :emoji:, not the colons of 12:30:00
    re.IGNORECASE,
)
_CODE_SAFE = re.compile(r"[A-Za-z0-9_.,=\[\]+:/%()-]+( [A-Za-z0-9_.,=\[\]+:/%()-]+)*")
_LABEL_UNSAFE = re.compile(r"[^A-Za-z0-9_.,=+/ -]")


def printable(text: str) -> str:
    r"""Return ``text`` on one line without anything that a terminal, XML or a reader would be misled by.

    Line breaks and tabs become spaces; control, format and unassigned characters are spelled out
    as escapes (``\x1b``), so that they are seen and do nothing.
    """
    return "".join(_visible(sign) for sign in text)


def _visible(sign: str) -> str:
    if sign in "\n\r\t\v\f\u2028\u2029":
        return " "
    if unicodedata.category(sign) not in _INVISIBLE:
        return sign
    number = ord(sign)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def ascii_text(text: str) -> str:
    """Return ``text`` in ASCII: known signs are spelled, letters lose their accents, the rest becomes ``?``."""
    spelled = unicodedata.normalize("NFKD", text.translate(_ASCII))
    bare = "".join(sign for sign in spelled if not unicodedata.combining(sign))
    return bare.encode("ascii", errors="replace").decode("ascii")


def escaped(text: str) -> str:
    """Return Markdown that GitHub renders as the plain text ``text``, wherever it stands.

    In a paragraph, a table cell, a list item and an HTML block alike: no markup, HTML, mention,
    reference, link, emoji or formula, and no new line.
    """
    line = " ".join(printable(text).split())
    marked = "".join(
        part.translate(_ENTITIES) if index % 2 == 0 else part + _BREAK for index, part in enumerate(_ACTIVE.split(line))
    )
    return _LINE_START.sub(lambda found: f"{found[1] or ''}&#{ord(found[2] or found[3])};", marked)


def code(text: str) -> str:
    """Return ``text`` as a Markdown code span where that is safe in any place, else ``escaped``."""
    return f"`{text}`" if _CODE_SAFE.fullmatch(text) else escaped(text)


def label(text: str) -> str:
    """Return ``text`` for use between double quotes in a Mermaid chart."""
    return " ".join(_LABEL_UNSAFE.sub(" ", printable(text)).split())
