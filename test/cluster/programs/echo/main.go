// Echo is the backend of the cluster tests. It answers every request with JSON that says which pod
// answered and what arrived there.
//
//	echo            serves on $PORT (default 8080); /health is for probes, ?delay=1s answers late,
//	                ?status=503 with that status, ?hold=64Mi allocates as much memory for good
//	echo get URL    asks once and prints the body; exit status 1 unless the answer is 2xx
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	clientTimeout   = 5 * time.Second
	shutdownTimeout = 20 * time.Second
)

type answer struct {
	Pod       string      `json:"pod"`
	Namespace string      `json:"namespace"`
	Node      string      `json:"node"`
	Method    string      `json:"method"`
	Host      string      `json:"host"`
	Path      string      `json:"path"`
	Query     string      `json:"query"`
	Proto     string      `json:"proto"`
	Remote    string      `json:"remote"`
	Headers   http.Header `json:"headers"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) == 3 && os.Args[1] == "get" {
		if err := get(os.Args[2]); err != nil {
			log.Fatal(err)
		}
		return
	}
	if err := serve(); err != nil {
		log.Fatal(err)
	}
}

func get(url string) error {
	// Whom it talks to is the test's business; certificates are judged by other clients.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := http.Client{Timeout: clientTimeout, Transport: transport}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}

func serve() error {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/", echo)
	server := &http.Server{Addr: ":" + port, Handler: mux}

	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	drained := make(chan error, 1)
	go func() {
		<-ended.Done()
		limit, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		drained <- server.Shutdown(limit)
	}()
	log.Printf("listening on %s", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-drained
}

func echo(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	status := http.StatusOK
	if asked, err := strconv.Atoi(query.Get("status")); err == nil && asked >= 200 && asked < 600 {
		status = asked
	}
	if delay, err := time.ParseDuration(query.Get("delay")); err == nil {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	if mebibytes, err := strconv.Atoi(strings.TrimSuffix(query.Get("hold"), "Mi")); err == nil {
		hold(mebibytes)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	hostname, _ := os.Hostname()
	_ = json.NewEncoder(w).Encode(answer{
		Pod:       hostname,
		Namespace: os.Getenv("POD_NAMESPACE"),
		Node:      os.Getenv("NODE_NAME"),
		Method:    r.Method,
		Host:      r.Host,
		Path:      r.URL.Path,
		Query:     r.URL.RawQuery,
		Proto:     r.Proto,
		Remote:    r.RemoteAddr,
		Headers:   r.Header,
	})
}

var held struct {
	sync.Mutex
	blocks [][]byte
}

// hold writes into what it allocates: memory that is never touched costs nothing.
func hold(mebibytes int) {
	held.Lock()
	defer held.Unlock()
	for range mebibytes {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held.blocks = append(held.blocks, block)
	}
}
