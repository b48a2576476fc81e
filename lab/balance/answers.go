// A server that lets some requests at a time pass, each for a while: answers ADDRESS LIMIT MILLISECONDS. With 0 milliseconds it answers at once.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: answers ADDRESS LIMIT MILLISECONDS")
	}
	free := make(chan struct{}, number(os.Args[2]))
	takes := time.Duration(number(os.Args[3])) * time.Millisecond
	answer := func(response http.ResponseWriter, _ *http.Request) {
		if takes > 0 {
			free <- struct{}{}
			time.Sleep(takes)
			<-free
		}
		_, _ = io.WriteString(response, "Hello\n")
	}
	listener, err := net.Listen("tcp4", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, http.HandlerFunc(answer)))
}
