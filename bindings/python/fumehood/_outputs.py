"""What a handler is given: the files that were collected, before anything is committed.

A handler runs in this process and reads a stranger's files with all the rights that the process has. Prefer a post-process
command, which runs under a hood of its own (docs/PYTHON.md).
"""
from __future__ import annotations

import os
from typing import BinaryIO, Callable, Iterator, Mapping, Optional

from ._model import Output, Result
from ._rows import Rows

Handler = Callable[["Outputs"], Optional[Rows]]


class OutputFile:
    """A collected file: what is known of it, and open(). Its content is hostile."""

    def __init__(self, output: Output, opener: Callable[[str], BinaryIO]) -> None:
        self.output, self._opener = output, opener

    @property
    def path(self) -> str:
        return self.output.path

    @property
    def size(self) -> int:
        return self.output.size

    @property
    def sha256(self) -> str:
        return self.output.sha256

    @property
    def media_type(self) -> str:
        return self.output.media_type

    def open(self) -> BinaryIO:
        """For reading. No link is followed."""
        return self._opener(self.output.path)

    def read_bytes(self) -> bytes:
        with self.open() as file:
            return file.read()

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def __repr__(self) -> str:
        return f"OutputFile({self.path!r}, {self.size} bytes)"


class Outputs(Mapping[str, OutputFile]):
    """The collected files by their paths, and the attempt as far as it is known (result)."""

    def __init__(self, result: Result, opener: Callable[[str], BinaryIO]) -> None:
        self.result = result
        self._files = {output.path: OutputFile(output, opener) for output in result.outputs}

    def __getitem__(self, path: str) -> OutputFile:
        return self._files[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"Outputs({list(self._files)!r})"


def open_beneath(directory: int, path: str) -> BinaryIO:
    """A file below a directory, no component of whose path is a link."""
    *parents, name = path.split("/")
    here = os.dup(directory)
    try:
        for parent in parents:
            below = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        return os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here), "rb")
    finally:
        os.close(here)
