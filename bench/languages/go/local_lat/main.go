// Sends each request back as its answer.
package main

import (
	. "tautline-languages-go/common"

	zmq "github.com/pebbe/zmq4"
)

func main() {
	endpoint, size, rounds, warmUp := Arguments()
	context, err := zmq.NewContext()
	Fail(err)
	socket, err := context.NewSocket(zmq.REP)
	Fail(err)
	Secure(socket)
	Fail(socket.Bind(endpoint))
	for number := 0; number < warmUp+rounds; number++ {
		message, err := socket.RecvBytes(0)
		Fail(err)
		Check(message, size, number)
		_, err = socket.SendBytes(message, 0)
		Fail(err)
	}
	Fail(socket.Close())
	Fail(context.Term())
}
