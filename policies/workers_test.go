package policies

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkers: one that has done its work does the next, one that is stuck is not waited
// for, and one that is idle ends.
func TestWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := make(workers)
		stuck, done := make(chan struct{}), make(chan int, 3)
		w.do(func() { done <- 1 })
		synctest.Wait()
		w.do(func() { <-stuck })
		w.do(func() { done <- 2 })
		synctest.Wait()
		if len(done) != 2 {
			t.Fatalf("%d of 2 done beside one that is stuck", len(done))
		}
		close(stuck)
		time.Sleep(2 * idleTime) // and the test ends only when no goroutine is left
		w.do(func() { done <- 3 })
		synctest.Wait()
		if len(done) != 3 {
			t.Error("no worker after an idle time")
		}
		time.Sleep(2 * idleTime)
	})
}
