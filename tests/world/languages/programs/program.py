import zmq

context = zmq.Context()
push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
port = pull.bind_to_random_port("tcp://127.0.0.1")
push.connect(f"tcp://127.0.0.1:{port}")
for number in range(1000):
    push.send_string(f"x{number}")
    assert pull.recv_string() == f"x{number}"
context.destroy()
print("ok")
