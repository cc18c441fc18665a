<?php
// Exchanges messages through PHP's classes. Prints a line `ok NAME` or `not ok NAME` for each check, then `end`.

function check(string $name, bool $condition): void
{
    echo $condition ? "ok" : "not ok", " $name\n";
}

$context = new ZMQContext();

$pull = $context->getSocket(ZMQ::SOCKET_PULL);
$pull->bind("tcp://127.0.0.1:*");
$push = $context->getSocket(ZMQ::SOCKET_PUSH);
$push->connect($pull->getSockOpt(ZMQ::SOCKOPT_LAST_ENDPOINT));
$wrong = 0;
for ($round = 0; $round < 40; $round++) {
    for ($number = 0; $number < 500; $number++) {
        $push->send("message $round $number");
    }
    for ($number = 0; $number < 500; $number++) {
        $wrong += $pull->recv() !== "message $round $number";
    }
}
check("20,000 messages", $wrong === 0);

$push->sendmulti(["head", "", str_repeat("x", 1 << 20)]);
check("a multipart message", $pull->recvMulti() === ["head", "", str_repeat("x", 1 << 20)]);

$reply = $context->getSocket(ZMQ::SOCKET_REP);
$reply->bind("ipc://" . sys_get_temp_dir() . "/php-" . getmypid());
$request = $context->getSocket(ZMQ::SOCKET_REQ);
$request->connect($reply->getSockOpt(ZMQ::SOCKOPT_LAST_ENDPOINT));
$wrong = 0;
for ($number = 0; $number < 500; $number++) {
    $request->send("question $number");
    $wrong += $reply->recv() !== "question $number";
    $reply->send("answer $number");
    $wrong += $request->recv() !== "answer $number";
}
check("500 requests", $wrong === 0);

try {
    $reply->send("nobody asked");
    check("a reply to no request is refused", false);
} catch (ZMQSocketException $error) {
    check("a reply to no request is refused", $error->getCode() === ZMQ::ERR_EFSM);
}

$poll = new ZMQPoll();
$poll->add($pull, ZMQ::POLL_IN);
$readable = $writable = [];
check("polling without a message", $poll->poll($readable, $writable, 1) === 0);
$push->send("now");
check("polling", $poll->poll($readable, $writable, 10000) === 1 && $readable[0]->recv() === "now");
echo "end\n";
