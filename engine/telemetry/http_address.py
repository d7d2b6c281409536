"""Where to listen: `HOST:PORT`, `:PORT` for every interface, `PORT` for loopback."""

from dataclasses import dataclass

from engine.errors import UsageError

LOOPBACK = "127.0.0.1"
_HIGHEST = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    """A name or address; "" for every interface."""
    port: int
    """0 for any that is free."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where a client on this machine reaches it."""
        everywhere = self.host in ("", "0.0.0.0", "::")  # noqa: S104 - only compared
        return f"http://{Address(LOOPBACK if everywhere else self.host, self.port)}"


def parse_address(text: str) -> Address:
    """Errors: UsageError; port 0 is fine, it means any that is free."""
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host = LOOPBACK
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _wrong(text, "put an IPv6 address in brackets, as in [::1]:8080")
    if not (port.isascii() and port.isdigit() and int(port) <= _HIGHEST):
        raise _wrong(text, "give HOST:PORT, :PORT for every interface, or PORT for loopback")
    return Address(host, int(port))


def _wrong(text: str, hint: str) -> UsageError:
    return UsageError("this is no address to listen on", where=repr(text), hint=hint)
