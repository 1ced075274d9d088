"""Who asks an S3 server, and what they may do there."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Identity:
    """A name with its key pair, and what it may do in SeaweedFS's words (`Admin`, `List:bucket`, ...)."""

    name: str
    actions: tuple[str, ...]
    access_key: str = field(default_factory=lambda: f"AK{secrets.token_hex(9).upper()}")
    secret_key: str = field(default_factory=lambda: secrets.token_hex(20), repr=False)

    def as_json(self) -> dict[str, object]:
        """The form that `weed -s3.config` reads."""
        credentials = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        return {"name": self.name, "credentials": credentials, "actions": list(self.actions)}
