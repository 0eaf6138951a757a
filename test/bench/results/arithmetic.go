package results

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// Quantile is the smallest value that a share q of the values do not exceed; zero of
// none. It leaves the values as they are.
func Quantile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1))]
}

// Median is the one in the middle; of an even number, the lower of two.
func Median[T cmp.Ordered](values []T) T { return Quantile(values, 0.5) }

// MedianOf is the median of what field returns of the samples.
func MedianOf[T cmp.Ordered](samples []Sample, field func(*Sample) T) T {
	values := make([]T, len(samples))
	for i := range samples {
		values[i] = field(&samples[i])
	}
	return Median(values)
}

// Ratio is the median of the ratios of p50 that two have within each round: a machine
// that is slow for a while is slow for both. It is zero where one has none.
func Ratio(of, to []Sample) float64 {
	return RatioOf(durations(of), durations(to))
}

// RatioOf is Ratio of bare times.
func RatioOf(of, to []time.Duration) float64 {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		if to[i] > 0 {
			ratios = append(ratios, float64(of[i])/float64(to[i]))
		}
	}
	return Median(ratios)
}

func durations(samples []Sample) []time.Duration {
	found := make([]time.Duration, len(samples))
	for i := range samples {
		found[i] = samples[i].P50
	}
	return found
}

// Growth is how many times the p50 of a point is that of the first one, each as a
// multiple of its reference, so that a machine that has become slower does not count.
func (c *Curve) Growth(i int) float64 {
	first, point := &c.Points[0], &c.Points[i]
	if first.P50 == 0 || first.Reference == 0 || point.Reference == 0 {
		return 0
	}
	return float64(point.P50) / float64(point.Reference) / (float64(first.P50) / float64(first.Reference))
}

// Thousands groups the digits of a number.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
