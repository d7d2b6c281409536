// Pause is the first process of every pod: it holds the pod's namespaces, reaps what is left to
// it, and ends when it is told to.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for {
			reaped, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if err != nil || reaped <= 0 {
				break
			}
		}
	}
}
