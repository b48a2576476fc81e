#!/usr/bin/env python3
"""A page in Python, without a framework. Usage: page.py PORT MODE PLACES MILLISECONDS

threads: a thread a connection, and a semaphore if there are places. pool: that many threads accept. prefork: that many processes do. async: one event loop, and a
semaphore if there are places."""
import asyncio, os, socket, sys, threading, time

PORT, MODE, PLACES, SECONDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4]) / 1e3
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b"x" * 500
LAST = PAGE.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")


def listener():
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", PORT))
    made.listen(1024)
    return made


def asked(client):
    """False if the client has gone."""
    text = b""
    while b"\r\n\r\n" not in text:
        more = client.recv(4096)
        if not more:
            return False
        text += more
    return True


def one_by_one(made):
    while True:
        client, _ = made.accept()
        try:
            if asked(client):
                time.sleep(SECONDS)
                client.sendall(LAST)
        except OSError:
            pass
        client.close()


def threads(made):
    free = threading.Semaphore(PLACES) if PLACES else None

    def serve(client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while asked(client):
                if free:
                    with free:
                        time.sleep(SECONDS)
                else:
                    time.sleep(SECONDS)
                client.sendall(PAGE)
        except OSError:
            pass
        client.close()

    while True:
        threading.Thread(target=serve, args=(made.accept()[0],), daemon=True).start()


def pool(made):
    for _ in range(PLACES - 1):
        threading.Thread(target=one_by_one, args=(made,), daemon=True).start()
    one_by_one(made)


def prefork(made):
    for _ in range(PLACES - 1):
        if os.fork() == 0:
            break
    one_by_one(made)


async def loop():
    free = asyncio.Semaphore(PLACES) if PLACES else None

    async def serve(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                if free:
                    async with free:
                        await asyncio.sleep(SECONDS)
                else:
                    await asyncio.sleep(SECONDS)
                writer.write(PAGE)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()

    await (await asyncio.start_server(serve, "127.0.0.1", PORT, backlog=1024)).serve_forever()


if MODE == "async":
    asyncio.run(loop())
else:
    {"threads": threads, "pool": pool, "prefork": prefork}[MODE](listener())
