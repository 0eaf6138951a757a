package survey

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

// Item is one thing to look at. It is decoded by the goroutine that does.
type Item struct {
	position  int
	documents iter.Seq2[*catalog.Document, error]
}

// Documents yields what is in the item, decoded by who asks.
func (i *Item) Documents() iter.Seq2[*catalog.Document, error] { return i.documents }

// placed is an error of the item at that position.
type placed struct {
	position int
	err      error
}

// Progress is told how far reading is.
type Progress interface {
	Size(all int64)
	At(read int64)
}

// Each hands the documents of the items to look, as many at once as there are processors,
// with their item's position, which counts from 1. It returns what could not be looked at,
// in the order of the items.
func Each(ctx context.Context, items iter.Seq2[*Item, error], look func(ctx context.Context, position int, document *catalog.Document) error) error {
	var (
		work    = make(chan *Item)
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
						err = look(ctx, one.position, document)
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
