"""Writes a capture of made-up UDP packets between ten addresses of 10.0.0.0/8: capture.py FILE COUNT"""

import struct
import sys


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(number):
    """Returns an Ethernet frame with 100 octets in a UDP datagram."""
    source, target = bytes([10, 0, 0, 1 + number % 4]), bytes([10, 0, 1, 1 + number % 6])
    datagram = struct.pack(">HHHH", 1000, 2000, 8 + 100, 0) + b"x" * 100
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), number & 0xFFFF, 0, 64, 17, 0, source, target)
    header = header[:10] + struct.pack(">H", checksum(header)) + header[12:]
    return b"\x02\0\0\0\0\1" b"\x02\0\0\0\0\2" b"\x08\0" + header + datagram


with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number in range(int(sys.argv[2])):
        frame = packet(number)
        out.write(struct.pack("<IIII", 1700000000, number, len(frame), len(frame)) + frame)
