"""What no error may repeat: keys and the values of headers, taken out of a server's texts before they are cut.

After a text was cut it is too late: half a key is not found any more, and is half a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from attrs import field, frozen

from fnagents.jsontext import Json, visible
from fnagents.prose import shortened

__all__ = ["Hidden", "MARK", "NOTHING", "SHORTEST"]

#: What stands where something was hidden.
MARK = "[key]"
#: Shorter words are names such as "none", given to servers that ask for no key.
SHORTEST = 8


def _forms(words: Iterable[str]) -> tuple[str, ...]:
    # As they are, as `repr` and as JSON write them; long ones first, because one may be a part of another.
    whole = {word for text in words if len(word := text.strip()) >= SHORTEST}
    forms = {form for word in whole for form in (word, repr(word)[1:-1], json.dumps(word)[1:-1])}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


@frozen
class Hidden:
    """Words to hide, in every form that is looked for; those of fewer than `SHORTEST` characters are none.

    >>> Hidden(["a-key-for-tests"]).text("no such key: a-key-for-tests")
    'no such key: [key]'
    """

    words: tuple[str, ...] = field(default=(), converter=_forms, repr=False)

    def text(self, text: str) -> str:
        """The text without the words."""
        for word in self.words:
            text = text.replace(word, MARK)
        return text

    def short(self, text: str, most: int) -> str:
        """At most `most` characters of the text without the words, every one of which can be encoded."""
        return shortened(visible(self.text(text)), most)

    def data(self, data: Json) -> Any:
        """JSON data without the words, in keys and values."""
        if not self.words:
            return data
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, list):
            return [self.data(value) for value in data]
        if isinstance(data, dict):
            return {self.text(key): self.data(value) for key, value in data.items()}
        return data


#: For texts that may be told whole.
NOTHING = Hidden()
