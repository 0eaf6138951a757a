package main

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/runtimeclass-router/runtimeclass-router/catalog"
)

// item is one thing to compare. It is decoded by the goroutine that compares it.
type item struct {
	position  int
	documents iter.Seq2[*catalog.Document, error]
}

// placed is an error of the item at that position.
type placed struct {
	position int
	err      error
}

// all compares the items, as many at once as there are processors, and returns what could
// not be compared, in the order of the items.
func (d *difference) all(ctx context.Context, items iter.Seq2[*item, error]) error {
	var (
		work    = make(chan *item)
		workers sync.WaitGroup
		mu      sync.Mutex
		errs    []placed
	)
	fail := func(position int, err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, placed{position, err})
	}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for one := range work {
				for document, err := range one.documents {
					if err == nil {
						err = d.route(ctx, one.position, document)
					}
					if err != nil {
						fail(one.position, err)
					}
				}
			}
		})
	}
	position := 0
	for one, err := range items {
		if ctx.Err() != nil {
			break
		}
		position++
		if err != nil {
			fail(position, err)
			continue
		}
		one.position = position
		work <- one
	}
	close(work)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx) // and no policy is at fault
	}
	slices.SortStableFunc(errs, func(a, b placed) int { return cmp.Compare(a.position, b.position) })
	var joined []error
	for _, e := range errs {
		joined = append(joined, e.err)
	}
	return errors.Join(joined...)
}
