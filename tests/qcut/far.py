#!/usr/bin/env python3
"""The server's part of measure.py: echoes datagrams, iperf3, and addresses that answer echo requests."""

import os
import socket
import threading


def echo():
    line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    line.bind(("0.0.0.0", 7))
    while True:
        data, sender = line.recvfrom(2000)
        line.sendto(data, sender)


for n in range(2, 7):
    os.system(f"ip addr add 203.0.113.{n}/32 dev lo")
threading.Thread(target=echo, daemon=True).start()
while True:
    os.system("iperf3 -s -1 > /dev/null 2>&1")
