"""The two hosts of `causes.py`: a server whose answers are held back on purpose, and a client.

    hosts.py server
    hosts.py client STEPS     # a JSON list of steps; groups of them run at the same time

A step is an object: `bytes` to fetch, and optionally `connection` (a name: the connection is
kept), `after_s` (a pause before it), `buffer_bytes` (SO_RCVBUF), `read_bps` (rate at which the
client reads), `upload_s` (sends for this long in place of a download), and for the server `rate_bps` with
`block_bytes`, `pacing_bps` (SO_MAX_PACING_RATE), `think_ms`, `control` (congestion control).
"""

import json
import os
import socket
import struct
import sys
import threading
import time

PORT = 8000
SO_MAX_PACING_RATE = 47
BLOCK_BYTES = 64 * 1024
UPLOAD_TURN_S = 0.2


def exactly(stream, n_bytes):
    """That many bytes, or fewer where the peer has closed."""
    parts, missing = [], n_bytes
    while missing:
        part = stream.recv(missing)
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def message(stream):
    length = exactly(stream, 4)
    return json.loads(exactly(stream, struct.unpack("!I", length)[0])) if len(length) == 4 else None


def send_message(stream, value):
    text = json.dumps(value).encode()
    # A request of a browser is larger than an acknowledgement.
    text += b" " * max(0, 200 - len(text))
    stream.sendall(struct.pack("!I", len(text)) + text)


def answer(stream):
    with stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while asked := message(stream):
            if "upload_s" in asked:
                while stream.recv(BLOCK_BYTES):
                    pass
                return
            if "control" in asked:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, asked["control"].encode())
            if "pacing_bps" in asked:
                stream.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, int(asked["pacing_bps"] / 8))
            time.sleep(asked.get("think_ms", 0) / 1e3)
            write(stream, asked["bytes"], asked.get("rate_bps"), asked.get("block_bytes", BLOCK_BYTES))


def write(stream, n_bytes, rate_bps, block_bytes):
    begun, sent = time.monotonic(), 0
    block = bytes(block_bytes)
    while sent < n_bytes:
        if rate_bps:
            time.sleep(max(0.0, begun + sent * 8 / rate_bps - time.monotonic()))
        part = block[: n_bytes - sent]
        stream.sendall(part)
        sent += len(part)


def server():
    listening = socket.create_server(("", PORT), backlog=64)
    while True:
        stream, _ = listening.accept()
        threading.Thread(target=answer, args=(stream,), daemon=True).start()


def connect(step):
    stream = socket.socket()
    if "buffer_bytes" in step:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, step["buffer_bytes"])
    stream.connect((os.environ["AIRMILE_SERVER"], PORT))
    return stream


def fetch(stream, step):
    send_message(stream, step)
    begun, got = time.monotonic(), 0
    rate_bps = step.get("read_bps")
    while got < step["bytes"]:
        part = stream.recv(min(BLOCK_BYTES, step["bytes"] - got))
        if not part:
            sys.exit(f"the server closed after {got} of {step['bytes']} bytes")
        got += len(part)
        if rate_bps:
            time.sleep(max(0.0, begun + got * 8 / rate_bps - time.monotonic()))


def upload(stream, step):
    send_message(stream, step)
    end, block = time.monotonic() + step["upload_s"], bytes(BLOCK_BYTES)
    stream.settimeout(UPLOAD_TURN_S)
    while time.monotonic() < end:
        try:
            stream.send(block)
        except TimeoutError:
            pass


def client(group):
    kept = {}
    for step in group:
        time.sleep(step.get("after_s", 0))
        name = step.get("connection")
        stream = kept.get(name) or connect(step)
        upload(stream, step) if "upload_s" in step else fetch(stream, step)
        if name is None:
            stream.close()
        else:
            kept[name] = stream


def main():
    if sys.argv[1] == "server":
        return server()
    threads = [threading.Thread(target=client, args=(group,)) for group in json.loads(sys.argv[2])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
