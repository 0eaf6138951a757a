package results

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []int
		q      float64
		want   int
	}{
		{nil, 0.5, 0}, {[]int{7}, 0.99, 7}, {[]int{3, 1, 2}, 0.5, 2}, {[]int{4, 1, 3, 2}, 0.5, 2},
		{[]int{5, 4, 3, 2, 1}, 1, 5}, {[]int{1, 2}, 0, 1},
	} {
		if got := Quantile(test.values, test.q); got != test.want {
			t.Errorf("quantile %v of %v: %d, want %d", test.q, test.values, got, test.want)
		}
	}
}

func TestQuantileLeavesTheValues(t *testing.T) {
	t.Parallel()
	values := []int{3, 1, 2}
	Quantile(values, 0.5)
	if diff := cmp.Diff([]int{3, 1, 2}, values); diff != "" {
		t.Error(diff)
	}
}

// TestRatioIsPaired: a round in which the machine was slow for both does not count.
func TestRatioIsPaired(t *testing.T) {
	t.Parallel()
	of := []Sample{{P50: 20}, {P50: 2000}, {P50: 30}}
	to := []Sample{{P50: 10}, {P50: 1000}, {P50: 10}}
	if got := Ratio(of, to); got != 2 {
		t.Errorf("ratio %v, want 2", got)
	}
	if got := Ratio(of, nil); got != 0 {
		t.Errorf("ratio to nothing %v, want 0", got)
	}
}

func TestGrowthIsOfTheReference(t *testing.T) {
	t.Parallel()
	c := Curve{Points: []Point{{P50: 10, Reference: 5}, {P50: 22, Reference: 10}, {P50: 10}}}
	for i, want := range []float64{1, 1.1, 0} {
		if got := c.Growth(i); got != want {
			t.Errorf("point %d: growth %v, want %v", i, got, want)
		}
	}
}

func TestWrittenAndRead(t *testing.T) {
	t.Parallel()
	want := &Results{
		Pods:    3,
		Through: []*Variant{{Name: "none", Samples: map[int][]Sample{1: {{P50: time.Millisecond}}}}},
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
