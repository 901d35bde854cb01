"""Kernels that cannot collide: their sockets are files in a folder of their own.

jupyter_client picks TCP ports, lets go of them and hopes that they are still free when the kernel
binds them. Two kernels that start at once can then be given the same one, and one of them dies.
"""

import itertools
import tempfile
from pathlib import Path
from typing import Any

from traitlets.config import Config


def sockets() -> tempfile.TemporaryDirectory[str]:
    """A folder for sockets, directly under /tmp: a socket's path has room for 100 bytes."""
    return tempfile.TemporaryDirectory(prefix="book-", dir="/tmp")


def private(folder: Path) -> Config:
    """Settings of one kernel: sockets `folder`-ipc-1 to 5, connection file `folder`.json."""
    return Config(KernelManager={"transport": "ipc", "connection_file": f"{folder}.json"})


def pytest_configure(config: Any) -> None:
    """As a pytest plugin (`-p tools.kernels`): nbval, which takes no settings, gets them too."""
    from nbval import kernel

    folder, numbers, manager = sockets(), itertools.count(), kernel.KernelManager
    config.add_cleanup(folder.cleanup)

    def start(**given: Any) -> Any:
        return manager(config=private(Path(folder.name, str(next(numbers)))), **given)

    kernel.KernelManager = start
