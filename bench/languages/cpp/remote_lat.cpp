// Sends a request and waits for the answer, one at a time.
#include "bench.hpp"

int main(int argc, char **argv)
{
    const bench::arguments with(argc, argv);
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::req);
    bench::secure(socket);
    socket.connect(with.endpoint);
    std::vector<char> request(with.size), answer(with.size);
    std::vector<std::uint64_t> times;
    times.reserve(with.count);
    auto begin = bench::clock::now(), last = begin;
    for (std::uint64_t number = 0; number < with.warm_up + with.count; number++) {
        if (number == with.warm_up)
            begin = last = bench::clock::now();
        bench::write_number(request, number);
        socket.send(zmq::buffer(request));
        const auto received = socket.recv(zmq::buffer(answer));
        with.check(answer.data(), received->untruncated_size, number);
        if (number >= with.warm_up) {
            const auto now = bench::clock::now();
            times.push_back(bench::nanoseconds(now - last));
            last = now;
        }
    }
    bench::report_rounds(with, bench::nanoseconds(last - begin), times);
}
