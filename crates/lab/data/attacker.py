"""What the programs of attacks share. What they say goes to the output of their step."""
import ctypes
import http.client
import os
import socket
import struct
import sys
import threading
import time

RUN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HOME = os.path.join(RUN, "home")


def say(text):
    print(text, flush=True)


def skip(why):
    """Ends the attack: it cannot be tried here."""
    say(why)
    os._exit(77)


def stay():
    while True:
        time.sleep(3600)


def note(file, text):
    """Appends a line to a file in the attacker's home."""
    with open(os.path.join(HOME, file), "a") as out:
        out.write(text + "\n")


def comm(text):
    """Sets the name of this process (prctl(2), PR_SET_NAME)."""
    ctypes.CDLL(None).prctl(15, ctypes.c_char_p(text), 0, 0, 0)


def bound(address):
    """A listening socket at (address, port) or at a path."""
    if isinstance(address, str):
        listener = socket.socket(socket.AF_UNIX)
    else:
        listener = socket.socket(socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(address)
    listener.listen(128)
    return listener


def peer(client):
    if client.family != socket.AF_UNIX:
        return "somebody"
    pid, user, group = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return "user %d" % user


def in_background(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()


def trap(address):
    """Nobody must connect here: the file "connections" tells who did."""
    listener = bound(address)

    def take():
        while True:
            client, _ = listener.accept()
            client.settimeout(1)
            try:
                asked = client.recv(200)
            except OSError:
                asked = b""
            note("connections", "%s at %s: %r" % (peer(client), address, asked))
            client.close()

    in_background(take)


def serve(address, answer):
    """Answers each request with the bytes, or with what the function does with the connection and the request."""
    listener = bound(address)

    def one(client):
        try:
            while True:
                request = client.recv(65536)
                if not request:
                    break
                if callable(answer):
                    answer(client, request)
                else:
                    client.sendall(answer)
        except OSError:
            pass
        client.close()

    def take():
        while True:
            client, _ = listener.accept()
            in_background(one, client)

    in_background(take)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


def get(port, path, headers={}, timeout=10):
    """Status and body of a GET at 127.0.0.1; 0 and the reason where there is none."""
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read(1 << 20).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, str(error)


def until(met, what, seconds=20):
    """Waits until something is so; without it the attack itself has failed."""
    end = time.time() + seconds
    while not met():
        if time.time() > end:
            say("it did not come: " + what)
            sys.exit(1)
        time.sleep(0.02)
