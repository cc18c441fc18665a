/* cppzmq, the usual C++ wrapper, compiles against our header. All parts of its API are instantiated. */
#include <chrono>
#include <zmq.hpp>
#include <zmq_addon.hpp>

int exchange()
{
    zmq::context_t context;
    zmq::socket_t server(context, zmq::socket_type::rep);
    zmq::socket_t client(context, zmq::socket_type::req);
    server.set(zmq::sockopt::linger, 0);
    server.set(zmq::sockopt::rcvtimeo, 1000);
    server.set(zmq::sockopt::routing_id, "server");
    server.bind("tcp://127.0.0.1:*");
    client.connect(server.get(zmq::sockopt::last_endpoint));
    client.send(zmq::str_buffer("hello"), zmq::send_flags::sndmore);
    client.send(zmq::message_t("world", 5), zmq::send_flags::none);

    zmq::pollitem_t items[] = {{server.handle(), 0, ZMQ_POLLIN, 0}};
    zmq::poll(items, 1, std::chrono::milliseconds(1000));
    zmq::multipart_t parts;
    parts.recv(server);
    parts.send(server);
    std::vector<zmq::message_t> reply;
    const auto count = zmq::recv_multipart(client, std::back_inserter(reply));
    client.disconnect(server.get(zmq::sockopt::last_endpoint));

    zmq::socket_t subscriber(context, zmq::socket_type::sub);
    subscriber.set(zmq::sockopt::subscribe, "topic");
    zmq::monitor_t monitor;
    monitor.init(subscriber, "inproc://events", ZMQ_EVENT_ALL);
    try {
        server.bind("nonsense");
    } catch (const zmq::error_t &error) {
        return error.num() == EINVAL && count ? 0 : 1;
    }
    return 1;
}
