#include <iostream>
#include <zmq.hpp>
int main() {
    zmq::context_t context;
    zmq::socket_t push(context, zmq::socket_type::push), pull(context, zmq::socket_type::pull);
    pull.bind("tcp://127.0.0.1:*");
    push.connect(pull.get(zmq::sockopt::last_endpoint));
    for (int i = 0; i < 1000; i++) {
        auto text = "x" + std::to_string(i);
        push.send(zmq::buffer(text), zmq::send_flags::none);
        zmq::message_t got;
        (void)pull.recv(got);
        if (got.to_string() != text) return 1;
    }
    std::cout << "ok\n";
}
