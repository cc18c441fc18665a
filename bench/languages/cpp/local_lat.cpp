// Sends each request back as its answer.
#include "bench.hpp"

int main(int argc, char **argv)
{
    const bench::arguments with(argc, argv);
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::rep);
    bench::secure(socket);
    socket.bind(with.endpoint);
    std::vector<char> message(with.size);
    for (std::uint64_t number = 0; number < with.warm_up + with.count; number++) {
        const auto received = socket.recv(zmq::buffer(message));
        with.check(message.data(), received->untruncated_size, number);
        socket.send(zmq::buffer(message));
    }
}
