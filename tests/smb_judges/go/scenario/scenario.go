// Package scenario has what both Go clients do on a share: store, read, rename, list, truncate, delete.
package scenario

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"sort"
	"time"
)

// Share is the part of the two libraries that they have in common.
type Share interface {
	Mkdir(name string, mode os.FileMode) error
	WriteFile(name string, data []byte, mode os.FileMode) error
	ReadFile(name string) ([]byte, error)
	ReadDir(name string) ([]os.FileInfo, error)
	Rename(from, to string) error
	Truncate(name string, size int64) error
	Chtimes(name string, accessed, modified time.Time) error
	Stat(name string) (os.FileInfo, error)
	Remove(name string) error
}

// Tell runs the scenario in a new directory and ends the process with an error at the first surprise.
func Tell(share Share, directory string) {
	content := make([]byte, 3<<20+17)
	check(rand.Read(content))
	must(share.Mkdir(directory, 0o755))
	first, second := directory+`\first`, directory+`\ünïcødé 日本`
	must(share.WriteFile(first, content, 0o644))
	expect(bytes.Equal(check(share.ReadFile(first)), content), "the content comes back")
	must(share.WriteFile(second, []byte("second"), 0o644))
	expect(fmt.Sprint(names(share, directory)) == "[first ünïcødé 日本]", "both files are listed")

	third := directory + `\third`
	must(share.Rename(first, third))
	_, err := share.Stat(first)
	expect(os.IsNotExist(err), "the old name is gone")
	must(share.Truncate(third, 1<<20))
	expect(bytes.Equal(check(share.ReadFile(third)), content[:1<<20]), "the truncated content comes back")
	changed := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	must(share.Chtimes(third, changed, changed))
	expect(check(share.Stat(third)).ModTime().Equal(changed), "the time is kept")

	expect(share.Remove(directory) != nil, "a directory with files stays")
	must(share.Remove(second))
	must(share.Remove(third))
	must(share.Remove(directory))
	_, err = share.ReadDir(directory)
	expect(os.IsNotExist(err), "the directory is gone")
	fmt.Println("done")
}

func names(share Share, directory string) []string {
	var found []string
	for _, entry := range check(share.ReadDir(directory)) {
		found = append(found, entry.Name())
	}
	sort.Strings(found)
	return found
}

func check[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(truth bool, what string) {
	if !truth {
		panic(what)
	}
}
