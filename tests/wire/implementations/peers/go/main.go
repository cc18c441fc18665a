// go-zeromq/zmq4 as a peer. It executes the commands of ../../peer.py, one a line, and answers each with a line.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/plain"
)

const limit = 20 * time.Second

var kinds = map[string]func(context.Context, ...zmq4.Option) zmq4.Socket{
	"PAIR": zmq4.NewPair, "PUB": zmq4.NewPub, "SUB": zmq4.NewSub, "REQ": zmq4.NewReq, "REP": zmq4.NewRep,
	"DEALER": zmq4.NewDealer, "ROUTER": zmq4.NewRouter, "PULL": zmq4.NewPull, "PUSH": zmq4.NewPush,
	"XPUB": zmq4.NewXPub, "XSUB": zmq4.NewXSub,
}

type received struct {
	message zmq4.Msg
	err     error
}

// peer is a socket that is created with its first endpoint, because some options are arguments of its constructor.
type peer struct {
	zmq4.Socket
	kind    string
	options []zmq4.Option
	user    string
	asked   bool          // true while a Recv runs
	came    chan received // the result of this Recv
	next    *received
}

func (p *peer) open() zmq4.Socket {
	if p.Socket == nil {
		p.Socket = kinds[p.kind](context.Background(), append(p.options, zmq4.WithTimeout(limit))...)
	}
	return p.Socket
}

// wait returns the next message, or nil after the time limit. Recv itself has no time limit for a call.
func (p *peer) wait(patience time.Duration) *received {
	if p.next == nil && !p.asked {
		p.asked = true
		go func() {
			message, err := p.open().Recv()
			p.came <- received{message, err}
		}()
	}
	if p.next == nil {
		select {
		case came := <-p.came:
			p.next, p.asked = &came, false
		case <-time.After(patience):
		}
	}
	return p.next
}

func (p *peer) set(option, value string) error {
	switch option {
	case "ROUTING_ID":
		p.options = append(p.options, zmq4.WithID(zmq4.SocketIdentity(bytes(value))))
	case "SUBSCRIBE":
		return p.open().SetOption(zmq4.OptionSubscribe, string(bytes(value)))
	case "PLAIN_USERNAME":
		p.user = string(bytes(value))
	case "PLAIN_PASSWORD":
		// The binding side is the server, and accepts each client.
		p.options = append(p.options, zmq4.WithSecurity(plain.Security(p.user, string(bytes(value)))))
	case "UNSUBSCRIBE":
		return p.open().SetOption(zmq4.OptionUnsubscribe, string(bytes(value)))
	}
	return nil // go-zeromq has no high-water marks
}

func bytes(word string) []byte {
	data, _ := hex.DecodeString(strings.TrimPrefix(word, "-"))
	return data
}

var sockets = map[string]*peer{}

func carryOut(words []string) (string, error) {
	p := sockets[words[1]]
	switch words[0] {
	case "socket":
		sockets[words[1]] = &peer{kind: words[2], came: make(chan received, 1)}
	case "set":
		return "", p.set(words[2], words[3])
	case "bind":
		if err := p.open().Listen(strings.Replace(words[2], "*", "0", 1)); err != nil {
			return "", err
		}
		return " tcp://" + p.Addr().String(), nil
	case "connect":
		return "", p.open().Dial(words[2])
	case "send":
		var parts [][]byte
		for _, word := range words[2:] {
			parts = append(parts, bytes(word))
		}
		// The socket refuses messages before its first connection.
		for start := time.Now(); ; time.Sleep(time.Millisecond) {
			err := p.open().SendMulti(zmq4.NewMsgFrom(parts...))
			if err == nil || !strings.Contains(err.Error(), "no connections available") || time.Since(start) > limit {
				return "", err
			}
		}
	case "recv":
		came := p.wait(limit)
		if came == nil {
			return "", fmt.Errorf("EAGAIN")
		}
		p.next = nil
		answer := ""
		for _, part := range came.message.Frames {
			if len(part) == 0 {
				answer += " -"
			} else {
				answer += " " + hex.EncodeToString(part)
			}
		}
		return answer, came.err
	case "readable":
		milliseconds, err := strconv.Atoi(words[2])
		if p.wait(time.Duration(milliseconds)*time.Millisecond) == nil {
			return " 0", err
		}
		return " 1", err
	case "close":
		p.Close() // ignores the error for connections that the other side closed first
	}
	return "", nil
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		answer, err := carryOut(strings.Fields(line))
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok" + answer)
		}
	}
}
