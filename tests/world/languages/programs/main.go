package main

import (
	"fmt"

	zmq "github.com/pebbe/zmq4"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	push, err := zmq.NewSocket(zmq.PUSH)
	check(err)
	pull, err := zmq.NewSocket(zmq.PULL)
	check(err)
	check(pull.Bind("tcp://127.0.0.1:*"))
	endpoint, err := pull.GetLastEndpoint()
	check(err)
	check(push.Connect(endpoint))
	for number := 0; number < 1000; number++ {
		text := fmt.Sprint("x", number)
		_, err := push.Send(text, 0)
		check(err)
		got, err := pull.Recv(0)
		check(err)
		if got != text {
			panic(got)
		}
	}
	fmt.Println("ok")
}
