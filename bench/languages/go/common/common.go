// Package common contains the shared code of the four programs: arguments, numbered messages, and the line of
// JSON that the harness reads.
package common

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	zmq "github.com/pebbe/zmq4"
)

// True if Secure has set keys.
var encrypted bool

// Arguments returns the endpoint, the size in bytes, the number of messages, and the number of warm-up
// messages before them.
func Arguments() (endpoint string, size int, count int, warmUp int) {
	if len(os.Args) < 4 {
		Fail(fmt.Errorf("arguments: endpoint size count [warm-up]"))
	}
	endpoint, size, count, warmUp = os.Args[1], number(os.Args[2]), number(os.Args[3]), 1000
	if len(os.Args) > 4 {
		warmUp = number(os.Args[4])
	}
	if size < 8 || count < 2 {
		Fail(fmt.Errorf("use at least 2 messages of at least 8 bytes"))
	}
	return
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	Fail(err)
	return value
}

// Fail ends the program if there is an error.
func Fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Secure sets the keys of CURVE, if the environment has some (../curve.sh). A program that knows the key of a
// server is a client.
func Secure(socket *zmq.Socket) {
	secret, server := os.Getenv("CURVE_SECRET"), os.Getenv("CURVE_SERVER")
	if secret == "" {
		return
	}
	if server == "" {
		Fail(socket.SetCurveServer(1))
	} else {
		Fail(socket.SetCurveServerkey(server))
		Fail(socket.SetCurvePublickey(os.Getenv("CURVE_PUBLIC")))
	}
	Fail(socket.SetCurveSecretkey(secret))
	encrypted = true
}

// Number writes a message's number into it.
func Number(message []byte, number int) {
	binary.LittleEndian.PutUint64(message, uint64(number))
}

// Check ends the program unless the message is the one with that number.
func Check(message []byte, size int, number int) {
	if len(message) != size || binary.LittleEndian.Uint64(message) != uint64(number) {
		Fail(fmt.Errorf("message %d is wrong: %d bytes", number, len(message)))
	}
}

// Report prints the figures.
func Report(figures map[string]any) {
	figures["curve"] = encrypted
	figures["verified"] = true
	line, err := json.Marshal(figures)
	Fail(err)
	fmt.Println(string(line))
}
