"""How a registry can be out of reach, in the words that the container runtime passes on."""

OUTAGES = {
    "refused": "dial tcp 192.0.2.10:443: connect: connection refused",
    "timeout": "dial tcp 192.0.2.10:443: i/o timeout",
    "no-such-host": "dial tcp: lookup {host} on 10.96.0.10:53: no such host",
    "tls": "net/http: TLS handshake timeout",
    "reset": "read tcp 10.0.0.4:51234->192.0.2.10:443: read: connection reset by peer",
    "503": "",
}
