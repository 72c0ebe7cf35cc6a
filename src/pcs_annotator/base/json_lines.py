"""Standard error for programs: every line that is printed becomes a JSON object."""

import io
import json
import re
from datetime import UTC, datetime
from typing import TextIO

_LEVEL = re.compile(r"(debug|info|warning|error|critical): ", re.IGNORECASE)


def now() -> str:
    """Return the time in the form of ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class JsonLines(io.TextIOBase):
    """A stream that writes an object with `time`, `level` and `message` to another one for every line."""

    encoding, errors = "utf-8", "strict"  # click would wrap a stream without them

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._rest = stream, ""

    def write(self, text: str) -> int:
        """Write an object for every line that is complete by now."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if line.strip():
                self.note(line)
        return len(text)

    def note(self, line: str, **fields: object) -> None:
        """Write a line with further fields; its level is its first word, as in `warning: the disk is full`."""
        level = _LEVEL.match(line)
        message = line[level.end() :] if level else line
        values = {"time": now(), "level": level[1].lower() if level else "info", "message": message.strip(), **fields}
        self._stream.write(json.dumps(values, ensure_ascii=False, default=str) + "\n")
        self._stream.flush()
