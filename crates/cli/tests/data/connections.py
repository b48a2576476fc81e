"""Runs a program and writes down to which addresses it, and everything that it starts, connects or sends. Or holds addresses at which nobody must ask.

    connections.py FILE PROGRAM ARGUMENT...   a line for each address in FILE: "tcp 127.0.0.1:80 by NAME"; ends with the program's status, or with 77 and why
    connections.py hold USER ADDRESS...       listens at all of them as this user until it is ended ("ready"); a line for whoever connects or sends

The kernel stops the calls connect, sendto, sendmsg and sendmmsg of the program until this one has looked at the address (seccomp user notification,
seccomp(2) and seccomp_unotify(2), Linux 5.6), so that none is missed, whatever language or library makes it.
"""
import array
import ctypes
import fcntl
import os
import platform
import select
import signal
import socket
import struct
import sys
import threading

# Numbers of system calls: asm/unistd_64.h and asm-generic/unistd.h.
NUMBERS = {
    "x86_64": dict(audit=0xC000003E, connect=42, sendto=44, sendmsg=46, sendmmsg=307, seccomp=317),
    "aarch64": dict(audit=0xC00000B7, connect=203, sendto=206, sendmsg=211, sendmmsg=269, seccomp=277),
}
IO_URING_SETUP, PIDFD_OPEN, PIDFD_GETFD = 425, 434, 438
ALLOW, NOTIFY, NO_SUCH_CALL, KILL = 0x7FFF0000, 0x7FC00000, 0x00050000 | 38, 0x80000000
SET_FILTER, NEW_LISTENER = 1, 8
# struct seccomp_notif: id, pid, flags; nr, arch, ip, six arguments. struct seccomp_notif_resp: id, value, error, flags.
CALL, ANSWER, GO_ON = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI"), 1
RECEIVE, SEND = 0xC0502100, 0xC0182101
LIBC = ctypes.CDLL(None, use_errno=True)


def skip(why):
    print(why, flush=True)
    os._exit(77)


def filter_program(numbers):
    """Classic BPF on struct seccomp_data (number at 0, architecture at 4, low and high half of argument 4 at 48 and 52)."""
    load, equal, give = 0x20, 0x15, 0x06
    code = [
        (load, 0, 0, 4), (equal, 1, 0, numbers["audit"]), (give, 0, 0, KILL),
        (load, 0, 0, 0),
        (equal, 0, 1, IO_URING_SETUP), (give, 0, 0, NO_SUCH_CALL),
        (equal, 7, 0, numbers["connect"]), (equal, 6, 0, numbers["sendmsg"]), (equal, 5, 0, numbers["sendmmsg"]),
        (equal, 0, 5, numbers["sendto"]),
        # send(2) is sendto(2) without an address.
        (load, 0, 0, 48), (equal, 0, 2, 0), (load, 0, 0, 52), (equal, 1, 0, 0),
        (give, 0, 0, NOTIFY), (give, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in code), len(code)


def begin_filtered(numbers, words):
    """A child that runs the program; its pid and the descriptor of notifications."""
    told, tell = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        code, lines = filter_program(numbers)
        held = ctypes.create_string_buffer(code, len(code))
        program = ctypes.create_string_buffer(struct.pack("@HP", lines, ctypes.addressof(held)))
        notices = LIBC.syscall(numbers["seccomp"], SET_FILTER, NEW_LISTENER, ctypes.byref(program))
        os.write(tell, struct.pack("=ii", notices, ctypes.get_errno()))
        os.read(wait, 1)
        os.execv(words[0], words)
    number, errno = struct.unpack("=ii", os.read(told, 8))
    if number < 0:
        skip("the kernel refuses a filter with notifications (seccomp(2): %s)" % os.strerror(errno))
    notices = descriptor_of(pid, number)
    if notices is None:
        os.kill(pid, signal.SIGKILL)
        skip("the kernel has no pidfd_getfd(2), or refuses it")
    os.write(go, b"+")
    return pid, notices


def descriptor_of(pid, number):
    held = LIBC.syscall(PIDFD_OPEN, pid, 0)
    if held < 0:
        return None
    copy = LIBC.syscall(PIDFD_GETFD, held, number, 0)
    os.close(held)
    return copy if copy >= 0 else None


def memory(pid, at, length):
    with open("/proc/%d/mem" % pid, "rb", 0) as file:
        file.seek(at)
        return file.read(length)


def name_of(address):
    """The words for a socket address: family and place; nothing for the kernel's own (netlink(7), packet(7)) and for none."""
    family = struct.unpack_from("=H", address)[0] if len(address) >= 2 else 0
    if family == socket.AF_INET:
        return "%s:%d" % (socket.inet_ntop(family, address[4:8]), struct.unpack_from(">H", address, 2)[0])
    if family == socket.AF_INET6:
        return "[%s]:%d" % (socket.inet_ntop(family, address[8:24]), struct.unpack_from(">H", address, 2)[0])
    if family == socket.AF_UNIX:
        path = address[2:].rstrip(b"\0") if address[2:3] == b"\0" else address[2:].split(b"\0")[0]
        return repr(path.decode("utf-8", "backslashreplace"))
    if family in (socket.AF_UNSPEC, socket.AF_NETLINK, socket.AF_PACKET):
        return None
    return "family %d" % family


def kind_of(pid, number):
    """Whether a socket is one of datagrams: not known of a thread that has descriptors of its own, since only those of its process can be had."""
    with open("/proc/%d/status" % pid) as file:
        leader = next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
    try:
        numbers = {os.stat("/proc/%d/fd/%d" % (owner, number)).st_ino for owner in (leader, pid)}
        is_one = len(numbers) == 1
    except FileNotFoundError:
        # The other threads go on, and open and close theirs meanwhile.
        is_one = False
    copy = descriptor_of(leader, number) if is_one else None
    if copy is None:
        return "tcp"
    with socket.socket(fileno=copy) as held:
        return "udp" if held.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DGRAM else "tcp"


def addresses(numbers, pid, number, arguments):
    """Where a call goes, as places and lengths of socket addresses in the caller's memory."""
    if number == numbers["connect"]:
        return [arguments[1:3]]
    if number == numbers["sendto"]:
        return [arguments[4:6]]
    # struct msghdr begins with address and length; struct mmsghdr is one of 64 bytes.
    count = min(arguments[2], 1024) if number == numbers["sendmmsg"] else 1
    return [struct.unpack("=QI", memory(pid, arguments[1] + 64 * n, 12)) for n in range(count)]


def look(numbers, call, out):
    _, pid, _, number, _, _, *arguments = CALL.unpack(call)
    for at, length in addresses(numbers, pid, number, arguments):
        name = name_of(memory(pid, at, min(length, 128))) if at and length else None
        if name is None:
            continue
        how = "sends" if number != numbers["connect"] else "connects"
        with open("/proc/%d/comm" % pid) as file:
            kind = "unix" if name.startswith("'") else kind_of(pid, arguments[0])
            print("%s %s: %s %s" % (kind, name, file.read().strip(), how), file=out, flush=True)


def watched(file, words):
    numbers = NUMBERS.get(platform.machine())
    if numbers is None:
        skip("the numbers of system calls of %s are not known" % platform.machine())
    out = open(file, "w")
    pid, notices = begin_filtered(numbers, words)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGTERM))
    ended = None
    poll = select.poll()
    poll.register(notices, select.POLLIN)
    while ended is None:
        for _, event in poll.poll(20):
            if not event & select.POLLIN:
                continue
            call = array.array("B", bytes(CALL.size))
            try:
                fcntl.ioctl(notices, RECEIVE, call)
                look(numbers, bytes(call), out)
            except (FileNotFoundError, ProcessLookupError, InterruptedError) as error:
                # Killed in between, or else the call goes on unseen.
                if os.path.exists("/proc/%d" % struct.unpack_from("=QI", call)[1]):
                    print("unseen: %s" % error, file=out, flush=True)
            try:
                fcntl.ioctl(notices, SEND, array.array("B", ANSWER.pack(struct.unpack_from("=Q", call)[0], 0, 0, GO_ON)))
            except (FileNotFoundError, InterruptedError):
                pass
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended = os.waitstatus_to_exitcode(status)
    os._exit(ended if ended >= 0 else 128 - ended)


def hold(user, places):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    lock = threading.Lock()

    def tell(held, place):
        while True:
            client = held.accept()[0] if held.type == socket.SOCK_STREAM else None
            asked = (client or held).recv(200)
            with lock:
                print("asked at %s: %r" % (place, asked), flush=True)

    def listening(place):
        if place.startswith("/"):
            held, at = socket.socket(socket.AF_UNIX), place
        else:
            ip, port = place.rsplit(":", 1)
            ip = ip.strip("[]")
            held = socket.socket(socket.AF_INET6 if ":" in ip else socket.AF_INET, socket.SOCK_DGRAM if port in ("9", "53") else socket.SOCK_STREAM)
            at = (ip, int(port))
        if held.family == socket.AF_INET6:
            held.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            held.bind(at)
        except OSError as error:
            sys.exit("Error: %s: %s" % (place, error))
        if place.startswith("/"):
            os.chmod(place, 0o777)
        if held.type == socket.SOCK_STREAM:
            held.listen(16)
        threading.Thread(target=tell, args=(held, place), daemon=True).start()

    for place in places:
        listening(place)
    print("ready", flush=True)
    signal.pause()


if sys.argv[1] == "hold":
    hold(int(sys.argv[2]), sys.argv[3:])
else:
    watched(sys.argv[1], sys.argv[2:])
