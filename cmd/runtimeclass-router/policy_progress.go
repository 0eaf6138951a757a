package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// progress draws a bar where a terminal shows it.
type progress struct {
	out         io.Writer
	size, drawn int64
}

const progressWidth = 40

func newProgress(out io.Writer, size int64) *progress {
	file, ok := out.(*os.File)
	if !ok || size == 0 || !term.IsTerminal(int(file.Fd())) {
		out = nil
	}
	return &progress{out: out, size: size, drawn: -1}
}

// at draws how many bytes have been read.
func (p *progress) at(read int64) {
	if p.out == nil {
		return
	}
	if width := min(read*progressWidth/p.size, progressWidth); width != p.drawn {
		p.drawn = width
		fmt.Fprintf(p.out, "\r[%s%s]", strings.Repeat("=", int(width)), strings.Repeat(" ", int(progressWidth-width)))
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p.out != nil {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", progressWidth+2))
	}
}
