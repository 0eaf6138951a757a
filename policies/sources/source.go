package sources

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// Kind is a kind of source.
type Kind string

// The kinds of source.
const (
	KindEmbedded   Kind = "embedded"
	KindDirectory  Kind = "directory"
	KindConfigMaps Kind = "configMaps"
	KindBundle     Kind = "bundle"
)

// Source is one place that policy files come from.
type Source interface {
	// ID returns what the source is called in /statusz and in errors.
	ID() ID
	// Run delivers what the source has, and again whenever that changes or cannot be
	// read, until ctx ends. It calls deliver from one goroutine at a time. An error is
	// one that no waiting mends.
	Run(ctx context.Context, deliver func(Delivery)) error
}

// ID names a source: its kind, and the directory, namespace or URL.
type ID struct {
	Kind Kind
	Name string
}

// String is the kind with the name behind it.
func (id ID) String() string {
	if id.Name == "" {
		return string(id.Kind)
	}
	return fmt.Sprintf("%s %s", id.Kind, id.Name)
}

// Delivery is what a source has to say.
type Delivery struct {
	// Modules are all files of the source. Nil stands for those delivered before.
	Modules policies.Modules
	// Revision is what the source itself calls them; empty stands for their digest.
	Revision string
	// ETag is the server's name for what it sent.
	ETag string
	// Persisted marks files of an earlier process, delivered because the source does
	// not answer.
	Persisted bool
	// Objects are the cluster's objects that hold the files, by the first element of a
	// file's name.
	Objects map[string]corev1.ObjectReference
	// Err is what the source cannot read, with the place where there is one.
	Err error
	// Keep, if not nil, is called when the files are in force.
	Keep func() error
}

// digest tells whether two sets of files are the same.
func digest(modules policies.Modules) string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintf(sum, "%d %s %d %s", len(name), name, len(modules[name]), modules[name])
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// sleep returns false if ctx ended meanwhile.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
