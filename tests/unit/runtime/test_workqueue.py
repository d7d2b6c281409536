import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from engine.runtime.workqueue import WorkQueue


def taken(queue: WorkQueue[str], seconds: float = 0.05) -> list[str]:
    """Keys that are handed out within `seconds`, in their order."""
    found: list[str] = []

    def take() -> None:
        while (key := queue.get()) is not None:
            found.append(key)

    reader = threading.Thread(target=take)
    reader.start()
    time.sleep(seconds)
    queue.shut_down()
    reader.join(60)
    assert not reader.is_alive()
    return found


def test_keys_are_handed_out_in_the_order_they_came() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in "abc":
        queue.add(key)
    assert [queue.get(), queue.get(), queue.get()] == ["a", "b", "c"]


def test_a_reader_waits_for_the_first_key() -> None:
    queue: WorkQueue[str] = WorkQueue()
    timer = threading.Timer(0.02, queue.add, ["a"])
    timer.start()
    assert queue.get() == "a"
    timer.join()


def test_a_key_for_later_comes_later() -> None:
    queue: WorkQueue[str] = WorkQueue()
    began = time.monotonic()
    queue.add_after("a", 0.05)
    queue.add("b")
    assert queue.get() == "b"
    assert queue.get() == "a"
    assert time.monotonic() - began >= 0.05


def test_the_earliest_of_several_times_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    began = time.monotonic()
    queue.add_after("a", 60)
    queue.add_after("a", 0.02)
    queue.add_after("a", 30)
    assert queue.get() == "a"
    assert time.monotonic() - began < 10
    queue.done("a")
    assert taken(queue) == [], "the later times are forgotten"


def test_a_sooner_time_wakes_a_reader_that_waits_for_a_later_one() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 60)
    timer = threading.Timer(0.02, queue.add_after, ["soon", 0.01])
    timer.start()
    assert queue.get() == "soon"
    timer.join()


def test_a_key_whose_time_comes_while_it_is_worked_on_queue_latencys_for_its_end() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert queue.get() == "a"
    queue.add_after("a", 0)
    queue.add("b")
    assert queue.get() == "b"
    queue.done("a")
    assert queue.get() == "a"


def test_closing_wakes_every_reader_and_drops_what_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    found: list[str | None] = []
    readers = [threading.Thread(target=lambda: found.append(queue.get())) for _ in range(3)]
    for reader in readers:
        reader.start()
    queue.add_after("later", 60)
    queue.shut_down()
    for reader in readers:
        reader.join(60)
    assert found == [None, None, None]


def test_a_closed_queue_takes_nothing_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("before")
    queue.shut_down()
    queue.add("a")
    queue.add_after("b", 0)
    assert queue.get() is None


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "done"]), st.sampled_from("abc"))))
def test_no_order_of_calls_hands_a_key_out_twice_at_once(calls: list[tuple[str, str]]) -> None:
    queue: WorkQueue[str] = WorkQueue()
    working: set[str] = set()
    wanted: set[str] = set()
    for call, key in calls:
        if call == "add":
            queue.add(key)
            wanted.add(key)
        elif call == "done" and key in working:
            working.remove(key)
            queue.done(key)
        elif call == "take" and wanted - working:
            found = queue.get()
            assert found is not None
            assert found in wanted
            assert found not in working
            working.add(found)
            wanted.discard(found)
    for key in sorted(working):
        queue.done(key)
    left = {queue.get() for _ in wanted}
    assert left == wanted, "nothing that was asked for is lost"


def test_many_workers_never_share_a_key() -> None:
    queue: WorkQueue[int] = WorkQueue()
    busy: set[int] = set()
    shared: list[int] = []
    handled: list[int] = []
    lock = threading.Lock()

    def work() -> None:
        while (key := queue.get()) is not None:
            with lock:
                shared.extend([key] if key in busy else [])
                busy.add(key)
            time.sleep(0.001)
            with lock:
                busy.discard(key)
                handled.append(key)
            queue.done(key)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for turn in range(20):
        for key in range(10):
            queue.add(key) if turn % 2 else queue.add_after(key, 0.001)
    deadline = time.monotonic() + 60
    while len(set(handled)) < 10 and time.monotonic() < deadline:
        time.sleep(0.01)
    queue.shut_down()
    for worker in workers:
        worker.join(60)
    assert shared == []
    assert set(handled) == set(range(10))


def test_a_paused_queue_hands_nothing_out_until_it_is_resumed() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.pause(True)
    assert len(queue) == 1
    began = time.monotonic()
    threading.Timer(0.05, queue.pause, [False]).start()
    assert queue.get() == "a"
    assert time.monotonic() - began >= 0.04


def test_it_tells_how_long_a_key_was_ready_before_it_was_taken() -> None:
    waits: list[float] = []
    queue: WorkQueue[str] = WorkQueue(waits.append)
    queue.add("a")
    time.sleep(0.03)
    queue.get()
    assert 0.03 <= waits[0] < 30
    assert queue.adds == 1


def test_a_key_comes_in_time_though_the_reader_that_waited_for_it_is_busy() -> None:
    queue: WorkQueue[str] = WorkQueue()
    found: list[str | None] = []
    readers = [threading.Thread(target=lambda: found.append(queue.get())) for _ in range(2)]
    readers[0].start()
    time.sleep(0.02)
    queue.add_after("a", 0.1)
    queue.add_after("b", 0.2)
    readers[1].start()
    for reader in readers:
        reader.join(60)
    assert sorted(map(str, found)) == ["a", "b"]
