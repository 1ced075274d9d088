"""Free TCP ports on loopback."""

from __future__ import annotations

import socket
from contextlib import ExitStack

from sandbox.errors import SandboxError

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """`count` distinct ports that nothing listens on.

    All are held until the last one is found, or the kernel could give one of them twice. They are free when
    they are returned, not reserved: start the part that wants them at once.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def require_free(port: int, option: str) -> int:
    """`port`, when nothing listens on it; else a `SandboxError` that names the `option` to change."""
    with socket.socket() as probe:
        # As servers do: a connection of a server that has just ended (TIME_WAIT) is no reason to refuse.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except PermissionError as error:
            raise SandboxError(f"port {port} needs root: choose one above 1023 with {option}") from error
        except OSError as error:
            raise SandboxError(f"port {port} is taken: choose another with {option}") from error
        except OverflowError as error:
            raise SandboxError(f"port {port} does not exist: choose one up to 65535 with {option}") from error
    return port
