// A page in Go. Usage: page PORT MODE PLACES MILLISECONDS [UPSTREAM PORT]
package main

import (
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	mode := os.Args[2]
	places, _ := strconv.Atoi(os.Args[3])
	ms, _ := strconv.ParseFloat(os.Args[4], 64)
	each := time.Duration(ms * 1e6)
	work := map[string]func() func(){
		// Each request for its own time.
		"timer":   func() func() { return func() { time.Sleep(each) } },
		"scatter": func() func() { return func() { time.Sleep(time.Duration(float64(each) * rand.ExpFloat64())) } },
		"compute": func() func() {
			return func() {
				for until := time.Now().Add(each); time.Now().Before(until); {
				}
			}
		},
		"semaphore": func() func() {
			free := make(chan struct{}, places)
			return func() { free <- struct{}{}; time.Sleep(each); <-free }
		},
		"lock": func() func() {
			var lock sync.Mutex
			return func() { lock.Lock(); time.Sleep(each); lock.Unlock() }
		},
		"workers": func() func() {
			jobs := make(chan chan struct{}, 100000)
			for i := 0; i < places; i++ {
				go func() {
					for done := range jobs {
						time.Sleep(each)
						close(done)
					}
				}()
			}
			return func() { done := make(chan struct{}); jobs <- done; <-done }
		},
		// As many connections to the server behind it as there are places, or as many as it likes.
		"proxy": func() func() {
			client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000, MaxConnsPerHost: places}}
			behind := fmt.Sprintf("http://127.0.0.1:%s/", os.Args[5])
			return func() {
				if answer, err := client.Get(behind); err == nil {
					io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}
		},
	}[mode]()
	page := strings.Repeat("x", 500)
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		work()
		io.WriteString(answer, page)
	})))
}
