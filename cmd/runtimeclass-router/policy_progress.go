package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// progress draws a bar where a terminal shows it, or counts where the end is not known.
type progress struct {
	out         io.Writer // nil if nothing is drawn
	size, drawn int64
}

const progressWidth = 40

func newProgress(out io.Writer) *progress {
	if file, ok := out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		out = nil
	}
	return &progress{out: out, drawn: -1}
}

// Size is told how much there is.
func (p *progress) Size(all int64) { p.size = all }

// At draws how much has been read, of size if that is known.
func (p *progress) At(read int64) {
	switch {
	case p.out == nil:
	case p.size == 0:
		if read%100 == 0 {
			fmt.Fprintf(p.out, "\r%d", read)
		}
	default:
		if width := min(read*progressWidth/p.size, progressWidth); width != p.drawn {
			p.drawn = width
			fmt.Fprintf(p.out, "\r[%s%s]", strings.Repeat("=", int(width)), strings.Repeat(" ", int(progressWidth-width)))
		}
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p.out != nil {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", progressWidth+2))
	}
}
