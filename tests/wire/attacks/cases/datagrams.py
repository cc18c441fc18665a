"""Datagrams from unknown senders."""

import socket

from harness import case

HWM = "option=24:10"


def flood(attack, datagram):
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    host, port = attack.endpoint.removeprefix("udp://").rsplit(":", 1)
    for _ in attack.times(20_000):
        attack.count(swallowed=stream.sendto(datagram, (host, int(port))))


@case("datagrams to a receiver that is busy", type="DGRAM", bind="udp://127.0.0.1:*", options=[HWM])
def busy(attack):
    flood(attack, bytes(8000))


@case("datagrams of a group to a receiver that is busy", type="DISH", bind="udp://127.0.0.1:*", options=[HWM])
def busy_group(attack):
    flood(attack, b"\x05group" + bytes(8000))


@case("datagrams without sense", type="DISH", mode="receive", bind="udp://127.0.0.1:*", options=[HWM])
def senseless(attack):
    flood(attack, b"\xff" * 100)
