"""The most that one run may delete."""

import threading


class Brake:
    """Hands out permissions to delete; what was not deleted after all is given back."""

    def __init__(self, most: int | None) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            if self._left is None:
                return True
            if self._left <= 0:
                return False
            self._left -= 1
            return True

    def give_back(self) -> None:
        with self._lock:
            if self._left is not None:
                self._left += 1
