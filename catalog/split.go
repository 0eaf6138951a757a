package catalog

import "strings"

// chunk is the text of one document and the line that it starts on, from 1.
type chunk struct {
	text string
	line int
}

// split takes a file of YAML documents apart at its separators, the lines that begin
// with three dashes. It is done by lines, ahead of any parser, so that a document
// that is broken does not hide the next, and so that each knows its line. What holds
// nothing but blanks and comments is no document.
func split(file string) []chunk {
	var chunks []chunk
	start, startLine := 0, 1
	flush := func(end int) {
		if text := file[start:end]; !blank(text) {
			chunks = append(chunks, chunk{text: text, line: startLine})
		}
	}
	offset, line := 0, 0
	for text := range strings.Lines(file) {
		line++
		end := offset + len(text)
		if rest, ok := strings.CutPrefix(text, "---"); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n")) {
			flush(offset)
			start, startLine = end, line+1
			if !blank(rest) { // YAML lets a document begin on the separator's line
				start, startLine = end-len(strings.TrimLeft(rest, " \t")), line
			}
		}
		offset = end
	}
	flush(len(file))
	return chunks
}

func blank(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}
