// Exchanges messages through cppzmq's classes. Prints a line `ok NAME` or `not ok NAME` for each case, then `end`.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <zmq.hpp>
#include <zmq_addon.hpp>

using namespace std::chrono_literals;
using std::string;

#define REQUIRE(condition)                                                                                             \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            throw std::runtime_error(string("line ") + std::to_string(__LINE__) + ": " #condition);                   \
    } while (false)

static zmq::socket_t bound(zmq::context_t &context, zmq::socket_type type)
{
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 10000);
    socket.bind("tcp://127.0.0.1:*");
    return socket;
}

static zmq::socket_t connected(zmq::context_t &context, zmq::socket_type type, const zmq::socket_t &to)
{
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 10000);
    socket.connect(to.get(zmq::sockopt::last_endpoint));
    return socket;
}

static string text(zmq::socket_t &socket)
{
    zmq::message_t message;
    REQUIRE(socket.recv(message));
    return message.to_string();
}

static void requests(zmq::context_t &context)
{
    auto rep = bound(context, zmq::socket_type::rep);
    auto req = connected(context, zmq::socket_type::req, rep);
    for (int i = 0; i < 1000; i++) {
        req.send(zmq::buffer(std::to_string(i)), zmq::send_flags::none);
        REQUIRE(text(rep) == std::to_string(i));
        rep.send(zmq::str_buffer("yes"), zmq::send_flags::none);
        REQUIRE(text(req) == "yes");
    }
    try {
        rep.send(zmq::str_buffer("nobody asked"), zmq::send_flags::dontwait);
        REQUIRE(false);
    } catch (const zmq::error_t &error) {
        REQUIRE(error.num() == EFSM);
    }
}

static void multipart(zmq::context_t &context)
{
    auto router = bound(context, zmq::socket_type::router);
    auto dealer = connected(context, zmq::socket_type::dealer, router);
    zmq::multipart_t sent;
    sent.addstr("head");
    sent.addmem(nullptr, 0);
    sent.addstr(string(1 << 20, 'x'));
    sent.addtyp<uint64_t>(42);
    auto copy = sent.clone();
    REQUIRE(copy.send(dealer));
    zmq::multipart_t received;
    REQUIRE(received.recv(router));
    auto id = received.pop();
    REQUIRE(received.equal(&sent));
    received.push(std::move(id));
    REQUIRE(received.send(router));
    std::vector<zmq::message_t> parts;
    REQUIRE(zmq::recv_multipart(dealer, std::back_inserter(parts)) == size_t(4));
    REQUIRE(parts[3].size() == 8 && parts[2].size() == 1 << 20);
}

static void topics(zmq::context_t &context)
{
    auto xpub = bound(context, zmq::socket_type::xpub);
    auto sub = connected(context, zmq::socket_type::sub, xpub);
    sub.set(zmq::sockopt::subscribe, "a");
    REQUIRE(text(xpub) == "\x01" "a");
    xpub.send(zmq::str_buffer("b"), zmq::send_flags::none);
    xpub.send(zmq::str_buffer("ab"), zmq::send_flags::none);
    REQUIRE(text(sub) == "ab");
    sub.set(zmq::sockopt::unsubscribe, "a");
    REQUIRE(text(xpub) == string("\0a", 2));
}

static void a_pipeline_of_threads(zmq::context_t &context)
{
    auto source = bound(context, zmq::socket_type::push);
    auto sink = bound(context, zmq::socket_type::pull);
    const string from = source.get(zmq::sockopt::last_endpoint), to = sink.get(zmq::sockopt::last_endpoint);
    std::vector<std::thread> workers;
    std::atomic<size_t> ended{0};
    for (int n = 0; n < 4; n++)
        workers.emplace_back([&] {
            zmq::socket_t in(context, zmq::socket_type::pull), out(context, zmq::socket_type::push);
            in.connect(from);
            out.connect(to);
            for (;;) {
                zmq::message_t message;
                if (!in.recv(message) || message.size() == 0)
                    break;
                out.send(message, zmq::send_flags::none);
            }
            ended++;
        });
    std::set<int> missing;
    for (int i = 0; i < 20000; i++)
        missing.insert(i);
    std::thread feeder([&] {
        for (int i = 0; i < 20000; i++)
            source.send(zmq::buffer(std::to_string(i)), zmq::send_flags::none);
    });
    while (!missing.empty())
        REQUIRE(missing.erase(std::stoi(text(sink))) == 1);
    feeder.join();
    // A worker may connect after the last message, and an ending worker may have taken two empty messages.
    while (ended < workers.size())
        if (!source.send(zmq::message_t(), zmq::send_flags::dontwait))
            std::this_thread::yield();
    for (auto &worker : workers)
        worker.join();
}

static void own_memory(zmq::context_t &context)
{
    auto first = bound(context, zmq::socket_type::pair);
    auto second = connected(context, zmq::socket_type::pair, first);
    static std::atomic<int> freed{0};
    for (size_t size : {size_t(1), size_t(100), size_t(100000)}) {
        auto *memory = new char[size];
        std::fill(memory, memory + size, 'm');
        zmq::message_t message(memory, size, [](void *data, void *) {
            delete[] static_cast<char *>(data);
            freed++;
        });
        second.send(message, zmq::send_flags::none);
        REQUIRE(text(first) == string(size, 'm'));
    }
    while (freed < 3)
        std::this_thread::yield();
}

static void polling(zmq::context_t &context)
{
    auto a = bound(context, zmq::socket_type::pull);
    auto b = bound(context, zmq::socket_type::pull);
    auto push = connected(context, zmq::socket_type::push, b);
    zmq::pollitem_t items[] = {{a.handle(), 0, ZMQ_POLLIN, 0}, {b.handle(), 0, ZMQ_POLLIN, 0}};
    REQUIRE(zmq::poll(items, 2, 1ms) == 0);
    push.send(zmq::str_buffer("now"), zmq::send_flags::none);
    REQUIRE(zmq::poll(items, 2, 10s) == 1);
    REQUIRE(items[0].revents == 0 && items[1].revents == ZMQ_POLLIN);
    REQUIRE(text(b) == "now");
}

struct Events : zmq::monitor_t {
    bool accepted = false, shaken = false, gone = false;
    void on_event_accepted(const zmq_event_t &, const char *) override { accepted = true; }
    void on_event_handshake_succeeded(const zmq_event_t &, const char *) override { shaken = true; }
    void on_event_disconnected(const zmq_event_t &, const char *) override { gone = true; }
};

static void monitoring(zmq::context_t &context)
{
    auto pull = bound(context, zmq::socket_type::pull);
    Events events;
    events.init(pull, "inproc://events", ZMQ_EVENT_ALL);
    {
        auto push = connected(context, zmq::socket_type::push, pull);
        push.send(zmq::str_buffer("hello"), zmq::send_flags::none);
        REQUIRE(text(pull) == "hello");
    }
    for (int tries = 0; tries < 100 && !events.gone; tries++)
        events.check_event(100);
    REQUIRE(events.accepted && events.shaken && events.gone);
}

static void a_steered_proxy(zmq::context_t &context)
{
    auto front = bound(context, zmq::socket_type::router);
    auto back = bound(context, zmq::socket_type::dealer);
    zmq::socket_t control(context, zmq::socket_type::pair), steered(context, zmq::socket_type::pair);
    steered.bind("inproc://control");
    control.connect("inproc://control");
    auto req = connected(context, zmq::socket_type::req, front);
    auto rep = connected(context, zmq::socket_type::rep, back);
    std::thread proxy([&] { zmq::proxy_steerable(front, back, zmq::socket_ref(), steered); });
    req.send(zmq::str_buffer("through"), zmq::send_flags::none);
    REQUIRE(text(rep) == "through");
    rep.send(zmq::str_buffer("and back"), zmq::send_flags::none);
    REQUIRE(text(req) == "and back");
    control.send(zmq::str_buffer("TERMINATE"), zmq::send_flags::none);
    proxy.join();
}

static void shutting_down(zmq::context_t &)
{
    zmq::context_t context;
    zmq::socket_t pull(context, zmq::socket_type::pull);
    pull.bind("inproc://nobody");
    std::thread waiting([&] {
        try {
            zmq::message_t message;
            (void)pull.recv(message);
        } catch (const zmq::error_t &error) {
            if (error.num() != ETERM)
                std::abort();
        }
        pull.close();
    });
    context.shutdown();
    waiting.join();
    context.close();
}

int main()
{
    const std::vector<std::pair<string, std::function<void(zmq::context_t &)>>> cases = {
        {"requests and replies", requests},
        {"multipart messages", multipart},
        {"topics", topics},
        {"a pipeline of threads", a_pipeline_of_threads},
        {"messages from the program's own memory", own_memory},
        {"polling", polling},
        {"monitoring", monitoring},
        {"a steerable proxy", a_steered_proxy},
        {"shutting down", shutting_down},
    };
    for (const auto &[name, body] : cases) {
        try {
            zmq::context_t context;
            body(context);
            std::cout << "ok " << name << std::endl;
        } catch (const std::exception &error) {
            std::cout << "not ok " << name << ": " << error.what() << std::endl;
        }
    }
    std::cout << "end" << std::endl;
}
