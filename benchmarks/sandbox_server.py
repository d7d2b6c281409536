"""A sandbox that tells over its standard streams what it was asked: `clear`, `tell`."""

import json
import sys

from engine.sandbox import Fault, Latency, Sandbox


def main() -> None:
    latency = float(sys.argv[2])
    with Sandbox() as sandbox:
        for resource in ("pods", "secrets", "configmaps") if latency else ():
            for verb in ("create", "update", "patch"):
                slow = Fault(Latency(latency), verb=verb, resource=resource, times=None)
                sandbox.faults.add(slow)
        print(sandbox.write_kubeconfig(sys.argv[1]), flush=True)
        for line in sys.stdin:
            if line == "clear\n":
                sandbox.requests.clear()
                print(flush=True)
            else:
                asked = [(one.verb, one.resource, one.user_agent) for one in sandbox.requests]
                print(json.dumps(asked), flush=True)


if __name__ == "__main__":
    main()
