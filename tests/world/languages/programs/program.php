<?php
$context = new ZMQContext();
$pull = $context->getSocket(ZMQ::SOCKET_PULL);
$pull->bind("tcp://127.0.0.1:*");
$push = $context->getSocket(ZMQ::SOCKET_PUSH);
$push->connect($pull->getSockOpt(ZMQ::SOCKOPT_LAST_ENDPOINT));
for ($number = 0; $number < 1000; $number++) {
    $push->send("x$number");
    if ($pull->recv() !== "x$number") exit(1);
}
echo "ok\n";
