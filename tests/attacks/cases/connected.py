"""Peers that have shaken hands, with a mechanism that lets everybody in."""

import zmtp
from harness import MIB, case

LITTLE = 4096


@case("PINGs whose PONGs are not read, tcp", type="PULL", options=["option=24:10", "wide=22:1000"])
def pings(attack):
    stream = attack.connect(receive_buffer=LITTLE)
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.ping(context=b"c" * 16) * 20000)


@case("PINGs whose PONGs are not read, ipc", type="PULL", bind="ipc://FOLDER/pings", options=["option=24:10"])
def pings_over_ipc(attack):
    stream = attack.connect()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.ping(context=b"c" * 16) * 20000)


@case("a message of 3 GB under RLIMIT_AS", type="PULL", limits={"AS": 1 << 30}, memory=8 * MIB)
def great_frame(attack):
    for _ in attack.times(20):
        stream = attack.connect()
        zmtp.shake_hands(stream, "PUSH")
        stream.sendall(b"\x02" + (3 << 30).to_bytes(8, "big"))
        attack.flood(stream, bytes(MIB), volume=4 * MIB)
        attack.drop(stream)
