// Go's net/http; WORKERS pages at once. Usage: page PORT WORKERS SECONDS
package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	workers, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	free := make(chan struct{}, workers)
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		free <- struct{}{}
		time.Sleep(time.Duration(seconds * 1e9))
		<-free
		io.WriteString(answer, "ok\n")
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
