"""Hostile servers and proxies that a victim connects to."""

import struct

import zmtp
from harness import BUFFERED, MIB, case

KIB = 1 << 10
LITTLE = 4096
TCP, WS = "connect=tcp://ADDRESS", "connect=ws://ADDRESS/zmq"
# Option that lets a disconnected victim reconnect at once.
AGAIN = "option=18:1"
SEND_HWM, HWM, BODY = "option=23:10", "option=24:10", 10 * KIB
READ = 256 * KIB


@case("a server that says nothing", serves=TCP, type="DEALER", mode="send", options=[SEND_HWM, f"body={BODY}"], memory=10 * BODY)
def silent(attack):
    attack.accept()


@case("a server that reads nothing", serves=TCP, type="PUSH", mode="send", options=[SEND_HWM, f"body={BODY}"], memory=10 * BODY + READ)
def unread(attack):
    zmtp.shake_hands(attack.accept(), "PULL")


@case("a server that closes at once", serves=TCP, type="DEALER", mode="receive", options=[AGAIN], descriptors=8)
def closes(attack):
    for _ in attack.times(100):
        attack.drop(attack.accept())


@case("a server that closes after the handshake", serves=TCP, type="DEALER", mode="receive", options=[AGAIN], descriptors=8)
def closes_later(attack):
    for _ in attack.times(100):
        stream = attack.accept()
        try:
            zmtp.shake_hands(stream, "ROUTER", ("X-Name", bytes(60 * KIB)))
        except (OSError, EOFError):
            pass
        attack.drop(stream)


@case("a server of PINGs that reads nothing", serves=TCP, type="PULL", options=[HWM])
def pings(attack):
    stream = attack.accept()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.ping(context=b"c" * 16) * 20_000)


@case("a server of messages to a receiver that is busy", serves=TCP, type="PULL", options=[HWM], memory=10 * 100 * KIB + READ)
def messages(attack):
    stream = attack.accept()
    zmtp.shake_hands(stream, "PUSH")
    attack.flood(stream, zmtp.frame(bytes(100 * KIB)))


@case("a server that refuses and goes on", serves=TCP, type="DEALER", mode="receive", swallowed=BUFFERED)
def refuses(attack):
    stream = attack.accept()
    stream.sendall(zmtp.greeting() + zmtp.command("ERROR", b"\x03400"))
    attack.flood(stream, bytes(MIB))


@case("a server of READY without end", serves=TCP, type="DEALER", mode="receive", options=[AGAIN], swallowed=BUFFERED)
def endless_ready(attack):
    stream = attack.accept()
    stream.sendall(zmtp.greeting() + struct.pack(">BQ", zmtp.COMMAND | zmtp.LONG, 1 << 40) + b"\5READY")
    attack.flood(stream, bytes(MIB))


@case("a server of a greeting without end", serves=TCP, type="DEALER", mode="receive", options=[AGAIN], swallowed=BUFFERED)
def endless_greeting(attack):
    attack.flood(attack.accept(), b"\xff" * MIB)


@case("a server that answers CURVE with junk", serves=TCP, type="DEALER", mode="receive",
      options=[AGAIN, "text=50:Ynw{U7yd(=/2mas!aO>ZmsVQ%[m=XtPDWSM9H-r)", "text=48:nuvAi^4M<eI)s2WEiyN?=K33NAc$kiym&<!?>[jT",
               "text=49:}h5=3ohXPR}{&c[SNcm>SKM}hEVOPU)6R3qDB%V?"], swallowed=BUFFERED)
def junk_for_curve(attack):
    stream = attack.accept()
    stream.sendall(zmtp.greeting(b"CURVE") + zmtp.command("WELCOME", bytes(160)))
    attack.flood(stream, bytes(MIB))


@case("an answer without end, ws", serves=WS, type="DEALER", mode="receive", options=[AGAIN], swallowed=BUFFERED)
def endless_answer(attack):
    stream = attack.accept()
    stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
    attack.flood(stream, (b"X-Name: " + b"v" * 1000 + b"\r\n") * 100)


@case("a SOCKS proxy that does not stop", serves="connect=tcp://127.0.0.1:9 text=68:ADDRESS", type="DEALER", mode="receive",
      options=[AGAIN], swallowed=BUFFERED)
def proxy(attack):
    stream = attack.accept()
    # The choice of a method, and a reply with a name of 255 octets.
    stream.sendall(b"\x05\x00\x05\x00\x00\x03\xff")
    attack.flood(stream, b"\xff" * MIB)


@case("a SOCKS proxy whose peer says nothing", serves="connect=tcp://127.0.0.1:9 text=68:ADDRESS", type="DEALER", mode="send",
      options=[SEND_HWM, f"body={BODY}"], memory=10 * BODY)
def silent_proxy(attack):
    stream = attack.accept()
    stream.sendall(b"\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x09")
