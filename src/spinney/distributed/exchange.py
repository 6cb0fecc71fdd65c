"""All-reduces between threads of one process, or processes connected by TCP.

All workers call the same methods in the same order, each with an array of the same shape, and all
get the same result. Only integers are added, so the order of additions does not change the sum.
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

_OUT_OF_STEP = "workers are out of step: expected the same call with the same shape on every worker"
_LOST = "another worker was lost"
_TOO_LATE = "another worker did not respond in time"


class ExchangeError(RuntimeError):
    """Another worker was lost, or made a different call than this worker."""


class Exchange(metaclass=ABCMeta):
    """Connection of one worker to the others.

    Attributes
    ----------
    rank, size : int
        Index of this worker, and number of workers.
    n_exchanges, bytes_sent : int
        Number of exchanges so far, and number of bytes that this worker sent.
    """

    rank: int = 0
    size: int = 1
    n_exchanges: int = 0
    bytes_sent: int = 0

    @abstractmethod
    def add(self, values: Any) -> None:
        """Replace an int64 array by its sum over all workers, in place."""

    @abstractmethod
    def max(self, values: Any) -> None:
        """Replace a float64 array by its maximum over all workers, in place."""

    @abstractmethod
    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all workers, by rank."""

    @abstractmethod
    def abort(self) -> None:
        """Stop all exchanges, so that the other workers raise an error."""


class _ThreadGroup:
    """Threads that exchange values; each call waits until all threads have called it."""

    def __init__(self, size: int, timeout: float) -> None:
        self.size = size
        self._timeout = timeout
        self._change = threading.Condition()
        self._number = 0  # of the exchange in progress
        self._values: dict[int, Any] = {}
        self._last: list[Any] = []
        self._aborted = False

    def all_gather(self, rank: int, value: Any) -> list[Any]:
        """Contribute a value, and return the values of all threads, by rank."""
        with self._change:
            number = self._number
            self._values[rank] = value
            if len(self._values) == self.size:
                self._last = [self._values[k] for k in range(self.size)]
                self._values = {}
                self._number += 1
                self._change.notify_all()
                return self._last
            # `_last` stays valid: the next exchange cannot finish without this thread.
            in_time = self._change.wait_for(
                lambda: self._number > number or self._aborted, self._timeout
            )
            if self._number > number:
                return self._last
            self._aborted = True
            self._change.notify_all()
            raise ExchangeError(_LOST if in_time else _TOO_LATE)

    def abort(self) -> None:
        """Stop this exchange and all later ones."""
        with self._change:
            self._aborted = True
            self._change.notify_all()


class ThreadExchange(Exchange):
    """Workers that are threads of one process.

    Parameters
    ----------
    group : _ThreadGroup
        State that the workers share; `of` creates it.
    rank : int
        Index of this worker.

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

    def __init__(self, group: _ThreadGroup, rank: int) -> None:
        self._group = group
        self.rank = rank
        self.size = group.size

    @classmethod
    def of(cls, size: int, timeout: float = 60.0) -> list[ThreadExchange]:
        """Return connected workers; a worker waits at most `timeout` seconds."""
        group = _ThreadGroup(size, timeout)
        return [cls(group, rank) for rank in range(size)]

    def add(self, values: Any) -> None:
        """Replace an int64 array by its sum over all workers, in place."""
        self._reduce("add", values)

    def max(self, values: Any) -> None:
        """Replace a float64 array by its maximum over all workers, in place."""
        self._reduce("max", values)

    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all workers, by rank."""
        self.bytes_sent += len(message)
        return [other for _, other in self._all_gather("gather", message)]

    def abort(self) -> None:
        """Stop all exchanges, so that the other workers raise an error."""
        self._group.abort()

    def _reduce(self, kind: str, values: Any) -> None:
        gathered = self._all_gather(kind, values.copy())
        self.bytes_sent += values.nbytes
        if any(other != kind or array.shape != values.shape for other, array in gathered):
            self.abort()
            raise ExchangeError(_OUT_OF_STEP)
        stacked = np.stack([array for _, array in gathered])
        values[...] = stacked.sum(axis=0) if kind == "add" else stacked.max(axis=0)

    def _all_gather(self, kind: str, value: Any) -> list[Any]:
        self.n_exchanges += 1
        return self._group.all_gather(self.rank, (kind, value))


_HEADER = struct.Struct("<cQQ")  # kind, number of the exchange, bytes that follow
_SMALL = 16_384  # bytes; arrays up to this size are reduced by recursive doubling


class SocketExchange(Exchange):
    """Workers that are processes, on one machine or several, connected by TCP.

    Workers authenticate each other with the token (HMAC); the data are not encrypted. An all-reduce
    of a large array splits it into blocks: each worker sends about twice the size of the array, for
    any number of workers.

    Parameters
    ----------
    listener : socket
        The socket from `listen`; it is closed when all workers are connected.
    rank : int
        Index of this worker.
    addresses : list of (str, int)
        Host and port of each worker, by rank.
    token : bytes
        A secret of at least 16 bytes, the same for all workers.
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
        # Only the first workers, up to a power of two, take part in recursive doubling and halving.
        # Each of the others is attached to one of them, its proxy.
        self._n_proxies = 1 << (self.size.bit_length() - 1)
        partners = self._partners(rank)
        until = time.monotonic() + min(timeout, 60.0)
        try:
            for other in sorted(p for p in partners if p < rank):
                self._connect(other, addresses[other], until)
            waiting = {p for p in partners if p > rank}
            while waiting:
                waiting.discard(self._accept(listener, waiting, until))
        except (OSError, EOFError) as error:
            self.abort()
            raise ExchangeError(f"could not connect to the other workers: {error}") from error
        finally:
            listener.close()

    @staticmethod
    def listen(host: str = "127.0.0.1") -> socket.socket:
        """Return a socket that listens for other workers; `getsockname` has its address."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((host, 0))
        listener.listen(64)
        return listener

    def add(self, values: Any) -> None:
        """Replace an int64 array by its sum over all workers, in place."""
        self._reduce(b"+", values, np.add)

    def max(self, values: Any) -> None:
        """Replace a float64 array by its maximum over all workers, in place."""
        self._reduce(b">", values, np.maximum)

    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all workers, by rank."""
        self.n_exchanges += 1
        known = {self.rank: message}
        with _AbortOnError(self):
            if self.rank >= self._n_proxies:
                proxy = self.rank - self._n_proxies
                self._send_messages(proxy, known)
                return _by_rank(self._receive_messages(proxy))
            attached = self.rank + self._n_proxies
            if attached < self.size:
                known |= self._receive_messages(attached)
            step = 1
            while step < self._n_proxies:
                known |= self._swap_messages(self.rank ^ step, known)
                step *= 2
            if attached < self.size:
                self._send_messages(attached, known)
        return _by_rank(known)

    def abort(self) -> None:
        """Close all connections, so that the other workers raise an error."""
        for connection in self._sockets.values():
            connection.close()
        self._sockets.clear()

    close = abort

    # ------------------------------------------------------------------ connection

    def _partners(self, rank: int) -> set[int]:
        """Return the workers that a worker is connected to."""
        if rank >= self._n_proxies:
            return {rank - self._n_proxies}
        partners = {rank ^ (1 << k) for k in range(self._n_proxies.bit_length() - 1)}
        attached = rank + self._n_proxies
        return partners | ({attached} if attached < self.size else set())

    def _proof(self, *values: bytes) -> bytes:
        return hmac.new(self._token, b"".join(values), "sha256").digest()

    def _connect(self, other: int, address: tuple[str, int], until: float) -> None:
        left = max(0.1, until - time.monotonic())
        connection = socket.create_connection((address[0], address[1]), timeout=left)
        self._prepare(connection)
        challenge = _read_exactly(connection, 32)
        own_challenge = os.urandom(32)
        rank = struct.pack("<Q", self.rank)
        connection.sendall(rank + own_challenge + self._proof(b"caller", rank, challenge))
        proof = _read_exactly(connection, 32)
        if not hmac.compare_digest(proof, self._proof(b"called", own_challenge)):
            connection.close()
            raise OSError(f"worker {other} has another token")
        connection.setblocking(False)
        self._sockets[other] = connection

    def _accept(self, listener: socket.socket, waiting: set[int], until: float) -> int:
        """Accept a connection and return its rank; -1 if it is not from a waiting worker."""
        listener.settimeout(max(0.1, until - time.monotonic()))
        connection = listener.accept()[0]
        try:
            self._prepare(connection)
            connection.settimeout(5.0)
            challenge = os.urandom(32)
            connection.sendall(challenge)
            received = _read_exactly(connection, 72)
            packed_rank, their_challenge, proof = received[:8], received[8:40], received[40:]
            rank = int(struct.unpack("<Q", packed_rank)[0])
            right = hmac.compare_digest(proof, self._proof(b"caller", packed_rank, challenge))
            if not right or rank not in waiting:
                raise EOFError
            connection.sendall(self._proof(b"called", their_challenge))
        except (OSError, EOFError):
            connection.close()
            return -1
        connection.setblocking(False)
        self._sockets[rank] = connection
        return rank

    @staticmethod
    def _prepare(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Keepalive detects a lost machine within about ten seconds.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    # ------------------------------------------------------------------ all-reduce

    def _reduce(self, kind: bytes, values: Any, combine: Any) -> None:
        self.n_exchanges += 1
        with _AbortOnError(self):
            if self.rank >= self._n_proxies:
                proxy = self.rank - self._n_proxies
                self._swap(kind, proxy, values, values[:0])
                self._swap(kind, proxy, values[:0], values)
                return
            attached = self.rank + self._n_proxies
            if attached < self.size:
                theirs = np.empty_like(values)
                self._swap(kind, attached, values[:0], theirs)
                combine(values, theirs, out=values)
            # Two workers send the same number of bytes by both algorithms, and doubling needs only
            # one exchange.
            if values.nbytes <= _SMALL or self._n_proxies == 2:
                self._double(kind, values, combine)
            else:
                self._halve(kind, values, combine)
            if attached < self.size:
                self._swap(kind, attached, values, values[:0])

    def _double(self, kind: bytes, values: Any, combine: Any) -> None:
        """Reduce by recursive doubling: exchange the whole array with log2(n) partners."""
        theirs = np.empty_like(values)
        step = 1
        while step < self._n_proxies:
            self._swap(kind, self.rank ^ step, values, theirs)
            combine(values, theirs, out=values)
            step *= 2

    def _halve(self, kind: bytes, values: Any, combine: Any) -> None:
        """Reduce by recursive halving: reduce-scatter, then all-gather."""
        blocks = []
        begin, end, step = 0, len(values), self._n_proxies // 2
        while step:
            middle = begin + (end - begin) // 2
            low, high = (begin, middle), (middle, end)
            mine, other = (high, low) if self.rank & step else (low, high)
            theirs = np.empty_like(values[slice(*mine)])
            self._swap(kind, self.rank ^ step, values[slice(*other)], theirs)
            combine(values[slice(*mine)], theirs, out=values[slice(*mine)])
            blocks.append((step, mine, other))
            begin, end = mine
            step //= 2
        for step, mine, other in reversed(blocks):
            self._swap(kind, self.rank ^ step, values[slice(*mine)], values[slice(*other)])

    # ------------------------------------------------------------------ transfer

    def _swap(self, kind: bytes, other: int, out: Any, into: Any) -> None:
        """Send an array and receive one at the same time; either may be empty."""
        header = _HEADER.pack(kind, self.n_exchanges, out.nbytes)
        received = bytearray(_HEADER.size)
        self._transfer(
            other, [header, _bytes_of(out)], [memoryview(received), _bytes_of(into)], kind
        )

    def _transfer(self, other: int, out: list[Any], into: list[Any], kind: bytes) -> None:
        """Write the buffers `out` to a worker while reading the buffers `into`.

        If both workers wrote first, both could block. The first buffer to read is a header, which
        must announce the expected number of bytes.
        """
        connection = self._sockets.get(other)
        if connection is None:
            raise EOFError
        unsent = [memoryview(buffer) for buffer in out if len(buffer)]
        unread = [buffer for buffer in into if len(buffer)]
        self.bytes_sent += sum(len(buffer) for buffer in unsent)
        checked = False
        poll = select.poll()
        until = time.monotonic() + self._timeout
        while unsent or unread:
            events = (select.POLLIN if unread else 0) | (select.POLLOUT if unsent else 0)
            poll.register(connection, events)
            ready = poll.poll(max(0.0, until - time.monotonic()) * 1000)
            if not ready:
                raise TimeoutError
            if unsent and ready[0][1] & select.POLLOUT:
                sent = connection.send(unsent[0])
                unsent[0] = unsent[0][sent:]
                if not len(unsent[0]):
                    unsent.pop(0)
            # Other events than POLLIN mean that the connection was closed; reading confirms it.
            if unread and ready[0][1] & ~select.POLLOUT:
                n_bytes = connection.recv_into(unread[0])
                if n_bytes == 0:
                    raise EOFError
                unread[0] = unread[0][n_bytes:]
                if not len(unread[0]):
                    unread.pop(0)
                    if not checked:
                        self._check_header(bytes(into[0]), kind, sum(len(b) for b in into[1:]))
                        checked = True

    def _check_header(self, header: bytes, kind: bytes, n_bytes: int) -> None:
        if _HEADER.unpack(header) != (kind, self.n_exchanges, n_bytes):
            raise ExchangeError(_OUT_OF_STEP)

    def _swap_messages(self, other: int, known: dict[int, bytes]) -> dict[int, bytes]:
        mine = np.frombuffer(_pack(known), dtype=np.uint8)
        sizes = np.empty(1, dtype=np.int64)
        self._swap(b"n", other, np.array([len(mine)]), sizes)
        theirs = np.empty(int(sizes[0]), dtype=np.uint8)
        self._swap(b"g", other, mine, theirs)
        return _unpack(theirs)

    def _send_messages(self, other: int, known: dict[int, bytes]) -> None:
        mine = np.frombuffer(_pack(known), dtype=np.uint8)
        nothing = np.empty(0, dtype=np.uint8)
        self._swap(b"n", other, np.array([len(mine)]), nothing)
        self._swap(b"g", other, mine, nothing)

    def _receive_messages(self, other: int) -> dict[int, bytes]:
        sizes = np.empty(1, dtype=np.int64)
        nothing = np.empty(0, dtype=np.uint8)
        self._swap(b"n", other, nothing, sizes)
        theirs = np.empty(int(sizes[0]), dtype=np.uint8)
        self._swap(b"g", other, nothing, theirs)
        return _unpack(theirs)


class _AbortOnError:
    """Close the connections if an exchange fails, and raise errors as `ExchangeError`."""

    def __init__(self, exchange: SocketExchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            return
        self._exchange.abort()
        if isinstance(error, TimeoutError):
            raise ExchangeError(_TOO_LATE) from error
        if isinstance(error, EOFError | OSError):
            raise ExchangeError(_LOST) from error


def _bytes_of(values: Any) -> memoryview:
    return memoryview(values.reshape(-1).view(np.uint8))


def _read_exactly(connection: socket.socket, n: int) -> bytes:
    received = b""
    while len(received) < n:
        more = connection.recv(n - len(received))
        if not more:
            raise EOFError("the connection was closed")
        received += more
    return received


def _pack(known: dict[int, bytes]) -> bytes:
    return b"".join(
        struct.pack("<QQ", rank, len(message)) + message for rank, message in known.items()
    )


def _unpack(packed: Any) -> dict[int, Any]:
    """Return the messages by rank, as views of the received bytes."""
    known, start = {}, 0
    while start < len(packed):
        rank, n = struct.unpack_from("<QQ", packed, start)
        known[rank] = memoryview(packed)[start + 16 : start + 16 + n]
        start += 16 + n
    return known


def _by_rank(known: dict[int, bytes]) -> list[bytes]:
    return [known[rank] for rank in sorted(known)]
