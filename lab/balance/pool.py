"""A pool of threads that takes a connection for each request: pool.py PORT THREADS MILLISECONDS. Who finds no thread free waits to be accepted."""

import socket
import sys
import threading
import time

port, threads, milliseconds = (int(word) for word in sys.argv[1:4])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nHello\n"


def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = connection.recv(4096)
                    if not piece:
                        break
                    request += piece
                else:
                    time.sleep(milliseconds / 1000)
                    connection.sendall(ANSWER)
            except OSError:
                pass  # The client went away.


threading.stack_size(262144)
shared = socket.create_server(("0.0.0.0", port), backlog=4096)
pool = [threading.Thread(target=serve, args=(shared,)) for _ in range(threads)]
for thread in pool:
    thread.start()
for thread in pool:
    thread.join()
