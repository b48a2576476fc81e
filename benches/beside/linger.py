#!/usr/bin/env python3
"""Processes that serve one connection each: they end their side in a packet of its own after the answer, and wait for the client's end. Usage: linger.py PORT WORKERS SECONDS"""
import os, signal, socket, sys, time

listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen(2048)
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        break
else:
    signal.pause()
while True:
    client, _ = listener.accept()
    client.settimeout(30)
    try:
        asked = b""
        while b"\r\n\r\n" not in asked:
            got = client.recv(4096)
            if not got:
                break
            asked += got
        if asked:
            time.sleep(float(sys.argv[3]))
            client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n")
            time.sleep(0.001)
            client.shutdown(socket.SHUT_WR)
            client.settimeout(2)
            while client.recv(4096):
                pass
    except OSError:
        pass
    client.close()
