"""Frames as tensors of DLPack."""

import ctypes
import gc
import unittest
import weakref

from native_support import SyncTest
from tautline_zmq import PULL, PUSH, Frame, loan

try:
    import numpy
except ImportError:
    numpy = None

SIZES = (0, 1, 33, 1000, 100_000, 1_000_000)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    name = b"dltensor"
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    name = b"dltensor_versioned"
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def content(capsule, kind):
    """Returns the structure of a capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return kind.from_address(pointer(capsule, kind.name))


# A capsule keeps the address of its name.
USED = {kind: ctypes.create_string_buffer(b"used_" + kind.name) for kind in (Managed, Versioned)}
READ_ONLY, IS_COPIED = 1, 2


class DlpackTest(SyncTest):
    KINDS = ((Managed, None), (Versioned, (1, 0)))

    def received(self, size):
        """Returns a read-only frame."""
        receiver, sender = self.pair(PULL, PUSH)
        sender.send(bytearray(size), copy=False)
        frame = receiver.recv(copy=False)
        self.assertTrue(frame.buffer.readonly)
        return frame

    def test_capsule_describes_the_body(self):
        for size in SIZES:
            frame = loan(size)
            frame.buffer[:] = body = b"d" * size
            self.assertEqual(frame.__dlpack_device__(), (1, 0))
            for kind, version in self.KINDS:
                capsule = frame.__dlpack__(max_version=version)
                managed = content(capsule, kind)
                tensor = managed.tensor
                self.assertEqual((tensor.device_type, tensor.device_id, tensor.ndim, tensor.byte_offset), (1, 0, 1, 0))
                self.assertEqual((tensor.code, tensor.bits, tensor.lanes), (1, 8, 1))
                self.assertEqual((tensor.shape[0], tensor.strides[0]), (size, 1))
                self.assertEqual(ctypes.string_at(tensor.data, size), body)
                if kind is Versioned:
                    self.assertEqual((managed.major, managed.minor, managed.flags), (1, 0, 0))

    def test_versions(self):
        frame = loan(10)
        for version in (None, (0, 8)):
            content(frame.__dlpack__(max_version=version), Managed)
        for version in ((1, 0), (1, 1), (2, 0)):
            self.assertEqual(content(frame.__dlpack__(max_version=version), Versioned).major, 1)

    def test_frame_lives_as_long_as_a_capsule_that_nobody_took(self):
        for kind, version in self.KINDS:
            frame = loan(100_000)
            reference, capsule = weakref.ref(frame), frame.__dlpack__(max_version=version)
            del frame
            self.assertIsNotNone(reference())
            self.assertEqual(content(capsule, kind).tensor.shape[0], 100_000)
            del capsule
            self.assertIsNone(reference())

    def test_consumer_frees_what_it_took(self):
        set_name = ctypes.pythonapi.PyCapsule_SetName
        set_name.argtypes = [ctypes.py_object, ctypes.c_void_p]
        for kind, version in self.KINDS:
            # With and without the interpreter lock.
            for call in (DELETER, ctypes.PYFUNCTYPE(None, ctypes.c_void_p)):
                frame = loan(100_000)
                reference, capsule = weakref.ref(frame), frame.__dlpack__(max_version=version)
                managed = content(capsule, kind)
                set_name(capsule, ctypes.addressof(USED[kind]))
                del frame, capsule
                self.assertIsNotNone(reference())
                ctypes.memset(managed.tensor.data, 1, 100_000)
                self.assertEqual(reference().bytes, b"\1" * 100_000)
                call(ctypes.cast(managed.deleter, ctypes.c_void_p).value)(ctypes.addressof(managed))
                self.assertIsNone(reference())

    def test_read_only_frame_needs_a_versioned_capsule(self):
        frame = self.received(100_000)
        for version in (None, (0, 8)):
            with self.assertRaisesRegex(BufferError, "read-only"):
                frame.__dlpack__(max_version=version)
        self.assertEqual(content(frame.__dlpack__(max_version=(1, 0)), Versioned).flags, READ_ONLY)

    def test_copy(self):
        frame = self.received(100_000)
        address = content(frame.__dlpack__(max_version=(1, 0), copy=False), Versioned).tensor.data
        for kind, version in self.KINDS:
            capsule = frame.__dlpack__(max_version=version, copy=True)
            copied = content(capsule, kind)
            self.assertNotEqual(copied.tensor.data, address)
            self.assertEqual(ctypes.string_at(copied.tensor.data, copied.tensor.shape[0]), bytes(100_000))
            if kind is Versioned:
                self.assertEqual(copied.flags, IS_COPIED)

    def test_other_devices_and_streams_are_refused(self):
        frame = loan(10)
        content(frame.__dlpack__(dl_device=(1, 0), stream=None, copy=None), Managed)
        for arguments in ({"dl_device": (2, 0)}, {"dl_device": (1, 1)}, {"stream": 1}):
            self.assertRaises(BufferError, frame.__dlpack__, **arguments)
        self.assertRaises(TypeError, frame.__dlpack__, None)
        self.assertRaises(TypeError, frame.__dlpack__, max_version=1)

    def test_frame_in_use_is_not_replaced(self):
        frame = Frame(b"a" * 1000)
        capsule = frame.__dlpack__()
        self.assertRaises(BufferError, frame.__init__, b"b" * 1000)
        self.assertEqual(ctypes.string_at(content(capsule, Managed).tensor.data, 1000), b"a" * 1000)

    @unittest.skipIf(numpy is None, "numpy is not installed")
    def test_numpy(self):
        frame = loan(100_000)
        array = numpy.from_dlpack(frame)
        array[:] = 5
        self.assertEqual(frame, b"\5" * 100_000)
        reference = weakref.ref(frame)
        del frame
        self.assertEqual(array.sum(), 500_000)
        self.assertIsNotNone(reference())
        del array
        gc.collect()
        self.assertIsNone(reference())
        frame = self.received(100_000)
        array = numpy.from_dlpack(frame)
        self.assertFalse(array.flags.writeable)
        self.assertEqual(array.ctypes.data, numpy.frombuffer(frame, dtype=numpy.uint8).ctypes.data)
        copied = numpy.from_dlpack(frame, copy=True, device="cpu")
        copied[0] = 1
        self.assertEqual((copied[0], array[0], len(copied)), (1, 0, 100_000))


if __name__ == "__main__":
    unittest.main()
