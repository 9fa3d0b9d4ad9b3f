#!/usr/bin/env python3
"""An HTTP server on a port whose connections always use Cubic, with an endless response."""

import socket
import sys
import threading


def send(connection):
    # The accepting process sets a connection's congestion control last.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    block = bytes(65536)
    try:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(block)
    except OSError:
        connection.close()


listener = socket.create_server(("0.0.0.0", int(sys.argv[1])))
while True:
    threading.Thread(target=send, args=(listener.accept()[0],), daemon=True).start()
