from __future__ import annotations

import socket

import pytest

from sandbox.errors import SandboxError
from sandbox.ports import LOOPBACK, free_ports, require_free


def test_free_ports_are_distinct_and_can_be_bound() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    with socket.socket() as server:
        server.bind((LOOPBACK, ports[0]))


def test_a_free_port_is_handed_back() -> None:
    port = free_ports(1)[0]
    assert require_free(port, "--airflow-port") == port


def test_a_taken_port_names_the_option_to_change() -> None:
    with socket.socket() as server:
        server.bind((LOOPBACK, 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(SandboxError, match=f"^port {port} is taken: choose another with --airflow-port$"):
            require_free(port, "--airflow-port")


def test_a_port_that_does_not_exist_names_the_option_to_change() -> None:
    with pytest.raises(SandboxError, match=r"port 70000 does not exist.*--airflow-port"):
        require_free(70_000, "--airflow-port")
