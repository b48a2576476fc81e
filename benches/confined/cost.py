#!/usr/bin/env python3
"""What it costs to read files in a child without rights: docs/security.md, "Readers without rights". Takes root.

    benches/confined/cost.py PROGRAM RECORDING...

Speaks with children as the program does (crates/confined/src/frame.rs): how long a child takes from its start until it has given up its rights, and a small file from
the question to the answer. Then each recording is replayed by root, in a child, and by a user without rights, in the program itself, in turn."""

import array
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROUNDS = 40
# The place of stored profiles in the table of readers (crates/cli/src/run/readers.rs).
PROFILES = 1
USER = 65534


def figures(name, seconds):
    ms = sorted(second * 1e3 for second in seconds)
    print(f"{name:44} {statistics.median(ms):8.2f} ms  ({ms[0]:.2f} to {ms[-1]:.2f}, {len(ms)} times)")


def receive(connection):
    def exactly(length):
        data = b""
        while len(data) < length:
            piece = connection.recv(length - len(data))
            if not piece:
                sys.exit("the child has ended")
            data += piece
        return data

    code, _, length = struct.unpack("<IIQ", exactly(16))
    return code, exactly(length)


def start(program):
    """A child, and how long it took."""
    near, far = socket.socketpair()
    begin = time.perf_counter()
    child = subprocess.Popen(
        [program, "reader-without-rights", str(2 << 30), "120"], stdin=far, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={}, cwd="/"
    )
    _, held = receive(near)
    return child, near, time.perf_counter() - begin, held.decode()


def ask(connection, file):
    file.seek(0)
    begin = time.perf_counter()
    header = struct.pack("<IIQ", PROFILES, 1, 4)
    connection.sendmsg([header], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])
    connection.sendall(b"null")
    code, answer = receive(connection)
    if code != 0:
        sys.exit(answer.decode())
    return time.perf_counter() - begin


def replayed(program, recording, user):
    begin = time.perf_counter()
    subprocess.run([program, "diagnose", "--replay", recording], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=user, cwd="/")
    return time.perf_counter() - begin


def main():
    program, recordings = os.path.abspath(sys.argv[1]), [os.path.abspath(path) for path in sys.argv[2:]]
    starts = []
    for _ in range(ROUNDS):
        child, connection, seconds, held = start(program)
        starts.append(seconds)
        connection.close()
        child.wait()
    print(held)
    figures("start of a child", starts)
    with tempfile.TemporaryFile() as file:
        file.write(b"nginx;main;serve 3\n")
        file.flush()
        child, connection, _, _ = start(program)
        figures("a further file of the same child", [ask(connection, file) for _ in range(ROUNDS)])
        connection.close()
        child.wait()
    for recording in recordings:
        # The first of each fills the caches.
        pairs = [(replayed(program, recording, 0), replayed(program, recording, USER)) for _ in range(ROUNDS + 1)][1:]
        name = os.path.basename(recording)
        figures(f"{name}, in a child", [root for root, _ in pairs])
        figures(f"{name}, in the program", [user for _, user in pairs])
        figures(f"{name}, difference of pairs", [root - user for root, user in pairs])


main()
