// Sends a request and waits for the answer, one at a time.
package main

import (
	"slices"
	"time"

	. "tautline-languages-go/common"

	zmq "github.com/pebbe/zmq4"
)

func main() {
	endpoint, size, rounds, warmUp := Arguments()
	context, err := zmq.NewContext()
	Fail(err)
	socket, err := context.NewSocket(zmq.REQ)
	Fail(err)
	Secure(socket)
	Fail(socket.Connect(endpoint))
	request := make([]byte, size)
	times := make([]time.Duration, rounds)
	begin := time.Now()
	last := begin
	for number := 0; number < warmUp+rounds; number++ {
		if number == warmUp {
			begin = time.Now()
			last = begin
		}
		Number(request, number)
		_, err := socket.SendBytes(request, 0)
		Fail(err)
		answer, err := socket.RecvBytes(0)
		Fail(err)
		Check(answer, size, number)
		if number >= warmUp {
			now := time.Now()
			times[number-warmUp] = now.Sub(last)
			last = now
		}
	}
	total := last.Sub(begin)
	slices.Sort(times)
	half := func(time time.Duration) float64 { return float64(time.Nanoseconds()) / 2e3 }
	Report(map[string]any{
		"rounds": rounds, "size": size, "seconds": total.Seconds(), "mean_us": half(total) / float64(rounds),
		"p50_us": half(times[rounds/2]), "p99_us": half(times[rounds*99/100]),
	})
	Fail(socket.Close())
	Fail(context.Term())
}
