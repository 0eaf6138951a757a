package webhook

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
)

// TestAllocations: what answering a review costs in objects, which a busy machine does not
// change. The bounds leave a third of room over what it is under the race detector, which drops
// what pools keep; raise them knowingly.
func TestAllocations(t *testing.T) {
	handler, _ := newHandler(t, func(o *Options) { o.Observers = []Observer{unmoved{}} })
	endpoint := &Endpoint{Handler: handler, Log: logr.Discard()}
	for name, test := range map[string]struct {
		account func(i int) string
		most    float64
	}{
		"remembered": {func(int) string { return "api" }, 470},
		"new":        {strconv.Itoa, 1950},
	} {
		i := 0
		got := testing.AllocsPerRun(50, func() {
			i++
			body := largeReview("untrusted", i, test.account(i))
			recorder := httptest.NewRecorder()
			endpoint.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, MutatePodPath, bytes.NewReader(body)))
		})
		got -= testing.AllocsPerRun(50, func() { largeReview("untrusted", i, test.account(i)) })
		if t.Logf("%s: %.0f", name, got); got > test.most {
			t.Errorf("%s: %.0f allocations, want at most %.0f", name, got, test.most)
		}
	}
}

// unmoved is an observer that has nothing to say, as the decision log has of most pods.
type unmoved struct{}

func (unmoved) Decided(context.Context, *Decision) {}
