"""The first records of a process are read by several threads at once."""

import subprocess
import sys

PROGRAM = """
import sys, threading
from engine.lifecycle.record import Record
from engine.lifecycle.record_codec import decode_record
from engine.refs import JobKey

sys.setswitchinterval(1e-7)
text = sys.stdin.read()
together = threading.Barrier(8)

def read():
    together.wait()
    decode_record(JobKey("ci", "a"), text, "1")

threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
RECORD = (
    '{"source":"default","specHash":"' + "0" * 64 + '","state":"Queued",'
    '"queuedAt":"2026-01-01T12:00:00Z"}'
)


def test_a_process_survives_threads_that_read_its_first_records_at_once() -> None:
    """Without care of ours most such processes die of a signal, in the library that converts."""
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            input=RECORD,
            text=True,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
