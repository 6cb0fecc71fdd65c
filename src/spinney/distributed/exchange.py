"""Workers that add up numbers: threads of one process, or processes that talk over TCP.

All workers call the same methods in the same order, each with an array of the same shape, and all
get the same result. Only integers are added, so that it does not matter who adds what first.
"""

from __future__ import annotations

import hmac
import os
import select
import socket
import struct
import threading
import time
from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np

__all__ = ["Exchange", "ExchangeError", "SocketExchange", "ThreadExchange"]


class ExchangeError(RuntimeError):
    """Another worker was lost, or does something else than this one."""


class Exchange(metaclass=ABCMeta):
    """What a worker knows of the others.

    Attributes
    ----------
    rank, size : int
        Which worker this is, and how many there are.
    n_exchanges, bytes_sent : int
        How often numbers went round so far, and how many bytes this worker sent.
    """

    rank: int = 0
    size: int = 1
    n_exchanges: int = 0
    bytes_sent: int = 0

    @abstractmethod
    def add(self, values: Any) -> None:
        """Make an array of int64 the sum over all workers, in place."""

    @abstractmethod
    def max(self, values: Any) -> None:
        """Make an array of float64 the largest over all workers, in place."""

    @abstractmethod
    def gather(self, message: bytes) -> list[bytes]:
        """Give what all workers have to say, by rank."""

    @abstractmethod
    def abort(self) -> None:
        """Let the other workers know that this one does not go on."""


class _Meeting:
    """Where threads meet: each brings something, and none goes on before all have brought it."""

    def __init__(self, size: int, timeout: float) -> None:
        self.size = size
        self._timeout = timeout
        self._change = threading.Condition()
        self._number = 0  # of the meeting under way
        self._brought: dict[int, Any] = {}
        self._last: list[Any] = []
        self._aborted = False

    def meet(self, rank: int, thing: Any) -> list[Any]:
        """Bring something, and get what all have brought, by rank."""
        with self._change:
            number = self._number
            self._brought[rank] = thing
            if len(self._brought) == self.size:
                self._last = [self._brought[k] for k in range(self.size)]
                self._brought = {}
                self._number += 1
                self._change.notify_all()
                return self._last
            # Nobody can end the next meeting before this worker has left this one.
            over = self._change.wait_for(
                lambda: self._number > number or self._aborted, self._timeout
            )
            if self._number > number:
                return self._last
            self._aborted = True
            self._change.notify_all()
            raise ExchangeError(
                "another worker was lost" if over else "another worker took too long"
            )

    def abort(self) -> None:
        """End the meeting under way, and all to come."""
        with self._change:
            self._aborted = True
            self._change.notify_all()


class ThreadExchange(Exchange):
    """Workers that are threads of one process.

    Parameters
    ----------
    meeting : _Meeting
        What the workers share.
    rank : int
        Which worker this is.

    Examples
    --------
    >>> import threading
    >>> import numpy as np
    >>> from spinney.distributed.exchange import ThreadExchange
    >>> arrays = [np.array([1]), np.array([2])]
    >>> workers = ThreadExchange.of(2)
    >>> threads = [threading.Thread(target=w.add, args=(a,)) for w, a in zip(workers, arrays)]
    >>> for thread in threads:
    ...     thread.start()
    >>> for thread in threads:
    ...     thread.join()
    >>> arrays
    [array([3]), array([3])]
    """

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self._meeting = meeting
        self.rank = rank
        self.size = meeting.size

    @classmethod
    def of(cls, size: int, timeout: float = 60.0) -> list[ThreadExchange]:
        """Make so many workers, which wait for each other for so many seconds at most."""
        meeting = _Meeting(size, timeout)
        return [cls(meeting, rank) for rank in range(size)]

    def add(self, values: Any) -> None:
        """Make an array of int64 the sum over all workers, in place."""
        self._reduce("add", values)

    def max(self, values: Any) -> None:
        """Make an array of float64 the largest over all workers, in place."""
        self._reduce("max", values)

    def gather(self, message: bytes) -> list[bytes]:
        """Give what all workers have to say, by rank."""
        self.bytes_sent += len(message)
        return [told for _, told in self._meet("gather", message)]

    def abort(self) -> None:
        """Let the other workers know that this one does not go on."""
        self._meeting.abort()

    def _reduce(self, kind: str, values: Any) -> None:
        brought = self._meet(kind, values.copy())
        self.bytes_sent += values.nbytes
        if any(other != kind or array.shape != values.shape for other, array in brought):
            self.abort()
            raise ExchangeError("workers are out of step: they bring different things")
        together = np.stack([array for _, array in brought])
        values[...] = together.sum(axis=0) if kind == "add" else together.max(axis=0)

    def _meet(self, kind: str, thing: Any) -> list[Any]:
        self.n_exchanges += 1
        return self._meeting.meet(self.rank, (kind, thing))


_HEADER = struct.Struct("<cQQ")  # kind, number of the exchange, bytes that follow
_SMALL = 16_384  # bytes, up to which arrays travel whole


class SocketExchange(Exchange):
    """Workers that are processes, on one machine or several, connected by TCP.

    Partners prove to each other that they know the token; what travels after that is not
    encrypted. Large arrays are added in pieces: each worker sends about twice the size of the
    array, however many workers there are.

    Parameters
    ----------
    listener : socket
        From `listen`.
    rank : int
        Which worker this is.
    addresses : list of (str, int)
        Where each worker listens, by rank.
    token : bytes
        A secret that all workers share.
    timeout : float, default=600.0
        Seconds to wait for another worker that is still connected.
    """

    def __init__(
        self,
        listener: socket.socket,
        rank: int,
        addresses: list[tuple[str, int]],
        token: bytes,
        timeout: float = 600.0,
    ) -> None:
        if not 0 <= rank < len(addresses):
            raise ValueError(f"rank: expected 0 to {len(addresses) - 1}, got {rank}")
        if len(token) < 16:
            raise ValueError(f"token: expected at least 16 bytes, got {len(token)}")
        self.rank, self.size = rank, len(addresses)
        self._timeout = timeout
        self._token = token
        self._sockets: dict[int, socket.socket] = {}
        self._power = 1 << (self.size.bit_length() - 1)  # of two; the workers beyond lean on others
        partners = self._partners(rank)
        until = time.monotonic() + min(timeout, 60.0)
        try:
            for other in sorted(p for p in partners if p < rank):
                self._call(other, addresses[other], until)
            waiting = {p for p in partners if p > rank}
            while waiting:
                waiting.discard(self._answer(listener, waiting, until))
        except (OSError, EOFError) as error:
            self.abort()
            raise ExchangeError(f"could not connect to the other workers: {error}") from error
        finally:
            listener.close()

    @staticmethod
    def listen(host: str = "127.0.0.1") -> socket.socket:
        """Open a place where other workers can reach this one; `getsockname` has its address."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((host, 0))
        listener.listen(64)
        return listener

    def add(self, values: Any) -> None:
        """Make an array of int64 the sum over all workers, in place."""
        self._reduce(b"+", values, np.add)

    def max(self, values: Any) -> None:
        """Make an array of float64 the largest over all workers, in place."""
        self._reduce(b">", values, np.maximum)

    def gather(self, message: bytes) -> list[bytes]:
        """Give what all workers have to say, by rank."""
        self.n_exchanges += 1
        known = {self.rank: message}
        with _told(self):
            if self.rank >= self._power:
                helper = self.rank - self._power
                self._send_parts(helper, known)
                return _by_rank(self._receive_parts(helper))
            lean = self.rank + self._power
            if lean < self.size:
                known |= self._receive_parts(lean)
            step = 1
            while step < self._power:
                known |= self._swap_parts(self.rank ^ step, known)
                step *= 2
            if lean < self.size:
                self._send_parts(lean, known)
        return _by_rank(known)

    def abort(self) -> None:
        """Close all connections, so that the other workers know that this one does not go on."""
        for connection in self._sockets.values():
            connection.close()
        self._sockets.clear()

    close = abort

    # ------------------------------------------------------------------ getting connected

    def _partners(self, rank: int) -> set[int]:
        if rank >= self._power:
            return {rank - self._power}
        partners = {rank ^ (1 << k) for k in range(self._power.bit_length() - 1)}
        return partners | ({rank + self._power} if rank + self._power < self.size else set())

    def _proof(self, *parts: bytes) -> bytes:
        return hmac.new(self._token, b"".join(parts), "sha256").digest()

    def _call(self, other: int, address: tuple[str, int], until: float) -> None:
        left = max(0.1, until - time.monotonic())
        connection = socket.create_connection((address[0], address[1]), timeout=left)
        self._prepare(connection)
        challenge = _read_exactly(connection, 32)
        mine = os.urandom(32)
        name = struct.pack("<Q", self.rank)
        connection.sendall(name + mine + self._proof(b"caller", name, challenge))
        if not hmac.compare_digest(_read_exactly(connection, 32), self._proof(b"called", mine)):
            connection.close()
            raise OSError(f"worker {other} does not know the token")
        connection.setblocking(False)
        self._sockets[other] = connection

    def _answer(self, listener: socket.socket, waiting: set[int], until: float) -> int:
        """Take a call; whoever cannot prove to be one of those waited for is turned away."""
        listener.settimeout(max(0.1, until - time.monotonic()))
        connection = listener.accept()[0]
        try:
            self._prepare(connection)
            connection.settimeout(5.0)
            challenge = os.urandom(32)
            connection.sendall(challenge)
            told = _read_exactly(connection, 72)
            name, theirs, proof = told[:8], told[8:40], told[40:]
            rank = int(struct.unpack("<Q", name)[0])
            right = hmac.compare_digest(proof, self._proof(b"caller", name, challenge))
            if not right or rank not in waiting:
                raise EOFError
            connection.sendall(self._proof(b"called", theirs))
        except (OSError, EOFError):
            connection.close()
            return -1
        connection.setblocking(False)
        self._sockets[rank] = connection
        return rank

    @staticmethod
    def _prepare(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A machine that vanished is noticed within some ten seconds.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    # ------------------------------------------------------------------ adding up

    def _reduce(self, kind: bytes, values: Any, join: Any) -> None:
        self.n_exchanges += 1
        with _told(self):
            if self.rank >= self._power:
                helper = self.rank - self._power
                self._swap(kind, helper, values, values[:0])
                self._swap(kind, helper, values[:0], values)
                return
            lean = self.rank + self._power
            if lean < self.size:
                theirs = np.empty_like(values)
                self._swap(kind, lean, values[:0], theirs)
                join(values, theirs, out=values)
            # Of two workers each sends as much either way, and waits once instead of twice.
            if values.nbytes <= _SMALL or self._power == 2:
                self._double(kind, values, join)
            else:
                self._halve(kind, values, join)
            if lean < self.size:
                self._swap(kind, lean, values, values[:0])

    def _double(self, kind: bytes, values: Any, join: Any) -> None:
        """Swap everything with partners that are farther and farther away."""
        theirs = np.empty_like(values)
        step = 1
        while step < self._power:
            self._swap(kind, self.rank ^ step, values, theirs)
            join(values, theirs, out=values)
            step *= 2

    def _halve(self, kind: bytes, values: Any, join: Any) -> None:
        """Swap halves of what is left until each worker has a piece of the sum, then the pieces."""
        pieces = []
        begin, end, step = 0, len(values), self._power // 2
        while step:
            middle = begin + (end - begin) // 2
            low, high = (begin, middle), (middle, end)
            mine, other = (high, low) if self.rank & step else (low, high)
            theirs = np.empty_like(values[slice(*mine)])
            self._swap(kind, self.rank ^ step, values[slice(*other)], theirs)
            join(values[slice(*mine)], theirs, out=values[slice(*mine)])
            pieces.append((step, mine, other))
            begin, end = mine
            step //= 2
        for step, mine, other in reversed(pieces):
            self._swap(kind, self.rank ^ step, values[slice(*mine)], values[slice(*other)])

    # ------------------------------------------------------------------ sending

    def _swap(self, kind: bytes, other: int, out: Any, into: Any) -> None:
        """Send an array and receive one at the same time; either may be empty."""
        header = _HEADER.pack(kind, self.n_exchanges, out.nbytes)
        answer = bytearray(_HEADER.size)
        self._move(other, [header, _bytes_of(out)], [memoryview(answer), _bytes_of(into)], kind)

    def _move(self, other: int, out: list[Any], into: list[Any], kind: bytes) -> None:
        """Write and read pieces side by side: two that both write first would wait for ever.

        The first piece to read is a header; it must announce what is expected.
        """
        connection = self._sockets.get(other)
        if connection is None:
            raise EOFError
        waiting = [memoryview(piece) for piece in out if len(piece)]
        wanted = [piece for piece in into if len(piece)]
        self.bytes_sent += sum(len(piece) for piece in waiting)
        checked = False
        poll = select.poll()
        until = time.monotonic() + self._timeout
        while waiting or wanted:
            events = (select.POLLIN if wanted else 0) | (select.POLLOUT if waiting else 0)
            poll.register(connection, events)
            ready = poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ready:
                raise TimeoutError
            if waiting and ready[0][1] & select.POLLOUT:
                sent = connection.send(waiting[0])
                waiting[0] = waiting[0][sent:]
                if not len(waiting[0]):
                    waiting.pop(0)
            if wanted and ready[0][1] & ~select.POLLOUT:  # or it was closed, which reading tells
                got = connection.recv_into(wanted[0])
                if got == 0:
                    raise EOFError
                wanted[0] = wanted[0][got:]
                if not len(wanted[0]):
                    wanted.pop(0)
                    if not checked:
                        self._check(bytes(into[0]), kind, sum(len(p) for p in into[1:]))
                        checked = True

    def _check(self, header: bytes, kind: bytes, n_bytes: int) -> None:
        if _HEADER.unpack(header) != (kind, self.n_exchanges, n_bytes):
            raise ExchangeError("workers are out of step: they bring different things")

    def _swap_parts(self, other: int, known: dict[int, bytes]) -> dict[int, bytes]:
        mine = np.frombuffer(_pack(known), dtype=np.uint8)
        sizes = np.empty(1, dtype=np.int64)
        self._swap(b"n", other, np.array([len(mine)]), sizes)
        theirs = np.empty(int(sizes[0]), dtype=np.uint8)
        self._swap(b"g", other, mine, theirs)
        return _unpack(theirs)

    def _send_parts(self, other: int, known: dict[int, bytes]) -> None:
        mine = np.frombuffer(_pack(known), dtype=np.uint8)
        nothing = np.empty(0, dtype=np.uint8)
        self._swap(b"n", other, np.array([len(mine)]), nothing)
        self._swap(b"g", other, mine, nothing)

    def _receive_parts(self, other: int) -> dict[int, bytes]:
        sizes = np.empty(1, dtype=np.int64)
        nothing = np.empty(0, dtype=np.uint8)
        self._swap(b"n", other, nothing, sizes)
        theirs = np.empty(int(sizes[0]), dtype=np.uint8)
        self._swap(b"g", other, nothing, theirs)
        return _unpack(theirs)


class _told:
    """Whoever fails lets the others know, and says what happened."""

    def __init__(self, exchange: SocketExchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            return
        self._exchange.abort()
        if isinstance(error, TimeoutError):
            raise ExchangeError("another worker took too long") from error
        if isinstance(error, EOFError | OSError):
            raise ExchangeError("another worker was lost") from error


def _bytes_of(values: Any) -> memoryview:
    return memoryview(values.reshape(-1).view(np.uint8))


def _read_exactly(connection: socket.socket, n: int) -> bytes:
    parts = b""
    while len(parts) < n:
        more = connection.recv(n - len(parts))
        if not more:
            raise EOFError("the connection was closed")
        parts += more
    return parts


def _pack(known: dict[int, bytes]) -> bytes:
    return b"".join(
        struct.pack("<QQ", rank, len(message)) + message for rank, message in known.items()
    )


def _unpack(packed: Any) -> dict[int, Any]:
    """Give the messages, as views of what came."""
    known, at = {}, 0
    while at < len(packed):
        rank, n = struct.unpack_from("<QQ", packed, at)
        known[rank] = memoryview(packed)[at + 16 : at + 16 + n]
        at += 16 + n
    return known


def _by_rank(known: dict[int, bytes]) -> list[bytes]:
    return [known[rank] for rank in sorted(known)]
