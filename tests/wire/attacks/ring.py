"""Shared memory that an attacker fills and offers over `ipc`, in the format of Tautline."""

import fcntl
import mmap
import os
import socket
import struct


class Ring:
    """A ring for bytes from the attacker to the victim."""

    HEADER, ACCEPTED, SWITCH_AT, SWITCHED, TAIL, HEAD = 4096, 8, 128, 256, 384, 512

    CAPACITY = 2 << 20

    def __init__(self):
        self.memory_fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.posix_fallocate(self.memory_fd, 0, self.HEADER + self.CAPACITY)
        self.memory = mmap.mmap(self.memory_fd, self.HEADER + self.CAPACITY)
        self.memory[0:8] = b"tautlin1"
        fcntl.fcntl(self.memory_fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.question, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.question.setblocking(False)
        self.theirs.setblocking(False)

    def offer(self, stream, data):
        """Sends `data` together with the descriptors of the ring."""
        socket.send_fds(stream, [data], [self.memory_fd, self.theirs.fileno()])

    def get(self, at):
        return struct.unpack_from("<Q", self.memory, at)[0]

    def put(self, at, value):
        struct.pack_into("<Q", self.memory, at, value)

    def switch(self, at):
        """Moves the stream to the ring after its first `at` bytes."""
        self.put(self.SWITCH_AT, at)
        struct.pack_into("<I", self.memory, self.SWITCHED, 1)
