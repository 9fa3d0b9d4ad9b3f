#!/usr/bin/env python3
"""A misreporting client of `airmile claw attach` (an independent implementation of
docs/claw-feedback.md).

    misreporting_client.py ADDRESS PORT KEYFILE SECONDS

A hundred reports a second, each sent three times: a window of 4 GB, an empty cell, and one
more lost packet of the radio in each report. Every tenth reports a full cell, every
fiftieth repeats old sequence numbers.
"""

import hashlib
import hmac
import os
import socket
import struct
import sys
import time


def main():
    address, port, key_file, seconds = sys.argv[1:5]
    key = bytes.fromhex(open(key_file).read().strip())
    seal = lambda body: body + hmac.digest(key, body, hashlib.sha256)[:16]
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.connect((address, int(port)))
    line.settimeout(1)
    token, old = None, []
    ends, number, used = time.monotonic() + float(seconds), 0, 0
    while time.monotonic() < ends:
        if token is None:
            hello = struct.pack(">Q", 0) + os.urandom(8)
            line.send(seal(b"CW\x01\x01" + hello + bytes(16)))
            try:
                answer = line.recv(2000)
            except OSError:
                continue
            if answer[3] == 2:
                hello, token = answer[4:20], answer[20:36]
            line.settimeout(0)
            continue
        number += 1
        load = 250 if number % 10 == 0 else 0
        report = struct.pack(">BBBQIIII", 1, 0, load, number, number * 10, 0xFFFFFFFF, number, 0)
        datagram = seal(b"CW\x01\x03" + hello + token + report)
        old = (old + [datagram])[-500:]
        for each in [datagram] * 3 + (old[:100] if number % 50 == 0 else []):
            try:
                line.send(each)
            except OSError:
                pass
        try:
            while answer := line.recv(2000):
                used += answer[3] == 4 and answer[28] == 0
        except OSError:
            pass
        time.sleep(0.01)
    print(f"{number} lies, {used} used")


if __name__ == "__main__":
    main()
