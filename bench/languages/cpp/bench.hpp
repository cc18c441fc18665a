// Shared code of the four programs: arguments, numbered messages, and the line of JSON that the harness
// reads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <zmq.hpp>

namespace bench {

using clock = std::chrono::steady_clock;

// Ends the program with a reason.
[[noreturn]] inline void fail(const std::string &reason)
{
    std::fprintf(stderr, "%s\n", reason.c_str());
    std::exit(1);
}

// Arguments of a program: `endpoint size count [warm-up]`.
struct arguments
{
    std::string endpoint;
    std::size_t size = 0;           // bytes of each message
    std::uint64_t count = 0;
    std::uint64_t warm_up = 1000;   // messages before the measured ones

    // Reads the command line, or ends the program.
    arguments(int argc, char **argv)
    {
        if (argc < 4)
            fail("arguments: endpoint size count [warm-up]");
        endpoint = argv[1];
        size = std::strtoull(argv[2], nullptr, 10);
        count = std::strtoull(argv[3], nullptr, 10);
        if (argc > 4)
            warm_up = std::strtoull(argv[4], nullptr, 10);
        if (size < 8 || count < 2)
            fail("use at least 2 messages of at least 8 bytes");
    }

    // Ends the program unless these bytes are the message with that number.
    void check(const void *data, std::size_t length, std::uint64_t number) const
    {
        std::uint64_t found = 0;
        if (length >= sizeof found)
            std::memcpy(&found, data, sizeof found);
        if (length != size || found != number)
            fail("message " + std::to_string(number) + " is wrong: " + std::to_string(length) + " bytes");
    }
};

// True if `secure` has set keys.
inline bool encrypted = false;

// Sets the keys of CURVE, if the environment has some (../curve.sh). A program that knows the key of a server is
// a client.
inline void secure(zmq::socket_t &socket)
{
    const char *secret = std::getenv("CURVE_SECRET"), *server = std::getenv("CURVE_SERVER");
    if (!secret)
        return;
    if (server) {
        socket.set(zmq::sockopt::curve_serverkey, server);
        socket.set(zmq::sockopt::curve_publickey, std::getenv("CURVE_PUBLIC"));
    } else {
        socket.set(zmq::sockopt::curve_server, true);
    }
    socket.set(zmq::sockopt::curve_secretkey, secret);
    encrypted = true;
}

// Writes the number into the first 8 bytes (the machines that are measured are little-endian).
inline void write_number(std::vector<char> &message, std::uint64_t number)
{
    std::memcpy(message.data(), &number, sizeof number);
}

inline std::uint64_t nanoseconds(clock::duration time)
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// Prints the figures of round trips: the total time and the time of each round, in nanoseconds.
inline void report_rounds(const arguments &with, std::uint64_t total, std::vector<std::uint64_t> &times)
{
    std::sort(times.begin(), times.end());
    const auto half = [](std::uint64_t ns) { return ns / 2e3; };
    std::printf("{\"rounds\":%zu,\"size\":%zu,\"seconds\":%.9f,\"mean_us\":%.4f,\"p50_us\":%.4f,\"p99_us\":%.4f,"
                "\"curve\":%s,\"verified\":true}\n",
                times.size(), with.size, total / 1e9, half(total) / times.size(), half(times[times.size() / 2]),
                half(times[times.size() * 99 / 100]), encrypted ? "true" : "false");
}

// Prints the figures of a stream.
inline void report_stream(const arguments &with, clock::duration time)
{
    const double seconds = nanoseconds(time) / 1e9;
    std::printf("{\"count\":%llu,\"size\":%zu,\"seconds\":%.9f,\"messages_per_second\":%.1f,"
                "\"curve\":%s,\"verified\":true}\n",
                static_cast<unsigned long long>(with.count), with.size, seconds, (with.count - 1) / seconds,
                encrypted ? "true" : "false");
}

} // namespace bench
