// Sends numbered messages as fast as the socket accepts them.
#include "bench.hpp"

int main(int argc, char **argv)
{
    const bench::arguments with(argc, argv);
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::push);
    bench::secure(socket);
    socket.connect(with.endpoint);
    std::vector<char> message(with.size);
    for (std::uint64_t number = 0; number < with.warm_up + with.count; number++) {
        bench::write_number(message, number);
        socket.send(zmq::buffer(message));
    }
}
