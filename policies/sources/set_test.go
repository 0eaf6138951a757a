package sources

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runtimeclass-router/runtimeclass-router/policies"
)

// scripted delivers what it is told to.
type scripted struct {
	id         ID
	deliveries chan Delivery
}

func newScripted(name string) *scripted {
	return &scripted{ID{KindBundle, name}, make(chan Delivery)}
}

func (s *scripted) ID() ID { return s.id }

func (s *scripted) Run(ctx context.Context, deliver func(Delivery)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d := <-s.deliveries:
			deliver(d)
		}
	}
}

// setOf runs a set until the test ends.
func setOf(t *testing.T, all ...Source) *Set {
	t.Helper()
	set := NewSet(all)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return set
}

// TestSetJoins: nothing before all have delivered, and then all files, each once.
func TestSetJoins(t *testing.T) {
	t.Parallel()
	a, b := newScripted("a"), newScripted("b")
	set := setOf(t, NewEmbedded(), a, b)
	<-set.Changed() // the shipped policy
	if _, err := set.Policy(false); !errors.Is(err, ErrWaiting) || !strings.HasSuffix(err.Error(), "bundle a, bundle b") {
		t.Errorf("got %v", err)
	}
	a.deliveries <- Delivery{Modules: modulesOne}
	<-set.Changed()
	if _, err := set.Policy(true); !errors.Is(err, ErrWaiting) || !strings.HasSuffix(err.Error(), "bundle b") {
		t.Errorf("got %v", err)
	}
	b.deliveries <- Delivery{Modules: modulesTwo}
	<-set.Changed()
	replaced, err := set.Policy(true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(policies.Modules{"one.rego": "package one\n", "below/two.rego": "package two\n"}, replaced.Modules); diff != "" {
		t.Error(diff)
	}
	extended, err := set.Policy(false)
	if err != nil || len(extended.Modules) != len(policies.Shipped())+2 {
		t.Errorf("%d files, %v", len(extended.Modules), err)
	}
	if id, ok := extended.Owner("below/two.rego"); !ok || id != b.id {
		t.Errorf("owner %v", id)
	}

	b.deliveries <- Delivery{Modules: modulesOne}
	<-set.Changed()
	_, err = set.Policy(true)
	if lines := Lines(err); len(lines) != 1 || lines[0] != "one.rego:1: the file is in two sources: bundle a, and bundle b (rename one)" {
		t.Errorf("got %q", lines)
	}
}

// TestSetKeepsTheLastGood: an error does not take files away, and what says nothing new
// wakes nobody.
func TestSetKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	a := newScripted("a")
	set := setOf(t, a)
	a.deliveries <- Delivery{Modules: modulesOne, Revision: "r1", ETag: "e1"}
	<-set.Changed()
	broken := errors.New("status 500")
	a.deliveries <- Delivery{Err: broken}
	<-set.Changed()
	a.deliveries <- Delivery{Err: errors.New("status 500")}
	status := set.Status()[0]
	if status.State != "live" || status.Revision != "r1" || status.ETag != "e1" || status.Files != 1 || status.Err() == nil ||
		!cmp.Equal(status.Errors, []string{"status 500"}) {
		t.Errorf("status %+v", status)
	}
	if p, err := set.Policy(true); err != nil || !cmp.Equal(p.Modules, modulesOne) {
		t.Errorf("%+v, %v", p, err)
	}
	a.deliveries <- Delivery{} // found unchanged
	<-set.Changed()
	a.deliveries <- Delivery{Modules: policies.Modules{"one.rego": "package one\n"}, Revision: "r1"}
	a.deliveries <- Delivery{} // handled after the one before it
	if status := set.Status()[0]; status.Err() != nil || status.Errors != nil || status.ReadAt == nil {
		t.Errorf("status %+v", status)
	}
	select {
	case <-set.Changed():
		t.Error("woken by the same files")
	default:
	}
}

// TestSetTellsOfPersistedFiles until the source answers.
func TestSetTellsOfPersistedFiles(t *testing.T) {
	t.Parallel()
	a := newScripted("a")
	set := setOf(t, a)
	if status := set.Status()[0]; status.State != "waiting" || status.ReadAt != nil {
		t.Errorf("status %+v", status)
	}
	a.deliveries <- Delivery{Modules: modulesOne, Persisted: true, Err: errors.New("status 500")}
	<-set.Changed()
	if status := set.Status()[0]; status.State != "persisted" || status.Err() == nil {
		t.Errorf("status %+v", status)
	}
	a.deliveries <- Delivery{Modules: modulesOne}
	<-set.Changed()
	if status := set.Status()[0]; status.State != "live" || status.Err() != nil {
		t.Errorf("status %+v", status)
	}
}

// TestSetKeeps what was loaded, once, and not what came after it.
func TestSetKeeps(t *testing.T) {
	t.Parallel()
	a := newScripted("a")
	set := setOf(t, a)
	kept := map[string]int{}
	deliver := func(name string, modules policies.Modules) *Policy {
		t.Helper()
		a.deliveries <- Delivery{Modules: modules, Keep: func() error { kept[name]++; return nil }}
		<-set.Changed()
		p, err := set.Policy(true)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := deliver("one", modulesOne)
	second := deliver("two", modulesTwo)
	for _, p := range []*Policy{first, second} {
		if err := set.Keep(p); err != nil {
			t.Fatal(err)
		}
	}
	again, err := set.Policy(true)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Keep(again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"one": 1, "two": 1}, kept); diff != "" {
		t.Error(diff)
	}
}
