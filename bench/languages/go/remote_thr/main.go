// Sends numbered messages as fast as the socket accepts them.
package main

import (
	. "tautline-languages-go/common"

	zmq "github.com/pebbe/zmq4"
)

func main() {
	endpoint, size, count, warmUp := Arguments()
	context, err := zmq.NewContext()
	Fail(err)
	socket, err := context.NewSocket(zmq.PUSH)
	Fail(err)
	Secure(socket)
	Fail(socket.Connect(endpoint))
	message := make([]byte, size)
	for number := 0; number < warmUp+count; number++ {
		Number(message, number)
		_, err := socket.SendBytes(message, 0)
		Fail(err)
	}
	Fail(socket.Close())
	Fail(context.Term())
}
