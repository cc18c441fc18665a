// Receives; the first message after the warm-up starts the clock.
package main

import (
	"time"

	. "tautline-languages-go/common"

	zmq "github.com/pebbe/zmq4"
)

func main() {
	endpoint, size, count, warmUp := Arguments()
	context, err := zmq.NewContext()
	Fail(err)
	socket, err := context.NewSocket(zmq.PULL)
	Fail(err)
	Secure(socket)
	Fail(socket.Bind(endpoint))
	for number := 0; number < warmUp+1; number++ {
		message, err := socket.RecvBytes(0)
		Fail(err)
		Check(message, size, number)
	}
	begin := time.Now()
	for number := warmUp + 1; number < warmUp+count; number++ {
		message, err := socket.RecvBytes(0)
		Fail(err)
		Check(message, size, number)
	}
	seconds := time.Since(begin).Seconds()
	Report(map[string]any{
		"count": count, "size": size, "seconds": seconds, "messages_per_second": float64(count-1) / seconds,
	})
	Fail(socket.Close())
	Fail(context.Term())
}
