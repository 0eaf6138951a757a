package page

import (
	"fmt"
	"time"
)

// milliseconds has three significant digits, or two decimals below ten.
func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case d == 0:
		return "–"
	case ms < 10:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

func megabytes(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", float64(bytes)/1e6)
}

func ratio(r float64) string {
	if r == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", r)
}

func rate(perSecond float64) string { return fmt.Sprintf("%.0f", perSecond) }

func percent(p float64) string { return fmt.Sprintf("%.1f %%", p) }
