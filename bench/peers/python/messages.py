"""Numbered messages, and the count of the lost, reordered and corrupted ones.

A message has its number in the first 8 bytes and a function of the number in the last 8, as in bench/peers/c.
"""

import struct

NUMBER = struct.Struct("<Q")
# Number of the message after the last counted one.
FINISH = 2**64 - 1


def stamp(body, number):
    """Writes a number into both ends of a bytearray."""
    NUMBER.pack_into(body, 0, number)
    NUMBER.pack_into(body, len(body) - NUMBER.size, _tail(number))


class Bodies:
    """Makes numbered messages of one size."""

    def __init__(self, size):
        self.filler = bytes(size - 2 * NUMBER.size)

    def body(self, number):
        return NUMBER.pack(number) + self.filler + NUMBER.pack(_tail(number))


class Tally:
    """Checks received messages of one size."""

    def __init__(self, size):
        self.size = size
        self.expected = self.lost = self.reordered = self.corrupted = 0

    def number(self, body):
        """Returns the number of a message, or None for a corrupted one."""
        if len(body) == self.size:
            (number,) = NUMBER.unpack_from(body)
            if NUMBER.unpack_from(body, self.size - NUMBER.size) == (_tail(number),):
                return number
        self.corrupted += 1
        return None

    def next(self, body):
        """Takes the next message of a stream. Returns false for the one after the last."""
        number = self.number(body)
        if number == FINISH:
            return False
        if number is None or number == self.expected:
            self.expected += 1
        elif number > self.expected:
            self.lost += number - self.expected
            self.expected = number + 1
        else:
            self.reordered += 1
            self.lost = max(self.lost - 1, 0)
        return True

    def reply(self, body, number):
        """Takes the reply to the message of that number."""
        self.reordered += self.number(body) not in (None, number)

    def report(self):
        return {"lost": self.lost, "reordered": self.reordered, "corrupted": self.corrupted}


def _tail(number):
    return number ^ 0xA5A5A5A5A5A5A5A5
