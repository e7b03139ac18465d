"""A file system that works and then answers nobody any more: a FUSE server of a few operations on the bare protocol.

Protocol: Linux' include/uapi/linux/fuse.h, version 7.31. The root folder is empty.
"""
import ctypes
import os
import select
import struct
import subprocess
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
FORGET, GETATTR, STATFS, INIT, OPENDIR, READDIR, RELEASEDIR, ACCESS, READDIRPLUS = 2, 3, 17, 26, 27, 28, 29, 34, 44
ENOSYS = 38
FOLDER_MODE = 0o40755


class Frozen:
    """Mounted at `path` until close(); served until freeze()."""

    def __init__(self, path):
        os.makedirs(path)
        self.path, self.answering = path, True
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other"
        if LIBC.mount(b"frozen", path.encode(), b"fuse.frozen", 0, options.encode()) < 0:
            error = ctypes.get_errno()
            os.close(self.fd)
            raise OSError(error, f"mount: {os.strerror(error)}")
        self.stop_fd, self.wake_fd = os.pipe()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while self.stop_fd not in select.select([self.fd, self.stop_fd], [], [])[0]:
            request = os.read(self.fd, 1 << 20)
            _, opcode, unique = struct.unpack_from("=IIQ", request)
            if opcode != FORGET:
                error, body = self.answer(opcode)
                os.write(self.fd, struct.pack("=IiQ", 16 + len(body), -error, unique) + body)

    @staticmethod
    def answer(opcode):
        if opcode == INIT:
            return 0, struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, *[0] * 8)
        if opcode == GETATTR:
            now = int(time.time())
            attributes = struct.pack("=6Q10I", 1, 0, 0, now, now, now, 0, 0, 0, FOLDER_MODE, 2, 0, 0, 0, 4096, 0)
            return 0, struct.pack("=Q2I", 0, 0, 0) + attributes  # nothing may be remembered: each look asks
        if opcode == STATFS:
            return 0, struct.pack("=5Q4I6I", 1000, 900, 900, 1000, 900, 4096, 255, 4096, 0, *[0] * 6)
        if opcode == OPENDIR:
            return 0, struct.pack("=Q2I", 1, 0, 0)
        return (0, b"") if opcode in (READDIR, READDIRPLUS, RELEASEDIR, ACCESS) else (ENOSYS, b"")

    def freeze(self):
        """From now on whoever asks waits."""
        if self.answering:
            os.close(self.wake_fd)
            self.thread.join()
            self.answering = False

    def close(self):
        self.freeze()
        os.close(self.fd)  # who waits gets an error
        os.close(self.stop_fd)
        subprocess.run(["umount", "--lazy", self.path], check=True)
