// Receives; the first message after the warm-up starts the clock.
#include "bench.hpp"

int main(int argc, char **argv)
{
    const bench::arguments with(argc, argv);
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::pull);
    bench::secure(socket);
    socket.bind(with.endpoint);
    std::vector<char> message(with.size);
    const auto receive = [&](std::uint64_t number) {
        const auto received = socket.recv(zmq::buffer(message));
        with.check(message.data(), received->untruncated_size, number);
    };
    for (std::uint64_t number = 0; number <= with.warm_up; number++)
        receive(number);
    const auto begin = bench::clock::now();
    for (std::uint64_t number = with.warm_up + 1; number < with.warm_up + with.count; number++)
        receive(number);
    bench::report_stream(with, bench::clock::now() - begin);
}
