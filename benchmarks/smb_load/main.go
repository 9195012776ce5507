// A load of small SMB requests: one connection and one session per worker, each with one request at a time.
//
// smb_load ACTION ADDRESS SHARE ACCOUNT KEY CONNECTIONS SECONDS prints the number of requests, the seconds they took, the median and
// the 99th percentile in milliseconds, and the CPU seconds of this process. The action `fill` creates the files for all others.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand"
	"os"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/cloudsoda/go-smb2"
)

const (
	folder    = "load"
	entries   = 1000
	fileBytes = 8 << 20
	pageBytes = 4096
)

// An action returns what one worker does again and again, and what ends it.
type action func(share *smb2.Share, worker int) (request func() error, end func() error, err error)

var actions = map[string]action{
	"open_close": openClose,
	"list":       list,
	"read_4k": func(share *smb2.Share, worker int) (func() error, func() error, error) {
		return page(share, worker, false)
	},
	"write_4k": func(share *smb2.Share, worker int) (func() error, func() error, error) {
		return page(share, worker, true)
	},
}

func openClose(share *smb2.Share, worker int) (func() error, func() error, error) {
	number := worker * 100
	return func() error {
		number = (number + 1) % entries
		file, err := share.Open(entry(number))
		if err != nil {
			return err
		}
		return file.Close()
	}, nothing, nil
}

func list(share *smb2.Share, worker int) (func() error, func() error, error) {
	return func() error {
		found, err := share.ReadDir(folder)
		if err == nil && len(found) != entries {
			return fmt.Errorf("%d entries", len(found))
		}
		return err
	}, nothing, nil
}

// page reads or writes 4 KiB at a random page of the worker's own file.
func page(share *smb2.Share, worker int, write bool) (func() error, func() error, error) {
	file, err := share.OpenFile(own(worker), os.O_RDWR, 0o644)
	if err != nil {
		return nil, nil, err
	}
	buffer := make([]byte, pageBytes)
	rand.Read(buffer)
	chance := mathrand.New(mathrand.NewSource(int64(worker)))
	return func() error {
		offset := int64(chance.Intn(fileBytes/pageBytes)) * pageBytes
		if write {
			_, err := file.WriteAt(buffer, offset)
			return err
		}
		_, err := file.ReadAt(buffer, offset)
		return err
	}, file.Close, nil
}

func nothing() error { return nil }

func entry(number int) string { return fmt.Sprintf(`%s\a file with a name %04d`, folder, number) }

func own(worker int) string { return fmt.Sprintf("own-%d", worker) }

func fill(share *smb2.Share, connections int) {
	must(share.Mkdir(folder, 0o755))
	for number := 0; number < entries; number++ {
		must(share.WriteFile(entry(number), []byte("content"), 0o644))
	}
	content := make([]byte, fileBytes)
	rand.Read(content)
	for worker := 0; worker < connections; worker++ {
		must(share.WriteFile(own(worker), content, 0o644))
	}
}

func connect(words []string) (*smb2.Session, *smb2.Share) {
	dialer := &smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: words[2], Password: words[3]}}
	session, err := dialer.Dial(context.Background(), words[0])
	must(err)
	share, err := session.Mount(words[1])
	must(err)
	return session, share
}

// work runs requests until `end`. The times of all of them are kept: some hundred thousand numbers at most.
func work(share *smb2.Share, worker int, do action, begin *sync.WaitGroup, start <-chan time.Time) []time.Duration {
	request, finish, err := do(share, worker)
	must(err)
	begin.Done()
	end := <-start
	var taken []time.Duration
	for last := time.Now(); last.Before(end); {
		must(request())
		now := time.Now()
		taken = append(taken, now.Sub(last))
		last = now
	}
	must(finish())
	return taken
}

func main() {
	connections, err := strconv.Atoi(os.Args[6])
	must(err)
	seconds, err := strconv.ParseFloat(os.Args[7], 64)
	must(err)
	if os.Args[1] == "fill" {
		session, share := connect(os.Args[2:])
		fill(share, connections)
		must(session.Logoff())
		return
	}
	measure(actions[os.Args[1]], connections, time.Duration(seconds*float64(time.Second)))
}

func measure(do action, connections int, length time.Duration) {
	var begin, done sync.WaitGroup
	start := make(chan time.Time, connections)
	results := make([][]time.Duration, connections)
	begin.Add(connections)
	for worker := 0; worker < connections; worker++ {
		session, share := connect(os.Args[2:])
		done.Add(1)
		go func() {
			defer done.Done()
			results[worker] = work(share, worker, do, &begin, start)
			session.Logoff()
		}()
	}
	begin.Wait()
	started := time.Now()
	for worker := 0; worker < connections; worker++ {
		start <- started.Add(length)
	}
	done.Wait()
	report(results, time.Since(started))
}

func report(results [][]time.Duration, length time.Duration) {
	var all []time.Duration
	for _, taken := range results {
		all = append(all, taken...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	fmt.Println(len(all), length.Seconds(), milliseconds(all[len(all)/2]), milliseconds(all[len(all)*99/100]), cpu.Seconds())
}

func milliseconds(taken time.Duration) float64 { return float64(taken.Microseconds()) / 1000 }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
