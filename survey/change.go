package survey

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Change is how what happens to the pods of an owner differs between two policies.
type Change struct {
	Namespace string `json:"namespace"`
	Owner     string `json:"owner"` // kind/name
	// From and To are what happens, in the words of [Verdict.Said].
	From        string `json:"from"`
	To          string `json:"to"`
	NewlyDenied bool   `json:"newlyDenied"`
}

// Counted says how many pods change so, and why the first of them does.
type Counted struct {
	Change
	Pods   int    `json:"pods"` // and workloads, each of which counts as one
	Reason string `json:"reason"`

	first int // position of the pod that Reason is of
}

// Changes counts changes, in any number of goroutines at once. The zero value is ready.
type Changes struct {
	// Limit is how many different ones are told apart; 0 does not bound them. Changes
	// beyond it are counted in [Changes.Beyond].
	Limit int

	mu     sync.Mutex
	seen   map[Change]*Counted
	beyond int
}

// Add counts the difference of two verdicts on a pod at that position, if there is one, and
// reports it.
func (c *Changes) Add(position int, namespace, owner string, was, is *Verdict) (Change, bool) {
	if was.Said == is.Said {
		return Change{}, false
	}
	change := Change{Namespace: namespace, Owner: owner, From: was.Said, To: is.Said, NewlyDenied: is.Denied && !was.Denied}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen[change]
	switch {
	case seen == nil && c.Limit > 0 && len(c.seen) >= c.Limit:
		c.beyond++
		return change, true
	case seen == nil:
		if c.seen == nil {
			c.seen = map[Change]*Counted{}
		}
		seen = &Counted{Change: change, first: position, Reason: is.News(was)}
		c.seen[change] = seen
	case position < seen.first:
		seen.first, seen.Reason = position, is.News(was)
	}
	seen.Pods++
	return change, true
}

// List is what has been counted, what breaks first.
func (c *Changes) List() []Counted {
	c.mu.Lock()
	list := make([]Counted, 0, len(c.seen))
	for _, counted := range c.seen {
		list = append(list, *counted)
	}
	c.mu.Unlock()
	slices.SortFunc(list, func(a, b Counted) int {
		if a.NewlyDenied != b.NewlyDenied {
			if a.NewlyDenied {
				return -1
			}
			return 1
		}
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Owner, b.Owner),
			strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return list
}

// Beyond is how many pods change in a way that is not told apart.
func (c *Changes) Beyond() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.beyond
}
