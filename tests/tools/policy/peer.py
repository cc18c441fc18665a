"""An ordinary program without any code for policies: peer.py bind|connect TYPE ENDPOINT [OPTION=VALUE ...].

It prints `at ENDPOINT` or `failed ERRNO`. Then it reads commands from stdin: `send TEXT`, `receive`, `send-large` (1 MiB),
`receive-large` (prints whether it came without a copy), `bind ENDPOINT` (another socket), `term` (closes all), `end`.
"""

import sys

import zmq

TAUTLINE_IS_LOAN = 0x54410012

def main():
    how, kind, endpoint, *options = sys.argv[1:]
    try:
        context = zmq.Context()
        socket = context.socket(getattr(zmq, kind))
        socket.linger = 0
        for option in options:
            name, _, value = option.partition("=")
            number = getattr(zmq, name)
            socket.setsockopt(number, int(value) if value.isdigit() else value.encode())
        getattr(socket, how)(endpoint)
    except zmq.ZMQError as error:
        print("failed", error.errno, flush=True)
        return 1
    print("at", socket.last_endpoint.rstrip(b"\0").decode(), flush=True)
    for line in sys.stdin:
        word, _, text = line.rstrip("\n").partition(" ")
        if word == "send":
            socket.send_string(text)
        elif word == "receive":
            print("received", socket.recv_string(), flush=True)
        elif word == "send-large":
            socket.send(bytes(1 << 20), copy=False)
        elif word == "receive-large":
            print("received", "loan" if socket.recv(copy=False).get(TAUTLINE_IS_LOAN) else "copy", flush=True)
        elif word == "bind":
            other = context.socket(zmq.ROUTER)
            other.bind(text)
            print("at", other.last_endpoint.rstrip(b"\0").decode(), flush=True)
        elif word == "term":
            socket.close()
            context.term()
            print("done", flush=True)
        else:
            break
    return 0


sys.exit(main())
